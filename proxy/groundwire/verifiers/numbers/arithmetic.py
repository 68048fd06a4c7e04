"""Derive numbers from stated ones: change, sum, share, average, ratio."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import NamedTuple

from groundwire.caches import memo
from groundwire.text.quantities import Quantity
from groundwire.text.tolerance import Relation, compare


@dataclass(frozen=True, slots=True)
class Derivation:
    """A computation from stated numbers: its formula as text, and the indices of its operands."""

    formula: str
    operands: tuple[int, ...]


class Operand(NamedTuple):
    """A stated number to compute with.

    `day` is the last day of its period. `rank` is 1 for the value that is compared, −1 for the value that it is
    compared with ("from 5", "than in 2021"), 0 if unknown. `is_loss` marks a loss, a deficit or an outflow, which is
    written without a sign.
    """

    quantity: Quantity
    day: float | None = None
    rank: int = 0
    is_loss: bool = False

    def may_follow(self, other: Operand) -> bool:
        """Return whether this may be the new value in a change from `other`."""
        if self.day is not None and other.day is not None and self.day != other.day:
            return self.day > other.day
        return self.rank >= other.rank


class Mention(NamedTuple):
    """A stated number and the text that contains it. `is_near` is set if that text is about the claim's subject."""

    quantity: Quantity
    text: str
    is_near: bool


def derive(claimed: Quantity, cue_text: str, operands: Sequence[Operand], tolerance: float | None) -> Derivation | None:
    """Derive `claimed` from two to four of `operands` by an operation that `cue_text` names, or return None.

    Only operations with a cue word are tried, because among enough numbers some pair yields any value. Except for
    ratios, operands must have one kind and unit. At most the first `MAX_OPERANDS` operands are tried.
    """
    named = find_operations(cue_text)
    if not named:
        return None
    direction = overall_direction(_NOUNS_OF_CHANGE.sub("", cue_text)) or (
        claimed.unit == "time" and bool(_LONGER.search(cue_text)) - bool(_SHORTER.search(cue_text))
    )
    numbered = [
        (place, each._replace(quantity=_exact(each.quantity)))
        for place, each in enumerate(operands[:MAX_OPERANDS])
        if each.quantity.low == each.quantity.high
    ]
    for operation in (operation for name, operation in _OPERATIONS.items() if name in named):
        for result, formula, places in operation(claimed, numbered, direction):
            if agrees(claimed, result, tolerance):
                return Derivation(formula, places)
    return None


@memo(512, 2048, long_entries=64)
def find_operations(text: str) -> frozenset[str]:
    """Return the operations that the words of `text` name: change, share, total, average, ratio."""
    return frozenset(name for name, cue in _CUES.items() if cue.search(text))


_Numbered = Sequence[tuple[int, Operand]]
_Result = tuple[Quantity, str, tuple[int, ...]]


def _exact(operand: Quantity) -> Quantity:
    """Remove the rounding slack from a count of whole things."""
    is_whole = operand.kind == "count" and operand.nouns and operand.slack == 0.5 and operand.low == int(operand.low)
    return operand._replace(slack=0.0) if is_whole else operand


def agrees(claimed: Quantity, result: Quantity, tolerance: float | None) -> bool:
    """Return whether a computed value matches the claimed one.

    Operands are rounded themselves. A result that is too coarse to decide matches if its slack is at most twice the
    claim's.
    """
    relation = compare(claimed._replace(bound="", other=None), result, tolerance)
    return relation.is_match or (relation is Relation.OPEN and result.slack <= 2 * claimed.slack)


def overall_direction(cue_text: str) -> int:
    """Return 1 if the words express growth, −1 if they express decline, 0 for neither or both."""
    return bool(_UP.search(cue_text)) - bool(_DOWN.search(cue_text))


def direction_of(text: str, start: int, end: int) -> int:
    """Return 1 if the words that govern the quantity `text[start:end]` express a rise, −1 for a fall, 0 for neither.

    The last such word before the quantity in its clause governs it, otherwise one right after it ("5% more").
    """
    low = max(
        (turn.end() for turn in _CLAUSE_TURN.finditer(text, max(0, start - 200), start)), default=max(0, start - 200)
    )
    before = [*_DIRECTION.finditer(text, low, start)]
    found = before[-1] if before else _DIRECTION_AFTER.match(text, end)
    if found is None:
        return 0
    return 1 if found["up"] else -1


