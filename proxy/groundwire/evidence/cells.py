"""Parse the cells of a row or a record: `Estonia | GDP growth 2023: −3.0% | …`.

`tables.py` and `records.py` write them.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from groundwire.caches import memo
from groundwire.text.lexicon import CALENDAR, LIGHT_WORDS, UNIT_WORDS, concept
from groundwire.text.words import content_stems, stem

_UNTELLING = (
    frozenset(map(stem, "value amount total number figure result quantity sum count score data year end".split()))
    | CALENDAR
)
_NONE: frozenset[str] = frozenset()
_SAME_START = 4  # minimum length of a word and its abbreviation, of which one must begin with the other


def cell_at(text: str, place: int) -> str:
    """Return the cell that contains the offset `place`, with the name of its column."""
    end = text.find("|", place)
    return text[text.rfind("|", 0, place) + 1 : end if end >= 0 else len(text)].strip()


def is_in_name(text: str, place: int) -> bool:
    """Return whether the offset `place` is in the name of a column, not in the value of a cell."""
    colon, end = text.find(": ", place), text.find("|", place)
    return colon >= 0 and (end < 0 or colon < end) and "|" in text


def names_column(stems: Collection[str], spoken: Collection[str]) -> bool:
    """Return whether the stems `spoken` name a column with these specific stems; a column without any always fits."""
    if not stems:
        return True
    concepts = _concepts(frozenset(spoken))
    return any(concept(each) in concepts or _is_short_for(each, spoken) for each in stems)


@lru_cache(maxsize=64)
def _concepts(stems: frozenset[str]) -> frozenset[str]:
    return frozenset(map(concept, stems))


def column_at(text: str, place: int) -> frozenset[str]:
    """Return the specific stems of a column's name, without those that all columns of the row share."""
    name, colon, _ = cell_at(text, place).partition(": ")
    return _specific(name, _in_all_names(text)) if colon else _NONE


@memo(4096, 256)
def _specific(name: str, shared: frozenset[str]) -> frozenset[str]:
    stems = content_stems(name) - shared - _UNTELLING - LIGHT_WORDS
    return frozenset(each for each in stems if not each[0].isdigit() and each not in UNIT_WORDS)


@memo(64, 2048, long_entries=64)
def _in_all_names(text: str) -> frozenset[str]:
    """Return the stems that the names of all columns of a row share, if there are at least two."""
    names = [content_stems(cell.partition(": ")[0]) for cell in text.split("|") if ": " in cell]
    return frozenset.intersection(*names) if len(names) > 1 else _NONE


def _is_short_for(name: str, spoken: Collection[str]) -> bool:
    return len(name) >= _SAME_START and any(
        each.startswith(name) or name.startswith(each) for each in spoken if len(each) >= _SAME_START
    )
