"""Represent statements with their background, and decide whether two are about the same thing at the same time.

The background of a statement is the question, its time, and its dates, names and content words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from groundwire.domain import Claim
from groundwire.text.quantities import Quantity, find_quantities
from groundwire.text.reading import Reading
from groundwire.text.tolerance import fit_period
from groundwire.text.words import (
    CALENDAR,
    FRAME_WORDS,
    LIGHT_WORDS,
    QUANTIFIERS,
    REFERENTS,
    STOPWORDS,
    TITLES,
    UNIT_WORDS,
    Word,
    is_listed,
    opposites,
    root,
    same_meaning,
    words,
)

_RELATIVE = re.compile(
    r"\b(?:(?P<day>today|tonight|right now|at the moment|yesterday|tomorrow|this (?:morning|afternoon|evening))"
    r"|(?P<which>this|last|next|current|previous|coming) (?P<span>week|month|quarter|year))\b",
    re.IGNORECASE,
)
_STEPS = {"last": -1, "previous": -1, "yesterday": -1, "next": 1, "coming": 1, "tomorrow": 1}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def relative_dates(text: str, at: float) -> tuple[Quantity, ...]:
    """Return the dates that a text gives relative to the time `at` (Unix seconds, interpreted in UTC)."""
    found = list(_RELATIVE.finditer(text))
    if not found:
        return ()
    today = datetime.fromtimestamp(at, UTC).date()
    return tuple(_relative_date(each, today) for each in found)


def _relative_date(found: re.Match[str], today: date) -> Quantity:
    step = _STEPS.get((found["which"] or found["day"]).lower(), 0)
    span = (found["span"] or "day").lower()
    if span in _MONTHS:
        months = _MONTHS[span]
        month = (today.month - 1) // months * months + step * months
        first, end = _first_of(today.year, month), _first_of(today.year, month + months)
    elif span == "week":
        first = today + timedelta(days=7 * step - today.weekday())
        end = first + timedelta(days=7)
    else:
        first = today + timedelta(days=step)
        end = first + timedelta(days=1)
    return Quantity(*found.span(), found.group(), "date", float(first.toordinal()), float(end.toordinal() - 1))


def _first_of(year: int, month: int) -> date:
    """Return the first day of a month, which is counted from 0 and may be outside its year."""
    return date(year + month // 12, month % 12 + 1, 1)


_OFFICES = (
    r"ceo|cfo|coo|cto|chair|chairman|chairwoman|chairperson|president|director|manager|head|lead|leader|owner|founder|"
    r"co-founder|author|editor|doctor|physician|surgeon|dentist|therapist|teacher|tutor|principal|captain|coach|mayor|"
    r"governor|minister|chancellor|king|queen|pope|secretary|treasurer|landlord|tenant|accountant|lawyer|attorney|"
    r"contact|sponsor|supervisor|host|winner|champion|spokesperson|assistant|wife|husband|mother|father|name"
)
_SEATS = (
    r"capital|headquarters|head office|hometown|birthplace|seat|largest city|home city|destination|venue|"
    r"place of birth|location"
)
MADE_BY = (
    r"founded|established|invented|written|directed|composed|painted|designed|discovered|owned|headed|led|chaired|run|"
    r"edited|manufactured"
)
SITUATED_IN = r"born|based|headquartered|located|situated|buried"
"""Verbs after which only one name is possible."""

_LINK = r"\b(?:is|was)(?: called| named| currently| still)?"
_NAME = r"(?:(?:dr|mr|mrs|ms|prof)\.? )?(?P<name>[^\W\d_][\w'’-]*(?: [^\W\d_][\w'’-]*){0,3})"
_END = r"(?=\s*(?:[.,;!?]|$|\bin \d))"
_PERSONS = (
    re.compile(rf"\b(?:{_OFFICES})\b[^.,;:!?]{{0,60}}?{_LINK} {_NAME}{_END}"),
    re.compile(
        rf"(?:^|[.,;:!?] ){_NAME} (?:is|was)(?: currently| still)? (?:the|its|our|their|his|her|\w+['’]s) "
        rf"(?:[\w-]+ ){{0,2}}?(?:{_OFFICES}|{_SEATS})\b"
    ),
    re.compile(rf"\b(?:{MADE_BY}) by {_NAME}{_END}"),
)
_PLACES = (
    re.compile(rf"\b(?:{_SEATS})\b[^.,;:!?]{{0,60}}?{_LINK} {_NAME}{_END}"),
    re.compile(rf"\b(?:{SITUATED_IN}) in {_NAME}{_END}"),
)
_COMMON = frozenset(
    "today tomorrow yesterday tonight now soon here there away back out off on again still yet open closed available "
    "away home alone sick busy new vacant unknown missing present late ill well ready correct wrong public private "
    "several some many all none two three four five brothers sisters students engineers friends volunteers people "
    "town city country village region area north south east west downtown abroad".split()
)
_NO_NAMES = _COMMON | UNIT_WORDS | TITLES | frozenset(QUANTIFIERS)
_DESCRIBING = ("dent", "cient", "tant")
_ENDINGS = ("ed", "ing", "ly", "ful", "ous", "able", "ible", "less", "ive", "ish", "ical")
_MAX_LENGTH = 1000


def _with_names_capitalised(text: str) -> str:
    """Return a statement without capitals with its names capitalised, as far as grammar identifies them.

    A name is recognised only as the holder of an office, the seat, the founder or the place of birth. A single word of
    general English is a name only as a place. The length never changes. A text with a capital after its first character
    is returned unchanged.
    """
    lowered = text.lower()
    if len(text) > _MAX_LENGTH or text[1:] != text[1:].lower() or len(lowered) != len(text):
        return text
    characters = list(text)
    for pattern in (*_PERSONS, *_PLACES):
        for match in pattern.finditer(lowered):
            name = words(match["name"])
            if not all(map(_may_name, name)) or (pattern in _PERSONS and len(name) == 1 and _is_common(name[0])):
                continue
            for word in name:
                place = match.start("name") + word.start
                characters[place] = characters[place].upper()
    capitalised = "".join(characters)
    return capitalised if len(capitalised) == len(text) else text


def _may_name(word: Word) -> bool:
    """Return whether a word may be part of a name; words that describe ("confident", "out sick") are not."""
    if not word.is_content or word.is_negator or word.lower in _NO_NAMES:
        return False
    if word.stem in CALENDAR or word.stem in FRAME_WORDS or (len(word.text) > 4 and word.lower.endswith(_ENDINGS)):
        return False
    return not opposites(word.stem)


def _is_common(word: Word) -> bool:
    return is_listed(word.stem) or word.lower.endswith(_DESCRIBING)


_MARKUP = re.compile(r"[*_`#|>]+|\[[^\[\]\n]{1,40}\](?!\()|【[^【】\n]{1,40}】|\]\([^()\s]{1,500}\)")
_LEANING = re.compile(
    r"\W*(?:it|its|they|their|he|his|she|her|this|that|these|those|there|the (?:company|firm|organi[sz]ation|report|"
    r"former|latter|same)|both|yes|no)\b",
    re.IGNORECASE,
)
_PIECE = re.compile(r"[;,:]\s|\s(?:and|but|while|whereas|which|who)\s")
_NAMED = re.compile(r"(?<=\w )[A-Z][\w'’]*[ -]?$")
_PAST = re.compile(r"\b(?:was|were|had|used to|former|formerly|previously|originally|once)\b", re.IGNORECASE)
_PRESENT = re.compile(r"\b(?:is|are|has|have|remains?|currently|still|does|do|am)\b|'(?:re|s) ", re.IGNORECASE)
_PERFECT = re.compile(r"\b(?:had|has|have) (?=(?:\w+ )?\w+(?:ed|en|t)\b)", re.IGNORECASE)
_ROLES = frozenset("ceo cfo coo chairman president mayor captain king queen pope prince princess".split())
_UNINFORMATIVE = frozenset(QUANTIFIERS) | TITLES - _ROLES
_LIGHT = LIGHT_WORDS | REFERENTS | STOPWORDS


@dataclass(frozen=True)
class Statement:
    """A claim made in an exchange at time `at` (Unix seconds), in answer to `question`.

    Its scope is the words that carry its meaning, without those that another wording may exchange freely.
    """

    claim: Claim
    at: float
    question: str = ""
    exchange: str = ""

    @cached_property
    def text(self) -> str:
        """The statement without markup and citations, with its names capitalised; offsets are unchanged."""
        return _with_names_capitalised(_MARKUP.sub(lambda match: " " * len(match.group()), self.claim.text))

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The quantities in it, except a number in a name ("the Model 3")."""
        found = find_quantities(self.text)
        return tuple(
            each
            for each in found
            if each.kind != "count" or not _NAMED.search(self.text, max(0, each.start - 100), each.start)
        )

    @property
    def has_time(self) -> bool:
        """Return whether it contains a time of day: "opens at nine"."""
        return any(each.kind == "time" for each in self.quantities)

    @cached_property
    def reading(self) -> Reading:
        """Its words, parsed for the comparison with another text."""
        return Reading(self.text, self.quantities)

    @cached_property
    def needs_lead(self) -> bool:
        """Return whether its subject is named before it: it begins with "it", has a lead-in, or is a row or a field."""
        lead = self.claim.lead.rstrip()
        return bool(_LEANING.match(self.text)) or lead.endswith(":") or self.claim.kind in ("table_row", "field")

    @cached_property
    def background(self) -> Reading:
        """The text before it: the lead, if the statement needs it, and the question."""
        return Reading(f"{self.claim.lead if self.needs_lead else ''}\n{self.question}")

    @cached_property
    def names(self) -> frozenset[str]:
        """The stems of the proper names in it."""
        return self.reading.names(self.quantities) - CALENDAR

    @cached_property
    def background_names(self) -> frozenset[str]:
        """The stems of the proper names in its background."""
        return self.background.names(()) - CALENDAR

    @cached_property
    def scope(self) -> tuple[int, ...]:
        """The places of the words that carry its meaning, except the words of a quantity's period ("a month")."""
        ends = [each.end for each in self.quantities if each.per]
        words = self.reading.words
        return tuple(
            place
            for place in _meaningful(self.reading)
            if not (words[place].lower in UNIT_WORDS and any(0 <= words[place].start - end < 16 for end in ends))
        )

    def scope_within(self, start: int, end: int | None = None) -> list[int]:
        """Return the part of the scope between two offsets."""
        words, end = self.reading.words, len(self.text) if end is None else end
        return [place for place in self.scope if start <= words[place].start and words[place].end <= end]

    @property
    def is_past(self) -> bool | None:
        """Return whether it is about the past and no longer true; None if its verbs do not show it."""
        text = _PERFECT.sub("", self.text)
        past, present = bool(_PAST.search(text)), bool(_PRESENT.search(text))
        return None if past == present else past

    def dates(self, apart_from: Quantity | None = None, position: int | None = None) -> tuple[Quantity, ...]:
        """Return the dates it refers to, from its text or else from its background; `apart_from` is excluded.

        With a `position`, only those that apply to the text at this offset.
        """
        own = [each for each in self.quantities if each.kind == "date" and each != apart_from]
        before = self.background.text
        return (
            tuple(each for each in own if position is None or self._is_of(position, each))
            or relative_dates(self.text, self.at)
            or tuple(each for each in find_quantities(before) if each.kind == "date")
            or relative_dates(before, self.at)
        )

    def _is_of(self, position: int, dated: Quantity) -> bool:
        """Return whether a date applies to the text at an offset.

        A date in a later part of the sentence does not, if that part makes a statement without a value: in "Sales were
        $5M, and it moved in 2020", 2020 is not the date of $5M.
        """
        if dated.start < position or self.in_piece(position, dated.start):
            return True
        has_value = any(each.kind != "date" and self.in_piece(each.start, dated.start) for each in self.quantities)
        return has_value or not any(self.in_piece(self.reading.words[at].start, dated.start) for at in self.scope)

    def around(self, position: int) -> tuple[int, ...]:
        """Return the part of the scope near an offset: the same part of the sentence, and the head.

        The head is the first word of the scope, or the whole name if it is part of one.
        """
        head = self.scope[:1]
        if head and self.reading.is_name(head[0]):
            head = tuple(place for place in self.reading.name_run(head[0]) if place in self.scope)
        near = (place for place in self.scope if self.in_piece(position, self.reading.words[place].start))
        return tuple(dict.fromkeys((*head, *near)))

    def in_piece(self, one: int, other: int) -> bool:
        """Return whether no comma or conjunction separates two offsets."""
        return _PIECE.search(self.text, *sorted((one, other))) is None

    def has_word(self, other: Statement, place: int) -> bool:
        """Return whether it has the word of `other` at `place` in any wording; for a name, any part of it is enough."""
        run = other.reading.name_run(place) if other.reading.is_name(place) else range(place, place + 1)
        known = (self.reading, self.background) if self.needs_lead else (self.reading,)
        return any(_has(reading, other.reading, at) for at in run for reading in known)


