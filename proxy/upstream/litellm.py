"""Hosted models of other dialects (Anthropic, Gemini, Bedrock, …) through litellm. The only door to that library.

It is imported on the first call: that takes seconds and over 100 MB, which nobody pays who has no such upstream.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from math import ceil
from typing import Any

import httpx

from proxy.dialects.error import error_body
from proxy.dialects.jsonbytes import dumps, loads
from proxy.errors import BadRequest
from proxy.types import Call, Chunks, Headers, Reply
from proxy.upstream.failures import failure
from proxy.upstream.wire import begun

_JSON = ((b"content-type", b"application/json"),)
_EVENTS = ((b"content-type", b"text/event-stream; charset=utf-8"),)
_LOCAL = (  # else the import, and the first beta header of Anthropic's, fetch files from a host that nobody configured
    "LITELLM_LOCAL_MODEL_COST_MAP",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS",
)
_TYPE = "upstream_error"
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
    """One hosted model, or, when `litellm_model` ends in `*`, all models of a provider. Times are in seconds.

    A stream has begun after `first_within` even without a chunk: a client is better kept alive than told nothing.
    """

    forwards_documents = False
    is_ollama = False

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
        first_within: float = 10.0,
    ) -> None:
        self.name = name
        self.truncation_alarm = truncation_alarm
        self.provider = litellm_model.partition("/")[0]
        self._model = litellm_model
        self._first_within = first_within
        self._fixed = {
            name: value
            for name, value in (
                ("api_key", key),
                ("api_base", base_url),
                ("timeout", timeout),
                ("extra_headers", {name.decode(): value.decode() for name, value in headers} or None),
            )
            if value is not None
        } | {"max_retries": 0}  # the settings say what is tried again; the SDKs under litellm would do so besides

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
            path = call.target.partition("?")[0]
            raise BadRequest(f"upstream '{self.name}' has no {call.method} /v1{path}")
        asked = loads(call.body)
        if refused := sorted(asked.keys() - _FIELDS):
            told = f"upstream '{self.name}' does not take a field"  # whose name may be anything
            raise BadRequest(f"upstream '{self.name}' does not take '{refused[0]}'", param=refused[0], operator=told)
        model = self._model.replace("*", str(asked.get("model", "")), 1)
        try:
            answer = await operation(**{**asked, **self._fixed, "model": model})
            first = await _begun(answer, self._first_within) if asked.get("stream") else None
        except Exception as error:  # noqa: BLE001 - litellm raises any of some forty classes
            return _outcome(error, self.name)
        if first is not None:
            return Reply(200, _EVENTS, await begun(self._events(first, answer)))
        return Reply(200, _JSON, dumps(answer.model_dump(exclude_none=True)))

    async def _events(self, first: asyncio.Task[Any], answer: Any) -> Chunks:
        try:
            yield b""
            async for chunk in _resumed(first, answer):
                yield b"data: " + dumps(_in_openais_shape(chunk)) + b"\n\n"
        except Exception as error:
            cause = next((each for each in _chain(error) if isinstance(each, httpx.TransportError)), None)
            raise failure(cause or httpx.ReadError(str(error)), self.name, "its provider") from error
        finally:
            first.cancel()
            if closing := getattr(answer, "aclose", None):
                await closing()
        yield b"data: [DONE]\n\n"

    async def aclose(self) -> None:
        """litellm keeps its own connections."""


def _imported() -> Any:
    for name in _LOCAL:
        os.environ.setdefault(name, "True")
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    return litellm


async def _begun(answer: Any, within: float) -> asyncio.Task[Any]:
    """The first chunk of a stream, waited for as long as an error would take: some providers are asked only now."""
    first = asyncio.ensure_future(anext(answer, None))
    try:
        await asyncio.wait({first}, timeout=within)
        if first.done():
            first.result()
    except BaseException:
        first.cancel()
        raise
    return first


async def _resumed(first: asyncio.Task[Any], answer: Any) -> AsyncIterator[Any]:
    """All chunks of a stream whose first one has been asked for already."""
    chunk = await first
    while chunk is not None:
        yield chunk
        chunk = await anext(answer, None)


def _in_openais_shape(chunk: Any) -> dict[str, Any]:
    """A chunk as JSON values. The one that tells the usage has no choices at OpenAI; litellm gives it an empty one."""
    values: dict[str, Any] = chunk.model_dump(exclude_none=True)
    if "usage" in values and all(not (each.get("delta") or each.get("finish_reason")) for each in values["choices"]):
        values["choices"] = []
    return values


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
        _TYPE,
    )
    headers = {} if answer is None else answer.headers
    kept = tuple((told.encode(), headers[told].encode("latin-1", "replace")) for told in _TOLD if told in headers)
    if answer is not None and "retry-after" not in headers and (wait := _googles_wait(answer)):
        kept = (*kept, (b"retry-after", wait))
    status = status if isinstance(status, int) and 400 <= status < 600 else 502
    return Reply(status, _JSON + kept, error_body(message, type_))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and those that it came from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _googles_wait(answer: httpx.Response) -> bytes | None:
    """When to come again, which Google tells in the body: `retryDelay`, whole or broken seconds with an s."""
    try:
        delays = (detail.get("retryDelay") for detail in loads(answer.content)["error"]["details"])
        return next((b"%d" % ceil(float(delay.removesuffix("s"))) for delay in delays if delay), None)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, httpx.StreamError):
        return None


def _said(answer: httpx.Response) -> tuple[str, str] | None:
    """Message and type of a provider's error, as OpenAI, Anthropic, Google and Amazon tell them; None in any other."""
    try:
        body = loads(answer.content)
        if "message" in body:  # Amazon's
            return str(body["message"]), answer.headers.get("x-amzn-errortype", "").partition(":")[0] or _TYPE
        error = body["error"]
        return str(error["message"]), str(error.get("type") or error.get("status") or _TYPE)
    except (ValueError, TypeError, KeyError, AttributeError, httpx.StreamError):
        return None
