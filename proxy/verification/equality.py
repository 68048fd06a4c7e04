"""Whether two short answers are the same: by value where they are quantities, else by their words (TA2)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from proxy.verification.numbers.grammar import Quantity, find_quantities
from proxy.verification.numbers.tolerance import Relation, compare
from proxy.verification.words import words

_SAME = (Relation.EXACT, Relation.CONVERTED, Relation.ROUNDED)
_STATING = re.compile(
    r"\b(?:is|was|are|were|be|equals?|totals?|amounts? to|comes? to|came to)\b|[=:](?=\s)", re.IGNORECASE
)
_FILLING = frozenset(
    "a an the it that this so thus therefore hence about around approximately roughly nearly almost exactly just only "
    "of in on at by to for with and or total".split()
)
_YES = {"true": "yes", "correct": "yes", "false": "no", "incorrect": "no"}
_LISTING = re.compile(r"[,;/&]|\b(?:and|or)\b", re.IGNORECASE)


def same_answer(one: str, other: str) -> bool:
    """Whether two answers state the same: "$5M" and "5 million dollars", "Paris" and "The capital is Paris."

    What stands behind the last "is" of each is compared. Quantities must agree in value and dimension, up to rounding;
    dates that only one of them gives are passed over. Without any, the words must be the same, in any order in a list.
    Symmetric; an answer that says nothing is the same as none.
    """
    one, other = _stated(one), _stated(other)
    mine, theirs = find_quantities(one), find_quantities(other)
    if mine or theirs:
        return _are_same(mine, theirs)
    said, heard = _words(one), _words(other)
    if _LISTING.search(one) and _LISTING.search(other):
        said, heard = sorted(said), sorted(heard)
    return bool(said) and said == heard


def same_quantity(one: Quantity, other: Quantity) -> bool:
    """Whether two quantities agree in value and dimension, either rounding the other."""
    return compare(one, other) in _SAME or compare(other, one) in _SAME


def _are_same(mine: Sequence[Quantity], theirs: Sequence[Quantity]) -> bool:
    fewer, more = sorted((_undated(mine, theirs), _undated(theirs, mine)), key=len)
    return bool(fewer) and len(fewer) == len(more) and all(map(same_quantity, fewer, more))


def _undated(quantities: Sequence[Quantity], others: Sequence[Quantity]) -> Sequence[Quantity]:
    """The quantities without their dates, unless both answers give as many."""
    dates, theirs = (sum(each.kind == "date" for each in group) for group in (quantities, others))
    return quantities if dates == theirs else [each for each in quantities if each.kind != "date"]


def _stated(text: str) -> str:
    """What an answer states: the text behind its last "is", where there is any."""
    ends = [found.end() for found in _STATING.finditer(text) if any(map(str.isalnum, text[found.end() :]))]
    return text[ends[-1] :] if ends else text


def _words(text: str) -> list[str]:
    """The stems of the words that say something."""
    spoken = ((word.text.casefold(), word.stem) for word in words(text))
    return [_YES.get(word, stem) for word, stem in spoken if word not in _FILLING]
