"""Helpers for the consistency tests that compare an answer with earlier questions and answers."""

from groundwire.claims.answer import find_claims
from groundwire.domain import Claim, Judgement, Label, Verdict
from groundwire.features.consistency import EarlierAnswer, EarlierAnswers, compare
from groundwire.policy import Policy
from groundwire.report import Consistency

DAY = 86400.0
THEN = 1_750_000_000.0  # a Sunday in June 2025


def judged(claim: Claim, label: Label = "unsupported") -> Judgement:
    verdict = Verdict("statement", label, 0.9 if label == "supported" else 0.1, "words", "")
    return Judgement(claim, verdict, 0.9)


def beside(
    history: list[EarlierAnswer],
    answer: str,
    *,
    question: str = "",
    days: float = 1.0,
    label: Label = "unsupported",
) -> Consistency:
    """Compare an answer, given `days` after THEN, with the history; every claim is judged `label`."""
    judgements = [judged(claim, label) for claim in find_claims(answer, Policy(), question).claims]
    at = THEN + days * DAY
    return compare([(0, judgements)], EarlierAnswers(history), Policy(), at=at, question=question)


def after(
    earlier: str, answer: str, *, asked: str = "", question: str = "", days: float = 1.0, label: Label = "unsupported"
) -> Consistency:
    """Compare an answer to an earlier one."""
    return beside([EarlierAnswer("x1", THEN, earlier, asked)], answer, question=question, days=days, label=label)
