"""A request's body, read for routing and verification, and the forwarded bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.dialects.openai import CHAT, COMPLETIONS
from groundwire.dialects.request import Request, read_request
from groundwire.domain import Exchange, Message, Part
from groundwire.errors import UnreadableBody
from groundwire.pipeline import Ask

MEMBERS = st.dictionaries(
    st.sampled_from(["messages", "user", "seed", "stream", "x", "documents", "naïve"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just({"grounding": 1, "documents": []}),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
        max_leaves=5,
    ),
    max_size=5,
)


def request(body: Any, dialect: Any = CHAT, **headers: str) -> Request:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_request(dialect, raw, headers)


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b'"x"', b"null", '{"model":"m"}'.encode("utf-16")],
    ids=["empty", "half", "array", "string", "null", "UTF-16"],
)
def test_a_body_that_is_no_request_is_refused(raw: bytes) -> None:
    with pytest.raises(UnreadableBody):
        request(raw)


@pytest.mark.parametrize("raw", [b"{}", b'{"model":null}', b'{"model":""}', b'{"model":["m"]}'])
def test_a_request_may_name_no_model(raw: bytes) -> None:
    asked = request(raw)
    assert (asked.model, asked.outgoing(asked.model, forwards_documents=False)) == ("", raw)


@given(MEMBERS, st.booleans(), st.booleans())
def test_grounding_never_goes_out_and_nothing_else_is_lost(
    members: dict[str, Any], first: bool, forwards: bool
) -> None:
    ours = {"grounding": {"mode": "sync", "sources": [{"text": "x"}]}}
    sent = {**ours, **members, "model": "m"} if first else {"model": "m", **members, **ours}
    out = request(sent).outgoing("m", forwards_documents=forwards)
    gone = {"grounding"} if forwards else {"grounding", "documents"}
    assert json.loads(out) == {name: value for name, value in sent.items() if name not in gone}


@given(MEMBERS)
def test_a_body_with_nothing_for_us_goes_out_as_the_same_bytes(members: dict[str, Any]) -> None:
    members.pop("documents", None)
    raw = json.dumps({"model": "m", **members}, indent=1, ensure_ascii=False).encode()
    assert request(raw).outgoing("m", forwards_documents=False) is raw


def test_documents_go_out_only_where_they_are_understood() -> None:
    asked = request(b'{"model":"m","documents":["x"],"a":1}')
    assert asked.outgoing("m", forwards_documents=True) == asked.raw
    assert asked.outgoing("m", forwards_documents=False) == b'{"model":"m","a":1}'


def test_an_aliased_model_goes_out_under_its_other_name() -> None:
    raw = b'{ "model" : "fast", "messages":[{"model":"fast"}], "grounding":{} }'
    assert request(raw).outgoing("llama3:8b", False) == b'{ "model" : "llama3:8b", "messages":[{"model":"fast"}] }'


@pytest.mark.parametrize(
    ("body", "choices"),
    [
        ({}, 1),
        ({"n": 3}, 3),
        ({"n": 0}, 1),
        ({"n": "2"}, 1),
        ({"prompt": ["a", "b"]}, 2),
        ({"prompt": ["a", "b"], "n": 2}, 4),
        ({"prompt": [1, 2, 3]}, 1),
        ({"prompt": [[1], [2]]}, 2),
        ({"prompt": []}, 1),
    ],
    ids=str,
)
def test_the_body_gives_the_expected_number_of_choices(body: dict[str, Any], choices: int) -> None:
    assert request({"model": "m", **body}, COMPLETIONS).expected_choices == choices


@pytest.mark.parametrize(
    ("body", "usage"),
    [
        ({}, False),
        ({"stream": True}, False),
        ({"stream": True, "stream_options": {"include_usage": True}}, True),
        ({"stream": True, "stream_options": None}, False),
        ({"stream": True, "stream_options": {"include_usage": "yes"}}, False),
    ],
    ids=str,
)
def test_the_last_event_is_the_usage_event_where_one_is_wanted(body: dict[str, Any], usage: bool) -> None:
    finish, tokens = {"choices": [{"finish_reason": "stop"}]}, {"choices": [], "usage": {"prompt_tokens": 1}}
    assert CHAT.carrier_side(finish, body) == (None if usage else "after")
    assert CHAT.carrier_side(tokens, body) == ("before" if usage else "after")


def test_verification_reads_messages_sources_and_schema() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello."}],
        "documents": ["The sky is blue."],
        "temperature": 1,
        "grounding": {"sources": [{"text": "Grass is green."}], "evidence_fields": ["q"]},
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}},
    }
    asked = request(body)
    exchange = asked.exchange()
    assert exchange.messages == (Message(0, "user", (Part("Hello."),)),)
    assert [source.text for source in exchange.sources] == ["Grass is green.", "The sky is blue."]
    assert exchange.temperature == 1.0
    assert asked.ask == Ask(("q",), {"type": "object"})


@pytest.mark.parametrize(
    "response_format",
    [
        None,
        "json",
        {"type": "json_object"},
        {"json_schema": None},
        {"json_schema": {"schema": []}},
        {"json_schema": []},
    ],
    ids=str,
)
def test_other_response_formats_hold_no_schema(response_format: Any) -> None:
    assert request({"model": "m", "response_format": response_format}).ask == Ask()


@pytest.mark.parametrize(
    ("temperature", "read"),
    [(0, 0.0), (0.7, 0.7), (None, None), ("hot", None), (True, None), (10**400, None), (float("nan"), None)],
    ids=["zero", "a share", "null", "a word", "true", "huge", "no number"],
)
def test_only_a_sensible_temperature_counts(temperature: Any, read: float | None) -> None:
    assert request({"model": "m", "temperature": temperature}).exchange().temperature == read


def test_an_older_completions_prompt_is_one_user_message() -> None:
    asked = request({"model": "m", "prompt": ["The sky is blue.", "Grass is green.", 5]}, COMPLETIONS)
    assert asked.exchange() == Exchange((Message(0, "user", (Part("The sky is blue."), Part("Grass is green."))),))
    tokens = request({"model": "m", "prompt": [1, 2]}, COMPLETIONS)
    assert tokens.exchange() == Exchange()
    assert tokens.warnings == ("prompt: it has tokens instead of text, which were not read",)


@pytest.mark.parametrize(
    ("body", "warnings"),
    [
        ({"messages": [{"role": "user", "content": "text"}]}, 0),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, 0),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]}, 1),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}, {"type": "text"}]}]},
            1,
        ),
        ({"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]}, 1),
        ({"messages": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}]}, 0),
        ({"documents": 5}, 1),
        ({"documents": ["text"]}, 0),
        ({"grounding": {"session": "s"}}, 0),
    ],
    ids=["text", "text part", "image", "audio", "file by id", "refusal", "documents", "good documents", "session"],
)
def test_unread_content_is_reported_in_a_warning(body: dict[str, Any], warnings: int) -> None:
    assert len(request({"model": "m", **body}).warnings) == warnings
