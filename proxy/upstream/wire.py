"""What carries a request to a model server and its answer back, whichever HTTP library does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import httpx

from proxy.types import Chunks, Headers, Reply

Meaning = Callable[[httpx.TransportError], Exception]
"""What is to be raised where httpx would raise this error."""


class Timeouts(NamedTuple):
    """How long (seconds) until a connection is there, and until something comes over it; None: for ever."""

    connect: float | None
    read: float | None


@runtime_checkable
class Wire(Protocol):
    """Sends requests as they are: no byte of URL, headers or body is changed, and only Host and lengths are added."""

    async def exchange(
        self, method: str, url: str, headers: Headers, body: bytes, timeouts: Timeouts, meaning: Meaning
    ) -> Reply:
        """The reply, its headers as they came and its body in chunks. Closing the chunks, read or not, ends the call.

        Raises what `meaning` makes of the error when there is no reply; so do the chunks of one that breaks off.
        """

    async def aclose(self) -> None:
        """Closes its connections."""


def wire_over(transport: httpx.AsyncBaseTransport) -> Wire:
    """The wire that a transport of httpx's is, where it is one, and otherwise one that is made of it."""
    return transport if isinstance(transport, Wire) else HttpxWire(transport)


async def begun(chunks: Chunks) -> Chunks:
    """Chunks whose generator has been taken past its first one, which is empty: from then on closing it ends the call.

    A generator that is closed before its first step does nothing, not even what stands in its `finally`; and a client
    may leave between the head of a reply and its body.
    """
    await anext(chunks)
    return chunks


class HttpxWire:
    """A wire over any transport of httpx's, such as one that a test or an embedding program brings."""

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
        """Closes the transport."""
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
    """A URL whose path and query httpx does not rewrite."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return httpx.URL(f"{scheme}://{host}").copy_with(raw_path=(slash + path).encode("ascii"))
