"""Samples of a request alongside its answer, with the real SDK over real sockets; no answer waits for them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.edge.clients import JSON_HEADERS, RawClient, sdk
from tests.edge.proxies import Proxy
from tests.edge.upstream import (
    Received,
    Reply,
    Stall,
    Upstream,
    Wait,
    body_reply,
    chat_body,
    chat_events,
    error_reply,
    stream_reply,
)

Start = Callable[..., Proxy]

ANSWER = "Acme was founded in 1987. Lee leads the team."
SAMPLES = {0.0: ANSWER, 0.1: "Acme was founded in 1993. Lee leads the team.", 0.2: "Acme was founded in 1987."}
MESSAGES: Any = [
    {"role": "system", "content": "Acme was founded in 1987. Lee leads the team."},
    {"role": "user", "content": "What do you know of Acme?"},
]


class Model:
    """A model server that answers `ANSWER`, and answers samples from `samples` by temperature."""

    def __init__(self, upstream: Upstream) -> None:
        self.samples: dict[float, Reply] = {at: body_reply(chat_body(text)) for at, text in SAMPLES.items()}
        self.answer: Reply = body_reply(chat_body(ANSWER))
        self.asked: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        upstream.reply = self._reply

    def _reply(self, received: Received) -> Reply:
        body = received.json()
        with self._lock:
            self.asked.append(body)
        return self.samples[body["temperature"]] if "temperature" in body else self.answer

    @property
    def temperatures(self) -> list[float]:
        """The temperatures of the samples, in ascending order."""
        return sorted(body["temperature"] for body in self.asked if "temperature" in body)


@pytest.fixture
def model(upstream: Upstream) -> Model:
    return Model(upstream)


@pytest.fixture
def ask(start_proxy: Start, model: Model) -> Callable[..., tuple[Proxy, dict[str, Any]]]:
    """Ask through a proxy with these sections; return the proxy and the report in the answer."""

    def asked(grounding: dict[str, Any], stream: bool = False, **sections: Any) -> tuple[Proxy, dict[str, Any]]:
        proxy = start_proxy(**sections)
        with sdk(proxy.base_url) as client:
            extra = {"grounding": grounding}
            if stream:
                chunks = client.chat.completions.create(model="m", messages=MESSAGES, extra_body=extra, stream=True)
                found = [chunk.model_extra["grounding"] for chunk in chunks if "grounding" in (chunk.model_extra or {})]
                return proxy, found[0]
            completion = client.chat.completions.create(model="m", messages=MESSAGES, extra_body=extra)
            assert completion.choices[0].message.content == ANSWER
            return proxy, (completion.model_extra or {})["grounding"]

    return asked


def test_nothing_is_sampled_without_a_request_for_it(ask: Callable[..., Any], model: Model) -> None:
    _, report = ask({})
    assert "self_consistency" not in report
    assert model.temperatures == []


def test_claims_are_compared_and_risk_and_usage_are_separate(ask: Callable[..., Any], model: Model) -> None:
    proxy, report = ask({"samples": 3})
    found = proxy.self_consistency(report["id"])
    assert model.temperatures == [0.0, 0.1, 0.2]
    assert (found["status"], found["samples"], found["answered"]) == ("complete", 3, 3)
    assert [claim["votes"] for claim in found["claims"]] == [[1.0, 0.0, 1.0], [1.0, 1.0, 0.5]]
    assert found["risk"] == pytest.approx((1 / 3 + 0.25 / 3) / 2, abs=1e-3)
    assert found["usage"]["calls"] == 3
    assert found["usage"]["completion_tokens"] > 0


def test_samples_of_a_stream_are_the_same_request_in_one_body(ask: Callable[..., Any], model: Model) -> None:
    model.answer = stream_reply(chat_events(ANSWER))
    proxy, report = ask({"samples": 3}, stream=True)
    proxy.self_consistency(report["id"])
    samples = [body for body in model.asked if "temperature" in body]
    asked = {"model": "m", "messages": MESSAGES}
    assert [{key: body[key] for key in body if key != "temperature"} for body in samples] == [asked] * 3


def test_every_answer_is_sampled_where_the_config_enables_it(ask: Callable[..., Any], model: Model) -> None:
    model.samples[0.7] = model.samples[0.8] = model.samples[0.6] = model.samples[0.0]
    proxy, report = ask({}, sampling={"enabled": True, "samples": 3, "temperatures": [0.6, 0.7]})
    assert proxy.self_consistency(report["id"])["risk"] == 0.0
    assert model.temperatures == [0.6, 0.7, 0.8]


def test_requests_for_samples_can_be_disallowed(ask: Callable[..., Any], model: Model) -> None:
    proxy, report = ask({"samples": 5}, sampling={"on_request": False})
    found = proxy.self_consistency(report["id"])
    assert (found["status"], found["reasons"], found["usage"]["calls"]) == ("failed", ["not_allowed"], 0)
    assert model.temperatures == []


@pytest.mark.parametrize("stream", [False, True], ids=["body", "stream"])
def test_an_answer_never_waits_for_its_samples(ask: Callable[..., Any], model: Model, stream: bool) -> None:
    slow = body_reply(chat_body(ANSWER))
    answered = threading.Event()
    for at in SAMPLES:
        model.samples[at] = Reply(slow.body, slow.status, slow.headers, slow.framing, (Wait(answered),))
    if stream:
        model.answer = stream_reply(chat_events(ANSWER))
    proxy, report = ask({"samples": 3}, stream)
    assert report["self_consistency"] == {"status": "pending", "samples": 3, "temperatures": [0.0, 0.1, 0.2]}
    assert report["status"] == "complete"
    answered.set()
    assert proxy.self_consistency(report["id"])["risk"] == 0.0


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (error_reply(429, "slow down", type="rate_limit_error"), "status 429"),
        (error_reply(400, "temperature is not supported", type="invalid_request_error"), "status 400"),
        (body_reply(b"no json"), "unreadable"),
        (body_reply(b'{"choices": []}'), "no text"),
    ],
    ids=["rate limited", "refused", "no json", "no choices"],
)
def test_failed_samples_are_reported_and_change_no_answer(
    ask: Callable[..., Any], model: Model, sample: Reply, reason: str
) -> None:
    model.samples = dict.fromkeys(SAMPLES, sample)
    proxy, report = ask({"samples": 3})
    found = proxy.self_consistency(report["id"])
    assert (found["status"], found["risk"], found["reasons"]) == ("failed", None, [reason])
    assert proxy.report(report["id"])["verdict"] == "grounded"


def test_samples_that_hang_end_in_time(ask: Callable[..., Any], model: Model) -> None:
    model.samples = dict.fromkeys(SAMPLES, Reply((b"",), before=(Stall(),)))
    proxy, report = ask({"samples": 3}, sampling={"timeout": "300ms"})
    assert proxy.self_consistency(report["id"])["reasons"] == ["timeout"]


def test_some_samples_are_enough(ask: Callable[..., Any], model: Model) -> None:
    model.samples[0.1] = error_reply(500, "out of memory", type="server_error")
    proxy, report = ask({"samples": 3})
    found = proxy.self_consistency(report["id"])
    assert (found["status"], found["answered"], found["reasons"]) == ("complete", 2, ["status 500"])


def test_a_gone_client_cancels_the_samples_too(model: Model, upstream: Upstream, proxy: Proxy) -> None:
    stalled = Reply((b"",), before=(Stall(),))
    model.answer, model.samples = stalled, dict.fromkeys(SAMPLES, stalled)
    body = {"model": "m", "messages": MESSAGES, "grounding": {"samples": 3}}
    with RawClient(proxy.port) as client:
        client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(body).encode())
        upstream.wait_for_requests(4)
    assert all(exchange.left.wait(60) for exchange in upstream.exchanges)
