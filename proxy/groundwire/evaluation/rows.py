"""Labelled answers: read them from lines of JSON, and examine them as the proxy does."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundwire.backends.loading import load_judge
from groundwire.config import JudgeSettings
from groundwire.domain import Choice, Exchange, Source
from groundwire.evidence.index import Context
from groundwire.evidence.messages import gather
from groundwire.pipeline import Ask, verify
from groundwire.policy import Policy
from groundwire.scoring.aggregate import answer_support

SAMPLE = Path(__file__).with_name("sample.jsonl")
"""A small bundled data set, the default of `groundwire eval`."""

_ALARMS = ("unsupported", "contradicted")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Row:
    """One answer with its context and its label: 1 when any part of it is not grounded, else 0.

    `spans` are the ungrounded parts, half-open in code points; None if they are not marked. Rows with the same
    `group` belong together, such as several answers from one source.
    """

    id: str
    context: tuple[str, ...]
    answer: str
    label: int
    spans: tuple[Span, ...] | None = None
    question: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """The number of an invalid line, counted from 1, and the reason."""

    line: int
    why: str


def read_rows(lines: Iterable[str]) -> tuple[list[Row], list[Problem]]:
    """Parse the lines of a JSONL text; return the rows, in order, and the invalid lines.

    Blank lines are skipped. A line whose id was used before is invalid.
    """
    rows: dict[str, Row] = {}
    problems: list[Problem] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _row(json.loads(line))
            if row.id in rows:
                raise ValueError(f'the id "{row.id}" was taken before')
            rows[row.id] = row
        except (ValueError, RecursionError) as error:
            why = "no JSON" if isinstance(error, json.JSONDecodeError) else str(error)
            problems.append(Problem(number, why))
    return list(rows.values()), problems


def draw(rows: list[Row], limit: int | None) -> list[Row]:
    """Return a sample of at most `limit` rows, always the same, in their order; all of them if `limit` is None."""
    if limit is None or limit >= len(rows):
        return rows
    return [rows[place] for place in sorted(random.Random(0).sample(range(len(rows)), limit))]  # noqa: S311


def _row(found: Any) -> Row:
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    answer, label, meta = _text(found, "answer"), found.get("label"), found.get("meta")
    if label not in (0, 1) or isinstance(label, float):
        raise ValueError('"label" is neither 0 nor 1')
    return Row(
        id=_text(found, "id"),
        context=_context(found.get("context")),
        answer=answer,
        label=int(label),
        spans=_spans(found.get("spans"), answer, label),
        question=found["question"] if isinstance(found.get("question"), str) else "",
        group=str(meta.get("source_id") or "") if isinstance(meta, dict) else "",
    )


def _text(found: dict[str, Any], key: str) -> str:
    value = found.get(key)
    if not isinstance(value, str):
        raise ValueError(f'"{key}" is missing or no text')
    return value


def _context(value: object) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError('"context" is neither a text nor a list of texts')
    return tuple(texts)


def _spans(value: object, answer: str, label: int) -> tuple[Span, ...] | None:
    if value is None:
        return None
    try:
        spans = tuple((each["start"], each["end"]) for each in value)  # type: ignore[attr-defined]
    except (TypeError, KeyError):
        raise ValueError('"spans" is no list of objects with "start" and "end"') from None
    if not all(type(offset) is int for span in spans for offset in span):
        raise ValueError("the start and the end of a span are whole numbers")
    if not all(0 <= start < end <= len(answer) for start, end in spans):
        raise ValueError("a span lies outside the answer")
    if spans and not label:
        raise ValueError('a grounded answer ("label": 0) has spans')
    return spans


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
    return Outcome(row.id, row.label, bool(alarms), support, checked, len(row.answer), ms, _overlap(alarms, row))


def context_of(row: Row) -> Context:
    """Return the context of a row as the proxy builds it, every passage a separate source."""
    given = tuple(Source(f"context-{number}", "source", text) for number, text in enumerate(row.context, start=1))
    return Context(gather(Exchange(sources=given)))


def _overlap(alarms: Iterable[Span], row: Row) -> tuple[int, int, int] | None:
    """Return the numbers of characters flagged, truly ungrounded, and both; None for an ungrounded answer without
    spans.
    """
    if row.spans is None and row.label:
        return None
    flagged, ungrounded = (
        {place for start, end in spans for place in range(start, end)} for spans in (alarms, row.spans or ())
    )
    return len(flagged), len(ungrounded), len(flagged & ungrounded)
