"""Vetoes: differences between a claim and a passage that shares nearly all its words.

They concern negation, opposites, quantifiers, names and roles. Every veto assumes that claim and passage are about the
same thing, which the caller ensures, and quotes the words at issue in its reason.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Literal
from unicodedata import normalize

from groundwire.text.reading import CLAUSE_BREAK, Reading
from groundwire.text.words import (
    CALENDAR,
    LIGHT_WORDS,
    LONGEST_WORD,
    NAME_CONCEPTS,
    QUANTIFIER_CONFLICTS,
    QUANTIFIERS,
    SYMMETRIC_CONCEPTS,
    TITLES,
    concept,
    negations,
    stem,
)

_NUMBERED_FIELD = re.compile(r"[^|:.,\n]{0,40}: ?[-−+(]?[$€£]?\d")
_MIN_SIMILARITY = 0.7  # minimum similarity ratio of two spellings of one name
_ADJACENT = 2
_MAX_PLACES = 12  # maximum occurrences of one word that are compared
_MAX_NAMES = 40  # maximum occurrences of unknown names in a text that are compared
_REACH = 4  # maximum distance, in words, of a neighbouring word that marks the same position in both texts


@dataclass(frozen=True, slots=True)
class Veto:
    """A contradiction by a passage that has the claim's words.

    `place` is the index of the claim's word at issue, or −1 if the whole claim is denied.
    """

    kind: Literal["negation", "direction", "attribute", "quantifier", "name", "role"]
    place: int
    reason: str


_ORDINALS = frozenset(concept(stem(word)) for word in "first second third fourth fifth sixth seventh eighth".split())
_ANSWER_PARTS = frozenset(
    map(
        stem,
        "step table figure chapter part option item section clause passage document source page point way "
        "reason thing example method note line".split(),
    )
)


def find_vetoes(claim: Reading, evidence: Reading) -> tuple[Veto, ...]:
    """Return all vetoes that `evidence` raises against `claim`, the most reliable kinds first."""
    return tuple(veto for find in (_negation, _direction, _quantifier, _name, _role) for veto in find(claim, evidence))


def _negation(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """Yield vetoes for words that one text asserts and the other denies, unless some occurrences agree."""
    for place, meaning in enumerate(claim.concepts):
        found = evidence.places.get(meaning)
        if not found or not claim.words[place].carries_meaning or claim.places[meaning].index(place) >= _MAX_PLACES:
            continue
        denied, found = place in claim.negated, found[:_MAX_PLACES]
        if all((near in evidence.negated) == denied for near in found):
            continue
        against = evidence.affirmed if denied else evidence.refuted | evidence.denied_of_all
        is_refuted = any(near in against for near in found)
        if not is_refuted:
            alone = _ADJACENT + 1 if claim.words[place].stem in LIGHT_WORDS else _REACH
            found = [
                near
                for near in found
                if _same_place(claim, place, evidence, near, alone) or _is_reordered(claim, place, evidence, near)
            ]
        if is_refuted and not denied and claim.has_negator_near(place):
            continue  # "is not a member" agrees with "member: no"
        if not found or any((near in evidence.negated) == denied or evidence.is_hypothetical(near) for near in found):
            continue
        if any((near in claim.negated) != denied for near in claim.places[meaning]):
            continue
        asserted = [each for at, each in enumerate(claim.concepts) if at not in claim.negated]
        if any(not evidence.exception_after(near).isdisjoint(asserted) for near in found):
            continue
        if not is_refuted and (all(evidence.has_negator_near(near) for near in found) if denied else claim.denies):
            continue  # both texts negate something near the word, in different wording
        word = claim.words[place].text
        verbs = ("denies", "asserts") if denied else ("asserts", "denies")
        yield Veto(
            "attribute" if is_refuted else "negation",
            place,
            f'the answer {verbs[0]} "{word}" and the source {verbs[1]} it',
        )


def _direction(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """Yield vetoes for words that the evidence lacks while it has an opposite between the same neighbouring words."""
    for place, word in enumerate(claim.words):
        if not word.is_content or negations(word.stem).isdisjoint(evidence.stems):
            continue
        if not _is_absent(evidence, claim, place) or place in claim.negated or place in claim.measured:
            continue
        for near in _first_places(evidence, negations(word.stem)):
            other = evidence.words[near]
            if (
                not _is_list_ordinal(claim, place)
                and near not in evidence.negated
                and evidence.concepts[near] not in claim.places  # "the last name and the first name"
                and not _NUMBERED_FIELD.match(evidence.text, other.end)  # "growth: −3%" is no growth
                and evidence.text[max(0, other.start - 1) : other.start] != "-"  # hyphenated: dis-solvable
                and claim.text[word.end : word.end + 1] != "-"  # hyphenated: first-year
                and _same_place(claim, place, evidence, near)
            ):
                yield Veto("direction", place, f'the answer says "{word.text}" where the source says "{other.text}"')
                break


def _first_places(reading: Reading, stems: frozenset[str]) -> list[int]:
    """Return the first places of any of `stems`, in order."""
    return sorted(near for each in stems & reading.stems for near in reading.stem_places[each][:_MAX_PLACES])


def _is_list_ordinal(claim: Reading, place: int) -> bool:
    """Return whether an ordinal only counts the parts of the answer: "Second, …", "the third step"."""
    if claim.concepts[place] not in _ORDINALS:
        return False
    word, after = claim.words[place], claim.words[place + 1 : place + 2]
    return claim.text[word.end : word.end + 1] == "," or not after or after[0].stem in _ANSWER_PARTS


def _is_absent(evidence: Reading, claim: Reading, place: int) -> bool:
    """Return whether the evidence has neither the claim's word nor a synonym. Most names have no synonyms."""
    if claim.is_name(place) and claim.concepts[place] not in NAME_CONCEPTS:
        return claim.words[place].stem not in evidence.stems
    return claim.concepts[place] not in evidence.places


