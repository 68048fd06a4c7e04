"""A lightweight load generator: keep-alive connections with one request in flight each, for a given time.

Every request carries a unique number within its context, so that no proxy can answer from a cache, unless
`--repeat` has all of them carry the same one. Prints one JSON object: requests, those whose answer came with a complete
report, failures, seconds, percentiles of the latency in milliseconds, until the first byte of the body and whole; of
paced streams also how long their content events were on the way, and how many streams stalled: two of their content
events came more than `STALL_MS` apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import cast

import uvloop

from bench.report import percentile
from bench.texts import messages

MODELS = {
    "body": "bench-model",
    "stream": "bench-model",
    "paced": "bench-paced-2",
    "tokens": "bench-paced-20",
    "slow": "bench-paced-500",
}
"""The model to ask for, by the shape of the answer: a body, a stream all at once, or one with pauses."""

STALL_MS = 100

_NUMBER = "@" * 10
_VERIFIED = re.compile(rb'"grounding":{"id":"[^"]*","version":1,"status":"complete"')
_CONTENT = re.compile(rb'"content": ?"')
_STAMP = re.compile(rb'"fp_(\d{16})"')
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Request:
    """The bytes of a request, in two halves between which a number goes."""

    def __init__(self, shape: str, tokens: int, headers: Sequence[str]) -> None:
        asked = messages(tokens, seed=1)
        asked[1]["content"] = f"Case {_NUMBER}.\n\n{asked[1]['content']}"
        body: dict[str, object] = {"model": MODELS[shape], "messages": asked, "temperature": 0.2}
        if shape != "body":
            body |= {"stream": True}
        content = json.dumps(body)
        head = (
            "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer sk-bench\r\n"
            "accept: application/json\r\nuser-agent: bench\r\ncontent-type: application/json\r\n"
            + "".join(f"{each}\r\n" for each in headers)
            + f"content-length: {len(content)}\r\n\r\n"
        )
        before, after = (head + content).split(_NUMBER)
        self._before, self._after = before.encode(), after.encode()

    def numbered(self, number: int) -> bytes:
        return self._before + f"{number:010d}".encode() + self._after


@dataclass
class Load:
    """The requests to send until `deadline` (on time.perf_counter), and the results so far."""

    request: Request
    shape: str
    deadline: float
    first_number: int  # from the clock, so that no two runs send the same numbers
    step: int = 1  # from one request to the next; 0 repeats the first one
    sent: int = 0
    verified: int = 0
    failures: list[str] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)
    whole_ms: list[float] = field(default_factory=list)
    event_ms: list[float] = field(default_factory=list)
    stalled: int = 0

    @property
    def is_paced(self) -> bool:
        return MODELS[self.shape] != "bench-model"

    def next_request(self) -> bytes | None:
        if time.perf_counter() >= self.deadline:
            return None
        self.sent += 1
        return self.request.numbered(self.first_number + self.step * self.sent)


class Connection(asyncio.Protocol):
    """Send one request after the other. `done` gets its result when time is up or the connection is lost."""

    def __init__(self, load: Load, done: asyncio.Future[None]) -> None:
        self._load = load
        self._done = done
        self._received = bytearray()
        self._begun = self._first = self._last = self._longest = 0.0
        self._body_at = 0
        self._end: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)
        self._send()

    def _send(self) -> None:
        request = self._load.next_request()
        if request is None:
            self._transport.close()
            return
        self._received.clear()
        self._first, self._last, self._longest, self._body_at, self._end = 0.0, 0.0, 0.0, 0, None
        self._begun = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._load.is_paced and _CONTENT.search(data):
            self._event(data)
        if not self._body_at:
            head = self._received.find(b"\r\n\r\n")
            if head < 0:
                return
            self._body_at = head + 4
            length = _LENGTH.search(self._received, 0, head + 2)
            self._end = self._body_at + int(length[1]) if length else None
        if not self._first and len(self._received) > self._body_at:
            self._first = time.perf_counter()
        if self._is_whole():
            self._finish()

    def _event(self, data: bytes) -> None:
        now = time.monotonic()
        self._longest = max(self._longest, now - (self._last or now))
        self._last = now
        self._load.event_ms += [now * 1000 - int(stamp) / 1000 for stamp in _STAMP.findall(data)]

    def _is_whole(self) -> bool:
        if self._end is not None:
            return len(self._received) >= self._end
        return self._received.endswith(b"\r\n0\r\n\r\n")  # no event of a JSON answer holds these bytes

    def _finish(self) -> None:
        now = time.perf_counter()
        mark = b"data: [DONE]" if self._load.shape != "body" else b'"finish_reason"'
        if self._received.startswith(b"HTTP/1.1 200") and mark in self._received:
            self._load.first_ms.append((self._first - self._begun) * 1000)
            self._load.whole_ms.append((now - self._begun) * 1000)
            self._load.stalled += self._longest * 1000 > STALL_MS
            self._load.verified += _VERIFIED.search(self._received) is not None
        else:
            self._load.failures.append(bytes(self._received[:300]).decode("latin-1"))
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None or time.perf_counter() < self._load.deadline:
            self._load.failures.append(f"connection lost: {error}")
        if not self._done.done():
            self._done.set_result(None)


async def run(port: int, concurrency: int, load: Load, ramp: float) -> None:
    """Open the connections, evenly over `ramp` seconds, and wait until the last request is answered."""
    loop = asyncio.get_running_loop()
    endings = [loop.create_future() for _ in range(concurrency)]
    for done in endings:
        await loop.create_connection(lambda done=done: Connection(load, done), "127.0.0.1", port)
        await asyncio.sleep(ramp / concurrency)
    await asyncio.wait_for(asyncio.gather(*endings), load.deadline - time.perf_counter() + 60)


def _summary(name: str, times: Sequence[float]) -> dict[str, float]:
    return {f"{name}_p50": median(times), f"{name}_p99": percentile(times, 99)} if times else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--shape", choices=tuple(MODELS), default="body")
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--ramp", type=float, default=0.0, help="seconds over which connections are opened")
    parser.add_argument("--context-tokens", type=int, default=4000)
    parser.add_argument("--repeat", action="store_true", help="send the same request every time")
    parser.add_argument("--header", action="append", default=[], help="'name: value', of every request")
    given = parser.parse_args()
    start = time.perf_counter()
    request = Request(given.shape, given.context_tokens, given.header)
    first = 0 if given.repeat else time.time_ns() // 10_000 % 10**9
    load = Load(request, given.shape, start + given.seconds, first, 0 if given.repeat else 1)
    uvloop.run(run(given.port, given.concurrency, load, given.ramp))
    result = {
        "requests": load.sent,
        "verified": load.verified,
        "failures": len(load.failures),
        "first_failure": load.failures[0] if load.failures else None,
        "seconds": time.perf_counter() - start,
        **_summary("first", load.first_ms),
        **_summary("whole", load.whole_ms),
        **_summary("event", load.event_ms),
        "stalled": load.stalled,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
