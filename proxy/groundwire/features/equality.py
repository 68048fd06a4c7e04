"""Equality of two short answers: as whole propositions, with numbers, units and dates compared by value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product

from groundwire.text.quantities import Quantity, find_quantities
from groundwire.text.tolerance import Relation, compare
from groundwire.text.words import Word, words

_SAME = (Relation.EXACT, Relation.CONVERTED, Relation.ROUNDED)
_COPULA = re.compile(
    r"\b(?:(?P<past>was|were)|(?P<future>will|shall|won['\u2019]t)(?: \w+)? be|is|are|be|equals?|totals?|"
    r"(?:amount|come|add)s? (?:up )?to|(?:amounted|came|added) (?:up )?to)\b|[=:](?=\s)",
    re.IGNORECASE,
)
_TENSES = ("past", "future")
_FILLERS = frozenset(
    "a an the it that this so thus therefore hence then consequently accordingly about around approximately roughly "
    "nearly almost exactly just only of in on at by to for with and or total now dr mr mrs ms prof".split()
)
_COPULA_WORDS = frozenset(
    "is are was were be been being equal equals total totals amount amounts amounted come comes came add adds added "
    "up isn't aren't wasn't weren't".split()
)
_ASKING = frozenset("what which who whom whose where when why how much many do does did has have had can".split())
_YES = {"true": "yes", "correct": "yes", "false": "no", "incorrect": "no"}
_NEGATORS = frozenset("not cannot never neither nor".split())
_MAX_SPLITS = 6
_MODALS = frozenset("may might could would should possibly perhaps probably likely maybe".split())
_PASSIVE = re.compile(r"\b(?:is|are|was|were|been|be|being)\b.{0,60}\bby\b", re.IGNORECASE)
_LISTING = re.compile(r"[,;/&]|\b(?:and|or)\b", re.IGNORECASE)


def same_answer(one: str, other: str, question: str = "") -> bool:
    """Return whether two answers to a question state the same proposition.

    Two sentences are the same when their subject, their predicate and their polarity are: "Ann Lee is the CEO." and
    "The CEO is Ann Lee.", but not "Bob Ray is the CEO." A bare value or phrase, such as "$5M" or "Ann Lee", is compared
    with either side of the sentence's verb; with a `question`, the other side must be what was asked about. Quantities
    agree by value and dimension, up to rounding; a date that only one answer gives is ignored. Symmetric; two answers
    without content are not the same.
    """
    mine, theirs = _Answer(one), _Answer(other)
    if not mine.has_content or not theirs.has_content or mine.is_negated != theirs.is_negated:
        return False
    if mine.splits and theirs.splits:
        return _same_sentence(mine, theirs)
    if not mine.splits and not theirs.splits:
        return _same_phrase(mine, theirs)
    phrase, sentence = (theirs, mine) if mine.splits else (mine, theirs)
    return _completes(phrase, sentence, question)


def is_other_proposition(one: str, other: str, question: str = "") -> bool:
    """Return whether two texts of similar words state different things, whatever their similarity of wording.

    They do if polarity, modality or tense differ, if the same words change places ("Lee is Kim's boss."), or if one is
    a bare name or value that `same_answer` does not find in the other. Symmetric.
    """
    if same_answer(one, other, question):
        return False
    mine, theirs = _Answer(one), _Answer(other)
    if mine.is_negated != theirs.is_negated or mine.is_modal != theirs.is_modal:
        return True
    if mine.is_bare or theirs.is_bare or _differs_in_tense(mine, theirs):
        return True
    is_passive = [bool(_PASSIVE.search(text)) for text in (one, other)]
    return sorted(mine.stems) == sorted(theirs.stems) and mine.stems != theirs.stems and is_passive[0] == is_passive[1]


def is_bare(answer: str) -> bool:
    """Return whether an answer is a name, a single word or a value, which is a proposition only with its question."""
    return _Answer(answer).is_bare


def same_quantity(one: Quantity, other: Quantity) -> bool:
    """Return whether two quantities agree in value and dimension; either may be a rounded form of the other."""
    return compare(one, other) in _SAME or compare(other, one) in _SAME


@dataclass(frozen=True)
class _Answer:
    """A text with the parts of it that equality depends on."""

    text: str

    @cached_property
    def words(self) -> tuple[Word, ...]:
        return words(self.text)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        return find_quantities(self.text)

    @cached_property
    def stems(self) -> list[str]:
        """The stems of the content words, in order, without those inside quantities."""
        spans = [(each.start, each.end) for each in self.quantities]
        kept = (word for word in self.words if not any(low <= word.start < high for low, high in spans))
        told = ((self._said(word), word.stem) for word in kept)
        return [_YES.get(word, stem) for word, stem in told if word not in _FILLERS | _COPULA_WORDS | _NEGATORS]

    def _said(self, word: Word) -> str:
        """Return a word in lower case, but keep a lone "A" or one not at the start: it is a name or a choice."""
        is_letter = word.text == "A" and (word.start > 0 or word.end >= len(self.text.rstrip(".")))
        return word.text if is_letter else word.text.casefold().replace("\u2019", "'")

    @property
    def has_content(self) -> bool:
        return bool(self.stems or self.quantities)

    @property
    def is_negated(self) -> bool:
        """Return whether it has an odd number of negators; "no" as the last word is an answer, not a negation."""
        denying = [word for word in self.words if word.lower in _NEGATORS or word.lower.endswith(("n't", "n\u2019t"))]
        leading = [word for word in self.words[:-1] if word.lower == "no"]
        return (len(denying) + len(leading)) % 2 == 1

    @property
    def is_modal(self) -> bool:
        """Return whether it states only a possibility."""
        return any(word.lower in _MODALS for word in self.words)

    @property
    def is_bare(self) -> bool:
        """Return whether it is a name, a single word or a value."""
        told = [word for word in self.words if word.lower not in _FILLERS]
        return not self.splits and (len(self.stems) < 2 or all(word.text[0].isupper() for word in told))

    @cached_property
    def splits(self) -> tuple[_Split, ...]:
        """The ways to split a sentence at a copula that has content on both sides."""
        found: list[_Split] = []
        for copula in islice(_COPULA.finditer(self.text), _MAX_SPLITS):
            before, after = self.text[: copula.start()], self.text[copula.end() :]
            split = _Split(_Answer(before), _Answer(after), next((name for name in _TENSES if copula[name]), "present"))
            if split.subject.has_content and split.predicate.has_content:
                found.append(split)
        return tuple(found)


@dataclass(frozen=True)
class _Split:
    """A sentence divided at a copula."""

    subject: _Answer
    predicate: _Answer
    tense: str


def _same_sentence(one: _Answer, other: _Answer) -> bool:
    """Return whether two sentences are the same; a copula's sides may be exchanged."""
    if not _same_quantities(one.quantities, other.quantities):
        return False
    return any(
        not _differs_in_tense(one, other)
        and any(
            _same_words(mine.subject, subject) and _same_words(mine.predicate, predicate)
            for subject, predicate in ((theirs.subject, theirs.predicate), (theirs.predicate, theirs.subject))
        )
        for mine, theirs in product(one.splits, other.splits)
    )


