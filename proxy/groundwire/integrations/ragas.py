"""Ragas: a metric with the arguments of its `Faithfulness`. Needs `ragas`; no language model is called."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ragas.metrics.collections.base import BaseMetric
from ragas.metrics.result import MetricResult

from groundwire.integrations.documents import explain, sources_of
from groundwire.judge import Judge
from groundwire.library import verify_claims_async
from groundwire.policy import Policy


class GroundingMetric(BaseMetric):
    """The share of the claims in `response` that `retrieved_contexts` supports; NaN if no claim could be checked.

    `reason` lists the other claims with the evidence found, and `traces["output"]` has the report.
    """

    def __init__(self, name: str = "grounding", policy: Policy = Policy(), judge: Judge | None = None) -> None:
        super().__init__(name=name)
        self._policy, self._judge = policy, judge

    async def ascore(self, response: str, retrieved_contexts: Sequence[Any], user_input: str = "") -> MetricResult:
        """Check one response. Raises ValueError if there is no context."""
        if not retrieved_contexts:
            raise ValueError("the sample needs 'retrieved_contexts'")
        report = await verify_claims_async(
            response, sources_of(retrieved_contexts), question=user_input, policy=self._policy, judge=self._judge
        )
        score = math.nan if report.score is None else report.score
        return MetricResult(score, explain(report), {"output": {"grounding": report.to_dict()}})
