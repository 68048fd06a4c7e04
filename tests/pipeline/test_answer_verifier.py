"""The incremental form of `verify`: claims judged while the answer grows, and I/O left to the caller."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest

from groundwire.domain import Choice, Claim, Exchange, Message, Part, Verdict
from groundwire.evidence.index import Context
from groundwire.judge import Judge
from groundwire.pipeline import (
    MAX_TURN,
    AnswerSnapshot,
    AnswerVerifier,
    AskJudge,
    Pause,
    VerifierSettings,
    complete,
    prepare,
    verify,
)
from groundwire.policy import Policy
from groundwire.report import Report
from groundwire.verifiers.entailment import Entailment, NoModel, State

FACTS = "The sky is blue on a clear day. The committee approved the budget. Acme earned $4.2 million in 2023."
ANSWER = "The sky is blue on a clear day. Acme earned $5.2 million in 2023. The board met in Oslo."
PREPARED = prepare(Exchange((Message(0, "system", (Part(FACTS),)),)))


def snapshot(text: str = ANSWER) -> AnswerSnapshot:
    return AnswerSnapshot([Choice(0, text, "stop")])


class Counting:
    """A verifier that supports every claim and counts them."""

    def __init__(self) -> None:
        self.claims: list[str] = []

    def __call__(self, claim: Claim, context: Context, policy: Policy) -> Verdict:
        self.claims.append(claim.text)
        return Verdict("statement", "supported", 1.0, "test", "")


def test_looking_ahead_judges_each_claim_once_and_changes_nothing() -> None:
    counting = Counting()
    judge = Judge(verifiers=[("statement", counting)])
    verifier = AnswerVerifier(PREPARED, settings=VerifierSettings(judge))
    for end in (40, 70, len(ANSWER)):
        complete(verifier.look_ahead([Choice(0, ANSWER[:end], None)]))
    report = complete(verifier.report(snapshot()))
    assert sorted(counting.claims) == sorted(set(counting.claims))
    expected = verify(snapshot().choices, PREPARED.context, judge=Judge(verifiers=[("statement", Counting())]))
    assert [each.judgements for each in report.choices] == [each.judgements for each in expected.choices]


def test_others_take_their_turn_while_a_long_answer_is_judged() -> None:
    text = " ".join(f"The walrus number {number} lives in Oslo." for number in range(2 * MAX_TURN + 1))
    steps = AnswerVerifier(PREPARED).report(snapshot(text))
    assert isinstance(next(steps), Pause)
    assert isinstance(steps.send(True), Pause)
    report = result_of(steps, False)
    methods = [judgement.verdict.method for judgement in report.choices[0].judgements]
    assert methods[2 * MAX_TURN :] == ["overload"]
    assert "overload" not in methods[: 2 * MAX_TURN]


def result_of(steps: Generator[Any, Any, Report], sent: object) -> Report:
    with pytest.raises(StopIteration) as ended:
        steps.send(sent)
    report: Report = ended.value.value
    return report


class Remote(NoModel):
    """A model that is queried by the caller."""

    state: State = "ready"


def test_the_questions_of_a_judge_are_yielded_and_its_opinions_decide() -> None:
    settings = VerifierSettings(Judge(Remote(), max_chars=10_000), asks=True)
    steps = AnswerVerifier(PREPARED, settings=settings).report(snapshot("The board met in Oslo."))
    need = next(steps)
    assert isinstance(need, AskJudge)
    assert [question.claim for question in need.questions] == ["The board met in Oslo."]
    opinions: Sequence[Entailment] = [Entailment(0.99)]
    report = result_of(steps, opinions)
    assert [each["label"] for each in report.to_dict()["choices"][0]["claims"]] == ["supported"]


def test_a_computation_that_needs_a_model_does_not_run_without_one() -> None:
    settings = VerifierSettings(Judge(Remote(), max_chars=10_000), asks=True)
    with pytest.raises(TypeError, match="AskJudge"):
        complete(AnswerVerifier(PREPARED, settings=settings).report(snapshot("The board met in Oslo.")))
