"""Parse a text into words: which are negated, which are ascribed values, and which are names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from groundwire.caches import memo
from groundwire.text.quantities import Quantity
from groundwire.text.words import LINKING, NOT_NEGATED, STOPWORDS, TITLES, Word, concept, root, words

CLAUSE_BREAK = re.compile(r"[.;:!?()|\n]|, ")
_SENTENCE_BREAK = re.compile(r"[.;!?|]\s|\n")
_TURNS = frozenset(("but", "although", "though", "because", "while", "whereas"))
_HYPOTHETICAL = frozenset(
    "if whether unless could can may might would should must to want wants hope hopes claim claimed".split()
)
_EXCEPTING = frozenset(("unless", "except", "excepting", "excluding"))
_EXCEPTION_REACH = 20  # words
_UNHEADED = frozenset("one yet longer any even ever much many so really necessary currently able".split()) | {
    "necessari"
}
_COMMON_OPENERS = frozenset(
    "when while whil if after before although because becaus since sinc however according accord many most all both "
    "former though unlike unlik despite despit two three one other another new".split()
)
_PRONOUNS = frozenset(("nothing", "nobody", "none", "neither", "nowhere"))  # they deny the verb, not the next words
_NOBODY = frozenset(("nobody", "nothing"))
_AUXILIARIES = frozenset("is are was were be been has have had can could will would should may might did does".split())
_AFFIRMING = frozenset(("true", "yes"))
_REFUTING = frozenset(("false", "no", "none", "never"))
_LONGEST_NAME = 8  # words to either side within one name
_REACH = 4  # words; the reach of a negator, and of a linking verb to its attribute
_NOWHERE: frozenset[int] = frozenset()


def _places_of(values: Iterable[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, value in enumerate(values):
        places[value].append(place)
    return places


class Reading:
    """A text parsed into words for the veto checks: which words are negated, and where each concept occurs.

    `measured` are the places of words inside quantities and dates, which are compared by value and not as words. A
    place is an index into `words`.
    """

    def __init__(self, text: str, quantities: Sequence[Quantity] = ()) -> None:
        self.text = text
        self.words = words(text)
        self.measured = inside(self.words, quantities)

    @cached_property
    def concepts(self) -> tuple[str, ...]:
        """The concept of each word, in order."""
        return tuple([concept(word.stem) for word in self.words])

    @cached_property
    def content(self) -> tuple[int, ...]:
        """The places of the words that carry meaning, in order."""
        return tuple([place for place, word in enumerate(self.words) if word.carries_meaning])

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The places of each concept."""
        return _places_of(self.concepts)

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of the words."""
        return frozenset([word.stem for word in self.words])

    @cached_property
    def stem_places(self) -> dict[str, list[int]]:
        """Map each stem to its places in `words`."""
        return _places_of(word.stem for word in self.words)

    @cached_property
    def roots(self) -> frozenset[str]:
        """The roots of the words."""
        return frozenset(map(root, self.stems))

    @cached_property
    def denies(self) -> bool:
        """Return whether any word is a negator."""
        return any(word.is_negator for word in self.words)

    @cached_property
    def negated(self) -> frozenset[int]:
        """The places of the denied words: the first content word after each negator, `refuted` and `denied_of_all`."""
        asserted_otherwise = self.refuted | self.denied_of_all
        if not self.denies:
            return asserted_otherwise
        denied = (self.head(place) for place in range(len(self.words)) if self._negates(place))
        return frozenset(place for place in denied if place is not None) | asserted_otherwise

    @cached_property
    def denied_of_all(self) -> frozenset[int]:
        """The places of the verbs whose subject is "nobody", "nothing" or "no one"."""
        verbs: set[int] = set()
        for place in range(len(self.words) - 1) if self.denies else ():
            lower, after = self.words[place].lower, place + 1
            if lower == "no" and self.words[after].lower == "one":
                after += 1
            elif lower not in _NOBODY:
                continue
            if after < len(self.words) and (self.words[after].is_content or self.words[after].stem in _AUXILIARIES):
                verbs.update(near for near in (self.head(after - 1),) if near is not None)
        return frozenset(verbs)

    @cached_property
    def refuted(self) -> frozenset[int]:
        """The places of attributes with a negative value: "refundable: false"."""
        return self._fields_with_value(_REFUTING)

    @cached_property
    def affirmed(self) -> frozenset[int]:
        """The places of attributes with a positive value: "gift wrap: true"."""
        return self._fields_with_value(_AFFIRMING)

    def _fields_with_value(self, values: frozenset[str]) -> frozenset[int]:
        named: set[int] = set()
        for name, value in self.attributes:
            while self.words[value].lower in values and name >= 0 and name not in named:
                named.add(name)
                end = self.words[name].start
                name -= 1
                if name < 0 or self.text[self.words[name].end : end] != " ":
                    break
        return frozenset(named)

    @cached_property
    def attributes(self) -> tuple[tuple[int, int], ...]:
        """Pairs of places `(name, value)` where the text ascribes a value: "priority: high", "the priority is high"."""
        return tuple(self._ascribed())

    def _ascribed(self) -> Iterator[tuple[int, int]]:
        for place in range(1, len(self.words)):
            before = self.words[place - 1]
            gap = self.text[before.end : self.words[place].start]
            if gap.startswith((": ", '": ')) and before.is_content:
                yield place - 1, place
            elif self.words[place].lower in LINKING:
                value = self.head(place)
                names = [at for at in range(max(0, place - _REACH), place) if self.words[at].carries_meaning]
                if value is not None and names:
                    yield names[-1], value

    def _negates(self, place: int) -> bool:
        if not self.words[place].is_negator or self.words[place].lower in _PRONOUNS:
            return False
        if self.words[place].lower == "without" and self._denies_besides(place):
            return False  # "no entry without a ticket": a ticket is required
        return not (place + 1 < len(self.words) and self.words[place + 1].lower in NOT_NEGATED)

    def _denies_besides(self, place: int) -> bool:
        """Return whether the sentence has another negator."""
        return any(
            word.is_negator and at != place and not self._is_cut(*sorted((at, place)))
            for at, word in enumerate(self.words)
        )

    def head(self, place: int) -> int | None:
        """Return the place of the first content word after `place`, in its clause and at most `_REACH` words away."""
        for near in range(place + 1, min(place + 1 + _REACH, len(self.words))):
            word = self.words[near]
            if CLAUSE_BREAK.search(self.text, self.words[near - 1].end, word.start) or word.text in _TURNS:
                return None
            if word.carries_meaning and not word.lower.endswith("ly") and word.stem not in _UNHEADED:
                return near
        return None

    def has_negator_near(self, place: int) -> bool:
        """Return whether there is a negator near the word, in its sentence."""
        near = range(max(0, place - 2 * _REACH), min(len(self.words), place + _REACH))
        return any(self.words[at].is_negator and not self._is_cut(*sorted((at, place))) for at in near)

    def exception_after(self, place: int) -> frozenset[str]:
        """Return the concepts that only an exception after the word names: "not … unless it is faulty"."""
        low, high = max(0, place - _EXCEPTION_REACH), min(place + _EXCEPTION_REACH, len(self.words))
        sentence = [at for at in range(low, high) if not self._is_cut(*sorted((at, place)))]
        mark = next((at for at in sentence if at > place and self.words[at].lower in _EXCEPTING), None)
        if mark is None:
            return frozenset()
        ruled = {self.concepts[at] for at in sentence if at < mark}
        return frozenset(self.concepts[at] for at in sentence if at > mark and self.words[at].carries_meaning) - ruled

    def _is_cut(self, first: int, last: int) -> bool:
        return bool(_SENTENCE_BREAK.search(self.text, self.words[first].end, self.words[last].start))

    def is_hypothetical(self, place: int) -> bool:
        """Return whether the words before it make it a possibility, a condition or a wish."""
        return any(
            self.words[near].lower in _HYPOTHETICAL and not self.words[near + 1].is_negator
            for near in range(max(0, place - _REACH), place)
        )

    def is_name(self, place: int) -> bool:
        """Return whether the word is a proper name by its spelling: a capital where grammar requires none."""
        return place in self._named

    @cached_property
    def _named(self) -> frozenset[int]:
        capitals = (place for place, word in enumerate(self.words) if word.text[0].isupper())
        return frozenset(place for place in capitals if self._is_named(place))

    def _is_named(self, place: int) -> bool:
        word = self.words[place]
        if word.stem in STOPWORDS or word.text[1:2] in ("'", "\u2019"):
            return False  # I've
        if len(word.text) > 1 and word.text[1:] != word.text[1:].lower():
            return True  # NASA, McDonald
        return not self.starts_sentence(place) or self._in_name_run(place)

    def names(self, quantities: Sequence[Quantity]) -> frozenset[str]:
        """Return the stems of the proper names that are in none of `quantities`."""
        measured = inside(self.words, quantities)
        named = (self.words[place] for place in self._named - measured)
        return frozenset(word.stem for word in named if word.lower not in TITLES)

    def name_run(self, place: int) -> range:
        """Return the places of the capitalised words around `place`, at most `_LONGEST_NAME` to either side."""
        low = high = place
        while low > max(0, place - _LONGEST_NAME) and self._may_be_in_name(low - 1):
            low -= 1
        while high < min(len(self.words) - 1, place + _LONGEST_NAME) and self._may_be_in_name(high + 1):
            high += 1
        return range(low, high + 1)

    def _may_be_in_name(self, place: int) -> bool:
        return self.words[place].is_capital and self.words[place].lower not in TITLES

    def starts_sentence(self, place: int) -> bool:
        """Return whether the word begins a sentence, a quotation or a line, where any word is capitalised."""
        if place == 0:
            return True
        before = self.words[place - 1]
        gap = self.text[before.end : self.words[place].start]
        if gap == " ":
            return False
        if gap == ". " and (len(before.text) == 1 or before.lower in TITLES):
            return False  # Dr. Smith, J. Smith
        return any(mark in gap for mark in '.!?:\n"“*#|')

    def _in_name_run(self, place: int) -> bool:
        if place + 1 >= len(self.words) or self.starts_sentence(place + 1):
            return False
        is_run = not self.text[self.words[place].end : self.words[place + 1].start].strip()
        return is_run and self.words[place + 1].text[:1].isupper() and self.words[place].stem not in _COMMON_OPENERS


@memo(16, 4096, long_entries=2)
def read_claim(text: str) -> Reading:
    """Parse the text of a claim, cached for all verifiers."""
    return Reading(text)


def inside(text_words: Sequence[Word], quantities: Sequence[Quantity]) -> frozenset[int]:
    """Return the places of the words inside `quantities`, which must be in order. Linear in both."""
    if not quantities:
        return _NOWHERE
    places: list[int] = []
    rest = iter(quantities)
    current = next(rest, None)
    for place, word in enumerate(text_words):
        while current is not None and word.start >= current.end:
            current = next(rest, None)
        if current is None:
            break
        if word.start >= current.start:
            places.append(place)
    return frozenset(places)
