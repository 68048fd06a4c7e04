"""Claims with numbers, made wrong as models get numbers wrong, and rewritten in ways that are right."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from bench.suites.case import Case
from bench.suites.figures import SCALES, another_digit, numbers_in, rounded, value_of, written

_OTHER_UNIT = {
    "%": " basis points",
    " percent": " basis points",
    " km": " miles",
    " metres": " feet",
    " kg": " pounds",
    " tonnes": " kg",
    " g/cm3": " kg/m3",
    " g": " kg",
    " mg": " g",
    " mm": " cm",
    " m3/s": " l/s",
    " days": " hours",
    " years": " months",
    " ms": " s",
    " °C": " °F",
    " MW": " kW",
    " GWh": " MWh",
    " MPa": " kPa",
    " mA": " A",
    " light-years": " kilometres",
    " billion kronor": " billion euros",
    " million USD": " million EUR",
}
_OTHER_CURRENCY = {"$": "€", "€": "$", "£": "$"}
_CONVERSIONS = {
    " km": (" m", "1000"),
    " metres": (" km", "0.001"),
    " kg": (" tonnes", "0.001"),
    " tonnes": (" kg", "1000"),
    " g": (" mg", "1000"),
    " mg": (" g", "0.001"),
    " mm": (" cm", "0.1"),
    " days": (" hours", "24"),
    " years": (" months", "12"),
    " ms": (" seconds", "0.001"),
    " MW": (" kW", "1000"),
    " GWh": (" MWh", "1000"),
    " mA": (" A", "0.001"),
}
_OPPOSITES = (
    ("net income", "net loss"),
    ("rose", "fell"),
    ("rise", "fall"),
    ("increased", "decreased"),
    ("grew", "shrank"),
    ("improved", "worsened"),
    ("higher", "lower"),
    ("more", "less"),
    ("were up", "were down"),
    ("slower", "faster"),
    ("stronger", "weaker"),
    ("gained", "lost"),
    ("dropped", "climbed"),
    ("declined", "increased"),
)
_PERIODS = (
    ("Q1", "Q2", "Q3", "Q4"),
    ("first quarter", "second quarter", "third quarter", "fourth quarter"),
    tuple("January February March April May June July August September October November December".split()),
)
_YEAR = re.compile(r"(?<![\d,.$€£])(?:19|20)\d\d(?![\d,%]|\.\d)")
_COUNTS_IN = re.compile(r"thousand|million|billion|['’]000|\b000s|\b(?:mn|m)\b", re.IGNORECASE)
_CURRENCY_NAMES = {"$": "dollars", "€": "euros", "£": "pounds"}
_DERIVED = ("total", "growth", "difference", "share", "average")


class Claim(NamedTuple):
    """A grounded claim split at its number: the text before it, the number in digits, and the text after it."""

    before: str
    number: str
    after: str
    context: str

    @property
    def text(self) -> str:
        return self.before + self.number + self.after

    def with_number(self, number: str) -> str:
        return self.before + number + self.after


Change = Callable[[Claim, random.Random], str | None]


def cases_of(row: Mapping[str, Any], rng: random.Random) -> Iterator[Case]:
    """Yield all cases of one row of numbers.jsonl: the claim itself, its wrong and its right rewritings."""
    before, _, rest = row["claim"].partition("{")
    number, _, after = rest.partition("}")
    claim = Claim(before, number, after, row["context"])
    derived = row["kind"] in _DERIVED
    yield Case(row["id"], f"right {row['kind']}" if derived else "as it stands", False, claim.text, claim.context)
    for kind, wrong, change in _DERIVED_CHANGES if derived else _CHANGES:
        text = change(claim, rng)
        if text is not None and text != claim.text:
            name = f"wrong {row['kind']}" if kind == "wrong result" else kind
            yield Case(f"{row['id']}/{kind}", name, wrong, text, claim.context)
    if "other_row" in row:
        yield Case(f"{row['id']}/row", "right number, wrong row", True, _of_other_row(claim, row), claim.context)


def wrong_digit(claim: Claim, rng: random.Random) -> str | None:
    """Change one digit, to a number that the context does not hold."""
    held = {value_of(number) for number in numbers_in(claim.context)}
    for _ in range(20):
        number = another_digit(claim.number, rng)
        if value_of(number) not in held:
            return claim.with_number(number)
    return None


def wrong_result(claim: Claim, rng: random.Random) -> str | None:
    """Change the first or second digit of a computed number: no rounding can excuse it."""
    digits = sum(char.isdigit() for char in claim.number)
    return claim.with_number(another_digit(claim.number, rng, leading=2 if digits > 2 else 1))


def scale_slip(claim: Claim, rng: random.Random) -> str | None:
    """Write thousand for million and the like, or three more zeros on a whole number of four digits and more.

    Where the context counts in thousands or the like, zeros alone may be right, and nothing is changed.
    """
    word = _scale_after(claim)
    if word:
        others = [other for other in SCALES if abs(SCALES[other] - SCALES[word]) == 3]
        return claim.with_number(claim.number + " " + rng.choice(others)).replace(f" {word}", "", 1)
    if "." in claim.number or "," not in claim.number or _COUNTS_IN.search(claim.context):
        return None
    return claim.with_number(written(value_of(claim.number) * 1000))


def unit_swap(claim: Claim, _: random.Random) -> str | None:
    """Write another unit or currency after or before the same digits."""
    currency = _OTHER_CURRENCY.get(claim.before[-1:])
    if currency:
        return claim.before[:-1] + currency + claim.number + claim.after
    unit = _unit_after(claim, _OTHER_UNIT)
    return unit and claim.before + claim.number + _OTHER_UNIT[unit] + claim.after[len(unit) :]


def sign(claim: Claim, _: random.Random) -> str | None:
    """Reverse the direction, or drop the minus of an increase: of a mere change it may be left out."""
    if claim.number.startswith("-"):
        return claim.with_number(claim.number[1:]) if "increase" in claim.text.lower() else None
    around = claim.text
    for one, other in _OPPOSITES:
        for old, new in ((one, other), (other, one)):
            text = re.sub(rf"\b{old}\b", new, around, count=1)
            if text != around:
                return text
    return None


def neighbouring_period(claim: Claim, rng: random.Random) -> str | None:
    """Name an adjacent quarter, month or year, if possible a year that the context mentions too."""
    for names in _PERIODS:
        for place, name in enumerate(names):
            if re.search(rf"\b{name}\b", claim.text):
                return re.sub(rf"\b{name}\b", names[place - 1], claim.text, count=1)
    years = _YEAR.findall(claim.before + "\0" + claim.after)
    if not years:
        return None
    beside = [str(int(years[-1]) + step) for step in (-1, 1)]
    year = rng.choice([each for each in beside if each in claim.context] or beside)
    if year in years:
        return None
    before, after = (
        _YEAR.sub(lambda found: _other(found, years[-1], year), part) for part in (claim.before, claim.after)
    )
    return before + claim.number + after


def rounding(claim: Claim, _: random.Random) -> str | None:
    """Write fewer digits, with "about": two fewer than written, and at least two."""
    digits = sum(char.isdigit() for char in claim.number.lstrip("0.-"))
    short = rounded(claim.number, max(2, digits - 2))
    if short is None or claim.before.rstrip("$€£ ").lower().endswith("about"):
        return None
    cut = len(claim.before.rstrip("$€£"))
    return f"{claim.before[:cut]}about {claim.before[cut:]}{short}{claim.after}"


def notation(claim: Claim, _: random.Random) -> str | None:
    """Write the same value otherwise: a larger scale word, M for million, percent for %, dollars for $, no commas."""
    word = _scale_after(claim)
    currency = claim.before[-1:]
    if word == "million" and currency in _CURRENCY_NAMES and value_of(claim.number) >= 1000:
        return claim.with_number(written(value_of(claim.number) / 1000) + " billion").replace(" million", "", 1)
    if word == "million" and currency in _CURRENCY_NAMES:
        return claim.with_number(claim.number + "M").replace(" million", "", 1)
    if currency in _CURRENCY_NAMES:
        scale = f" {word}" if word else ""
        rest = claim.after[len(scale) :]
        return f"{claim.before[:-1]}{claim.number}{scale} {_CURRENCY_NAMES[currency]}{rest}"
    if claim.after.startswith("%"):
        return f"{claim.before}{claim.number} percent{claim.after[1:]}"
    if claim.after.startswith(" percent"):
        return f"{claim.before}{claim.number}%{claim.after[8:]}"
    return claim.with_number(claim.number.replace(",", ""))


def conversion(claim: Claim, _: random.Random) -> str | None:
    """Write the same quantity in another unit, exactly."""
    unit = _unit_after(claim, _CONVERSIONS)
    if not unit or claim.before.rstrip().lower().endswith("about"):
        return None
    other, factor = _CONVERSIONS[unit]
    return claim.before + written(value_of(claim.number) * Decimal(factor)) + other + claim.after[len(unit) :]


_CHANGES: tuple[tuple[str, bool, Change], ...] = (
    ("wrong digit", True, wrong_digit),
    ("scale slip", True, scale_slip),
    ("unit swap", True, unit_swap),
    ("sign", True, sign),
    ("neighbouring period", True, neighbouring_period),
    ("legitimate rounding", False, rounding),
    ("other notation", False, notation),
    ("unit conversion", False, conversion),
)
_DERIVED_CHANGES: tuple[tuple[str, bool, Change], ...] = (
    ("wrong result", True, wrong_result),
    ("sign", True, sign),
)


def _of_other_row(claim: Claim, row: Mapping[str, Any]) -> str:
    old, new = row["other_row"]
    return claim.with_number(new) if old == claim.number else claim.text.replace(old, new, 1)


def _scale_after(claim: Claim) -> str | None:
    return next((word for word in SCALES if claim.after.startswith(f" {word}")), None)


def _unit_after(claim: Claim, units: Mapping[str, object]) -> str | None:
    return next((unit for unit in units if re.match(re.escape(unit) + r"(?![\w/])", claim.after)), None)


def _other(found: re.Match[str], old: str, new: str) -> str:
    return new if found.group() == old else found.group()
