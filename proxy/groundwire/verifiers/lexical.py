"""The lexical model of the statement verifier: a logistic regression over features of a claim and its evidence.

`weights.json` holds its weights and, under "card", their training data, date and accuracy; `groundwire calibrate`
writes it. All features are computed from the claim and the passages that share many of its words, never from the number
or length of the sources, so that text about something else does not change them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

from groundwire.domain import Claim, Source
from groundwire.evidence.index import Context, Passage
from groundwire.text.folding import fold
from groundwire.text.reading import Reading, read_claim
from groundwire.text.words import FRAME_WORDS, NEGATORS, Word, concept, root

_MAX_SEEDS = 12
_MIN_SHARED = 0.25  # minimum share of the claim's words in a passage about the same subject
_MAX_DISTANCE = 9  # maximum distance, in words, of neighbours that count as together
_END_WORDS = 3  # content words
_MAX_PLACES = 10  # maximum occurrences of a word of the evidence that are compared


class Features(NamedTuple):
    """Features that support a claim, then those against it. Shares and flags are 0–1; `new_names` is ln(1 + count).

    `found` is the weighted share of the claim's content in the evidence windows, `wording` the share of its word
    triples in the best window, `together` the share of neighbouring content words that are together in a passage about
    the same subject. `verbatim` is set if a source contains the whole claim word for word, `by_rule` if the rules find
    it stated.

    `new_names` are the names that no such passage contains. `new_end` is the share of the last three content words that
    the best window lacks, because invented details are often appended. No feature compares the values of numbers; the
    numeric verifier does.
    """

    found: float
    wording: float
    together: float
    verbatim: float
    by_rule: float
    new_names: float
    new_end: float


SIGNS = Features(1, 1, 1, 1, 1, -1, -1)
"""The direction of each feature: 1 if a higher value supports the claim, −1 if it counts against it."""


def measure_features(
    claim: Claim, found: float, passages: Sequence[Passage], context: Context, *, verbatim: bool, by_rule: bool
) -> Features:
    """Return the features of a claim that is aligned with `passages`.

    `found`, `verbatim` and `by_rule` are copied into the result.
    """
    reading = read_claim(claim.text)
    content = [
        place for place, word in enumerate(reading.words) if word.carries_meaning and word.stem not in FRAME_WORDS
    ]
    window = _Text(passages)
    about = _Text(_related(reading, content, context, passages))
    new = [place for place in content if not about.has(reading.words[place])]
    end = content[-_END_WORDS:]
    return Features(
        found=found,
        wording=_triples(reading.words, window),
        together=_together(reading, content, about),
        verbatim=float(verbatim),
        by_rule=float(by_rule),
        new_names=math.log1p(sum(map(reading.is_name, new))),
        new_end=sum(not window.has(reading.words[place]) for place in end) / max(1, len(end)),
    )


class _Text:
    """A sequence of passages treated as one text."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._readings = [passage.reading for passage in passages]
        self._concepts = frozenset[str]().union(*(reading.places for reading in self._readings))
        self._roots = frozenset[str]().union(*(reading.roots for reading in self._readings))

    @property
    def words(self) -> list[Word]:
        return [word for reading in self._readings for word in reading.words]

    def has(self, word: Word) -> bool:
        """Return whether the text contains the word, another form of it or a synonym."""
        return concept(word.stem) in self._concepts or root(word.stem) in self._roots

    def places(self, word: Word) -> Sequence[int]:
        """Return the first positions of the word or its synonyms, at most `_MAX_PLACES`."""
        meaning = concept(word.stem)
        places: list[int] = []
        if meaning not in self._concepts:
            return places
        before = 0
        for reading in self._readings:
            if meaning in reading.places:
                places += [before + place for place in reading.places[meaning]]
            before += len(reading.words)
        return places[:_MAX_PLACES]


def _related(reading: Reading, content: Sequence[int], context: Context, window: Sequence[Passage]) -> list[Passage]:
    """Return, in order, the window and all near passages with enough of the claim's words, with their neighbours."""
    stems = {reading.words[place].stem for place in content}
    least = max(2.0, _MIN_SHARED * len(stems)) if len(stems) > 2 else 1.0
    taken = {passage.place: passage for passage in window}
    for passage in context.nearest(stems, _MAX_SEEDS):
        if len(stems & passage.stems) >= least:
            taken.update((near.place, near) for near in context.around(passage))
    return [taken[place] for place in sorted(taken)]


