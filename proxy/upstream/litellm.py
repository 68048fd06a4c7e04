"""Hosted models of other dialects (Anthropic, Gemini, Bedrock, …) through litellm. The only door to that library.

It is imported on the first call: that takes seconds and over 100 MB, which nobody pays who has no such upstream.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from proxy.dialects.jsonbytes import dumps, loads
from proxy.errors import BadRequest, UpstreamBroken
from proxy.types import Call, Chunks, Reply

_JSON = ((b"content-type", b"application/json"),)
_EVENTS = ((b"content-type", b"text/event-stream; charset=utf-8"),)


class LitellmUpstream:
    """One hosted model, or, when `litellm_model` ends in `*`, all models of a provider."""

    forwards_documents = False

    def __init__(
        self,
        name: str,
        litellm_model: str,
        *,
        key: str | None = None,
        base_url: str | None = None,
        timeout: float = 600.0,
    ) -> None:
        self.name = name
        self.provider = litellm_model.partition("/")[0]
        self._model = litellm_model
        self._fixed = {
            name: value
            for name, value in (("api_key", key), ("api_base", base_url), ("timeout", timeout))
            if value is not None
        }

    async def send(self, call: Call) -> Reply:
        """Sends one call on; see `Upstream.send`. Only completions and embeddings exist beyond OpenAI's dialect."""
        litellm = await asyncio.to_thread(_imported)
        operations = {
            "/chat/completions": litellm.acompletion,
            "/completions": litellm.atext_completion,
            "/embeddings": litellm.aembedding,
        }
        operation = operations.get(call.target.partition("?")[0])
        if operation is None or call.method != "POST":
            raise BadRequest(f"upstream '{self.name}' has no {call.method} /v1{call.target}")
        asked = loads(call.body)
        model = self._model.replace("*", str(asked.get("model", "")), 1)
        try:
            answer = await operation(**{**asked, **self._fixed, "model": model})
        except Exception as error:  # noqa: BLE001 - litellm raises any of some forty classes
            return _error_reply(error)
        if asked.get("stream"):
            return Reply(200, _EVENTS, self._events(answer))
        return Reply(200, _JSON, dumps(answer.model_dump(exclude_none=True)))

    async def _events(self, answer: Any) -> Chunks:
        try:
            async for chunk in answer:
                yield b"data: " + dumps(chunk.model_dump(exclude_none=True)) + b"\n\n"
        except Exception as error:
            raise UpstreamBroken(
                f"the connection to upstream '{self.name}' broke",
                operator=f"upstream {self.name!r}: {type(error).__name__}: {error}",
            ) from error
        finally:
            if closing := getattr(answer, "aclose", None):
                await closing()
        yield b"data: [DONE]\n\n"

    async def aclose(self) -> None:
        """litellm keeps its own connections."""


def _imported() -> Any:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else the import fetches a file from the network
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    return litellm


def _error_reply(error: Exception) -> Reply:
    """A litellm exception as the model server's own error, in OpenAI's shape, with its headers that matter."""
    status = getattr(error, "status_code", None)
    status = status if isinstance(status, int) and 400 <= status < 600 else 502
    response = getattr(error, "response", None)
    headers: Mapping[str, str] = getattr(response, "headers", None) or {}
    kept = tuple(
        (name.encode(), headers[name].encode("latin-1", "replace"))
        for name in ("retry-after", "x-request-id")
        if name in headers
    )
    body = {
        "error": {
            "message": str(getattr(error, "message", error)),
            "type": str(getattr(error, "type", None) or "upstream_error"),
            "param": getattr(error, "param", None),
            "code": getattr(error, "code", None) and str(getattr(error, "code", None)),
        }
    }
    return Reply(status, _JSON + kept, dumps(body))