def lacks(one: Reading, other: Reading) -> Iterator[int]:
    """Yield the places of the content words of `other` that `one` does not have."""
    return (place for place in _meaningful(other) if not _has(one, other, place))


def _has(one: Reading, other: Reading, place: int) -> bool:
    stem = other.words[place].stem
    if other.words[place].is_number:
        return any(word.is_number and word.stem == stem for word in one.words)
    if other.concepts[place] in one.places or not same_meaning(stem).isdisjoint(one.stems):
        return True
    if other.is_name(place):
        return False
    return root(stem) in one.roots


def _meaningful(reading: Reading) -> Iterator[int]:
    for place, word in enumerate(reading.words):
        if not word.carries_meaning or place in reading.measured or word.stem in FRAME_WORDS:
            continue
        if word.lower == "longer" and place and reading.words[place - 1].lower in ("no", "any"):
            continue
        is_telling = word.lower not in _UNINFORMATIVE and (reading.is_name(place) or word.stem not in _LIGHT)
        if word.is_number or is_telling:
            yield place


MANY, _NEARLY_ALL = 6, 0.8
"""Two statements that share at least `MANY` words are the same if these are `_NEARLY_ALL` of each one's scope."""


def may_be_of_one(new: Statement, old: Statement) -> bool:
    """Return whether the backgrounds of two statements (lead and question) may be about one thing.

    Their names and the words of the questions decide. Two statements with a common name that need no lead are always
    about one thing.
    """
    if new.names & old.names and not (new.needs_lead or old.needs_lead):
        return True
    mine, theirs = new.background_names, old.background_names
    if mine and theirs and not mine & theirs:
        return False
    if (new.needs_lead or old.needs_lead) and bool(mine | new.names) != bool(theirs | old.names):
        return False
    if not (new.question and old.question):
        return True
    here, there = (set(lacks(one.reading, other.background)) for one, other in ((old, new), (new, old)))
    ours = any(place in here for place in lacks(old.background, new.background))
    yours = any(place in there for place in lacks(new.background, old.background))
    return not (ours and yours)


