"""A model server for the tests, on plain asyncio streams so that it can misbehave at the level of bytes.

It runs in a separate thread on a free port of 127.0.0.1. A test sets its answer as `reply`, either a `Reply` or a
function from the request to one, and reads the requests that arrived in `exchanges`. A reply's body is a sequence of
steps: bytes are written unchanged (one HTTP chunk and one packet each), the other steps pause, wait or break off. The
builders at the end of the file make answers in the shapes of OpenAI, Ollama and vLLM.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import re
import struct
import threading
import time
import zlib
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit

Headers = tuple[tuple[str, str], ...]
Framing = Literal["length", "chunked", "close"]
Shape = Literal["openai", "ollama", "vllm"]
LONGEST_WAIT_S = 60.0


# --- replies, steps and exchanges -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pause:
    """Write nothing for a while."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Write nothing until the test sets the event; a test that never does breaks the connection after 60 s."""

    event: threading.Event


@dataclass(frozen=True, slots=True)
class Stall:
    """Write nothing more and keep the connection open, until the client leaves."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Close the connection here, without the end that the framing promised; `reset` does it with a TCP reset."""

    reset: bool = False


Step = bytes | Pause | Wait | Stall | Cut


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP answer: `before` runs before the head is written, `body` after it."""

    body: tuple[Step, ...] = ()
    status: int = 200
    headers: Headers = (("content-type", "application/json"),)
    framing: Framing = "length"
    before: tuple[Step, ...] = ()

    def with_headers(self, *pairs: tuple[str, str]) -> Reply:
        """The same reply with more headers; one of the same name as an old one takes its place."""
        named = {name.lower() for name, _ in pairs}
        return replace(self, headers=(*(pair for pair in self.headers if pair[0].lower() not in named), *pairs))


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it arrived: the target as it was written, headers in their order, the body's bytes."""

    method: str
    target: str
    headers: Headers
    body: bytes

    @property
    def path(self) -> str:
        """The target without its query, still percent-encoded."""
        return urlsplit(self.target).path

    @property
    def query(self) -> str:
        """The query as it was written."""
        return urlsplit(self.target).query

    def header(self, name: str) -> str | None:
        """The first value of a header."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


@dataclass(slots=True)
class Exchange:
    """A request and how its answer ended: `done` when all was written, `left` when the client went away before that."""

    received: Received
    done: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)


# --- the server -------------------------------------------------------------------------------------------------------


class Upstream:
    """The server; `with Upstream() as upstream:` starts and stops it."""

    def __init__(self) -> None:
        self.reply: Reply | Callable[[Received], Reply] = well_behaved
        self.exchanges: list[Exchange] = []
        self.port = 0
        self.listen_on = 0  # any free port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="upstream", daemon=True)

    def __enter__(self) -> Upstream:
        self._thread.start()
        self.port = self._call(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=60)
        self._loop.close()

    @property
    def base_url(self) -> str:
        """The base URL for an SDK or the proxy's config."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> list[Received]:
        """The requests so far, oldest first."""
        return [exchange.received for exchange in self.exchanges]

    @property
    def last(self) -> Received:
        """The newest request."""
        return self.exchanges[-1].received

    def reset(self) -> None:
        """Restore the default reply and forget the exchanges."""
        self.reply, self.exchanges = well_behaved, []

    def wait_for_requests(self, count: int, timeout: float = 60.0) -> None:
        """Return when so many requests have arrived; fail after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while len(self.exchanges) < count:
            if time.monotonic() > deadline:
                raise AssertionError(f"{len(self.exchanges)} of {count} requests arrived in {timeout} s")
            time.sleep(0.005)

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=60)

    async def _listen(self) -> int:
        self._server = await self._loop.create_server(self._protocol, "127.0.0.1", self.listen_on)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _close(self) -> None:
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _protocol(self) -> asyncio.Protocol:
        return _Watching(self._serve, self._loop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gone: asyncio.Event) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            while await self._serve_one(reader, writer, gone):
                pass
        writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gone: asyncio.Event) -> bool:
        received = await _read_request(reader)
        exchange = Exchange(received)
        reply = self.reply if isinstance(self.reply, Reply) else self.reply(received)
        self.exchanges.append(exchange)
        writing = asyncio.ensure_future(_write(reply, writer))
        leaving = asyncio.ensure_future(gone.wait())
        try:
            await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                exchange.done.set()
                return writing.result()
            exchange.left.set()
            return False
        finally:
            leaving.cancel()
            writing.cancel()
            await asyncio.gather(writing, leaving, return_exceptions=True)


class _Watching(asyncio.StreamReaderProtocol):
    """A stream protocol that reports at once when the client goes away, even while nobody reads."""

    def __init__(self, serve: Callable[..., Coroutine[Any, Any, None]], loop: asyncio.AbstractEventLoop) -> None:
        self._gone = asyncio.Event()
        reader = asyncio.StreamReader(limit=1 << 24, loop=loop)
        super().__init__(reader, lambda r, w: serve(r, w, self._gone), loop=loop)

    def eof_received(self) -> bool | None:
        self._gone.set()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        super().connection_lost(exc)


async def _read_request(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = tuple((name, value.strip()) for name, _, value in (line.partition(":") for line in lines))
    values = {name.lower(): value for name, value in headers}
    if values.get("transfer-encoding", "").lower() == "chunked":
        body = await _read_chunks(reader)
    else:
        body = await reader.readexactly(int(values.get("content-length", "0")))
    return Received(method, target, headers, body)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()
    return body


async def _write(reply: Reply, writer: asyncio.StreamWriter) -> bool:
    """Write a reply; true when the connection can serve another request."""
    if not await _take(reply.before, writer, chunked=False):
        return False
    headers = [*reply.headers, *_framing_headers(reply)]
    head = f"HTTP/1.1 {reply.status} Said\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers) + "\r\n"
    writer.write(head.encode("latin-1"))
    await writer.drain()
    if not await _take(reply.body, writer, chunked=reply.framing == "chunked"):
        return False
    if reply.framing == "chunked":
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return reply.framing != "close"


def _framing_headers(reply: Reply) -> Headers:
    if reply.framing == "chunked":
        return (("transfer-encoding", "chunked"),)
    if reply.framing == "close":
        return (("connection", "close"),)
    return (("content-length", str(sum(len(step) for step in reply.body if isinstance(step, bytes)))),)


async def _take(steps: Iterable[Step], writer: asyncio.StreamWriter, *, chunked: bool) -> bool:
    """Do one step after another; false when one of them broke the connection."""
    for step in steps:
        match step:
            case bytes():
                writer.write(b"%x\r\n%b\r\n" % (len(step), step) if chunked else step)
                await writer.drain()
                await asyncio.sleep(0)
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Wait(event):
                if not await _is_set(event):
                    writer.transport.abort()
                    return False
            case Stall():
                await asyncio.Event().wait()
            case Cut(reset):
                _ = writer.transport.abort() if reset else writer.close()
                return False
    return True


async def _is_set(event: threading.Event) -> bool:
    deadline = time.monotonic() + LONGEST_WAIT_S
    while not event.is_set() and time.monotonic() < deadline:  # noqa: ASYNC110  (another thread sets it)
        await asyncio.sleep(0.001)
    return event.is_set()


# --- replies ----------------------------------------------------------------------------------------------------------

DONE = b"data: [DONE]\n\n"
EVENT_STREAM: Headers = (("content-type", "text/event-stream; charset=utf-8"),)


def well_behaved(received: Received) -> Reply:
    """Return the default answer of a model server for a path; a request to an unknown path is echoed as JSON."""
    path = received.path.partition("/v1")[2]
    if received.method == "GET" and path == "/models":
        return body_reply(as_json({"object": "list", "data": [_model("gpt-4o-mini"), _model("llama3.2")]}))
    if received.method == "GET" and path.startswith("/models/"):
        return body_reply(as_json(_model(path.removeprefix("/models/"))))
    if received.method != "POST" or path not in ("/chat/completions", "/completions", "/embeddings"):
        return echo(received)
    asked = received.json()
    if path == "/embeddings":
        return body_reply(_embeddings(asked))
    answers = ("The sky is blue.", "Grass is green, as a rule.")[: asked.get("n") or 1]
    if path == "/completions":
        return completion_reply(answers, stream=bool(asked.get("stream")))
    if asked.get("stream"):
        return stream_reply(
            chat_events(*answers, include_usage=bool((asked.get("stream_options") or {}).get("include_usage")))
        )
    return body_reply(chat_body(*answers))


def echo(received: Received) -> Reply:
    """The request itself, as JSON."""
    return body_reply(
        as_json(
            {
                "object": "echo",
                "method": received.method,
                "path": received.path,
                "query": received.query,
                "headers": received.headers,
                "body": base64.b64encode(received.body).decode(),
            }
        )
    )


def body_reply(body: bytes, *, status: int = 200, headers: Headers = ()) -> Reply:
    """A whole JSON body with its length."""
    return Reply((body,), status).with_headers(*headers)


def stream_reply(events: Sequence[Step]) -> Reply:
    """Server-sent events, one HTTP chunk each."""
    return Reply(tuple(events), headers=EVENT_STREAM, framing="chunked")


def error_reply(status: int, message: str, *, type: str, code: str | None = None, param: str | None = None) -> Reply:
    """An error as OpenAI writes it."""
    return body_reply(
        as_json({"error": {"message": message, "type": type, "param": param, "code": code}}, indent=2), status=status
    )


def completion_reply(answers: Sequence[str], *, stream: bool) -> Reply:
    """An answer in the older completions dialect."""
    common = {"id": "cmpl-1", "object": "text_completion", "created": 1764000000, "model": "gpt-3.5-turbo-instruct"}
    if not stream:
        choices = [
            {"text": text, "index": i, "logprobs": None, "finish_reason": "stop"} for i, text in enumerate(answers)
        ]
        return body_reply(as_json(common | {"choices": choices, "usage": _usage()}))
    events = [
        as_event(common | {"choices": [{"text": piece, "index": i, "logprobs": None, "finish_reason": reason}]})
        for i, text in enumerate(answers)
        for piece, reason in [*((piece, None) for piece in pieces(text)), ("", "stop")]
    ]
    return stream_reply([*events, DONE])


# --- bytes ------------------------------------------------------------------------------------------------------------


def as_json(value: object, *, indent: int | None = None) -> bytes:
    """JSON as the servers write it: not escaped, compact, or indented and ended by a line break as OpenAI does."""
    if indent is not None:
        return json.dumps(value, ensure_ascii=False, indent=indent).encode() + b"\n"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def as_event(value: object) -> bytes:
    """One server-sent event."""
    return b"data: " + as_json(value) + b"\n\n"


def byte_by_byte(data: bytes) -> tuple[bytes, ...]:
    """The same bytes, each in a separate packet, so that every character of several bytes is split."""
    return tuple(data[i : i + 1] for i in range(len(data)))


def lock_step(events: Sequence[bytes]) -> tuple[tuple[Step, ...], tuple[threading.Event, ...]]:
    """Steps that write each event only once the one before it was received, and the receipts the test has to set."""
    receipts = tuple(threading.Event() for _ in events)
    steps = [step for event, receipt in zip(events, receipts, strict=True) for step in (event, Wait(receipt))]
    return tuple(steps), receipts


def gzip_reply(reply: Reply) -> Reply:
    """The same reply compressed, each step flushed, so that a stream stays a stream."""
    if reply.framing == "length":
        whole = b"".join(step for step in reply.body if isinstance(step, bytes))
        return replace(reply, body=(gzip.compress(whole, mtime=0),)).with_headers(("content-encoding", "gzip"))
    packer = zlib.compressobj(wbits=31)
    body = [
        packer.compress(step) + packer.flush(zlib.Z_SYNC_FLUSH) if isinstance(step, bytes) else step
        for step in reply.body
    ]
    return replace(reply, body=(*body, packer.flush())).with_headers(("content-encoding", "gzip"))


# --- answers in the shapes of OpenAI, Ollama and vLLM -----------------------------------------------------------------


def chat_body(
    *answers: str,
    shape: Shape = "openai",
    finish_reason: str = "stop",
    message: Mapping[str, object] | None = None,
    logprobs: bool = False,
) -> bytes:
    """A whole chat completion, one choice per answer; `message` adds to (or overrides) each message's fields."""
    choices = [
        _choice_of(shape, index, text, finish_reason, message or {}, logprobs) for index, text in enumerate(answers)
    ]
    value = _common(shape, "chat.completion") | {"choices": choices, "usage": _usage(shape)} | _AFTER[shape]
    if shape == "ollama":
        return as_json(value) + b"\n"
    return as_json(value, indent=2 if shape == "openai" else None)


