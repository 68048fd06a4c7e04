"""One HTTP exchange: the address and the body of a request, its reply or error, and the client's disconnection.

Written on plain ASGI: Starlette's StreamingResponse would start a task group and a second task for every reply, and
knows neither keep-alive comments nor a limit for bodies.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from groundwire import errors
from groundwire.dialects.dialect import Fault, openai_error
from groundwire.dialects.jsonbytes import dumps
from groundwire.errors import BodyTooLarge, RequestError, TooBusy, TooManyRequests, UpstreamBusy
from groundwire.offload import joined
from groundwire.wire import Call, Chunks, Headers, Reply, without

Network = IPv4Network | IPv6Network


def client_address(scope: Scope) -> str:
    """Return the address of the connection, "" where it has none (a Unix socket)."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def forwarded_address(scope: Scope, trusted: Sequence[Network]) -> str:
    """Return the last address in X-Forwarded-For that is not a trusted proxy's; each proxy appends its client's.

    The header is used only if the connection comes from a trusted proxy, because anybody can write one.
    """
    address = client_address(scope)
    values = (value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"x-forwarded-for")
    for each in reversed([entry for value in values for entry in value.split(",")]):
        proxy, parsed = parse_address(address), parse_address(each)
        if proxy is None or parsed is None or not any(proxy in network for network in trusted):
            break
        address = str(parsed)
    return address


def parse_address(address: str) -> IPv4Address | IPv6Address | None:
    """Parse the address of a connection or one in X-Forwarded-For, with or without a port; None where it is none."""
    bare = address.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        parsed = ip_address(bare.partition("%")[0])
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed


_INVALID = "invalid_request_error"
_UPSTREAM = "upstream_error"

_ANSWERS: tuple[tuple[type[RequestError], int, str, str | None], ...] = (
    (errors.BadRequest, 400, _INVALID, None),
    (errors.BodyTooLarge, 413, _INVALID, "request_too_large"),
    (errors.UnknownModel, 404, _INVALID, "model_not_found"),
    (errors.UnknownReport, 404, _INVALID, "report_not_found"),
    (errors.UnknownReview, 404, _INVALID, "review_not_found"),
    (errors.NotAdmin, 401, _INVALID, "invalid_admin_key"),
    (errors.UnknownKey, 401, _INVALID, "invalid_api_key"),
    (errors.TooManyRequests, 429, "requests", "rate_limit_exceeded"),
    (errors.Leaving, 503, "server_error", "server_leaving"),
    (errors.TooBusy, 503, "server_error", "server_busy"),
    (errors.ReportUnavailable, 503, "server_error", "report_unavailable"),
    (errors.MemoryUnavailable, 503, "server_error", "memory_unavailable"),
    (errors.UpstreamBusy, 429, "requests", "upstream_busy"),
    (errors.UpstreamUnreachable, 502, _UPSTREAM, "upstream_unreachable"),
    (errors.UpstreamTimeout, 504, _UPSTREAM, "upstream_timeout"),
    (errors.UpstreamBroken, 502, _UPSTREAM, "upstream_broken"),
)

JSON: Headers = ((b"content-type", b"application/json"),)


Handler = Callable[[Call, Mapping[str, str]], Awaitable[Reply]]
"""Return the reply to a call; the mapping contains its path parameters."""

ErrorShape = Callable[[Fault], Mapping[str, Any]]
"""Render the body of an error for the clients of a dialect."""


def error_reply(error: RequestError, shape: ErrorShape = openai_error) -> Reply:
    """Return the reply for an error."""
    status, type_, code = next(
        ((status, type_, code) for kind, status, type_, code in _ANSWERS if isinstance(error, kind)),
        (500, "server_error", None),
    )
    headers = error.headers if isinstance(error, (TooBusy, TooManyRequests, UpstreamBusy)) else ()
    return Reply(status, JSON + headers, dumps(shape(Fault(str(error), type_, error.param, code, status))))


TENANT = "groundwire.tenant"
"""The key of an ASGI scope under which the tenant of an authenticated request is found."""

_PING = b":\n"  # a comment with no blank line after it: openai-python takes comment + blank line for an empty event
_LENGTH = (b"content-length",)
_NOT_MODIFIED = 304  # any content-length of a 304 is that of the omitted body, which uvicorn would wait for
_AT_LEAST_S = 0.01  # minimum duration of an exchange before its client is watched