def are_of_one_time(new: Statement, old: Statement, near: tuple[int, int] | None = None) -> bool:
    """Return whether both have no date, or dates that overlap; `near` as for `is_same`."""
    here, there = near or (None, None)
    return overlap(new.dates(position=here), old.dates(position=there))


def overlap(mine: Sequence[Quantity], theirs: Sequence[Quantity]) -> bool:
    """Return whether two sets of dates overlap; two empty ones do, an empty and a non-empty one do not."""
    if not mine and not theirs:
        return True
    return fit_period(mine, theirs) is True and fit_period(theirs, mine) is True


def is_same(
    new: Statement,
    old: Statement,
    at_issue: tuple[Collection[int], Collection[int]] = ((), ()),
    near: tuple[int, int] | None = None,
) -> bool:
    """Return whether each statement has all words of the other's scope, except those `at_issue` (places in either).

    `near` are offsets in the two texts. With them, the scope is only the part of a sentence around each.
    """
    mine = new.scope if near is None else new.around(near[0])
    theirs = old.scope if near is None else old.around(near[1])
    mine = tuple(place for place in mine if place not in at_issue[0])
    theirs = tuple(place for place in theirs if place not in at_issue[1])
    shared = [place for place in mine if old.has_word(new, place)]
    known = [place for place in theirs if new.has_word(old, place)]
    if len(shared) == len(mine) and len(known) == len(theirs):
        return bool(shared) or (new.needs_lead and old.needs_lead)
    is_long = min(len(shared), len(known)) >= MANY
    return is_long and len(shared) >= _NEARLY_ALL * len(mine) and len(known) >= _NEARLY_ALL * len(theirs)
