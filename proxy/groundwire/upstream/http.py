"""The interface of an HTTP client for model servers, and the client over a transport of httpx."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import httpx

from groundwire.wire import Chunks, Headers, Reply

ErrorMapper = Callable[[httpx.TransportError], Exception]
"""Return the exception to raise for an error of httpx."""


class Timeouts(NamedTuple):
    """The time limits (seconds) of connecting and of reading; None: unlimited."""

    connect: float | None
    read: float | None


class HttpClient(Protocol):
    """Sends requests unchanged: only Host and lengths are added to the bytes of URL, headers and body."""

    async def send(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts, map_error: ErrorMapper
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
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts, map_error: ErrorMapper
    ) -> Reply:
        """Send one request; see `HttpClient`."""
        connect, read = timeouts
        extensions = {"timeout": {"connect": connect, "read": read, "write": read, "pool": read}}
        request = httpx.Request(
            method, _verbatim(url), headers=list(headers), content=body or None, extensions=extensions
        )
        try:
            response = await self._transport.handle_async_request(request)
        except httpx.TransportError as error:
            raise map_error(error) from error
        return Reply(response.status_code, tuple(response.headers.raw), await prime(_chunks(response, map_error)))

    async def aclose(self) -> None:
        """Close the transport."""
        await self._transport.aclose()


async def _chunks(response: httpx.Response, map_error: ErrorMapper) -> Chunks:
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
