"""httpx's transport interface over aiohttp, which serves a proxy at a third of the cost of httpx's own.

It differs from the httpx-aiohttp package in three things that a transparent proxy cannot do without: the path and query
go out as they came in (yarl would rewrite `%2F` and `{}`), no header is added that the client did not send, and a
refused connection is told apart from a timeout.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import httpx
from multidict import CIMultiDict
from yarl import URL

_NO_DEFAULTS = ("Accept", "Accept-Encoding", "User-Agent", "Content-Type")


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Sends requests through one aiohttp session, which is opened on first use and shared by all of them.

    Raises httpx's ConnectError, ConnectTimeout, ReadTimeout, RemoteProtocolError and ReadError. Redirects are never
    followed, bodies never decompressed, cookies never kept.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends one request whose content has been read; the response's body is still to come."""
        timeout = request.extensions.get("timeout", {})
        try:
            response = await self._opened().request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=_headers(request),
                data=request.content or None,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=timeout.get("connect"), sock_read=timeout.get("read")
                ),
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise translated(error) from error
        return httpx.Response(response.status, headers=response.raw_headers, stream=_Body(response), request=request)

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


class _Body(httpx.AsyncByteStream):
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise translated(error) from error

    async def aclose(self) -> None:
        # A response that was read whole has given its connection back; any other's connection is cut, which tells
        # the model server to stop.
        self._response.close()


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


def _headers(request: httpx.Request) -> CIMultiDict[str]:
    return CIMultiDict((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw)
