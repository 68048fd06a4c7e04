"""Answers to one request compared claim by claim."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.claims.answer import find_claims
from groundwire.features.agreement import Agreement, compare_answers, risk_of
from groundwire.policy import Policy

ANSWER = "Acme was founded in 1987. Dr. Lee leads the team. Would you like to know more?"


def compare(answer: str, *samples: str) -> tuple[Agreement, ...]:
    return compare_answers(find_claims(answer, Policy()).claims, samples, Policy())


def test_samples_with_the_same_claims_leave_no_risk() -> None:
    found = compare(ANSWER, "Acme was founded in 1987. The team is led by Dr. Lee.", ANSWER)
    assert risk_of(found) == 0.0
    assert [each.votes for each in found] == [(1.0, 1.0), (1.0, 1.0)]


def test_a_differing_claim_is_a_risk_and_an_omitted_claim_a_smaller_one() -> None:
    differs, silent = compare(ANSWER, "Acme was founded in 1993."), compare(ANSWER, "I cannot say.")
    assert [each.votes for each in differs] == [(0.0,), (0.5,)]
    assert [each.variance for each in differs] == [1.0, 0.25]
    assert risk_of(differs) == pytest.approx(0.625)
    assert risk_of(silent) == 0.25


@pytest.mark.parametrize("samples", [(), ("", " ")], ids=["none", "empty"])
def test_without_samples_there_is_no_risk_known(samples: tuple[str, ...]) -> None:
    assert risk_of(compare(ANSWER, *samples)) is None


def test_an_answer_without_claims_has_no_risk_known() -> None:
    assert risk_of(compare("Would you like to know more?", ANSWER)) is None


@given(st.lists(st.sampled_from([ANSWER, "Acme was founded in 1993.", "Whales sing.", ""]), max_size=5))
def test_risk_lies_between_none_and_all(samples: list[str]) -> None:
    risk = risk_of(compare(ANSWER, *samples))
    assert risk is None or 0.0 <= risk <= 1.0
