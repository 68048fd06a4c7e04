"""Model servers: their interface, those with the dialect of OpenAI or Anthropic, their headers, paths and limits."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol
from urllib.parse import quote, unquote

import httpx
import structlog
from aiohttp import ClientTimeout

from groundwire.caches import memo
from groundwire.config.settings import Limits
from groundwire.errors import BadRequest, UpstreamBusy
from groundwire.limits import Capacity, ConcurrencyLimiter, LimitReached, SlidingWindow, Slot
from groundwire.upstream.http import HttpClient, prime, upstream_error
from groundwire.wire import Call, Chunks, Header, Headers, Reply, without


class Upstream(Protocol):
    """A model server. `name` is that in the settings, `provider` that in OpenTelemetry's GenAI conventions.

    `forwards_documents` is true if it understands a `documents` field, `truncation_alarm` if its reported prompt tokens
    show whether it read the whole prompt, `is_ollama` if it takes native calls, those of Ollama's own API, and
    `has_logprobs` if it may report the probabilities of tokens.
    """

    name: str
    provider: str
    forwards_documents: bool
    truncation_alarm: bool
    is_ollama: bool
    has_logprobs: bool

    async def send(self, call: Call) -> Reply:
        """Send one call. Any response of the model server is a Reply, also an error.

        Raises UpstreamUnreachable, UpstreamTimeout or UpstreamBroken when there is no answer; the chunks of a reply
        that breaks off raise UpstreamBroken or UpstreamTimeout. Cancelling the call, or closing the chunks, ends it
        upstream.
        """

    async def aclose(self) -> None:
        """Close its connections."""


_NEVER_FORWARDED = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    b"upgrade host expect".split()
)
_DROPPED = _NEVER_FORWARDED | {b"cookie", b"set-cookie", b"forwarded", b"x-real-ip", b"via"}
KEYS = frozenset({b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"})
_LENGTH = frozenset({b"content-length"})
_OWN_PREFIX = b"x-grounding-"
ANTHROPIC_VERSION: Headers = ((b"anthropic-version", b"2023-06-01"),)
"""The version of Anthropic's API for clients that send none, such as OpenAI's when they list models."""

_BODY_HEADERS = ("content-type", "content-encoding", "content-length")


def allow_list(names: Sequence[str]) -> re.Pattern[str]:
    """Compile the names, or globs of names, of forwarded headers; those that describe the body are always forwarded."""
    return re.compile("|".join(fnmatch.translate(name.lower()) for name in (*names, *_BODY_HEADERS)))


def bearer(key: str) -> Header:
    """Return the header with the key for most servers."""
    return b"authorization", b"Bearer " + key.encode()


def x_api_key(key: str) -> Header:
    """Return the header with the key for Anthropic's server."""
    return b"x-api-key", key.encode()


@dataclass(frozen=True, slots=True)
class HeaderRules:
    """Header rules in both directions. Without allow-lists all end-to-end headers are forwarded.

    No list forwards hop-by-hop headers, `host`, `expect` or `x-grounding-` headers, nor a key if the upstream has one.
    `added` headers override the client's, `assumed` ones are sent if the client sends none of that name; `key_header`
    builds a header from the upstream's key.
    """

    request: re.Pattern[str] | None = None
    response: re.Pattern[str] | None = None
    added: Headers = ()
    assumed: Headers = ()
    key_header: Callable[[str], Header] = bearer

    def outgoing(self, headers: Headers, key: str | None) -> Headers:
        """Return the headers to send to the upstream; with a `key` the client's keys are removed.

        Names must be lower case. `content-length` is left out: the HTTP client counts the body that it sends.
        """
        internal = _OWN_PREFIX if self.request else (_OWN_PREFIX, b"x-forwarded-")
        passed = _filtered(headers, self.request, internal, _LENGTH | KEYS if key else _LENGTH)
        if key:
            passed = (*passed, self.key_header(key))
        if not self.added and not self.assumed:
            return passed
        added = {name for name, _ in self.added}
        missing = without(self.assumed, added | {name for name, _ in passed})
        return (*without(passed, added), *missing, *self.added)

    def incoming(self, headers: Headers) -> Headers:
        """Return the headers to send to the client, with names in lower case."""
        return _filtered(tuple((name.lower(), value) for name, value in headers), self.response, _OWN_PREFIX)


def _filtered(
    headers: Headers,
    allowed: re.Pattern[str] | None,
    internal: bytes | tuple[bytes, ...],
    hidden: frozenset[bytes] = frozenset(),
) -> Headers:
    """Return the headers that are forwarded, less those that `Connection` names (RFC 9110, section 7.6.1)."""
    dropped = _NEVER_FORWARDED if allowed else _DROPPED
    connection = [value for name, value in headers if name == b"connection"]
    options = {token.strip().lower() for value in connection for token in value.split(b",")}
    return tuple(
        (name, value)
        for name, value in headers
        if not (name in dropped or name in options or name in hidden or name.startswith(internal))
        and (allowed is None or allowed.match(name.decode("latin-1")))
    )


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


