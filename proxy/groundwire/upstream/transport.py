"""HTTP to model servers through aiohttp's connections and parser, at a fraction of the cost of httpx's.

Other features of aiohttp's session are not used: they cost more than all the rest of forwarding a body, and a
transparent proxy does not need them (cookies, redirects, compression, default headers, rewriting of URLs such as `%2F`
and `{}`). A request is sent with its original bytes. It also implements httpx's transport interface, at a higher cost.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from functools import lru_cache
from types import TracebackType
from typing import NamedTuple

import aiohttp
import httpx
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError
from aiohttp.streams import StreamReader
from yarl import URL

from groundwire.memo import memo
from groundwire.upstream.http import Meaning, Timeouts
from groundwire.wire import Chunks, Headers, Reply

_FAILURES = (aiohttp.ClientError, HttpProcessingError, TimeoutError, OSError)
_MOST_OF_A_LINE = 65536
_MAX_JOINED = 2**16  # bytes of a body written together with the head
_WITHOUT_LENGTH = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
_MAX_INTERIM = 100  # maximum number of 1xx responses before the answer
_SWITCHING_PROTOCOLS = 101
_UNSENDABLE = re.compile(rb"[\r\n\0]")


class _Address(NamedTuple):
    """The destination of a request: the connection key of aiohttp, and the request target and host header."""

    connecting: aiohttp.ClientRequest
    target: bytes
    host: bytes


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Sends requests over pooled connections, opened on demand and shared by all users.

    Raises httpx's ConnectError, ConnectTimeout, ReadTimeout, RemoteProtocolError and ReadError. Redirects are never
    followed, bodies never decompressed, cookies never stored.
    """

    def __init__(self) -> None:
        self._connector: aiohttp.TCPConnector | None = None
        self._address = memo(256, 1024)(_address)

    async def exchange(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts, meaning: Meaning
    ) -> Reply:
        """Send one request; see `Wire`. An idempotent one is sent again when a pooled connection turns out closed."""
        try:
            address = self._address(url)
            request = _written(method, address, headers, body)
            rest = b"" if len(body) <= _MAX_JOINED else body
            try:
                return await self._sent(method, address, request, rest, timeouts, meaning)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                if method not in _REPEATABLE or isinstance(error, aiohttp.ClientConnectorError):
                    raise
                return await self._sent(method, address, request, rest, timeouts, meaning)
        except _FAILURES as error:
            raise meaning(translated(error)) from error
        except httpx.TransportError as error:
            raise meaning(error) from error

    async def _sent(
        self, method: str, address: _Address, request: bytes, rest: bytes, timeouts: Timeouts, meaning: Meaning
    ) -> Reply:
        try:
            connection = await self._opened().connect(address.connecting, [], _limits(timeouts))
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(str(error)) from error
        try:
            protocol = connection.protocol
            if protocol is None or protocol.transport is None:
                raise aiohttp.ServerDisconnectedError
            protocol.set_response_params(
                skip_payload=method == "HEAD",
                read_until_eof=True,
                auto_decompress=False,
                read_timeout=timeouts.read,
                max_line_size=_MOST_OF_A_LINE,
                max_field_size=_MOST_OF_A_LINE,
            )
            protocol.transport.write(request)
            if rest:
                protocol.transport.write(rest)
            protocol.start_timeout()
            return await _answer(connection, protocol, timeouts.read, meaning)
        except BaseException:
            connection.close()
            raise

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request whose content has been read; the response's body is streamed."""
        limits = request.extensions.get("timeout", {})
        timeouts = Timeouts(limits.get("connect"), limits.get("read"))
        headers, url = tuple(request.headers.raw), str(request.url)
        reply = await self.exchange(request.method, url, headers, request.content, timeouts, lambda error: error)
        assert not isinstance(reply.body, bytes)  # noqa: S101 - see `exchange`
        return httpx.Response(reply.status, headers=list(reply.headers), stream=_Stream(reply.body), request=request)

    def _opened(self) -> aiohttp.TCPConnector:
        if self._connector is None:
            self._connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
        return self._connector

    async def aclose(self) -> None:
        """Close all connections."""
        if self._connector is not None:
            await self._connector.close()


