"""`grounding_of` with the real SDKs, whole and streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from groundwire.integrations import GroundingStream, grounding_of, grounding_of_async
from tests.edge.proxies import Proxy
from tests.edge.shapes import message, message_events, response, response_events, text_block, text_item
from tests.edge.upstream import Upstream, as_json, body_reply, stream_reply
from tests.integrations.conftest import ANSWER, MESSAGES, QUESTION, SYSTEM, labels

ASK: dict[str, Any] = {"model": "m", "messages": MESSAGES}
CLAUDE: dict[str, Any] = {"model": "m", "max_tokens": 99, "system": SYSTEM, "messages": MESSAGES[1:]}
FOUND = ["supported", "contradicted"]
TOOL: Any = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}


@pytest.fixture
def client(proxy: Proxy) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=proxy.base_url, api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture
def claude(proxy: Proxy) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=proxy.url, api_key="k", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("usage", [False, True], ids=["", "with usage"])
def test_openai_chat_whole_and_streamed(client: openai.OpenAI, usage: bool) -> None:
    assert labels(grounding_of(client.chat.completions.create(**ASK))) == FOUND
    options: dict[str, Any] = {"stream_options": {"include_usage": True}} if usage else {}
    assert labels(grounding_of(client.chat.completions.create(**ASK, stream=True, **options))) == FOUND
    chunks = list(client.chat.completions.create(**ASK, stream=True, **options))
    assert labels(grounding_of(chunks)) == FOUND
    assert grounding_of(chunks[0]) is None
    assert labels(grounding_of([chunk.model_dump() for chunk in chunks])) == FOUND


def test_openai_with_tools_and_structured_output(client: openai.OpenAI) -> None:
    called = client.chat.completions.create(**ASK, tools=[TOOL])
    found = grounding_of(called)
    assert called.choices[0].message.tool_calls
    assert found
    assert found["verdict"] == "not_applicable"
    schema: Any = {"type": "json_schema", "json_schema": {"name": "c", "schema": {"type": "object"}}}
    assert labels(grounding_of(client.chat.completions.create(**ASK, response_format=schema))) == ["supported"]


def test_the_stream_helper_of_openai_has_it(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(**ASK) as stream:
        assert labels(grounding_of(stream)) == FOUND


def test_a_stream_is_passed_on_and_its_report_recorded(client: openai.OpenAI) -> None:
    stream = GroundingStream(client.chat.completions.create(**ASK, stream=True))
    assert stream.grounding is None
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == ANSWER
    assert labels(stream.grounding) == FOUND


def test_asynchronous_streams(proxy: Proxy) -> None:
    async def work() -> None:
        async with openai.AsyncOpenAI(base_url=proxy.base_url, api_key="k", max_retries=0) as client:
            stream = await client.chat.completions.create(**ASK, stream=True)
            with pytest.raises(TypeError, match="grounding_of_async"):
                grounding_of(stream)
            assert labels(await grounding_of_async(stream)) == FOUND
            recorded = GroundingStream(await client.chat.completions.create(**ASK, stream=True))
            assert len([chunk async for chunk in recorded]) > 2
            assert labels(recorded.grounding) == FOUND

    asyncio.run(work())


def test_openai_responses_whole_and_streamed(client: openai.OpenAI, upstream: Upstream) -> None:
    ask: dict[str, Any] = {"model": "m", "instructions": SYSTEM, "input": QUESTION}
    upstream.reply = body_reply(as_json(response(text_item(ANSWER))))
    assert labels(grounding_of(client.responses.create(**ask))) == FOUND
    upstream.reply = stream_reply(response_events(text_item(ANSWER)))
    assert labels(grounding_of(client.responses.create(**ask, stream=True))) == FOUND


def test_anthropic_whole_and_streamed(claude: anthropic.Anthropic, upstream: Upstream) -> None:
    upstream.reply = body_reply(as_json(message(text_block(ANSWER))))
    assert labels(grounding_of(claude.messages.create(**CLAUDE))) == FOUND
    upstream.reply = stream_reply(message_events(text_block(ANSWER)))
    assert labels(grounding_of(claude.messages.create(**CLAUDE, stream=True))) == FOUND
    with claude.messages.stream(**CLAUDE) as stream:
        recorded = GroundingStream(stream)
        assert [event.type for event in recorded][-1] == "message_stop"
        assert labels(recorded.grounding) == FOUND
        assert stream.get_final_text() == ANSWER


@pytest.mark.parametrize("value", [None, "text", 7, {}, {"grounding": "solid"}, [], iter([]), object()])
def test_there_is_no_report_in_other_things(value: object) -> None:
    assert grounding_of(value) is None
