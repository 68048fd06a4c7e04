"""`groundwire serve` in a separate process, as a user starts it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.edge.clients import until
from tests.ports import free_port

COMMAND = [sys.executable, "-c", "from groundwire.cli import main; main()"]
PATIENCE_S = 60.0


class Process:
    """A running `groundwire serve`, with its settings file and its log."""

    def __init__(self, folder: Path, config: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self.folder = folder
        self.config = folder / "config.yaml"
        self.log = folder / "log"
        self.configure(config)
        self.port = free_port()
        with self.log.open("wb") as sink:
            self._process = subprocess.Popen(
                [*COMMAND, "serve", "--config", str(self.config), "--host", "127.0.0.1", "--port", str(self.port)],
                stdout=sink,
                stderr=sink,
                cwd=folder,
                env={**os.environ, **environ},
            )

    def configure(self, config: Mapping[str, Any] | str) -> None:
        """Write the settings file, in place of an earlier one as editors do."""
        text = config if isinstance(config, str) else yaml.safe_dump(dict(config))
        fresh = self.config.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(self.config)

    def wait_until_up(self) -> None:
        """Return once it answers."""

        def is_up() -> bool:
            assert self.is_running, self.said
            try:
                return httpx.get(f"http://127.0.0.1:{self.port}/healthz", timeout=5).status_code == 200
            except httpx.TransportError:
                return False

        until(is_up)

    def wait_until_ready(self) -> None:
        """Return once it is ready, and all that it depends on."""
        self.wait_until_up()
        until(lambda: httpx.get(f"http://127.0.0.1:{self.port}/readyz", timeout=5).json()["degraded"] == [])

    @property
    def is_running(self) -> bool:
        """Return whether it has not ended yet."""
        return self._process.poll() is None

    @property
    def said(self) -> str:
        """Return all that it has written to its log."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def usage(self) -> tuple[int, int, int]:
        """Return the numbers of its open files and of its threads, and its resident memory in bytes."""
        proc = Path(f"/proc/{self._process.pid}")
        pages = int((proc / "statm").read_text().split()[1])
        return len([*(proc / "fd").iterdir()]), len([*(proc / "task").iterdir()]), pages * os.sysconf("SC_PAGE_SIZE")

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """Return its exit status, once it has ended."""
        return self._process.wait(PATIENCE_S)

    def stored(self) -> int:
        """Return the number of exchanges in its history."""
        with closing(sqlite3.connect(self.folder / "history.db")) as database:
            (count,) = database.execute("SELECT count(*) FROM exchanges").fetchone()
            return int(count)

    def end(self) -> None:
        """End it in any state."""
        self._process.kill()
        self._process.wait(PATIENCE_S)
