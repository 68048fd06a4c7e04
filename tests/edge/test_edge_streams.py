"""Streamed responses: events are passed on as they came in and at once; one carries the verdict."""

import json
import re
import time
import zlib
from collections.abc import Sequence

import httpx
import openai
import pytest

from tests.edge.clients import JSON_HEADERS, RawClient, data_of, events_of, grounding_added, inserted, post_chat, sdk
from tests.edge.upstream import (
    DONE,
    Cut,
    Pause,
    Reply,
    Step,
    Upstream,
    as_event,
    byte_by_byte,
    chat_body,
    chat_events,
    completion_reply,
    delta_events,
    gzip_reply,
    lock_step,
    stream_reply,
    tool_call_events,
)

CONTEXT = "The sky is blue on a clear day. Grass is green, and it is mown in May."
CHAT = {
    "model": "gpt-4o-mini",
    "messages": [{"role": "system", "content": CONTEXT}, {"role": "user", "content": "Which colour is the sky?"}],
    "stream": True,
}
USAGE = {"stream_options": {"include_usage": True}}
ANSWER = "The sky is blue on a clear day. Grass is mown in October."


def whole(events: Sequence[Step]) -> bytes:
    return b"".join(step for step in events if isinstance(step, bytes))


def reasoning_events() -> tuple[bytes, ...]:
    steps = [({"reasoning": "Hm. ", "reasoning_content": "Hm. "}, None), ({"content": ANSWER}, None), ({}, "stop")]
    return delta_events([(0, delta, reason) for delta, reason in steps])


LOCK_STEPS = {
    "openai": (chat_events(ANSWER), {}),
    "ollama": (chat_events(ANSWER, shape="ollama"), {}),
    "vllm": (chat_events(ANSWER, shape="vllm"), {}),
    "usage": (chat_events(ANSWER, include_usage=True), USAGE),
    "two choices": (chat_events("The sky is blue.", ANSWER), {"n": 2}),
    "two choices and usage": (chat_events("The sky is blue.", ANSWER, include_usage=True), USAGE | {"n": 2}),
    "tool call": (tool_call_events(), {}),
    "logprobs": (chat_events(ANSWER, logprobs=True), {"logprobs": True}),
    "reasoning": (reasoning_events(), {}),
    "no done": (chat_events(ANSWER, done=False), {}),
    "crlf": (tuple(event.replace(b"\n", b"\r\n") for event in chat_events(ANSWER)), {}),
    "comments": (tuple(b": ping\n\n" + event for event in chat_events(ANSWER)), {}),
}


@pytest.mark.parametrize("name", LOCK_STEPS)
def test_each_event_arrives_before_the_next_is_produced(upstream: Upstream, proxy, name: str) -> None:
    """The upstream writes an event only once the client has received the one before it, to its last byte."""
    events, options = LOCK_STEPS[name]
    steps, receipts = lock_step(events)
    upstream.reply = stream_reply(steps)
    with RawClient(proxy.port) as client:
        client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT | options).encode())
        client.read_head()
        for i, receipt in enumerate(receipts):
            while client.body.count(b"data:") <= i or not client.body.endswith((b"\n\n", b"\r\n\r\n")):
                assert client.read_some(), f"the stream ended before event {i}"
            assert client.body.startswith(whole(events[: i if b'"grounding"' in client.body else i + 1])[:-200])
            receipt.set()
        client.read_to_end()
    assert client.ended
    assert grounding_added(whole(events), client.body)["status"] == "complete"


def test_the_sdk_hands_out_each_chunk_before_the_next_is_produced(upstream: Upstream, client: openai.OpenAI) -> None:
    steps, receipts = lock_step(chat_events(ANSWER, include_usage=True))
    upstream.reply = stream_reply(steps)
    stream = client.chat.completions.create(**CHAT, **USAGE)
    chunks = []
    for chunk, receipt in zip(stream, receipts, strict=False):
        chunks.append(chunk)
        receipt.set()
        if len(chunks) == len(receipts) - 1:
            receipts[-1].set()  # the end itself is no chunk
    assert len(chunks) == len(receipts) - 1
    assert chunks[-1].usage.total_tokens == 16
    assert chunks[-1].model_extra["grounding"]["verdict"] == "partially_grounded"


