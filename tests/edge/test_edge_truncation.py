"""A model server that drops the front of a long prompt, as Ollama does, is detected by its token count."""

from __future__ import annotations

from typing import Any

import pytest

from tests.edge.clients import sdk
from tests.edge.ollama_like import OllamaLike
from tests.edge.upstream import Upstream, as_json, body_reply

FACT = "The bridge over the fjord was opened in 1987 and is 412 metres long. "
QUESTION = {"role": "user", "content": "How long is the bridge?"}
ANSWER = "The bridge is 412 metres long."


def messages(sentences: int, role: str = "system") -> list[dict[str, str]]:
    return [{"role": role, "content": FACT * sentences}, QUESTION]


def grounding_of(proxy: Any, *, stream: bool = False, sentences: int = 1000, role: str = "system") -> dict[str, Any]:
    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    with sdk(proxy.base_url) as client:
        said = client.chat.completions.create(model="llama3.2", messages=messages(sentences, role), **options)
        last = list(said)[-1] if stream else said
    found: dict[str, Any] = last.model_extra["grounding"]
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("role", ["system", "user"], ids=["kept and cut", "dropped"])
def test_a_prompt_that_the_model_has_not_seen_all_of_is_flagged(upstream: Upstream, proxy, role, stream) -> None:
    upstream.reply = OllamaLike(ANSWER, window=8192)
    found = grounding_of(proxy, stream=stream, role=role)
    assert "context_truncated" in found["flags"]
    read, least = found["prompt"]["reported_tokens"], found["prompt"]["at_least_tokens"]
    assert read == (8192 - (8192 - 4) // 2 if role == "system" else 15)
    assert read < least < 16_000
    assert any(f"{read} tokens" in warning and f"at least {least}" in warning for warning in found["warnings"])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_prompt_that_fits_is_not(upstream: Upstream, proxy, stream) -> None:
    upstream.reply = OllamaLike(ANSWER, window=32_768)
    found = grounding_of(proxy, stream=stream)
    assert found["flags"] == []
    assert found["warnings"] == []
    assert found["prompt"]["reported_tokens"] > found["prompt"]["at_least_tokens"] > 10_000
    assert found["prompt"]["truncated"] is False


def test_a_stream_without_a_count_is_reported_as_such(upstream: Upstream, proxy) -> None:
    upstream.reply = OllamaLike(ANSWER, window=8192)
    with sdk(proxy.base_url) as client:
        chunks = list(client.chat.completions.create(model="llama3.2", messages=messages(1000), stream=True))
    found = chunks[-1].model_extra["grounding"]
    assert found["prompt"]["reported_tokens"] is None
    assert "context_truncated" not in found["flags"]


def test_the_headers_report_a_truncation_too(upstream: Upstream, proxy) -> None:
    upstream.reply = OllamaLike(ANSWER, window=8192)
    with sdk(proxy.base_url) as client:
        raw = client.chat.completions.with_raw_response.create(model="llama3.2", messages=messages(1000))
    assert "context_truncated" in raw.headers["x-grounding-flags"].split(",")


def test_a_server_that_counts_otherwise_can_be_excepted(upstream: Upstream, start_proxy) -> None:
    upstream.reply = OllamaLike(ANSWER, window=8192)
    proxy = start_proxy(upstreams={"up": {"base_url": upstream.base_url, "truncation_alarm": False}})
    found = grounding_of(proxy)
    assert found["flags"] == []
    assert found["prompt"]["reported_tokens"] is None


def test_tokens_from_a_cache_were_read_too(upstream: Upstream, proxy) -> None:
    usage = {"prompt_tokens": 40, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 18_000}}
    message = {"role": "assistant", "content": ANSWER}
    body = {"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    upstream.reply = body_reply(as_json(body | {"usage": usage}))
    found = grounding_of(proxy)
    assert found["flags"] == []
    assert found["prompt"]["reported_tokens"] == 18_040


def test_a_report_that_a_job_makes_has_the_alarm_too(upstream: Upstream, start_proxy, tmp_path) -> None:
    upstream.reply = OllamaLike(ANSWER, window=8192)
    proxy = start_proxy(jobs={"url": f"sqlite:///{tmp_path}/jobs.db"}, grounding={"mode": "async"})
    found = proxy.report(grounding_of(proxy, stream=True)["id"])
    assert "context_truncated" in found["flags"]
