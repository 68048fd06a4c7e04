"""Compare two nearly equal texts word by word, and judge whether their differences change the meaning."""

from __future__ import annotations

from dataclasses import dataclass

from groundwire.text.reading import Reading
from groundwire.text.words import CALENDAR, UNIT_WORDS, Word
from groundwire.verifiers.lexical.vetoes import opposed


def changes_meaning(quoted: str, found: str) -> bool:
    """Return whether two nearly equal texts differ in a number, unit, negation, name, date or opposite."""
    return any(matters(change) for change in changes(quoted, found))


@dataclass(frozen=True, slots=True)
class Change:
    """Words of a quotation, and the words of the source in their place. `named` is set if either has a name."""

    quoted: tuple[Word, ...]
    found: tuple[Word, ...]
    named: bool


def changes(quoted: str, found: str) -> list[Change]:
    """Return the differences between a quotation and the text around its place in a source, word by word.

    Text of `found` before or after the quotation is no difference.
    """
    from difflib import SequenceMatcher

    one, other = Reading(quoted), Reading(found)
    matcher = SequenceMatcher(None, _comparable(one), _comparable(other), autojunk=False)
    differing: list[Change] = []
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            continue
        if k == 0:
            k = max(k, m - (j - i))
        elif m == len(other.words):
            m = min(m, k + (j - i))
        if i < j or k < m:
            named = any(map(one.is_name, range(i, j))) or any(map(other.is_name, range(k, m)))
            differing.append(Change(tuple(one.words[i:j]), tuple(other.words[k:m]), named))
    return differing


def _comparable(reading: Reading) -> list[str]:
    """Return the words as they are compared: case-folded, and numbers with their sign or symbol."""
    compared: list[str] = []
    for word in reading.words:
        sign = reading.text[max(0, word.start - 1) : word.start] if word.is_number else ""
        unit = reading.text[word.end : word.end + 1] if word.is_number else ""
        compared.append((sign if sign in "$€£¥₹-" else "") + word.text.casefold() + (unit if unit in "%°" else ""))
    return compared


def matters(change: Change) -> bool:
    """Return whether a difference changes the meaning: a number, unit, negation, name, date or opposite."""
    both = change.quoted + change.found
    if change.named or any(word.is_number or word.is_negator or word.stem in CALENDAR for word in both):
        return True
    if any(word.lower in UNIT_WORDS for word in both):
        return True
    if any(one.text[0].isupper() and other.text[0].isupper() for one in change.quoted for other in change.found):
        return True
    return any(opposed(one.stem, other.stem) for one in change.quoted for other in change.found)
