"""Build the components that settings describe, with secrets from the environment."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from groundwire.config import Settings
from groundwire.container import Container, build_container
from groundwire.dialects.openai import CHAT
from groundwire.errors import ConfigError
from groundwire.upstream.litellm import LitellmUpstream
from groundwire.upstream.upstream import OpenAIUpstream
from groundwire.wire import Call

UPSTREAMS = {
    "ollama": {"base_url": "http://ollama/v1", "models": ["*"]},
    "vllm": {"base_url": "http://vllm/v1", "models": ["qwen"], "api_key_env": "VLLM_KEY", "forwards_documents": True},
    "claude": {
        "dialect": "litellm",
        "litellm_model": "anthropic/*",
        "models": ["claude-*"],
        "api_key_env": "CLAUDE_KEY",
    },
}
SECRETS = {"VLLM_KEY": "sk-vllm", "CLAUDE_KEY": "sk-claude"}
ASKED = {"messages": [{"role": "user", "content": "Hello."}], "documents": ["The sky is blue."], "grounding": {}}


def build(environ: dict[str, str], **options: Any) -> Container:
    return build_container(Settings.model_validate({"upstreams": UPSTREAMS}), environ, **options)


@pytest.mark.parametrize(
    ("environ", "problem"),
    [
        ({"CLAUDE_KEY": "x"}, "upstreams.vllm.api_key_env: the variable VLLM_KEY is not set"),
        ({"VLLM_KEY": "x"}, "upstreams.claude.api_key_env: the variable CLAUDE_KEY is not set"),
        ({"VLLM_KEY": "", "CLAUDE_KEY": "x"}, "upstreams.vllm.api_key_env: the variable VLLM_KEY is not set"),
    ],
    ids=["missing", "missing for litellm", "empty"],
)
def test_a_missing_secret_is_reported_before_anything_is_served(environ: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(environ)
    assert caught.value.problems == (problem,)


def test_all_missing_secrets_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        build({})
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "upstreams.vllm.api_key_env",
        "upstreams.claude.api_key_env",
    ]


def test_every_upstream_is_of_its_dialect() -> None:
    upstreams = build(SECRETS).passage.router.upstreams
    assert [type(upstream) for upstream in upstreams] == [OpenAIUpstream, OpenAIUpstream, LitellmUpstream]
    assert [(upstream.name, upstream.provider) for upstream in upstreams] == [
        ("ollama", "openai"),
        ("vllm", "openai"),
        ("claude", "anthropic"),
    ]


@pytest.mark.parametrize(
    ("model", "host", "authorization", "documents"),
    [("llama", "ollama", "Bearer sk-client", False), ("qwen", "vllm", "Bearer sk-vllm", True)],
)
def test_each_upstream_gets_its_own_key_and_what_it_understands(
    model: str, host: str, authorization: str, documents: bool
) -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, stream=httpx.ByteStream(b"{}"))

    async def work() -> None:
        container = build(SECRETS, transport=httpx.MockTransport(answer))
        body = json.dumps({"model": model, **ASKED}).encode()
        await container.completions.complete(
            CHAT, Call("POST", "/chat/completions", ((b"authorization", b"Bearer sk-client"),), body)
        )
        await container.close()

    asyncio.run(work())
    (request,) = sent
    assert request.url.host == host
    assert request.headers["authorization"] == authorization
    assert ("documents" in json.loads(request.content)) is documents
    assert "grounding" not in json.loads(request.content)
