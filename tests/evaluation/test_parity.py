"""The comparison of two versions' reports names the first difference."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from bench.parity import difference
from groundwire.domain import Choice, Source
from groundwire.evidence.index import Context
from groundwire.pipeline import Ask, verify
from groundwire.policy import Policy


@pytest.fixture
def report() -> Any:
    context = Context([Source("document", "source", "The fee is 5 EUR.")])
    return verify([Choice(0, "The fee is 5 EUR.", "stop")], context, Policy(), Ask()).to_dict()


def test_another_verdict_comes_first(report: Any) -> None:
    after = deepcopy(report)
    after["verdict"], after["flags"] = "ungrounded", ["numeric_mismatch"]
    assert difference(report, after) == "verdict"
    assert difference(report, report | {"flags": ["numeric_mismatch"]}) == "flags"


def test_another_label_of_a_claim_is_a_difference_of_claims(report: Any) -> None:
    after = deepcopy(report)
    after["choices"][0]["claims"][0]["label"] = "unsupported"
    assert difference(report, after) == "claims"


def test_another_score_is_a_difference_of_something_else(report: Any) -> None:
    assert difference(report, report | {"score": 0.5}) == "other"
