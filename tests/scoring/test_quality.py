"""The quality of an exchange, and the thresholds that it misses."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.policy import Thresholds
from groundwire.report import Confidence, Consistency, Contradiction, Report, Risk, SelfConsistency
from groundwire.scoring.aggregate import rate
from groundwire.scoring.rating import missed, quality

shares = st.floats(0, 1)
AGAINST = Contradiction(0, "c1", "Now.", "Then.", "gw-0", 1.0, "semantic", "high", "Denied.")


def report(
    score: float | None, confidence: float | None = None, consistency: float | None = None, risk: float = 0.0
) -> Report:
    return Report(
        "gw-1",
        "complete",
        "grounded",
        score,
        confidence=None if confidence is None else Confidence(confidence, "high", ""),
        consistency=None if consistency is None else Consistency(consistency, (AGAINST,), 2),
        risk=Risk(risk, "low", ()),
    )


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        pytest.param(None, report(None, 0.9, 0.9), id="nothing checked"),
        pytest.param(0.8, report(0.8), id="grounding alone"),
        pytest.param(0.85, report(1.0, 0.6), id="with confidence"),
        pytest.param(0.78, report(1.0, 0.6, 0.5), id="with consistency"),
    ],
)
def test_quality_is_the_weighted_mean_of_what_is_known(expected: float | None, found: Report) -> None:
    assert quality(found) == (expected if expected is None else pytest.approx(expected))


@given(st.none() | shares, st.none() | shares, st.none() | shares)
def test_quality_lies_between_the_worst_and_the_best_of_its_parts(
    score: float | None, confidence: float | None, consistency: float | None
) -> None:
    found = quality(report(score, confidence, consistency))
    known = [value for value in (score, confidence, consistency) if value is not None]
    assert (found is None) == (score is None)
    assert found is None or min(known) - 1e-9 <= found <= max(known) + 1e-9


@pytest.mark.parametrize(
    ("warnings", "found"),
    [
        pytest.param((), report(0.7, 0.6, 0.8, 0.3), id="every threshold just met"),
        pytest.param(("grounding is 0.69, below 0.7",), report(0.69), id="grounding"),
        pytest.param(("confidence is 0.50, below 0.6",), report(1.0, 0.5), id="confidence"),
        pytest.param(("consistency is 0.75, below 0.8",), report(1.0, consistency=0.75), id="consistency"),
        pytest.param(("risk is 0.31, above 0.3",), report(1.0, risk=0.31), id="risk"),
        pytest.param((), report(None), id="what is not known misses nothing"),
    ],
)
def test_each_missed_threshold_is_a_warning(warnings: tuple[str, ...], found: Report) -> None:
    assert missed(found, Thresholds()) == warnings


def test_thresholds_can_be_set() -> None:
    assert missed(report(0.5, risk=0.5), Thresholds(grounding=0.5, risk=0.5)) == ()


def test_a_report_that_has_learned_something_is_rated_anew() -> None:
    once = rate(Report("gw-1", "complete", "grounded", 1.0, warnings=("other",)), Thresholds())
    risky = replace(once, self_consistency=SelfConsistency("complete", 3, (0.0,), 3, risk=0.9))
    twice = rate(risky, Thresholds())
    assert (once.flags, once.warnings) == ((), ("other",))
    assert (twice.flags, twice.warnings) == (("high_risk",), ("other", "risk is 0.54, above 0.3"))
    assert rate(twice, Thresholds()) == twice


def test_a_contradiction_with_history_lowers_confidence_and_raises_its_flag() -> None:
    from groundwire.domain import Choice, Claim, Judgement, Source, Verdict
    from groundwire.evidence.index import Context
    from groundwire.policy import Policy
    from groundwire.scoring.aggregate import Examined, Reading, summarise

    claim = Claim("c1", "Now.", 0, 4)
    judgement = Judgement(claim, Verdict("statement", "supported", 1.0, "exact", ""), 1.0)
    examined = [Examined(Reading(Choice(0, "Now."), (claim,)), (judgement,))]
    context = Context([Source("s", "document", "Now.")])
    plain = summarise("gw-1", examined, context, Policy())
    found = summarise("gw-1", examined, context, Policy(), consistency=Consistency(0.25, (AGAINST,), 1))
    assert plain.confidence is not None
    assert found.confidence is not None
    assert (plain.confidence.consistency, found.confidence.consistency) == (None, 0.25)
    assert found.confidence.score < plain.confidence.score
    assert (plain.flags, found.flags) == ((), ("inconsistent_with_history", "high_risk"))
