"""How two nearly equal texts differ, word by word, and whether a difference changes what is said (QU2)."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.verification.lexicon import CALENDAR, UNIT_WORDS
from proxy.verification.vetoes import Reading, is_negator, opposed
from proxy.verification.words import Word


def changes_meaning(quoted: str, found: str) -> bool:
    """Whether two nearly equal texts differ in a number, unit, negation, name, date or opposite."""
    return any(matters(change) for change in changes(quoted, found, trim=True))


@dataclass(frozen=True, slots=True)
class Change:
    """Words of the quotation and the words of the source that stand in their place."""

    quoted: tuple[Word, ...]
    found: tuple[Word, ...]
    named: bool


def changes(quoted: str, found: str, *, trim: bool) -> list[Change]:
    """The differences between two texts, word by word; `trim` leaves out what `found` has beyond the quotation."""
    from difflib import SequenceMatcher

    one, other = Reading(quoted), Reading(found)
    matcher = SequenceMatcher(None, _comparable(one), _comparable(other), autojunk=False)
    changes: list[Change] = []
    for tag, i, j, k, m in matcher.get_opcodes():
        outside = tag == "insert" and (k == 0 or m == len(other.words)) and trim
        if tag != "equal" and not outside:
            named = any(one.is_name(place) for place in range(i, j)) or any(
                other.is_name(place) for place in range(k, m)
            )
            changes.append(Change(tuple(one.words[i:j]), tuple(other.words[k:m]), named))
    return changes


def _comparable(reading: Reading) -> list[str]:
    """The words as they are compared, a symbol or sign of a number with its number."""
    compared: list[str] = []
    for word in reading.words:
        sign = reading.text[max(0, word.start - 1) : word.start] if word.is_number else ""
        unit = reading.text[word.end : word.end + 1] if word.is_number else ""
        compared.append((sign if sign in "$€£¥₹-" else "") + word.text.casefold() + (unit if unit in "%°" else ""))
    return compared


def matters(change: Change) -> bool:
    """Whether a difference changes what is said: a number, unit, negation, name, date or opposite."""
    both = change.quoted + change.found
    if change.named or any(word.is_number or is_negator(word) or word.stem in CALENDAR for word in both):
        return True
    if any(word.text.lower() in UNIT_WORDS for word in both):
        return True
    if any(one.text[0].isupper() and other.text[0].isupper() for one in change.quoted for other in change.found):
        return True
    return any(opposed(one.stem, other.stem) for one in change.quoted for other in change.found)
