"""Numbers as written in a claim: their value and other ways to write it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from decimal import Decimal

SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_DIGITS = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")


def value_of(number: str) -> Decimal:
    """Return the value of a number in digits, with or without thousands separators."""
    return Decimal(number.replace(",", ""))


def written(value: Decimal) -> str:
    """Write a value in digits, with thousands separators and no needless zeros."""
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def numbers_in(text: str) -> Iterator[str]:
    """Yield every number that a text holds in digits."""
    return (found.group().rstrip(",") for found in _DIGITS.finditer(text))


def another_digit(number: str, rng: random.Random, *, leading: int | None = None) -> str:
    """Return the number with one digit changed; `leading` restricts the change to that many first digits.

    A first digit never becomes 0, and the value never stays the same.
    """
    places = [place for place, char in enumerate(number) if char.isdigit()][:leading]
    place = rng.choice(places)
    first = place == next(index for index, char in enumerate(number) if char.isdigit())
    digits = [digit for digit in "123456789" + ("" if first else "0") if digit != number[place]]
    return number[:place] + rng.choice(digits) + number[place + 1 :]


def rounded(number: str, digits: int) -> str | None:
    """Round the number to so many significant digits; return None when it has no more than these."""
    value = value_of(number)
    if not value:
        return None
    short = round(value, digits - 1 - value.adjusted())
    return None if short == value else written(short)
