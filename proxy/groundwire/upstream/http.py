"""The interface for HTTP to model servers, independent of the library."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import httpx

from groundwire.wire import Chunks, Headers, Reply

Meaning = Callable[[httpx.TransportError], Exception]
"""Convert httpx's error to the one to raise."""


class Timeouts(NamedTuple):
    """The time limits (seconds) of connecting and of reading; None: unlimited."""

    connect: float | None
    read: float | None


@runtime_checkable
class Wire(Protocol):
    """Sends requests unchanged: only Host and lengths are added to the bytes of URL, headers and body."""

    async def exchange(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts, meaning: Meaning
    ) -> Reply:
        """Return the reply, its headers unchanged and its body in chunks. Closing the chunks, read or not, ends the
        call.

        Raises the error that `meaning` returns when there is no reply; so do the chunks of one that breaks off.
        """

    async def aclose(self) -> None:
        """Close its connections."""


def wire_over(transport: httpx.AsyncBaseTransport) -> Wire:
    """Return the transport itself if it is a `Wire`, otherwise an adapter."""
    return transport if isinstance(transport, Wire) else HttpxWire(transport)


async def begun(chunks: Chunks) -> Chunks:
    """Advance a generator of chunks past its first, empty one, so that closing it ends the call.

    A generator that is closed before its first step does nothing, not even its `finally`; and a client may disconnect
    between the head of a reply and its body.
    """
    await anext(chunks)
    return chunks


class HttpxWire:
    """Adapts any transport of httpx, such as one of a test or an embedding program."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def exchange(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts, meaning: Meaning
    ) -> Reply:
        """See `Wire`."""
        connect, read = timeouts
        extensions = {"timeout": {"connect": connect, "read": read, "write": read, "pool": read}}
        request = httpx.Request(
            method, _verbatim(url), headers=list(headers), content=body or None, extensions=extensions
        )
        try:
            response = await self._transport.handle_async_request(request)
        except httpx.TransportError as error:
            raise meaning(error) from error
        return Reply(response.status_code, tuple(response.headers.raw), await begun(_chunks(response, meaning)))

    async def aclose(self) -> None:
        """Close the transport."""
        await self._transport.aclose()


async def _chunks(response: httpx.Response, meaning: Meaning) -> Chunks:
    assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101 - what every async transport returns
    try:
        yield b""
        async for chunk in response.stream:
            yield chunk
    except httpx.TransportError as error:
        raise meaning(error) from error
    finally:
        await response.stream.aclose()


def _verbatim(url: str) -> httpx.URL:
    """Return a URL whose path and query httpx does not rewrite."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return httpx.URL(f"{scheme}://{host}").copy_with(raw_path=(slash + path).encode("ascii"))
