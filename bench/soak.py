"""Check that memory stays flat under many requests and streams, half of them left by their clients before the end.

Runs Groundwire with verification off, on, and on with a store, and measures its resident memory and its open files
after every twentieth of the load, once it is idle. The first fifth warms up: allocators and the bounded stores fill.
After it, memory should neither grow nor shrink by more than 5 %. With verification on the load is a twentieth, since
each answer is checked and differs from all others, and the stores of verdicts and reports are small, so that they are
full in time.

    python -m bench.soak                  200,000 requests and 20,000 streams; some minutes
    python -m bench.soak --share 0.1      a tenth of that

With `--only` one gateway is measured, and its row replaces the one in the results; each row names its commit.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import uvloop

from bench.client import Request
from bench.overhead import await_quiet
from bench.peers import OFF, STORE, SYNC, WORK, gateway, model_server
from bench.processes import Server
from bench.report import FOLDER, heading, machine, markdown, write

REQUESTS, STREAMS = 200_000, 20_000
VERIFIED_SHARE = 0.05
LOADS = {OFF: 1.0, SYNC: VERIFIED_SHARE, STORE: VERIFIED_SHARE}
AT_ONCE = 24
LOOKS = 20
WARM_UP = 4  # measurements that are not counted
FLAT = 0.05
SMALL_STORES = {"GROUNDWIRE_GROUNDING__KEEP_REPORTS": "1MiB", "GROUNDWIRE_CACHE__MAX_ENTRIES": "200"}
_CONTEXT = 1000  # tokens
_PATIENCE_S = 60
_READ = 2**16


@dataclass(frozen=True, slots=True)
class Look:
    """The resources held by a process after so many exchanges: resident memory in MB, and open files."""

    exchanges: int
    rss_mb: float
    files: int


class Clients:
    """Clients of one gateway. They leave half of their exchanges before the end, at any point."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._chance = random.Random(1)
        self._requests = {shape: Request(shape, _CONTEXT, ()) for shape in ("body", "stream", "paced")}
        self._number = time.time_ns() // 10_000 % 10**9
        self.failures: list[str] = []

    async def send(self, requests: int, streams: int) -> None:
        """Send so many of both, in any order, some at once."""
        kinds = ["body"] * requests + ["stream"] * streams
        self._chance.shuffle(kinds)
        waiting = iter(kinds)
        await asyncio.gather(*(self._visit(waiting) for _ in range(AT_ONCE)))

    async def _visit(self, kinds: Iterator[str]) -> None:
        for kind in kinds:
            stays = self._chance.random() < 0.5
            shape = "paced" if kind == "stream" and not stays else kind
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            try:
                self._number += 1
                writer.write(self._requests[shape].numbered(self._number))
                await asyncio.wait_for(self._stay(reader, shape) if stays else self._leave(reader, shape), _PATIENCE_S)
            except (TimeoutError, ConnectionError, asyncio.IncompleteReadError) as error:
                self.failures.append(f"{shape}: {error!r}")
            finally:
                writer.transport.abort()

    async def _stay(self, reader: asyncio.StreamReader, shape: str) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if shape == "body":
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(length)
        else:
            await reader.readuntil(b"\r\n0\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            self.failures.append(f"{shape}: {head[:40]!r}")

    async def _leave(self, reader: asyncio.StreamReader, shape: str) -> None:
        """Leave after a while: with the request just sent, with some of the answer, or with some events."""
        if shape == "body":
            await asyncio.sleep(self._chance.random() * 0.002)
        else:
            for _ in range(self._chance.randint(0, 20)):
                await reader.read(_READ)


async def soaked(server: Server, requests: int, streams: int) -> tuple[list[Look], list[str]]:
    """Put the load on a gateway; return its resources in between, and the failures."""
    clients, looks = Clients(server.port), []
    for number in range(1, LOOKS + 1):
        await clients.send(requests // LOOKS, streams // LOOKS)
        await asyncio.to_thread(await_quiet, server)
        looks.append(Look(number * (requests + streams) // LOOKS, server.rss_mb(), open_files(server)))
        print(server.name, looks[-1], file=sys.stderr, flush=True)
    return looks, clients.failures


def open_files(server: Server) -> int:
    """Count the files and sockets that a process holds."""
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def summed_up(looks: Sequence[Look], failures: Sequence[str]) -> dict[str, Any]:
    """Return growth as a share from the end of the warm-up to the end, and its slope by least squares."""
    kept = looks[WARM_UP - 1 :]
    xs, ys = [look.exchanges / 10_000 for look in kept], [look.rss_mb for look in kept]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)
    return {
        "exchanges": looks[-1].exchanges,
        "warm_mb": ys[0],
        "end_mb": ys[-1],
        "growth": ys[-1] / ys[0] - 1,
        "mb_per_10000": slope,
        "files_warm": kept[0].files,
        "files_end": kept[-1].files,
        "failures": len(failures),
        "first_failure": failures[0] if failures else None,
        "rss_mb": [look.rss_mb for look in looks],
    }


def run(share: float, only: str) -> dict[str, Any]:
    WORK.mkdir(exist_ok=True)
    found = {}
    with model_server() as upstream:
        for name, part in LOADS.items():
            if only not in ("", name):
                continue
            with gateway(name, upstream, SMALL_STORES) as server:
                requests, streams = (max(LOOKS, round(number * share * part)) for number in (REQUESTS, STREAMS))
                found[name] = summed_up(*uvloop.run(soaked(server, requests, streams)))
    on = machine()
    rows = {name: {"commit": on["commit"], **each} for name, each in found.items()}
    return {"command": shlex.join(["python", "-m", "bench.soak", *sys.argv[1:]]), "machine": on, "soaked": rows}


def with_earlier_rows(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result with the rows of the results file that were not measured again."""
    earlier = json.loads((FOLDER / "soak.json").read_text())
    known = {name: {"commit": earlier["machine"]["commit"], **each} for name, each in earlier["soaked"].items()}
    rows = {**known, **result["soaked"]}
    return {**result, "soaked": {name: rows[name] for name in LOADS if name in rows}}


def as_table(result: Mapping[str, Any]) -> str:
    rows = [
        (
            name,
            f"{each['exchanges']:,}",
            f"{each['warm_mb']:.1f}",
            f"{each['end_mb']:.1f}",
            f"{each['growth']:+.1%}",
            f"{each['mb_per_10000']:+.2f}",
            f"{each['files_warm']} / {each['files_end']}",
            each["failures"],
            "flat" if abs(each["growth"]) <= FLAT else "not flat",
            each["commit"],
        )
        for name, each in result["soaked"].items()
    ]
    measured = ("exchanges", "warm, MB", "end, MB", "growth", "MB per 10,000", "files warm / end", "failures")
    columns = ("", *measured, "", "commit")
    text = "Ten requests to one stream, half of both left by their clients. Resident memory once warm, and at the end."
    return "\n".join([heading("Whether memory stays flat", result), text, "", markdown(columns, rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--share", type=float, default=1.0, help="of the whole load (default: 1)")
    parser.add_argument("--only", choices=LOADS, default="", help="one gateway alone, the other rows stay")
    given = parser.parse_args()
    result = run(given.share, given.only)
    if given.only:
        result = with_earlier_rows(result)
    table = as_table(result)
    print(table)
    write("soak", result, table)


if __name__ == "__main__":
    main()