STREAMS = {
    "openai": chat_events(ANSWER),
    "ollama": chat_events(ANSWER, shape="ollama"),
    "vllm": chat_events(ANSWER, shape="vllm"),
    "split characters": byte_by_byte(whole(chat_events("Blå 🟦\u2028\u0085 sky. " + ANSWER))),
    "split characters, crlf": byte_by_byte(whole(chat_events("Blå 🟦 sky.")).replace(b"\n", b"\r\n")),
    "one packet": (whole(chat_events(ANSWER)),),
    "cr only": (whole(chat_events(ANSWER)).replace(b"\n", b"\r"),),
    "no space": tuple(event.replace(b"data: ", b"data:") for event in chat_events(ANSWER)),
    "data in lines": tuple(event.replace(b',"choices"', b'\ndata: ,"choices"') for event in chat_events(ANSWER)),
    "comments and fields": tuple(b": x\nid: 1\nretry: 5\n" + event for event in chat_events(ANSWER)),
    "byte order mark": (b"\xef\xbb\xbf", *chat_events(ANSWER)),
    "blank lines between": tuple(b"\n\n" + event for event in chat_events(ANSWER)),
    "escaped": tuple(event.replace("🟦".encode(), b"\\ud83d\\udfe6") for event in chat_events("🟦 " + ANSWER)),
    "unknown events": (as_event({"object": "x", "x": 1}), *chat_events(ANSWER)),
    "malformed event in the middle": (*chat_events(ANSWER)[:3], b'data: {"id": "ch\n\n', *chat_events(ANSWER)[3:]),
    "2 MB in one event": chat_events("x" * 2_000_000),
    "2 MB in many": chat_events(("The sky is blue, " * 60 + "\n") * 2_000)[::60] + chat_events(ANSWER),
    "nothing but done": (DONE,),
    "nothing": (),
}


@pytest.mark.parametrize("name", STREAMS)
def test_no_byte_changes_but_for_the_verdict(upstream: Upstream, proxy, name: str) -> None:
    upstream.reply = stream_reply(STREAMS[name])
    answer = post_chat(proxy.port, CHAT)
    assert (answer.status, answer.ended) == (200, True)
    assert (answer.header("content-type") or "").startswith("text/event-stream")
    run = inserted(whole(STREAMS[name]), answer.body)
    assert run.count(b'"grounding"') == 1 or name == "nothing"
    assert answer.body.count(b"[DONE]") == whole(STREAMS[name]).count(b"[DONE]")


def carrying(body: bytes) -> list[int]:
    """Return the indexes of the events, among those with data, that carry a verdict."""
    data = [data_of(event) for event in events_of(body) if data_of(event)]
    return [i for i, value in enumerate(data) if value.startswith(b"{") and "grounding" in json.loads(value)]


@pytest.mark.parametrize("shape", ["openai", "ollama", "vllm"])
@pytest.mark.parametrize("answers", [[ANSWER], ["Grass is green.", ANSWER], [ANSWER, "Grass is green."]])
def test_the_verdict_is_on_the_last_finish_event(upstream: Upstream, proxy, shape, answers) -> None:
    events = chat_events(*answers, shape=shape)
    upstream.reply = stream_reply(events)
    answer = post_chat(proxy.port, CHAT | {"n": len(answers)})
    assert carrying(answer.body) == [len(events) - 2]
    assert [choice["index"] for choice in grounding_added(whole(events), answer.body)["choices"]] == [
        *range(len(answers))
    ]


@pytest.mark.parametrize("shape", ["openai", "ollama", "vllm"])
@pytest.mark.parametrize("answers", [[ANSWER], ["Grass is green.", ANSWER]], ids=["one choice", "two choices"])
def test_the_verdict_is_on_the_usage_event_when_there_is_one(upstream: Upstream, proxy, shape, answers) -> None:
    events = chat_events(*answers, shape=shape, include_usage=True)
    upstream.reply = stream_reply(events)
    answer = post_chat(proxy.port, CHAT | USAGE | {"n": len(answers)})
    assert carrying(answer.body) == [len(events) - 2]
    assert json.loads(data_of(events_of(answer.body)[-2]))["usage"]["total_tokens"] == 16


NO_RIDE = {
    "usage promised and not sent": (chat_events(ANSWER), USAGE),
    "two choices asked, one given": (chat_events(ANSWER), {"n": 2}),
    "no finish reason": (delta_events([(0, {"content": ANSWER}, None)]), {}),
    "only done": ((DONE,), {}),
}


