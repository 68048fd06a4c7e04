"""What sets a claim apart from a passage with nearly all its words: negation, opposites, quantifiers, names (ST3).

Every veto presumes that claim and passage speak of the same thing; the caller sees to that. A veto names the words, so
that a person can judge it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from typing import Literal
from unicodedata import normalize

from proxy.verification.alignment.lexicon import (
    CALENDAR,
    COMPARATORS,
    CONVERSE,
    LIGHT_WORDS,
    LINKING,
    NAME_CONCEPTS,
    NOT_NEGATED,
    QUANTIFIER_CONFLICTS,
    QUANTIFIERS,
    STATE_ATTRIBUTES,
    SYMMETRIC_CONCEPTS,
    TITLES,
    concept,
    opposites,
    root,
)
from proxy.verification.alignment.thesaurus import related
from proxy.verification.numbers.grammar import Quantity
from proxy.verification.words import STOPWORDS, Word, stem, words

_CLAUSE_BREAK = re.compile(r"[.;:!?()|\n]|, ")
_SENTENCE_BREAK = re.compile(r"[.;!?|]\s|\n")
_NUMBERED_FIELD = re.compile(r"[^|:.,\n]{0,40}: ?[-−+(]?[$€£]?\d")
_NEGATIVE_PREFIXES = ("un", "in", "im", "ir", "il", "non", "dis", "mis")
_NO_PREFIX = frozenset("formation cover charg cours appoint patch creas".split())
_MISSPELT = 0.7  # share of letters in order from which two names may be spellings of one
_NEXT = 2
_MOST_PLACES = 12  # of one word that are looked at
_MOST_NAMES, _LONGEST_NAME = 40, 8  # names of a text that are compared, and words to either side within one
_FARTHEST = 40  # words between two names of one list
_REACH = 4  # how many words away from its anchor a word still stands in the same place of the frame


@dataclass(frozen=True, slots=True)
class Veto:
    """Why a passage with the claim's words does not say what the claim says; `place` is the claim's word at issue."""

    kind: Literal["negation", "direction", "attribute", "quantifier", "name", "role"]
    place: int
    reason: str


class Reading:
    """A text read for its vetoes: its words, which of them are negated, and where each meaning stands.

    `measured` are the places of words inside quantities and dates, which are judged by their value and not as words.
    """

    def __init__(self, text: str, quantities: Sequence[Quantity] = ()) -> None:
        self.text = text
        self.words = words(text)
        self.measured = inside(self.words, quantities)

    def measured_by(self, quantities: Sequence[Quantity]) -> Reading:
        """The same text with `quantities` measured in it."""
        reading = copy(self)
        reading.measured = inside(self.words, quantities)
        return reading

    @cached_property
    def concepts(self) -> tuple[str, ...]:
        """The meaning of each word, in order."""
        return tuple([concept(word.stem) for word in self.words])

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Where each meaning stands, as places in `words`."""
        places: dict[str, list[int]] = defaultdict(list)
        for place, meaning in enumerate(self.concepts):
            places[meaning].append(place)
        return places

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of the words."""
        return frozenset([word.stem for word in self.words])

    @cached_property
    def stem_places(self) -> dict[str, list[int]]:
        """Map each stem to its places in `words`."""
        places: dict[str, list[int]] = defaultdict(list)
        for place, word in enumerate(self.words):
            places[word.stem].append(place)
        return places

    @cached_property
    def roots(self) -> frozenset[str]:
        """The roots of the words."""
        return frozenset(map(root, self.stems))

    @cached_property
    def denies(self) -> bool:
        """Whether any word is a negator."""
        return any(word.is_negator for word in self.words)

    @cached_property
    def negated(self) -> frozenset[int]:
        """The places of the words that a negator denies: the first content word behind it in its clause."""
        asserted_otherwise = self.refuted | self.denied_of_all
        if not self.denies:
            return asserted_otherwise
        denied = (self.head(place) for place in range(len(self.words)) if self._negates(place))
        return frozenset(place for place in denied if place is not None) | asserted_otherwise

    @cached_property
    def denied_of_all(self) -> frozenset[int]:
        """The places of the verbs whose subject is "nobody" or "nothing": nobody else did it either."""
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
        """The places of attributes that are said not to hold: "refundable: false"."""
        return self._fields_that_say(_REFUTING)

    @cached_property
    def affirmed(self) -> frozenset[int]:
        """The places of attributes that are said to hold: "gift wrap: true"."""
        return self._fields_that_say(_AFFIRMING)

    def _fields_that_say(self, values: frozenset[str]) -> frozenset[int]:
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
        """`(name, value)` as places, wherever the text ascribes a value: "priority: high", "the priority is high"."""
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
            return False  # "no entry without a ticket": the ticket is asked for
        return not (place + 1 < len(self.words) and self.words[place + 1].lower in NOT_NEGATED)

    def _denies_besides(self, place: int) -> bool:
        """Whether the sentence has another negator."""
        return any(
            word.is_negator and at != place and not self._is_cut(*sorted((at, place)))
            for at, word in enumerate(self.words)
        )

    def head(self, place: int) -> int | None:
        """The first content word behind `place` in its clause, within reach."""
        for near in range(place + 1, min(place + 1 + _REACH, len(self.words))):
            word = self.words[near]
            if _CLAUSE_BREAK.search(self.text, self.words[near - 1].end, word.start) or word.text in _TURNS:
                return None
            if word.carries_meaning and not word.lower.endswith("ly") and word.stem not in _UNHEADED:
                return near
        return None

    def has_negator_near(self, place: int) -> bool:
        """Whether anything in the word's neighbourhood, within its sentence, is denied."""
        near = range(max(0, place - 2 * _REACH), min(len(self.words), place + _REACH))
        return place in self.set_apart or any(
            self.words[at].is_negator and not self._is_cut(*sorted((at, place))) for at in near
        )

    @cached_property
    def set_apart(self) -> frozenset[int]:
        """The places of what is named only to set it apart: "instead of the agent"."""
        starts = {apart.start("name") for apart in _SET_APART.finditer(self.text)}
        return frozenset(place for place, word in enumerate(self.words) if word.start in starts)

    def _is_cut(self, first: int, last: int) -> bool:
        return bool(_SENTENCE_BREAK.search(self.text, self.words[first].end, self.words[last].start))

    def is_hypothetical(self, place: int) -> bool:
        """Whether the words before it make of an assertion a possibility, a condition or a wish."""
        return any(
            self.words[near].lower in _HYPOTHETICAL and not self.words[near + 1].is_negator
            for near in range(max(0, place - _REACH), place)
        )

    def is_name(self, place: int) -> bool:
        """Whether the word is a proper name by its writing: a capital where grammar asks for none."""
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
        """The stems of the proper names that lie in none of `quantities`."""
        measured = inside(self.words, quantities)
        named = (self.words[place] for place in self._named - measured)
        return frozenset(word.stem for word in named if word.lower not in TITLES)

    def name_run(self, place: int) -> range:
        """Return the places of the capitalised words adjacent to the one at `place`, at most `_LONGEST_NAME`."""
        first, last = self._name_bounds
        low = first[place - 1] if place and first[place - 1] >= 0 else place
        high = last[place + 1] if place + 1 < len(self.words) and last[place + 1] >= 0 else place
        return range(max(low, place - _LONGEST_NAME), min(high, place + _LONGEST_NAME) + 1)

    @cached_property
    def _name_bounds(self) -> tuple[list[int], list[int]]:
        """For each word, the first and the last place of its run of capitalised words (-1: it is in none). Linear."""
        parts = [word.is_capital and word.lower not in TITLES for word in self.words]
        first, last = [-1] * len(parts), [-1] * len(parts)
        for place, is_part in enumerate(parts):
            if is_part:
                first[place] = first[place - 1] if place and parts[place - 1] else place
        for place in range(len(parts) - 1, -1, -1):
            if parts[place]:
                last[place] = last[place + 1] if place + 1 < len(parts) and parts[place + 1] else place
        return first, last

    def starts_sentence(self, place: int) -> bool:
        """Whether the word opens a sentence, a quotation or a line, where anything is capitalised."""
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