def _differs_in_tense(one: _Answer, other: _Answer) -> bool:
    """Return whether two sentences differ in tense (past, present, future). Ignored if both contain quantities."""
    if not one.splits or not other.splits or (one.quantities and other.quantities):
        return False
    return one.splits[0].tense != other.splits[0].tense


def _same_phrase(one: _Answer, other: _Answer) -> bool:
    """Return whether the words and quantities of two phrases agree; of a bare value, the quantities alone."""
    is_bare = bool(one.quantities) and not (one.stems and other.stems)
    return _same_quantities(one.quantities, other.quantities) and (is_bare or _same_words(one, other))


def _completes(phrase: _Answer, sentence: _Answer, question: str) -> bool:
    """Return whether a phrase is one side of a sentence whose other side is what the question asks about."""
    for split in sentence.splits:
        for side, rest in ((split.predicate, split.subject), (split.subject, split.predicate)):
            dates = [each for each in rest.quantities if each.kind == "date"] if side.quantities else []
            if (
                _same_words(phrase, side)
                and _same_quantities(phrase.quantities, (*dates, *side.quantities))
                and _is_asked(rest, question)
            ):
                return True
    return _same_words(phrase, sentence) and _same_quantities(phrase.quantities, sentence.quantities)


def _is_asked(rest: _Answer, question: str) -> bool:
    """Return whether a question asks about the rest of a sentence; without a question, any rest matches."""
    asked = {stem for stem in _Answer(question).stems if stem not in _ASKING}
    told = set(rest.stems)
    return not asked or not told or told <= asked or asked <= told


def _same_words(one: _Answer, other: _Answer) -> bool:
    mine, theirs = one.stems, other.stems
    if _LISTING.search(one.text) and _LISTING.search(other.text):
        mine, theirs = sorted(mine), sorted(theirs)
    return mine == theirs


def _same_quantities(mine: Sequence[Quantity], theirs: Sequence[Quantity]) -> bool:
    mine, theirs = _undated(mine, theirs), _undated(theirs, mine)
    return len(mine) == len(theirs) and all(map(same_quantity, mine, theirs))


def _undated(quantities: Sequence[Quantity], others: Sequence[Quantity]) -> Sequence[Quantity]:
    """Return the quantities without dates, unless both answers have equally many or one has only dates."""
    dates, theirs = (sum(each.kind == "date" for each in group) for group in (quantities, others))
    if dates == theirs or len(quantities) == dates or len(others) == theirs:
        return quantities
    return [each for each in quantities if each.kind != "date"]
