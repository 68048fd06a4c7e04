"""A language model or a service as judge, through a running proxy with the real SDK."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.edge.clients import sdk
from tests.edge.upstream import (
    Received,
    Reply,
    Stall,
    Upstream,
    as_json,
    body_reply,
    chat_body,
    chat_events,
    error_reply,
    stream_reply,
)

CONTEXT = "The board of Acme, after long talks with the unions, sold the plant in March. It has 40 staff."
STATED, DENIED, SILENT = (
    "Acme parted with its factory in spring.",
    "Acme kept its factory throughout the year.",
    "Two advisers from Sweden were hired by Acme.",
)
ANSWER = f"{STATED} {DENIED} {SILENT}"
WORDS = {STATED: "STATED", DENIED: "CONTRADICTED", SILENT: "NOT STATED"}

Judged = Callable[[Received], Reply]


def is_question(received: Received) -> bool:
    return b"CONTRADICTED: the context states" in received.body


def claim_of(received: Received) -> str:
    return next(claim for claim in WORDS if claim in received.json()["messages"][1]["content"].split("CLAIM")[1])


def says(received: Received) -> Reply:
    is_removed = b"[EVIDENCE REMOVED]" in received.body
    return body_reply(chat_body("NOT STATED" if is_removed else WORDS[claim_of(received)]))


@pytest.fixture
def model() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


def answering(server: Upstream, judge: Judged = says) -> None:
    """Answer requests with ANSWER, and questions of the proxy as `judge` does."""

    def reply(received: Received) -> Reply:
        if is_question(received):
            return judge(received)
        is_streamed = received.json().get("stream")
        return stream_reply(chat_events(ANSWER)) if is_streamed else body_reply(chat_body(ANSWER))

    server.reply = reply


def questions(server: Upstream) -> list[Received]:
    return [each.received for each in server.exchanges if is_question(each.received)]


def report(proxy: Any, **fields: Any) -> Mapping[str, Any]:
    messages: Any = [{"role": "system", "content": CONTEXT}, {"role": "user", "content": "What happened?"}]
    with sdk(proxy.base_url) as client:
        completion = client.chat.completions.create(model="m", messages=messages, **fields)
        found: Mapping[str, Any] = (completion.model_extra or {})["grounding"]
    return proxy.report(found["id"]) if found["status"] == "pending" else found


def labels(found: Mapping[str, Any]) -> dict[str, str]:
    return {claim["text"]: claim["label"] for claim in found["choices"][0]["claims"]}


EXPECTED = {STATED: "supported", DENIED: "contradicted", SILENT: "unsupported"}


def test_the_model_that_answered_judges_its_answer(model: Upstream, start_proxy: Any) -> None:
    answering(model)
    proxy = start_proxy(upstreams={"up": {"base_url": model.base_url}}, judge={"by": "self"})
    found = report(proxy)
    assert labels(found) == EXPECTED
    assert found["degraded"] == []
    assert {each.json()["model"] for each in questions(model)} == {"m"}
    assert {each.header("authorization") for each in questions(model)} == {"Bearer sk-test"}
    (stage,) = [each for each in found["stages"] if each["stage"] == "judge"]
    assert (stage["claims"], stage["calls"]) == (3, 3)
    assert stage["prompt_tokens"] > 0


def test_another_model_judges_at_its_own_upstream_without_the_client_s_key(
    model: Upstream, upstream: Upstream, start_proxy: Any
) -> None:
    answering(upstream)
    answering(model)
    upstreams = {
        "up": {"base_url": upstream.base_url, "models": ["m"]},
        "other": {"base_url": model.base_url, "models": ["judge-*"]},
    }
    proxy = start_proxy(upstreams=upstreams, judge={"by": "judge-7b"})
    assert labels(report(proxy)) == EXPECTED
    assert questions(upstream) == []
    assert {each.json()["model"] for each in questions(model)} == {"judge-7b"}
    assert {each.header("authorization") for each in questions(model)} == {None}


def test_a_stream_is_judged_too_and_each_claim_only_once(model: Upstream, upstream: Upstream, start_proxy: Any) -> None:
    answering(upstream)
    answering(model)
    upstreams = {"up": {"base_url": upstream.base_url, "models": ["m"]}, "other": {"base_url": model.base_url}}
    proxy = start_proxy(upstreams=upstreams, judge={"by": "other/judge"})
    messages: Any = [{"role": "system", "content": CONTEXT}, {"role": "user", "content": "What happened?"}]
    with sdk(proxy.base_url) as client:
        raw = client.chat.completions.with_raw_response.create(model="m", messages=messages, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in raw.parse() if chunk.choices) == ANSWER
        found = proxy.report(raw.headers["x-grounding-id"])
    assert labels(found) == EXPECTED
    assert len(questions(model)) == 3
    report(proxy)
    assert len(questions(model)) == 3  # verdicts are cached


def test_a_hanging_judge_delays_no_answer_and_is_reported(model: Upstream, start_proxy: Any) -> None:
    answering(model, lambda _: Reply(before=(Stall(),)))
    judge = {"by": "self", "timeout": "3s"}
    proxy = start_proxy(upstreams={"up": {"base_url": model.base_url}}, judge=judge, grounding={"timeout": "300ms"})
    messages: Any = [{"role": "system", "content": CONTEXT}, {"role": "user", "content": "What happened?"}]
    with sdk(proxy.base_url) as client:
        completion = client.chat.completions.create(model="m", messages=messages)
    first = (completion.model_extra or {})["grounding"]
    assert (completion.choices[0].message.content, first["status"]) == (ANSWER, "pending")
    found = proxy.report(first["id"])
    assert questions(model)
    assert {"verifier": "judge", "reason": "timeout"} in found["degraded"]
    assert "verifier_degraded" in found["flags"]


@pytest.mark.parametrize(
    ("judge", "reason"),
    [
        (lambda _: error_reply(500, "out of memory", type="server_error"), "unavailable"),
        (lambda _: error_reply(429, "later", type="rate_limit_error"), "rate_limited"),
        (lambda _: body_reply(chat_body("I would rather not say.")), "no_verdict"),
        (lambda _: body_reply(b"<html>"), "error"),
    ],
    ids=["fails", "is busy", "says nothing", "is no model"],
)
def test_a_judge_that_fails_is_never_a_clean_report(
    model: Upstream, start_proxy: Any, judge: Judged, reason: str
) -> None:
    answering(model, judge)
    proxy = start_proxy(upstreams={"up": {"base_url": model.base_url}}, judge={"by": "self"})
    found = report(proxy)
    assert {"verifier": "judge", "reason": reason} in found["degraded"]
    assert "verifier_degraded" in found["flags"]
    assert set(labels(found)) == set(WORDS)


def test_a_service_judges_by_its_contract(model: Upstream, upstream: Upstream, start_proxy: Any) -> None:
    answering(upstream)
    known = {STATED: (0.97, 0.0), DENIED: (0.02, 0.95), SILENT: (0.02, 0.01)}

    def judge(received: Received) -> Reply:
        asked = received.json()
        assert received.header("authorization") == "Bearer secret"
        assert [source["text"] for source in asked["context"]] == [CONTEXT]
        found = [(each["id"], *known[each["claim"]]) for each in asked["claims"]]
        return body_reply(
            as_json({"estimates": [{"id": i, "probability": p, "contradiction": c} for i, p, c in found]})
        )

    model.reply = judge
    settings = {"by": "external", "url": f"{model.base_url}/judge", "key_env": "JUDGE_KEY"}
    proxy = start_proxy({"JUDGE_KEY": "secret"}, judge=settings)
    assert labels(report(proxy)) == EXPECTED
    assert len(model.exchanges) == 1


def test_a_single_claim_is_judged_by_it_with_its_budget(model: Upstream, start_proxy: Any) -> None:
    answering(model)
    proxy = start_proxy(upstreams={"up": {"base_url": model.base_url}}, judge={"by": "up/judge"})
    body = {"claim": DENIED, "evidence": [{"text": CONTEXT}]}
    found = httpx.post(f"{proxy.base_url}/grounding/claim", json=body, timeout=60).json()
    assert (found["label"], found["budget"]["status"]) == ("contradicted", "contradicted")
    assert found["budget"]["p1"] < 0.5


def test_settings_that_name_no_model_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("upstreams: {up: {base_url: http://127.0.0.1:9/v1, models: [m]}}\njudge: {by: nobody}\n")
    done = subprocess.run(
        [sys.executable, "-c", "from groundwire.cli import main; main()", "config", "-c", str(config)],
        capture_output=True,
        text=True,
        timeout=300,
        env={name: text for name, text in os.environ.items() if not name.startswith("GROUNDWIRE_JUDGE")},
    )
    assert done.returncode == 2
    assert "judge.by: The model 'nobody' is served by no upstream" in done.stderr
