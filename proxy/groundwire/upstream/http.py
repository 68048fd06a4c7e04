"""HTTP for model servers: rules for headers and paths, the interface of a client, and its errors."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from urllib.parse import unquote

import httpx

from groundwire.config import without_passwords
from groundwire.errors import RequestError, UpstreamBroken, UpstreamConnectTimeout, UpstreamTimeout, UpstreamUnreachable
from groundwire.wire import Chunks, Header, Headers, Reply, header

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


def _connection_options(headers: Headers) -> frozenset[bytes]:
    """Return the headers that `Connection` declares hop-by-hop (RFC 9110, section 7.6.1)."""
    values = [value for name, value in headers if name == b"connection"]
    return frozenset(token.strip().lower() for value in values for token in value.split(b","))


_NEEDLESS = re.compile("%(?:2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff])")  # letters, digits and -._
_BLANK = "[\x00-\x20]*"  # some servers drop these characters
_DOT_SEGMENT = re.compile(rf"(?:^|[/\\]){_BLANK}\.{{1,2}}{_BLANK}(?:[/\\;?#]|$)")
_OVERLONG = re.compile("[\xc0\xc1]")  # the first byte of an overlong form in UTF-8, such as C0 AE for a dot
_MAX_DECODED = 3


def normalised(path: str) -> str:
    """Return a path whose letters, digits, hyphens, dots and underscores are not percent-encoded.

    It identifies the same resource by RFC 3986, section 6.2.2.2. `~` stays as it is: no route contains it, and some
    clients encode it.
    """
    return _NEEDLESS.sub(lambda match: unquote(match.group()), path) if "%" in path else path


def has_dot_segment(path: str) -> bool:
    """Return whether `path` has a segment `.` or `..` that some server might resolve, however it is spelled.

    It is checked as it is and decoded up to three times; backslashes count as slashes, and `;`, `?` and `#` end a
    segment.
    """
    for _ in range(_MAX_DECODED + 1):
        if _DOT_SEGMENT.search(path) or _OVERLONG.search(path):
            return True
        decoded = unquote(path, encoding="latin-1") if "%" in path else path
        if decoded == path:
            return False
        path = decoded
    return False


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


_ERRORS: tuple[tuple[type[httpx.TransportError], type[RequestError], str], ...] = (
    (httpx.ConnectTimeout, UpstreamConnectTimeout, "upstream '{}' did not accept a connection in time"),
    (httpx.ConnectError, UpstreamUnreachable, "upstream '{}' cannot be reached"),
    (httpx.TimeoutException, UpstreamTimeout, "upstream '{}' did not answer in time"),
    (httpx.UnsupportedProtocol, UpstreamUnreachable, "upstream '{}' cannot be reached"),
    (httpx.TransportError, UpstreamBroken, "the connection to upstream '{}' broke"),
)


def upstream_error(error: httpx.TransportError, name: str, address: str) -> RequestError:
    """Return the error for the upstream called `name`; only the operator's text contains its address.

    Connection errors are described in words. Any other error is described by its class, because its text may quote the
    answer and the query of the request.
    """
    cause = error.__cause__
    words = (
        str(error) if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else type(cause or error).__name__
    )
    operator = f"upstream {name!r} at {without_passwords(address)}: {type(error).__name__}: {words}"
    kind, text = next((kind, text) for httpx_kind, kind, text in _ERRORS if isinstance(error, httpx_kind))
    return kind(text.format(name), operator=operator)
