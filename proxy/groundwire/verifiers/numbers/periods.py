"""Check dates against a table of periods from a database: when a period begins and ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from groundwire.domain import Claim, Verdict
from groundwire.evidence.index import Context, Passage
from groundwire.text.quantities import Quantity, find_quantities
from groundwire.text.words import STOPWORDS, content_stems, stem
from groundwire.verifiers.quotes.quote import is_field_quote

_ROW = re.compile(r"(?P<label>.{1,80}) is from (?P<start>\S{1,20}) to (?P<end>\S{1,20})\.$")
_BEGINS = re.compile(r"\b(?:beg[iau]n\w*|start\w*|open\w*|from|since|first day)\b", re.IGNORECASE)
_ENDS = re.compile(r"\b(?:end\w*|clos\w+|through|to|until|till|last day|finish\w*)\b", re.IGNORECASE)
_SAYING = STOPWORDS | frozenset(
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
    if is_field_quote(claim):
        return None
    stems = content_stems(claim.text)
    rows = [row for row in _rows(context) if content_stems(row.label) <= stems]
    if not rows:
        return None
    row = max(rows, key=lambda each: len(content_stems(each.label)))
    named = claim.text.lower().find(row.label.lower())
    days = [each for each in find_quantities(claim.text) if each.kind == "date" and each.low == each.high]
    dates = [each for each in days if not (named <= each.start < named + len(row.label))]
    told = "".join(char for place, char in enumerate(claim.text) if not any(d.start <= place < d.end for d in dates))
    if not dates or not {each for each in content_stems(told) if not each[0].isdigit()} <= _SAYING | content_stems(
        row.label
    ):
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
