"""Bind quantities to the words and dates that describe them, and to the unit and scale that a name or note states.

Names state units in forms such as "mass (g)", `capacity_mw` and "$ in thousands".
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from groundwire.caches import memo
from groundwire.text.quantities import Kind, Quantity
from groundwire.text.units import CODES, CURRENCIES, SCALES, names_of_units, read_unit
from groundwire.text.words import Word


class Binding(NamedTuple):
    """A quantity with the stems and the dates that describe it.

    `own` are the stems between the neighbouring quantities, up to the clause boundary, with the subject of the
    preceding verb if another verb follows ("Sales grew 5% and reached $3M"). `shared` are the stems before the first
    quantity, which usually name the subject of all of them (the label of a row, "Revenue and costs were …").
    """

    quantity: Quantity
    own: frozenset[str]
    shared: frozenset[str]
    dates: tuple[Quantity, ...]
    has_subject: bool = False  # own words precede it, so the shared subject does not apply
    has_own_dates: bool = False  # its dates are from its own part of the text

    @property
    def subject(self) -> frozenset[str]:
        """The stems that may name the subject of the quantity: without the shared ones if it has its own subject."""
        return self.own if self.has_subject else self.own | self.shared

    @property
    def scope(self) -> frozenset[str]:
        """The stems that describe the measured thing: its own, or the shared ones if it has none."""
        return self.own or self.shared


def bind(text: str, words: Sequence[Word], quantities: Sequence[Quantity]) -> tuple[Binding, ...]:
    """Return a binding for each quantity of a text, in order.

    Dates divide the text among dates, amounts among amounts.
    """
    stems = _stems_outside(text, words, [(each.start, each.end) for each in quantities])
    dates = tuple(each for each in quantities if each.kind == "date")
    amounts = tuple(each for each in quantities if each.kind != "date")
    bindings = [
        *_one_by_one(text, stems, _bind(text, stems, dates, ()), ()),
        *_one_by_one(text, stems, _bind(text, stems, amounts, dates), dates),
    ]
    return tuple(sorted(bindings, key=lambda binding: binding.quantity.start))


_Stems = Sequence[tuple[int, str]]
"""The stems of a text with their positions, in order."""


def _between(stems: _Stems, low: int, high: int) -> list[str]:
    return [stem for _, stem in stems[bisect_left(stems, (low, "")) : bisect_left(stems, (high, ""))]]


def _bind(text: str, stems: _Stems, group: Sequence[Quantity], dates: Sequence[Quantity]) -> list[Binding]:
    if not group:
        return []
    label_end = text.find("|", 0, group[0].start)
    first = label_end if label_end >= 0 else group[0].start
    if label_end >= 0:
        spans, shared = _cells(text, stems, group, label_end)
    else:
        spans, shared = _clauses(text, group, dates), frozenset(_between(stems, 0, first))
    leading = tuple(date for date in dates if date.start < first and not _names_column(text, date.end, label_end))
    starts = [date.start for date in dates]
    bindings: list[Binding] = []
    subject: frozenset[str] = frozenset()
    for quantity, (low, high) in zip(group, spans, strict=True):
        own, before = frozenset(_between(stems, low, high)), _between(stems, low, quantity.start)
        if bindings and (
            _goes_on(text, low, quantity.start) or text[bindings[-1].quantity.end : quantity.start] == " ("
        ):
            own |= subject if text[low : low + 1] != "(" else bindings[-1].own
        else:  # without "is" or "was", the last word is the verb
            subject = frozenset(before if _LINKING.search(text, low, quantity.start) else before[:-1])
        with_it = main_dates(text, dates[bisect_left(starts, low) : bisect_left(starts, high)])
        has_subject = low != spans[0][0] and bool(before)
        bindings.append(Binding(quantity, own, shared, with_it or leading, has_subject, bool(with_it)))
    return _joined(text, bindings)


def _clauses(text: str, group: Sequence[Quantity], dates: Sequence[Quantity]) -> list[tuple[int, int]]:
    """Return the span of each quantity in prose, up to the clause boundaries around it."""
    joints = [(one.end, other.start) for one, other in pairwise(dates) if other.start - one.end <= _JOINED]
    cuts = [_cut(text, left.end, right.start, joints) for left, right in pairwise(group)]
    turn = _STRONG_TURN.search(text, group[-1].end)
    return list(pairwise([0, *cuts, turn.start() if turn else len(text)]))


def _cells(
    text: str, stems: _Stems, group: Sequence[Quantity], label_end: int
) -> tuple[list[tuple[int, int]], frozenset[str]]:
    """Return the cell of each quantity in a row or a record, and the stems of the cells without quantities."""
    lows = [max(text.rfind("|", 0, each.start), 0) for each in group]
    highs = [high if high >= 0 else len(text) for high in (text.find("|", each.end) for each in group)]
    gaps = zip([0, *highs], [*lows, len(text)], strict=True)
    shared = {stem for low, high in gaps for stem in _between(stems, low, high)}
    if ": " not in text[:label_end]:
        shared.update(_between(stems, 0, label_end))  # its numbers belong to the name
    return list(zip(lows, highs, strict=True)), frozenset(shared)


def _joined(text: str, bindings: list[Binding]) -> list[Binding]:
    """Share the stems of a part and its whole ("nine of the 20 acids"), and of the two ends of one span of time."""
    for place, (part, whole) in enumerate(pairwise(bindings)):
        between = part.quantity.end, whole.quantity.start
        if _PART_OF.fullmatch(text, *between):
            bindings[place] = part._replace(own=part.own | whole.own)
        elif part.quantity.kind == whole.quantity.kind == "time" and _TO_END.fullmatch(text, *between):
            bindings[place : place + 2] = (
                each._replace(own=part.own | whole.own, has_subject=whole.has_subject) for each in (part, whole)
            )
    return bindings


def _one_by_one(text: str, stems: _Stems, bindings: list[Binding], dates: Sequence[Quantity]) -> list[Binding]:
    """Pair the listed values of a sentence with "respectively" with its listed dates or names.

    In "5 and 6 in 2019 and 2018, respectively" the first value belongs to the first date.
    """
    mark = _RESPECTIVELY.search(text)
    if mark is None or not bindings:
        return bindings
    low = max((turn.end() for turn in _SENTENCE_END.finditer(text, 0, mark.start())), default=0)
    places = [place for place, each in enumerate(bindings) if low <= each.quantity.start < mark.start()]
    runs = _runs(text, [bindings[place].quantity for place in places])
    listed = _runs(text, [date for date in dates if low <= date.start < mark.start()])
    rest = iter(places)
    for run in runs:
        values = list(islice(rest, len(run)))
        same = next((each for each in listed if len(each) == len(run) > 1), None)
        names = _listed_names(text, stems, low, run[0].start) if same is None and len(run) > 1 else []
        for step, place in enumerate(values):
            if same:
                bindings[place] = bindings[place]._replace(dates=(same[step],), has_own_dates=True)
            elif len(names) == len(run):
                bindings[place] = bindings[place]._replace(own=names[step], shared=frozenset(), has_subject=True)
    return bindings


def _runs(text: str, quantities: Sequence[Quantity]) -> list[list[Quantity]]:
    """Group quantities into lists, whose items are separated only by commas, conjunctions and short function words."""
    runs: list[list[Quantity]] = []
    for quantity in quantities:
        if runs and _LISTED.fullmatch(text, runs[-1][-1].end, quantity.start):
            runs[-1].append(quantity)
        else:
            runs.append([quantity])
    return runs


def _listed_names(text: str, stems: _Stems, low: int, high: int) -> list[frozenset[str]]:
    """Return the stems of each name in the list that begins a sentence: "Cash and debt were …"."""
    ends = [*(joint.start() for joint in _JOINT.finditer(text, low, high)), high]
    starts = [low, *ends[:-1]]
    return [frozenset(_between(stems, *span)) for span in zip(starts, ends, strict=True)]


def _names_column(text: str, place: int, label_end: int) -> bool:
    """Return whether the text that ends at `place` belongs to the column name of the first cell."""
    return label_end >= 0 and text.find(": ", place, label_end) >= 0


def main_dates(text: str, dates: Sequence[Quantity]) -> tuple[Quantity, ...]:
    """Return the dates other than those of a comparison ("in 2019 compared to 2018"), or all if none remain."""
    main = tuple(date for date in dates if not _COMPARED.search(text, max(0, date.start - 40), date.start))
    return main or tuple(dates)


def _stems_outside(text: str, words: Sequence[Word], spans: Sequence[tuple[int, int]]) -> list[tuple[int, str]]:
    """Return the position and stem of each content word outside the quantities.

    Numbers and connectives are left out, except a connective before a colon: a field may be named "total".
    """
    found: list[tuple[int, str]] = []
    rest = iter(spans)
    start, end = next(rest, (1 << 62, 1 << 62))
    for word in words:
        while word.start >= end:
            start, end = next(rest, (1 << 62, 1 << 62))
        is_telling = word.stem not in _CONNECTIVES or text.startswith(":", word.end)
        if word.start < start and word.is_content and not word.is_number and is_telling:
            found.append((word.start, word.stem))
    return found


def _cut(text: str, low: int, high: int, joints: Sequence[tuple[int, int]]) -> int:
    """Return where the words between two quantities stop describing the first: at the first clause boundary, if any.

    A conjunction between two dates, one of `joints` ("between 1991 and 2020"), is no boundary.
    """
    for turn in _TURN.finditer(text, low, high):
        if not any(first <= turn.start() < second for first, second in joints):
            return turn.start()
    return high


def _goes_on(text: str, low: int, high: int) -> bool:
    """Return whether the words of a quantity continue the preceding subject, by a verb or a pronoun."""
    verb = _NEXT_VERB.match(text, low, high)
    is_continued = verb is not None and not _LINKING.search(text, verb.end(), high)
    return is_continued or _PRONOUN.search(text, low, high) is not None


_TURN = re.compile(
    r"[,;|(\t\u2014]|\b(?:and|but|while|whereas|to|versus|vs|compared|from|against|or|than|with)\b", re.IGNORECASE
)
_NEXT_VERB = re.compile(
    r",? ?(?:and|but|then)(?: \w+ly| also| then| now| later)? (?:[a-z]{2,}ed|grew|fell|rose|was|were|is|are|had|has|"
    r"made|paid|held|left|lost|won|sold|bought|spent|took|gave|became|came|went|saw|led|kept|ran|built|cost|sent|"
    r"shrank|contributes|represents|employs|serves|includes|contains|provides|remains|generates|operates|produces)\b"
)
_PRONOUN = re.compile(r"\b(?:[Ii]t|[Tt]hey)\b")
_JOINED = 6  # maximum characters: " and "
_RESPECTIVELY = re.compile(r"\brespectively\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.;] ")
_LISTED = re.compile(r"(?:,|,? and|,? or)? (?:and |or |in |the |for |of |by |[$€£])*")
_JOINT = re.compile(r", and |, | and ")
_COMPARED = re.compile(r"\b(?:compared (?:to|with)|versus|vs\.?|against|than in|than|over|from) (?:[a-z]+ ){0,3}$")
_PART_OF = re.compile(r" (?:out )?of (?:the |its |their |these |those |all )?(?:total |first |top )?")
_TO_END = re.compile(r" ?(?:to|until|till|and|[-\u2013\u2014]) ?")
_LINKING = re.compile(r"\b(?:is|are|was|were)\b")  # "and adjusted profit was": "adjusted" is no verb
_STRONG_TURN = re.compile(r"[;|\t]|\b(?:but|while|whereas)\b", re.IGNORECASE)
_CONNECTIVES = frozenset(
    "compar versus vs about approximat roughly near almost around over under than least up down total while but "
    "whereas respectiv same only more less most million billion thousand trillion dollar percent".split()
)


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
    if inner:
        nearest = _Note(*inner.span(), inner.lastgroup or "")
    else:
        notes, text = _notes(source), source
        low, high = (bisect_left(notes, (place,)) for place in (start - _REACH, end + _REACH))
        if low == high:
            return None
        nearest = min(notes[low:high], key=lambda note: abs(note.start - start))
    before = _CLAUSE_END.split(text[max(0, nearest.start - 40) : nearest.start])[-1]
    behind = _CLAUSE_END.split(text[nearest.end : nearest.end + 40])[0]
    positioned = given_by(f"{before}{text[nearest.start : nearest.end].strip('()')}{behind}".strip())
    scale = _NOTED[nearest.scale]
    return positioned[0] if positioned and positioned[0].scale == scale else Given("count", scale=scale)


class _Note(NamedTuple):
    start: int
    end: int
    scale: str


@memo(64, 2048, long_entries=16)
def _notes(source: str) -> tuple[_Note, ...]:
    return tuple(_Note(*found.span(), found.lastgroup or "") for found in _SCALE_NOTE.finditer(source))


def as_given(number: Quantity, given: Given) -> Quantity:
    """Return a number with the unit and scale of its name if it is bare, or with the scale only if it is money."""
    if number.kind == "currency" and given.kind in ("currency", "count"):
        return _scaled(number, given.scale)
    if not number.is_bare or number.scale != 1.0:
        return number
    scaled = _scaled(number, given.worth * given.scale)
    return scaled._replace(
        kind=given.kind,
        unit=given.unit,
        low=scaled.low + given.offset,
        high=scaled.high + given.offset,
        other=None if given.offset else scaled.other,
        scale=given.scale,
        worth=given.worth,
        offset=given.offset,
        written=given.written,
    )


def _scaled(number: Quantity, scale: float) -> Quantity:
    return number._replace(
        low=number.low * scale,
        high=number.high * scale,
        slack=number.slack * scale,
        other=number.other and (number.other[0] * scale, number.other[1] * scale),
        scale=number.scale * scale,
    )


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
    r"(?P<thousands>\bthousands\b|[’'‘]000[’']?s?\b|[$€£]000s?\b|[$€£]k\b|(?<=, )thousand(?= \w+$))"
    r"|(?P<millions>\bmillions\b|[$€£] ?(?:mm?|mn|million)\b|(?<=, )million(?= \w+$))"
    r"|(?P<billions>\bbillions\b|[$€£] ?(?:billion|bn)\b|(?<=, )billion(?= \w+$))",
    re.IGNORECASE | re.MULTILINE,
)
_SCALE_ASIDE = re.compile(  # a note of a table's header on all its numbers, in brackets after the label of the row
    r"\((?:[^()|\d]{0,60}[^()|\d\w])?(?:(?P<thousands>thousand|k)|(?P<millions>million|mio|mln|mn|mm|m)|(?P<billions>billion|bn))"
    r"(?: [^()|]{0,40})?\)",
    re.IGNORECASE,
)


_SEARCHED = 100  # characters


def search_before(pattern: re.Pattern[str], text: str, place: int, reach: int = _SEARCHED) -> re.Match[str] | None:
    """Return the match right before `place` of a pattern that ends in `$`."""
    return pattern.search(text, max(0, place - reach), place)


def last_end(pattern: re.Pattern[str], text: str, place: int, reach: int = 4 * _SEARCHED) -> int:
    """Return the end of the last match before `place`, or the start of the searched text if there is none."""
    low = max(0, place - reach)
    return max((found.end() for found in pattern.finditer(text, low, place)), default=low)