def _address(url: str) -> _Address:
    parsed = URL(url, encoded=True)
    connecting = aiohttp.ClientRequest("GET", parsed, loop=asyncio.get_running_loop())
    host = parsed.host_port_subcomponent or ""
    return _Address(connecting, parsed.raw_path_qs.encode("ascii"), host.encode("ascii"))


def _written(method: str, address: _Address, headers: Headers, body: bytes) -> bytes:
    """Return the bytes of a request, without a body that is too long to copy.

    Raises httpx's LocalProtocolError for a header with a line break.
    """
    lines = [b"%s %s HTTP/1.1" % (method.encode("ascii"), address.target), b"host: " + address.host]
    lines += [b"%s: %s" % pair for pair in headers]
    if body or method not in _WITHOUT_LENGTH:
        lines.append(b"content-length: %d" % len(body))
    if any(map(_UNSENDABLE.search, lines)):
        raise httpx.LocalProtocolError("a header holds a line break")
    return b"\r\n".join((*lines, b"", body if len(body) <= _MAX_JOINED else b""))


async def _answer(connection: Connection, protocol: ResponseHandler, within: float | None, meaning: Meaning) -> Reply:
    """Return the answer on a connection, skipping interim responses (1xx).

    It has to follow the first of these `within` seconds, after 100 of them at most. Raises httpx's RemoteProtocolError
    for a switch of protocols, which no request asks for.
    """
    async with asyncio.timeout(None) as limit:
        for interim in range(_MAX_INTERIM + 1):
            head, content = await protocol.read()
            if head.code == _SWITCHING_PROTOCOLS:
                raise httpx.RemoteProtocolError("the server switched protocols without being asked to")
            if not 100 <= head.code < 200:
                return Reply(head.code, head.raw_headers, _Body(connection, content, meaning))
            if not interim and within is not None:
                limit.reschedule(asyncio.get_running_loop().time() + within)
    raise httpx.RemoteProtocolError(f"over {_MAX_INTERIM} interim responses (1xx) and no answer")


class _Body(AsyncGenerator[bytes, None]):
    """The rest of a response. Not a generator: one that is closed before its first step does nothing, not even close.

    A response that was read completely has returned its connection; any other's connection is closed, which stops the
    model server.
    """

    def __init__(self, connection: Connection, content: StreamReader, meaning: Meaning) -> None:
        self._connection = connection
        self._content = content
        self._meaning = meaning
        content.on_eof(self._come)

    def _come(self) -> None:
        """Release the connection at the end of the body, or close it if the request has not been sent completely."""
        transport = self._connection.transport
        if transport is not None and transport.get_write_buffer_size():
            self._connection.close()
        else:
            self._connection.release()

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._content.readany()
        except BaseException as error:
            self._connection.close()
            if isinstance(error, _FAILURES):
                raise self._meaning(translated(error)) from error
            raise
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """End the call, if it has not ended by itself."""
        self._connection.close()

    async def asend(self, _: None) -> bytes:
        """Return the next chunk."""
        return await self.__anext__()

    async def athrow(
        self,
        error: BaseException | type[BaseException],
        value: object = None,
        traceback: TracebackType | None = None,
        /,
    ) -> bytes:
        """End the call, and raise the error."""
        self._connection.close()
        raise error


class _Stream(httpx.AsyncByteStream):
    """Adapt chunks to httpx's responses."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        await self._chunks.aclose()


@lru_cache(maxsize=64)
def _limits(timeouts: Timeouts) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=timeouts.connect, sock_read=timeouts.read)


def translated(error: BaseException) -> httpx.TransportError:
    """Convert one of aiohttp's errors to the corresponding httpx error."""
    for kind, meaning in _MEANINGS:
        if isinstance(error, kind):
            return meaning(str(error) or type(error).__name__)
    return httpx.ReadError(str(error) or type(error).__name__)


_MEANINGS: tuple[tuple[type[BaseException], type[httpx.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (aiohttp.ServerTimeoutError, httpx.ReadTimeout),
    (TimeoutError, httpx.ReadTimeout),
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.ClientPayloadError, httpx.RemoteProtocolError),
    (aiohttp.ServerDisconnectedError, httpx.RemoteProtocolError),
    (aiohttp.ClientResponseError, httpx.RemoteProtocolError),
    (HttpProcessingError, httpx.RemoteProtocolError),
    (aiohttp.InvalidURL, httpx.UnsupportedProtocol),
)
