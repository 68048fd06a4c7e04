"""The real proxy, as users build it, running in a thread of the tests."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
import yaml

from groundwire.config import load_settings
from groundwire.container import build_container
from groundwire.http.app import build_app
from groundwire.http.run import uvicorn_config
from groundwire.judge import VERIFIERS, Judge, Verifier

SETTLES_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running proxy."""

    port: int

    @property
    def url(self) -> str:
        """Return its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """Return the base URL for an SDK."""
        return f"{self.url}/v1"

    def report(self, grounding_id: str) -> dict[str, Any]:
        """Return the stored report, once it is made."""
        deadline = time.monotonic() + SETTLES_WITHIN_S
        while time.monotonic() < deadline:
            response = httpx.get(f"{self.base_url}/grounding/{grounding_id}", timeout=60)
            if response.status_code == 200 and response.json()["status"] not in ("pending", "deferred"):
                report: dict[str, Any] = response.json()
                return report
            time.sleep(0.02)
        raise AssertionError(f"no report after {SETTLES_WITHIN_S} s: {response.status_code} {response.text[:500]}")

    def self_consistency(self, grounding_id: str) -> dict[str, Any]:
        """Return the result of an answer's samples, once it is no longer pending."""
        deadline = time.monotonic() + SETTLES_WITHIN_S
        while time.monotonic() < deadline:
            found: dict[str, Any] = self.report(grounding_id)["self_consistency"]
            if found["status"] != "pending":
                return found
            time.sleep(0.02)
        raise AssertionError("the samples never came")


@contextlib.contextmanager
def serving(
    sections: Mapping[str, Any],
    folder: Path,
    environ: Mapping[str, str],
    verifiers: Sequence[tuple[str, Verifier]] = VERIFIERS,
) -> Iterator[Proxy]:
    """Run the proxy with this config, as users build it, on a free port in a thread."""
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(dict(sections)), encoding="utf-8")
    settings = load_settings(path, environ)
    app = build_app(settings, build_container(settings, environ, judge=Judge(verifiers=verifiers)))
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn_config(app, settings.server)
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="proxy", daemon=True)
    thread.start()
    try:
        _wait_until_started(server, thread)
        yield Proxy(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(timeout=60)
        listening.close()
        assert not thread.is_alive(), "the proxy did not stop"


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread) -> None:
    deadline = time.monotonic() + 60
    while not server.started:
        assert thread.is_alive(), "the proxy ended while starting"
        assert time.monotonic() < deadline, "the proxy did not start in 60 s"
        time.sleep(0.01)
