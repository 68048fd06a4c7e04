"""Header rules: forward all end-to-end headers except host, cookie, forwarding and `x-grounding-` headers."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from groundwire.wire import Header, Headers

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
_PER_CONNECTION = frozenset({b"host", b"cookie", b"set-cookie", b"forwarded", b"x-real-ip", b"via", b"expect"})
KEYS = frozenset({b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"})
_DROPPED = _HOP_BY_HOP | _PER_CONNECTION
_NEVER_FORWARDED = _HOP_BY_HOP | {b"host", b"expect"}
_OWN_PREFIX = b"x-grounding-"
_INTERNAL_PREFIXES = (_OWN_PREFIX, b"x-forwarded-")
ANTHROPIC_VERSION: Headers = ((b"anthropic-version", b"2023-06-01"),)
"""The version of Anthropic's API for clients that send none, such as OpenAI's when they list models."""

_BODY_HEADERS = ("content-type", "content-encoding", "content-length")


class AllowList:
    """The names, or globs of names, of forwarded headers. Headers that describe the body are always forwarded.

    No list forwards hop-by-hop headers, `host`, `expect` or `x-grounding-` headers, nor a key if the upstream has one.
    """

    def __init__(self, names: Sequence[str]) -> None:
        globs = (fnmatch.translate(name.lower()) for name in (*names, *_BODY_HEADERS))
        self._names = re.compile("|".join(globs))

    def filter(self, headers: Headers) -> Headers:
        """Return the headers on the list."""
        return tuple(pair for pair in headers if self._names.match(pair[0].decode("latin-1")))


def bearer(key: str) -> Header:
    """Return the header with the key for most servers."""
    return b"authorization", b"Bearer " + key.encode()


def x_api_key(key: str) -> Header:
    """Return the header with the key for Anthropic's server."""
    return b"x-api-key", key.encode()


@dataclass(frozen=True, slots=True)
class HeaderRules:
    """Header rules in both directions. Without allow-lists all end-to-end headers are forwarded.

    `added` headers override the client's, `assumed` ones are sent if the client sends none of that name; `key_header`
    builds a header from the upstream's key.
    """

    request: AllowList | None = None
    response: AllowList | None = None
    added: Headers = ()
    assumed: Headers = ()
    key_header: Callable[[str], Header] = bearer

    def outgoing(self, headers: Headers, key: str | None) -> Headers:
        """Return the headers to send to the upstream; with a `key` the client's keys are removed."""
        passed = request_headers(headers, self.key_header(key) if key else None, self.request)
        if not self.added and not self.assumed:
            return passed
        added = {name for name, _ in self.added}
        forwarded = tuple(pair for pair in passed if pair[0] not in added)
        missing = tuple(pair for pair in self.assumed if header(passed, pair[0]) is None and pair[0] not in added)
        return (*forwarded, *missing, *self.added)

    def incoming(self, headers: Headers) -> Headers:
        """Return the headers to send to the client."""
        return response_headers(headers, self.response)


def request_headers(headers: Headers, key: Header | None, allowed: AllowList | None = None) -> Headers:
    """Filter the headers of a request; with a `key` the client's keys are removed.

    Names must be lower case. `content-length` is left out: the HTTP client counts the body that it sends.
    """
    options = _connection_options(headers)
    hidden = KEYS if key else frozenset()
    dropped, internal = (_DROPPED, _INTERNAL_PREFIXES) if allowed is None else (_NEVER_FORWARDED, _OWN_PREFIX)
    forwarded = tuple(
        (name, value)
        for name, value in headers
        if not (
            name in dropped
            or name in options
            or name in hidden
            or name == b"content-length"
            or name.startswith(internal)
        )
    )
    forwarded = forwarded if allowed is None else allowed.filter(forwarded)
    return (*forwarded, key) if key else forwarded


def without_keys(headers: Headers) -> Headers:
    """Return request headers without the client's keys, for an upstream that they are not meant for."""
    return tuple(pair for pair in headers if pair[0] not in KEYS)


def response_headers(headers: Headers, allowed: AllowList | None = None) -> Headers:
    """Filter the headers of a reply, with names in lower case."""
    lowered = tuple((name.lower(), value) for name, value in headers)
    options = _connection_options(lowered)
    dropped = _DROPPED if allowed is None else _NEVER_FORWARDED
    forwarded = tuple(
        (name, value)
        for name, value in lowered
        if not (name in dropped or name in options or name.startswith(_OWN_PREFIX))
    )
    return forwarded if allowed is None else allowed.filter(forwarded)


def header(headers: Headers, name: bytes) -> bytes | None:
    """Return the first value of a header, by its lower-case name."""
    return next((value for found, value in headers if found == name), None)


def _connection_options(headers: Headers) -> frozenset[bytes]:
    """Return the headers that `Connection` declares hop-by-hop (RFC 9110, section 7.6.1)."""
    values = [value for name, value in headers if name == b"connection"]
    return (
        frozenset(token.strip().lower() for value in values for token in value.split(b",")) if values else _NO_OPTIONS
    )


_NO_OPTIONS: frozenset[bytes] = frozenset()
