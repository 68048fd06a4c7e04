"""Choices of an answer, whole or from deltas, with any other content of its events."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.dialects.dialect import MAX_CHOICES, Answer
from groundwire.dialects.openai import CHAT, COMPLETIONS
from groundwire.domain import Choice


def delta(index: int = 0, finish: str | None = None, **said: Any) -> dict[str, Any]:
    return {"id": "a", "model": "m", "choices": [{"index": index, "delta": said, "finish_reason": finish}]}


def streamed(*events: dict[str, Any], expected: int = 1) -> Answer:
    answer = Answer(CHAT, expected)
    for event in events:
        answer.add(event)
    return answer


def test_a_whole_body_is_an_answer() -> None:
    answer = Answer.whole(
        CHAT,
        {
            "id": "a",
            "model": "m",
            "choices": [
                {"index": 1, "message": {"content": "two"}, "finish_reason": "stop"},
                {"index": 0, "message": {"content": "one"}, "finish_reason": "length"},
            ],
            "usage": {"prompt_tokens": 3},
        },
    )
    assert answer.choices() == (Choice(0, "one", "length"), Choice(1, "two", "stop"))
    assert (answer.id, answer.model, answer.usage, answer.length) == ("a", "m", {"prompt_tokens": 3}, 6)
    assert answer.finish_reasons == ("length", "stop")
    assert not answer.is_cut_short


def test_choices_over_the_limit_count_as_unread() -> None:
    said = [{"index": at, "message": {"content": "Six."}, "finish_reason": "stop"} for at in range(MAX_CHOICES + 3)]
    answer = Answer.whole(CHAT, {"choices": said})
    choices = answer.choices()
    assert len(choices) == MAX_CHOICES
    assert [each.unread for each in choices[:2]] == [3 * len("Six."), 0]
    answer.add(delta(0, content="more"))
    assert answer.choices()[0].text == "Six.more"


def test_deltas_of_two_choices_interleave() -> None:
    answer = streamed(
        delta(0, content="He"),
        delta(1, content="Good"),
        delta(0, content="llo"),
        delta(1, "stop", content="bye"),
        expected=2,
    )
    assert answer.choices() == (Choice(0, "Hello"), Choice(1, "Goodbye", "stop"))
    assert not answer.is_finished
    assert answer.is_cut_short
    answer.add(delta(0, "stop"))
    assert answer.is_finished
    assert not answer.is_cut_short


def test_nothing_that_came_is_cut_short() -> None:
    assert streamed().is_cut_short
    assert streamed({"error": {"message": "x"}}).is_cut_short


@given(st.text(max_size=40), st.lists(st.integers(0, 40), max_size=6))
def test_deltas_add_up_to_the_whole(text: str, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(edges)]
    answer = streamed(*(delta(content=piece) for piece in pieces), delta(finish="stop"))
    whole = Answer.whole(CHAT, {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
    assert answer.choices() == whole.choices()
    assert answer.length == len(text)


def test_tool_arguments_come_together_by_call() -> None:
    def call(index: int, arguments: str) -> dict[str, Any]:
        return {"index": index, "function": {"arguments": arguments}}

    answer = streamed(
        delta(tool_calls=[call(0, '{"a":'), call(1, "{}")]),
        delta(tool_calls=[call(0, "1}")]),
        delta(finish="tool_calls"),
    )
    assert answer.choices(with_arguments=True) == (Choice(0, "", "tool_calls", None, ('{"a":1}', "{}")),)
    assert answer.choices() == (Choice(0, "", "tool_calls"),)


def test_reasoning_and_refusals_are_no_answer_text() -> None:
    answer = streamed(delta(reasoning_content="hm", reasoning="hm"), delta(refusal="no"), delta(content="yes"))
    assert answer.choices() == (Choice(0, "yes"),)


def test_certainty_is_the_mean_token_probability() -> None:
    first = delta(content="a")
    first["choices"][0]["logprobs"] = {"content": [{"logprob": 0.0}, {"logprob": math.log(0.5)}]}
    (choice,) = streamed(first, delta(finish="stop")).choices()
    assert choice.certainty == pytest.approx(0.75)


def test_the_event_for_a_verdict_names_its_answer() -> None:
    answer = streamed({**delta(content="x"), "created": 5, "usage": None})
    assert answer.own_event == {
        "id": "a",
        "model": "m",
        "created": 5,
        "object": "chat.completion.chunk",
        "choices": [],
    }


def test_older_completions_are_read_too() -> None:
    answer = Answer.whole(
        COMPLETIONS, {"choices": [{"text": "a", "index": 0, "finish_reason": "stop", "logprobs": None}]}
    )
    assert answer.choices() == (Choice(0, "a", "stop"),)


KEYS = (
    *("choices", "delta", "message", "content", "text", "finish_reason", "index", "usage", "id"),
    *("tool_calls", "function", "arguments", "logprobs", "logprob"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.text(st.characters(), max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
        )
    ),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.sampled_from(["choices", "usage", "id"]), JSON) | st.just({}), max_size=3))
def test_no_event_raises(events: list[dict[str, Any]]) -> None:
    for dialect in (CHAT, COMPLETIONS):
        answer = Answer(dialect, 1)
        for event in events:
            answer.add(event)
        assert all(isinstance(choice.text, str) for choice in answer.choices(with_arguments=True))
        assert isinstance(answer.is_finished, bool)


def test_a_logprob_out_of_all_bounds_is_no_obstacle() -> None:
    event = delta(content="a")
    event["choices"][0]["logprobs"] = {"content": [{"logprob": -(10**400)}, {"logprob": 10**400}, {"logprob": True}]}
    (choice,) = streamed(event).choices()
    assert choice.text == "a"
    assert choice.certainty is None or 0 <= choice.certainty <= 1


def test_the_stored_part_of_an_endless_answer_is_bounded() -> None:
    """The limit applies to text and to tool calls; text over it is counted as unread, and its bytes are ignored."""
    answer = Answer(CHAT, expected=1)
    piece = "x" * 100_000
    for _ in range(8):
        call = {"index": 0, "function": {"arguments": piece}}
        answer.add({"choices": [{"index": 0, "delta": {"content": piece, "tool_calls": [call]}}]})
    (choice,) = answer.choices(with_arguments=True)
    assert (len(choice.text), sum(map(len, choice.arguments))) == (2**19, 2**19)
    assert choice.unread == 2 * (800_000 - 2**19)
