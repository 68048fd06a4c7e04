"""What a quantity measures: the words and the dates that stand with it (NU3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from proxy.verification.numbers.grammar import Quantity
from proxy.verification.words import Word


@dataclass(frozen=True, slots=True)
class Binding:
    """A quantity with the stems that stand with it alone, those that it shares, and the dates it is of.

    `own` lies between the neighbouring quantities, up to where the clause turns, with the subject of the verb before it
    when another verb follows there ("Sales grew 5% and reached $3M"); `shared` stands before the first quantity, where
    the subject of all of them usually is (a row's label, "Revenue and costs were …").
    """

    quantity: Quantity
    own: frozenset[str]
    shared: frozenset[str]
    dates: tuple[Quantity, ...]
    has_subject: bool = False  # words of its own stand before it: the shared subject is not meant

    @property
    def subject(self) -> frozenset[str]:
        """The words that may name what the quantity is of: not the shared ones where it has a subject of its own."""
        return self.own if self.has_subject else self.own | self.shared

    @property
    def scope(self) -> frozenset[str]:
        """The words that say what the quantity measures: its own, or the shared ones when it has none."""
        return self.own or self.shared


def bind(text: str, words: Sequence[Word], quantities: Sequence[Quantity]) -> tuple[Binding, ...]:
    """A binding for each quantity of a text, in order. Dates divide the text among dates, amounts among amounts."""
    spans = [(each.start, each.end) for each in quantities]
    stems = _stems_outside(text, words, spans)
    dates = tuple(each for each in quantities if each.kind == "date")
    amounts = tuple(each for each in quantities if each.kind != "date")
    bindings = [*_bind(text, stems, dates, ()), *_bind(text, stems, amounts, dates)]
    return tuple(sorted(bindings, key=lambda binding: binding.quantity.start))


def _bind(
    text: str, stems: Sequence[tuple[int, str]], group: Sequence[Quantity], dates: Sequence[Quantity]
) -> list[Binding]:
    bindings: list[Binding] = []
    if not group:
        return bindings
    cuts = [_cut(text, left.end, right.start) for left, right in pairwise(group)]
    lows, highs = [0, *cuts], [*cuts, _end_of_clause(text, group[-1].end)]
    label_end = text.find("|", 0, group[0].start)
    first = label_end if label_end >= 0 else group[0].start
    shared = frozenset(stem for at, stem in stems if at < first)
    if label_end >= 0:  # a row or a record: a number is of its own cell, and cells without numbers are of all
        lows = [max(text.rfind("|", 0, each.start), 0) for each in group]
        highs = [high if high >= 0 else len(text) for high in (text.find("|", each.end) for each in group)]
        cells = list(zip(lows, highs, strict=True))
        shared = frozenset(stem for at, stem in stems if not any(low <= at < high for low, high in cells))
    leading = tuple(date for date in dates if date.start < first)
    subject: frozenset[str] = frozenset()
    for quantity, low, high in zip(group, lows, highs, strict=True):
        own = frozenset(stem for at, stem in stems if low <= at < high)
        if bindings and _goes_on(text, low, quantity.start):
            own |= subject
        else:
            before = [stem for at, stem in stems if low <= at < quantity.start]
            is_linked = _LINKING.search(text, low, quantity.start)
            subject = frozenset(before if is_linked else before[:-1])  # else the last is the verb
        with_it = tuple(date for date in dates if low <= date.start < high)
        has_subject = low != lows[0] and any(low <= at < quantity.start for at, _ in stems)
        bindings.append(Binding(quantity, own, shared, with_it or leading, has_subject))
    for place, (part, whole) in enumerate(pairwise(bindings)):
        if _PART_OF.fullmatch(
            text, part.quantity.end, whole.quantity.start
        ):  # of the same thing: "nine of the 20 acids"
            bindings[place] = replace(part, own=part.own | whole.own)
    return bindings


def _stems_outside(text: str, words: Sequence[Word], spans: Sequence[tuple[int, int]]) -> list[tuple[int, str]]:
    """Place and stem of the content words that are no number nor part of one; a field may be named "total"."""
    kept: list[tuple[int, str]] = []
    rest = iter(spans)
    start, end = next(rest, (1 << 62, 1 << 62))
    for word in words:
        while word.start >= end:
            start, end = next(rest, (1 << 62, 1 << 62))
        is_telling = word.stem not in _CONNECTIVES or text.startswith(":", word.end)
        if word.start < start and word.is_content and not word.is_number and is_telling:
            kept.append((word.start, word.stem))
    return kept


def _cut(text: str, low: int, high: int) -> int:
    """Where the words between two quantities pass from the first to the second: at the first turn of the clause."""
    turn = _TURN.search(text, low, high)
    return turn.start() if turn else high


def _goes_on(text: str, low: int, high: int) -> bool:
    """Whether the words of a quantity begin with a verb, whose subject is that of the verb before it."""
    verb = _NEXT_VERB.match(text, low, high)
    return verb is not None and not _LINKING.search(text, verb.end(), high)


def _end_of_clause(text: str, low: int) -> int:
    turn = _STRONG_TURN.search(text, low)
    return turn.start() if turn else len(text)


_TURN = re.compile(
    r"[,;|(\t\u2014]|\b(?:and|but|while|whereas|to|versus|vs|compared|from|against|or|than|with)\b", re.IGNORECASE
)
_NEXT_VERB = re.compile(
    r",? ?(?:and|but|then)(?: \w+ly| also| then| now| later)? (?:[a-z]{2,}ed|grew|fell|rose|was|were|is|are|had|has|"
    r"made|paid|held|left|lost|won|sold|bought|spent|took|gave|became|came|went|saw|led|kept|ran|built|cost|sent|"
    r"shrank|contributes|represents|employs|serves|includes|contains|provides|remains|generates|operates|produces)\b"
)
_PART_OF = re.compile(r" (?:out )?of (?:the |its |their |these |those |all )?(?:total |first |top )?")
_LINKING = re.compile(r"\b(?:is|are|was|were)\b")  # "and adjusted profit was": no verb but an attribute
_STRONG_TURN = re.compile(r"[;|\t]|\b(?:but|while|whereas)\b", re.IGNORECASE)
_CONNECTIVES = frozenset(
    "compar versus vs about approximat roughly near almost around over under than least up down total while but "
    "whereas respectiv same only more less most million billion thousand trillion dollar percent".split()
)
