"""HTTP clients of model servers: the interface, one over aiohttp, one over transports of httpx, and their errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from io import BytesIO
from typing import TYPE_CHECKING, Any, Protocol

import aiohttp
import httpx
from aiohttp import ClientTimeout
from yarl import URL

from groundwire.caches import memo
from groundwire.config import without_passwords
from groundwire.errors import (
    RequestError,
    UpstreamBroken,
    UpstreamConnectTimeout,
    UpstreamTimeout,
    UpstreamUnreachable,
    system_message,
)
from groundwire.wire import Chunks, Headers, Reply

if TYPE_CHECKING:
    from aiohttp.connector import Connection

ErrorMapper = Callable[[httpx.TransportError], Exception]
"""Return the exception to raise for an error of httpx."""


class HttpClient(Protocol):
    """Sends requests unchanged: only Host and lengths are added to the bytes of URL, headers and body.

    Of the time limits, `sock_connect` and `sock_read` count.
    """

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: ClientTimeout, map_error: ErrorMapper
    ) -> Reply:
        """Return the reply, its headers unchanged and its body in chunks. Closing the chunks, read or not, ends the
        request.

        Raises the error that `map_error` returns when there is no reply; so do the chunks of one that breaks off.
        """

    async def aclose(self) -> None:
        """Close its connections."""


async def prime(chunks: Chunks) -> Chunks:
    """Advance a generator of chunks past its first, empty one, so that closing it ends the request.

    A generator that is closed before its first step does nothing, not even its `finally`; and a client may disconnect
    between the head of a reply and its body.
    """
    await anext(chunks)
    return chunks


class HttpxClient:
    """Sends requests over any transport of httpx, such as one of a test or an embedding program."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: ClientTimeout, map_error: ErrorMapper
    ) -> Reply:
        """Send one request; see `HttpClient`."""
        connect, read = timeouts.sock_connect, timeouts.sock_read
        extensions = {"timeout": {"connect": connect, "read": read, "write": read, "pool": read}}
        request = httpx.Request(
            method, _verbatim(url), headers=list(headers), content=body or None, extensions=extensions
        )
        try:
            response = await self._transport.handle_async_request(request)
        except httpx.TransportError as error:
            raise map_error(error) from error
        return Reply(response.status_code, tuple(response.headers.raw), await prime(_httpx_chunks(response, map_error)))

    async def aclose(self) -> None:
        """Close the transport."""
        await self._transport.aclose()


async def _httpx_chunks(response: httpx.Response, map_error: ErrorMapper) -> Chunks:
    assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101 - what every async transport returns
    try:
        yield b""
        async for chunk in response.stream:
            yield chunk
    except httpx.TransportError as error:
        raise map_error(error) from error
    finally:
        await response.stream.aclose()


def _verbatim(url: str) -> httpx.URL:
    """Return a URL whose path and query httpx does not rewrite."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return httpx.URL(f"{scheme}://{host}").copy_with(raw_path=(slash + path).encode("ascii"))


_FAILURES = (aiohttp.ClientError, TimeoutError, OSError)
_MAX_LINE = 65536
_MAX_DIRECT = 2**20  # bytes of a body that is written at once
_MAX_INTERIM = 100  # maximum number of 1xx responses before the answer
_SWITCHING_PROTOCOLS = 101
_AUTOMATIC_HEADERS = ("accept", "accept-encoding", "content-type", "user-agent")
_read_timeout: ContextVar[float | None] = ContextVar("read_timeout", default=None)


class AiohttpClient:
    """Sends requests over pooled connections, opened on demand and shared by all users.

    Redirects are not followed, bodies not decompressed, cookies not stored, and proxies of the environment not used.
    Used from one event loop.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._url = memo(256, 1024)(_url)

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: ClientTimeout, map_error: ErrorMapper
    ) -> Reply:
        """Send one request; see `HttpClient`. An idempotent one is sent again when a pooled connection is closed.

        Header values that are not UTF-8 are sent as UTF-8.
        """
        with _mapped(map_error):
            _read_timeout.set(timeouts.sock_read)
            response = await self._opened().request(
                method,
                self._url(url),
                headers=[(name.decode("latin-1"), _text(value)) for name, value in headers],
                data=body or None if len(body) <= _MAX_DIRECT else BytesIO(body),  # aiohttp writes a stream in parts
                timeout=timeouts,
                allow_redirects=False,
            )
        return Reply(response.status, response.raw_headers, await prime(_aiohttp_chunks(response, map_error)))

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=_AUTOMATIC_HEADERS,
                response_class=_Response,
                auto_decompress=False,
                max_line_size=_MAX_LINE,
                max_field_size=_MAX_LINE,
            )
        elif self._session.closed:
            raise aiohttp.ClientConnectionError("the client is closed")
        return self._session

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