def chat_events(
    *answers: str,
    shape: Shape = "openai",
    include_usage: bool = False,
    done: bool = True,
    logprobs: bool = False,
) -> tuple[bytes, ...]:
    """The same answers as a stream; the choices take turns, so a short one finishes while a longer one goes on."""
    turns: list[list[tuple[int, dict[str, object], str | None]]] = []
    for index, text in enumerate(answers):
        deltas: list[dict[str, object]] = [_delta(shape, piece, first=i == 0) for i, piece in enumerate(pieces(text))]
        turns.append([*((index, delta, None) for delta in _opening(shape) + deltas), (index, _closing(shape), "stop")])
    ordered = [turn[i] for i in range(max(map(len, turns))) for turn in turns if i < len(turn)]
    return delta_events(ordered, shape=shape, include_usage=include_usage, done=done, logprobs=logprobs)


def delta_events(
    deltas: Sequence[tuple[int, Mapping[str, object], str | None]],
    *,
    shape: Shape = "openai",
    include_usage: bool = False,
    done: bool = True,
    logprobs: bool = False,
) -> tuple[bytes, ...]:
    """A chat stream of `(choice index, delta, finish_reason)`, with the usage event and `[DONE]` when asked for."""
    common = _common(shape, "chat.completion.chunk")
    usage_so_far = {"usage": None} if include_usage and shape == "openai" else {}
    events = []
    for index, delta, reason in deltas:
        choice = {"index": index, "delta": dict(delta), "logprobs": None, "finish_reason": reason}
        if logprobs and delta.get("content"):
            choice["logprobs"] = _logprobs(str(delta["content"]))
        if shape == "vllm":
            choice |= {"stop_reason": None, "token_ids": None}
        events.append(as_event(common | {"choices": [choice]} | usage_so_far | _obfuscation(shape)))
    if include_usage:
        events.append(as_event(common | {"choices": [], "usage": _usage(shape)}))
    return (*events, DONE) if done else tuple(events)


