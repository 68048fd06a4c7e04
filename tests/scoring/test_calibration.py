"""The meaning of a score, by the kind of verdict."""

import pytest

from groundwire.domain import Claim, Source, Verdict
from groundwire.evidence.index import Context
from groundwire.judge import Judge, calibrated
from groundwire.policy import Policy


def verdict(verifier: str, label: str, score: float) -> Verdict:
    return Verdict(verifier, label, score, "exact", "")  # type: ignore[arg-type]


@pytest.mark.parametrize("label", ["contradicted", "unsupported"])
def test_alarm_about_numbers_scores_how_often_such_alarms_are_wrong(label):
    assert 0 < calibrated(verdict("numeric", label, 0.0)).score < 0.5


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(verdict("numeric", "supported", 0.87), id="supported_number"),
        pytest.param(verdict("numeric", "not_checked", 0.0), id="unchecked_number"),
        pytest.param(verdict("quote", "unsupported", 0.0), id="quotation_not_found"),
        pytest.param(verdict("statement", "unsupported", 0.31), id="statement"),
    ],
)
def test_other_verdicts_keep_their_scores(given):
    assert calibrated(given) == given


def test_claim_with_a_wrong_number_is_given_the_calibrated_score():
    claim = Claim("c1", "The mill opened in 1907.", 0, 24, kind="numeric")
    judged = Judge().one(
        claim, Context((Source("s1", "source", "The mill opened in 1904."),)), Policy(verifiers=("numeric",))
    )
    assert judged.verdict.label == "contradicted"
    assert judged.verdict.score == calibrated(verdict("numeric", "contradicted", 0.0)).score
