"""Compare a claimed quantity with a stated one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from groundwire.text.quantities import Quantity
from groundwire.text.times import without_year
from groundwire.text.words import stem


class Relation(Enum):
    """The relation of a claimed quantity to a stated one.

    EXACT: the values are equal. ROUNDED: they are equal within a tolerance or within the precision, the bound or the
    period of the claim. CONVERTED: they are equal after a conversion of units. UNSCALED: the digits are equal, and the
    source does not state its scale. OPEN: the source is too coarse to decide ("$4.2M" for "$4.23M"), or only a bound.
    DIFFERENT: the values contradict each other. INCOMPARABLE: the dimensions or units differ, so that neither value
    implies anything about the other.
    """

    EXACT = "exact"
    ROUNDED = "rounded"
    CONVERTED = "converted"
    UNSCALED = "unscaled"
    OPEN = "open"
    DIFFERENT = "different"
    INCOMPARABLE = "incomparable"

    def __init__(self, written: str) -> None:
        self.is_match = written in ("exact", "rounded", "converted", "unscaled")
        """True if the source states the claimed value."""


def compare(claimed: Quantity, stated: Quantity, tolerance: float | None = None, scale: float = 1.0) -> Relation:
    """Return the relation of `claimed` to `stated`, which is multiplied by `scale` (the factor in a table's header).

    Without a `tolerance`, a claim may round the stated value but not add digits to it: 4,187,332 supports "$4.2M",
    while "$4.2M" leaves "$4.23M" open and differs from "$4.3M". A `tolerance` is a fraction of the stated value, or a
    number of days for dates.
    """
    if claimed.kind == "date" or stated.kind == "date":
        return _compare_dates(claimed, stated, tolerance)
    if (rated := _compare_rates(claimed, stated, tolerance, scale)) is not None:
        return rated
    factors = _common(claimed, stated)
    if factors is None:
        is_copied = {claimed.kind, stated.kind} == {"time", "quantity"} and claimed.text == stated.text
        return Relation.EXACT if is_copied else Relation.INCOMPARABLE  # "2:24:37" as a time of day and as a duration
    factor, offset, is_conversion = factors
    if claimed.per and stated.per:
        scale *= claimed.per / stated.per  # "$12 a month" is "$144 a year"
        is_conversion |= claimed.per != stated.per
    factor *= scale
    relations = [
        _compare_values(
            claimed, stated, mine, (low * factor + offset, high * factor + offset), factor, tolerance, is_conversion
        )
        for low, high in _readings(stated)
        for mine in _readings(claimed)
    ]
    best = Relation.OPEN if Relation.OPEN in relations else Relation.DIFFERENT
    return next((each for each in relations if each.is_match), best)


def _compare_rates(claimed: Quantity, stated: Quantity, tolerance: float | None, scale: float) -> Relation | None:
    """Compare quantities whose periods do not convert: "5% a month" and "5% a year", "3 days" and "3 days a week".

    Return None for all other quantities.
    """
    is_span = claimed.kind == stated.kind == "quantity" and claimed.unit == stated.unit == "time"
    is_span = is_span and bool(claimed.per) != bool(stated.per)
    is_share = claimed.kind == stated.kind == "percentage" and claimed.per != stated.per and claimed.per and stated.per
    if not is_span and not is_share:
        return None
    is_match = compare(claimed._replace(per=0.0), stated._replace(per=0.0), tolerance, scale).is_match
    return Relation.INCOMPARABLE if not is_match else Relation.OPEN if is_span else Relation.DIFFERENT


def fit_period(claimed: Sequence[Quantity], stated: Sequence[Quantity]) -> bool | None:
    """Return whether a value stated for the dates `stated` may apply to the dates `claimed`; None if either is empty.

    Dates are compared with dates of the same unit if there are any: a quarter without a year only with such quarters.
    """
    if not claimed or not stated:
        return None
    for unit in {each.unit for each in claimed}:
        alike = [each for each in stated if each.unit == unit] or stated
        mine = [each for each in claimed if each.unit == unit]
        if not any(compare(one, other) is not Relation.DIFFERENT for one in mine for other in alike):
            return False
    return True


_ADJECTIVES = frozenset(map(stem, "paid full whole additional extra further consecutive straight".split()))
_MAX_ROUNDING = 0.1  # of the stated value
_NO_DIGIT = re.compile(r"\D")


def _readings(quantity: Quantity) -> tuple[tuple[float, float], ...]:
    """Return the two ends of a quantity, and those of its second interpretation if it has one."""
    ends = quantity.low, quantity.high
    return (ends, quantity.other) if quantity.other else (ends,)


def _common(claimed: Quantity, stated: Quantity) -> tuple[float, float, bool] | None:
    """Return the factor and offset from the unit of `stated` to that of `claimed`, and whether they are a conversion.

    None if the units are not comparable.
    """
    if claimed.kind == stated.kind:
        if claimed.unit == stated.unit:
            return 1.0, 0.0, bool(claimed.written) and claimed.written.rstrip("s") != stated.written.rstrip("s")
        if claimed.kind == "currency":
            return (1.0, 0.0, False) if _is_one_currency(claimed.unit, stated.unit) else None
        if claimed.kind == "percentage":
            return (1.0, 0.0, True) if "bps" in (claimed.unit, stated.unit) else None
        if claimed.kind == "quantity" and {claimed.unit, stated.unit} == {"angle", "temperature"}:
            return _as_written(claimed, stated)  # "375 degrees" may be a temperature
        return (1.0, 0.0, False) if claimed.kind == "ratio" else None
    if _are_points(claimed, stated) or _are_points(stated, claimed):
        return 1.0, 0.0, False
    if worth := _worth_of_counted(claimed, stated):
        return 1.0 / worth, 0.0, False
    if worth := _worth_of_counted(stated, claimed):
        return worth, 0.0, False
    if claimed.kind == "percentage" and stated.kind == "ratio":
        return 100.0, 0.0, True
    if claimed.kind == "ratio" and stated.kind == "percentage":
        return 0.01, 0.0, True
    if not (stated.is_bare or claimed.is_bare) or "time" in (claimed.kind, stated.kind):
        return None
    return _as_written(claimed, stated)


def _are_points(count: Quantity, points: Quantity) -> bool:
    """Return whether a count such as "1.1 points" may mean percentage points."""
    return points.unit == "pp" and count.nouns[:1] == ("point",)


def _worth_of_counted(count: Quantity, span: Quantity) -> float:
    """Return the `worth` of the unit in "25 paid days" if `span` is a length of time in that unit; else 0."""
    adjective, unit = (*count.nouns, "", "")[:2]
    is_span = count.kind == "count" and span.unit == "time" and adjective in _ADJECTIVES
    return span.worth if is_span and unit == stem(span.written) else 0.0


def _as_written(claimed: Quantity, stated: Quantity) -> tuple[float, float, bool]:
    """Return the factor and offset that interpret the stated digits in the unit in which the claim is written."""
    factor = claimed.worth / stated.worth
    return factor, claimed.offset - stated.offset * factor, False


def _is_one_currency(first: str, second: str) -> bool:
    """Return whether two units may be one currency: "$" alone may be any dollar."""
    dollars = {"$", "USD", "AUD", "CAD", "NZD", "HKD", "SGD"}
    return "$" in (first, second) and {first, second} <= dollars


def _compare_values(
    claimed: Quantity,
    stated: Quantity,
    mine: tuple[float, float],
    theirs: tuple[float, float],
    factor: float,
    tolerance: float | None,
    is_conversion: bool,
) -> Relation:
    """Compare points and ranges in one unit. Each end of a claimed range must match an end of the stated one."""
    their_slack = stated.slack * factor
    if {claimed.bound, stated.bound} == {"least", "most"}:
        least, most = (mine, theirs) if claimed.bound == "least" else (theirs, mine)
        return Relation.OPEN if least[0] < most[1] else Relation.DIFFERENT
    allowed = _allowed(claimed, theirs, tolerance)
    if is_conversion and tolerance is None:
        allowed = min(max(allowed, their_slack), 0.05 * abs(theirs[0]))
    distance = max(min(abs(end - other) for other in theirs) for end in mine)
    if distance <= 1e-9 * max(abs(mine[0]), abs(theirs[0])):
        return Relation.CONVERTED if is_conversion else Relation.EXACT
    if distance <= allowed * (1 + 1e-9):
        return Relation.CONVERTED if is_conversion else Relation.ROUNDED
    if not stated.bound and _meets_bound(claimed, mine[0], theirs):
        return Relation.ROUNDED
    if distance <= their_slack * (1 + 1e-9) or _is_open(claimed, stated, mine, theirs):
        return Relation.OPEN
    return Relation.DIFFERENT


def _allowed(claimed: Quantity, theirs: tuple[float, float], tolerance: float | None) -> float:
    """Return the allowed distance from the stated value.

    Without a `tolerance`, it is half a unit of the claim's last digit but at most a tenth of the stated value ("2 %" is
    no rounded "1.5 %"), and more if the claim is approximate.
    """
    if tolerance is not None:
        return tolerance * abs(theirs[0])
    if claimed.is_approximate:
        is_rough = len(_NO_DIGIT.sub("", claimed.text).strip("0")) <= 2  # "about 3,500", and numbers in words
        return max(2 * claimed.slack, 0.05 * abs(claimed.low) if is_rough else 0.0, _last_digit(claimed.low) / 2)
    return min(claimed.slack, _MAX_ROUNDING * abs(theirs[0]))


def _last_digit(value: float) -> float:
    """Return the place value of the last non-zero digit (100 for 3,500), at most a tenth of the number."""
    written = f"{abs(value):.0f}"
    return min(10.0 ** (len(written) - len(written.rstrip("0"))), 0.1 * abs(value)) if value else 0.0


def _meets_bound(claimed: Quantity, mine: float, theirs: tuple[float, float]) -> bool:
    """Return whether a stated value supports "more than" or "up to": it is on the right side of the bound and near it.

    Callers exclude stated bounds, because a bound supports no other bound: a limit of 30 days is not one of 40 days.
    """
    if not claimed.bound:
        return False
    reach = max(0.25 * abs(mine), _last_digit(mine))
    if claimed.bound == "least":
        return mine <= theirs[0] <= mine + reach
    return mine - reach <= theirs[1] <= mine


def _is_open(claimed: Quantity, stated: Quantity, mine: tuple[float, float], theirs: tuple[float, float]) -> bool:
    """Return whether both quantities can be true: one is inside the other's range or beyond its bound.

    Two bounds of one kind cannot, because each states the exact limit.
    """
    if claimed.bound and claimed.bound == stated.bound:
        return False
    if stated.bound == "least" or claimed.bound == "most":
        return mine[0] >= theirs[0]
    if stated.bound == "most" or claimed.bound == "least":
        return mine[0] <= theirs[0]
    point, interval = sorted((mine, theirs), key=lambda ends: ends[1] - ends[0])
    return point[0] == point[1] and interval[0] <= point[0] <= interval[1]


def _compare_dates(claimed: Quantity, stated: Quantity, tolerance: float | None) -> Relation:
    """Compare dates. A claimed period matches a stated date within it ("in 2024" for a day of 2024).

    A claimed date within a longer stated period is open.
    """
    if claimed.kind != stated.kind:
        written = {claimed.text.strip(), stated.text.strip()}
        return Relation.EXACT if len(written) == 1 and len(claimed.text) == 4 else Relation.INCOMPARABLE
    if claimed.unit or stated.unit:
        return _compare_without_year(claimed, stated)
    relation = Relation.DIFFERENT
    for mine in _readings(claimed):
        for theirs in _readings(stated):
            if mine == theirs:
                return Relation.EXACT
            if mine[0] <= theirs[0] and theirs[1] <= mine[1]:
                return Relation.ROUNDED
            if tolerance and abs(mine[0] - theirs[0]) <= tolerance and abs(mine[1] - theirs[1]) <= tolerance:
                return Relation.ROUNDED
            if mine[1] - mine[0] >= 364 and (mine[0] == theirs[0] or mine[1] == theirs[1]):
                return Relation.ROUNDED  # one year of "2018/2019"
            if theirs[0] <= mine[1] and mine[0] <= theirs[1]:
                relation = Relation.OPEN
    return relation


def _compare_without_year(claimed: Quantity, stated: Quantity) -> Relation:
    """Compare two dates of which at least one has no year, by day and month, by month, by quarter or by half-year."""
    units = {claimed.unit, stated.unit}
    if units == {"month", "month-day"}:
        months = [each.low // 100 if each.unit == "month-day" else each.low for each in (claimed, stated)]
        is_stated = claimed.unit == "month" and months[0] == months[1]
        return Relation.EXACT if is_stated else Relation.OPEN if months[0] == months[1] else Relation.DIFFERENT
    unit = claimed.unit or stated.unit
    if stated.unit not in ("", unit):
        return Relation.INCOMPARABLE
    mine = claimed.low if claimed.unit else without_year(unit, claimed.low, claimed.high)
    theirs = stated.low if stated.unit else without_year(unit, stated.low, stated.high)
    if not mine or not theirs:
        return Relation.OPEN
    if mine != theirs:
        return Relation.DIFFERENT
    return Relation.EXACT if claimed.unit else Relation.OPEN
