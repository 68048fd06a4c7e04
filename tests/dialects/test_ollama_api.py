"""Requests and answers of Ollama's API."""

from __future__ import annotations

from typing import Any

import pytest

from groundwire.dialects.dialect import Answer, Dialect
from groundwire.dialects.ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from groundwire.domain import Message, Part


def heard(dialect: Dialect, *events: dict[str, Any]) -> Answer:
    answer = Answer(dialect, 1)
    for event in events:
        answer.add(event)
    return answer


def chat(content: str, *, done: bool = False, **more: Any) -> dict[str, Any]:
    line = {"model": "m", "message": {"role": "assistant", "content": content}, "done": done}
    return line | more


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        pytest.param({"prompt": "Why?"}, (Message(0, "user", (Part("Why?"),)),), id="a prompt"),
        pytest.param(
            {"prompt": "Why?", "system": "Blue."},
            (Message(0, "system", (Part("Blue."),)), Message(1, "user", (Part("Why?"),))),
            id="with a system prompt",
        ),
        pytest.param(
            {"prompt": "[INST] Why?", "system": "Blue.", "raw": True},
            (Message(0, "user", (Part("[INST] Why?"),)),),
            id="a raw prompt, which nothing is added to",
        ),
        pytest.param({"prompt": "", "keep_alive": 0}, (), id="nothing but an order to unload"),
        pytest.param({"prompt": ["Why?"]}, (), id="no text"),
    ],
)
def test_a_generate_request_is_read_as_messages(body: dict[str, Any], messages: tuple[Message, ...]) -> None:
    assert OLLAMA_GENERATE.messages(body) == messages


def test_a_stream_comes_to_its_text_its_counts_and_its_reason() -> None:
    answer = heard(
        OLLAMA_CHAT,
        chat("The sky"),
        chat(" is blue.", logprobs=[{"token": " is", "logprob": 0.0}]),
        chat("", done=True, done_reason="length", prompt_eval_count=9, eval_count=4),
    )
    (choice,) = answer.choices()
    assert (choice.text, choice.finish_reason, choice.certainty) == ("The sky is blue.", "length", 1.0)
    assert answer.is_finished
    assert not answer.is_cut_short
    assert (answer.model, answer.prompt_tokens) == ("m", 9)
    assert answer.usage["completion_tokens"] == 4


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        pytest.param({"done_reason": "stop"}, "stop", id="stopped"),
        pytest.param({}, "stop", id="an old server"),
        pytest.param({"done_reason": "load"}, "load", id="a model loaded"),
        pytest.param({"done_reason": 7}, "stop", id="no text"),
    ],
)
def test_the_done_reason_becomes_the_finish_reason(line: dict[str, Any], reason: str) -> None:
    assert heard(OLLAMA_CHAT, chat("x", done=True, **line)).finish_reasons == (reason,)


def test_thoughts_are_no_part_of_an_answer() -> None:
    thinking = {"model": "m", "message": {"role": "assistant", "content": "", "thinking": "Hm."}, "done": False}
    assert heard(OLLAMA_CHAT, thinking, chat("Blue.", done=True)).choices()[0].text == "Blue."
    generated = {"model": "m", "response": "Blue.", "thinking": "Hm.", "done": True}
    assert heard(OLLAMA_GENERATE, generated).choices()[0].text == "Blue."


def test_calls_of_tools_are_arguments_as_json() -> None:
    calls = [{"function": {"name": "f", "arguments": {"a": 1}}}, {"function": {"name": "g", "arguments": {}}}]
    line = chat("", done=True)
    line["message"] = line["message"] | {"tool_calls": calls}
    assert heard(OLLAMA_CHAT, line).choices(with_arguments=True)[0].arguments == ('{"a":1}', "{}")


def test_calls_of_tools_in_lines_of_their_own_stay_apart() -> None:
    events = [chat(""), chat(""), chat("", done=True)]
    for index, event in enumerate(events[:2]):
        call = {"function": {"index": index, "name": "f", "arguments": {"a": index}}}
        event["message"] = event["message"] | {"tool_calls": [call]}
    assert heard(OLLAMA_CHAT, *events).choices(with_arguments=True)[0].arguments == ('{"a":0}', '{"a":1}')


def test_a_stream_that_ends_in_an_error_is_cut_short() -> None:
    assert heard(OLLAMA_CHAT, chat("The sky"), {"error": "out of memory"}).is_cut_short
    assert heard(OLLAMA_CHAT, {"error": "out of memory"}).is_cut_short


def test_a_sample_is_the_same_request_at_another_temperature() -> None:
    asked = {"model": "m", "prompt": "Why?", "options": {"seed": 1, "temperature": 1}, "stream": True, "keep_alive": 0}
    again = {"model": "m", "prompt": "Why?", "options": {"seed": 1, "temperature": 0.1}, "stream": False}
    assert OLLAMA_GENERATE.resampled(asked, 0.1) == again
    assert OLLAMA_GENERATE.temperature(asked) == 1


@pytest.mark.parametrize(
    ("given", "schema"),
    [("json", None), ({"type": "object"}, {"type": "object"}), (None, None), ("", None)],
)
def test_only_a_schema_is_one(given: Any, schema: Any) -> None:
    assert OLLAMA_CHAT.schema({"format": given}) == schema
