"""Derive a claimed number from numbers that the sources state in passages and in rows and columns of tables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from groundwire.evidence.index import Context, Passage, column_at
from groundwire.text.binding import Binding, search_before
from groundwire.text.quantities import Quantity
from groundwire.text.tolerance import fit_period
from groundwire.text.words import concept, content_stems, stem
from groundwire.verifiers.numbers.arithmetic import MAX_OPERANDS, Derivation, Mention, Operand, derive, derive_whole
from groundwire.verifiers.numbers.attribution import REFERENCE
from groundwire.verifiers.numbers.candidates import Asked, Read, in_money, read
from groundwire.verifiers.numbers.durations import decided_case, elapsed, is_moment, may_be_case, range_end
from groundwire.verifiers.numbers.worded_arithmetic import Question, implied


class Following(NamedTuple):
    """A derivation for the reader: its formula, and the passages that state its operands."""

    formula: str
    passages: tuple[Passage, ...]


class _Value(NamedTuple):
    """A stated number to compute with, at the scale of the claim."""

    quantity: Quantity
    binding: Binding
    read: Read
    place: int


def follow(
    asked: Asked, mine: Binding, passages: Sequence[Read], context: Context, tolerance: float | None
) -> Following | None:
    """Derive a number from the best passages, one by one and together, then from whole rows and columns."""
    ranked = sorted((each for each in passages if _may_tell(asked, each)), key=lambda each: -each.coverage)
    groups = [[each] for each in ranked[:3]] + ([ranked[:4]] if len(ranked) > 1 else [])
    for group in groups:
        values = [value for each in group for value in _values(mine, each) if _is_of_claim(asked, mine, value)]
        operands = [_operand(asked, mine, value) for value in values[:MAX_OPERANDS]]
        asked.work.spend(len(values) + _MOST_OPERATIONS)
        if found := derive(mine.quantity, asked.cue_text, operands, tolerance):
            return _following(found, values)
    for values in _lists(asked, mine, ranked, context):
        asked.work.spend(len(values))
        if found := derive_whole(mine.quantity, asked.cue_text, [each.quantity for each in values], tolerance):
            return _following(found, values)
    return None


def follow_lapse(asked: Asked, mine: Binding, passages: Sequence[Read], context: Context) -> Following | None:
    """Derive a length of time between two moments in the likeliest passages and those around them."""
    if mine.quantity.kind != "quantity" or mine.quantity.unit != "time":
        return None
    told = [
        (Mention(quantity, each.passage.text, is_near), each.passage)
        for each, is_near in _story(mine, passages, context)
        for quantity in each.quantities
        if is_moment(quantity, each.passage.text) and (quantity.kind != "date" or _is_of_column(each, quantity))
    ]
    asked.work.spend(_MOST_OPERATIONS)
    found = elapsed(mine.quantity, asked.claim.text, [mention for mention, _ in told])
    return Following(found.formula, _cited(found, [passage for _, passage in told])) if found else None


def follow_words(
    asked: Asked, mine: Binding, passages: Sequence[Read], context: Context, tolerance: float | None
) -> Following | None:
    """Derive a number by an operation that the words around the numbers of the likeliest passages describe."""
    if not any(each.coverage for each in passages):
        return None
    story = _story(mine, passages, context)
    told = [
        (Mention(value.quantity, each.passage.text, is_near), each.passage)
        for each, is_near in story
        for value in _values(mine, each)
    ]
    others = [each for each in asked.quantities if each is not mine.quantity]
    question = Question(mine.quantity, asked.cue_text, others, [each.passage.text for each, _ in story])
    asked.work.spend(_MOST_OPERATIONS)
    found = implied(question, [mention for mention, _ in told], tolerance)
    return Following(found.formula, _cited(found, [passage for _, passage in told])) if found else None


def follow_limit(asked: Asked, mine: Binding, passages: Sequence[Read]) -> Following | None:
    """Return how a stated limit decides the case that the claim describes."""
    claim = asked.claim.text
    if not may_be_case(claim, mine.quantity):
        return None
    for each in sorted(passages, key=lambda each: -each.coverage):
        if each.is_row:
            continue
        asked.work.spend(len(each.quantities))
        for place, stated in enumerate(each.quantities):
            if each.coverage < _SPEAKS_OF_IT and stated.low != mine.quantity.low:
                continue
            after = each.quantities[place + 1] if place + 1 < len(each.quantities) else stated
            until = range_end(each.passage.text, stated, after)
            if said := decided_case(claim, mine.quantity, each.passage.text, stated, until):
                return Following(said, (each.passage,))
    return None


def _story(mine: Binding, passages: Sequence[Read], context: Context) -> list[tuple[Read, bool]]:
    """Return the likeliest passages in text order, with their neighbours in prose, and whether each is likely."""
    covering = [each for each in passages if each.coverage > 0] or passages
    likely = sorted(covering, key=lambda each: -_promise(each, mine))[:_FIRST_LOOK]
    near = {each.passage.place: each for each in likely}
    beside = {
        passage.place: Read(each.asked, passage, None, 0.0)
        for each in likely
        if not each.is_row
        for passage in context.around(each.passage, _BESIDE, _BESIDE)
    }
    return [(read_, place in near) for place, read_ in sorted((beside | near).items())]


def _cited(found: Derivation, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    return tuple(dict.fromkeys(passages[place] for place in found.operands))


def _following(found: Derivation, values: Sequence[_Value]) -> Following:
    used = dict.fromkeys(values[place].read.passage for place in found.operands)
    return Following(found.formula, tuple(used)[:_MOST_CITED])


def _may_tell(asked: Asked, read: Read) -> bool:
    """Return whether a passage has enough of the claim's words; a row that has one of its names needs fewer."""
    least = 0.2 if read.is_row and read.is_named else 0.3
    return read.coverage >= least and bool(asked.subject & read.passage.stems)


