"""Derive a claimed number from numbers that the sources state in passages and in rows and columns of tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from groundwire.evidence.index import Passage, column_at
from groundwire.text.binding import Binding, search_before
from groundwire.text.quantities import Quantity
from groundwire.text.tolerance import fit_period
from groundwire.text.words import concept, stem
from groundwire.verifiers.numbers.arithmetic import MAX_OPERANDS, Derivation, Mention, Operand, derive
from groundwire.verifiers.numbers.attribution import REFERENCE
from groundwire.verifiers.numbers.candidates import ParsedPassage, Query, in_money
from groundwire.verifiers.numbers.durations import derive_elapsed, explain_limit, is_case, is_moment, is_span
from groundwire.verifiers.numbers.worded_arithmetic import WordProblem, solve


class CitedDerivation(NamedTuple):
    """A derivation for the reader: its formula, and the passages that state its operands."""

    formula: str
    passages: tuple[Passage, ...]


class _Value(NamedTuple):
    """A stated number to compute with, at the scale of the claim."""

    quantity: Quantity
    binding: Binding
    parsed: ParsedPassage
    place: int


def derive_number(query: Query, target: Binding, passages: Sequence[ParsedPassage]) -> CitedDerivation | None:
    """Derive a number that no source states, by the words of the claim or of the sources, or return None."""
    if target.quantity.kind == "date":
        return None
    is_time = target.quantity.kind == "time"
    rules = (apply_limit,) if is_time else (apply_limit, _derive_value, _derive_duration, _derive_from_wording)
    return next(filter(None, (rule(query, target, passages) for rule in rules)), None)


def _derive_value(query: Query, target: Binding, passages: Sequence[ParsedPassage]) -> CitedDerivation | None:
    """Derive a number from the best passages, one by one and together."""
    tolerance = query.tolerances.get(target.quantity.kind)
    ranked = sorted((each for each in passages if _is_relevant(query, each)), key=lambda each: -each.coverage)
    groups = [[each] for each in ranked[:3]] + ([ranked[:4]] if len(ranked) > 1 else [])
    for group in groups:
        values = [value for each in group for value in _values(target, each) if _is_of_claim(query, target, value)]
        operands = [_operand(query, target, value) for value in values[:MAX_OPERANDS]]
        query.work.spend(len(values) + _OPERATIONS_COST)
        if found := derive(target.quantity, query.cue_text, operands, tolerance):
            return _cite(found, [each.parsed.passage for each in values])
    return None


def _derive_duration(query: Query, target: Binding, passages: Sequence[ParsedPassage]) -> CitedDerivation | None:
    """Derive a length of time between two moments in the likeliest passages and those around them.

    Nothing is derived where a passage that has all words of the claim states a length of time itself.
    """
    if not _is_length(target.quantity) or any(
        each.coverage >= 1.0 and any(map(_is_length, each.quantities)) for each in passages
    ):
        return None
    mentions = [
        (Mention(quantity, each.passage.text, is_near), each.passage)
        for each, is_near in _likely_passages(query, target, passages)
        for quantity in each.quantities
        if is_moment(quantity, each.passage.text) and (quantity.kind != "date" or _is_in_named_column(each, quantity))
    ]
    query.work.spend(_OPERATIONS_COST)
    found = derive_elapsed(target.quantity, query.claim.text, [mention for mention, _ in mentions])
    return _cite(found, [passage for _, passage in mentions]) if found else None


def _is_length(quantity: Quantity) -> bool:
    return quantity.kind == "quantity" and quantity.unit == "time"


def _derive_from_wording(query: Query, target: Binding, passages: Sequence[ParsedPassage]) -> CitedDerivation | None:
    """Derive a number by an operation that the words around the numbers of the likeliest passages describe."""
    if not any(each.coverage for each in passages):
        return None
    likely = _likely_passages(query, target, passages)
    mentions = [
        (Mention(value.quantity, each.passage.text, is_near), each.passage)
        for each, is_near in likely
        for value in _values(target, each)
    ]
    others = [each for each in query.quantities if each is not target.quantity]
    problem = WordProblem(target.quantity, query.cue_text, others, [each.passage.text for each, _ in likely])
    query.work.spend(_OPERATIONS_COST)
    found = solve(problem, [mention for mention, _ in mentions], query.tolerances.get(target.quantity.kind))
    return _cite(found, [passage for _, passage in mentions]) if found else None


def apply_limit(query: Query, target: Binding, passages: Sequence[ParsedPassage]) -> CitedDerivation | None:
    """Return how a stated limit decides the case that the claim describes."""
    claim = query.claim.text
    if not is_case(claim, target.quantity):
        return None
    for each in sorted(passages, key=lambda each: -each.coverage):
        if each.is_row:
            continue
        query.work.spend(len(each.quantities))
        for place, stated in enumerate(each.quantities):
            if each.coverage < _MIN_COVERAGE and stated.low != target.quantity.low:
                continue
            after = each.quantities[place + 1] if place + 1 < len(each.quantities) else stated
            is_range = stated.kind == after.kind == "time" and is_span(each.passage.text, stated, after)
            if explanation := explain_limit(
                claim, target.quantity, each.passage.text, stated, after if is_range else None
            ):
                return CitedDerivation(explanation, (each.passage,))
    return None


def _likely_passages(
    query: Query, target: Binding, passages: Sequence[ParsedPassage]
) -> list[tuple[ParsedPassage, bool]]:
    """Return the likeliest passages in text order, with their neighbours in prose, and whether each is likely."""
    covering = [each for each in passages if each.coverage > 0] or passages
    likely = sorted(covering, key=lambda each: -_max_rank(each, target))[:_MAX_LIKELY]
    near = {each.passage.place: each for each in likely}
    neighbours = {
        passage.place: ParsedPassage(query, passage, None, 0.0)
        for each in likely
        if not each.is_row
        for passage in query.context.around(each.passage, _NEIGHBOURS, _NEIGHBOURS)
    }
    return [(parsed, place in near) for place, parsed in sorted((neighbours | near).items())]


def _cite(found: Derivation, passages: Sequence[Passage]) -> CitedDerivation:
    """Return a derivation with the passages of its operands, given that of each number."""
    used = dict.fromkeys(passages[place] for place in found.operands)
    return CitedDerivation(found.formula, tuple(used)[:_MAX_CITED])


def _is_relevant(query: Query, parsed: ParsedPassage) -> bool:
    """Return whether a passage has enough of the claim's words; a row that has one of its names needs fewer."""
    least = 0.2 if parsed.is_row and parsed.is_named else 0.3
    return parsed.coverage >= least and bool(query.subject & parsed.passage.stems)


