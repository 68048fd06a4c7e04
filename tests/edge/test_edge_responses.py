"""OpenAI's Responses API through the proxy, with the real SDK and byte by byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.edge.clients import JSON_HEADERS, RawClient, data_of, events_of, fetch, grounding_added, inserted
from tests.edge.proxies import Proxy
from tests.edge.shapes import call_item, named_event, reasoning_item, response, response_events, text_item
from tests.edge.upstream import (
    Cut,
    Received,
    Reply,
    Upstream,
    as_json,
    body_reply,
    echo,
    error_reply,
    stream_reply,
)

CONTEXT = "Acme Corp was founded in Oslo by Ingrid Dahl in 1998. It reported revenue of $4.2 million in 2023."
TRUE, FALSE = "Acme Corp was founded in Oslo by Ingrid Dahl in 1998.", "It reported revenue of $4.9 million in 2023."
ANSWER = f"{TRUE} {FALSE}"
ASK: dict[str, Any] = {"model": "m", "instructions": CONTEXT, "input": "What is known about Acme Corp?"}


def post(proxy: Proxy, request: dict[str, Any], *headers: tuple[str, str]) -> RawClient:
    return fetch(proxy.port, "POST", "/v1/responses", (*JSON_HEADERS, *headers), json.dumps(request).encode())


def whole(upstream: Upstream, proxy: Proxy, *items: Any, **request: Any) -> dict[str, Any]:
    upstream.reply = body_reply(as_json(response(*items)))
    found: dict[str, Any] = post(proxy, ASK | request).json()["grounding"]
    return found


def labels(grounding: dict[str, Any]) -> list[str]:
    return [claim["label"] for choice in grounding["choices"] for claim in choice["claims"]]


def test_a_body_is_passed_byte_for_byte_with_its_verdict(upstream: Upstream, proxy: Proxy) -> None:
    body = as_json(response(text_item(ANSWER)), indent=2)
    upstream.reply = body_reply(body)
    answer = post(proxy, ASK)
    grounding = grounding_added(body, answer.body)
    assert labels(grounding) == ["supported", "contradicted"]
    assert answer.header("x-grounding-verdict") == "partially_grounded"
    assert upstream.requests[-1].path == "/v1/responses"


def test_a_stored_prompt_needs_no_model(upstream: Upstream, proxy: Proxy, client: openai.OpenAI) -> None:
    upstream.reply = body_reply(as_json(response(text_item(TRUE))))
    answer = client.responses.create(prompt={"id": "pmpt_1", "version": "2"}, input=CONTEXT)
    assert answer.output_text == TRUE
    assert upstream.last.json() == {"prompt": {"id": "pmpt_1", "version": "2"}, "input": CONTEXT}
    assert answer.model_dump()["grounding"]["choices"][0]["claims"][0]["label"] == "supported"


def test_a_stream_is_passed_byte_for_byte_with_the_verdict_in_its_last_event(upstream: Upstream, proxy: Proxy) -> None:
    events = response_events(reasoning_item("The moon is made of cheese."), text_item(ANSWER))
    upstream.reply = stream_reply(events)
    answer = post(proxy, ASK | {"stream": True})
    assert labels(grounding_added(b"".join(events), answer.body)) == ["supported", "contradicted"]
    last = events_of(answer.body)[-1]
    assert last.startswith(b"event: response.completed\n")
    assert json.loads(data_of(last))["response"]["grounding"]["status"] == "complete"
    assert answer.header("x-grounding-id")


def test_the_sdk_finds_it_in_the_response(upstream: Upstream, client: openai.OpenAI) -> None:
    upstream.reply = body_reply(as_json(response(text_item(ANSWER))))
    found = client.responses.create(**ASK)
    assert found.output_text == ANSWER
    assert labels((found.model_extra or {})["grounding"]) == ["supported", "contradicted"]


def test_the_sdk_streams_and_finds_it_in_the_completed_response(upstream: Upstream, client: openai.OpenAI) -> None:
    events = response_events(text_item(ANSWER))
    upstream.reply = stream_reply(events)
    got = list(client.responses.create(**ASK, stream=True))
    assert len(got) == len(events)
    assert got[-1].type == "response.completed"
    assert labels(got[-1].response.model_extra["grounding"]) == ["supported", "contradicted"]


def test_the_sdk_sums_up_a_stream_with_it(upstream: Upstream, client: openai.OpenAI) -> None:
    upstream.reply = stream_reply(response_events(text_item(ANSWER)))
    with client.responses.stream(**ASK) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert text == final.output_text == ANSWER
    assert final.usage
    assert final.usage.output_tokens == 12
    assert labels((final.model_extra or {})["grounding"]) == ["supported", "contradicted"]


class Facts(BaseModel):
    """The fields of a structured answer."""

    founded: str
    revenue: str


def test_the_sdk_parses_a_structured_answer_and_its_fields_are_checked(
    upstream: Upstream, client: openai.OpenAI
) -> None:
    answer = json.dumps({"founded": TRUE, "revenue": FALSE})
    upstream.reply = body_reply(as_json(response(text_item(answer))))
    found = client.responses.parse(**ASK, text_format=Facts)
    grounding = (found.model_extra or {})["grounding"]
    assert found.output_parsed == Facts(founded=TRUE, revenue=FALSE)
    assert [claim["pointer"] for claim in grounding["choices"][0]["claims"]] == ["/founded", "/revenue"]
    assert grounding["schema"]["violations"] == []
    upstream.reply = body_reply(as_json(response(text_item('{"founded": 5}'))))
    format_ = upstream.requests[-1].json()["text"]
    broken = client.responses.create(**ASK, text=format_)
    assert "evidence_schema_violation" in (broken.model_extra or {})["grounding"]["flags"]


def test_every_message_is_a_choice_under_its_index_in_the_output(upstream: Upstream, proxy: Proxy) -> None:
    items = (
        reasoning_item("Hm."),
        text_item("Let me look that up."),
        call_item('{"q": "Acme"}'),
        text_item(f"🟦 {ANSWER}", 1),
    )
    grounding = whole(upstream, proxy, *items)
    assert [choice["index"] for choice in grounding["choices"]] == [1, 3]
    assert [choice["verdict"] for choice in grounding["choices"]] == ["not_applicable", "partially_grounded"]
    for claim in grounding["choices"][1]["claims"]:
        assert items[3]["content"][0]["text"][claim["start"] : claim["end"]] == claim["text"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_arguments_of_a_call_are_checked_on_request(upstream: Upstream, proxy: Proxy, stream: bool) -> None:
    items = (text_item(TRUE), call_item(json.dumps({"note": FALSE})))
    request = ASK | {"stream": stream, "grounding": {"check_tool_calls": True}}
    upstream.reply = stream_reply(response_events(*items)) if stream else body_reply(as_json(response(*items)))
    answer = post(proxy, request)
    body = json.loads(data_of(events_of(answer.body)[-1]))["response"] if stream else answer.json()
    choices = body["grounding"]["choices"]
    assert [(choice["index"], choice["verdict"]) for choice in choices] == [(0, "grounded"), (1, "ungrounded")]
    assert choices[1]["claims"][0]["pointer"] == "/tool_calls/0/function/arguments/note"


EVIDENCE: dict[str, dict[str, Any]] = {
    "instructions": {"instructions": CONTEXT},
    "input text": {"input": f"Context:\n{CONTEXT}\n\nQuestion: What is known?"},
    "message": {"input": [{"role": "user", "content": CONTEXT}]},
    "developer message": {
        "input": [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": CONTEXT}]}]
    },
    "function output": {"input": [{"type": "function_call_output", "call_id": "c", "output": CONTEXT}]},
    "function output in parts": {
        "input": [
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": CONTEXT}]},
        ]
    },
    "file search": {
        "input": [
            {
                "type": "file_search_call",
                "id": "fs_1",
                "queries": ["acme"],
                "results": [{"file_id": "file-1", "filename": "acme.txt", "score": 0.9, "text": CONTEXT}],
            }
        ]
    },
    "shell output": {"input": [{"type": "shell_call_output", "call_id": "c", "output": [{"stdout": CONTEXT}]}]},
    "MCP call": {"input": [{"type": "mcp_call", "id": "m", "name": "x", "arguments": "{}", "output": CONTEXT}]},
    "grounding.sources": {"grounding": {"sources": [{"text": CONTEXT}]}},
    "documents": {"documents": [CONTEXT]},
}


@pytest.mark.parametrize("given", EVIDENCE.values(), ids=EVIDENCE.keys())
def test_evidence_is_found_wherever_it_is(upstream: Upstream, proxy: Proxy, given: dict[str, Any]) -> None:
    upstream.reply = body_reply(as_json(response(text_item(ANSWER))))
    grounding = post(proxy, {"model": "m", "input": "What is known?"} | given).json()["grounding"]
    assert labels(grounding) == ["supported", "contradicted"]
    assert not [warning for warning in grounding["warnings"] if "not read" in warning or "not seen" in warning]


SERVER_TOOLS: dict[str, dict[str, Any]] = {
    "file search": {
        "type": "file_search_call",
        "results": [{"file_id": "file-1", "filename": "acme.txt", "text": f"🟦 {CONTEXT}"}],
    },
    "MCP call": {"type": "mcp_call", "name": "x", "arguments": "{}", "output": CONTEXT},
    "code": {"type": "code_interpreter_call", "outputs": [{"type": "logs", "logs": CONTEXT}]},
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("tool", SERVER_TOOLS.values(), ids=SERVER_TOOLS.keys())
def test_results_of_the_servers_tools_are_evidence(
    upstream: Upstream, proxy: Proxy, tool: dict[str, Any], stream: bool
) -> None:
    items = ({"id": "t_1", "status": "completed"} | tool, text_item(ANSWER))
    upstream.reply = stream_reply(response_events(*items)) if stream else body_reply(as_json(response(*items)))
    options = {"grounding": {"offset_unit": "utf16"}, "tools": [{"type": tool["type"].removesuffix("_call")}]}
    answer = post(proxy, {"model": "m", "input": "What is known about Acme Corp?", "stream": stream} | options)
    grounding = (json.loads(data_of(events_of(answer.body)[-1]))["response"] if stream else answer.json())["grounding"]
    assert labels(grounding) == ["supported", "contradicted"]
    assert any("tools: " in warning for warning in grounding["warnings"])
    (source,) = {citation["source"] for citation in grounding["choices"][0]["claims"][0]["citations"]}
    assert source == ("file-1" if "results" in tool else "answer.1")


def test_a_job_knows_what_the_servers_tools_gave(
    upstream: Upstream, start_proxy: Callable[..., Proxy], tmp_path: Path
) -> None:
    proxy = start_proxy(jobs={"url": f"sqlite:///{tmp_path}/jobs.db", "poll": "50ms"})
    items = ({"id": "t_1", "status": "completed"} | SERVER_TOOLS["file search"], text_item(ANSWER))
    upstream.reply = body_reply(as_json(response(*items)))
    asked = {"model": "m", "input": "What is known about Acme Corp?", "grounding": {"mode": "async"}}
    assert labels(proxy.report(post(proxy, asked).json()["grounding"]["id"])) == ["supported", "contradicted"]


def test_earlier_answers_of_the_model_are_no_evidence(upstream: Upstream, proxy: Proxy) -> None:
    earlier = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": CONTEXT}]}
    grounding = whole(upstream, proxy, text_item(TRUE), instructions=None, input=[earlier])
    assert "supported" not in labels(grounding)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"previous_response_id": "resp_0"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}]}, "input"),
        ({"tools": [{"type": "web_search"}]}, "web_search"),
    ],
    ids=["previous response", "conversation", "stored prompt", "reference", "image", "tool of the server"],
)
def test_context_that_cannot_be_seen_is_named_in_a_warning(
    upstream: Upstream, proxy: Proxy, given: dict[str, Any], named: str
) -> None:
    assert any(named in warning for warning in whole(upstream, proxy, text_item(TRUE), **given)["warnings"])


def test_an_answer_in_the_background_is_not_called_clean(upstream: Upstream, proxy: Proxy) -> None:
    body = as_json(response(status="queued"))
    upstream.reply = body_reply(body)
    answer = post(proxy, ASK | {"background": True})
    assert answer.body == body
    assert answer.header("x-grounding-verdict") == "not_checked"


def test_an_answer_that_ran_out_of_tokens_is_flagged(upstream: Upstream, proxy: Proxy) -> None:
    events = response_events(text_item(TRUE), status="incomplete", reason="max_output_tokens")
    upstream.reply = stream_reply(events)
    grounding = grounding_added(b"".join(events), post(proxy, ASK | {"stream": True}).body)
    assert "answer_truncated" in grounding["flags"]


def test_an_answer_that_failed_is_passed_and_reported_as_partial(upstream: Upstream, proxy: Proxy) -> None:
    events = response_events(text_item(TRUE), status="failed")
    upstream.reply = stream_reply(events)
    answer = post(proxy, ASK | {"stream": True})
    assert answer.body == b"".join(events)
    assert proxy.report(answer.header("x-grounding-id") or "")["status"] == "partial"


def test_a_stream_that_sends_its_text_only_at_the_end_is_checked(upstream: Upstream, proxy: Proxy) -> None:
    events = response_events(text_item(ANSWER))
    upstream.reply = stream_reply((events[0], events[-1]))
    grounding = grounding_added(events[0] + events[-1], post(proxy, ASK | {"stream": True}).body)
    assert labels(grounding) == ["supported", "contradicted"]


def test_a_stream_that_breaks_off_raises_in_the_sdk(upstream: Upstream, proxy: Proxy, client: openai.OpenAI) -> None:
    steps = (*response_events(text_item(ANSWER))[:8], Cut())
    upstream.reply = Reply(steps, headers=(("content-type", "text/event-stream"),), framing="chunked")
    answer = post(proxy, ASK | {"stream": True})
    assert not answer.ended
    assert events_of(answer.body)[-1].startswith(b"event: error\n")
    assert proxy.report(answer.header("x-grounding-id") or "")["status"] == "partial"
    with pytest.raises(openai.APIError, match="broke"):
        list(client.responses.create(**ASK, stream=True))


@pytest.mark.parametrize("carrier", ["extra_event", "comment", "none"])
def test_other_carriers(upstream: Upstream, start_proxy: Callable[..., Proxy], carrier: str) -> None:
    proxy = start_proxy(stream={"carrier": carrier, "tail_budget": "10s"})
    events = response_events(text_item(ANSWER))
    upstream.reply = stream_reply(events)
    run = inserted(b"".join(events), post(proxy, ASK | {"stream": True}).body)
    assert (b'"contradicted"' in run) == (carrier != "none")
    with openai.OpenAI(base_url=proxy.base_url, api_key="k", max_retries=0).responses.stream(**ASK) as stream:
        seen = [event for event in stream if event.type == "keepalive"]
        assert stream.get_final_response().output_text == ANSWER
    assert [event.grounding["status"] for event in seen] == ["complete"] * (carrier == "extra_event")


def test_errors_of_the_model_server_and_of_ours_raise_as_with_openai(upstream: Upstream, client: openai.OpenAI) -> None:
    upstream.reply = error_reply(429, "Slow down.", type="rate_limit_error", code="rate_limit")
    with pytest.raises(openai.RateLimitError, match="Slow down"):
        client.responses.create(**ASK)
    with pytest.raises(openai.BadRequestError, match=r"grounding\.mode"):
        client.responses.create(**ASK, extra_body={"grounding": {"mode": "sometimes"}})


def test_modes_and_details_are_those_of_every_dialect(upstream: Upstream, proxy: Proxy) -> None:
    upstream.reply = body_reply(body := as_json(response(text_item(ANSWER))))
    off = post(proxy, ASK, ("x-grounding-mode", "off"))
    assert (off.body, off.header("x-grounding-status")) == (body, "skipped")
    summary = post(proxy, ASK | {"grounding": {"detail": "summary"}}).json()["grounding"]
    assert summary["verdict"] == "partially_grounded"
    assert "claims" not in summary["choices"][0]
    pending = post(proxy, ASK | {"grounding": {"mode": "async"}}).json()["grounding"]
    assert pending["status"] == "pending"
    assert labels(proxy.report(pending["id"])) == ["supported", "contradicted"]


def test_samples_leave_nothing_behind_on_the_server(upstream: Upstream, proxy: Proxy) -> None:
    asked = []

    def reply(received: Received) -> Reply:
        asked.append(received.json())
        return body_reply(as_json(response(text_item(ANSWER))))

    upstream.reply = reply
    answer = post(proxy, ASK | {"store": True, "grounding": {"samples": 3}}).json()["grounding"]
    assert proxy.self_consistency(answer["id"])["answered"] == 3
    assert [body["store"] for body in asked] == [True, False, False, False]


def test_other_requests_below_the_path_pass_untouched(upstream: Upstream, client: openai.OpenAI, proxy: Proxy) -> None:
    upstream.reply = body_reply(as_json(response(text_item(ANSWER))))
    assert client.responses.retrieve("resp_1").output_text == ANSWER
    assert client.responses.cancel("resp_1").id == "resp_1"
    upstream.reply = echo
    answer = fetch(proxy.port, "DELETE", "/v1/responses/resp_1")
    assert (answer.json()["method"], answer.json()["path"]) == ("DELETE", "/v1/responses/resp_1")


def test_an_end_mark_of_other_servers_passes(upstream: Upstream, proxy: Proxy) -> None:
    events = (*response_events(text_item(ANSWER)), b"data: [DONE]\n\n")
    upstream.reply = stream_reply(events)
    assert grounding_added(b"".join(events), post(proxy, ASK | {"stream": True}).body)["status"] == "complete"


def test_an_event_of_a_kind_that_nobody_knows_passes(upstream: Upstream, proxy: Proxy) -> None:
    first, *rest = response_events(text_item(ANSWER))
    events = (first, named_event({"type": "response.new.thing", "output_index": "x", "delta": 5}), *rest)
    upstream.reply = stream_reply(events)
    assert grounding_added(b"".join(events), post(proxy, ASK | {"stream": True}).body)["status"] == "complete"