def _values(mine: Binding, read: Read) -> Iterator[_Value]:
    """Yield the numbers of a passage outside column names, without dates and times of day."""
    bindings = read.bindings
    for place in read.values:
        quantity = bindings[place].quantity
        if quantity.kind not in ("date", "time"):
            yield _Value(_at_scale(quantity, read, place, mine.quantity), bindings[place], read, place)


def _at_scale(stated: Quantity, read: Read, place: int, claimed: Quantity) -> Quantity:
    """Return a number at the scale of its table or note, or as written if the claim has no scale word."""
    given = read.given[place] if read.is_row else None
    stated = in_money(stated, read) if claimed.kind == "currency" else stated
    if claimed.scale == 1.0 and given and given.scale != 1.0:
        plain = read.passage.quantities[place]
        return plain._replace(kind=stated.kind, unit=stated.unit) if stated.kind == "currency" else plain
    if claimed.scale == 1.0 or stated.scale != 1.0 or not (stated.is_bare or stated.kind == "currency"):
        return stated
    scale = read.scale if read.scale != 1.0 or not read.is_row else claimed.scale
    return stated._replace(low=stated.low * scale, high=stated.high * scale, slack=stated.slack * scale, scale=scale)


def _is_of_claim(asked: Asked, mine: Binding, value: _Value) -> bool:
    """Return whether a number may concern the claim's subject, by its words or by its unit and period."""
    fits = fit_period(asked.dates, value.binding.dates) if len(asked.dates) > 1 else None
    if fits is False:
        return False
    if value.read.is_row and _is_of_other_column(mine, value):
        return False
    if value.read.is_row or not value.binding.own - _JOINING:
        return True
    if search_before(_SWING, value.read.passage.text, value.binding.quantity.start, 200):
        return True  # "swung from an outflow of 48 to an inflow of 17": one subject
    subject = set(map(concept, asked.subject))
    if not subject.isdisjoint(map(concept, value.binding.subject)):
        return True
    return value.quantity.kind == "quantity" and value.quantity.unit == mine.quantity.unit


def _is_of_other_column(mine: Binding, value: _Value) -> bool:
    """Return whether the claim counts the things of another column of the row ("12 points ahead")."""
    counted = set(map(concept, mine.quantity.nouns[:1]))
    named = [each for each in value.read.bindings if counted & set(map(concept, each.own))]
    return bool(named) and value.binding not in named


def _operand(asked: Asked, mine: Binding, value: _Value) -> Operand:
    days = [date.high for date in value.binding.dates if not date.unit]
    text, start = value.read.passage.text, value.binding.quantity.start
    is_loss = value.quantity.low > 0 and _LOSS.search(text, max(0, start - 40), start) is not None
    return Operand(value.quantity, max(days) if days else None, _rank(asked, value), is_loss)


