"""DSPy: the metric in an evaluation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integrations.conftest import ANSWER, QUESTION, SYSTEM, TRUE

pytest.importorskip("dspy")

import dspy

from groundwire.integrations.dspy import GroundingMetric

EXAMPLE = dspy.Example(question=QUESTION, context=[SYSTEM]).with_inputs("question", "context")


class Answering(dspy.Module):
    """A program that answers without a model."""

    def forward(self, question: str, context: list[str]) -> Any:
        return dspy.Prediction(answer=ANSWER)


def test_a_program_is_scored() -> None:
    evaluate = dspy.Evaluate(devset=[EXAMPLE], metric=GroundingMetric(), num_threads=1, display_progress=False)
    assert evaluate(Answering()).score == 50.0


@pytest.mark.parametrize(
    ("answer", "score", "demonstrates"), [(TRUE, 1.0, True), (ANSWER, 0.5, False), ("Shall I?", 0.0, False)]
)
def test_a_demonstration_needs_supported_claims_only(answer: str, score: float, demonstrates: bool) -> None:
    metric = GroundingMetric()
    assert metric(EXAMPLE, dspy.Prediction(answer=answer)) == score
    assert metric(EXAMPLE, dspy.Prediction(answer=answer), trace=[]) is demonstrates


def test_fields_can_be_named_and_passages_can_be_those_of_the_prediction() -> None:
    prediction = dspy.Prediction(response=TRUE, passages=[SYSTEM])
    assert GroundingMetric("response", "passages")(dspy.Example(), prediction) == 1.0