def tool_call_message(
    name: str = "get_weather", arguments: str = '{"city": "Oslo", "unit": "°C"}'
) -> dict[str, object]:
    """The message of an answer that calls a tool."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"content": None, "tool_calls": [call]}


def tool_call_events(
    name: str = "get_weather", arguments: str = '{"city": "Oslo", "unit": "°C"}', *, include_usage: bool = False
) -> tuple[bytes, ...]:
    """The same call as a stream: the name first, then its arguments in pieces."""
    opening = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": ""}}
    deltas: list[tuple[int, dict[str, object], str | None]] = [
        (0, {"role": "assistant", "content": None, "tool_calls": [opening]}, None)
    ]
    deltas += [
        (0, {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}, None) for piece in pieces(arguments)
    ]
    return delta_events([*deltas, (0, {}, "tool_calls")], include_usage=include_usage)


def pieces(text: str) -> list[str]:
    """A text cut as a model would: words with the space before them."""
    return re.findall(r"\s*\S+|\s+$", text)


def _common(shape: Shape, kind: str) -> dict[str, object]:
    by_shape: dict[Shape, dict[str, object]] = {
        "openai": {"id": "chatcmpl-BxQ1", "model": "gpt-4o-mini-2024-07-18", "service_tier": "default"}
        | {"system_fingerprint": "fp_34a54ae93c"},
        "ollama": {"id": "chatcmpl-497", "model": "llama3.2", "system_fingerprint": "fp_ollama"},
        "vllm": {"id": "chatcmpl-7f3c", "model": "meta-llama/Llama-3.1-8B-Instruct"},
    }
    return {"object": kind, "created": 1764000000} | by_shape[shape]


_AFTER: dict[Shape, dict[str, object]] = {
    "openai": {},
    "ollama": {},
    "vllm": {"prompt_logprobs": None, "prompt_token_ids": None, "kv_transfer_params": None},
}


def _choice_of(
    shape: Shape, index: int, text: str, reason: str, extra: Mapping[str, object], logprobs: bool
) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": text}
    if shape == "openai":
        message |= {"refusal": None, "annotations": []}
    if shape == "vllm":
        message |= {"refusal": None, "tool_calls": [], "reasoning_content": None}
    choice: dict[str, object] = {"index": index, "message": message | dict(extra), "finish_reason": reason}
    if shape != "ollama":
        choice["logprobs"] = _logprobs(text) if logprobs else None
    if shape == "vllm":
        choice |= {"stop_reason": None, "token_ids": None}
    return choice


def _opening(shape: Shape) -> list[dict[str, object]]:
    if shape == "ollama":
        return []
    return [{"role": "assistant", "content": ""} | ({"refusal": None} if shape == "openai" else {})]


def _delta(shape: Shape, piece: str, *, first: bool) -> dict[str, object]:
    if shape == "ollama":
        return {"role": "assistant", "content": piece}
    return {"content": piece} | ({"reasoning_content": None} if shape == "vllm" and first else {})


def _closing(shape: Shape) -> dict[str, object]:
    closings: dict[Shape, dict[str, object]] = {
        "openai": {},
        "ollama": {"role": "assistant", "content": ""},
        "vllm": {"content": ""},
    }
    return closings[shape]


def _logprobs(text: str) -> dict[str, object]:
    tokens = [
        {"token": piece, "logprob": -0.25, "bytes": list(piece.encode()), "top_logprobs": []} for piece in pieces(text)
    ]
    return {"content": tokens, "refusal": None}


def _obfuscation(shape: Shape) -> dict[str, object]:
    return {"obfuscation": "aZ3"} if shape == "openai" else {}


def _usage(shape: Shape = "openai") -> dict[str, object]:
    usage: dict[str, object] = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
    if shape == "openai":
        usage["prompt_tokens_details"] = {"cached_tokens": 0, "audio_tokens": 0}
    return usage


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 1764000000, "owned_by": "upstream"}


def _embeddings(asked: Mapping[str, Any]) -> bytes:
    texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
    vectors = [[0.25, -0.5, len(text) / 64] for text in texts]
    encoded = [
        base64.b64encode(struct.pack("<3f", *vector)).decode() if asked.get("encoding_format") == "base64" else vector
        for vector in vectors
    ]
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(encoded)]
    usage = {"prompt_tokens": 4, "total_tokens": 4}
    return as_json({"object": "list", "data": data, "model": asked["model"], "usage": usage}, indent=2)
