"""Anthropic's Messages API through the proxy, with the real SDK and byte by byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import pytest

from tests.edge.clients import RawClient, data_of, events_of, fetch, grounding_added, inserted
from tests.edge.proxies import Proxy
from tests.edge.shapes import call_block, message, message_events, named_event, text_block, thinking_block
from tests.edge.upstream import Cut, Received, Reply, Upstream, as_json, body_reply, stream_reply

CONTEXT = "Acme Corp was founded in Oslo by Ingrid Dahl in 1998. It reported revenue of $4.2 million in 2023."
TRUE, FALSE = "Acme Corp was founded in Oslo by Ingrid Dahl in 1998.", "It reported revenue of $4.9 million in 2023."
ANSWER = f"{TRUE} {FALSE}"
QUESTION: Any = {"role": "user", "content": "What is known about Acme Corp?"}
ASK: dict[str, Any] = {"model": "m", "max_tokens": 100, "system": CONTEXT, "messages": [QUESTION]}
HEADERS = (("content-type", "application/json"), ("x-api-key", "sk-ant-test"), ("anthropic-version", "2023-06-01"))


@pytest.fixture
def claude(proxy: Proxy) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=proxy.url, api_key="sk-ant-test", max_retries=0, timeout=60) as client:
        yield client


def post(proxy: Proxy, request: dict[str, Any], *headers: tuple[str, str]) -> RawClient:
    return fetch(proxy.port, "POST", "/v1/messages", (*HEADERS, *headers), json.dumps(request).encode())


def whole(upstream: Upstream, proxy: Proxy, *blocks: Any, **request: Any) -> dict[str, Any]:
    upstream.reply = body_reply(as_json(message(*blocks)))
    found: dict[str, Any] = post(proxy, ASK | request).json()["grounding"]
    return found


def labels(grounding: dict[str, Any]) -> list[str]:
    return [claim["label"] for choice in grounding["choices"] for claim in choice["claims"]]


def test_a_body_is_passed_byte_for_byte_with_its_verdict(upstream: Upstream, proxy: Proxy) -> None:
    body = as_json(message(text_block(ANSWER)))
    upstream.reply = body_reply(body)
    answer = post(proxy, ASK | {"grounding": {"session": "s"}})
    assert labels(grounding_added(body, answer.body)) == ["supported", "contradicted"]
    assert answer.header("x-grounding-verdict") == "partially_grounded"
    received = upstream.requests[-1]
    assert (received.path, received.header("x-api-key")) == ("/v1/messages", "sk-ant-test")
    assert (received.header("anthropic-version"), received.json()) == ("2023-06-01", ASK)


def test_a_stream_is_passed_byte_for_byte_with_the_verdict_on_the_stop_reason(upstream: Upstream, proxy: Proxy) -> None:
    events = message_events(thinking_block("The moon is made of cheese."), text_block(ANSWER))
    upstream.reply = stream_reply(events)
    answer = post(proxy, ASK | {"stream": True})
    assert labels(grounding_added(b"".join(events), answer.body)) == ["supported", "contradicted"]
    delta, stop = events_of(answer.body)[-2:]
    assert json.loads(data_of(delta))["grounding"]["status"] == "complete"
    assert stop == events[-1]


def test_the_sdk_finds_it_on_the_message(upstream: Upstream, claude: anthropic.Anthropic) -> None:
    upstream.reply = body_reply(as_json(message(text_block(ANSWER))))
    found = claude.messages.create(**ASK)
    assert found.content[0].text == ANSWER
    assert labels((found.model_extra or {})["grounding"]) == ["supported", "contradicted"]


def test_the_sdk_streams_and_finds_it_on_the_last_delta(upstream: Upstream, claude: anthropic.Anthropic) -> None:
    upstream.reply = stream_reply(message_events(text_block(ANSWER)))
    got = list(claude.messages.create(**ASK, stream=True))
    assert [event.type for event in got[-2:]] == ["message_delta", "message_stop"]
    assert labels((got[-2].model_extra or {})["grounding"]) == ["supported", "contradicted"]


def test_the_sdk_sums_up_a_stream_and_shows_it_on_the_way(upstream: Upstream, claude: anthropic.Anthropic) -> None:
    upstream.reply = stream_reply(message_events(text_block(ANSWER), call_block(q="Acme"), stop_reason="tool_use"))
    with claude.messages.stream(**ASK) as stream:
        told = [event.model_extra["grounding"] for event in stream if event.type == "message_delta"]
        final = stream.get_final_message()
        assert stream.response.headers["x-grounding-id"] == told[0]["id"]
    assert labels(told[0]) == ["supported", "contradicted"]
    assert (final.content[0].text, final.content[1].input) == (ANSWER, {"q": "Acme"})
    assert (final.stop_reason, final.usage.output_tokens) == ("tool_use", 12)


def test_blocks_of_one_text_are_read_as_one(upstream: Upstream, proxy: Proxy) -> None:
    """Cited answers have this form: a sentence in several blocks, divided by their citations."""
    blocks = (
        "🟦 Acme Corp was founded",
        " in Oslo by Ingrid Dahl in 1998.",
        " It reported revenue",
        " of $4.9 million.",
    )
    grounding = whole(upstream, proxy, thinking_block("Hm."), *map(text_block, blocks))
    assert labels(grounding) == ["supported", "contradicted"]
    (choice,) = grounding["choices"]
    assert choice["index"] == 1
    assert all("".join(blocks)[claim["start"] : claim["end"]] == claim["text"] for claim in choice["claims"])


def test_text_before_and_after_a_call_forms_separate_choices(upstream: Upstream, proxy: Proxy) -> None:
    blocks = (text_block(TRUE), call_block(q="Acme"), text_block(FALSE))
    choices = whole(upstream, proxy, *blocks)["choices"]
    assert [(choice["index"], choice["verdict"]) for choice in choices] == [(0, "grounded"), (2, "ungrounded")]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_input_of_a_tool_is_checked_on_request(upstream: Upstream, proxy: Proxy, stream: bool) -> None:
    blocks = (text_block(TRUE), call_block(note=FALSE))
    request = ASK | {"stream": stream, "grounding": {"check_tool_calls": True}}
    upstream.reply = stream_reply(message_events(*blocks)) if stream else body_reply(as_json(message(*blocks)))
    answer = post(proxy, request)
    body = json.loads(data_of(events_of(answer.body)[-2])) if stream else answer.json()
    choices = body["grounding"]["choices"]
    assert [(choice["index"], choice["verdict"]) for choice in choices] == [(0, "grounded"), (1, "ungrounded")]
    assert choices[1]["claims"][0]["pointer"] == "/tool_calls/0/function/arguments/note"


def _user(*blocks: Any) -> dict[str, Any]:
    return {"messages": [QUESTION, {"role": "user", "content": list(blocks)}]}


_FETCHED = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": CONTEXT}, "title": "A"}
EVIDENCE: dict[str, dict[str, Any]] = {
    "system": {"system": CONTEXT},
    "system blocks": {"system": [{"type": "text", "text": CONTEXT, "cache_control": {"type": "ephemeral"}}]},
    "text": _user({"type": "text", "text": CONTEXT}),
    "document": _user(_FETCHED),
    "document of blocks": _user(
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": CONTEXT}]}}
    ),
    "search result": _user(
        {"type": "search_result", "source": "u", "title": "t", "content": [{"type": "text", "text": CONTEXT}]}
    ),
    "tool result": _user({"type": "tool_result", "tool_use_id": "t", "content": CONTEXT}),
    "tool result in blocks": _user(
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": CONTEXT}]}
    ),
    "result of a fetch on the server": {
        "messages": [
            QUESTION,
            {
                "role": "assistant",
                "content": [
                    {"type": "web_fetch_tool_result", "content": {"type": "web_fetch_result", "content": _FETCHED}}
                ],
            },
        ]
    },
    "grounding.sources": {"grounding": {"sources": [{"text": CONTEXT}]}},
}


@pytest.mark.parametrize("given", EVIDENCE.values(), ids=EVIDENCE.keys())
def test_evidence_is_found_wherever_it_is(upstream: Upstream, proxy: Proxy, given: dict[str, Any]) -> None:
    upstream.reply = body_reply(as_json(message(text_block(ANSWER))))
    grounding = post(proxy, {"model": "m", "max_tokens": 9, "messages": [QUESTION]} | given).json()["grounding"]
    assert labels(grounding) == ["supported", "contradicted"]
    assert not [warning for warning in grounding["warnings"] if "not read" in warning or "not seen" in warning]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_results_of_the_servers_tools_are_evidence(upstream: Upstream, proxy: Proxy, stream: bool) -> None:
    given = {"type": "web_fetch_tool_result", "content": {"type": "web_fetch_result", "content": _FETCHED}}
    blocks = (text_block(FALSE), given, text_block(TRUE))
    upstream.reply = stream_reply(message_events(*blocks)) if stream else body_reply(as_json(message(*blocks)))
    answer = post(proxy, {"model": "m", "max_tokens": 9, "messages": [QUESTION], "stream": stream})
    body = json.loads(data_of(events_of(answer.body)[-2])) if stream else answer.json()
    assert labels(body["grounding"]) == ["contradicted", "supported"]


def test_earlier_answers_and_thoughts_of_the_model_are_no_evidence(upstream: Upstream, proxy: Proxy) -> None:
    earlier = {"role": "assistant", "content": [thinking_block(CONTEXT), text_block(CONTEXT)]}
    grounding = whole(upstream, proxy, text_block(TRUE), system="Be brief.", messages=[QUESTION, earlier, QUESTION])
    assert "supported" not in labels(grounding)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (_user({"type": "image", "source": {"type": "url", "url": "x"}}), "messages"),
        (_user({"type": "document", "source": {"type": "base64", "data": "JVBERi0="}}), "messages"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "web_search"),
        ({"mcp_servers": [{"type": "url", "url": "x", "name": "n"}]}, "mcp_servers"),
    ],
    ids=["image", "PDF", "tool of the server", "MCP"],
)
def test_context_that_cannot_be_seen_is_named_in_a_warning(
    upstream: Upstream, proxy: Proxy, given: dict[str, Any], named: str
) -> None:
    assert any(named in warning for warning in whole(upstream, proxy, text_block(TRUE), **given)["warnings"])


def test_a_json_answer_is_validated_against_the_requested_schema(upstream: Upstream, proxy: Proxy) -> None:
    schema = {"type": "object", "properties": {"founded": {"type": "string"}}, "required": ["founded"]}
    asked = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    good = whole(upstream, proxy, text_block(json.dumps({"founded": TRUE})), **asked)
    bad = whole(upstream, proxy, text_block('{"founded": 5}'), **asked)
    assert good["schema"]["violations"] == []
    assert "evidence_schema_violation" in bad["flags"]


def test_an_answer_that_ran_out_of_tokens_is_flagged(upstream: Upstream, proxy: Proxy) -> None:
    upstream.reply = body_reply(as_json(message(text_block(TRUE), stop_reason="max_tokens")))
    assert "answer_truncated" in post(proxy, ASK).json()["grounding"]["flags"]


def test_a_stream_that_breaks_off_raises_in_the_sdk(
    upstream: Upstream, proxy: Proxy, claude: anthropic.Anthropic
) -> None:
    steps = (*message_events(text_block(ANSWER))[:8], Cut())
    upstream.reply = Reply(steps, headers=(("content-type", "text/event-stream"),), framing="chunked")
    answer = post(proxy, ASK | {"stream": True})
    assert not answer.ended
    assert events_of(answer.body)[-1].startswith(b"event: error\n")
    assert proxy.report(answer.header("x-grounding-id") or "")["status"] == "partial"
    with pytest.raises(anthropic.APIStatusError, match="broke"):
        list(claude.messages.create(**ASK, stream=True))


def test_an_error_event_is_passed_on_and_nothing_is_claimed(upstream: Upstream, proxy: Proxy) -> None:
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    events = (*message_events(text_block(ANSWER))[:8], named_event(overloaded))
    upstream.reply = stream_reply(events)
    answer = post(proxy, ASK | {"stream": True})
    assert answer.body == b"".join(events)
    assert proxy.report(answer.header("x-grounding-id") or "")["status"] == "partial"


@pytest.mark.parametrize("carrier", ["extra_event", "comment", "none"])
def test_other_carriers(upstream: Upstream, start_proxy: Callable[..., Proxy], carrier: str) -> None:
    proxy = start_proxy(stream={"carrier": carrier, "tail_budget": "10s"})
    events = message_events(text_block(ANSWER))
    upstream.reply = stream_reply(events)
    run = inserted(b"".join(events), post(proxy, ASK | {"stream": True}).body)
    assert (b'"contradicted"' in run) == (carrier != "none")
    client = anthropic.Anthropic(base_url=proxy.url, api_key="k", max_retries=0)
    with client, client.messages.stream(**ASK) as stream:
        seen: list[Any] = [event for event in stream if event.type == "grounding"]
        assert stream.get_final_text() == ANSWER
    assert [event.grounding["status"] for event in seen] == ["complete"] * (carrier == "extra_event")


def test_errors_of_ours_have_the_classes_of_anthropic(
    upstream: Upstream, start_proxy: Callable[..., Proxy], claude: anthropic.Anthropic
) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        claude.messages.create(**ASK, extra_body={"grounding": {"mode": "sometimes"}})
    assert caught.value.body == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": caught.value.body["error"]["message"]},
    }
    assert "grounding.mode" in caught.value.body["error"]["message"]
    gone = start_proxy(upstreams={"gone": {"base_url": "http://127.0.0.1:9/v1", "models": ["m"]}})
    with anthropic.Anthropic(base_url=gone.url, api_key="k", max_retries=0) as client:
        with pytest.raises(anthropic.InternalServerError) as broken:
            client.messages.create(**ASK)
        assert broken.value.body["error"]["type"] == "api_error"
        with pytest.raises(anthropic.NotFoundError) as unknown:
            client.messages.create(**(ASK | {"model": "other"}))
        assert unknown.value.body["error"]["type"] == "not_found_error"


def test_errors_of_the_model_server_pass_untouched(upstream: Upstream, claude: anthropic.Anthropic) -> None:
    error = {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}, "request_id": "req_1"}
    upstream.reply = body_reply(as_json(error), status=429, headers=(("retry-after", "7"),))
    with pytest.raises(anthropic.RateLimitError) as caught:
        claude.messages.create(**ASK)
    assert caught.value.body == error
    assert caught.value.response.headers["retry-after"] == "7"


def test_modes_and_details_are_those_of_every_dialect(upstream: Upstream, proxy: Proxy) -> None:
    upstream.reply = body_reply(body := as_json(message(text_block(ANSWER))))
    off = post(proxy, ASK, ("x-grounding-mode", "off"))
    assert (off.body, off.header("x-grounding-status")) == (body, "skipped")
    none = post(proxy, ASK | {"grounding": {"detail": "none"}})
    assert (none.body, none.header("x-grounding-verdict")) == (body, "partially_grounded")
    pending = post(proxy, ASK | {"grounding": {"mode": "async"}}).json()["grounding"]
    assert labels(proxy.report(pending["id"])) == ["supported", "contradicted"]


@pytest.mark.parametrize("thinks", [False, True], ids=["plain", "thinking"])
def test_samples_are_requested_where_a_temperature_may_be_set(upstream: Upstream, proxy: Proxy, thinks: bool) -> None:
    asked = []

    def reply(received: Received) -> Reply:
        asked.append(received.json())
        return body_reply(as_json(message(text_block(ANSWER))))

    upstream.reply = reply
    request = ASK | {"grounding": {"samples": 3}} | ({"thinking": {"type": "adaptive"}} if thinks else {})
    answer = post(proxy, request).json()["grounding"]
    found = proxy.self_consistency(answer["id"])
    assert found["answered"] == len(asked) - 1 == (0 if thinks else 3)
    assert found.get("reasons", []) == (["not_repeatable"] if thinks else [])


@pytest.fixture
def before_anthropic(
    upstream: Upstream, second_upstream: Upstream, start_proxy: Callable[..., Proxy]
) -> tuple[Proxy, Upstream]:
    """A proxy whose second upstream is Anthropic's API with a configured key, and that API."""
    others = {"base_url": upstream.base_url, "models": ["gpt-*"]}
    theirs = {
        "base_url": second_upstream.base_url,
        "dialect": "anthropic",
        "api_key_env": "KEY",
        "models": ["claude-*"],
    }
    return start_proxy({"KEY": "sk-ant-ours"}, upstreams={"others": others, "claude": theirs}), second_upstream


