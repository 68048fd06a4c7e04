"""Measure the answers that one core serves and the memory of one open stream, to size a deployment.

A gateway runs on one core, the load and a model server that costs next to nothing on another. CPU time per answer is
user and system time of the gateway, work after the last answer included; its reciprocal is the answers per second of
a core. Memory per stream is the growth of resident memory while `STREAMS` streams are open, each with its request and
the first events of its answer, after a few have been opened and closed.

    python -m bench.capacity               two minutes, over the loopback interface only
    python -m bench.capacity --quick       half a minute, less precise, and writes nothing
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

import uvloop

from bench.client import Request
from bench.overhead import Load, await_quiet, measure
from bench.peers import LOAD_ON, OFF, SYNC, WORK, gateway, model_server
from bench.processes import Server
from bench.report import heading, machine, markdown, write

STREAMS, CONNECTIONS = 500, 4
CONTEXTS = (1_000, 4_000)
_SECONDS, _CPU_S, _MAX_ROUNDS = 3.0, 4.0, 12  # a round; how much CPU time to measure; rounds at most
_WARM_UP_S = 1.0
_FEW = 20  # streams before the measurement
_EVENTS = 3  # of a stream that counts as open
_PATIENCE_S = 60.0
_FILES = 4 * STREAMS

PATIENT = {"GROUNDWIRE_GROUNDING__TIMEOUT": "60s"}
NO_MODEL = {**PATIENT, "GROUNDWIRE_JUDGE__BY": "off"}


@dataclass(frozen=True, slots=True)
class Case:
    """A way to run a gateway and to load it."""

    name: str
    gateway: str
    environ: Mapping[str, str]
    repeat: bool = False


CASES = (
    Case("forwarded", OFF, PATIENT),
    Case("verified, all cached", SYNC, PATIENT, repeat=True),
    Case("verified without the model (judge.by: off)", SYNC, NO_MODEL),
    Case("verified with the shipped model", SYNC, PATIENT),
)


class Held(asyncio.Protocol):
    """A connection that sends one request and reads the answer; `events` counts the events of its stream."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.events = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.events += data.count(b"data: ")


async def hold_streams(server: Server, tokens: int, count: int) -> float:
    """Open so many streams and return the resident memory in MB while all of them are open."""
    loop, request = asyncio.get_running_loop(), Request("slow", tokens, ())
    first = time.time_ns() // 10_000 % 10**9
    streams: list[Held] = []
    for number in range(count):
        content = request.numbered(first + number)
        streams.append((await loop.create_connection(lambda: Held(content), "127.0.0.1", server.port))[1])  # noqa: B023
    async with asyncio.timeout(_PATIENCE_S):
        while not all(stream.events >= _EVENTS for stream in streams):  # noqa: ASYNC110 - counted by protocols
            await asyncio.sleep(0.1)
    held = server.rss_mb()
    for stream in streams:
        stream.transport.abort()
    return held


def measure_memory(case: Case, upstream: Server, tokens: int) -> dict[str, float]:
    """Return the resident memory after a few streams and with all of them, in MB, and the growth per stream, in KB."""
    with gateway(case.gateway, upstream, case.environ) as server:
        uvloop.run(hold_streams(server, tokens, _FEW))
        await_quiet(server)
        before = server.rss_mb()
        held = uvloop.run(hold_streams(server, tokens, STREAMS))
        return {"ready_mb": before, "kb_per_stream": (held - before) / STREAMS * 1e3, "held_mb": held}


def measure_answers(case: Case, upstream: Server, tokens: int, cpu_s: float, seconds: float) -> dict[str, float]:
    """Return CPU milliseconds per answer, over rounds that take `cpu_s` of CPU time in all, and the verified share."""
    load = Load("body", CONNECTIONS, tokens, seconds, repeat=case.repeat)
    with gateway(case.gateway, upstream, case.environ) as server:
        load.put_on(server, _WARM_UP_S)
        await_quiet(server)
        requests = cpu = verified = 0.0
        for _ in range(_MAX_ROUNDS):
            found = measure(server, upstream, load)
            requests += found["requests"]
            cpu += found["cpu_ms"] * found["requests"]
            verified += found["verified"] * found["requests"]
            if cpu >= cpu_s * 1000:
                break
    return {"cpu_ms": cpu / requests, "per_cpu_s": 1000 * requests / cpu, "verified": verified / requests}


def run(cpu_s: float, seconds: float) -> dict[str, Any]:
    """Measure all cases one after the other."""
    WORK.mkdir(exist_ok=True)
    os.sched_setaffinity(0, {LOAD_ON})
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, _FILES), most))
    answers: dict[str, dict[str, dict[str, float]]] = {}
    memory: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        upstream = stack.enter_context(model_server())
        for case in CASES:
            for tokens in CONTEXTS:
                found = measure_answers(case, upstream, tokens, cpu_s, seconds)
                answers.setdefault(case.name, {})[str(tokens)] = found
                print(f"{case.name}, {tokens} tokens: {found}", file=sys.stderr, flush=True)
        for case in CASES:
            if not case.repeat:
                memory[case.name] = measure_memory(case, upstream, CONTEXTS[0])
                print(f"{case.name}: {memory[case.name]}", file=sys.stderr, flush=True)
    return {"command": "python -m bench.capacity", "machine": machine(), "answers": answers, "memory": memory}


def as_table(result: Mapping[str, Any]) -> str:
    """Return the figures as Markdown."""
    columns = ["answers of 200 words"]
    for tokens in CONTEXTS:
        columns += [f"{tokens:,} tokens of context: CPU ms", "per second and core"]
    rows = [
        (name, *(cell for each in found.values() for cell in (_number(each["cpu_ms"]), _number(each["per_cpu_s"]))))
        for name, found in result["answers"].items()
    ]
    held = [
        (name, f"{each['ready_mb']:.0f}", f"{each['kb_per_stream']:.0f}", f"{each['held_mb']:.0f}")
        for name, each in result["memory"].items()
    ]
    titles = ("", "without traffic, MB", "an open stream, KB", f"with {STREAMS} open streams, MB")
    parts = [heading("Capacity of one core", result), markdown(columns, rows), "\n## Resident memory\n"]
    return "\n".join([*parts, markdown(titles, held), *_warnings(result)])


def _warnings(result: Mapping[str, Any]) -> Sequence[str]:
    shares = {name: min(each["verified"] for each in found.values()) for name, found in result["answers"].items()}
    few = [f"{name} ({share:.0%})" for name, share in shares.items() if share < 1 and name != CASES[0].name]
    return [f"\nNot all answers were verified: {', '.join(few)}."] if few else []


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short rounds, nothing written")
    quick = parser.parse_args().quick
    result = run(0.2 if quick else _CPU_S, 1.0 if quick else _SECONDS)
    table = as_table(result)
    if not quick:
        write("capacity", result, table)
    print(table)


if __name__ == "__main__":
    main()
