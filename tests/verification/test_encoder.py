"""ST4, RE1: an encoder is asked where words leave a claim open, within its time, and its failure costs no verdict."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.types import Choice, Claim, EncoderPolicy, Judgement, Policy, Source, Verdict
from proxy.verification import statement
from proxy.verification.aggregate import Examined, Reading, summarise
from proxy.verification.alignment.model import Blend
from proxy.verification.context.index import Context
from proxy.verification.encoder import Allowance, Encoder, Opinion, TooLong, verifier
from proxy.verification.judge import judge

TEXT = (
    "The Harwick wind farm stands off the coast and came into service in May 2019. The wind farm is not profitable. "
    "Its operator, Norrin Energy, paid for the construction of a harbour that serves the maintenance ships."
)
CONTEXT = Context([Source("farm", "source", TEXT, title="the wind farm's page")])
POLICY = Policy(encoder=EncoderPolicy("any", asked_from=0.0, asked_below=1.0))

STATED = "The operator paid for the harbour that serves maintenance ships."
OPEN = "The wind farm keeps local fishermen content with cheap electricity."
VERBATIM = "Its operator, Norrin Energy, paid for the construction of a harbour that serves the maintenance ships."
VETOED = "The Harwick wind farm is profitable."
NEW_NAME = "The harbour serves the maintenance ships of Halden Power."
ELSEWHERE = "Penguins eat krill."


def gives(support: float, *doubted: str) -> Encoder:
    return lambda claim, evidence: Opinion(support, doubted)


def check(text: str, encoder: Encoder, policy: Policy = POLICY, **options: object) -> Verdict:
    verdict = verifier(encoder, **options)(Claim("c1", text, 0, len(text)), CONTEXT, policy)  # type: ignore[arg-type]
    assert verdict is not None
    return verdict


def worded(text: str) -> Verdict:
    verdict = statement.verify(Claim("c1", text, 0, len(text)), CONTEXT, POLICY)
    assert verdict is not None
    return verdict


def test_an_encoder_clears_what_words_do_not():
    assert worded(OPEN).label == "unsupported"
    verdict = check(OPEN, gives(0.97))
    assert (verdict.label, verdict.method, verdict.validated) == ("supported", "encoder", 1)
    assert verdict.reason == "the wind farm's page says so: the encoder gives it 97%."
    assert {each.match for each in verdict.citations} == {"model"}


def test_an_encoder_doubts_what_words_state():
    assert worded(STATED).label == "supported"
    verdict = check(STATED, gives(0.03, "the harbour"))
    assert (verdict.label, verdict.method, verdict.validated) == ("unsupported", "encoder", 0)
    assert verdict.reason == 'the wind farm\'s page does not say so: the encoder gives it 3% and doubts "the harbour".'


def test_an_encoder_that_agrees_is_named_behind_the_reason_in_words():
    verdict = check(STATED, gives(0.9))
    assert verdict.reason == f"{worded(STATED).reason} The encoder gives it 90%."
    assert verdict.score == pytest.approx(Blend().probability(worded(STATED).score, 0.9), abs=1e-4)


@pytest.mark.parametrize(
    "text",
    [VERBATIM, VETOED, NEW_NAME, ELSEWHERE],
    ids=["verbatim", "a veto stands", "a new name", "nothing of the kind"],
)
@pytest.mark.parametrize("support", [0.0, 1.0])
def test_an_encoder_is_not_asked_where_words_decide(text: str, support: float):
    assert check(text, gives(support)) == worded(text)


@pytest.mark.parametrize(("low", "high", "asked"), [(0.0, 1.0, True), (0.99, 1.0, False), (0.0, 0.01, False)])
def test_an_encoder_is_asked_within_its_band_only(low: float, high: float, asked: bool):
    policy = Policy(encoder=EncoderPolicy("any", asked_from=low, asked_below=high))
    assert (check(STATED, gives(0.5), policy).method == "encoder") == asked


def test_an_encoder_reads_claims_without_markup_and_evidence_in_reading_order():
    read: list[tuple[str, str]] = []

    def listening(claim: str, evidence: str) -> Opinion:
        read.append((claim, evidence))
        return Opinion(0.9)

    check("The **operator** paid for a harbour\nthat serves ships [1].", listening)
    assert read[0][0] == "The operator paid for a harbour that serves ships ."
    assert "Its operator, Norrin Energy, paid for the construction" in read[0][1]


def test_all_passages_that_an_encoder_read_are_cited():
    padding = " ".join(f"Visitor {number} enjoyed the quiet museum." for number in range(9))
    parts = "The Harwick wind farm stands off the coast", "The Harwick wind farm pays for school meals"
    context = Context([Source("farm", "source", f"{parts[0]}. {padding} {parts[1]}.")])
    claim = Claim("c1", "The Harwick wind farm stands off the coast and pays for school meals.", 0, 0)
    read: list[str] = []

    def listening(claim: str, evidence: str) -> Opinion:
        read.append(evidence)
        return Opinion(0.9)

    verdict = verifier(listening)(claim, context, POLICY)
    assert verdict is not None
    cited = [each.text for each in verdict.citations]
    assert all(any(part in text for text in cited) and part in read[0] for part in parts)


def failing(error: Exception) -> Encoder:
    def encoder(claim: str, evidence: str) -> Opinion:
        raise error

    return encoder


@pytest.mark.parametrize(
    ("error", "why", "told"),
    [
        (RuntimeError("secret"), "error", "The encoder failed (RuntimeError)."),
        (TooLong("512"), "too_long", "It is too long for the encoder."),
    ],
    ids=["fails", "too long"],
)
def test_an_encoder_that_fails_leaves_the_verdict_to_the_words(error: Exception, why: str, told: str):
    verdict, alone = check(OPEN, failing(error)), worded(OPEN)
    assert (verdict.label, verdict.score, verdict.method) == (alone.label, alone.score, alone.method)
    assert (verdict.degraded, verdict.reason) == (why, f"{alone.reason} {told}")


def ticking(*times: float) -> Callable[[], float]:
    remaining = iter(times)
    return lambda: next(remaining)


def test_claims_past_the_time_of_an_answer_keep_the_words_verdict_and_are_told():
    policy = Policy(verifiers=("statement",), encoder=EncoderPolicy("any", 0.0, 1.0, budget_s=0.1))
    verify = verifier(gives(0.9), clock=ticking(0.0, 0.05, 1.0, 1.04))  # two claims: 50 ms and 40 ms
    claims = [Claim(f"c{n}", text, 0, len(text)) for n, text in enumerate((STATED, OPEN, STATED))]
    judgements = [judge(claim, CONTEXT, policy, (("statement", verify),)) for claim in claims]
    assert [each.verdict.method for each in judgements] == ["encoder", "encoder", worded(STATED).method]
    assert [each.is_final for each in judgements] == [True, True, False]
    report = summarise("", [Examined(Reading(Choice(0, ""), tuple(claims)), tuple(judgements))], CONTEXT, policy)
    assert report.degraded == (("encoder", "timeout"),)
    assert (report.status, "verifier_degraded" in report.flags) == ("complete", True)


def test_every_exchange_has_its_own_time():
    allowance, other = Allowance(), Context([Source("other", "source", TEXT)])
    allowance.charge(CONTEXT, 0.08)
    assert not allowance.admits(CONTEXT, 0.1)
    assert allowance.admits(other, 0.1)


@given(st.lists(st.floats(0, 1), max_size=20), st.floats(0, 2))
def test_only_a_first_claim_or_one_dearer_than_all_before_exceeds_the_time(costs: list[float], budget: float):
    allowance, context, spent, dearest = Allowance(), Context([]), 0.0, 0.0
    for cost in costs:
        if allowance.admits(context, budget):
            assert spent + dearest <= budget
            allowance.charge(context, cost)
            spent, dearest = spent + cost, max(dearest, cost)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_more_support_by_the_encoder_never_lowers_the_joined_probability(model: float, one: float, other: float):
    low, high = sorted((one, other))
    assert Blend().probability(model, low) <= Blend().probability(model, high)


def test_what_was_checked_by_all_is_final():
    claim, verdict = Claim("c1", "", 0, 0), worded(STATED)
    assert Judgement(claim, verdict, 1.0, (verdict,)).is_final
