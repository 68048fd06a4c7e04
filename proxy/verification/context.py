"""The context of an answer: its sources cut into passages and indexed, so that a claim finds its evidence anywhere."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from proxy.types import Citation, Match, Source
from proxy.verification.numbers import Quantity, find_quantities
from proxy.verification.passages import cut
from proxy.verification.words import Word, words


@dataclass(frozen=True)
class Passage:
    """The smallest piece of a source that is read on its own: a sentence, a table row, a JSON value.

    `start` and `end` count into `source.text`. `text` is what is read: that slice, or for a row or a value the slice
    together with its row and column names (CX6). `place` is the passage's position in `Context.passages`.
    """

    source: Source
    start: int
    end: int
    text: str
    place: int

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words of `text`, once."""
        return words(self.text)

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of the content words of `text`."""
        return frozenset(word.stem for word in self.words if word.is_content)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The quantities of `text`, once."""
        return find_quantities(self.text)

    def cite(self, score: float, match: Match) -> Citation:
        """This passage as a citation, its offsets in the original message text."""
        return cite(self.source, self.start, self.end, score, match)


def cite(source: Source, start: int, end: int, score: float, match: Match) -> Citation:
    """The span `[start, end)` of `source.text` as a citation, its offsets in the original message text."""
    text = source.text[start:end]
    return Citation(source.id, source.offset + start, source.offset + end, text, round(score, 4), match)


class Context:
    """The sources of one exchange, ready to be searched. Immutable once built; building is linear in the text."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self.sources: tuple[Source, ...] = tuple(sources)
        self.passages: tuple[Passage, ...] = tuple(_passages(self.sources))
        self._by_stem: dict[str, list[int]] = defaultdict(list)
        for passage in self.passages:
            for stem in passage.stems:
                self._by_stem[stem].append(passage.place)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over every source's identity and text: two contexts with one digest give the same verdicts."""
        parts = hashlib.sha256()
        for source in self.sources:
            for field in (source.id, source.kind, source.text):
                encoded = field.encode("utf-8", "surrogatepass")
                parts.update(len(encoded).to_bytes(8, "big") + encoded)
        return parts.hexdigest()

    def nearest(self, stems: Collection[str], limit: int, among: Collection[str] | None = None) -> Sequence[Passage]:
        """The `limit` passages that share most of `stems`, best first, earlier ones first among equals.

        `among` restricts the search to these source ids. The ranking of a passage depends on that passage alone, never
        on what else the context holds, so padding a context does not change it (CX5).
        """
        shared: dict[int, int] = defaultdict(int)
        for stem in stems:
            for place in self._by_stem.get(stem, ()):
                shared[place] += 1
        places: Iterable[int] = shared
        if among is not None:
            places = (place for place in shared if self.passages[place].source.id in among)
        best = sorted(places, key=lambda place: (-shared[place], place))[:limit]
        return [self.passages[place] for place in best]

    def around(self, passage: Passage, before: int = 1, after: int = 1) -> Sequence[Passage]:
        """`passage` with its neighbours in the same source, in reading order."""
        low, high = max(0, passage.place - before), passage.place + after + 1
        return [near for near in self.passages[low:high] if near.source is passage.source]

    def resolve(self, label: str) -> Source | None:
        """The source that an answer means by the citation `label`, or None."""
        return next((source for source in self.sources if label == source.id or label in source.labels), None)


def _passages(sources: Iterable[Source]) -> Iterable[Passage]:
    place = 0
    for source in sources:
        for start, end, text in cut(source.text):
            yield Passage(source, start, end, text, place)
            place += 1