@pytest.mark.parametrize("name", NO_RIDE)
def test_a_verdict_without_a_ride_still_comes_before_the_end(upstream: Upstream, proxy, name: str) -> None:
    events, options = NO_RIDE[name]
    upstream.reply = stream_reply(events)
    answer = post_chat(proxy.port, CHAT | options)
    assert len(carrying(answer.body)) == 1
    assert answer.body.endswith(DONE)
    for event in events[:-1]:
        assert event in answer.body or event[:-4] in answer.body
    with sdk(proxy.base_url) as client:
        chunks = list(client.chat.completions.create(**(CHAT | options)))
    assert sum("grounding" in (chunk.model_extra or {}) for chunk in chunks) == 1


def test_an_extra_event_looks_like_the_others(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(stream={"carrier": "extra_event", "tail_budget": "10s"})
    events = chat_events(ANSWER, include_usage=True)
    upstream.reply = stream_reply(events)
    answer = post_chat(proxy.port, CHAT | USAGE)
    received = events_of(answer.body)
    (at,) = carrying(answer.body)
    assert received[:at] + received[at + 1 :] == list(events)
    assert at == len(events) - 2, "the extra event comes before the usage event"
    extra, usual = json.loads(data_of(received[at])), json.loads(data_of(events[0]))
    assert extra["choices"] == []
    assert {key: extra[key] for key in ("id", "object", "created", "model")} == {
        key: usual[key] for key in ("id", "object", "created", "model")
    }
    with sdk(proxy.base_url).chat.completions.stream(
        model="m", messages=CHAT["messages"], stream_options={"include_usage": True}
    ) as stream:
        assert stream.get_final_completion().usage.total_tokens == 16


def test_an_extra_event_without_usage(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(stream={"carrier": "extra_event", "tail_budget": "10s"})
    events = chat_events(ANSWER)
    upstream.reply = stream_reply(events)
    received = events_of(post_chat(proxy.port, CHAT).body)
    (at,) = carrying(b"".join(received))
    assert received[:at] + received[at + 1 :] == list(events)
    assert received[-1] == DONE


def test_a_comment_is_no_event(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(stream={"carrier": "comment", "tail_budget": "10s"})
    events = chat_events(ANSWER, include_usage=True)
    upstream.reply = stream_reply(events)
    answer = post_chat(proxy.port, CHAT | USAGE)
    (comment,) = re.findall(rb"^:.*\n", answer.body, re.MULTILINE)
    assert answer.body.replace(comment, b"") == whole(events)
    assert answer.body.endswith(DONE)
    assert json.loads(comment[comment.index(b"{") :].decode())["verdict"] == "partially_grounded"
    with sdk(proxy.base_url) as client:
        assert len(list(client.chat.completions.create(**CHAT, **USAGE))) == len(events) - 1


def test_no_carrier_changes_no_byte_and_keeps_the_report(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(stream={"carrier": "none"})
    upstream.reply = stream_reply(chat_events(ANSWER))
    answer = post_chat(proxy.port, CHAT)
    assert answer.body == whole(chat_events(ANSWER))
    assert proxy.report(answer.header("x-grounding-id"))["verdict"] == "partially_grounded"


@pytest.mark.parametrize("ask", [{"mode": "off"}, {"detail": "none"}], ids=["off", "detail none"])
def test_modes_that_change_no_byte(upstream: Upstream, proxy, ask: dict) -> None:
    upstream.reply = stream_reply(chat_events(ANSWER))
    answer = post_chat(proxy.port, CHAT | {"grounding": ask})
    assert answer.body == whole(chat_events(ANSWER))
    assert "grounding" not in upstream.last.json()


def test_detail_none_keeps_the_report(upstream: Upstream, proxy) -> None:
    upstream.reply = stream_reply(chat_events(ANSWER))
    answer = post_chat(proxy.port, CHAT | {"grounding": {"detail": "none"}})
    assert proxy.report(answer.header("x-grounding-id"))["verdict"] == "partially_grounded"


def test_a_summary_has_no_claims(upstream: Upstream, proxy) -> None:
    upstream.reply = stream_reply(chat_events(ANSWER))
    answer = post_chat(proxy.port, CHAT | {"grounding": {"detail": "summary"}})
    grounding = grounding_added(whole(chat_events(ANSWER)), answer.body)
    assert grounding["verdict"] == "partially_grounded"
    assert all("claims" not in choice for choice in grounding.get("choices", ()))


def test_the_streamed_verdict_is_the_one_of_the_whole_answer(upstream: Upstream, proxy) -> None:
    upstream.reply = stream_reply(chat_events(ANSWER, "Grass is green."))
    streamed = grounding_added(whole(upstream.reply.body), post_chat(proxy.port, CHAT | {"n": 2}).body)
    upstream.reply = Reply((chat_body(ANSWER, "Grass is green."),))
    at_once = post_chat(proxy.port, CHAT | {"n": 2, "stream": False}).json()["grounding"]
    for key in ("verdict", "score", "flags", "coverage", "sources", "choices"):
        assert streamed[key] == at_once[key]


def test_async_sends_the_id_and_keeps_the_report(upstream: Upstream, proxy) -> None:
    upstream.reply = stream_reply(chat_events(ANSWER))
    answer = post_chat(proxy.port, CHAT | {"grounding": {"mode": "async"}})
    grounding = grounding_added(whole(chat_events(ANSWER)), answer.body)
    assert (grounding["status"], grounding["id"]) == ("pending", answer.header("x-grounding-id"))
    assert proxy.report(grounding["id"])["verdict"] == "partially_grounded"


def test_past_the_tail_budget_the_id_goes_out_and_the_report_comes_later(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(stream={"tail_budget": "1ms"}, grounding={"timeout": "30s"}, server={"max_body": "16MiB"})
    context = " ".join(f"Item {i} of list {i * 7 % 1000} weighs {i * 13 % 997} grams." for i in range(30_000))
    request = CHAT | {"messages": [{"role": "system", "content": context}, CHAT["messages"][1]]}
    upstream.reply = stream_reply(chat_events("Item 7 of list 49 weighs 91 grams."))
    answer = post_chat(proxy.port, request)
    grounding = grounding_added(whole(upstream.reply.body), answer.body)
    assert (grounding["status"], grounding["id"]) == ("pending", answer.header("x-grounding-id"))
    report = proxy.report(grounding["id"])
    assert (report["status"], report["verdict"]) == ("complete", "grounded")


def test_the_headers_are_there_from_the_start(upstream: Upstream, proxy) -> None:
    upstream.reply = stream_reply([*chat_events(ANSWER)[:1], Pause(0.5), *chat_events(ANSWER)[1:]])
    with RawClient(proxy.port) as client:
        client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT).encode())
        client.read_head()
        assert b"[DONE]" not in client.body
        assert client.header("x-grounding-id")
        assert client.header("cache-control") == "no-cache"
        assert client.header("x-accel-buffering") == "no"
        assert client.header("content-length") is None
        client.read_to_end()
    assert grounding_added(whole(upstream.reply.body), client.body)["id"] == client.header("x-grounding-id")


def test_an_error_instead_of_a_stream_stays_an_error(upstream: Upstream, proxy) -> None:
    body = b'{"error": {"message": "m", "type": "t", "param": null, "code": "c"}}'
    upstream.reply = Reply((body,), 429).with_headers(("retry-after", "3"))
    answer = post_chat(proxy.port, CHAT)
    assert (answer.status, answer.body, answer.header("retry-after")) == (429, body, "3")


def test_a_whole_answer_to_a_request_for_a_stream_is_annotated(upstream: Upstream, proxy) -> None:
    """Some servers ignore `stream`; the answer decides."""
    upstream.reply = Reply((chat_body(ANSWER),))
    assert grounding_added(chat_body(ANSWER), post_chat(proxy.port, CHAT).body)["verdict"] == "partially_grounded"


def test_a_stream_to_a_request_without_one_is_still_a_stream(upstream: Upstream, proxy) -> None:
    upstream.reply = stream_reply(chat_events(ANSWER))
    answer = post_chat(proxy.port, CHAT | {"stream": False})
    assert answer.ended
    assert inserted(whole(chat_events(ANSWER)), answer.body).count(b'"grounding"') <= 1


@pytest.mark.parametrize("accept", ["gzip", None], ids=["asked for", "not asked for"])
def test_a_compressed_stream_keeps_its_events(upstream: Upstream, proxy, accept: str | None) -> None:
    upstream.reply = gzip_reply(stream_reply(chat_events(ANSWER)))
    answer = post_chat(proxy.port, CHAT, *([("accept-encoding", accept)] if accept else []))
    packed = answer.header("content-encoding") == "gzip"
    body = zlib.decompress(answer.body, wbits=31) if packed else answer.body
    assert grounding_added(whole(chat_events(ANSWER)), body)["verdict"] == "partially_grounded"


def test_a_compressed_stream_still_flows(upstream: Upstream, proxy) -> None:
    events = chat_events(ANSWER)
    steps, receipts = lock_step(events)
    upstream.reply = gzip_reply(stream_reply(steps))
    with (
        httpx.Client(timeout=60) as client,
        client.stream("POST", f"{proxy.base_url}/chat/completions", json=CHAT) as response,
    ):
        body = b""
        for piece in response.iter_bytes():
            body += piece
            for receipt in receipts[: body.count(b"\n\n")]:
                receipt.set()
    assert grounding_added(whole(events), body)["status"] == "complete"


def test_the_older_completions_carry_it_too(upstream: Upstream, proxy) -> None:
    upstream.reply = completion_reply([ANSWER], stream=True)
    with sdk(proxy.base_url) as client:
        chunks = list(client.completions.create(model="m", prompt=f"Facts: {CONTEXT}\n\nWhich?", stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == ANSWER
    assert [chunk.model_extra["grounding"]["verdict"] for chunk in chunks if "grounding" in chunk.model_extra] == [
        "partially_grounded"
    ]


CUTS: dict[str, tuple[Step, ...]] = {
    "between events": (*chat_events(ANSWER)[:6], Pause(0.05), Cut()),
    "inside an event": (*chat_events(ANSWER)[:6], chat_events(ANSWER)[6][:40], Pause(0.05), Cut()),
    "inside a character": (*chat_events("Blå 🟦 sky")[:3], b'data: {"x":"\xf0\x9f', Pause(0.05), Cut()),
    "by reset": (*chat_events(ANSWER)[:6], Pause(0.05), Cut(reset=True)),
    "before the end": (*chat_events(ANSWER)[:-1], Pause(0.05), Cut()),
    "before any event": (Pause(0.05), Cut()),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_stream_that_dies_ends_as_dead(upstream: Upstream, proxy, name: str) -> None:
    upstream.reply = stream_reply(CUTS[name])
    answer = post_chat(proxy.port, CHAT)
    complete = [step for step in CUTS[name] if isinstance(step, bytes) and step.endswith(b"\n\n")]
    assert b"[DONE]" not in answer.body
    if name == "before any event" and answer.status != 200:
        assert answer.status == 502
        return
    assert not answer.ended, "the connection must break, as the upstream's did"
    if name == "before the end":
        assert inserted(whole(complete), answer.body).count(b'"error"') == 1
    else:
        assert answer.body.startswith(whole(complete))
    errors = [json.loads(data)["error"] for data in map(data_of, events_of(answer.body)) if b'"error"' in data]
    assert len(errors) == 1
    assert set(errors[0]) >= {"message", "type", "param", "code"}
    if name != "before the end":  # there, every word had come and could be checked
        assert proxy.report(answer.header("x-grounding-id"))["status"] == "partial"


def test_the_sdk_sees_that_a_stream_died(upstream: Upstream, client: openai.OpenAI) -> None:
    upstream.reply = stream_reply(CUTS["between events"])
    seen = []
    stream = client.chat.completions.create(**CHAT)
    with pytest.raises((openai.APIError, httpx.HTTPError)):
        seen.extend(chunk.choices[0].delta.content or "" for chunk in stream)
    assert ANSWER.startswith("".join(seen))


def test_a_body_that_dies_is_no_answer(upstream: Upstream, proxy) -> None:
    upstream.reply = Reply((chat_body(ANSWER)[:200], Pause(0.05), Cut()), framing="chunked")
    answer = post_chat(proxy.port, CHAT | {"stream": False})
    assert answer.status == 502
    assert set(answer.json()["error"]) >= {"message", "type", "param", "code"}


def test_a_connection_that_dies_before_the_head_is_an_error(upstream: Upstream, proxy) -> None:
    upstream.reply = Reply(before=(Cut(),))
    for stream in (False, True):
        answer = post_chat(proxy.port, CHAT | {"stream": stream})
        assert answer.status == 502
        assert set(answer.json()["error"]) >= {"message", "type", "param", "code"}


def test_an_error_event_is_passed_on_and_nothing_is_claimed(upstream: Upstream, proxy) -> None:
    error = b'data: {"error":{"message":"Out of memory.","type":"server_error","param":null,"code":null}}\n\n'
    upstream.reply = stream_reply([*chat_events(ANSWER)[:6], error])
    answer = post_chat(proxy.port, CHAT)
    assert answer.body.startswith(whole(chat_events(ANSWER)[:6]))
    assert answer.body.count(b'"error"') == 1
    assert error in answer.body
    assert proxy.report(answer.header("x-grounding-id"))["status"] == "partial"


@pytest.mark.parametrize("numbered", [False, True], ids=["plain", "with ids"])
def test_a_silent_stream_gets_bare_comments_as_keep_alive(upstream: Upstream, start_proxy, numbered: bool) -> None:
    proxy = start_proxy(stream={"keepalive": "100ms", "tail_budget": "10s"})
    events = [b"id: 1\n" * numbered + event for event in chat_events(ANSWER)]
    upstream.reply = stream_reply([*events[:3], Pause(0.6), *events[3:]])
    answer = post_chat(proxy.port, CHAT)
    assert re.search(rb"^:\n", answer.body, re.MULTILINE)
    assert b":\n\n" not in answer.body
    assert grounding_added(whole(events), re.sub(rb"(?m)^:\n", b"", answer.body))["status"] == "complete"
    with sdk(proxy.base_url) as client:
        assert len(list(client.chat.completions.create(**CHAT))) == len(events) - 1


@pytest.mark.parametrize("mode", ["sync", "off"])
def test_half_an_event_is_not_broken_by_a_keep_alive(upstream: Upstream, start_proxy, mode: str) -> None:
    proxy = start_proxy(stream={"keepalive": "100ms", "tail_budget": "10s"})
    events = chat_events(ANSWER)
    upstream.reply = stream_reply([events[0], events[1][:30], Pause(0.6), events[1][30:], *events[2:]])
    answer = post_chat(proxy.port, CHAT | {"grounding": {"mode": mode}})
    received = [json.loads(data) for data in map(data_of, events_of(answer.body)) if data != b"[DONE]"]
    for event in received:
        event.pop("grounding", None)
    assert received == [json.loads(data_of(event)) for event in events[:-1]]


def test_events_after_done_do_not_get_lost_or_grounded(upstream: Upstream, proxy) -> None:
    late = as_event({"late": 1})
    upstream.reply = stream_reply([*chat_events(ANSWER), late])
    answer = post_chat(proxy.port, CHAT)
    assert b'"grounding"' not in answer.body[answer.body.index(b"[DONE]") :]


def test_an_unrequested_choice_is_examined_too(upstream: Upstream, proxy) -> None:
    """The first choice ends long before the second; the verdict waits for both."""
    upstream.reply = stream_reply(chat_events("The sky is blue.", ANSWER))
    answer = post_chat(proxy.port, CHAT)
    grounding = grounding_added(whole(chat_events("The sky is blue.", ANSWER)), answer.body)
    assert [choice["index"] for choice in grounding["choices"]] == [0, 1]
    assert grounding["coverage"]["answer_examined"] == 1
    assert "".join(claim["text"] for claim in grounding["choices"][1]["claims"])[-10:] == ANSWER[-10:]


def test_text_behind_the_finish_reason_is_in_the_stored_report(upstream: Upstream, proxy) -> None:
    late = delta_events(
        [(0, {"content": "The sky is blue."}, None), (0, {}, "stop"), (0, {"content": " Grass is purple."}, None)]
    )
    upstream.reply = stream_reply(late)
    answer = post_chat(proxy.port, CHAT)
    deadline = time.monotonic() + 60
    texts: list[str] = []
    while len(texts) < 2 and time.monotonic() < deadline:
        report = proxy.report(answer.header("x-grounding-id"))
        texts = [claim["text"] for claim in report["choices"][0]["claims"]]
    assert texts == ["The sky is blue.", "Grass is purple."]
