"""Which headers pass: all end-to-end ones, but no hop-by-hop, host, cookie, forwarding or `x-grounding-` header."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass

from proxy.types import Headers

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_ONE_LEG = frozenset({b"host", b"cookie", b"set-cookie", b"forwarded", b"x-real-ip", b"via", b"expect"})
_KEYS = frozenset({b"authorization", b"x-api-key", b"api-key"})
_DROPPED = _HOP_BY_HOP | _ONE_LEG
_NEVER = _HOP_BY_HOP | {b"host", b"expect"}
_OURS = b"x-grounding-"
_INTERNAL = (_OURS, b"x-forwarded-")
_OF_THE_BODY = ("content-type", "content-encoding", "content-length")


class AllowList:
    """The only headers that pass: names, or globs of them. Those that say what a body is always do.

    No list lets hop-by-hop headers pass, nor `host` and `expect`, nor ours, nor a key where the upstream has its own.
    """

    def __init__(self, names: Sequence[str]) -> None:
        globs = (fnmatch.translate(name.lower()) for name in (*names, *_OF_THE_BODY))
        self._names = re.compile("|".join(globs))

    def of(self, headers: Headers) -> Headers:
        """Those of `headers` that are on it."""
        return tuple(pair for pair in headers if self._names.match(pair[0].decode("latin-1")))


@dataclass(frozen=True, slots=True)
class HeaderRules:
    """What passes to an upstream and back. Without allow-lists all end-to-end headers do.

    `added` goes with every request and takes the place of what the client sent under those names.
    """

    request: AllowList | None = None
    response: AllowList | None = None
    added: Headers = ()

    def outgoing(self, headers: Headers, key: str | None) -> Headers:
        """What the upstream gets to see of a request's headers; with a `key` of its own it never sees the client's."""
        passed = request_headers(headers, key, self.request)
        if not self.added:
            return passed
        ours = {name for name, _ in self.added}
        return (*(pair for pair in passed if pair[0] not in ours), *self.added)

    def incoming(self, headers: Headers) -> Headers:
        """What a client gets to see of the upstream's headers."""
        return response_headers(headers, self.response)


def request_headers(headers: Headers, key: str | None, allowed: AllowList | None = None) -> Headers:
    """What an upstream gets to see of a request's headers; with a `key` of its own it never sees the client's.

    Names must be lower case. `content-length` is left out: the HTTP client counts the body that it sends.
    """
    named = _named_in_connection(headers)
    hidden = _KEYS if key else frozenset()
    dropped, internal = (_DROPPED, _INTERNAL) if allowed is None else (_NEVER, _OURS)
    kept = tuple(
        (name, value)
        for name, value in headers
        if not (
            name in dropped or name in named or name in hidden or name == b"content-length" or name.startswith(internal)
        )
    )
    kept = kept if allowed is None else allowed.of(kept)
    return (*kept, (b"authorization", b"Bearer " + key.encode())) if key else kept


def without_keys(headers: Headers) -> Headers:
    """Request headers without the client's keys, for an upstream that they are not meant for."""
    return tuple(pair for pair in headers if pair[0] not in _KEYS)


def response_headers(headers: Headers, allowed: AllowList | None = None) -> Headers:
    """What a client gets to see of an upstream's headers, their names in lower case."""
    lowered = tuple((name.lower(), value) for name, value in headers)
    named = _named_in_connection(lowered)
    dropped = _DROPPED if allowed is None else _NEVER
    kept = tuple(
        (name, value) for name, value in lowered if not (name in dropped or name in named or name.startswith(_OURS))
    )
    return kept if allowed is None else allowed.of(kept)


def header(headers: Headers, name: bytes) -> bytes | None:
    """The first value of a header, by its lower-case name."""
    return next((value for found, value in headers if found == name), None)


def _named_in_connection(headers: Headers) -> frozenset[bytes]:
    """The headers that `Connection` declares hop-by-hop (RFC 9110, section 7.6.1)."""
    return frozenset(
        token.strip().lower() for name, value in headers if name == b"connection" for token in value.split(b",")
    )
