"""Find names in statements that are written in lower case: "the ceo of acme is maria lopez"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from groundwire.text.words import (
    CALENDAR,
    FRAME_WORDS,
    QUANTIFIERS,
    TITLES,
    UNIT_WORDS,
    Word,
    is_listed,
    opposites,
    words,
)

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
_LINK = r"\b(?:is|was)(?: called| named| currently| still)?"
_TITLE = r"(?:(?:dr|mr|mrs|ms|prof)\.? )?"
_NAME = rf"{_TITLE}(?P<name>[^\W\d_][\w'’-]*(?: [^\W\d_][\w'’-]*){{0,3}})"
_END = r"(?=\s*(?:[.,;!?]|$|\bin \d))"
_SLOTS = (
    re.compile(rf"\b(?:{_OFFICES})\b[^.,;:!?]{{0,60}}?{_LINK} {_NAME}{_END}"),
    re.compile(rf"(?:^|[.,;:!?] ){_NAME} (?:is|was)(?: currently| still)? (?:the|its|our|their|his|her|\w+['’]s) "
               rf"(?:[\w-]+ ){{0,2}}?(?:{_OFFICES}|{_SEATS})\b"),
    re.compile(rf"\b(?:founded|established|invented|written|directed|composed|painted|designed|discovered|owned|headed|"
               rf"led|chaired|run|edited|manufactured) by {_NAME}{_END}"),
)  # fmt: skip
_PLACES = (
    re.compile(rf"\b(?:{_SEATS})\b[^.,;:!?]{{0,60}}?{_LINK} {_NAME}{_END}"),
    re.compile(rf"\b(?:born|based|headquartered|located|situated|buried) in {_NAME}{_END}"),
)
_COMMON = frozenset(
    "today tomorrow yesterday tonight now soon here there away back out off on again still yet open closed available "
    "away home alone sick busy new vacant unknown missing present late ill well ready correct wrong public private "
    "several some many all none two three four five brothers sisters students engineers friends volunteers people "
    "town city country village region area north south east west downtown abroad".split()
)
_DESCRIBING = ("dent", "cient", "tant")
_ENDINGS = ("ed", "ing", "ly", "ful", "ous", "able", "ible", "less", "ive", "ish", "ical")


def with_names_capitalised(text: str) -> str:
    """Return a statement without capitals with its names capitalised, as far as grammar identifies them.

    A name is recognised only as the holder of an office, the seat, the founder or the place of birth. The length never
    changes. A text with a capital after its first character is returned unchanged.
    """
    if len(text) > _MAX_LENGTH or text[1:] != text[1:].lower():
        return text
    lowered = text.lower()
    if len(lowered) != len(text):
        return text
    spans = [(word.start, word.end) for found in _found(lowered) for word in found]
    characters = list(text)
    for start, _ in spans:
        characters[start] = characters[start].upper()
    return "".join(characters) if len("".join(characters)) == len(text) else text


_MAX_LENGTH = 1000


def _found(text: str) -> Iterator[list[Word]]:
    """Yield the words of each name in a text."""
    for slots, may_be_common in ((_SLOTS, False), (_PLACES, True)):
        for slot in slots:
            for match in slot.finditer(text):
                parts = [_moved(word, match.start("name")) for word in words(match["name"])]
                if _is_name(parts, may_be_common=may_be_common):
                    yield parts


def _moved(word: Word, by: int) -> Word:
    return word._replace(start=word.start + by, end=word.end + by)


def _is_name(parts: list[Word], *, may_be_common: bool) -> bool:
    """Return whether the words in the place of a name are one.

    A single word of general English is a name only as a place. Words that describe ("confident", "out sick") are never
    names.
    """
    if not parts or not all(map(_may_name, parts)):
        return False
    return len(parts) > 1 or may_be_common or not (is_listed(parts[0].stem) or parts[0].lower.endswith(_DESCRIBING))


def _may_name(word: Word) -> bool:
    if not word.is_content or word.is_negator or word.lower in _COMMON | UNIT_WORDS | TITLES | set(QUANTIFIERS):
        return False
    if word.stem in CALENDAR or word.stem in FRAME_WORDS or (len(word.text) > 4 and word.lower.endswith(_ENDINGS)):
        return False
    return not opposites(word.stem)
