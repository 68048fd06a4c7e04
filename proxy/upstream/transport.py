"""HTTP to model servers through aiohttp, which serves a proxy at a fraction of the cost of httpx's own.

Calls go to aiohttp directly. Whoever wants httpx's transport interface has that too, at twice the cost: building its
URLs, headers, requests and responses costs as much as aiohttp's whole work.

It differs from the httpx-aiohttp package in three things that a transparent proxy cannot do without: the path and query
go out as they came in (yarl would rewrite `%2F` and `{}`), no header is added that the client did not send, and a
refused connection is told apart from a timeout.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from functools import lru_cache
from types import TracebackType

import aiohttp
import httpx
from multidict import CIMultiDict
from yarl import URL

from proxy.types import Chunks, Headers, Reply
from proxy.upstream.wire import Meaning, Timeouts

_FAILURES = (aiohttp.ClientError, TimeoutError, OSError)
_NO_DEFAULTS = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Sends requests through one aiohttp session, which is opened on first use and shared by all of them.

    Raises httpx's ConnectError, ConnectTimeout, ReadTimeout, RemoteProtocolError and ReadError. Redirects are never
    followed, bodies never decompressed, cookies never kept.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def exchange(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts, meaning: Meaning
    ) -> Reply:
        """Sends one request; see `Wire`."""
        try:
            response = await self._opened().request(
                method,
                URL(url, encoded=True),
                headers=CIMultiDict((name.decode("latin-1"), _text(value)) for name, value in headers),
                data=body or None,
                allow_redirects=False,
                timeout=_limits(timeouts),
            )
        except _FAILURES as error:
            raise meaning(translated(error)) from error
        return Reply(response.status, response.raw_headers, _Body(response, meaning))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends one request whose content has been read; the response's body is still to come."""
        limits = request.extensions.get("timeout", {})
        timeouts = Timeouts(limits.get("connect"), limits.get("read"))
        headers, url = tuple(request.headers.raw), str(request.url)
        reply = await self.exchange(request.method, url, headers, request.content, timeouts, lambda error: error)
        assert not isinstance(reply.body, bytes)  # noqa: S101 - see `exchange`
        return httpx.Response(reply.status, headers=list(reply.headers), stream=_Stream(reply.body), request=request)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=_NO_DEFAULTS,
                max_line_size=65536,
                max_field_size=65536,
            )
        return self._session

    async def aclose(self) -> None:
        """Closes all connections."""
        if self._session is not None:
            await self._session.close()


class _Body(AsyncGenerator[bytes, None]):
    """The rest of a response. No generator: one that is closed before its first step does nothing, not even close.

    A response that was read whole has given its connection back; any other's connection is cut, which tells the model
    server to stop.
    """

    def __init__(self, response: aiohttp.ClientResponse, meaning: Meaning) -> None:
        self._response = response
        self._meaning = meaning

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._response.content.readany()
        except BaseException as error:
            self._response.close()
            if isinstance(error, _FAILURES):
                raise self._meaning(translated(error)) from error
            raise
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        """Ends the call, if it has not ended by itself."""
        self._response.close()

    async def asend(self, _: None) -> bytes:
        """The next chunk."""
        return await self.__anext__()

    async def athrow(
        self,
        error: BaseException | type[BaseException],
        value: object = None,
        traceback: TracebackType | None = None,
        /,
    ) -> bytes:
        """Ends the call, and raises the error."""
        self._response.close()
        raise error


class _Stream(httpx.AsyncByteStream):
    """Chunks as httpx's responses hold them."""

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
    """One of aiohttp's errors as the httpx error that says what happened."""
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
    (aiohttp.InvalidURL, httpx.UnsupportedProtocol),
)


def _text(value: bytes) -> str:
    """The value of a header as aiohttp is given it, which writes UTF-8: what is UTF-8 keeps its bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
