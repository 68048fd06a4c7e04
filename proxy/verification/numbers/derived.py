"""Numbers that follow from those that a source states: change, sum, share, average, ratio (NU4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations

from proxy.verification.numbers.grammar import Quantity
from proxy.verification.numbers.tolerance import Relation, compare


@dataclass(frozen=True, slots=True)
class Derivation:
    """A computation from stated numbers: the formula as a person reads it, and the places of its operands."""

    formula: str
    operands: tuple[int, ...]


def derive(
    claimed: Quantity, cue_text: str, operands: Sequence[Quantity], tolerance: float | None
) -> Derivation | None:
    """How `claimed` follows from two to four of `operands` by an operation that `cue_text` names, or None.

    Operands are combined only within one kind and unit; nothing is tried that no cue word asks for, because among
    enough numbers some pair gives anything. At most the first 12 operands are tried.
    """
    way = direction(cue_text)
    numbered = [(place, _exact(operand)) for place, operand in enumerate(operands[:12]) if operand.low == operand.high]
    for cue, operation in _OPERATIONS:
        if not cue.search(cue_text):
            continue
        for result, formula, places in operation(claimed, numbered, way):
            if _agrees(claimed, result, tolerance):
                return Derivation(formula, places)
    return None


def cues(text: str) -> frozenset[int]:
    """Which operations the words of `text` speak of, as places in a fixed list."""
    return frozenset(place for place, (cue, _) in enumerate(_OPERATIONS) if cue.search(text))


def elapsed(claimed: Quantity, cue_text: str, dates: Sequence[Quantity]) -> Derivation | None:
    """How a claimed length of time lies between two of `dates` (places on the calendar), in the unit it is claimed in.

    Nothing is tried unless the words speak of what comes before or after something.
    """
    if claimed.kind != "quantity" or claimed.unit != "time" or claimed.worth < _DAY or not _BETWEEN.search(cue_text):
        return None
    for (i, first), (j, last) in combinations(enumerate(dates[:8]), 2):
        days = abs(last.low - first.low)
        if days and abs(days * _DAY - claimed.low) <= 0.02 * claimed.low + _DAY:
            later, earlier = (last, first) if last.low > first.low else (first, last)
            return Derivation(f"from {_w(earlier)} to {_w(later)}", (i, j))
    return None


def multiple(claimed: Quantity, stated: Quantity, text: str) -> str | None:
    """The formula by which `claimed` follows from `stated` where `text` goes on: "22 million, twice the estimate"."""
    said = _MULTIPLE.match(text, stated.end)
    if said is None or claimed.kind != stated.kind or claimed.unit != stated.unit:
        return None
    factor = _FACTORS[said["factor"].lower()]
    result = replace(stated, low=stated.low / factor, high=stated.high / factor, slack=stated.slack / factor)
    return f"{_w(stated)} is {said['factor']} that" if compare(claimed, result).is_match else None


_Numbered = Sequence[tuple[int, Quantity]]
_Result = tuple[Quantity, str, tuple[int, ...]]


def _exact(operand: Quantity) -> Quantity:
    """A count of whole things is not rounded."""
    is_whole = operand.kind == "count" and operand.nouns and operand.slack == 0.5 and operand.low == int(operand.low)
    return replace(operand, slack=0.0) if is_whole else operand


def _agrees(claimed: Quantity, result: Quantity, tolerance: float | None) -> bool:
    """Operands are rounded themselves, so a result may miss the claim by a little of what their digits allow."""
    relation = compare(replace(claimed, bound="", other=None), result, tolerance)
    return relation.is_match or (relation is Relation.OPEN and result.slack <= 2 * claimed.slack)


def direction(cue_text: str) -> int:
    """1 when the words speak of growth, -1 of decline, 0 of neither or of both."""
    return bool(_UP.search(cue_text)) - bool(_DOWN.search(cue_text))


def _signs(claimed: Quantity, direction: int, value: float) -> float | None:
    """The value as the claim would write it: "fell 5 %" writes a decline of five without its sign."""
    if direction == 0 or value == 0:
        return value
    if (value > 0) == (direction > 0):
        return abs(value) if claimed.low >= 0 else value
    return None


def _changes(claimed: Quantity, operands: _Numbered, direction: int) -> Iterator[_Result]:
    """Difference of two amounts, or of two percentages in points; growth when a percentage is claimed."""
    for (i, new), (j, old) in permutations(operands, 2):
        if not _are_alike(new, old):
            continue
        if claimed.kind == "percentage" and claimed.unit == "%" and old.low:
            growth = (new.low - old.low) / abs(old.low) * 100
            value = _signs(claimed, direction, growth)
            if value is not None and new.kind != "percentage":
                slack = (new.slack + old.slack * abs(new.low / old.low)) / abs(old.low) * 100
                yield _percentage(value, slack), _formula(f"({_w(new)} − {_w(old)}) / {_w(old)}", growth, " %"), (i, j)
        value = _signs(claimed, direction, new.low - old.low)
        if value is not None:
            unit = "pp" if new.kind == "percentage" and claimed.unit == "pp" else new.unit
            result = replace(_point(new, value, new.slack + old.slack), unit=unit)
            yield result, f"{_w(new)} − {_w(old)}", (i, j)


def _sums(claimed: Quantity, operands: _Numbered, direction: int) -> Iterator[_Result]:
    for count in (2, 3, 4):
        for chosen in combinations(operands[:8], count):
            values = [operand for _, operand in chosen]
            if all(_are_alike(values[0], other) for other in values[1:]):
                result = _point(values[0], sum(value.low for value in values), sum(value.slack for value in values))
                yield result, " + ".join(map(_w, values)), tuple(place for place, _ in chosen)


def _products(claimed: Quantity, operands: _Numbered, direction: int) -> Iterator[_Result]:
    """So many things at so much each."""
    for (i, count), (j, price) in permutations(operands, 2):
        if claimed.kind == "currency" == price.kind and count.kind == "count" and count.nouns:
            yield _point(price, count.low * price.low, count.low * price.slack), f"{_w(count)} × {_w(price)}", (i, j)


def _averages(claimed: Quantity, operands: _Numbered, direction: int) -> Iterator[_Result]:
    for total, formula, places in _sums(claimed, operands, direction):
        count = len(places)
        yield _point(total, total.low / count, total.slack / count), f"({formula}) / {count}", places


def _shares(claimed: Quantity, operands: _Numbered, direction: int) -> Iterator[_Result]:
    for (i, part), (j, whole) in permutations(operands, 2):
        if claimed.kind in ("percentage", "ratio") and _are_alike(part, whole) and 0 < part.low <= whole.low:
            value = part.low / whole.low * 100
            slack = (part.slack + whole.slack * part.low / whole.low) / whole.low * 100
            yield _percentage(value, slack), _formula(f"{_w(part)} / {_w(whole)}", value, " %"), (i, j)


def _ratios(claimed: Quantity, operands: _Numbered, direction: int) -> Iterator[_Result]:
    """A quotient of two amounts: of one kind gives a ratio, else an amount per count."""
    for (i, above), (j, below) in permutations(operands, 2):
        if not below.low:
            continue
        value = above.low / below.low
        slack = (above.slack + below.slack * abs(value)) / abs(below.low)
        if claimed.kind == "ratio" and _are_alike(above, below):
            ratio = replace(_percentage(value, slack), kind="ratio", unit="")
            yield ratio, _formula(f"{_w(above)} / {_w(below)}", value, ""), (i, j)
        elif claimed.kind in ("currency", "quantity", "count") and below.kind == "count":
            yield _point(above, value, slack), _formula(f"{_w(above)} / {_w(below)}", value, ""), (i, j)


def _are_alike(first: Quantity, second: Quantity) -> bool:
    return first.kind not in ("date", "time") and (
        (first.kind == second.kind and first.unit == second.unit)
        or (first.is_bare and second.kind in ("currency", "count"))
        or (second.is_bare and first.kind in ("currency", "count"))
    )


def _point(like: Quantity, value: float, slack: float) -> Quantity:
    return replace(like, low=value, high=value, slack=slack, other=None, bound="", is_approximate=False)


def _percentage(value: float, slack: float) -> Quantity:
    return Quantity(0, 0, "", "percentage", value, value, slack, "%")


def _w(operand: Quantity) -> str:
    return " ".join(operand.text.split())


def _formula(expression: str, value: float, unit: str) -> str:
    return f"{expression} = {value:.4g}{unit}"


_DAY = 86400.0
_BETWEEN = re.compile(
    r"\b(?:after|before|later|earlier|since|between|apart|lasted|took|until|ahead|for|older|younger)\b", re.I
)
_FACTORS = {"twice": 2.0, "double": 2.0, "triple": 3.0, "three times": 3.0, "four times": 4.0, "five times": 5.0}
_FACTORS |= {"ten times": 10.0, "half": 0.5, "a third of": 1 / 3, "a quarter of": 0.25}
_MULTIPLE = re.compile(rf",? (?:which is |that is |or |about |nearly |almost )?(?P<factor>{'|'.join(_FACTORS)}) ", re.I)
_UP = re.compile(
    r"\b(?:increas|grew|grow|rose|ris(?:e|ing)|climb|gain|jump|surg|expand|higher|up\b|more\b|added)", re.I
)
_DOWN = re.compile(
    r"\b(?:decreas|declin|fell|fall|drop|reduc|shr[iau]nk|contract(?:ed|ion)|lower|down\b|fewer|less\b|lost|loss|deficit|slid)",
    re.I,
)
_OPERATIONS: tuple[tuple[re.Pattern[str], Callable[[Quantity, _Numbered, int], Iterator[_Result]]], ...] = (
    (
        re.compile(
            f"{_UP.pattern}|{_DOWN.pattern}|"
            + r"\b(?:chang|differ|improv|worsen|widen|narrow|gap\b|grow|spread|exceed|ahead|behind)",
            re.I,
        ),
        _changes,
    ),
    (
        re.compile(
            r"\b(?:share|proportion|percentage|percent|fraction|account(?:ed|s|ing)? for|represent|made? up|makes up|"
            r"constitut|compris)|%\s+of\b|\bof (?:the |all )?total",
            re.I,
        ),
        _shares,
    ),
    (
        re.compile(r"\b(?:total|combined|together|sum\b|altogether|overall|aggregate|both|in all|cumulative)", re.I),
        _sums,
    ),
    (
        re.compile(r"\b(?:total|combined|together|sum\b|altogether|overall|aggregate|both|in all|cumulative)", re.I),
        _products,
    ),
    (re.compile(r"\b(?:average|mean\b|averag)", re.I), _averages),
    (re.compile(r"\b(?:times|ratio|per\b|each|multiple|proportion)|\dx\b", re.I), _ratios),
)
