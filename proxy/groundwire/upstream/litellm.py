"""Hosted models of other dialects (Anthropic, Gemini, Bedrock, …) through litellm, which only this module imports.

It is imported on the first call: that takes seconds and over 100 MB, so installations without such an upstream avoid
it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any
from urllib.parse import urlsplit

import httpx

from groundwire.dialects.dialect import error_body
from groundwire.dialects.jsonbytes import dumps, loads
from groundwire.dialects.request import read_object
from groundwire.errors import BadRequest
from groundwire.upstream.http import prime, upstream_error
from groundwire.wire import Call, Chunks, Headers, Reply

_MEDIA_FIELDS = ("messages", "input", "prediction")
_TEXT_KEYS = frozenset(
    "text thinking signature refusal title context citations annotations input arguments cache_control role name id "
    "type tool_use_id tool_call_id tool_calls function_call reasoning_content provider_specific_fields "
    "thinking_blocks".split()
)
_SCHEME = re.compile(r"[\s\x00-\x20]*(?:[A-Za-z][A-Za-z0-9+.-]*:|//|\\\\)")
_DATA = re.compile(r"data:[^,]{0,200},", re.IGNORECASE)
_STORED = re.compile(r"(?:gs|s3|file)://\S+")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class MediaHosts:
    """The allowed hosts of media, by scheme, host and port; see `read_host`."""

    allowed: frozenset[tuple[str, str, int | None]] = frozenset()

    def check(self, body: Mapping[str, Any], upstream: str) -> None:
        """Raise BadRequest, naming the field, when a request refers to media on a host that is not allowed."""
        for path, url in remote_media(body):
            if not self._allows(url):
                message = (
                    f"'{path}': upstream '{upstream}' fetches nothing from this address; send the data itself as a "
                    "data: URL"
                )
                raise BadRequest(message, param=path, operator=f"a URL in {path} is not among allowed_media_hosts")

    def _allows(self, url: str) -> bool:
        if re.search(r"[\s\\\x00-\x20@]", url):
            return False
        try:
            return read_host(url) in self.allowed
        except ValueError:
            return False

    @property
    def names(self) -> list[str]:
        """The hosts as `host` or `host:port`."""
        return sorted(host if port is None else f"{host}:{port}" for _, host, port in self.allowed)


def read_host(text: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port of a URL, or of a host alone, which means https. Raises ValueError."""
    parts = urlsplit(text if "://" in text else f"https://{text}")
    if not parts.hostname:
        raise ValueError("it names no host")
    scheme = parts.scheme.lower()
    return scheme, parts.hostname.lower().rstrip("."), parts.port or _DEFAULT_PORTS.get(scheme)


