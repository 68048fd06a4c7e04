"""Database values as evidence for the numbers of a claim.

Each value becomes a sentence of a separate source, so that it is parsed and compared like any other number. A query
that failed or returned nothing leaves a source without text, and NULL becomes a sentence that the value is unknown: a
missing value does not make a claim false.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from groundwire.domain import Claim, Source, Verdict
from groundwire.evidence.index import Context, Passage
from groundwire.text.quantities import Quantity, find_quantities
from groundwire.text.reading import inside
from groundwire.text.words import LIGHT_WORDS, REFERENTS, STOPWORDS, content_stems, same_meaning, stem, words
from groundwire.verifiers.quotes import is_field_quote

_NO_FACT = "The database has no value for it."
_NO_DATABASE = "The database gave no values to check its numbers against."
_GENERIC = frozenset(map(stem, "rate ratio number total amount value percentage level figure count".split()))


@dataclass(frozen=True, slots=True)
class Value:
    """A database value: its label, the number as written (None for NULL), its unit and its period."""

    label: str
    value: str | None
    unit: str = ""
    period: str = ""


@dataclass(frozen=True, slots=True)
class Period:
    """A row of a table of periods: its name, and its first and last day as written."""

    label: str
    start: str
    end: str


def facts_source(name: str, values: Iterable[Value | Period]) -> Source:
    """Return the result of one query as a source with a sentence for each row, or without text if it is empty."""
    text = "\n".join(map(_sentence, values))
    return Source(f"facts.{name}", "facts", text, title=name, labels=(name,))


def settle(claim: Claim, verdicts: Sequence[Verdict], context: Context) -> tuple[Verdict, ...]:
    """Return the verdicts on a claim, changed to `not_checked` if they rest on missing database values.

    A value contradicts only a claim that has all the words that describe the value. No claim is unsupported if it has
    numbers and a query returned nothing or a matching NULL, or if the context holds only database values.
    """
    facts = [source for source in context.sources if source.kind == "facts"]
    if not facts:
        return tuple(verdicts)
    only_facts = len(facts) == len(context.sources)
    missing = _missing(claim, facts, only_facts=only_facts)
    values = {source.id for source in facts}
    return tuple(_settled(claim, verdict, values, missing) for verdict in verdicts)


def _missing(claim: Claim, facts: Sequence[Source], *, only_facts: bool) -> str:
    """Return the reason why database values may be missing for a claim; "" if they are not."""
    if find_quantities(claim.text):
        if any(not source.text for source in facts):
            return _NO_DATABASE
        unknown = (line for source in facts for line in source.text.split("\n") if line.endswith(_UNKNOWN))
        if any(_is_of(claim, line.removesuffix(_UNKNOWN)) for line in unknown):
            return _NO_FACT
    return _NO_FACT if only_facts else ""


def _settled(claim: Claim, verdict: Verdict, values: set[str], missing: str) -> Verdict:
    reason = missing if verdict.label == "unsupported" else ""
    if verdict.label == "contradicted" and all(each.source in values for each in verdict.citations):
        reason = "" if any(_is_of(claim, each.text) for each in verdict.citations) else _NO_FACT
    return withhold(verdict, "no_fact", reason) if reason else verdict


def withhold(verdict: Verdict, method: str, reason: str) -> Verdict:
    """Return the verdict as `not_checked`, for a reason."""
    return replace(
        verdict, label="not_checked", score=0.0, method=method, reason=reason, citations=(), flags=(), validated=0
    )


def _is_of(claim: Claim, sentence: str) -> bool:
    """Return whether a claim has every word, or a synonym of it, that describes the value in a sentence."""
    found = words(sentence)
    measured = inside(found, find_quantities(sentence))
    naming = {word.stem for place, word in enumerate(found) if word.is_content and place not in measured}
    specific = naming - LIGHT_WORDS - REFERENTS
    stated = content_stems(f"{claim.lead} {claim.text}")
    return all(not same_meaning(each).isdisjoint(stated) for each in specific - _GENERIC or specific)


def _sentence(value: Value | Period) -> str:
    """Format a row as a sentence, such as "Occupancy rate in Q3 2024 is 93.5%." for a value."""
    if isinstance(value, Period):
        return f"{' '.join(value.label.split())} is from {value.start} to {value.end}."
    unit = value.unit.strip()
    period = f" in {value.period}" if value.period else ""
    subject = f"{' '.join(value.label.split())}{' '.join(period.split(' '))}"
    if value.value is None:
        return f"{subject}{_UNKNOWN}"
    joint = "" if unit in ("%", "x", "°C", "°F") else " "
    amount = f"{unit}{value.value}" if unit in _SIGNS else f"{value.value}{joint}{unit}".rstrip()
    return f"{subject} is {amount}."


_UNKNOWN = " is unknown."
_SIGNS = ("$", "€", "£", "¥", "₹")


_ROW = re.compile(r"(?P<label>.{1,80}) is from (?P<start>\S{1,20}) to (?P<end>\S{1,20})\.$")
_BEGINS = re.compile(r"\b(?:beg[iau]n\w*|start\w*|open\w*|from|since|first day)\b", re.IGNORECASE)
_ENDS = re.compile(r"\b(?:end\w*|clos\w+|through|to|until|till|last day|finish\w*)\b", re.IGNORECASE)
_PERIOD_WORDS = STOPWORDS | frozenset(
    map(
        stem,
        "begin begins began beginning start starts started end ends ended ending close closes closed run runs ran last "
        "lasted lasts cover covers covered span spans spanned period quarter year month fiscal financial reporting day "
        "first final date until till through between inclusive".split(),
    )
)


class _Bounds(NamedTuple):
    """A row of the table: its label, the passage that states it, and its first and last day."""

    label: str
    passage: Passage
    start: Quantity
    end: Quantity


def check_period(claim: Claim, context: Context) -> Verdict | None:
    """Return the verdict on a claim that only states when a period of a table begins or ends; None for other claims."""
    if is_field_quote(claim) or not any(source.kind == "facts" for source in context.sources):
        return None
    stems = content_stems(claim.text)
    rows = [row for row in _rows(context) if content_stems(row.label) <= stems]
    if not rows:
        return None
    row = max(rows, key=lambda each: len(content_stems(each.label)))
    named = claim.text.lower().find(row.label.lower())
    days = [each for each in find_quantities(claim.text) if each.kind == "date" and each.low == each.high]
    dates = [each for each in days if not (named <= each.start < named + len(row.label))]
    outside = "".join(char for place, char in enumerate(claim.text) if not any(d.start <= place < d.end for d in dates))
    spoken = {each for each in content_stems(outside) if not each[0].isdigit()}
    if not dates or not spoken <= _PERIOD_WORDS | content_stems(row.label):
        return None
    wrong = [(date, bound) for date, bound in _expected(claim.text, dates, row) if date.low != bound.low]
    cited = (row.passage.cite(1.0, "sql"),)
    if wrong:
        (date, bound), *_ = wrong
        reason = f"{date.text} differs from {bound.text}, which the table of periods gives for {row.label}."
        return Verdict("numeric", "contradicted", 0.05, "period", reason, cited, ("numeric_mismatch",), len(dates))
    reason = f"{row.label}: as in the table of periods."
    return Verdict("numeric", "supported", 1.0, "period", reason, cited, (), len(dates), len(dates))


def _rows(context: Context) -> Iterator[_Bounds]:
    for passage in context.passages:
        row = _ROW.match(passage.text) if passage.source.kind == "facts" else None
        bounds = [found for name in ("start", "end") for found in find_quantities(row[name])] if row else []
        if row and [each.kind for each in bounds] == ["date", "date"]:
            yield _Bounds(row["label"], passage, *bounds)


def _expected(text: str, dates: list[Quantity], row: _Bounds) -> Iterator[tuple[Quantity, Quantity]]:
    """Yield each date with the bound that the words before it name; by default the first begins and others end it."""
    position = 0
    for place, date in enumerate(dates):
        before = text[position : date.start]
        begins, ends = ([*cue.finditer(before)][-1:] for cue in (_BEGINS, _ENDS))
        is_end = ends[0].start() > begins[0].start() if begins and ends else bool(ends) or (place > 0 and not begins)
        yield date, row.end if is_end else row.start
        position = date.end