def _signed(claimed: Quantity, direction: int, value: float) -> float | None:
    """Return the value as the claim would write it: "fell 5 %" is a decline of five without its sign.

    None if the sign of the value contradicts the direction.
    """
    if direction == 0 or value == 0:
        return value
    if (value > 0) == (direction > 0):
        return abs(value) if claimed.low >= 0 else value
    return None


def _changes(claimed: Quantity, operands: _Numbered, direction: int) -> Iterator[_Result]:
    """Yield differences of two amounts, or of two percentages in points, and growth if a percentage is claimed."""
    for (i, later), (j, earlier) in permutations(operands, 2):
        new, old = later.quantity, earlier.quantity
        if later.is_loss != earlier.is_loss:
            new, old = (_negated(each.quantity) if each.is_loss else each.quantity for each in (later, earlier))
        if not are_alike(new, old) or (direction and not later.may_follow(earlier)):
            continue
        difference = f"{as_written(new)} − {as_written(old)}"
        if claimed.kind == "percentage" and claimed.unit == "%" and old.low and new.kind != "percentage":
            growth = (new.low - old.low) / abs(old.low) * 100
            value = _signed(claimed, direction, growth)
            if value is not None:
                slack = _slack_of_quotient(new, old) * 100
                yield percentage(value, slack), _formula(f"({difference}) / {as_written(old)}", growth, " %"), (i, j)
        value = _signed(claimed, direction, new.low - old.low)
        if value is not None:
            unit = "pp" if new.kind == "percentage" and claimed.unit == "pp" else new.unit
            yield point(new, value, new.slack + old.slack)._replace(unit=unit), difference, (i, j)


def _negated(quantity: Quantity) -> Quantity:
    return quantity._replace(low=-quantity.low, high=-quantity.high, text=f"(−{as_written(quantity)})")


def _sums(claimed: Quantity, operands: _Numbered, direction: int) -> Iterator[_Result]:
    for count in (2, 3, 4):
        for chosen in combinations(operands[:8], count):
            values = [operand.quantity for _, operand in chosen]
            if all(are_alike(values[0], other) for other in values[1:]):
                result = point(values[0], sum(value.low for value in values), sum(value.slack for value in values))
                yield result, " + ".join(map(as_written, values)), tuple(place for place, _ in chosen)


def _averages(claimed: Quantity, operands: _Numbered, direction: int) -> Iterator[_Result]:
    for total, formula, places in _sums(claimed, operands, direction):
        count = len(places)
        yield point(total, total.low / count, total.slack / count), f"({formula}) / {count}", places


def _shares(claimed: Quantity, operands: _Numbered, direction: int) -> Iterator[_Result]:
    if claimed.kind not in ("percentage", "ratio"):
        return
    for i, j, part, whole in _pairs(operands):
        if are_alike(part, whole) and 0 < part.low <= whole.low:
            value = part.low / whole.low * 100
            result = percentage(value, _slack_of_quotient(part, whole) * 100)
            yield result, _formula(f"{as_written(part)} / {as_written(whole)}", value, " %"), (i, j)


def _ratios(claimed: Quantity, operands: _Numbered, direction: int) -> Iterator[_Result]:
    """Yield quotients of two amounts: a ratio if they are of one kind, otherwise an amount per count."""
    for i, j, above, below in _pairs(operands):
        if not below.low:
            continue
        value, slack = above.low / below.low, _slack_of_quotient(above, below)
        formula = _formula(f"{as_written(above)} / {as_written(below)}", value, "")
        if claimed.kind == "ratio" and are_alike(above, below):
            yield percentage(value, slack)._replace(kind="ratio", unit=""), formula, (i, j)
        elif claimed.kind in ("currency", "quantity", "count") and below.kind == "count":
            yield point(above, value, slack), formula, (i, j)


def _pairs(operands: _Numbered) -> Iterator[tuple[int, int, Quantity, Quantity]]:
    return ((i, j, first.quantity, second.quantity) for (i, first), (j, second) in permutations(operands, 2))


def _slack_of_quotient(above: Quantity, below: Quantity) -> float:
    return (above.slack + below.slack * abs(above.low / below.low)) / abs(below.low)


def are_alike(first: Quantity, second: Quantity) -> bool:
    """Return whether two numbers have one kind and unit, or one has no unit. Dates and times of day never do."""
    return first.kind not in ("date", "time") and (
        (first.kind == second.kind and first.unit == second.unit)
        or (first.is_bare and second.kind in ("currency", "count", "quantity"))
        or (second.is_bare and first.kind in ("currency", "count", "quantity"))
    )


