"""A model server that misbehaves in the way named by a request's model. For `bench.attack` only.

`echo` answers with the last message. `GET /seen` reports as JSON all that should never have reached a model server:
targets outside `/v1/`, methods that are never forwarded, and the marks that smuggled requests and trailers carry.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import uvloop

MARK = "x-smuggled"
ANSWER = "Revenue was $5 million in 2023. The board resigned."
_MB = 2**20
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"transfer-encoding: *chunked", re.IGNORECASE)
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"


def body(text: str) -> bytes:
    """Return the JSON of a chat completion."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps(
        {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    ).encode()


def response(data: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    """Return a whole response."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n{headers}\r\n"
    return head.encode() + data


def event(text: str | None) -> bytes:
    """Return one event of a stream, in a chunk; None finishes the answer."""
    choice = {"index": 0, "delta": {} if text is None else {"content": text}, "finish_reason": None if text else "stop"}
    return chunk(
        b"data: " + json.dumps({"id": "x", "object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"
    )


def chunk(data: bytes) -> bytes:
    """Return data as one chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


@cache
def bomb(size_mb: int, is_stream: bool) -> bytes:
    """Return a response whose compressed body is `size_mb` MiB when decompressed."""
    opening = (
        b'data: {"choices":[{"index":0,"delta":{"content":"' if is_stream else b'{"choices":[{"message":{"content":"'
    )
    closing = b'"}}]}\n\ndata: [DONE]\n\n' if is_stream else b'"},"index":0,"finish_reason":"stop"}]}'
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(opening)
    for _ in range(size_mb):
        packed += packer.compress(b"a" * _MB)
    packed += packer.compress(closing) + packer.flush()
    whole = response(packed, headers="content-encoding: gzip\r\n")
    return whole.replace(b"application/json", b"text/event-stream", 1) if is_stream else whole


async def repeat(data: bytes, pause: float) -> AsyncIterator[bytes]:
    """Yield the same bytes for ever."""
    while True:
        yield data
        await asyncio.sleep(pause)


async def drip(data: bytes) -> AsyncIterator[bytes]:
    """Yield a response in small pieces."""
    for at in range(0, len(data), 16):
        yield data[at : at + 16]
        await asyncio.sleep(0.02)


_DEEP = b'{"choices":[{"index":0,"message":{"content":"Five.","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}]}"
_MANY = json.dumps(
    {"choices": [{"index": at, "message": {"content": f"It was {at}."}} for at in range(20_000)]}
).encode()
_ODD = json.dumps({"id": 5, "choices": [None, 5, {"index": "a", "message": {"content": [1, {"type": 5}]}}]}).encode()

REPLIES: Mapping[str, bytes] = {
    "reset": b"",
    "cut-body": b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999\r\n\r\n" + body(ANSWER),
    "cut-stream": _STREAM_HEAD + event("Revenue was $5 million."),
    "bad-chunk": _STREAM_HEAD + b"zz\r\nfoo\r\n",
    "two-lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n" + body(ANSWER),
    "switch": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nhello",
    "redirect": b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n",
    "big-head": response(body(ANSWER), headers="x-big: " + "a" * 200_000 + "\r\n"),
    "not-json": response(b'{"choices":[{"message":{"content":"Revenue'),
    "odd": response(_ODD),
    "deep": response(_DEEP),
    "many-choices": response(_MANY),
    "bad-gzip": response(b"\x1f\x8bgarbage", headers="content-encoding: gzip\r\n"),
    "gzip-twice": response(gzip.compress(gzip.compress(body(ANSWER))), headers="content-encoding: gzip, gzip\r\n"),
    "limited": response(b'{"error":{"message":"slow"}}', "429 Too Many", "retry-after: 7\r\n"),
}
ENDLESS: Mapping[str, Callable[[], AsyncIterator[bytes]]] = {
    "interim": lambda: repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.001),
    "head": lambda: repeat(b"x-head: " + b"a" * 1000 + b"\r\n", 0.001),
    "flood": lambda: repeat(event(ANSWER * 50), 0.001),
    "drip": lambda: drip(response(body(ANSWER))),
}
OPENINGS = {"head": b"HTTP/1.1 200 OK\r\n", "flood": _STREAM_HEAD}
LEFT_OPEN = ("interim", "head", "flood", "silent")
"""The kinds that never end by themselves."""


class Misbehaving:
    """Serve connections, and count all that should never arrive."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        with suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, RuntimeError):
            while await self._answer(reader, writer):
                await writer.drain()
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        data = await _body(reader, head)
        if head.startswith(b"GET /seen "):
            writer.write(response(json.dumps(self.seen).encode()))
            return True
        self._note(head)
        request = _json(data)
        model = str(request.get("model", ""))
        if model.startswith("bomb-"):
            _, size, shape = model.split("-")
            writer.write(bomb(int(size), shape == "stream"))
        elif model in ENDLESS:
            writer.write(OPENINGS.get(model, b""))
            async for piece in ENDLESS[model]():
                writer.write(piece)
                await writer.drain()
        elif model == "silent":
            await reader.read(1)
            return False
        elif model in REPLIES:
            writer.write(REPLIES[model])
            return model not in ("reset", "cut-body", "cut-stream", "bad-chunk", "two-lengths", "switch")
        else:
            writer.write(_well_behaved(_answer_of(request), bool(request.get("stream"))))
        return True

    def _note(self, head: bytes) -> None:
        method, target, _ = head.partition(b"\r\n")[0].decode("latin-1").split(" ", 2)
        self.seen["requests"] += 1
        if not target.startswith("/v1/") or ".." in target or "%2e%2e" in target.lower():
            self.seen[f"outside base_url: {target[:60]}"] += 1
        if method in ("TRACE", "CONNECT"):
            self.seen[f"method {method}"] += 1
        if MARK.encode() in head.lower():
            self.seen["smuggled"] += 1


def _well_behaved(text: str, is_stream: bool) -> bytes:
    if not is_stream:
        return response(body(text))
    step = max(1, len(text) // 100)
    events = [event(text[at : at + step]) for at in range(0, len(text), step)]
    return b"".join([_STREAM_HEAD, *events, event(None), chunk(b"data: [DONE]\n\n"), _END])


def _answer_of(request: Mapping[str, Any]) -> str:
    if request.get("model") != "echo":
        return ANSWER
    messages = request.get("messages")
    last = messages[-1].get("content") if isinstance(messages, list) and messages else None
    return last if isinstance(last, str) else ANSWER


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    if not _CHUNKED.search(head):
        length = _LENGTH.search(head)
        return await reader.readexactly(int(length[1])) if length else b""
    data = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        data += await reader.readexactly(size)
        await reader.readuntil(b"\r\n")
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    return bytes(data)


def _json(data: bytes) -> dict[str, Any]:
    """Return the object that a body holds; of a large one only its model, which is all that is needed."""
    if len(data) > _MB:
        model = re.search(rb'"model": ?"([^"]*)"', data[:200])
        return {"model": model[1].decode()} if model else {}
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


async def serve(port: int) -> None:
    """Serve on the loopback interface until the process is ended."""
    connection: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] = Misbehaving().serve
    server = await asyncio.start_server(connection, "127.0.0.1", port, limit=2**26, backlog=512)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