def test_a_key_of_our_own_goes_as_anthropic_takes_it(before_anthropic: tuple[Proxy, Upstream]) -> None:
    proxy, server = before_anthropic
    server.reply = body_reply(as_json(message(text_block(ANSWER))))
    answer = post(proxy, ASK | {"model": "claude-x"}, ("authorization", "Bearer mine"), ("anthropic-beta", "b-1"))
    assert labels(answer.json()["grounding"]) == ["supported", "contradicted"]
    received = server.requests[-1]
    assert (received.header("x-api-key"), received.header("authorization")) == ("sk-ant-ours", None)
    assert (received.header("anthropic-version"), received.header("anthropic-beta")) == ("2023-06-01", "b-1")


def test_models_are_listed_for_clients_that_know_no_version(before_anthropic: tuple[Proxy, Upstream]) -> None:
    proxy, server = before_anthropic
    server.reply = body_reply(as_json({"data": [{"type": "model", "id": "claude-x"}], "has_more": False}))
    listed = fetch(proxy.port, "GET", "/v1/models", (("authorization", "Bearer k"),)).json()["data"]
    assert "claude-x" in [model["id"] for model in listed]
    assert server.requests[-1].header("anthropic-version") == "2023-06-01"


def test_tokens_are_counted_where_the_model_is_served(before_anthropic: tuple[Proxy, Upstream]) -> None:
    proxy, server = before_anthropic
    server.reply = body_reply(b'{"input_tokens": 12}')
    with anthropic.Anthropic(base_url=proxy.url, api_key="k", max_retries=0) as client:
        counted = client.messages.count_tokens(
            model="claude-x", messages=[QUESTION], extra_body={"grounding": {"subject": "s"}}
        )
        with pytest.raises(anthropic.NotFoundError) as caught:
            client.messages.count_tokens(model="unknown", messages=[QUESTION])
    assert counted.input_tokens == 12
    assert server.requests[-1].json() == {"model": "claude-x", "messages": [QUESTION]}
    assert caught.value.body["error"]["type"] == "not_found_error"


def test_an_end_mark_of_other_servers_passes(upstream: Upstream, proxy: Proxy) -> None:
    events = (*message_events(text_block(ANSWER)), b"data: [DONE]\n\n")
    upstream.reply = stream_reply(events)
    assert grounding_added(b"".join(events), post(proxy, ASK | {"stream": True}).body)["status"] == "complete"