_LEAVES = "The path of the request leaves the path of its upstream."
_UNSAFE = re.compile(r"[^\x21-\x7e]|#")


class OpenAIUpstream:
    """One server, reached through an HTTP client that several may share. Times are in seconds.

    `ollama_url` is the root of Ollama's own API, if the server is Ollama.
    """

    has_logprobs = True

    def __init__(
        self,
        name: str,
        base_url: str,
        client: HttpClient,
        *,
        key: str | None = None,
        timeout: float = 600.0,
        connect_timeout: float = 10.0,
        forwards_documents: bool = False,
        headers: HeaderRules | None = None,
        truncation_alarm: bool = True,
        provider: str = "openai",
        ollama_url: str | None = None,
    ) -> None:
        self.name = name
        self.provider = provider
        self.forwards_documents = forwards_documents
        self.truncation_alarm = truncation_alarm
        self.is_ollama = ollama_url is not None
        self._base_url = base_url.rstrip("/")
        self._ollama_url = (ollama_url or base_url).rstrip("/")
        self._client = client
        self._key = key
        self._headers = headers or HeaderRules()
        self._timeouts = ClientTimeout(sock_connect=connect_timeout, sock_read=timeout)
        self._map_error = partial(upstream_error, name=name, address=self._base_url)
        self._url = memo(256, 1024)(self._build_url)

    async def send(self, call: Call) -> Reply:
        """Send one call; see `Upstream.send`."""
        headers = self._headers.outgoing(call.headers, self._key)
        url = self._url(call.target, call.native)
        reply = await self._client.send(call.method, url, headers, call.body, self._timeouts, self._map_error)
        return Reply(reply.status, self._headers.incoming(reply.headers), reply.body)

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()

    def _build_url(self, target: str, native: bool) -> str:
        """Return the URL of a target below the base URL.

        Path and query are as the client wrote them; only characters that no URL may contain are quoted. Raises
        BadRequest.
        """
        path = target.partition("?")[0]
        if path[:1] not in ("", "/") or has_dot_segment(path):
            raise BadRequest(_LEAVES)
        base = httpx.URL(self._ollama_url if native else self._base_url)
        root = base.raw_path.decode("ascii").rstrip("/")
        raw = root + _UNSAFE.sub(lambda match: quote(match.group()), target)
        inside, url = (str(base.copy_with(raw_path=each.encode("ascii"))) for each in (root, raw))
        if not url.startswith(inside) or url[len(inside) :][:1] not in ("", "/", "?"):
            raise BadRequest(_LEAVES)
        return url


log = structlog.get_logger("groundwire.upstream")


class LimitedUpstream:
    """An upstream with limits; None: no limit. Up to `queue` requests wait `queue_timeout` (seconds).

    A request is in flight until the end of its reply, or until the reply is closed.
    """

    def __init__(self, upstream: Upstream, limits: Limits) -> None:
        self.name = upstream.name
        self.provider = upstream.provider
        self.forwards_documents = upstream.forwards_documents
        self.truncation_alarm = upstream.truncation_alarm
        self.is_ollama = upstream.is_ollama
        self.has_logprobs = upstream.has_logprobs
        self._upstream = upstream
        capacity = Capacity(limits.max_concurrent, None, limits.queue, limits.queue_timeout)
        rate = SlidingWindow(limits.per_minute) if limits.per_minute else None
        self._limiter = ConcurrencyLimiter(capacity, rate)

    async def send(self, call: Call) -> Reply:
        """Send one call once there is capacity; see `Upstream.send`. Raises UpstreamBusy when there is none in time."""
        slot = self._limiter.try_acquire() or await self._wait()
        try:
            reply = await self._upstream.send(call)
        except BaseException:
            slot.release()
            raise
        if isinstance(reply.body, bytes):
            slot.release()
            return reply
        return replace(reply, body=await prime(_until_end(reply.body, slot)))

    async def aclose(self) -> None:
        """Close the upstream."""
        await self._upstream.aclose()

    async def _wait(self) -> Slot:
        log.debug("request.waits", upstream=self.name, waiting=self._limiter.waiting + 1)
        try:
            return await self._limiter.acquire()
        except LimitReached as reached:
            message = f"upstream '{self.name}' has no room for another request just now"
            raise UpstreamBusy(message, after=reached.after) from None


async def _until_end(chunks: Chunks, slot: Slot) -> Chunks:
    """Yield all chunks, after an empty first one, and release the slot at their end."""
    try:
        yield b""
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
    finally:
        slot.release()
