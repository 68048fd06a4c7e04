"""Hosted models of other dialects (Anthropic, Gemini, Bedrock, …) through litellm. The only door to that library.

It is imported on the first call: that takes seconds and over 100 MB, which nobody pays who has no such upstream.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import httpx

from proxy.dialects.error import error_body
from proxy.dialects.jsonbytes import dumps, loads
from proxy.errors import BadRequest
from proxy.types import Call, Chunks, Headers, Reply
from proxy.upstream.failures import failure

_JSON = ((b"content-type", b"application/json"),)
_EVENTS = ((b"content-type", b"text/event-stream; charset=utf-8"),)
_TOLD = ("retry-after", "x-request-id", "request-id")

_FIELDS = frozenset(
    # what OpenAI's API takes, and what other providers share; litellm itself takes hundreds of fields more, by which a
    # client could name another host for our key, have answers made up, or change our limits
    "audio best_of dimensions echo encoding_format frequency_penalty function_call functions input input_type "
    "logit_bias logprobs max_completion_tokens max_tokens messages metadata modalities model moderation n "
    "parallel_tool_calls prediction presence_penalty prompt prompt_cache_key prompt_cache_options "
    "prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store "
    "stream stream_options suffix temperature thinking tool_choice tools top_k top_logprobs top_p user verbosity "
    "web_search_options".split()
)


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
        headers: Headers = (),
        truncation_alarm: bool = True,
    ) -> None:
        self.name = name
        self.truncation_alarm = truncation_alarm
        self.provider = litellm_model.partition("/")[0]
        self._model = litellm_model
        self._fixed = {
            name: value
            for name, value in (
                ("api_key", key),
                ("api_base", base_url),
                ("timeout", timeout),
                ("extra_headers", {name.decode(): value.decode() for name, value in headers} or None),
            )
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
        if refused := sorted(asked.keys() - _FIELDS):
            raise BadRequest(f"upstream '{self.name}' does not take '{refused[0]}'", param=refused[0])
        model = self._model.replace("*", str(asked.get("model", "")), 1)
        try:
            answer = await operation(**{**asked, **self._fixed, "model": model})
        except Exception as error:  # noqa: BLE001 - litellm raises any of some forty classes
            return _outcome(error, self.name)
        if asked.get("stream"):
            return Reply(200, _EVENTS, self._events(answer))
        return Reply(200, _JSON, dumps(answer.model_dump(exclude_none=True)))

    async def _events(self, answer: Any) -> Chunks:
        try:
            async for chunk in answer:
                yield b"data: " + dumps(chunk.model_dump(exclude_none=True)) + b"\n\n"
        except Exception as error:
            cause = next((each for each in _chain(error) if isinstance(each, httpx.TransportError)), None)
            raise failure(cause or httpx.ReadError(str(error)), self.name, "its provider") from error
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


def _outcome(error: BaseException, name: str) -> Reply:
    """What a litellm exception stands for: the model server's own error as a reply, or the RequestError it raises.

    What happened is at the root: the transport's error when there was no answer, else the answer that was refused.
    """
    chain = tuple(_chain(error))
    for each in chain:
        if isinstance(each, httpx.TransportError):
            raise failure(each, name, "its provider") from error
    answers = (getattr(each, "response", None) for each in reversed(chain))
    answer = next((answer for answer in answers if isinstance(answer, httpx.Response)), None)
    status = getattr(error, "status_code", None) if answer is None else answer.status_code
    message, type_ = (answer is not None and _said(answer)) or (
        str(error).partition("\nTraceback")[0],
        "upstream_error",
    )
    headers = {} if answer is None else answer.headers
    kept = tuple((told.encode(), headers[told].encode("latin-1", "replace")) for told in _TOLD if told in headers)
    status = status if isinstance(status, int) and 400 <= status < 600 else 502
    return Reply(status, _JSON + kept, error_body(message, type_))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and those that it came from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _said(answer: httpx.Response) -> tuple[str, str] | None:
    """Message and type of a provider's error, in the shape that OpenAI and Anthropic share; None in any other."""
    try:
        error = loads(answer.content)["error"]
        return str(error["message"]), str(error.get("type") or "upstream_error")
    except (ValueError, TypeError, KeyError, AttributeError, httpx.StreamError):
        return None
