"""A lightweight model server: OpenAI's format, the answer always the same, its bytes made beforehand.

`POST /v1/chat/completions` gives a body, or a stream when the request has `"stream":true`: all events at once, or one
every so many milliseconds when the model is called "bench-paced-MILLISECONDS". `GET /served` gives the number of
completions begun, by which a benchmark knows that a proxy in front of it has forwarded every one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections.abc import Iterator
from typing import cast

import uvloop

from bench.texts import answer

EVENTS = 200
_ANSWER = answer(seed=1)  # to the request that bench.client sends

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_STREAM = re.compile(rb'"stream": *true')
_PACE = re.compile(rb'"model": *"bench-paced-(\d+)"')
_END = b"0\r\n\r\n"
_UNSTAMPED = "fp_" + "0" * 16


def _body() -> bytes:
    message = {"role": "assistant", "content": _ANSWER, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    usage = {"prompt_tokens": 4000, "completion_tokens": 280, "total_tokens": 4280}
    return json.dumps({**_head("chat.completion"), "choices": [choice], "usage": usage}).encode()


def _head(kind: str) -> dict[str, object]:
    return {"id": "chatcmpl-bench-1", "object": kind, "created": 1_700_000_000, "model": "bench-model"}


def _events() -> Iterator[bytes]:
    """Yield `EVENTS` content events that carry the answer, the one that finishes it, and the end of the stream."""
    for number in range(EVENTS):
        text = _ANSWER[len(_ANSWER) * number // EVENTS : len(_ANSWER) * (number + 1) // EVENTS]
        yield _event({"content": text} if number else {"role": "assistant", "content": text}, None)
    yield _event({}, "stop")
    yield b"data: [DONE]\n\n"


def _event(delta: dict[str, str], finish_reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    chunk = {**_head("chat.completion.chunk"), "system_fingerprint": _UNSTAMPED, "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _response(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


_BODY = _response(_body())
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_CHUNKS = [_chunk(event) for event in _events()]
_WHOLE_STREAM = _STREAM_HEAD + b"".join(_CHUNKS) + _END


class Served:
    """The number of completions begun."""

    count = 0


class ModelServer(asyncio.Protocol):
    """One connection, which may carry many requests, one after the other."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._received = bytearray()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(b"\r\n\r\n")
        if head < 0:
            return
        length = _LENGTH.search(self._received, 0, head)
        end = head + 4 + (int(length[1]) if length else 0)
        if len(self._received) >= end:
            self._answer(bytes(self._received[:end]))
            del self._received[:end]

    def _answer(self, request: bytes) -> None:
        if not request.startswith(b"POST"):
            self._write(_response(str(self._served.count).encode()))
            return
        self._served.count += 1
        if not _STREAM.search(request):
            self._write(_BODY)
        elif pace := _PACE.search(request):
            self._write(_STREAM_HEAD)
            self._next(0, int(pace[1]) / 1000)
        else:
            self._write(_WHOLE_STREAM)

    def _next(self, at: int, pace: float) -> None:
        if at == len(_CHUNKS):
            self._write(_END)
            return
        stamp = f"fp_{time.monotonic_ns() // 1000:016d}"
        self._write(_CHUNKS[at].replace(_UNSTAMPED.encode(), stamp.encode()))
        asyncio.get_running_loop().call_later(pace, self._next, at + 1, pace)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


async def serve(port: int) -> None:
    """Serve on the loopback interface until the process is ended."""
    served = Served()
    server = await asyncio.get_running_loop().create_server(lambda: ModelServer(served), "127.0.0.1", port, backlog=512)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
