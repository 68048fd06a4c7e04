"""What a claim and its evidence look like in numbers: the input of the learned model.

Every feature is taken from the claim and from passages that share a good part of its words, never from how many or how
long the sources are, so text that is beside the point changes none of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from proxy.types import Claim
from proxy.verification.context.index import Context, Passage
from proxy.verification.text.lexicon import FRAME_WORDS, concept, root
from proxy.verification.text.reading import Reading, read_claim
from proxy.verification.words import Word

_SEEDS = 12
_SHARED = 0.25  # of the claim's words, that a passage must have to count as being about the same thing
_NEAR = 9  # words between two that still stand together
_END = 3  # words
_PLACES = 10  # of a word in the evidence that are looked at


class Features(NamedTuple):
    """What speaks for a claim, then what speaks against it. Shares and signs are 0–1; `new_names` is ln(1 + count).

    `found` is the weighted share of its content in the evidence windows, `wording` the share of its word triples in the
    best one, `together` the share of neighbouring content words that stand together in any passage about the same
    thing, `verbatim` whether a source has all of it as it stands, `by_rule` whether the rules call it supported.
    `new_names` stand in no such passage, `new_end` is the share of its last words that the best window lacks, for what
    is invented is often appended. Numbers are not among them: they have a verifier of their own.
    """

    found: float
    wording: float
    together: float
    verbatim: float
    by_rule: float
    new_names: float
    new_end: float


SIGNS = Features(1, 1, 1, 1, 1, -1, -1)
"""Whether more of a feature speaks for a claim (1) or against it (−1)."""


def features(
    claim: Claim, found: float, passages: Sequence[Passage], context: Context, *, verbatim: bool, by_rule: bool
) -> Features:
    """Return the features of a claim that is aligned with `passages`; `found` and the rest are those of `Features`."""
    reading = read_claim(claim.text)
    content = [
        place for place, word in enumerate(reading.words) if word.carries_meaning and word.stem not in FRAME_WORDS
    ]
    window = _Text(passages)
    about = _Text(_about(reading, content, context, passages))
    new = [place for place in content if not about.has(reading.words[place])]
    end = content[-_END:]
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
    """Passages read one after the other, as one row of words."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._readings = [passage.reading for passage in passages]
        self._concepts = frozenset[str]().union(*(reading.places for reading in self._readings))
        self._roots = frozenset[str]().union(*(reading.roots for reading in self._readings))

    @property
    def words(self) -> list[Word]:
        """The words in order."""
        return [word for reading in self._readings for word in reading.words]

    def has(self, word: Word) -> bool:
        """Whether the word stands here, in this or another form, or one of the same meaning."""
        return concept(word.stem) in self._concepts or root(word.stem) in self._roots

    def places(self, word: Word) -> Sequence[int]:
        """The first places of the word, or of one of the same meaning."""
        meaning = concept(word.stem)
        places: list[int] = []
        if meaning not in self._concepts:
            return places
        before = 0
        for reading in self._readings:
            if meaning in reading.places:
                places += [before + place for place in reading.places[meaning]]
            before += len(reading.words)
        return places[:_PLACES]


def _about(reading: Reading, content: Sequence[int], context: Context, window: Sequence[Passage]) -> list[Passage]:
    """The window, and every near passage with a good part of the claim's words, with its neighbours, in order."""
    stems = {reading.words[place].stem for place in content}
    least = max(2.0, _SHARED * len(stems)) if len(stems) > 2 else 1.0
    taken = {passage.place: passage for passage in window}
    for passage in context.nearest(stems, _SEEDS):
        if len(stems & passage.stems) >= least:
            taken.update((near.place, near) for near in context.around(passage))
    return [taken[place] for place in sorted(taken)]


def _triples(spoken: Sequence[Word], text: _Text) -> float:
    mine = _triples_of(spoken)
    return len(mine & _triples_of(text.words)) / len(mine) if mine else 1.0


def _triples_of(spoken: Sequence[Word]) -> set[tuple[str, str, str]]:
    lowered = [word.lower for word in spoken]
    return set(zip(lowered, lowered[1:], lowered[2:], strict=False))


def _together(reading: Reading, content: Sequence[int], text: _Text) -> float:
    if len(content) < 2:
        return 1.0
    places = [text.places(reading.words[place]) for place in content]
    kept = sum(
        any(0 < abs(here - there) <= _NEAR for here in one for there in other) for one, other in pairwise(places)
    )
    return kept / (len(content) - 1)
