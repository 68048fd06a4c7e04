"""DeepEval: a metric for test cases with a retrieval context. Needs `deepeval`; no language model is called."""

from __future__ import annotations

from typing import Any

from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

from groundwire.integrations.documents import explain, sources_of
from groundwire.judge import Judge
from groundwire.library import verify_claims, verify_claims_async
from groundwire.policy import Policy
from groundwire.report import Report


class GroundingMetric(BaseMetric):
    """The share of the claims in `actual_output` that `retrieval_context`, or else `context`, supports.

    `reason` lists the other claims with the evidence found. Raises ValueError for a test case without context.
    """

    def __init__(self, threshold: float = 1.0, policy: Policy = Policy(), judge: Judge | None = None) -> None:
        self.threshold, self.async_mode, self.include_reason = threshold, True, True
        self._policy, self._judge = policy, judge

    def measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        """Check the output of a test case."""
        return self._measured(verify_claims(**_arguments(test_case), policy=self._policy, judge=self._judge))

    async def a_measure(self, test_case: LLMTestCase, *_: Any, **__: Any) -> float:
        """The async twin of `measure`."""
        arguments = _arguments(test_case)
        return self._measured(await verify_claims_async(**arguments, policy=self._policy, judge=self._judge))

    def is_successful(self) -> bool:
        """Return whether the score of the last test case reaches the threshold."""
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "Grounding"

    def _measured(self, report: Report) -> float:
        self.score, self.reason = report.score or 0.0, explain(report)
        self.success = self.score >= self.threshold
        return self.score


def _arguments(test_case: Any) -> dict[str, Any]:
    context = test_case.retrieval_context or test_case.context
    if not context:
        raise ValueError("the test case needs 'retrieval_context' or 'context'")
    return {"answer": test_case.actual_output or "", "sources": sources_of(context), "question": test_case.input or ""}