@lru_cache(maxsize=16)
def read_claim(text: str) -> Reading:
    """The text of a claim, read once for all verifiers."""
    return Reading(text)


_TURNS = frozenset(("but", "although", "though", "because", "while", "whereas"))
_HYPOTHETICAL = frozenset(
    "if whether unless could can may might would should must to want wants hope hopes claim claimed".split()
)
_UNHEADED = frozenset("one yet longer any even ever much many so really necessary currently able".split()) | {
    "necessari"
}
_COMMON_OPENERS = frozenset(
    "when while whil if after before although because becaus since sinc however according accord many most all both "
    "former though unlike unlik despite despit two three one other another new".split()
)


_PRONOUNS = frozenset(("nothing", "nobody", "none", "neither", "nowhere"))  # deny the verb, not what follows
_ORDINALS = frozenset(concept(stem(word)) for word in "first second third fourth fifth sixth seventh eighth".split())
_PARTS_OF_AN_ANSWER = frozenset(
    map(
        stem,
        "step table figure chapter part option item section clause passage document source page point way "
        "reason thing example method note line".split(),
    )
)
_PREPOSITIONS = frozenset("in at from to by on".split())
_SET_APART = re.compile(
    r"\b(?P<cue>unlike|instead of|rather than|except for|but not)(?: (?:for|in|to|on|at|with|by))?"
    r"(?: (?:the|a|an|any))? (?:(?:dr|mr|mrs|ms|prof)\.? )?(?P<name>\w[\w-]{0,40})",
    re.IGNORECASE,
)
_NOBODY = frozenset(("nobody", "nothing"))
_AUXILIARIES = frozenset("is are was were be been has have had can could will would should may might did does".split())
_AFFIRMING = frozenset(("true", "yes"))
_REFUTING = frozenset(("false", "no", "none", "never"))


