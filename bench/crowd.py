"""Measure overload: 10,000 requests at once, thousands of idle connections, and eight verifications at a time.

A gateway with its defaults takes 1,000 requests, queues 1,000, and refuses the others. The cost of refusing is its own
CPU time, by /proc, from the moment both are full until the last of the others has its 503. The delay that the event
loop causes is measured by a separate process, which requests /healthz over one connection every 5 ms.

    python -m bench.crowd                 half a minute, over the loopback interface only
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import socket
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, cast

import uvloop

from bench.client import Request
from bench.overhead import await_quiet
from bench.peers import LOAD_ON, OFF, SYNC, WORK, gateway, model_server
from bench.processes import Server, free_port
from bench.report import heading, machine, markdown, percentile, write

CROWD, IDLE, ROOM, VERIFYING = 10_000, 1_000, 2_000, 8
_VERIFYING_S = 10.0
_PROBE_S = 0.005
_PATIENCE_S = 30
_FILES = 12_000

_BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hello"}]}).encode()
_ASKED = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
_ANSWERED = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
_ALIVE = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n"


class Slow:
    """A model server that answers nothing until `let` is set."""

    def __init__(self) -> None:
        self.port = free_port()
        self.waiting = 0
        self.let = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(len(_BODY))
                self.waiting += 1
                await self.let.wait()
                writer.write(_ANSWERED)


class Visitor(asyncio.Protocol):
    """A connection that makes one request and counts the status of its answer."""

    def __init__(self, heard: Counter[int]) -> None:
        self._heard = heard

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)

    def ask(self) -> None:
        """Make the request."""
        self.transport.write(_ASKED)

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"HTTP/1.1 "):
            self._heard[int(data[9:12])] += 1


async def crowded(server: Server, model: Slow) -> dict[str, Any]:
    """Send a request on ten thousand connections at once."""
    listening = await asyncio.start_server(model.serve, "127.0.0.1", model.port, backlog=2048)
    empty, heard = server.rss_mb(), Counter[int]()
    visitors = await _visitors(server.port, CROWD, heard)
    await _until(lambda: len(os.listdir(f"/proc/{server.pid}/fd")) > CROWD)
    connected = server.rss_mb()
    async with probing(server.port) as waits:
        for visitor in visitors[:ROOM]:
            visitor.ask()
        await _until(lambda: model.waiting == ROOM // 2)
        await asyncio.sleep(0.3)  # until the others are queued
        cpu, begun = server.cpu_s(), time.perf_counter()
        for visitor in visitors[ROOM:]:
            visitor.ask()
        await _until(lambda: heard[503] >= CROWD - ROOM)
        took, cpu = time.perf_counter() - begun, server.cpu_s() - cpu
        model.let.set()
        await _until(lambda: heard.total() == CROWD)
    most = server.rss_mb()
    for visitor in visitors:
        visitor.transport.abort()
    listening.close()
    return {
        "answered": heard[200],
        "refused": heard[503],
        "refused_within_s": took,
        "cpu_us_per_refusal": cpu / (CROWD - ROOM) * 1e6,
        "healthz_slowest_ms": max(waits),
        "kb_per_connection": (connected - empty) / CROWD * 1e3,
        "most_mb": most,
    }


async def idle(server: Server) -> dict[str, Any]:
    """Hold a thousand connections without requests, and one with requests."""
    visitors = await _visitors(server.port, IDLE, Counter())
    await asyncio.sleep(1)
    cpu, begun = server.cpu_s(), time.perf_counter()
    await asyncio.sleep(5)
    share = (server.cpu_s() - cpu) / (time.perf_counter() - begun)
    async with probing(server.port) as waits:
        await asyncio.sleep(2)
    for visitor in visitors:
        visitor.transport.abort()
    return {"cpu_share": share, **_percentiles(waits)}


async def verifying(server: Server) -> dict[str, Any]:
    """Have eight clients send one answer after the other for verification."""
    request, number = Request("body", 4000, ()), time.time_ns() // 10_000 % 10**9
    until = time.monotonic() + _VERIFYING_S
    done = 0

    async def one(first: int) -> None:
        nonlocal done
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        while time.monotonic() < until:
            writer.write(request.numbered(first + done * VERIFYING))
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
            await reader.readexactly(int(lengths[0]))
            done += 1
        writer.close()

    async with probing(server.port) as waits:
        await asyncio.gather(*(one(number + each) for each in range(VERIFYING)))
    return {"answers": done, **_percentiles(waits)}


@asynccontextmanager
async def probing(port: int) -> AsyncIterator[list[float]]:
    """Request /healthz from a separate process during the block; the list holds the times (ms) afterwards."""
    waits: list[float] = []
    command = [sys.executable, "-m", "bench.crowd", "--probe", str(port)]
    probe = await asyncio.create_subprocess_exec(*command, stdin=-1, stdout=-1)
    assert probe.stdout is not None
    await probe.stdout.readline()
    yield waits
    told, _ = await probe.communicate(b"")
    waits += json.loads(told)


def probe(port: int) -> None:
    """Request /healthz until standard input ends, then print the time (ms) of each answer."""
    waits = []
    os.set_blocking(0, False)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        print(flush=True)
        while sys.stdin.buffer.raw.read(1) is None:  # type: ignore[attr-defined]
            begun = time.perf_counter()
            connection.sendall(_ALIVE)
            while not connection.recv(4096).endswith(b"}"):  # head and body may come apart
                pass
            waits.append((time.perf_counter() - begun) * 1000)
            time.sleep(_PROBE_S)
    print(json.dumps(waits))


async def _visitors(port: int, count: int, heard: Counter[int]) -> list[Visitor]:
    loop, made = asyncio.get_running_loop(), []
    for _ in range(count // 100):
        each = (loop.create_connection(lambda: Visitor(heard), "127.0.0.1", port) for _ in range(100))
        made += [visitor for _, visitor in await asyncio.gather(*each)]
    return made


async def _until(holds: Any) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what it looks at is in another process
            await asyncio.sleep(0.005)


def _percentiles(waits: Sequence[float]) -> dict[str, float]:
    return {"healthz_p50_ms": percentile(waits, 50), "healthz_p99_ms": percentile(waits, 99), "slowest_ms": max(waits)}


async def _crowd() -> dict[str, Any]:
    model = Slow()
    with gateway(OFF, replace(_NOWHERE, port=model.port)) as server:
        found = {"idle": await idle(server)}
        await asyncio.to_thread(await_quiet, server)
        return found | {"crowd": await crowded(server, model)}


_NOWHERE = Server("slow", os.getpid(), 0, {}, 0.0)


def run() -> dict[str, Any]:
    WORK.mkdir(exist_ok=True)
    os.sched_setaffinity(0, {LOAD_ON})
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 2 * _FILES), most))
    found = uvloop.run(_crowd())
    with model_server() as upstream, gateway(SYNC, upstream) as server:
        found["verifying"] = uvloop.run(verifying(server))
    return {"command": "python -m bench.crowd", "machine": machine(), "found": found}


def as_table(result: Mapping[str, Any]) -> str:
    rows = [
        (part, name, f"{value:,.4g}" if value < 1000 else f"{value:,.0f}")
        for part, each in result["found"].items()
        for name, value in each.items()
    ]
    return heading("A crowd", result) + "\n" + markdown(("", "", ""), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--probe", type=int, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--dry", action="store_true", help="write nothing")
    given = parser.parse_args()
    if given.probe:
        probe(given.probe)
        return
    result = run()
    table = as_table(result)
    if not given.dry:
        write("crowd", result, table)
    print(table)


if __name__ == "__main__":
    main()