def _triples(sequence: Sequence[Word], text: _Text) -> float:
    mine = _triples_of(sequence)
    return len(mine & _triples_of(text.words)) / len(mine) if mine else 1.0


def _triples_of(sequence: Sequence[Word]) -> set[tuple[str, str, str]]:
    lowered = [word.lower for word in sequence]
    return set(zip(lowered, lowered[1:], lowered[2:], strict=False))


def _together(reading: Reading, content: Sequence[int], text: _Text) -> float:
    if len(content) < 2:
        return 1.0
    places = [text.places(reading.words[place]) for place in content]
    pairs = pairwise(places)
    near = sum(any(0 < abs(here - there) <= _MAX_DISTANCE for here in one for there in other) for one, other in pairs)
    return near / (len(content) - 1)


FILE = "weights.json"


@dataclass(frozen=True, slots=True)
class Bar:
    """Thresholds on the probability of support at which the model overrules the rules.

    From `cleared` on, a claim is supported although the rules do not find it stated, unless an essential part of it is
    missing. Below `doubted`, a claim is unsupported although the rules do, unless a source states it word for word.
    Neither overrules a veto.
    """

    cleared: float
    doubted: float


@dataclass(frozen=True, slots=True)
class Model:
    """A logistic regression that estimates the probability that a claim is supported.

    The probability assumes that half of all answers are grounded. `bars` holds the thresholds by policy. `contradicted`
    is the maximum score of a claim with a veto. `alarms` maps the name of another verifier and the label it gives to
    the probability of support of such a claim.
    """

    weights: Features
    bias: float
    bars: Mapping[str, Bar]
    contradicted: float
    alarms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def probability(self, features: Features) -> float:
        """Return the probability (0–1) that a claim with these features is supported."""
        total = self.bias + sum(weight * value for weight, value in zip(self.weights, features, strict=True))
        return 1 / (1 + math.exp(-total))


@cache
def shipped() -> Model:
    """Return the model shipped with the package, loaded once."""
    return read(json.loads(files("groundwire.verifiers").joinpath(FILE).read_text(encoding="utf-8")))


def read(stored: Mapping[str, Any]) -> Model:
    """Parse a model in the format of `weights.json`.

    Raises KeyError or TypeError if it is malformed or has other features.
    """
    bars = {policy: Bar(**bar) for policy, bar in stored["bars"].items()}
    return Model(Features(**stored["weights"]), stored["bias"], bars, stored["contradicted"], stored["alarms"])


_MIN_CHARS = 12  # characters
_MAX_OCCURRENCES = 20  # maximum occurrences of a text in one source that are checked
_REACH = 400  # characters of a sentence on either side
_STYLE = " .,;:!?"

_SENTENCE_START = re.compile(r"[.!?…;:|{}\[\]]+[\"'”’)\]*_]*\s|\n[^\w\n]*\n|\n(?=\s*(?:[-*+•>|#]|\d{1,3}[.)]\s))|^")
_TITLE = re.compile(r"(?:^|\n)(?P<title>[^\n]{1,50})\n(?=\s*[A-Z\"“])")
_MARKS = " \t\r\n-*+•>#|_\"'“”‘’([{`:"
_ENUMERATOR = re.compile(r"\(?(?:\d{1,3}|[a-zA-Z])[.)]\s*")
_CITED = re.compile(r"(?:\s*(?:\[[^\[\]\n]{1,40}\]|【[^【】\n]{1,40}】|[\"'”’)*_`}\]]))+")
_JOINED = re.compile(r"(?:[,—–]|[,;]? ?\b(?:and|but|or|so|yet|while|whereas|then))\s*$", re.IGNORECASE)
_CLAUSE_END = re.compile(
    r"[ \t]*(?:$|\n(?!\s*(?-i:[a-z]))|[.!?…;:|\"”)—–]"
    r"|,(?!\s*(?:unless|if|except|only|but (?:not|only)|provided|until|when|where|as long as|though|although)\b)"
    r"|\s(?:and|but|or|while|whereas|so)\b(?! (?:not|only|never)))",
    re.IGNORECASE,
)
_QUALIFIERS = NEGATORS | frozenset(
    "if unless whether when whenever until before after although though because since provided assuming supposing "
    "suppose except instead rather unlike false untrue wrong unlikely impossible doubt doubts doubted deny denies "
    "denied rejected disputes disputed might may could would should must can perhaps possibly probably allegedly "
    "reportedly supposedly that say says said saying claim claims claimed state states stated believe believes "
    "believed think thinks thought suggest suggests suggested argue argues argued report reports reported according "
    "hope hopes hoped expect expects expected plan plans planned want wants wanted some most few many several half "
    "hardly barely rarely seldom almost nearly only either both every each all any".split()
)
"""Words that affect a following clause: it is not asserted, or not of everything."""

