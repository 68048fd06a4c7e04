"""Which headers pass: all end-to-end ones, but no hop-by-hop, host, cookie, forwarding or `x-grounding-` header."""

from __future__ import annotations

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


def request_headers(headers: Headers, key: str | None) -> Headers:
    """What an upstream gets to see of a request's headers; with a `key` of its own it never sees the client's.

    Names must be lower case. `content-length` is left out: the HTTP client counts the body that it sends.
    """
    named = _named_in_connection(headers)
    hidden = _KEYS if key else frozenset()
    kept = tuple(
        (name, value)
        for name, value in headers
        if not (name in _DROPPED or name in named or name in hidden or name == b"content-length" or _is_internal(name))
    )
    return (*kept, (b"authorization", b"Bearer " + key.encode())) if key else kept


def response_headers(headers: Headers) -> Headers:
    """What a client gets to see of an upstream's headers, their names in lower case."""
    lowered = tuple((name.lower(), value) for name, value in headers)
    named = _named_in_connection(lowered)
    return tuple(
        (name, value)
        for name, value in lowered
        if not (name in _DROPPED or name in named or name.startswith(b"x-grounding-"))
    )


def header(headers: Headers, name: bytes) -> bytes | None:
    """The first value of a header, by its lower-case name."""
    return next((value for found, value in headers if found == name), None)


def _is_internal(name: bytes) -> bool:
    return name.startswith((b"x-grounding-", b"x-forwarded-"))


def _named_in_connection(headers: Headers) -> frozenset[bytes]:
    """The headers that `Connection` declares hop-by-hop (RFC 9110, section 7.6.1)."""
    return frozenset(
        token.strip().lower() for name, value in headers if name == b"connection" for token in value.split(b",")
    )
