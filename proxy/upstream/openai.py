"""Model servers that speak OpenAI's dialect: bytes in, bytes out."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote

import httpx

from proxy.types import Call, Chunks, Reply
from proxy.upstream.failures import failure
from proxy.upstream.headers import HeaderRules

_UNSAFE = re.compile(r"[^\x21-\x7e]|#")


class OpenAIUpstream:
    """One server, reached through an httpx transport that several may share. Times are in seconds."""

    provider = "openai"

    def __init__(
        self,
        name: str,
        base_url: str,
        transport: httpx.AsyncBaseTransport,
        *,
        key: str | None = None,
        timeout: float = 600.0,
        connect_timeout: float = 10.0,
        forwards_documents: bool = False,
        headers: HeaderRules | None = None,
    ) -> None:
        self.name = name
        self.forwards_documents = forwards_documents
        self._base_url = base_url.rstrip("/")
        self._transport = transport
        self._key = key
        self._headers = headers or HeaderRules()
        self._extensions = {"timeout": {"connect": connect_timeout, "read": timeout, "write": timeout, "pool": timeout}}
        self._url = lru_cache(maxsize=256)(self._build_url)

    async def send(self, call: Call) -> Reply:
        """Sends one call on; see `Upstream.send`."""
        request = httpx.Request(
            call.method,
            self._url(call.target),
            headers=list(self._headers.outgoing(call.headers, self._key)),
            content=call.body or None,
            extensions=self._extensions,
        )
        try:
            response = await self._transport.handle_async_request(request)
        except httpx.TransportError as error:
            raise failure(error, self.name, self._base_url) from error
        return Reply(response.status_code, self._headers.incoming(tuple(response.headers.raw)), self._chunks(response))

    async def _chunks(self, response: httpx.Response) -> Chunks:
        assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101 - what every async transport returns
        try:
            async for chunk in response.stream:
                yield chunk
        except httpx.TransportError as error:
            raise failure(error, self.name, self._base_url) from error
        finally:
            await response.stream.aclose()

    async def aclose(self) -> None:
        """Closes the transport."""
        await self._transport.aclose()

    def _build_url(self, target: str) -> httpx.URL:
        """The URL of a target, its path and query as the client wrote them; only what no URL may hold is quoted."""
        base = httpx.URL(self._base_url)
        raw = base.raw_path.decode("ascii").rstrip("/") + _UNSAFE.sub(lambda match: quote(match.group()), target)
        return base.copy_with(raw_path=raw.encode("ascii"))