def point(like: Quantity, value: float, slack: float) -> Quantity:
    """Return a computed value in the kind and unit of `like`."""
    return like._replace(low=value, high=value, slack=slack, other=None, bound="", is_approximate=False)


def percentage(value: float, slack: float) -> Quantity:
    """Return a computed value in percent."""
    return Quantity(0, 0, "", "percentage", value, value, slack, "%")


def as_written(operand: Quantity) -> str:
    """Return an operand as written, on one line."""
    return " ".join(operand.text.split())


def _formula(expression: str, value: float, unit: str) -> str:
    return f"{expression} = {value:.4g}{unit}"


MAX_OPERANDS = 12
_UP = re.compile(
    r"\b(?:increas|grew|grow|rose|ris(?:e|ing)|climb|gain|jump|surg|expand|higher|up\b|more\b|added)", re.I
)
_DOWN = re.compile(
    r"\b(?:decreas|declin|fell|fall|drop|reduc|shr[iau]nk|contract(?:ed|ion)|lower|down\b|fewer|less\b|lost|loss|deficit|slid|worsen)",
    re.I,
)
_RISING = (
    r"increas(?:e|ed|es|ing)|grew|grow(?:n|s|ing)?|rose|ris(?:e|en|es|ing)|climb(?:ed|s|ing)?|jump(?:ed|s)?|surged?|"
    r"soared?|expanded|gained|widened"
)
_FALLING = (
    r"decreas(?:e|ed|es|ing)|declin(?:e|ed|es|ing)|fell|fall(?:en|s|ing)?|dropp?(?:ed|s|ing)?|reduc(?:ed|es|tion)|shrank|"
    r"shrunk|slipp?ed|slid|plunged|plummeted|contracted|narrowed|worsened|lost"
)
_DIRECTION = re.compile(
    rf"\b(?:(?P<up>{_RISING}|(?<=was )up|(?<=were )up)|{_FALLING}|(?<=was )down|(?<=were )down)\b", re.I
)
_DIRECTION_AFTER = re.compile(
    r"(?: [^\W\d_]+){0,2}?,? (?:(?P<up>more|higher|increase|rise|growth|up)|"
    r"less|fewer|lower|decrease|decline|drop|fall|down)\b"
)
_CLAUSE_TURN = re.compile(r"[.;](?= |$)|\b(?:while|whereas|but|although)\b|, (?=and |after |with )")
_TOTAL = re.compile(
    r"\b(?:total|combined|together|sum\b|altogether|overall|aggregate|both|in all\b|cumulative|adds? up|added up|"
    r"over the (?:\w+ ){0,2}(?:years|quarters|months|weeks|days)|in the first \w+ (?:quarters|months|years)|"
    r"from \d{4} to)",
    re.I,
)
_NOUNS_OF_CHANGE = re.compile(r"\b(?:loss(?:es)?|gains?|deficits?|increase ?/ ?\(?decrease\)?)\b", re.I)  # no direction
_LONGER, _SHORTER = (
    re.compile(r"\b(?:slower|longer|later)\b", re.I),
    re.compile(r"\b(?:faster|shorter|quicker|earlier)\b", re.I),
)
_AVERAGE = re.compile(r"\b(?:average|mean\b|averag)", re.I)
_FEW = r"one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|\d{1,3}"
_CUES = {
    "change": re.compile(
        f"{_UP.pattern}|{_DOWN.pattern}|"
        r"\b(?:chang|differ|improv|worsen|widen|narrow|gap\b|grow|spread|exceed|ahead|behind|than\b|without|"
        r"excluding|net (?:additions?|change|gain|inflow|outflow)|remain|left\b|on balance|slower|faster|"
        r"stronger|weaker|longer|shorter|heavier|lighter|year before)",
        re.I,
    ),
    "share": re.compile(
        r"\b(?:share|proportion|percentage|percent|fraction|account(?:ed|s|ing)? for|represent|made? up|makes up|"
        r"constitut|compris)|%\s+of\b|\bof (?:the |all )?total|"
        rf"\b(?:{_FEW}) (?:in|out of) (?:every )?(?:{_FEW})\b",
        re.I,
    ),
    "total": _TOTAL,
    "average": _AVERAGE,
    "ratio": re.compile(r"\b(?:times|twice|ratio|per\b|each|multiple|proportion)|\dx\b", re.I),
}
_OPERATIONS: dict[str, Callable[[Quantity, _Numbered, int], Iterator[_Result]]] = {
    "change": _changes,
    "share": _shares,
    "total": _sums,
    "average": _averages,
    "ratio": _ratios,
}
