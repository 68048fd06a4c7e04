"""The clients of the edge tests: the official SDK, and one on a plain socket that hides nothing.

The latter records every byte, in order, and whether the answer ended as HTTP requires.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import openai
from pydantic import BaseModel

from tests.edge.upstream import Received, Upstream

Pairs = Sequence[tuple[str, str]]
PATIENCE_S = 60.0


def sdk(base_url: str, **options: Any) -> openai.OpenAI:
    """Create the official SDK as an application would, with its retries disabled."""
    return openai.OpenAI(**({"base_url": base_url, "api_key": "sk-test", "max_retries": 0, "timeout": 30} | options))


def async_sdk(base_url: str) -> openai.AsyncOpenAI:
    """Create its async twin."""
    return openai.AsyncOpenAI(base_url=base_url, api_key="sk-test", max_retries=0, timeout=60)


@dataclass(slots=True)
class RawClient:
    """One connection, one request. `body` grows as bytes arrive; `ended` is true once the body is complete."""

    port: int
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    ended: bool = False
    _body: bytearray = field(default_factory=bytearray)
    _unread: bytearray = field(default_factory=bytearray)
    _chunked: bool = False
    _length: int | None = None
    _socket: socket.socket | None = None

    @property
    def body(self) -> bytes:
        """Return the part of the body received so far."""
        return bytes(self._body)

    def __enter__(self) -> RawClient:
        self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.leave()

    def leave(self) -> None:
        """Close the connection in any state."""
        if self._socket is not None:
            self._socket.close()

    def send(self, method: str, target: str, headers: Pairs = (), body: bytes = b"") -> None:
        """Write the request just as given, with `host` and `content-length` and nothing else added."""
        lines = [f"{method} {target} HTTP/1.1", f"host: 127.0.0.1:{self.port}"]
        lines += [f"{name}: {value}" for name, value in headers]
        if body or method == "POST":
            lines.append(f"content-length: {len(body)}")
        self.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    def write(self, data: bytes) -> None:
        """Write bytes."""
        assert self._socket is not None
        self._socket.sendall(data)

    def read_head(self) -> None:
        """Read status and headers."""
        while b"\r\n\r\n" not in self._unread:
            if not self._receive():
                raise ConnectionError(f"the connection ended before the head did: {self._unread!r}")
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split(" ")[1])
        self.headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        self._chunked = (self.header("transfer-encoding") or "").lower() == "chunked"
        length = self.header("content-length")
        self._length = int(length) if length is not None and not self._chunked else None
        self._decode()

    def read_until(self, wanted: bytes) -> None:
        """Read on until the body holds these bytes; fails when it ends without them."""
        while wanted not in self._body:
            if not self.read_some():
                raise AssertionError(f"the body ended without {wanted!r}; its end: {self.body[-400:]!r}")

    def read_to_end(self) -> None:
        """Read until the body ends (`ended` is then true) or the connection breaks."""
        while self.read_some():
            pass

    def read_some(self) -> bool:
        """Read the bytes that have arrived, waiting for at least one; return false when no more will come."""
        if self.ended:
            return False
        try:
            more = self._receive()
        except ConnectionResetError:
            more = False
        if not more:
            self.ended = not self._chunked and self._length is None
            return False
        self._decode()
        return True

    def header(self, name: str) -> str | None:
        """Return the first value of a header."""
        return next((value for key, value in self.headers if key == name), None)

    def json(self) -> Any:
        """Return the body, read as JSON."""
        return json.loads(self.body)

    def _receive(self) -> bool:
        assert self._socket is not None
        data = self._socket.recv(1 << 16)
        self._unread += data
        return bool(data)

    def _decode(self) -> None:
        if not self._chunked:
            self._body += self._unread
            self._unread.clear()
            self.ended = self._length is not None and len(self._body) >= self._length
            return
        while (line_end := self._unread.find(b"\r\n")) >= 0:
            size = int(self._unread[:line_end].split(b";")[0], 16)
            if len(self._unread) < line_end + 2 + size + 2:
                return
            self._body += self._unread[line_end + 2 : line_end + 2 + size]
            del self._unread[: line_end + 2 + size + 2]
            if size == 0:
                self.ended = True
                return


JSON_HEADERS: Pairs = (("content-type", "application/json"), ("authorization", "Bearer sk-test"))


def fetch(port: int, method: str, target: str, headers: Pairs = JSON_HEADERS, body: bytes = b"") -> RawClient:
    """Send one request and read its answer to the end."""
    with RawClient(port) as client:
        client.send(method, target, headers, body)
        client.read_head()
        client.read_to_end()
    return client


def until(holds: Callable[[], object], otherwise: str = "it never held") -> None:
    """Return when it holds; fail when it does not for long, as processes start slowly on a busy machine."""
    deadline = time.monotonic() + 2 * PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.01)


def post_chat(port: int, request: object, *headers: tuple[str, str]) -> RawClient:
    """Ask for a chat completion; `request` is the body's bytes or a value to write as JSON."""
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    return fetch(port, "POST", "/v1/chat/completions", (*JSON_HEADERS, *headers), body)


