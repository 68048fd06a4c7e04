"""Represent a statement with its background: the question, its time, and its dates, names and content words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from groundwire.domain import Claim
from groundwire.features.consistency.casing import with_names_capitalised
from groundwire.features.consistency.times import relative_dates
from groundwire.text.quantities import Quantity, find_quantities
from groundwire.text.reading import Reading
from groundwire.text.words import (
    CALENDAR,
    FRAME_WORDS,
    LIGHT_WORDS,
    QUANTIFIERS,
    REFERENTS,
    STOPWORDS,
    TITLES,
    UNIT_WORDS,
    root,
    same_meaning,
)
from groundwire.verifiers.statement import without_markup

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


@dataclass(frozen=True)
class Said:
    """A claim made in an exchange at time `at` (Unix seconds), in answer to `question`.

    Its scope is the words that carry its meaning, without those that another wording may exchange freely.
    """

    claim: Claim
    at: float
    question: str = ""
    exchange: str = ""

    @cached_property
    def text(self) -> str:
        """The statement without its markup and with its names capitalised; offsets are unchanged."""
        return with_names_capitalised(without_markup(self.claim.text))

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The quantities in it, except a number in a name ("the Model 3")."""
        found = find_quantities(self.text)
        return tuple(
            each
            for each in found
            if each.kind != "count" or not _NAMED.search(self.text, max(0, each.start - 100), each.start)
        )

    @cached_property
    def reading(self) -> Reading:
        """Its words, parsed for the comparison with another text."""
        return Reading(self.text, self.quantities)

    @cached_property
    def leans(self) -> bool:
        """Return whether its subject is named before it: it begins with "it", has a lead-in, or is a row or a field."""
        lead = self.claim.lead.rstrip()
        return bool(_LEANING.match(self.text)) or lead.endswith(":") or self.claim.kind in ("table_row", "field")

    @cached_property
    def background(self) -> Reading:
        """The text before it: the lead, if the statement needs it, and the question."""
        return Reading(f"{self.claim.lead if self.leans else ''}\n{self.question}")

    @cached_property
    def names(self) -> frozenset[str]:
        """The stems of the proper names in it."""
        return _names(self.reading)

    @cached_property
    def background_names(self) -> frozenset[str]:
        """The stems of the proper names in its background."""
        return _names(self.background)

    @cached_property
    def scope(self) -> tuple[int, ...]:
        """The places of the words that carry its meaning, except the words of a quantity's period ("a month")."""
        ends = [each.end for each in self.quantities if each.per]
        words = self.reading.words
        return tuple(
            place
            for place in _telling(self.reading)
            if not (words[place].lower in UNIT_WORDS and any(0 <= words[place].start - end < 16 for end in ends))
        )

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

    def tells(self, other: Said, place: int) -> bool:
        """Return whether it has the word of `other` at `place` in any wording; for a name, any part of it is enough."""
        run = other.reading.name_run(place) if other.reading.is_name(place) else range(place, place + 1)
        return any(_has(self.reading, other.reading, at) or self._knows(other.reading, at) for at in run)

    def _knows(self, other: Reading, place: int) -> bool:
        return self.leans and _has(self.background, other, place)


def lacks(one: Reading, other: Reading) -> Iterator[int]:
    """Yield the places of the content words of `other` that `one` does not have."""
    return (place for place in _telling(other) if not _has(one, other, place))


def _has(one: Reading, other: Reading, place: int) -> bool:
    stem = other.words[place].stem
    if other.words[place].is_number:
        return any(word.is_number and word.stem == stem for word in one.words)
    if other.concepts[place] in one.places or not same_meaning(stem).isdisjoint(one.stems):
        return True
    if other.is_name(place):
        return False
    return root(stem) in {root(each) for each in one.stems}


def _telling(reading: Reading) -> Iterator[int]:
    for place, word in enumerate(reading.words):
        if not word.carries_meaning or place in reading.measured or word.stem in FRAME_WORDS:
            continue
        lower = word.lower
        if lower == "longer" and place and reading.words[place - 1].lower in ("no", "any"):
            continue
        is_named = reading.is_name(place) and lower not in _UNTELLING
        if is_named or word.is_number or not (word.stem in LIGHT_WORDS | REFERENTS | STOPWORDS or lower in _UNTELLING):
            yield place


def _names(reading: Reading) -> frozenset[str]:
    places = (place for place in range(len(reading.words)) if reading.is_name(place) and place not in reading.measured)
    words = (reading.words[place] for place in islice(places, _MOST_NAMES))
    return frozenset(word.stem for word in words if word.lower not in TITLES and word.stem not in CALENDAR)


_ROLES = frozenset("ceo cfo coo chairman president mayor captain king queen pope prince princess".split())
_UNTELLING = frozenset(QUANTIFIERS) | TITLES - _ROLES
_MOST_NAMES = 50