def remote_media(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the path and value of every string in a request that litellm or a provider might fetch."""
    for field in _MEDIA_FIELDS:
        waiting: list[tuple[str, Any]] = [(field, body.get(field))]
        while waiting:
            path, value = waiting.pop()
            if isinstance(value, list):
                waiting += [(f"{path}[{at}]", each) for at, each in reversed([*enumerate(value)])]
            elif isinstance(value, dict):
                waiting += [(f"{path}.{key}", each) for key, each in reversed(_media(value))]
            elif isinstance(value, str) and (_STORED.fullmatch(value.strip()) if _is_text(path) else _is_remote(value)):
                yield path, value


def _media(part: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the members of a part, or of a message, that are not text."""
    skipped = _TEXT_KEYS
    if part.get("type") == "text":
        skipped |= {"data"}
    if part.get("type") == "search_result":
        skipped |= {"source"}
    if isinstance(part.get("content"), str):
        skipped |= {"content"}
    return [(key, value) for key, value in part.items() if key not in skipped]


def _is_text(path: str) -> bool:
    """Return whether a bare string at this path is text: an input to embed, or a part of a message."""
    return path == "input" or re.fullmatch(r"input\[\d+\]|.*content\[\d+\]", path) is not None


def _is_remote(text: str) -> bool:
    inline = _DATA.match(text)
    if inline is not None:
        return "://" in inline.group()
    return _SCHEME.match(text) is not None or "://" in text


_JSON = ((b"content-type", b"application/json"),)
_EVENTS = ((b"content-type", b"text/event-stream; charset=utf-8"),)
_LOCAL_DATA = (  # else litellm downloads files from a host that is not configured
    "LITELLM_LOCAL_MODEL_COST_MAP",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS",
)
_ERROR_TYPE = "upstream_error"
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")  # they log requests and addresses
_UNSAFE_MODEL = re.compile(  # a URL, a query, an escape, a path that leads elsewhere, or a host before a path
    r"""(?ix) ^https?: | // | ^/ | [\\\s\x00-\x1f\x7f?\#%] | (?:^|/)\.{1,2}(?:/|$)
    | ^(?: localhost | \d+(?:\.\d+){3} | \[[^/]*\] | (?:[\w-]+\.)+[a-z]{2,} ) (?: :\d+ )? /
    | (?:^|/)arn: (?! [a-z0-9-]*:[a-z0-9-]*:[a-z0-9-]*:\d*: [\w./:-]* $ )"""
)
_ADDRESS = re.compile(r"://|\d+(?:\.\d+){3}|[0-9a-f]*:[0-9a-f:]*:|[\w-]+\.[\w.-]+:\d|resol|DNS|address|\bhost", re.I)
_FORWARDED_HEADERS = ("retry-after", "x-request-id", "request-id")

_FIELDS = frozenset(
    # the fields of OpenAI's API, and those common to other providers; litellm accepts hundreds more, by which a client
    # could name another host for the key, fake answers, or change limits
    "audio best_of dimensions echo encoding_format frequency_penalty function_call functions input input_type "
    "logit_bias logprobs max_completion_tokens max_tokens messages metadata modalities model moderation n "
    "parallel_tool_calls prediction presence_penalty prompt prompt_cache_key prompt_cache_options "
    "prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store "
    "stream stream_options suffix temperature thinking tool_choice tools top_k top_logprobs top_p user verbosity "
    "web_search_options".split()
)


class LitellmUpstream:
    """One hosted model, or, when `litellm_model` ends in `*`, all models of a provider. Times are in seconds.

    A stream begins after `first_chunk_timeout` even without a chunk, so that keep-alives can be sent to the client.
    """

    forwards_documents = False
    is_ollama = has_logprobs = False

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
        first_chunk_timeout: float = 10.0,
        media_hosts: MediaHosts | None = None,
    ) -> None:
        self.name = name
        self._media_hosts = media_hosts or MediaHosts()
        self.truncation_alarm = truncation_alarm
        self.provider = litellm_model.partition("/")[0]
        self._model = litellm_model
        self._first_chunk_timeout = first_chunk_timeout
        fixed = {
            "api_key": key,
            "api_base": base_url,
            "timeout": timeout,
            "extra_headers": {name.decode(): value.decode() for name, value in headers} or None,
            "max_retries": 0,  # retries are configured in the settings; the SDKs under litellm would add theirs
        }
        self._fixed = {name: value for name, value in fixed.items() if value is not None}

    async def send(self, call: Call) -> Reply:
        """Send one call; see `Upstream.send`. Only completions and embeddings exist beyond OpenAI's dialect."""
        litellm = await asyncio.to_thread(_import_litellm)
        operations = {
            "/chat/completions": litellm.acompletion,
            "/completions": litellm.atext_completion,
            "/embeddings": litellm.aembedding,
        }
        operation = operations.get(call.target.partition("?")[0])
        if operation is None or call.method != "POST":
            path = call.target.partition("?")[0]
            raise BadRequest(f"upstream '{self.name}' has no {call.method} /v1{path}")
        arguments = await asyncio.to_thread(self._arguments, call.body)
        model = self._model.replace("*", arguments["model"], 1)
        _allow(litellm, self._media_hosts.names)
        try:
            answer = await operation(**{**arguments, **self._fixed, "model": model})
            first = await _first_chunk(answer, self._first_chunk_timeout) if arguments.get("stream") else None
        except Exception as error:  # noqa: BLE001 - litellm raises any of some forty classes
            return _error_reply(error, self.name)
        if first is not None:
            return Reply(200, _EVENTS, await prime(self._events(first, answer)))
        return Reply(200, _JSON, dumps(answer.model_dump(exclude_none=True)))

    def _arguments(self, body: bytes) -> dict[str, Any]:
        """Return the arguments of a request. Raises BadRequest for anything that could make litellm call another
        host.
        """
        arguments = read_object(body)
        if refused := sorted(arguments.keys() - _FIELDS):
            operator = f"upstream '{self.name}' does not take a field"  # its name may be any text
            raise BadRequest(
                f"upstream '{self.name}' does not take '{refused[0]}'", param=refused[0], operator=operator
            )
        model = arguments.get("model")
        if not model:
            raise BadRequest("you must provide a model parameter", param="model")
        if not isinstance(model, str) or ("*" in self._model and _UNSAFE_MODEL.search(model)):
            raise BadRequest(f"'model': upstream '{self.name}' takes the name of a model, no address", param="model")
        for at, tool in enumerate(arguments.get("tools") or ()) if isinstance(arguments.get("tools"), list) else ():
            if isinstance(tool, dict) and tool.get("type") == "mcp":
                raise BadRequest(f"upstream '{self.name}' does not take tools of type mcp", param=f"tools[{at}].type")
        self._media_hosts.check(arguments, self.name)
        return (
            arguments
            if arguments.get("metadata") is None
            else {**arguments, "metadata": _metadata(arguments["metadata"])}
        )

    async def _events(self, first: asyncio.Task[Any], answer: Any) -> Chunks:
        try:
            yield b""
            chunk = await first
            while chunk is not None:
                yield b"data: " + dumps(_openai_chunk(chunk)) + b"\n\n"
                chunk = await anext(answer, None)
        except Exception as error:
            cause = next((each for each in _causes(error) if isinstance(each, httpx.TransportError)), None)
            raise upstream_error(cause or httpx.ReadError(str(error)), self.name, "its provider") from error
        finally:
            first.cancel()
            if closing := getattr(answer, "aclose", None):
                await closing()
        yield b"data: [DONE]\n\n"

    async def aclose(self) -> None:
        """Do nothing: litellm manages its connections."""


