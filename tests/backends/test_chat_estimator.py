"""Estimates from chat models over real sockets, with servers that omit, refuse or garble answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from groundwire.backends.estimators import SAMPLES, THINKING_TOKENS, ChatEstimator
from groundwire.domain import Claim, Estimate, Probability, Unavailable
from tests.backends.asked import CLAIMS, CONTEXT, DENIED_CLAIM, SILENT_CLAIM, STATED_CLAIM, asking, chatting, claim
from tests.edge.upstream import Received, Reply, error_reply
from tests.servers.believer import DENIED, STATED, UNSTATED, Believer, Manner, understand

BELIEFS = [STATED, DENIED, UNSTATED]
MANY = [claim(f"Plant {number} opened in 2023.") for number in range(20)]


def together(believer: Believer, claims: Sequence[Claim] = CLAIMS, **options: object) -> Sequence[Estimate]:
    found, _ = chatting(believer, lambda estimator: estimator.batch_estimate(claims, CONTEXT), **options)  # type: ignore[arg-type]
    return found


def alone(believer: Believer, one: Claim = STATED_CLAIM, **options: object) -> Estimate:
    found, _ = chatting(believer, lambda estimator: estimator.estimate_probability(one, CONTEXT), **options)  # type: ignore[arg-type]
    return found


def values(found: Sequence[Estimate]) -> list[float]:
    assert all(isinstance(each, Probability) for each in found), found
    return [each.value for each in found if isinstance(each, Probability)]


# --- estimates --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "believed"), list(zip(CLAIMS, BELIEFS, strict=True)), ids=["stated", "denied", "silent"]
)
def test_a_probability_is_what_the_model_believes(believer: Believer, one: Claim, believed: float) -> None:
    found = alone(believer, one)
    assert isinstance(found, Probability)
    assert (found.value, found.method) == (pytest.approx(believed, abs=0.001), "logprobs")
    assert found.lower <= believed + 1e-9
    assert believed - 1e-9 <= found.upper
    assert believer.calls == 1


@pytest.mark.parametrize(
    "manner",
    [
        pytest.param(
            Manner(yes=(("YES", 0.6), (" yes", 0.3), ("Yes", 0.1)), no=(("NO", 0.7), ("no", 0.3))), id="forms"
        ),
        pytest.param(Manner(most_top=5), id="five logprobs"),
        pytest.param(Manner(splits=True), id="a verdict in two tokens"),
        pytest.param(Manner(opening="\n"), id="a line break first"),
    ],
)
def test_however_a_server_spells_yes_its_probability_is_the_same(believer: Believer, manner: Manner) -> None:
    believer.manner = manner
    for one, believed in zip(CLAIMS, BELIEFS, strict=True):
        found = alone(believer, one)
        assert isinstance(found, Probability)
        assert found.lower - 1e-9 <= believed <= found.upper + 1e-9
        assert found.upper - found.lower < (0.06 if one is not SILENT_CLAIM else 0.51)


def test_a_server_with_only_one_logprob_leaves_an_interval(believer: Believer) -> None:
    believer.manner = Manner(most_top=1)
    found = alone(believer, SILENT_CLAIM)
    assert isinstance(found, Probability)
    assert found.lower <= UNSTATED <= found.upper
    assert found.upper - found.lower > 0.4


# --- groups -----------------------------------------------------------------------------------------------------------


def test_claims_on_one_context_go_in_one_call_each_with_its_own_probability(believer: Believer) -> None:
    found, meter = chatting(believer, lambda estimator: estimator.batch_estimate([STATED_CLAIM, DENIED_CLAIM], CONTEXT))
    assert values(found) == pytest.approx([STATED, DENIED], abs=0.001)
    assert (meter.calls, meter.prompt_tokens, meter.completion_tokens) == (1, 100, 4)


def test_many_claims_go_in_as_many_calls_as_there_are_batches(believer: Believer) -> None:
    believer.manner = Manner(known={each.text: 0.99 for each in MANY})
    assert values(together(believer, MANY, batch_size=8)) == pytest.approx([0.99] * 20, abs=0.001)
    assert believer.calls == 3


def test_a_claim_of_a_group_near_a_threshold_gets_a_separate_question(believer: Believer) -> None:
    believer.manner = Manner(known={SILENT_CLAIM.text: 0.94}, most_top=1)
    together(believer, [STATED_CLAIM, SILENT_CLAIM])
    asked = [understand([prompt]) for prompt in believer.prompts]
    assert [[text for _, text in read.claims] for read in asked if read] == [
        [STATED_CLAIM.text, SILENT_CLAIM.text],
        [SILENT_CLAIM.text],
    ]


@pytest.mark.parametrize(
    "garbles", ["missing", "repeated", "reordered", "unknown id", "undecided", "prose", "merged tokens"]
)
def test_a_garbled_group_gives_every_claim_its_own_probability_all_the_same(believer: Believer, garbles: str) -> None:
    believer.manner = Manner(garbles=garbles)  # type: ignore[arg-type]
    assert values(together(believer)) == pytest.approx(BELIEFS, abs=0.001)
    assert believer.calls <= 1 + len(CLAIMS)


# --- samples ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tells", [True, False], ids=["none are told", "none are asked for"])
def test_without_logprobs_a_claim_is_sampled(believer: Believer, tells: bool) -> None:
    believer.manner = Manner(logprobs=False, known={SILENT_CLAIM.text: 0.999})
    found = alone(believer, SILENT_CLAIM, has_logprobs=tells)
    assert isinstance(found, Probability)
    assert (found.method, found.value, found.upper) == ("samples", 1.0, 1.0)
    assert 0.7 <= found.lower < 0.8
    assert believer.calls == SAMPLES + tells


def test_sampling_ends_when_the_answers_differ(believer: Believer) -> None:
    believer.manner = Manner(logprobs=False)
    found = alone(believer, SILENT_CLAIM, has_logprobs=False)
    assert isinstance(found, Probability)
    assert found.lower < UNSTATED < found.upper
    assert believer.calls < SAMPLES


def test_a_group_is_sampled_as_one(believer: Believer) -> None:
    believer.manner = Manner(logprobs=False, known={SILENT_CLAIM.text: 0.999, STATED_CLAIM.text: 1.0})
    found = together(believer, [SILENT_CLAIM, DENIED_CLAIM], has_logprobs=False)
    assert values(found) == [1.0, 0.0]
    assert believer.calls == SAMPLES


def test_questions_of_a_sample_ask_for_no_logprobs(believer: Believer) -> None:
    believer.manner = Manner(logprobs=False)
    alone(believer, STATED_CLAIM, has_logprobs=False)
    asked = [exchange.received.json() for exchange in believer.upstream.exchanges]
    assert all("logprobs" not in each and each["temperature"] == 1.0 for each in asked)


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_reasoning_model_is_sampled_with_a_budget(believer: Believer) -> None:
    believes = believer.upstream.reply
    assert callable(believes)
    refusal = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."

    def reply(received: Received) -> Reply:
        asked = received.json()
        if "max_tokens" in asked or "temperature" in asked:
            return error_reply(400, refusal, type="invalid_request_error", param="max_tokens")
        assert asked["max_completion_tokens"] == THINKING_TOKENS
        return believes(received)

    believer.upstream.reply = reply
    found, _ = chatting(believer, lambda each: each.estimate_probability(STATED_CLAIM, CONTEXT))
    assert isinstance(found, Probability)
    assert (found.method, found.value > 0.8) == ("samples", True)


def test_a_refusal_is_no_probability(believer: Believer) -> None:
    believer.manner = Manner(refuses=True)
    assert alone(believer) == Unavailable("no_verdict")
    assert list(together(believer)) == [Unavailable("no_verdict")] * 3


def test_a_rate_limit_returns_the_retry_delay(believer: Believer) -> None:
    believer.manner = Manner(busy=100, retry_after="7")
    assert list(together(believer)) == [Unavailable("rate_limited", 7.0)] * 3
    assert believer.calls == 1


@pytest.mark.parametrize(("said", "told"), [("soon", None), ("-3", 0.0), ("999999", 3600.0), ("0.5", 0.5)])
def test_an_odd_retry_after_does_no_harm(believer: Believer, said: str, told: float | None) -> None:
    believer.manner = Manner(busy=100, retry_after=said)
    assert alone(believer) == Unavailable("rate_limited", told)


def test_a_failing_server_is_logged_without_content(believer: Believer) -> None:
    believer.manner = Manner(fails=100)
    with capture_logs() as logs:
        assert alone(believer) == Unavailable("unreachable")
    assert [(entry["event"], entry["reason"]) for entry in logs] == [("estimate.failed", "status 500")]
    assert "Revenue" not in str(logs)


def test_a_server_that_cannot_be_reached_gives_no_probability(believer: Believer) -> None:
    found, _ = asking(
        "http://127.0.0.1:9/v1",
        lambda ask: ChatEstimator(ask, "m").estimate_probability(STATED_CLAIM, CONTEXT),
        "/chat/completions",
    )
    assert found == Unavailable("unreachable")


def test_a_server_that_hangs_costs_no_more_than_the_time_given(believer: Believer) -> None:
    believer.manner = Manner(hangs=True)
    assert list(together(believer, MANY, timeout=0.3, at_once=1)) == [Unavailable("timeout")] * 20
    assert believer.upstream.exchanges[0].left.wait(60)


def test_no_more_calls_are_in_flight_than_allowed(believer: Believer) -> None:
    believer.manner = Manner(hangs=True)
    together(believer, MANY, timeout=0.5, batch_size=1, at_once=3)
    assert believer.calls == 3


def test_timely_estimates_are_returned_when_the_rest_times_out(believer: Believer) -> None:
    believer.manner = Manner(delay_s=0.2, known={each.text: 0.99 for each in MANY})
    found = together(believer, MANY, timeout=0.5, batch_size=1, at_once=4)
    causes = [isinstance(each, Probability) or each.cause for each in found]
    assert causes[:4] == [True] * 4
    assert causes[-1] == "timeout"
