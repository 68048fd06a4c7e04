"""The proxy's result on one labelled answer, and its truth."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from groundwire.backends.loading import load_judge
from groundwire.config import JudgeSettings
from groundwire.domain import Choice, Exchange, Source
from groundwire.evaluation.rows import Row, Span
from groundwire.evidence.index import Context
from groundwire.evidence.messages import gather
from groundwire.pipeline import Ask, verify
from groundwire.policy import Policy
from groundwire.scoring.aggregate import answer_support

_ALARMS = ("unsupported", "contradicted")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result on one labelled answer.

    `flagged` is set if a claim was found unsupported or contradicted. `support` is the probability (0–1) that the
    answer is grounded, None when nothing could be checked. `checked` is the share of its claims that were checked, `ms`
    the processor time. `spans` counts characters: flagged, truly ungrounded, and both; None without marked spans.
    """

    id: str
    label: int
    flagged: bool
    support: float | None
    checked: float
    length: int
    ms: float
    spans: tuple[int, int, int] | None = None

    @property
    def risk(self) -> float:
        """The suspicion of the answer (0–1); 0 if it was not checked."""
        return 0.0 if self.support is None else 1.0 - self.support


def examine(row: Row, policy: Policy, settings: JudgeSettings = JudgeSettings()) -> Outcome:
    """Run the proxy's verification over one labelled answer, from raw texts to the report.

    The entailment model is loaded with the first answer of a process; the time for that is not counted.
    """
    judge = load_judge(settings)
    start = time.process_time()
    report = verify([Choice(0, row.answer, "stop")], context_of(row), policy, Ask(question=row.question), judge)
    ms = (time.process_time() - start) * 1000
    judgements = report.choices[0].judgements
    alarms = [(each.claim.start, each.claim.end) for each in judgements if each.verdict.label in _ALARMS]
    coverage = report.coverage
    checked = coverage.claims_checked / coverage.claims_total if coverage and coverage.claims_total else 0.0
    return outcome_of(row, alarms, answer_support(judgements), checked, ms)


def outcome_of(row: Row, alarms: Sequence[Span], support: float | None, checked: float, ms: float = 0.0) -> Outcome:
    """Return the outcome of an answer with these spans flagged; see `Outcome`."""
    return Outcome(row.id, row.label, bool(alarms), support, checked, len(row.answer), ms, overlap(alarms, row))


def context_of(row: Row) -> Context:
    """Return the context of a row as the proxy builds it, every passage a separate source."""
    given = tuple(Source(f"context-{number}", "source", text) for number, text in enumerate(row.context, start=1))
    return Context(gather(Exchange(sources=given)))


def overlap(alarms: Iterable[Span], row: Row) -> tuple[int, int, int] | None:
    """Return the numbers of characters flagged, truly ungrounded, and both; None for an ungrounded answer without
    spans.
    """
    if row.spans is None and row.label:
        return None
    flagged, ungrounded = _places(alarms), _places(row.spans or ())
    return len(flagged), len(ungrounded), len(flagged & ungrounded)


def _places(spans: Iterable[Span]) -> set[int]:
    return {place for start, end in spans for place in range(start, end)}