def _import_litellm() -> Any:
    for name in _LOCAL_DATA:
        os.environ.setdefault(name, "True")
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    for name in _LOGGERS:
        logging.getLogger(name).disabled = True
    library: Any = litellm
    if not isinstance(library.known_tokenizer_config, _KnownTemplates):
        library.known_tokenizer_config = _KnownTemplates(library.known_tokenizer_config)
    return library


class _KnownTemplates(dict[str, Any]):
    """The prompt templates that ship with litellm. It would download and run the one of any other model."""

    def __contains__(self, _: object) -> bool:
        return True

    def __missing__(self, _: str) -> Any:
        return {"status": "success", "tokenizer": {"chat_template": None}}  # makes litellm use a general prompt


def _allow(litellm: Any, hosts: list[str]) -> None:
    """Let litellm fetch from hosts in the settings, private ones too; it checks the addresses of all others."""
    known = litellm.user_url_allowed_hosts
    litellm.user_url_allowed_hosts = [*known, *(host for host in hosts if host not in known)]


def _metadata(given: Any) -> dict[str, str]:
    """Return the metadata for providers; litellm would interpret all other members."""
    if not isinstance(given, dict):
        raise BadRequest("'metadata' must be an object", param="metadata")
    user = given.get("user_id")
    return {"user_id": user} if isinstance(user, str) else {}


async def _first_chunk(answer: Any, max_wait: float) -> asyncio.Task[Any]:
    """Wait for the first chunk of a stream as long as an error would take: some providers are called only then."""
    first = asyncio.ensure_future(anext(answer, None))
    try:
        await asyncio.wait({first}, timeout=max_wait)
        if first.done():
            first.result()
    except BaseException:
        first.cancel()
        raise
    return first


def _openai_chunk(chunk: Any) -> dict[str, Any]:
    """Convert a chunk to JSON values. OpenAI's chunk with the usage has no choices; litellm's has an empty one."""
    values: dict[str, Any] = chunk.model_dump(exclude_none=True)
    if "usage" in values and all(not (each.get("delta") or each.get("finish_reason")) for each in values["choices"]):
        values["choices"] = []
    return values


def _error_reply(error: BaseException, name: str) -> Reply:
    """Return the provider's error as a reply, or raise the RequestError that corresponds to a litellm exception.

    The root of the exception decides: a transport error, else the provider's error response.
    """
    chain = tuple(_causes(error))
    for each in chain:
        if isinstance(each, httpx.TransportError):
            raise upstream_error(each, name, "its provider") from error
    answers = (getattr(each, "response", None) for each in reversed(chain))
    answer = next((answer for answer in answers if isinstance(answer, httpx.Response)), None)
    if answer is None:  # litellm did not send the request
        status = getattr(error, "status_code", None)
        status = status if isinstance(status, int) and 400 <= status < 600 else 502
        return Reply(status, _JSON, error_body(_message(error, name, shown=status < 500), _ERROR_TYPE))
    message, type_ = _provider_error(answer) or (_message(error, name), _ERROR_TYPE)
    headers = answer.headers
    forwarded = tuple(
        (header.encode(), headers[header].encode("latin-1", "replace"))
        for header in _FORWARDED_HEADERS
        if header in headers
    )
    if "retry-after" not in headers and (wait := _google_retry_delay(answer)):
        forwarded = (*forwarded, (b"retry-after", wait))
    status = answer.status_code if 400 <= answer.status_code < 600 else 502
    return Reply(status, _JSON + forwarded, error_body(message, type_))


def _message(error: BaseException, name: str, *, shown: bool = True) -> str:
    """Return litellm's description of an error, unless it could contain an address."""
    words = str(error).partition("\nTraceback")[0]
    if shown and not _ADDRESS.search(words):
        return words
    return f"upstream '{name}': the request could not be translated for its provider ({type(error).__name__})"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _google_retry_delay(answer: httpx.Response) -> bytes | None:
    """Return Google's retry delay, which is part of the body: `retryDelay`, seconds followed by an s."""
    try:
        delays = (detail.get("retryDelay") for detail in loads(answer.content)["error"]["details"])
        return next((b"%d" % ceil(float(delay.removesuffix("s"))) for delay in delays if delay), None)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, httpx.StreamError):
        return None


def _provider_error(answer: httpx.Response) -> tuple[str, str] | None:
    """Return message and type of an error of OpenAI, Anthropic, Google or Amazon; None for any other body."""
    try:
        body = loads(answer.content)
        if "message" in body:  # Amazon's
            return str(body["message"]), answer.headers.get("x-amzn-errortype", "").partition(":")[0] or _ERROR_TYPE
        error = body["error"]
        return str(error["message"]), str(error.get("type") or error.get("status") or _ERROR_TYPE)
    except (ValueError, TypeError, KeyError, AttributeError, httpx.StreamError):
        return None
