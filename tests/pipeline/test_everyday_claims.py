"""Claims of the kinds users meet, with their context and the labels that a careful person gives or accepts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.suites.case import plain_claims
from groundwire.backends.loading import load_judge
from groundwire.domain import Choice, Source
from groundwire.evidence.index import Context
from groundwire.judge import Judge
from groundwire.pipeline import verify

ROWS = plain_claims()


def flagged(wanted: frozenset[str], context: str, claim: str, judge: Judge) -> tuple[bool, bool]:
    """Return whether a claim is flagged, and whether it has the label that it should have."""
    report = verify([Choice(0, claim)], Context([Source("s1", "source", context)]), judge=judge)
    labels = {judgement.verdict.label for judgement in report.choices[0].judgements}
    return bool(labels & {"contradicted", "unsupported"}), labels <= wanted | {"not_checked"}


@pytest.mark.parametrize(
    ("judge", "false_alarms", "misses", "accuracy"),
    [(load_judge, 0.13, 0.05, 0.88), (Judge, 0.07, 0.17, 0.86)],
    ids=["model", "words alone"],
)
def test_few_right_claims_are_flagged_and_few_wrong_ones_pass(
    judge: Callable[[], Judge], false_alarms: float, misses: float, accuracy: float
) -> None:
    """These claims repeat the source's words more than most, so that words alone do well. Limits are as measured."""
    found = [("supported" in wanted, *flagged(wanted, context, claim, judge())) for wanted, context, claim in ROWS]
    right = [is_flagged for is_right, is_flagged, _ in found if is_right]
    wrong = [is_flagged for is_right, is_flagged, _ in found if not is_right]
    assert sum(right) / len(right) <= false_alarms
    assert 1 - sum(wrong) / len(wrong) <= misses
    assert sum(is_exact for *_, is_exact in found) / len(found) >= accuracy


@pytest.mark.parametrize(("context", "claim"), [row[1:] for row in ROWS], ids=[row[2] for row in ROWS])
def test_every_one_of_these_claims_is_checked(context: str, claim: str) -> None:
    report = verify([Choice(0, claim)], Context([Source("s1", "source", context)]))
    assert {judgement.verdict.label for judgement in report.choices[0].judgements} != {"not_checked"}
