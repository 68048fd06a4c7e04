"""Ragas: the metric on samples, with its own batches and experiments' base class."""

from __future__ import annotations

import asyncio
import math
import os

import pytest

from tests.integrations.conftest import ANSWER, FALSE, QUESTION, SYSTEM, TRUE, labels

os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
pytest.importorskip("ragas")

from ragas.metrics import MetricResult
from ragas.metrics.base import SimpleBaseMetric

from groundwire.integrations.ragas import GroundingMetric


def test_a_response_is_scored_with_a_reason_and_its_report() -> None:
    metric = GroundingMetric()
    assert isinstance(metric, SimpleBaseMetric)
    result = metric.score(user_input=QUESTION, response=ANSWER, retrieved_contexts=[SYSTEM])
    assert isinstance(result, MetricResult)
    assert result.value == 0.5
    assert result.reason
    assert f"contradicted: {FALSE}" in result.reason
    assert result.traces
    assert labels(result.traces["output"]["grounding"]) == ["supported", "contradicted"]


def test_a_batch_is_scored_in_order() -> None:
    samples = [{"response": text, "retrieved_contexts": [SYSTEM]} for text in (TRUE, FALSE, ANSWER)]
    assert [result.value for result in GroundingMetric().batch_score(samples)] == [1.0, 0.0, 0.5]
    results = asyncio.run(GroundingMetric().abatch_score(samples[:2]))
    assert [result.value for result in results] == [1.0, 0.0]


def test_without_a_checked_claim_there_is_no_score_and_without_a_context_no_result() -> None:
    result = GroundingMetric().score(response="Shall I?", retrieved_contexts=[SYSTEM])
    assert math.isnan(result.value)
    assert result.reason
    assert "no claim was checked" in result.reason
    with pytest.raises(ValueError, match="retrieved_contexts"):
        GroundingMetric().score(response=TRUE, retrieved_contexts=[])
