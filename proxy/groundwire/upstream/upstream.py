"""Model servers: their interface, those with the dialect of OpenAI or Anthropic, and limits of requests to one."""

from __future__ import annotations

import re
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol
from urllib.parse import quote

import httpx
import structlog

from groundwire.caches import memo
from groundwire.errors import BadRequest, RequestError, UpstreamBusy
from groundwire.limits import Capacity, ConcurrencyLimiter, LimitReached, SlidingWindow, Slot
from groundwire.upstream.http import HeaderRules, HttpClient, Timeouts, has_dot_segment, prime, upstream_error
from groundwire.wire import Call, Chunks, Reply


class Upstream(Protocol):
    """A model server. `name` is that in the settings, `provider` that in OpenTelemetry's GenAI conventions.

    `forwards_documents` is true if it understands a `documents` field, `truncation_alarm` if its reported prompt tokens
    show whether it read the whole prompt, and `is_ollama` if it takes native calls, those of Ollama's own API.
    """

    name: str
    provider: str
    forwards_documents: bool
    truncation_alarm: bool
    is_ollama: bool

    async def send(self, call: Call) -> Reply:
        """Send one call. Any response of the model server is a Reply, also an error.

        Raises UpstreamUnreachable, UpstreamTimeout or UpstreamBroken when there is no answer; the chunks of a reply
        that breaks off raise UpstreamBroken or UpstreamTimeout. Cancelling the call, or closing the chunks, ends it
        upstream.
        """

    async def aclose(self) -> None:
        """Close its connections."""


_LEAVES = "The path of the request leaves the path of its upstream."
_UNSAFE = re.compile(r"[^\x21-\x7e]|#")


class OpenAIUpstream:
    """One server, reached through an HTTP client that several may share. Times are in seconds.

    `ollama_url` is the root of Ollama's own API, if the server is Ollama.
    """

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
        self._timeouts = Timeouts(connect_timeout, timeout)
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

    def _map_error(self, error: httpx.TransportError) -> RequestError:
        return upstream_error(error, self.name, self._base_url)

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

    def __init__(
        self,
        upstream: Upstream,
        *,
        max_concurrent: int | None = None,
        per_minute: int | None = None,
        queue: int = 64,
        queue_timeout: float = 10.0,
    ) -> None:
        self.name = upstream.name
        self.provider = upstream.provider
        self.forwards_documents = upstream.forwards_documents
        self.truncation_alarm = upstream.truncation_alarm
        self.is_ollama = upstream.is_ollama
        self._upstream = upstream
        capacity = Capacity(max_concurrent, None, queue, queue_timeout)
        rate = SlidingWindow(per_minute) if per_minute else None
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
