"""DeepEval: the metric on test cases."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.integrations.conftest import ANSWER, QUESTION, SYSTEM, TRUE

pytest.importorskip("deepeval")

from deepeval import assert_test
from deepeval.test_case import LLMTestCase

from groundwire.integrations.deepeval import GroundingMetric


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DeepEval writes a folder where it runs."""
    monkeypatch.chdir(tmp_path)


def case(answer: str) -> LLMTestCase:
    return LLMTestCase(input=QUESTION, actual_output=answer, retrieval_context=[SYSTEM])


def test_a_test_case_is_scored_with_a_reason() -> None:
    metric = GroundingMetric()
    assert (metric.measure(case(ANSWER)), metric.is_successful()) == (0.5, False)
    assert "contradicted: It reported revenue of $4.9 million in 2023." in metric.reason
    assert (asyncio.run(metric.a_measure(case(TRUE))), metric.is_successful()) == (1.0, True)
    assert GroundingMetric(threshold=0.5).measure(case(ANSWER)) == 0.5


def test_it_works_in_an_assertion() -> None:
    assert_test(case(TRUE), [GroundingMetric()])
    with pytest.raises(AssertionError, match="Grounding"):
        assert_test(case(ANSWER), [GroundingMetric()])


def test_a_test_case_needs_a_context() -> None:
    with pytest.raises(ValueError, match="retrieval_context"):
        GroundingMetric().measure(LLMTestCase(input=QUESTION, actual_output=TRUE))
