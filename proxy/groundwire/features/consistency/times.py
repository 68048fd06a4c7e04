"""Convert relative times in a text ("today", "last year") to dates."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from groundwire.text.quantities import Quantity

_RELATIVE = re.compile(
    r"\b(?:(?P<day>today|tonight|right now|at the moment|yesterday|tomorrow|this (?:morning|afternoon|evening))"
    r"|(?P<which>this|last|next|current|previous|coming) (?P<span>week|month|quarter|year))\b",
    re.IGNORECASE,
)
_STEPS = {"last": -1, "previous": -1, "yesterday": -1, "next": 1, "coming": 1, "tomorrow": 1}


def relative_dates(text: str, at: float) -> tuple[Quantity, ...]:
    """Return the dates that a text gives relative to the time `at` (Unix seconds, interpreted in UTC)."""
    found = list(_RELATIVE.finditer(text))
    if not found:
        return ()
    today = datetime.fromtimestamp(at, UTC).date()
    return tuple(_read(each, today) for each in found)


def _read(found: re.Match[str], today: date) -> Quantity:
    step = _STEPS.get((found["which"] or found["day"]).lower(), 0)
    first, last = _SPANS[(found["span"] or "day").lower()](today, step)
    return Quantity(
        found.start(), found.end(), found.group(), "date", float(first.toordinal()), float(last.toordinal())
    )


def _day(today: date, step: int) -> tuple[date, date]:
    day = today + timedelta(days=step)
    return day, day


def _week(today: date, step: int) -> tuple[date, date]:
    first = today + timedelta(days=7 * step - today.weekday())
    return first, first + timedelta(days=6)


def _months(length: int) -> Callable[[date, int], tuple[date, date]]:
    def span(today: date, step: int) -> tuple[date, date]:
        month = (today.month - 1) // length * length + step * length
        return _first_of(today.year, month), _first_of(today.year, month + length) - timedelta(days=1)

    return span


def _first_of(year: int, month: int) -> date:
    """Return the first day of a month, which is counted from 0 and may be outside its year."""
    return date(year + month // 12, month % 12 + 1, 1)


_SPANS = {"day": _day, "week": _week, "month": _months(1), "quarter": _months(3), "year": _months(12)}
