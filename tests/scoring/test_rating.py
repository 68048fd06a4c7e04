"""The risk of an answer and its factors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.domain import Claim, Judgement, Label, Verdict
from groundwire.report import ChoiceReport, Confidence, Consistency, Report, SelfConsistency
from groundwire.scoring.rating import assess_risk

shares = st.floats(0, 1)
counts = st.integers(0, 20)


def report(
    supported: int = 0,
    unsupported: int = 0,
    contradicted: int = 0,
    *,
    unchecked: int = 0,
    confidence: float | None = None,
    consistency: float | None = None,
    samples: float | None = None,
) -> Report:
    labels: list[Label] = ["supported"] * supported + ["unsupported"] * unsupported + ["contradicted"] * contradicted
    labels += ["not_checked"] * unchecked
    judgements = tuple(
        Judgement(Claim("c", "A claim.", 0, 8), Verdict("v", label, 0.5, "", ""), 0.5) for label in labels
    )
    return Report(
        "gw-1",
        "complete",
        "grounded",
        choices=(ChoiceReport(0, "grounded", None, judgements),),
        confidence=None if confidence is None else Confidence(confidence, "high", ""),
        consistency=None if consistency is None else Consistency(consistency, (), 3),
        self_consistency=None if samples is None else SelfConsistency("complete", 3, (0.0, 0.1, 0.2), 3, samples),
    )


@pytest.mark.parametrize(
    ("level", "figures"),
    [
        pytest.param("low", {"supported": 9, "unsupported": 1, "confidence": 0.85}, id="one of ten unsupported"),
        pytest.param("medium", {"supported": 5, "unsupported": 3, "confidence": 0.9}, id="three of eight unsupported"),
        pytest.param("high", {"supported": 1, "unsupported": 1, "confidence": 0.7}, id="half unsupported"),
        pytest.param("critical", {"supported": 1, "contradicted": 1, "confidence": 0.7}, id="half contradicted"),
        pytest.param(
            "medium", {"supported": 9, "confidence": 0.9, "consistency": 0.4}, id="grounded, yet inconsistent"
        ),
        pytest.param("medium", {"supported": 9, "confidence": 0.9, "samples": 0.6}, id="grounded, yet samples vary"),
        pytest.param(
            "low", {"supported": 3, "confidence": 0.95, "consistency": 1.0, "samples": 0.0}, id="nothing amiss"
        ),
    ],
)
def test_the_level_follows_from_what_is_known(level: str, figures: dict[str, float]) -> None:
    risk = assess_risk(report(**figures))  # type: ignore[arg-type]
    assert risk is not None
    assert risk.level == level


def test_an_answer_of_which_nothing_is_known_has_no_risk() -> None:
    assert assess_risk(report(unchecked=2)) is None


def test_the_heaviest_factor_comes_first_and_what_is_in_order_is_none() -> None:
    risk = assess_risk(report(1, 1, 1, confidence=1.0, consistency=0.5, samples=0.1))
    assert risk is not None
    assert risk.factors == (
        "Of 3 checked claims, 1 is not supported and 1 is contradicted.",
        "It contradicts an earlier answer.",
        "Further answers to the same request differ from it (variance 0.10).",
    )


@pytest.mark.parametrize(
    ("unsupported", "contradicted", "factor"),
    [
        (0, 1, "Of 2 checked claims, 1 is contradicted."),
        (1, 0, "Of 2 checked claims, 1 is not supported."),
        (2, 0, "Of 3 checked claims, 2 are not supported."),
        (2, 1, "Of 4 checked claims, 2 are not supported and 1 is contradicted."),
    ],
)
def test_a_factor_counts_only_what_is_in_doubt(unsupported: int, contradicted: int, factor: str) -> None:
    risk = assess_risk(report(1, unsupported, contradicted))
    assert risk is not None
    assert risk.factors == (factor,)


@given(counts, counts, counts, shares, shares, shares)
def test_the_risk_is_a_share(
    supported: int, unsupported: int, contradicted: int, confidence: float, consistency: float, samples: float
) -> None:
    found = report(
        supported, unsupported, contradicted, confidence=confidence, consistency=consistency, samples=samples
    )
    risk = assess_risk(found)
    assert risk is not None
    assert 0.0 <= risk.score <= 1.0


@given(counts, counts, shares, shares, shares, shares)
def test_a_worse_figure_never_lowers_the_risk(
    supported: int, unsupported: int, confidence: float, consistency: float, samples: float, drop: float
) -> None:
    def risk(*labels: int, sure: float = confidence, alike: float = consistency, varied: float = samples) -> float:
        found = assess_risk(report(*labels, confidence=sure, consistency=alike, samples=varied))
        assert found is not None
        return found.score + 1e-9

    known = risk(supported, unsupported, 1)
    assert risk(supported, unsupported + 1, 1) >= known - 1e-8 or supported == 0
    assert risk(supported, unsupported, 2) >= known - 1e-8
    assert risk(supported, unsupported, 1, sure=confidence * drop) >= known - 1e-8
    assert risk(supported, unsupported, 1, alike=consistency * drop) >= known - 1e-8
    assert risk(supported, unsupported, 1, varied=samples + (1 - samples) * drop) >= known - 1e-8
