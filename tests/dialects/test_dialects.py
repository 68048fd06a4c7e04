"""Rules of every dialect, and the reading of Responses and Messages, in tables."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.dialects.anthropic import MESSAGES
from groundwire.dialects.dialect import Answer, Dialect, Fault
from groundwire.dialects.framing import Event
from groundwire.dialects.jsonbytes import dumps
from groundwire.dialects.ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from groundwire.dialects.openai import CHAT, COMPLETIONS, RESPONSES
from groundwire.dialects.request import DIALECTS, read_request
from groundwire.domain import Choice, Message, Part

NAMES = (
    *("type", "role", "content", "text", "input", "output", "message", "messages", "system", "instructions", "results"),
    *("delta", "index", "output_index", "response", "object", "status", "usage", "item", "content_block", "summary"),
    *("arguments", "stop_reason", "incomplete_details", "reason", "logprobs", "logprob", "tools", "format", "schema"),
    *("prompt", "raw", "images", "options", "temperature", "done", "done_reason", "tool_calls", "function", "error"),
    *("stdout", "outputs", "logs", "source", "data", "thinking", "output_tokens", "choices", "stream_options", "model"),
)
WORDS = (
    *("message", "response", "text", "output_text", "tool_use", "tool_result", "document", "search_result"),
    *("message_start", "message_delta", "content_block_start", "content_block_delta", "text_delta", "input_json_delta"),
    *("response.output_text.delta", "response.completed", "response.incomplete", "completed", "incomplete", "user"),
    *("assistant", "function_call", "function_call_output", "file_search_call", "shell_call_output", "item_reference"),
    *("web_fetch_tool_result", "mcp_tool_result", "input_file", "enabled", "max_tokens", "system"),
)
LEAVES = st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.sampled_from(WORDS) | st.text()
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=25,
)
BODIES = st.dictionaries(st.sampled_from(NAMES), JSON, max_size=8)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@given(body=BODIES, events=st.lists(BODIES, max_size=3), temperature=st.floats(0, 2))
def test_nothing_that_anybody_sends_raises(
    dialect: Dialect, body: dict[str, Any], events: list[dict[str, Any]], temperature: float
) -> None:
    request = read_request(dialect, json.dumps(body | {"model": "m"}).encode(), {})
    exchange = request.exchange()
    assert all(isinstance(part.text, str) for message in exchange.messages for part in message.parts)
    assert all(isinstance(warning, str) for warning in request.warnings)
    assert isinstance(request.ask.json_schema, dict | None)
    assert request.expected_choices >= 1
    assert isinstance(dialect.resampled(body, temperature), dict | None)
    assert isinstance(dialect.continued(body, "An answer.", "A message."), dict | None)
    assert isinstance(dialect.answers_later(body), bool)
    answer = Answer(dialect, 1)
    for event in events:
        answer.add(event)
        assert dialect.carrier_side(event, body) in (None, "before", "after")
    for choice in answer.choices(with_arguments=True):
        assert isinstance(choice.text, str)
        assert isinstance(choice.index, int)
    assert all(isinstance(reason, str) for reason in answer.finish_reasons)
    assert answer.prompt_tokens is None or isinstance(answer.prompt_tokens, int)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_an_event_of_ours_is_one_event(dialect: Dialect) -> None:
    for body in (dialect.own_event({"id": "a"}), dialect.failure(Fault("It broke.", "upstream_error"))):
        raw = dialect.framing.event(dumps(body))
        (event,) = dialect.framing.splitter(2**20).feed(raw)
        assert event == Event(raw, dumps(body))


def test_no_two_dialects_have_a_name_or_a_path_in_common() -> None:
    assert len({dialect.name for dialect in DIALECTS}) == len({dialect.path for dialect in DIALECTS}) == len(DIALECTS)


def said(dialect: Dialect, *events: dict[str, Any]) -> tuple[Choice, ...]:
    answer = Answer(dialect, 1)
    for event in events:
        answer.add(event)
    return answer.choices(with_arguments=True)


def started(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def added(index: int, text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


def test_a_streamed_message_equals_the_whole_message() -> None:
    call = {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'}}
    streamed = said(
        MESSAGES,
        {"type": "message_start", "message": {"id": "msg", "model": "m", "usage": {"input_tokens": 5}}},
        started(0, {"type": "text", "text": ""}),
        added(0, "Hello"),
        started(1, {"type": "text", "text": ""}),
        added(1, " there."),
        started(2, {"type": "tool_use", "input": {}}),
        call,
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
    )
    texts = [{"type": "text", "text": "Hello"}, {"type": "text", "text": " there."}]
    content = [*texts, {"type": "tool_use", "input": {"a": 1}}]
    whole = said(MESSAGES, {"type": "message", "content": content, "stop_reason": "tool_use"})
    assert (
        streamed == whole == (Choice(0, "Hello there.", "tool_calls"), Choice(2, "", "tool_calls", None, ('{"a":1}',)))
    )


@pytest.mark.parametrize(
    ("stop_reason", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("something_new", "something_new"),
        (None, None),
    ],
)
def test_the_stop_reason_of_a_message_maps_to_chat_completions(stop_reason: str | None, reason: str | None) -> None:
    answer = Answer(MESSAGES, 1)
    answer.add(added(0, "Hello."))
    answer.add({"type": "message_delta", "delta": {"stop_reason": stop_reason}})
    assert [choice.finish_reason for choice in answer.choices()] == [reason]
    assert answer.is_finished == (reason is not None)
    assert answer.is_cut_short == (reason is None)


def test_token_counts_of_a_message_come_at_its_start_and_end() -> None:
    answer = Answer(MESSAGES, 1)
    answer.add({"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}})
    answer.add({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}})
    assert answer.usage == {"prompt_tokens": 5, "completion_tokens": 7}


def test_tokens_that_anthropic_had_cached_are_tokens_of_the_prompt() -> None:
    answer = Answer(MESSAGES, 1)
    cached = {"cache_creation_input_tokens": 200, "cache_read_input_tokens": 3000}
    answer.add({"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1, **cached}}})
    answer.add({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}})
    assert answer.prompt_tokens == 3205


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"status": "completed"}, "stop"),
        ({"status": "completed", "output": [{"type": "function_call", "arguments": "{}"}]}, "tool_calls"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"status": "incomplete"}, "length"),
        ({"status": "failed"}, None),
        ({"status": "in_progress"}, None),
        ({}, None),
    ],
    ids=["completed", "called", "out of tokens", "filtered", "incomplete", "failed", "going on", "nothing"],
)
def test_the_status_of_a_response_maps_to_chat_completions(response: dict[str, Any], reason: str | None) -> None:
    answer = Answer.whole(RESPONSES, {"object": "response", **response})
    assert answer.finish_reasons == ((reason,) if reason else ())
    assert answer.is_cut_short == (reason is None)


def test_a_response_that_repeats_its_text_at_its_end_is_read_once() -> None:
    delta = {"type": "response.output_text.delta", "output_index": 1}
    part = {"type": "output_text", "text": "Hello."}
    output = [{"type": "reasoning"}, {"type": "message", "content": [part]}, {"type": "message", "content": [part]}]
    ended = {"type": "response.completed", "response": {"status": "completed", "output": output}}
    found = said(RESPONSES, delta | {"delta": "Hel"}, delta | {"delta": "lo."}, ended)
    assert found == (Choice(1, "Hello.", "stop"), Choice(2, "Hello.", "stop"))


def test_parts_of_one_message_are_one_text_and_refusals_are_none() -> None:
    parts = [{"type": "output_text", "text": "One. "}, {"type": "refusal", "refusal": "No."}]
    message = {"type": "message", "content": [*parts, {"type": "output_text", "text": "Two."}]}
    assert said(RESPONSES, {"object": "response", "status": "completed", "output": [message]}) == (
        Choice(0, "One. Two.", "stop"),
    )


def test_a_bounded_part_of_endless_tool_results_is_stored() -> None:
    answer = Answer(MESSAGES, 1)
    for _ in range(40):
        answer.add(started(0, {"type": "mcp_tool_result", "content": "x" * 2**17}))
    assert sum(len(source.text) for source in answer.given) == 2**22
    assert {source.kind for source in answer.given} == {"tool"}


def test_system_prompts_are_counted_before_the_messages() -> None:
    asked = {"messages": [{"role": "user", "content": "Hello."}]}
    user, system = Part("Hello."), Part("Be brief.")
    assert MESSAGES.messages(asked) == (Message(0, "user", (user,)),)
    assert MESSAGES.messages(asked | {"system": "Be brief."}) == (
        Message(0, "system", (system,)),
        Message(1, "user", (user,)),
    )
    assert RESPONSES.messages({"input": "Hello.", "instructions": "Be brief."}) == (
        Message(0, "system", (system,)),
        Message(1, "user", (user,)),
    )


def test_passages_of_files_are_documents_of_their_files() -> None:
    result = {"file_id": "file-1", "filename": "acme.txt", "text": "Acme."}
    asked = {"input": [{"type": "reasoning", "summary": []}, {"type": "file_search_call", "results": [result]}]}
    assert RESPONSES.messages(asked) == (Message(1, "tool", (Part("Acme.", "document", "file-1", "acme.txt"),)),)


QUESTION = [{"role": "user", "content": "Why?"}]
TURNS = [{"role": "assistant", "content": "So."}, {"role": "user", "content": "No."}]


@pytest.mark.parametrize(
    ("dialect", "asked", "continued"),
    [
        pytest.param(
            CHAT,
            {"messages": QUESTION, "temperature": 0.2, "stream": True, "stream_options": {}, "n": 1},
            {"messages": [*QUESTION, *TURNS], "temperature": 0.2},
            id="chat",
        ),
        pytest.param(
            MESSAGES,
            {"messages": QUESTION, "stream": True, "thinking": {"type": "enabled"}, "max_tokens": 9},
            {"messages": [*QUESTION, *TURNS], "thinking": {"type": "enabled"}, "max_tokens": 9},
            id="messages",
        ),
        pytest.param(
            RESPONSES,
            {"input": "Why?", "previous_response_id": "r", "stream": True},
            {"input": [*QUESTION, *TURNS], "previous_response_id": "r", "store": False},
            id="responses",
        ),
        pytest.param(RESPONSES, {"input": "Why?", "conversation": "c"}, None, id="a conversation of the server's"),
        pytest.param(RESPONSES, {"prompt": {"id": "p"}}, None, id="a stored prompt"),
        pytest.param(
            OLLAMA_CHAT, {"messages": QUESTION}, {"messages": [*QUESTION, *TURNS], "stream": False}, id="ollama"
        ),
        pytest.param(OLLAMA_GENERATE, {"prompt": "Why?"}, None, id="generate"),
        pytest.param(COMPLETIONS, {"prompt": "Why?"}, None, id="completions"),
        pytest.param(CHAT, {"messages": "Why?"}, None, id="no messages"),
    ],
)
def test_a_request_is_continued_with_its_answer_and_a_message(dialect: Dialect, asked: Any, continued: Any) -> None:
    assert dialect.continued(asked, "So.", "No.") == continued


def test_a_resampled_request_leaves_no_traces_at_the_server() -> None:
    asked = {"model": "m", "input": "x", "stream": True, "store": True, "previous_response_id": "resp"}
    again = {"model": "m", "input": "x", "store": False, "previous_response_id": "resp", "temperature": 0.1}
    assert RESPONSES.resampled(asked, 0.1) == again
    assert RESPONSES.resampled(asked | {"conversation": "conv"}, 0.1) is None
    assert MESSAGES.resampled({"model": "m", "stream": True, "thinking": {"type": "disabled"}}, 1.5) == {
        "model": "m",
        "thinking": {"type": "disabled"},
        "temperature": 1.0,
    }


@pytest.mark.parametrize(
    ("status", "type_"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (504, "timeout_error"),
    ],
)
def test_errors_have_the_types_that_anthropic_gives_their_status(status: int, type_: str) -> None:
    told = MESSAGES.error(Fault("It broke.", "upstream_error", status=status))
    assert told == {"type": "error", "error": {"type": type_, "message": "It broke."}}