def inside(text_words: Sequence[Word], quantities: Sequence[Quantity]) -> frozenset[int]:
    """The places of the words that lie in `quantities`, which stand in order. Linear in both."""
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


_NOWHERE: frozenset[int] = frozenset()


def opposed(one: str, other: str) -> bool:
    """Whether two stems deny each other: "rise" and "fell", "effective" and "ineffective"."""
    return other in _denying(one)


@lru_cache(maxsize=4096)
def _denying(word: str) -> frozenset[str]:
    """Every stem that denies another: its opposites, and itself with a negative prefix or without."""
    bare = (word.removeprefix(prefix) for prefix in _NEGATIVE_PREFIXES if word.startswith(prefix))
    plain = frozenset(each for each in bare if _takes_prefix(each))
    negative = frozenset(prefix + word for prefix in _NEGATIVE_PREFIXES if _takes_prefix(word))
    return opposites(word) | related(word).opposite | plain | negative


def _takes_prefix(word: str) -> bool:
    return len(word) >= 5 and word not in _NO_PREFIX


def find_vetoes(claim: Reading, evidence: Reading) -> tuple[Veto, ...]:
    """Every veto that `evidence` raises against `claim`, the surest kinds first."""
    return tuple(
        veto
        for find in (
            _negation,
            _exclusion,
            _direction,
            _attribute,
            _quantifier,
            _comparator,
            _name,
            _number,
            _complement,
            _role,
        )
        for veto in find(claim, evidence)
    )


