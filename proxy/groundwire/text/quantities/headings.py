"""Parse the unit and scale that a name states for the numbers under it: "mass (g)", `capacity_mw`, "$ in thousands"."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from groundwire.caches import memo
from groundwire.text.quantities.currencies import CODES, CURRENCIES
from groundwire.text.quantities.grammar import Kind, Quantity
from groundwire.text.quantities.scales import SCALES
from groundwire.text.quantities.units import names_of_units, read_unit


class Given(NamedTuple):
    """The kind, unit and scale that a name states for numbers.

    `worth` and `offset` convert the unit to the base unit, `written` is the unit as written.
    """

    kind: Kind
    unit: str = ""
    worth: float = 1.0
    offset: float = 0.0
    scale: float = 1.0
    written: str = ""


@memo(4096, 256, long_entries=16)
def given_by(name: str) -> tuple[Given, ...]:
    """Return the interpretations of the unit that `name` states, the likeliest first; none if it states no unit.

    A unit appears in brackets, after "in", alone, or as a part of an identifier, where lower case does not show whether
    `mw` is mega or milli.
    """
    if _PER_UNIT.search(_EXCEPT.split(name)[0]) or _IS_RESULT.search(name):
        return ()
    bracketed = [part for bracket in _BRACKETS.findall(name) for part in bracket.split(";")]
    for phrase in (*bracketed, name, *_IN.findall(name)):
        if found := _read(phrase.strip(" \t:,*.")):
            return (found,)
    tail = name.split()[-1:]
    if tail and (found := _read(tail[0])) and found.kind != "quantity":
        return (found,)
    return tuple(dict.fromkeys(_of_identifier(name)))


def note_near(text: str, source: str, start: int, end: int) -> Given | None:
    """Return the unit and scale that the nearest note, such as "in millions", states for the bare numbers of `text`.

    `text` is the passage at `source[start:end]`. A note within it takes precedence over the source around it.
    """
    inner = _SCALE_NOTE.search(text) or _SCALE_ASIDE.search(text)
    nearest = _Note(*inner.span(), inner.lastgroup or "") if inner else _nearest_note(source, start, end)
    if nearest is None:
        return None
    text = text if inner else source
    before = _CLAUSE_END.split(text[max(0, nearest.start - 40) : nearest.start])[-1]
    behind = _CLAUSE_END.split(text[nearest.end : nearest.end + 40])[0]
    told = given_by(f"{before}{text[nearest.start : nearest.end].strip('()')}{behind}".strip())
    scale = _NOTED[nearest.scale]
    return told[0] if told and told[0].scale == scale else Given("count", scale=scale)


class _Note(NamedTuple):
    start: int
    end: int
    scale: str


def _nearest_note(source: str, start: int, end: int) -> _Note | None:
    notes = _notes(source)
    low, high = (bisect_left(notes, (place,)) for place in (start - _REACH, end + _REACH))
    return min(notes[low:high], key=lambda note: abs(note.start - start), default=None)


@memo(64, 2048, long_entries=16)
def _notes(source: str) -> tuple[_Note, ...]:
    return tuple(_Note(*found.span(), found.lastgroup or "") for found in _SCALE_NOTE.finditer(source))


def as_given(number: Quantity, given: Given) -> Quantity:
    """Return a number with the unit and scale of its name if it is bare, or with the scale only if it is money."""
    if number.kind == "currency" and given.kind in ("currency", "count"):
        return _scaled(number, given.scale)
    if not number.is_bare or number.scale != 1.0:
        return number
    factor = given.worth
    scaled = _scaled(number, given.scale) if given.scale != 1.0 else number
    return scaled._replace(
        kind=given.kind,
        unit=given.unit,
        low=number.low * factor * given.scale + given.offset,
        high=number.high * factor * given.scale + given.offset,
        slack=number.slack * factor * given.scale,
        other=None if given.offset else number.other and _times(number.other, factor * given.scale),
        worth=factor,
        offset=given.offset,
        written=given.written,
    )


def _scaled(number: Quantity, scale: float) -> Quantity:
    return number._replace(
        low=number.low * scale,
        high=number.high * scale,
        slack=number.slack * scale,
        other=number.other and _times(number.other, scale),
        scale=number.scale * scale,
    )


def _times(ends: tuple[float, float], factor: float) -> tuple[float, float]:
    return ends[0] * factor, ends[1] * factor


def _read(phrase: str) -> Given | None:
    """Parse a whole phrase as a unit: "g", "in years", "US$’000", "millions of euros", "€m", "percent"; else None."""
    plain = _EXCEPT.split(phrase.removeprefix("in ").removeprefix("In "))[0].strip()
    if not plain or len(plain) > 40:
        return None
    if _PERCENT.fullmatch(plain):
        return Given("percentage", "%")
    if money := _MONEY.fullmatch(plain):
        scale = _scale_of(money["scale"] or money["before"])
        currency = money["currency"] or money["behind"]
        if currency:
            return Given("currency", CURRENCIES[currency.lower()], scale=scale)
        if len(plain) > 1:  # "m" alone is the metre
            return Given("count", scale=scale)
    unit = None if plain.lower() in _NO_UNITS else read_unit(plain, 0)
    if unit and (unit.end == len(plain) or _OF_WHAT.match(plain, unit.end)):
        return Given("quantity", unit.unit.dimension, unit.unit.factor, unit.unit.offset, written=plain)
    return None


def _scale_of(written: str | None) -> float:
    plain = (written or "").lower().strip("'’ ")
    if plain.startswith("000"):
        return 1e3
    return {"m": 1e6, "mm": 1e6, "k": 1e3, "b": 1e9}.get(plain) or SCALES.get(plain, 1.0)


def _of_identifier(name: str) -> Iterator[Given]:
    """Yield the units that parts of a name such as `output_gwh_2021` or "price eur" state.

    A part of four or more letters counts as a measure only in the plural.
    """
    parts = [part for part in _PARTS.split(name) if part and not part.isdigit()]
    if len(parts) < 2 or name != name.lower():
        return
    if joined := _MONEY.fullmatch(" ".join(parts[-2:])) and _read(" ".join(parts[-2:])):
        yield joined
    for part in parts[:0:-1]:
        if part in _NO_UNITS:
            continue
        if (found := _read(part)) and (found.kind != "quantity" or len(part) < 4 or part.endswith("s")):
            yield found
        if money := _COMPACT_MONEY.fullmatch(part):
            scale = _scale_of(money["before"] or money["scale"])
            yield Given("currency", CURRENCIES[money["currency"]], scale=scale)
        for unit in names_of_units(part) if len(part) < 5 else ():
            yield Given("quantity", unit.dimension, unit.factor, unit.offset, written=part)


_BRACKETS = re.compile(r"\(([^()]{1,60})\)")
_IN = re.compile(r"\bin ([^()|]{1,40})$", re.IGNORECASE)
_IS_RESULT = re.compile(r"(?:^|\b(?:games|matches|points|sets|seats|titles|medals|races) )won$", re.I)  # no currency
_EXCEPT = re.compile(r",? (?:except|unless|other than)\b", re.IGNORECASE)
_PER_UNIT = re.compile(r"\bper\b(?! cent)", re.IGNORECASE)
_PERCENT = re.compile(r"%|pct|per ?cent|percentage|percent change|% change|change %", re.IGNORECASE)
_NAMES = "|".join(sorted(map(re.escape, (*CURRENCIES, *CODES)), key=len, reverse=True))
_SCALE_NAMES = r"(?:thousand|million|billion|crore|lakh)s?|mio|mln|mn|bn|mm|m|k|['’]?000[’']?s?"
_MONEY = re.compile(
    rf"(?:(?P<currency>{_NAMES})(?:[ ]?(?:in )?['’]?(?P<scale>{_SCALE_NAMES}))?"
    rf"|(?P<before>{_SCALE_NAMES})(?: ?(?:of )?(?P<behind>{_NAMES}))?)(?: in (?P<within>thousands|millions|billions))?",
    re.IGNORECASE,
)
_CODE = "|".join(CODES).lower()
_COMPACT_MONEY = re.compile(rf"(?P<before>m|mn|k|b|bn)?(?P<currency>{_CODE})(?P<scale>m|mn|k|b|bn)?")
_OF_WHAT = re.compile(r" (?:of |CO2)\S{1,20}", re.IGNORECASE)
_PARTS = re.compile(r"[\s_.\-/]+")
_NO_UNITS = frozenset("min max mean bar in at to by no id us day hour minute second year month week cup a".split())
_REACH = 4000  # maximum characters between a note and its numbers
_CLAUSE_END = re.compile(r"[\n.;,|()]|: ")
_NOTED = {"thousands": 1e3, "millions": 1e6, "billions": 1e9}
_SCALE_NOTE = re.compile(
    r"(?P<thousands>\bthousands\b|[’'‘]000[’']?s?\b|[$€£]000s?\b|[$€£]k\b)"
    r"|(?P<millions>\bmillions\b|[$€£] ?(?:mm?|mn|million)\b)|(?P<billions>\bbillions\b|[$€£] ?(?:billion|bn)\b)",
    re.IGNORECASE,
)
_SCALE_ASIDE = re.compile(  # a note of a table's header on all its numbers, in brackets after the label of the row
    r"\((?:[^()|\d]{0,60}[^()|\d\w])?(?:(?P<thousands>thousand|k)|(?P<millions>million|mio|mln|mn|mm|m)|(?P<billions>billion|bn))"
    r"(?: [^()|]{0,40})?\)",
    re.IGNORECASE,
)
