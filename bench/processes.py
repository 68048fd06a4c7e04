"""Server processes under measurement: started on a free port, watched through /proc, ended by process id."""

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
from types import MappingProxyType

_TICKS = os.sysconf("SC_CLK_TCK")
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"  # with it every start would recompile the bytecode that an installation has
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Server:
    """A server process that listens on a port of the loopback interface; every request needs these headers.

    `first_answer_s` is the time from its start until it first answered anything.
    """

    name: str
    pid: int
    port: int
    headers: Mapping[str, str]
    first_answer_s: float

    def cpu_s(self) -> float:
        """Return the user and system time so far, in seconds, of the process, its threads and its children."""
        return sum(_cpu_s(pid) for pid in family(self.pid))

    def rss_mb(self) -> float:
        """Return the resident memory of the process and its children, in MB."""
        return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in family(self.pid)) * _PAGE / 1e6


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    name: str,
    command: Sequence[str],
    port: int,
    log: Path,
    environ: Mapping[str, str],
    headers: Mapping[str, str] = MappingProxyType({}),
    within_s: float = 90,
) -> Iterator[Server]:
    """Run a server while the block runs. Raises TimeoutError or RuntimeError when it does not come up."""
    begun = time.monotonic()
    with log.open("wb") as output:
        inherited = {name: value for name, value in os.environ.items() if name != _NO_BYTECODE}
        process = subprocess.Popen(
            command, env={**inherited, **environ}, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        _await_answer(process, port, log, within_s)
        yield Server(name, process.pid, port, headers, time.monotonic() - begun)
    finally:
        _end(process)


def _await_answer(process: subprocess.Popen[bytes], port: int, log: Path, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args} ended with {process.returncode}: {log.read_text()[-2000:]}")
        if _answers(port):
            return
        time.sleep(0.02)
    raise TimeoutError(f"{process.args} did not listen on port {port} within {within_s} s, see {log}")


def _answers(port: int) -> bool:
    """Return whether any answer comes from the port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as asking:
            asking.sendall(b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            return bool(asking.recv(1))
    except OSError:
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        process.send_signal(number)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            continue
        return


def family(pid: int) -> list[int]:
    """Return the process and its descendants."""
    children = [int(child) for tid in os.listdir(f"/proc/{pid}/task") for child in _children(pid, tid)]
    return [pid] + [each for child in children for each in family(child)]


def _children(pid: int, tid: str) -> list[str]:
    return Path(f"/proc/{pid}/task/{tid}/children").read_text().split()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS  # utime, stime, and those of children that have ended
