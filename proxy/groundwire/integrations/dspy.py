"""DSPy: a metric for evaluation and optimizers. Nothing here imports `dspy`."""

from __future__ import annotations

from typing import Any

from groundwire.integrations.documents import sources_of, text_of
from groundwire.judge import Judge
from groundwire.library import verify_claims
from groundwire.policy import Policy


class GroundingMetric:
    """The share of an answer's checked claims that the passages support; 0.0 if no claim could be checked.

    `answer`, `context` and `question` name the fields: the answer is taken from the prediction, the others from the
    prediction or else from the example. While a program is optimized (`trace` is given), the value is True or False: a
    demonstration must have supported claims only.
    """

    def __init__(
        self,
        answer: str = "answer",
        context: str = "context",
        question: str = "question",
        policy: Policy = Policy(),
        judge: Judge | None = None,
    ) -> None:
        self._answer, self._context, self._question = answer, context, question
        self._policy, self._judge = policy, judge

    def __call__(self, example: Any, prediction: Any, trace: Any = None, *_: Any, **__: Any) -> float | bool:
        """Check one prediction."""
        report = verify_claims(
            text_of(getattr(prediction, self._answer)),
            sources_of(_field(self._context, prediction, example) or ()),
            question=str(_field(self._question, example, prediction) or ""),
            policy=self._policy,
            judge=self._judge,
        )
        return report.verdict == "grounded" if trace is not None else report.score or 0.0


def _field(name: str, *holders: Any) -> Any:
    """Return a field of the first object that has it."""
    return next((found for each in holders if (found := getattr(each, name, None)) is not None), None)
