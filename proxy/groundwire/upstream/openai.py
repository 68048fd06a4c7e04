"""Model servers with the dialect of OpenAI or Anthropic: bytes are forwarded in both directions."""

from __future__ import annotations

import re
from urllib.parse import quote

import httpx

from groundwire.caches import memo
from groundwire.errors import BadRequest, RequestError
from groundwire.upstream.errors import upstream_error
from groundwire.upstream.headers import HeaderRules
from groundwire.upstream.http import HttpClient, Timeouts
from groundwire.upstream.paths import has_dot_segment
from groundwire.wire import Call, Reply

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
