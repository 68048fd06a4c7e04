"""The corrective retry for answers that break their schema, over real sockets; the answer itself stays as it is."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.edge.proxies import Proxy
from tests.edge.upstream import (
    Received,
    Reply,
    Upstream,
    Wait,
    body_reply,
    chat_body,
    chat_events,
    error_reply,
    stream_reply,
)
from tests.waiting import found_within

BROKEN = '{"quotes": "The sky is blue"}'
FIXED = '{"quotes": ["The sky is blue"]}'
MESSAGES = [{"role": "system", "content": "The sky is blue on a clear day."}, {"role": "user", "content": "Quote it."}]
ASKED: dict[str, Any] = {"model": "m", "messages": MESSAGES, "temperature": 0.5}
WANTED = {"evidence_fields": ["quotes"], "corrective_retry": True}

Start = Callable[..., Proxy]


class Model:
    """A model server that answers with `first`, and with `second` once it gets the violations."""

    def __init__(self, upstream: Upstream, first: Reply, second: Reply) -> None:
        self.asked: list[Received] = []
        self._replies = [first, second]
        upstream.reply = self._reply

    def _reply(self, received: Received) -> Reply:
        self.asked.append(received)
        return self._replies[min(len(self.asked), 2) - 1]


def said(text: str) -> Reply:
    return body_reply(chat_body(text))


def post(proxy: Proxy, body: dict[str, Any], **headers: str) -> httpx.Response:
    reply = httpx.post(f"{proxy.base_url}/chat/completions", json=body, headers=headers, timeout=60)
    assert reply.status_code == 200, reply.text
    return reply


def correction(proxy: Proxy, id_: str) -> dict[str, Any]:
    """Return the correction in the stored report, once it is made."""

    def look() -> dict[str, Any] | None:
        found: dict[str, Any] = proxy.report(id_)["correction"]
        return found if found["status"] != "pending" else None

    return found_within(30.0, look)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_model_is_retried_exactly_once_and_the_answer_stays(
    upstream: Upstream, start_proxy: Start, streamed: bool
) -> None:
    waiting = threading.Event()
    slow = said(FIXED)
    slow = Reply(slow.body, slow.status, slow.headers, slow.framing, (Wait(waiting),))
    model = Model(upstream, stream_reply(chat_events(BROKEN)) if streamed else said(BROKEN), slow)
    proxy = start_proxy(stream={"tail_budget": "10s"})
    reply = post(proxy, ASKED | {"stream": streamed, "grounding": WANTED}, authorization="Bearer sk-mine")
    if not streamed:
        assert reply.json()["choices"][0]["message"]["content"] == BROKEN
        assert reply.json()["grounding"]["correction"] == {"status": "pending"}
    waiting.set()
    id_ = reply.headers["x-grounding-id"]
    found = correction(proxy, id_)
    assert (found["status"], found["answer"], found["violations"]) == ("complete", FIXED, [])
    assert found["usage"] == {"prompt_tokens": 11, "completion_tokens": 5}
    report = proxy.report(id_)
    assert "evidence_schema_violation" in report["flags"]
    assert [each["found"] for each in report["schema"]["violations"]] == ["string"]
    assert len(model.asked) == 2
    second = model.asked[1].json()
    *before, answered, told = second.pop("messages")
    assert (before, answered) == (MESSAGES, {"role": "assistant", "content": BROKEN})
    assert "quotes: expected array, found string" in told["content"]
    assert second == {"model": "m", "temperature": 0.5}
    assert model.asked[1].header("authorization") == "Bearer sk-mine"


@pytest.mark.parametrize(
    ("second", "status", "left", "reason"),
    [
        pytest.param(said('{"quotes": [1]}'), "complete", 1, None, id="still broken"),
        pytest.param(said("no JSON"), "complete", 1, None, id="no JSON"),
        pytest.param(said(""), "failed", None, "no text", id="no text"),
        pytest.param(error_reply(500, "no", type="server_error"), "failed", None, "status 500", id="refused"),
    ],
)
def test_there_is_one_retry_whatever_comes_of_it(
    upstream: Upstream, proxy: Proxy, second: Reply, status: str, left: int | None, reason: str | None
) -> None:
    model = Model(upstream, said(BROKEN), second)
    found = correction(proxy, post(proxy, ASKED | {"grounding": WANTED}).headers["x-grounding-id"])
    violations = found.get("violations")
    assert (found["status"], violations and len(violations), found.get("reason")) == (status, left, reason)
    assert len(model.asked) == 2


def test_a_json_schema_is_corrected_too(upstream: Upstream, proxy: Proxy) -> None:
    Model(upstream, said('{"year": "2021"}'), said('{"year": 2021}'))
    schema = {"type": "object", "properties": {"year": {"type": "integer"}}}
    format_ = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    body = ASKED | {"response_format": format_, "grounding": {"corrective_retry": True}}
    found = correction(proxy, post(proxy, body).headers["x-grounding-id"])
    assert (found["answer"], found["violations"]) == ('{"year": 2021}', [])


def test_no_retry_is_sent_without_need_or_permission(upstream: Upstream, start_proxy: Start) -> None:
    model = Model(upstream, said(BROKEN), said(FIXED))
    unasked = post(start_proxy(), ASKED | {"grounding": {"evidence_fields": ["quotes"]}}).json()["grounding"]
    assert "correction" not in unasked
    model = Model(upstream, said(BROKEN), said(FIXED))
    refused = post(start_proxy(correction={"on_request": False}), ASKED | {"grounding": WANTED}).json()["grounding"]
    assert (refused["correction"]["status"], refused["correction"]["reason"]) == ("failed", "not_allowed")
    model = Model(upstream, said(FIXED), said(FIXED))
    proxy = start_proxy(correction={"enabled": True})
    assert "correction" not in post(proxy, ASKED | {"grounding": WANTED}).json()["grounding"]
    model = Model(upstream, body_reply(chat_body(BROKEN, BROKEN)), said(FIXED))
    several = post(proxy, ASKED | {"n": 2, "grounding": {"evidence_fields": ["quotes"]}}).json()["grounding"]
    assert several["correction"]["reason"] == "several_choices"
    assert len(model.asked) == 1


def test_an_answer_at_verify_is_corrected_too(upstream: Upstream, proxy: Proxy) -> None:
    model = Model(upstream, said(FIXED), said(FIXED))
    body = {"answer": BROKEN, "model": "m", "messages": MESSAGES, **WANTED}
    found = httpx.post(f"{proxy.base_url}/grounding/verify", json=body, timeout=60).json()
    assert correction(proxy, found["id"])["answer"] == FIXED
    assert json.loads(model.asked[0].body)["messages"][:2] == MESSAGES
    del body["model"]
    refused = httpx.post(f"{proxy.base_url}/grounding/verify", json=body, timeout=60)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "corrective_retry")