def _rank(asked: Asked, value: _Value) -> int:
    """Return 1 for a compared value, −1 for a reference value, 0 if unknown.

    The word before it determines this, or its side of "than".
    """
    if not value.read.is_row and search_before(REFERENCE, value.read.passage.text, value.binding.quantity.start):
        return -1
    if not asked.sides:
        return 0
    around = value.binding.own | value.binding.shared
    here, there = (len(side & around) for side in asked.sides)
    if here != there:
        return 1 if here > there else -1
    return 0


def _lists(asked: Asked, mine: Binding, ranked: Sequence[Read], context: Context) -> Iterator[list[_Value]]:
    """Yield lists of values that may be added up: a row or a sentence, and columns."""
    for each in ranked[:3]:
        values = list(_values(mine, each))
        if len(values) > 1:
            yield values
    seen: set[int] = set()
    for each in ranked[:3]:
        if each.is_row and each.passage.place not in seen:
            rows = _rows_around(each, context)
            seen.update(row.passage.place for row in rows)
            yield from _columns(asked, mine, rows)


def _rows_around(read_row: Read, context: Context) -> list[Read]:
    """Return the rows of the table that contains a row, at most `_MOST_ROWS` on either side."""
    near = context.around(read_row.passage, _MOST_ROWS, _MOST_ROWS)
    here = next(place for place, each in enumerate(near) if each is read_row.passage)
    low = high = here
    while low > 0 and near[low - 1].is_row:
        low -= 1
    while high + 1 < len(near) and near[high + 1].is_row:
        high += 1
    rows = [read(read_row.asked, each, context) for each in near[low : high + 1]]
    read_row.asked.work.spend(sum(len(row.quantities) for row in rows))
    return rows


def _columns(asked: Asked, mine: Binding, rows: Sequence[Read]) -> Iterator[list[_Value]]:
    """Yield the values of columns that the claim may mean.

    For each column: the rows that are no totals, those that the claim names, and those under one heading.
    """
    columns: dict[str, list[_Value]] = defaultdict(list)
    for row in rows:
        for value in _values(mine, row):
            text, start = row.passage.text, value.binding.quantity.start
            name, colon, _ = text[text.rfind("|", 0, start) + 1 : start].rpartition(": ")
            fits = fit_period(asked.dates, value.binding.dates)
            if colon and fits is not False and row.is_of_column(value.place):
                columns[name.strip()].append(value)
    for values in columns.values():
        parts = [each for each in values if not _TOTAL_LABEL.match(each.read.passage.text)]
        named = [each for each in parts if asked.subject & content_stems(each.read.passage.text.partition("|")[0])]
        told = [each for each in named if _label(each.read).lower() in asked.claim.text.lower()]
        groups = defaultdict(list)
        for each in parts:
            groups[each.read.passage.heading].append(each)
        yield from (each for each in (parts, named, told, *groups.values()) if len(each) > 1)


def _label(row: Read) -> str:
    """Return the label of a row, without the name of its column and any text in brackets."""
    return row.passage.text.partition("|")[0].partition(" (")[0].rpartition(": ")[2].strip()


def _is_of_column(read: Read, quantity: Quantity) -> bool:
    text = read.passage.text
    if not read.is_row:
        return True
    is_value = ": " in text[text.rfind("|", 0, quantity.start) + 1 : quantity.start]
    return is_value and read.asked.names_column(column_at(text, quantity.start))


def _promise(read: Read, mine: Binding) -> float:
    """Return the maximum rank of a passage's quantities, which is known before they are parsed (see `Stated.rank`)."""
    return read.coverage + (len(mine.scope & read.passage.stems) / len(mine.scope) if mine.scope else 0.0)


_SWING = re.compile(r"\bfrom\b[^.;]{1,80} to (?:an? |the )?(?:[^\W\d_]+ ){0,3}[$€£]?$")
_LOSS = re.compile(
    r"\b(?:loss|deficit|outflow|shortfall)(?: of)?(?: about| around)? ?[$€£]?$|\blost (?:about )?[$€£]?$", re.I
)
_JOINING = frozenset(map(stem, "after before earlier previously".split()))  # these name no subject
_FIRST_LOOK = 3  # passages; one is enough for most claims
_BESIDE = 2
_SPEAKS_OF_IT = 0.4
_MOST_ROWS = 40
_MOST_CITED = 8
_MOST_OPERATIONS = 100  # steps charged for trying every operation on the first dozen numbers
_TOTAL_LABEL = re.compile(r"\s*(?:[^|:]{0,40}: )?(?:(?:grand |sub)?total\b|all\b|sum\b|\()", re.IGNORECASE)