_DENYING = frozenset(
    "no not never none neither nor nobody without cannot false untrue wrong deny denies denied dispute disputes "
    "disputed reject rejects rejected refute refutes refuted".split()
)
_OPEN = frozenset("whether if unless only because until".split())  # the denial may not concern the clause after it
_TURN = re.compile(r"[,;—–]|\b(?:although|though|since|while|whereas|but|when|after|before|and|or)\b", re.IGNORECASE)
_STOP = re.compile(r"[.!?…]+")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def find_verbatim(text: str, source: Source, context: Context) -> tuple[int, int] | None:
    """Return the span of `source.text` where `text` is a whole clause, regardless of typography and case; else None."""
    for start, end in _occurrences(text, source, context):
        if is_whole_clause(source.text, start, end):
            behind = _STOP.match(source.text, end)
            return start, behind.end() if behind else end
    return None


def find_denial(text: str, source: Source, context: Context) -> tuple[int, int] | None:
    """Return the first span where a source negates `text`: "No injuries have …", "It is not true that …"; else None."""
    for start, end in _occurrences(text, source, context):
        lead = _lead(source.text[max(0, start - _REACH) : start + 1])
        clause = _lowered_words(_TURN.split(lead)[-1])
        if sum(map(_denies, clause)) % 2 and _OPEN.isdisjoint(clause):
            return start, end
    return None


def _occurrences(text: str, source: Source, context: Context) -> Iterator[tuple[int, int]]:
    """Yield the occurrences of a text in a source, as spans of the original."""
    needle = _needle(text)
    if len(needle) < _MIN_CHARS:
        return
    folded = context.folded(source)
    place = folded.text.find(needle)
    for _ in range(_MAX_OCCURRENCES):
        if place < 0:
            return
        end = place + len(needle)
        if not (folded.text[place - 1 : place].isalnum() or folded.text[end : end + 1].isalnum()):
            yield folded.origin(place, end)
        place = folded.text.find(needle, place + 1)


@lru_cache(maxsize=64)
def _needle(text: str) -> str:
    return fold(text).text.strip(_STYLE)


def is_whole_clause(text: str, start: int, end: int) -> bool:
    """Return whether `text[start:end]` is a clause whose meaning the rest of its sentence does not change."""
    return _begins_clause(text[max(0, start - _REACH) : start + 1]) and _ends_clause(text[end : end + _REACH])


def _lead(before: str) -> str:
    """Return the part of the sentence before the last character of `before`, without titles and list marks."""
    lead = before[[found.end() for found in _SENTENCE_START.finditer(before, 0, len(before) - 1)][-1] :]
    lead = _TITLE.sub(lambda line: line.group() if _qualifies(line["title"]) else "", lead)[:-1].lstrip(_MARKS)
    return _ENUMERATOR.sub("", lead, count=1) if _ENUMERATOR.match(lead) else lead


def _begins_clause(before: str) -> bool:
    """Return whether a clause begins at the last character of `before`."""
    lead = _lead(before)
    if not lead.strip(_MARKS):
        return True
    return _JOINED.search(lead) is not None and not _qualifies(lead)


def _qualifies(lead: str) -> bool:
    return any(word in _QUALIFIERS or word.endswith("n't") for word in _lowered_words(lead))


def _lowered_words(text: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in _WORD.findall(text)]


def _denies(word: str) -> bool:
    return word in _DENYING or word.endswith("n't")


def _ends_clause(behind: str) -> bool:
    cited = _CITED.match(behind)
    return _CLAUSE_END.match(behind, cited.end() if cited else 0) is not None