def _values(target: Binding, parsed: ParsedPassage) -> Iterator[_Value]:
    """Yield the numbers of a passage outside column names, without dates and times of day."""
    bindings = parsed.bindings
    for place in parsed.values:
        quantity = bindings[place].quantity
        if quantity.kind not in ("date", "time"):
            yield _Value(_at_scale(quantity, parsed, place, target.quantity), bindings[place], parsed, place)


def _at_scale(stated: Quantity, parsed: ParsedPassage, place: int, claimed: Quantity) -> Quantity:
    """Return a number at the scale of its table or note, or as written if the claim has no scale word."""
    given = parsed.given[place] if parsed.is_row else None
    stated = in_money(stated, parsed) if claimed.kind == "currency" else stated
    if claimed.scale == 1.0 and given and given.scale != 1.0:
        plain = parsed.passage.quantities[place]
        return plain._replace(kind=stated.kind, unit=stated.unit) if stated.kind == "currency" else plain
    if claimed.scale == 1.0 or stated.scale != 1.0 or not (stated.is_bare or stated.kind == "currency"):
        return stated
    scale = parsed.scale if parsed.scale != 1.0 or not parsed.is_row else claimed.scale
    return stated._replace(low=stated.low * scale, high=stated.high * scale, slack=stated.slack * scale, scale=scale)


def _is_of_claim(query: Query, target: Binding, value: _Value) -> bool:
    """Return whether a number may concern the claim's subject, by its words or by its unit and period."""
    fits = fit_period(query.dates, value.binding.dates) if len(query.dates) > 1 else None
    if fits is False:
        return False
    if value.parsed.is_row and _is_of_other_column(target, value):
        return False
    if value.parsed.is_row or not value.binding.own - _TIME_WORDS:
        return True
    if search_before(_SWING, value.parsed.passage.text, value.binding.quantity.start, 200):
        return True  # "swung from an outflow of 48 to an inflow of 17": one subject
    subject = set(map(concept, query.subject))
    if not subject.isdisjoint(map(concept, value.binding.subject)):
        return True
    return value.quantity.kind == "quantity" and value.quantity.unit == target.quantity.unit


def _is_of_other_column(target: Binding, value: _Value) -> bool:
    """Return whether the claim counts the things of another column of the row ("12 points ahead")."""
    counted = set(map(concept, target.quantity.nouns[:1]))
    named = [each for each in value.parsed.bindings if counted & set(map(concept, each.own))]
    return bool(named) and value.binding not in named


def _operand(query: Query, target: Binding, value: _Value) -> Operand:
    days = [date.high for date in value.binding.dates if not date.unit]
    text, start = value.parsed.passage.text, value.binding.quantity.start
    is_loss = value.quantity.low > 0 and _LOSS.search(text, max(0, start - 40), start) is not None
    return Operand(value.quantity, max(days) if days else None, _rank(query, value), is_loss)


def _rank(query: Query, value: _Value) -> int:
    """Return 1 for a compared value, −1 for a reference value, 0 if unknown.

    The word before it determines this, or its side of "than".
    """
    if not value.parsed.is_row and search_before(REFERENCE, value.parsed.passage.text, value.binding.quantity.start):
        return -1
    if not query.than_sides:
        return 0
    around = value.binding.own | value.binding.shared
    here, there = (len(side & around) for side in query.than_sides)
    if here != there:
        return 1 if here > there else -1
    return 0


def _is_in_named_column(parsed: ParsedPassage, quantity: Quantity) -> bool:
    text = parsed.passage.text
    if not parsed.is_row:
        return True
    is_value = ": " in text[text.rfind("|", 0, quantity.start) + 1 : quantity.start]
    return is_value and parsed.query.names_column(column_at(text, quantity.start))


def _max_rank(parsed: ParsedPassage, target: Binding) -> float:
    """Return the maximum rank of a passage's quantities, which is known before they are parsed (see `Stated.rank`)."""
    return parsed.coverage + (len(target.scope & parsed.passage.stems) / len(target.scope) if target.scope else 0.0)


_SWING = re.compile(r"\bfrom\b[^.;]{1,80} to (?:an? |the )?(?:[^\W\d_]+ ){0,3}[$€£]?$")
_LOSS = re.compile(
    r"\b(?:loss|deficit|outflow|shortfall)(?: of)?(?: about| around)? ?[$€£]?$|\blost (?:about )?[$€£]?$", re.I
)
_TIME_WORDS = frozenset(map(stem, "after before earlier previously".split()))  # these name no subject
_MAX_LIKELY = 3  # passages; one is enough for most claims
_NEIGHBOURS = 2
_MIN_COVERAGE = 0.4
_MAX_CITED = 8
_OPERATIONS_COST = 100  # steps charged for trying every operation on the first dozen numbers