def events_of(body: bytes) -> list[bytes]:
    """The server-sent events of a body, each with its ending; an unfinished one comes last."""
    return [event for event in re.split(rb"(?<=\n\n)|(?<=\r\n\r\n)", body) if event]


def data_of(event: bytes) -> bytes:
    """Return an event's data, its lines joined as the standard requires."""
    lines = [line.removeprefix(b"data:") for line in event.splitlines() if line.startswith(b"data:")]
    return b"\n".join(line.removeprefix(b" ") for line in lines)


def inserted(original: bytes, received: bytes) -> bytes:
    """Return the one run of bytes inserted into `original` to make `received`; fail when anything else differs."""
    extra = len(received) - len(original)
    assert extra >= 0, f"{-extra} bytes were lost: {original[-300:]!r} became {received[-300:]!r}"
    start = next((i for i, (a, b) in enumerate(zip(original, received, strict=False)) if a != b), len(original))
    assert received[start + extra :] == original[start:], (
        f"more than an insertion at byte {start}: {original[max(0, start - 80) : start + 200]!r} "
        f"became {received[max(0, start - 80) : start + 400]!r}"
    )
    return received[start : start + extra]


def grounding_added(original: bytes, received: bytes) -> dict[str, Any]:
    """Return the `grounding` member added to a body or to one event of a stream, when that is the only change."""
    run = inserted(original, received)
    found = re.fullmatch(rb'\s*,?\s*"grounding"\s*:\s*(\{.*\})\s*', run, re.DOTALL)
    assert found, f"not one grounding member: {run!r}"
    grounding: dict[str, Any] = json.loads(found[1])
    return grounding


NOT_PASSED_ON = {"host", "connection", "content-length", "transfer-encoding", "traceparent", "tracestate"}
HEADERS_THAT_MATTER = ("content-type", "retry-after", "x-request-id", "openai-", "x-ratelimit-", "x-should-retry")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an SDK call: its values as plain data, or its error; and the groundings in the values."""

    values: tuple[Any, ...] = ()
    error: tuple[Any, ...] | None = None
    groundings: tuple[dict[str, Any], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Make the same SDK call to the model server and to the proxy before it."""

    upstream: Upstream
    direct: openai.OpenAI
    client: openai.OpenAI

    def __call__(self, call: Callable[[openai.OpenAI], Any]) -> Outcome:
        """The outcome through the proxy, after checking that the direct one and the request upstream are the same."""
        expected, outcome = outcome_of(call, self.direct), outcome_of(call, self.client)
        assert outcome == expected
        sent, forwarded = self.upstream.requests[-2:]
        assert (forwarded.method, forwarded.target, forwarded.body) == (sent.method, sent.target, sent.body)
        assert end_to_end(forwarded) == end_to_end(sent)
        return outcome


def outcome_of(call: Callable[[openai.OpenAI], Any], client: openai.OpenAI) -> Outcome:
    """Make the call and return its outcome; a stream is read to its end, and values before an error are kept."""
    values: list[Any] = []
    error = None
    try:
        result = call(client)
        results = result if isinstance(result, Iterator | openai.Stream) else [result]
        values.extend(plain(value) for value in results)
    except openai.APIStatusError as exc:
        kept = sorted(pair for pair in exc.response.headers.items() if pair[0].startswith(HEADERS_THAT_MATTER))
        error = (type(exc), exc.status_code, exc.body, exc.code, exc.param, exc.type, str(exc), kept)
    except (openai.OpenAIError, ValueError) as exc:
        error = (type(exc), str(exc))
    groundings = [value.pop("grounding") for value in values if isinstance(value, dict) and "grounding" in value]
    return Outcome(tuple(values), error, tuple(groundings))


def plain(value: Any) -> Any:
    """Return a value of the SDK as plain data."""
    return value.model_dump(warnings=False) if isinstance(value, BaseModel) else value


def end_to_end(request: Received) -> list[tuple[str, str]]:
    """Return the end-to-end headers, sorted; trace headers are the proxy's to write."""
    return sorted((name.lower(), value) for name, value in request.headers if name.lower() not in NOT_PASSED_ON)