def _negation(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """The same word denied on one side and asserted on the other, and nowhere asserted or denied alike."""
    for place, meaning in enumerate(claim.concepts):
        found = evidence.places.get(meaning)
        if not found or not claim.words[place].carries_meaning or claim.places[meaning].index(place) >= _MOST_PLACES:
            continue
        denied, found = place in claim.negated, found[:_MOST_PLACES]
        if all((near in evidence.negated) == denied for near in found):
            continue
        against = evidence.affirmed if denied else evidence.refuted | evidence.denied_of_all
        is_refuted = any(near in against for near in found)
        if not is_refuted:
            alone = _NEXT + 1 if claim.words[place].stem in LIGHT_WORDS else _REACH
            found = [
                near
                for near in found
                if _same_place(claim, place, evidence, near, alone) or _turned_round(claim, place, evidence, near)
            ]
        if is_refuted and not denied and claim.has_negator_near(place):
            continue  # "is not a member": "member: no"
        if not found or any((near in evidence.negated) == denied or evidence.is_hypothetical(near) for near in found):
            continue
        if any((near in claim.negated) != denied for near in claim.places[meaning]):
            continue
        if not is_refuted and (all(evidence.has_negator_near(near) for near in found) if denied else claim.denies):
            continue  # both deny something here, each in its own way
        word = claim.words[place].text
        says = f'the answer denies "{word}" and' if denied else f'the answer asserts "{word}" and'
        yield Veto(
            "attribute" if is_refuted else "negation",
            place,
            f"{says} the source {'asserts' if denied else 'denies'} it",
        )


def _direction(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """A word of the claim that is missing, with its opposite in the same place of the frame."""
    for place, word in enumerate(claim.words):
        if not word.is_content or _denying(word.stem).isdisjoint(evidence.stems):
            continue
        if not _lacks(evidence, claim, place) or place in claim.negated or place in claim.measured:
            continue
        for near in _first_places(evidence, _denying(word.stem)):
            other = evidence.words[near]
            if (
                not _counts_off(claim, place)
                and near not in evidence.negated
                and not _NUMBERED_FIELD.match(evidence.text, other.end)  # "growth: −3%" is no growth
                and evidence.text[max(0, other.start - 1) : other.start] != "-"  # dis-solvable
                and claim.text[word.end : word.end + 1] != "-"  # first-year
                and _same_place(claim, place, evidence, near)
            ):
                yield Veto("direction", place, f'the answer says "{word.text}" where the source says "{other.text}"')
                break


def _first_places(reading: Reading, stems: frozenset[str]) -> list[int]:
    """Return the first places of any of `stems`, in order."""
    return sorted(near for each in stems & reading.stems for near in reading.stem_places[each][:_MOST_PLACES])


def _counts_off(claim: Reading, place: int) -> bool:
    """Whether an ordinal only counts the parts of the answer: "Second, …", "the third step"."""
    if claim.concepts[place] not in _ORDINALS:
        return False
    word, after = claim.words[place], claim.words[place + 1 : place + 2]
    return claim.text[word.end : word.end + 1] == "," or not after or after[0].stem in _PARTS_OF_AN_ANSWER


def _exclusion(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """What the source names only to set it apart: "for adults but not for children", "unlike the X1, the X2 …"."""
    if _SET_APART.search(claim.text):
        return
    for apart in _SET_APART.finditer(evidence.text):
        name, cue = apart["name"], apart["cue"].lower()
        said = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", claim.text, re.IGNORECASE)
        if said is None or (cue == "but not" and claim.denies):
            continue
        sentence = evidence.text[
            _sentence_start(evidence.text, apart.start()) : _sentence_end(evidence.text, apart.end())
        ]
        place = _place_at(claim, said.start())
        if sentence.lower().count(name.lower()) == 1 and place is not None and place not in claim.negated:
            reason = f'the answer says of "{name}" what the source says {cue} "{name}"'
            yield Veto("name", place, reason)


def _sentence_start(text: str, place: int) -> int:
    return max(text.rfind(". ", 0, place), text.rfind("\n", 0, place)) + 1


def _sentence_end(text: str, place: int) -> int:
    ends = [end for end in (text.find(". ", place), text.find("\n", place)) if end >= 0]
    return min(ends, default=len(text))


def _place_at(reading: Reading, start: int) -> int | None:
    return next((place for place, word in enumerate(reading.words) if word.start <= start < word.end), None)


def _number(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """The number of a thing where the source gives that thing another one: "room 5", "gate B22"."""
    for place in range(1, len(claim.words)):
        if not _is_numbered(claim, place) or place in claim.measured or claim.concepts[place] in evidence.places:
            continue
        behind = (near + 1 for near in evidence.places.get(claim.concepts[place - 1], ()))
        other = next((near for near in behind if near < len(evidence.words) and _is_numbered(evidence, near)), None)
        if other is not None and evidence.concepts[other] not in claim.places:
            says = f'the answer says "{_with_noun(claim, place)}" where the source says "{_with_noun(evidence, other)}"'
            yield Veto("name", place, says)


def _is_numbered(reading: Reading, place: int) -> bool:
    """Whether a number stands right behind a noun, and nothing behind it that it counts."""
    noun, number = reading.words[place - 1], reading.words[place]
    if not number.is_number or noun.is_number or not noun.carries_meaning or noun.stem in CALENDAR:
        return False
    return reading.text[noun.end : number.start] == " " and noun.stem not in _PARTS_OF_AN_ANSWER


def _with_noun(reading: Reading, place: int) -> str:
    return reading.text[reading.words[place - 1].start : reading.words[place].end]


def _complement(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """A name behind a verb and preposition where the source has another there, and this one behind another verb:
    "born in Nice" for "born in Lyon and lives in Nice".
    """
    said = list(_complements(evidence))
    for verb, link, place in _complements(claim):
        meaning = claim.concepts[place]
        ours = [at for other, same, at in said if same == link and evidence.concepts[other] == claim.concepts[verb]]
        ours = ours[:_MOST_PLACES]
        if not ours or meaning not in evidence.places:
            continue
        if any(_reaches(evidence, at, near) for at in ours for near in evidence.places[meaning][:_MOST_PLACES]):
            continue
        if any(same == link and evidence.concepts[at] == meaning for _, same, at in said):
            says = f'the answer says "{claim.words[place].text}" where the source says "{evidence.words[ours[0]].text}"'
            yield Veto("name", place, says)


def _complements(reading: Reading) -> Iterator[tuple[int, str, int]]:
    """`(verb, preposition, name)` wherever a name stands right behind a preposition and that behind a verb."""
    for at in range(1, len(reading.words) - 1):
        link = reading.words[at].lower
        if link in _PREPOSITIONS and reading.words[at - 1].carries_meaning and not reading.words[at - 1].is_capital:
            name = at + 2 if reading.words[at + 1].stem == "the" and at + 2 < len(reading.words) else at + 1
            if (
                reading.words[name].is_capital
                and reading.words[name].stem not in CALENDAR
                and name not in reading.measured
            ):
                yield at - 1, link, name


def _reaches(reading: Reading, first: int, last: int) -> bool:
    """Whether only names, commas and conjunctions stand between two places: they are one list or one address."""
    low, high = sorted((first, last))
    if high - low > _FARTHEST:
        return False
    return all(
        reading.words[at].is_capital or not reading.words[at].is_content for at in range(low, high + 1)
    ) and not any(reading.words[at].lower in _PREPOSITIONS for at in range(low, high))


def _attribute(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """A value of the claim that is missing, where the source ascribes an opposite, or in a record another, value."""
    said = [(name, value) for name, value in evidence.attributes if value not in evidence.negated]
    if not said:
        return
    yield from _opposite_values(claim, evidence, said)
    for place, word in enumerate(claim.words):
        if not _lacks(evidence, claim, place) or not word.carries_meaning:
            continue
        if place in claim.negated or place in claim.measured or word.is_number:
            continue
        ascribed = {claim.concepts[name] for name, value in claim.attributes if value == place}
        near = {claim.concepts[at] for at in range(max(0, place - _REACH), min(len(claim.words), place + _REACH + 1))}
        for name, value in said:
            meaning, other = evidence.concepts[name], evidence.words[value]
            is_opposite = (
                word.stem not in CONVERSE
                and opposed(word.stem, other.stem)
                and (meaning in near or (ascribed and meaning in STATE_ATTRIBUTES))
            )
            is_other = _is_field(evidence, name, value) and not claim.stems & _field_value(evidence, value)
            if is_opposite or (is_other and (meaning in ascribed or _titles(claim, place, meaning))):
                yield Veto("attribute", place, f'the answer says "{word.text}" where the source says "{other.text}"')
                break


def _opposite_values(claim: Reading, evidence: Reading, said: Sequence[tuple[int, int]]) -> Iterator[Veto]:
    """What the claim and the source ascribe to one thing, where both deny each other: "camping is allowed"."""
    values: dict[str, list[int]] = defaultdict(list)
    for name, value in said:
        values[evidence.concepts[name]].append(value)
    for name, value in claim.attributes:
        word, found = claim.words[value], values.get(claim.concepts[name], [])
        if value in claim.negated or claim.concepts[value] in {evidence.concepts[other] for other in found}:
            continue
        if other := next((other for other in found if opposed(word.stem, evidence.words[other].stem)), None):
            says = evidence.words[other].text
            yield Veto("attribute", value, f'the answer says "{word.text}" where the source says "{says}"')


def _titles(reading: Reading, place: int, meaning: str) -> bool:
    """Whether a name stands right before the attribute that it is a value of: "the Enterprise plan"."""
    return reading.is_name(place) and place + 1 < len(reading.words) and reading.concepts[place + 1] == meaning


def _is_field(reading: Reading, name: int, value: int) -> bool:
    """Whether a value of at most three words fills its field of a record."""
    if ":" not in reading.text[reading.words[name].end : reading.words[value].start] or reading.words[value].is_number:
        return False
    end = reading.text.find("|", reading.words[value].start)
    last = reading.words[min(value + 3, len(reading.words) - 1)]
    return value + 3 >= len(reading.words) or 0 <= end <= last.start


def _field_value(reading: Reading, value: int) -> frozenset[str]:
    """The stems of the words that fill a field, from the place `value` on."""
    end = reading.text.find("|", reading.words[value].start)
    inside = (at for at in range(value, min(value + 3, len(reading.words))) if end < 0 or reading.words[at].start < end)
    return frozenset(reading.words[at].stem for at in inside)


def _lacks(evidence: Reading, claim: Reading, place: int) -> bool:
    """Whether the evidence has neither the claim's word nor, unless it is a name, one that means the same."""
    if claim.is_name(place) and claim.concepts[place] not in NAME_CONCEPTS:
        return claim.words[place].stem not in evidence.stems
    if claim.concepts[place] in evidence.places:
        return False
    return related(claim.words[place].stem).alike.isdisjoint(evidence.stems)


def _quantifier(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """The same noun under quantifiers that exclude each other."""
    said = _quantified(evidence)
    for meaning, amounts in _quantified(claim).items():
        for amount, (place, word) in amounts.items():
            found = said.get(meaning, {})
            conflicts = QUANTIFIER_CONFLICTS[amount] & found.keys()
            if conflicts and amount not in found:
                _, other = found[min(conflicts)]
                yield Veto("quantifier", place, f'the answer says "{word}" where the source says "{other}"')


def _quantified(reading: Reading) -> dict[str, dict[str, tuple[int, str]]]:
    """For each noun: the amounts it stands under, with the word that says so and its place."""
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


def _comparator(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """The same number as a lower bound on one side and an upper bound on the other."""
    bounds: dict[str, dict[int, str]] = defaultdict(dict)
    for place, side, phrase in _bounds(evidence):
        bounds[evidence.concepts[place]][side] = phrase
    for place, side, phrase in _bounds(claim):
        found = bounds.get(claim.concepts[place], {})
        if found and side not in found:
            yield Veto("quantifier", place, f'the answer says "{phrase}" where the source says "{found[-side]}"')


def _bounds(reading: Reading) -> Iterator[tuple[int, int, str]]:
    lowered = [word.lower for word in reading.words]
    for place, word in enumerate(reading.words):
        if not place or not (word.is_number or reading.concepts[place] in _NUMBER_WORDS):
            continue
        before = (" ".join(lowered[max(0, place - count) : place]) for count in (3, 2, 1))
        if longest := next((phrase for phrase in before if phrase in COMPARATORS), None):
            yield place, COMPARATORS[longest], longest


_NUMBER_WORDS = frozenset(
    concept(stem(word))
    for word in "two three four five six seven eight nine ten hundred thousand million billion half".split()
)


def _name(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """A name of the claim that is missing, with another name in its place."""
    missing = list(islice(_unknown_names(claim, evidence), _MOST_NAMES))
    strangers = list(islice(_unknown_names(evidence, claim), _MOST_NAMES)) if missing else []
    for place in missing:
        name = claim.words[place]
        for near in strangers:
            other = evidence.words[near]
            if (name.stem in CALENDAR) == (other.stem in CALENDAR) and _replaces(claim, place, evidence, near):
                yield Veto("name", place, f'the answer says "{name.text}" where the source says "{other.text}"')
                break


def _unknown_names(reading: Reading, other: Reading) -> Iterator[int]:
    """Yield the places of names that the other text lacks, a few places of each name."""
    seen: dict[str, int] = defaultdict(int)
    for place in range(len(reading.words)):
        if _is_unknown_name(reading, place, other):
            seen[reading.concepts[place]] += 1
            if seen[reading.concepts[place]] <= _NEXT:
                yield place


def _is_unknown_name(reading: Reading, place: int, other: Reading) -> bool:
    """Whether a name stands there that is not in the other text."""
    if not reading.is_name(place) or place in reading.measured or reading.concepts[place] in other.places:
        return False
    return len(reading.words[place].text) > 2 and reading.words[place].lower not in TITLES


def _replaces(claim: Reading, place: int, evidence: Reading, near: int) -> bool:
    """Whether two names exclude each other: in one place of the frame; where both share a part, beside that part.

    "Walsh" may be "Ed Walsh", while "John Miller" and "Anna Miller" are two people.
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
    return _same_place(claim, place, evidence, near, alone=_NEXT)


@lru_cache(maxsize=4096)
def may_be_one(one: str, other: str) -> bool:
    """Whether two names may be one: an acronym or a short form shares the first letter, a misspelling most letters."""
    from difflib import SequenceMatcher

    short, long = sorted((normalize("NFD", one.lower()), normalize("NFD", other.lower())), key=len)
    if short[0] != long[0]:
        return False
    return (
        long.startswith(short[:3])
        or one.isupper() != other.isupper()
        or SequenceMatcher(None, short, long).ratio() >= _MISSPELT
    )


def _same_place(claim: Reading, place: int, evidence: Reading, near: int, alone: int = _REACH) -> bool:
    """Whether the nearest content words beside `place` in the claim also stand beside `near` in the evidence, each on
    its own side; one within `alone` words suffices where the other has no match in the evidence.
    """
    held = [_anchored(claim, place, evidence, near, step, _REACH) for step in (-1, 1)]
    if None in held and alone < _REACH:
        held = [
            side and _anchored(claim, place, evidence, near, step, alone)
            for side, step in zip(held, (-1, 1), strict=True)
        ]
    return any(held) and False not in held


def _turned_round(claim: Reading, place: int, evidence: Reading, near: int) -> bool:
    """Whether two and more words stand around `place` in the claim and all of them around `near`, on whatever side."""
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
    """Return whether one of the sorted `places` lies beyond `near`, up to `end` on either side of it."""
    low, high = (near + 1, end) if end > near else (end, near - 1)
    at = bisect_left(places, low)
    return at < len(places) and places[at] <= high


def _role(claim: Reading, evidence: Reading) -> Iterator[Veto]:
    """Two names around one verb that have changed places."""
    said = list(_actions(evidence))
    for verb, actor, target in _actions(claim):
        meaning = claim.concepts[verb]
        if meaning in SYMMETRIC_CONCEPTS:
            continue
        roles = [
            (other_actor, other_target)
            for other, other_actor, other_target in said
            if evidence.concepts[other] == meaning
        ]
        swapped = any(actor & other_target and target & other_actor for other_actor, other_target in roles)
        if swapped and not any(actor & other_actor and target & other_target for other_actor, other_target in roles):
            yield Veto("role", verb, f'who and whom have changed places around "{claim.words[verb].text}"')


def _actions(reading: Reading) -> Iterator[tuple[int, frozenset[str], frozenset[str]]]:
    """`(verb, actor, target)` wherever one content word stands closely between two names, given by meanings."""
    content = [place for place, word in enumerate(reading.words) if word.carries_meaning]
    for at, (before, verb) in enumerate(pairwise(content)):
        ahead = content[at + 2 : at + 2 + _REACH - 1]  # "acquired the bakery chain Brotzeit"
        after = next((place for place in ahead if reading.words[place].is_capital), None)
        if after is None or after - before > 2 * _REACH or reading.words[verb].is_capital:
            continue
        if not reading.words[before].is_capital:
            continue
        if _CLAUSE_BREAK.search(reading.text, reading.words[before].end, reading.words[after].start):
            continue
        between = {word.lower for word in reading.words[before + 1 : after]}
        if not between.isdisjoint(("and", "or", "of")):
            continue
        names = _name_around(reading, before), _name_around(reading, after)
        yield (verb, *(names[::-1] if "by" in between else names))


def _name_around(reading: Reading, place: int) -> frozenset[str]:
    """The meanings of the capitalised words that stand together with the one at `place`."""
    return frozenset(reading.concepts[part] for part in reading.name_run(place))
