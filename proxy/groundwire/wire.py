"""HTTP requests to upstreams and responses to clients, as frozen values."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterable
from dataclasses import dataclass

Header = tuple[bytes, bytes]
Headers = tuple[Header, ...]
Chunks = AsyncGenerator[bytes, None]


def header(headers: Headers, name: bytes) -> bytes | None:
    """Return the first value of a header, by its lower-case name."""
    return next((value for found, value in headers if found == name), None)


def without(headers: Iterable[Header], names: Collection[bytes]) -> Headers:
    """Return the headers that have none of these lower-case names."""
    return tuple(pair for pair in headers if pair[0] not in names)


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request to an upstream. `target` is path and query below `/v1`, as the client wrote them.

    A `native` call uses Ollama's own API, below the root of the server. `tenant` owns everything stored about the call;
    it is "" if clients have no keys, or share all data. `address` is that of the client, "" if unknown.
    """

    method: str
    target: str
    headers: Headers
    body: bytes
    native: bool = False
    tenant: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP response to the client: a complete body, or chunks still to come.

    `in_events` means that every chunk ends at the end of a server-sent event, so that a comment may be inserted between
    two.
    """

    status: int
    headers: Headers
    body: bytes | Chunks
    in_events: bool = False