def _quantifier(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """Yield vetoes for nouns that have mutually exclusive quantifiers in the two texts."""
    stated = _quantified(evidence)
    for meaning, amounts in _quantified(claim).items():
        for amount, (place, word) in amounts.items():
            found = stated.get(meaning, {})
            conflicts = QUANTIFIER_CONFLICTS[amount] & found.keys()
            if conflicts and amount not in found:
                _, other = found[min(conflicts)]
                yield Veto("quantifier", place, f'the answer says "{word}" where the source says "{other}"')


def _quantified(reading: Reading) -> dict[str, dict[str, tuple[int, str]]]:
    """Map the concept of each noun to its quantifiers, each with the position and text of its word."""
    found: dict[str, dict[str, tuple[int, str]]] = defaultdict(dict)
    for place, word in enumerate(reading.words):
        amount = QUANTIFIERS.get(word.lower)
        if amount is None or any(near.is_negator for near in reading.words[place + 1 : place + 3]):
            continue  # "usually not"
        if (head := reading.head(place)) is not None:
            if place and reading.words[place - 1].is_negator:
                amount = "some" if amount == "all" else "few"
            found[reading.concepts[head]].setdefault(amount, (place, word.text))
    return found


def _name(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """Yield vetoes for names that the evidence lacks while it has another name in the same position."""
    missing = list(islice(_unknown_names(claim, evidence), _MAX_NAMES))
    strangers = list(islice(_unknown_names(evidence, claim), _MAX_NAMES)) if missing else []
    for place in missing:
        name = claim.words[place]
        for near in strangers:
            other = evidence.words[near]
            if (name.stem in CALENDAR) == (other.stem in CALENDAR) and _replaces(claim, place, evidence, near):
                yield Veto("name", place, f'the answer says "{name.text}" where the source says "{other.text}"')
                break


def _unknown_names(reading: Reading, other: Reading) -> Iterator[int]:
    """Yield the positions of names that the other text lacks, at most `_ADJACENT` per name."""
    seen: dict[str, int] = defaultdict(int)
    for place in range(len(reading.words)):
        if _is_unknown_name(reading, place, other):
            seen[reading.concepts[place]] += 1
            if seen[reading.concepts[place]] <= _ADJACENT:
                yield place


def _is_unknown_name(reading: Reading, place: int, other: Reading) -> bool:
    """Return whether the word at `place` is a name that the other text lacks.

    Titles and words of at most two letters do not count.
    """
    if not reading.is_name(place) or place in reading.measured or reading.concepts[place] in other.places:
        return False
    return len(reading.words[place].text) > 2 and reading.words[place].lower not in TITLES


def _replaces(claim: Reading, place: int, evidence: Reading, near: int) -> bool:
    """Return whether the evidence has a different name in the position of the claim's name.

    Names that share a part differ only if the words next to that part do: "Walsh" may be "Ed Walsh", while "John
    Miller" and "Anna Miller" are two people.
    """
    mine, theirs = claim.name_run(place), evidence.name_run(near)
    if any(may_be_one(claim.words[place].text, evidence.words[part].text) for part in theirs):
        return False
    shared = {claim.concepts[part] for part in mine} & {evidence.concepts[part] for part in theirs}
    if shared:
        return any(
            place + step in mine
            and near + step in theirs
            and claim.concepts[place + step] == evidence.concepts[near + step]
            for step in (-1, 1)
        )
    if any(claim.concepts[part] in evidence.places for part in mine) or any(
        evidence.concepts[part] in claim.places for part in theirs
    ):
        return False
    return _same_place(claim, place, evidence, near, alone=_ADJACENT)


def may_be_one(one: str, other: str) -> bool:
    """Return whether two names may denote the same thing.

    They must share the first letter and either the first three, as short forms do, be an acronym and a full form, or be
    spelled similarly.
    """
    if len(one) <= LONGEST_WORD and len(other) <= LONGEST_WORD:
        return _may_be_one(one, other)
    return one[:3].lower() == other[:3].lower()  # comparing all letters takes quadratic time


@lru_cache(maxsize=4096)
def _may_be_one(one: str, other: str) -> bool:
    from difflib import SequenceMatcher

    short, long = sorted((normalize("NFD", one.lower()), normalize("NFD", other.lower())), key=len)
    if short[0] != long[0]:
        return False
    return (
        long.startswith(short[:3])
        or one.isupper() != other.isupper()
        or SequenceMatcher(None, short, long).ratio() >= _MIN_SIMILARITY
    )


def _same_place(claim: Reading, place: int, evidence: Reading, near: int, alone: int = _REACH) -> bool:
    """Return whether `place` in the claim and `near` in the evidence have the same neighbouring words.

    On each side, the nearest content word of the claim within `_REACH` that the evidence contains at all must also
    appear on that side of `near`. If only one side has such a word, it must be within `alone` words.
    """
    held = [_anchored(claim, place, evidence, near, step, _REACH) for step in (-1, 1)]
    if None in held and alone < _REACH:
        held = [
            side and _anchored(claim, place, evidence, near, step, alone)
            for side, step in zip(held, (-1, 1), strict=True)
        ]
    return any(held) and False not in held


def _is_reordered(claim: Reading, place: int, evidence: Reading, near: int) -> bool:
    """Return whether all content words around `place` in the claim, at least two, appear around `near`.

    They may appear on either side of it.
    """
    around = [
        claim.concepts[at]
        for at in range(max(0, place - _REACH), min(len(claim.words), place + _REACH + 1))
        if at != place and claim.words[at].carries_meaning and claim.words[at].stem not in LIGHT_WORDS
    ]
    return len(around) > 1 and all(
        _has_between(evidence.places.get(meaning, ()), near - _REACH - 1, near + _REACH) for meaning in around
    )


def _anchored(claim: Reading, place: int, evidence: Reading, near: int, step: int, reach: int) -> bool | None:
    anchor = place + step
    while 0 <= anchor < len(claim.words) and abs(anchor - place) <= reach:
        is_telling = claim.words[anchor].carries_meaning and claim.words[anchor].lower not in QUANTIFIERS
        if is_telling and (found := evidence.places.get(claim.concepts[anchor])):
            return _has_between(found, near, near + step * reach)
        anchor += step
    return None


def _has_between(places: Sequence[int], near: int, end: int) -> bool:
    """Return whether one of the sorted `places` lies between `near`, exclusive, and `end`, inclusive.

    `end` may be on either side of `near`.
    """
    low, high = (near + 1, end) if end > near else (end, near - 1)
    at = bisect_left(places, low)
    return at < len(places) and places[at] <= high


def _role(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """Yield vetoes for verbs whose two names have exchanged roles."""
    stated = list(_actions(evidence))
    for verb, actor, target in _actions(claim):
        meaning = claim.concepts[verb]
        if meaning in SYMMETRIC_CONCEPTS:
            continue
        roles = [
            (other_actor, other_target)
            for other, other_actor, other_target in stated
            if evidence.concepts[other] == meaning
        ]
        swapped = any(actor & other_target and target & other_actor for other_actor, other_target in roles)
        if swapped and not any(actor & other_actor and target & other_target for other_actor, other_target in roles):
            yield Veto("role", verb, f'the subject and object of "{claim.words[verb].text}" are exchanged')


def _actions(reading: Reading) -> Iterator[tuple[int, frozenset[str], frozenset[str]]]:
    """Yield `(verb, actor, target)` for each content word closely between two names.

    The verb is an index, the names are sets of concepts. The preposition "by" exchanges the roles.
    """
    for at, (before, verb) in enumerate(pairwise(reading.content)):
        ahead = reading.content[at + 2 : at + 2 + _REACH - 1]  # "acquired the bakery chain Brotzeit"
        after = next((place for place in ahead if reading.words[place].is_capital), None)
        if after is None or after - before > 2 * _REACH or reading.words[verb].is_capital:
            continue
        if not reading.words[before].is_capital:
            continue
        if CLAUSE_BREAK.search(reading.text, reading.words[before].end, reading.words[after].start):
            continue
        between = {word.lower for word in reading.words[before + 1 : after]}
        if not between.isdisjoint(("and", "or", "of")):
            continue
        names = _name_around(reading, before), _name_around(reading, after)
        yield (verb, *(names[::-1] if "by" in between else names))


def _name_around(reading: Reading, place: int) -> frozenset[str]:
    """Return the concepts of the capitalised words adjacent to the one at `place`."""
    return frozenset(reading.concepts[part] for part in reading.name_run(place))