class ClientGone(Exception):
    """The client has disconnected before its reply was sent."""


def declared_length(scope: Scope, max_body: int) -> int:
    """Return the declared length of the body, `max_body` if unknown. Raises BodyTooLarge."""
    headers = dict(scope["headers"])
    if b"transfer-encoding" in headers:
        return max_body
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > max_body:
        raise _too_large(max_body)
    return int(length)


class ReadAhead:
    """Receive the messages of a request, and those first that were read ahead to notice its client's disconnection."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: deque[Message] = deque()

    async def ahead(self) -> Message:
        """Read a message ahead. Of a body in several pieces only the first one is read, and the call never returns."""
        if self._read and self._read[-1].get("more_body", False):
            await asyncio.Event().wait()
        self._read.append(await self._receive())
        return self._read[-1]

    async def __call__(self) -> Message:
        """Return the next message."""
        return self._read.popleft() if self._read else await self._receive()


async def read_call(scope: Scope, receive: Receive, max_body: int) -> Call:
    """Read the request as a call, its target below `/v1`. Raises BodyTooLarge, and ClientGone."""
    headers: Headers = tuple((name.lower(), value) for name, value in scope["headers"])
    body: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        if piece := message.get("body", b""):
            body.append(piece)
            size += len(piece)
        more = message.get("more_body", False)
        if size > max_body:
            raise _too_large(max_body)
    raw, tenant = await joined(body, size), scope.get(TENANT, "")
    return Call(scope["method"], request_target(scope), headers, raw, tenant=tenant, address=client_address(scope))


def request_target(scope: Scope) -> str:
    """Return the path that the request was routed by, and the query as the client wrote it, less the leading `/v1`."""
    path = scope["path"].removeprefix("/v1")
    query = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


@asynccontextmanager
async def cancel_on_disconnect(receive: Receive) -> AsyncIterator[None]:
    """Cancel the enclosed work when the client disconnects, and raise ClientGone.

    `receive` must not be needed for the body: that has been read, or it is the `ahead` of a `ReadAhead`. Work of less
    than `_AT_LEAST_S` is not watched, because the task for that would cost more than it saves.
    """
    running = asyncio.current_task()
    assert running is not None  # noqa: S101 - a coroutine always runs in a task
    gone = False
    watching: asyncio.Task[None] | None = None

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        running.cancel()

    def begin() -> None:
        nonlocal watching
        watching = asyncio.create_task(watch())

    beginning = asyncio.get_running_loop().call_later(_AT_LEAST_S, begin)
    try:
        yield
    except asyncio.CancelledError:
        if gone and running.uncancel() == 0:
            raise ClientGone from None
        raise
    finally:
        beginning.cancel()
        if watching is not None:
            watching.cancel()


async def send_reply(reply: Reply, send: Send, keepalive: float) -> None:
    """Send a reply. A body that breaks off leaves the response unfinished, so that the connection is closed too.

    A stream of events that is silent for `keepalive` seconds gets a comment (0: never).
    """
    if isinstance(reply.body, bytes):
        headers = (*without(reply.headers, _LENGTH), (b"content-length", str(len(reply.body)).encode()))
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})
        return
    async with aclosing(reply.body) as chunks:
        headers = reply.headers
        if reply.status == _NOT_MODIFIED and (b"content-length", b"0") not in headers:
            headers = without(headers, _LENGTH)
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        if reply.in_events and keepalive:
            await _send_events(chunks, send, keepalive)
        else:
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _send_events(chunks: Chunks, send: Send, keepalive: float) -> None:
    loop = asyncio.get_running_loop()
    last, is_between = loop.time(), True  # two lines: a stream that passes unread may come in pieces of any

    async def ping() -> None:
        nonlocal last
        while True:
            await asyncio.sleep(last + keepalive - loop.time())
            if loop.time() - last >= keepalive:
                last = loop.time()
                if is_between:
                    await send({"type": "http.response.body", "body": _PING, "more_body": True})

    pinging = asyncio.create_task(ping())
    try:
        async for chunk in chunks:
            last, is_between = loop.time(), chunk.endswith(b"\n")
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    finally:
        pinging.cancel()
        with suppress(asyncio.CancelledError):
            await pinging


def _too_large(max_body: int) -> RequestError:
    return BodyTooLarge(f"The body of your request is over the limit of {max_body} bytes.")