class _Response(aiohttp.ClientResponse):
    """A response that follows at most `_MAX_INTERIM` interim ones (1xx), within the read timeout after the first.

    aiohttp skips any number of interim responses, each of which restarts its read timeout. It has no public way to
    limit them, so this wraps the method that reads the head of a response.
    """

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Read the head of the response. Raises ClientPayloadError, or TimeoutError."""
        protocol: Any = connection.protocol
        read, interim = protocol.read, 0

        async def read_head() -> Any:
            nonlocal interim
            head, content = await read()
            if 100 <= head.code < 200:
                interim += 1
                if head.code == _SWITCHING_PROTOCOLS:  # for which no request asks
                    raise aiohttp.ClientPayloadError("the server switched protocols without being asked to")
                if interim > _MAX_INTERIM:
                    raise aiohttp.ClientPayloadError(f"over {_MAX_INTERIM} interim responses (1xx) and no answer")
                if interim == 1 and (timeout := _read_timeout.get()) is not None:
                    limit.reschedule(asyncio.get_running_loop().time() + timeout)
            return head, content

        async with asyncio.timeout(None) as limit:
            protocol.read = read_head
            try:
                return await super().start(connection)
            finally:
                del protocol.read


async def _aiohttp_chunks(response: aiohttp.ClientResponse, map_error: ErrorMapper) -> Chunks:
    """Yield the body as it arrives, after an empty first chunk.

    A response that was read completely has returned its connection to the pool; any other's connection is closed, which
    stops the model server.
    """
    try:
        yield b""
        with _mapped(map_error):
            while chunk := await response.content.readany():
                yield chunk
    finally:
        response.close()


@contextmanager
def _mapped(map_error: ErrorMapper) -> Iterator[None]:
    """Raise the mapped error for one of aiohttp's."""
    try:
        yield
    except _FAILURES as error:
        raise map_error(to_httpx(error)) from error
    except ValueError as error:  # a control character in a header
        raise map_error(httpx.LocalProtocolError(str(error))) from error


def _url(url: str) -> URL:
    """Parse a URL without changing its encoding. Credentials in it are not sent."""
    return URL(url, encoded=True).with_user(None)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def to_httpx(error: BaseException) -> httpx.TransportError:
    """Convert one of aiohttp's errors to that of httpx; of a failed connection the text is the system's words alone."""
    kind = next((found for known, found in _HTTPX_ERRORS if isinstance(error, known)), httpx.ReadError)
    words = str(error)
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        words = system_message(error)
    return kind(words or type(error).__name__)


_HTTPX_ERRORS: tuple[tuple[type[BaseException], type[httpx.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (aiohttp.ServerTimeoutError, httpx.ReadTimeout),
    (TimeoutError, httpx.ReadTimeout),
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.ClientPayloadError, httpx.RemoteProtocolError),
    (aiohttp.ServerDisconnectedError, httpx.RemoteProtocolError),
    (aiohttp.ClientResponseError, httpx.RemoteProtocolError),
    (aiohttp.InvalidURL, httpx.UnsupportedProtocol),
)


_ERRORS: tuple[tuple[type[httpx.TransportError], type[RequestError], str], ...] = (
    (httpx.ConnectTimeout, UpstreamConnectTimeout, "upstream '{}' did not accept a connection in time"),
    (httpx.ConnectError, UpstreamUnreachable, "upstream '{}' cannot be reached"),
    (httpx.TimeoutException, UpstreamTimeout, "upstream '{}' did not answer in time"),
    (httpx.UnsupportedProtocol, UpstreamUnreachable, "upstream '{}' cannot be reached"),
    (httpx.TransportError, UpstreamBroken, "the connection to upstream '{}' broke"),
)


def upstream_error(error: httpx.TransportError, name: str, address: str) -> RequestError:
    """Return the error for the upstream called `name`; only the operator's text contains its address.

    Connection errors are described in words. Any other error is described by its class, because its text may quote the
    answer and the query of the request.
    """
    cause = error.__cause__
    words = (
        str(error) if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else type(cause or error).__name__
    )
    operator = f"upstream {name!r} at {without_passwords(address)}: {type(error).__name__}: {words}"
    kind, text = next((kind, text) for httpx_kind, kind, text in _ERRORS if isinstance(error, httpx_kind))
    return kind(text.format(name), operator=operator)
