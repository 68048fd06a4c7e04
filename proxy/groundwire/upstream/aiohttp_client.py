"""Send requests to model servers with aiohttp, whose session pools the connections."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx
from yarl import URL

from groundwire.caches import memo
from groundwire.errors import system_message
from groundwire.upstream.http import ErrorMapper, Timeouts, prime
from groundwire.wire import Chunks, Headers, Reply

if TYPE_CHECKING:
    from aiohttp.connector import Connection

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
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts, map_error: ErrorMapper
    ) -> Reply:
        """Send one request; see `HttpClient`. An idempotent one is sent again when a pooled connection is closed.

        Header values that are not UTF-8 are sent as UTF-8.
        """
        with _mapped(map_error):
            _read_timeout.set(timeouts.read)
            response = await self._opened().request(
                method,
                self._url(url),
                headers=[(name.decode("latin-1"), _text(value)) for name, value in headers],
                data=_payload(body),
                timeout=_client_timeout(timeouts),
                allow_redirects=False,
            )
        return Reply(response.status, response.raw_headers, await prime(_chunks(response, map_error)))

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
                _check_interim(head.code, interim)
                if interim == 1 and (timeout := _read_timeout.get()) is not None:
                    limit.reschedule(asyncio.get_running_loop().time() + timeout)
            return head, content

        async with asyncio.timeout(None) as limit:
            protocol.read = read_head
            try:
                return await super().start(connection)
            finally:
                del protocol.read


def _check_interim(code: int, count: int) -> None:
    """Raise ClientPayloadError for a switch of protocols, which no request asks for, and for too many responses."""
    if code == _SWITCHING_PROTOCOLS:
        raise aiohttp.ClientPayloadError("the server switched protocols without being asked to")
    if count > _MAX_INTERIM:
        raise aiohttp.ClientPayloadError(f"over {_MAX_INTERIM} interim responses (1xx) and no answer")


async def _chunks(response: aiohttp.ClientResponse, map_error: ErrorMapper) -> Chunks:
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


def _payload(body: bytes) -> bytes | BytesIO | None:
    """Return a body in the type that aiohttp sends best: it writes a stream in parts."""
    return body or None if len(body) <= _MAX_DIRECT else BytesIO(body)


@lru_cache(maxsize=64)
def _client_timeout(timeouts: Timeouts) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=timeouts.connect, sock_read=timeouts.read)


def to_httpx(error: BaseException) -> httpx.TransportError:
    """Convert one of aiohttp's errors to the corresponding error of httpx."""
    for kind, httpx_error in _HTTPX_ERRORS:
        if isinstance(error, kind):
            return httpx_error(_words(error) or type(error).__name__)
    return httpx.ReadError(str(error) or type(error).__name__)


def _words(error: BaseException) -> str:
    """Return the text of an error; of a failed connection the system's words alone."""
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        return system_message(error)
    return str(error)


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
