"""An external service called by the contract of docs/information-budget.md, with all kinds of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from groundwire.domain import Estimate, Probability, Unavailable
from tests.backends.asked import CLAIMS, CONTEXT, STATED_CLAIM, claim, serving
from tests.edge.upstream import Received, Reply, Stall, Upstream, as_json, body_reply, error_reply

Answer = Callable[[dict[str, Any]], object]


@pytest.fixture
def service() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


def answering(service: Upstream, answer: Answer) -> None:
    service.reply = lambda received: body_reply(as_json(answer(received.json())))


def each_with(**fields: object) -> Answer:
    return lambda asked: {"estimates": [{"id": each["id"], **fields} for each in asked["claims"]]}


def estimates(service: Upstream, count: int = 3, **limits: Any) -> Sequence[Estimate]:
    found, _ = serving(service.base_url, lambda each: each.batch_estimate(CLAIMS[:count], CONTEXT), **limits)
    return found


def test_the_service_gets_the_sources_and_numbered_claims(service: Upstream) -> None:
    answering(service, each_with(probability=0.5))
    leaning = claim("It rose.", lead="Profit was low.")
    serving(service.base_url, lambda each: each.batch_estimate([STATED_CLAIM, leaning], CONTEXT))
    (exchange,) = service.exchanges
    assert exchange.received.path == "/v1"
    assert exchange.received.json() == {
        "version": 1,
        "context": [
            {"id": "s1", "text": CONTEXT[0].text},
            {"id": "s2", "title": "Weather", "text": "It rained in May."},
        ],
        "claims": [
            {"id": "1", "claim": STATED_CLAIM.text},
            {"id": "2", "claim": "It rose.", "said_before": "Profit was low."},
        ],
    }


def test_its_probabilities_find_their_claims_in_any_order(service: Upstream) -> None:
    answers = [{"id": "3", "probability": 0.3}, {"id": "1", "probability": 1}, {"id": "2", "probability": 0}]
    answering(service, lambda _: {"estimates": answers})
    assert list(estimates(service)) == [Probability(value, value, value, "service") for value in (1.0, 0.0, 0.3)]


def test_the_service_may_return_an_interval_and_its_cost(service: Upstream) -> None:
    sure = each_with(probability=0.9, lower=0.8, upper=1)
    answering(service, lambda asked: {**sure(asked), "usage": {"prompt_tokens": 7, "completion_tokens": 2}})  # type: ignore[dict-item]
    found, meter = serving(service.base_url, lambda each: each.estimate_probability(STATED_CLAIM, CONTEXT))
    assert found == Probability(0.9, 0.8, 1.0, "service")
    assert (meter.calls, meter.prompt_tokens, meter.completion_tokens) == (1, 7, 2)


def test_claims_go_to_it_in_batches(service: Upstream) -> None:
    answering(service, each_with(probability=0.5))
    estimates(service, batch_size=2)
    assert sorted(len(each.received.json()["claims"]) for each in service.exchanges) == [1, 2]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"estimates": "none"}, id="no list"),
        pytest.param({"estimates": [0.9]}, id="bare numbers"),
        pytest.param({"estimates": [{"id": "9", "probability": 0.5}]}, id="another id"),
        pytest.param({"estimates": [{"id": "1", "probability": "0.5"}]}, id="text"),
        pytest.param({"estimates": [{"id": "1", "probability": True}]}, id="a truth value"),
        pytest.param({"estimates": [{"id": "1", "probability": 1.2}]}, id="over one"),
        pytest.param({"estimates": [{"id": "1", "probability": 0.5, "lower": 0.6}]}, id="outside its interval"),
        pytest.param({"estimates": [{"id": "1", "probability": None}]}, id="null"),
    ],
)
def test_an_invalid_probability_is_unavailable(service: Upstream, answer: object) -> None:
    answering(service, lambda _: answer)
    assert list(estimates(service, 1)) == [Unavailable("no_verdict")]


def test_two_answers_about_one_claim_are_none(service: Upstream) -> None:
    answering(service, lambda _: {"estimates": [{"id": "1", "probability": p} for p in (0.1, 0.9)]})
    assert list(estimates(service, 1)) == [Unavailable("misaligned")]


def busy(_: Received) -> Reply:
    return error_reply(429, "slow down", type="rate_limit_error").with_headers(("retry-after", "3"))


@pytest.mark.parametrize(
    ("reply", "estimate"),
    [
        pytest.param(busy, Unavailable("rate_limited", 3.0), id="busy"),
        pytest.param(lambda _: error_reply(400, "no", type="x"), Unavailable("error"), id="refused"),
        pytest.param(lambda _: error_reply(401, "no", type="x"), Unavailable("error"), id="not let in"),
        pytest.param(lambda _: error_reply(500, "no", type="x"), Unavailable("unreachable"), id="broken"),
        pytest.param(lambda _: body_reply(b"<html>"), Unavailable("error"), id="no JSON"),
        pytest.param(lambda _: body_reply(b"[]"), Unavailable("error"), id="a list"),
        pytest.param(lambda _: Reply(before=(Stall(),)), Unavailable("timeout"), id="hanging"),
    ],
)
def test_whatever_goes_wrong_is_a_value(service: Upstream, reply: Any, estimate: Unavailable) -> None:
    service.reply = reply
    assert list(estimates(service, 2, timeout=0.5)) == [estimate] * 2
