"""Server processes under measurement: started on a free port, watched through /proc, ended by their own process id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Server:
    """A server process that listens on a port of the loopback interface."""

    name: str
    pid: int
    port: int

    def cpu_s(self) -> float:
        """User and system time so far, in seconds, of the process, its threads and its children."""
        return sum(_cpu_s(pid) for pid in _family(self.pid))

    def rss_mb(self) -> float:
        """Resident memory of the process and its children, in MB."""
        return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in _family(self.pid)) * _PAGE / 1e6


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    name: str, command: Sequence[str], port: int, log: Path, environ: Mapping[str, str], within_s: float = 90
) -> Iterator[Server]:
    """Runs a server while the block runs. Raises TimeoutError or RuntimeError when it does not come up."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env={**os.environ, **environ}, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        _await_port(process, port, log, within_s)
        yield Server(name, process.pid, port)
    finally:
        _end(process)


def _await_port(process: subprocess.Popen[bytes], port: int, log: Path, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args} ended with {process.returncode}: {log.read_text()[-2000:]}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"{process.args} did not listen on port {port} within {within_s} s, see {log}")


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        process.send_signal(number)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            continue
        return


def _family(pid: int) -> list[int]:
    children = [int(child) for tid in os.listdir(f"/proc/{pid}/task") for child in _children(pid, tid)]
    return [pid] + [each for child in children for each in _family(child)]


def _children(pid: int, tid: str) -> list[str]:
    return Path(f"/proc/{pid}/task/{tid}/children").read_text().split()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS  # utime, stime, and those of children that have ended
