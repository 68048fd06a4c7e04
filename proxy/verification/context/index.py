"""The context of an answer: its sources cut into passages and indexed, so that a claim finds its evidence anywhere."""

from __future__ import annotations

import hashlib
import heapq
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

from proxy.memo import memo
from proxy.types import Citation, Match, Source
from proxy.verification.context.analysis import Analysis, analyse, cut_source, fold_source
from proxy.verification.folding import Folded
from proxy.verification.numbers.binding import Binding
from proxy.verification.numbers.grammar import Quantity
from proxy.verification.numbers.headings import Given, note_near
from proxy.verification.text.lexicon import root
from proxy.verification.text.reading import Reading
from proxy.verification.words import LONGEST_WORD, Word, content_stems

_COMMON = frozenset(
    "able about according after all also among any around back based because become before begin between call case "
    "cent come company continu day differ down during early end even fact few find first follow form general get "
    "give go good great group help high important include know large last life like local long look low main major "
    "make many month more most name need new next no not number off offer often old one only other out over part "
    "people per percent place point problem process product provid public result same say see service set several "
    "show since small some start state still such system take thing three time total two under use want way week "
    "well within without work world year young".split()
)
_CITED_NUMBER = re.compile(
    r"(?:doc(?:ument)?|source|passage|chunk|context|(?:search )?result|ref(?:erence)?|citation|excerpt|article|"
    r"snippet|extract|file|web ?page|item|note)s?[ _#.:-]*(?:no\.? ?|number ?)?#?(\d{1,6})(?![\d.])",
    re.IGNORECASE,
)
_DENSITY_COST = 0.25
_DENSITY_HALF = 20
_FEW = 2
_MOST_RUNS = 64
_LOOK_EVERY = 64  # passages between two looks at the time
_LONGEST_HEADING = 240
MAX_CHARS, MAX_PASSAGES = 4_000_000, 60_000
"""Of one context; a million tokens of prose, or short lines that take as long to read."""
_MOST_SEARCHED = 2 * MAX_CHARS  # characters that are searched for initialisms


@dataclass(frozen=True)
class Passage:
    """The smallest piece of a source that is read on its own: a sentence, a table row, a JSON record.

    `start` and `end` count into `source.text`. `text` is what is read: that slice, or for a row or a record the slice
    together with its row and column names. `place` is the passage's position in `Context.passages`, `heading`
    the heading, caption or title that it stands under ("" when there is none).
    """

    source: Source
    start: int
    end: int
    text: str
    place: int
    heading: str = ""

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of `text`."""
        return self.reading.words

    @cached_property
    def analysis(self) -> Analysis:
        """The words, quantities and names of `text`."""
        return analyse(self.text)

    @cached_property
    def reading(self) -> Reading:
        """`text` read for its vetoes."""
        return self.analysis.reading

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of the content words of `text`."""
        return content_stems(self.text)

    @cached_property
    def roots(self) -> frozenset[str]:
        """The roots of `stems`."""
        return frozenset(map(root, self.stems))

    @cached_property
    def heading_stems(self) -> frozenset[str]:
        """The stems of the content words of `heading`."""
        return content_stems(self.heading) if self.heading else frozenset()

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The quantities of `text`."""
        return self.analysis.quantities

    @cached_property
    def bindings(self) -> tuple[Binding, ...]:
        """What each of its quantities measures, as they are written."""
        return self.analysis.bindings

    @cached_property
    def names(self) -> frozenset[str]:
        """The stems of its proper names, as far as they lie in no quantity."""
        return self.analysis.names

    @cached_property
    def note(self) -> Given | None:
        """What a note near it says of bare numbers, if it is a row or full of numbers: "in millions of euros"."""
        if not self.is_row and len(self.quantities) <= _FEW:
            return None
        return note_near(self.text, self.source.text, self.start, self.end)

    @cached_property
    def is_row(self) -> bool:
        """Whether it is a row of a table or a record."""
        return "|" in self.text or "\t" in self.text

    def cite(self, score: float, match: Match) -> Citation:
        """This passage as a citation, its offsets in the original message text."""
        return cite(self.source, self.start, self.end, score, match)


def cite(source: Source, start: int, end: int, score: float, match: Match) -> Citation:
    """The span `[start, end)` of `source.text` as a citation, its offsets in the original message text.

    What comes from a database is marked so, however it matches.
    """
    match = "sql" if source.kind == "facts" else match
    text = source.text[start:end]
    return Citation(source.id, source.offset + start, source.offset + end, text, round(score, 4), match)


class Context:
    """The sources of one exchange, ready to be searched. Immutable once built; building is linear in the text.

    What is read is bounded by `MAX_CHARS` and `MAX_PASSAGES`, and ends when `is_over` says so; `examined` is the share
    that was read.
    """

    def __init__(self, sources: Iterable[Source], is_over: Callable[[], bool] = lambda: False) -> None:
        self.sources: tuple[Source, ...] = tuple(sources)
        self.passages: tuple[Passage, ...] = ()
        self._folded: dict[str, Folded] = {}
        self._runs: dict[tuple[int, int], Reading] = {}
        self._spelled: dict[str, str] = {}
        self._searched = 0
        self._facts_only: Context | None = None
        self._without_facts: Context | None = None
        self._by_stem: dict[str, list[int]] = defaultdict(list)
        self._sizes: list[int] = []
        self._read(is_over)

    def _read(self, is_over: Callable[[], bool]) -> None:
        passages: list[Passage] = []
        total, read = sum(len(source.text) for source in self.sources), 0
        for source in self.sources:
            end = self._read_source(source, passages, MAX_CHARS - read, is_over)
            read += end
            if end < len(source.text):
                break
        self.passages = tuple(passages)
        self.examined = read / total if total else 1.0
        """The share of the sources' characters that was read (0–1). All of it, unless a limit cut it off.

        What lies in no passage is markup and rules, which say nothing, and the names of JSON containers, which the
        readings below them carry.
        """

    def _read_source(self, source: Source, passages: list[Passage], room: int, is_over: Callable[[], bool]) -> int:
        """Add the passages of a source. Returns up to which character it was read."""
        end, by_stem = 0, self._by_stem
        for piece, stems in cut_source(source.text[:room]):
            place = len(passages)
            if place >= MAX_PASSAGES or (place % _LOOK_EVERY == 0 and is_over()):
                return end
            heading = piece.heading or source.title or ""
            passages.append(Passage(source, piece.start, piece.end, piece.text, place, heading[:_LONGEST_HEADING]))
            self._sizes.append(len(stems))
            for stem in stems:
                by_stem[stem].append(place)
            end = piece.end
        return min(room, len(source.text))

    @property
    def is_complete(self) -> bool:
        """Whether all of the sources was read, so that what was not found is not there."""
        return self.examined >= 1.0

    @cached_property
    def digest(self) -> str:
        """SHA-256 over all that every source is: two contexts with one digest give the same verdicts and citations."""
        parts = hashlib.sha256()
        for source in self.sources:
            place = (source.message_index, source.part_index, source.offset, source.title, source.labels, source.label)
            for field in (source.id, source.kind, repr(place), source.text):
                encoded = field.encode("utf-8", "surrogatepass")
                parts.update(len(encoded).to_bytes(8, "big") + encoded)
        if not self.is_complete:
            parts.update(str(len(self.passages)).encode())
        return parts.hexdigest()

    def nearest(self, stems: Collection[str], limit: int, among: Collection[str] | None = None) -> Sequence[Passage]:
        """The `limit` passages that share most of `stems`, best first, earlier ones first among equals.

        Rare-looking words weigh more than common ones, and of two that share the same the denser passage comes first.
        `among` restricts the search to these source ids. The ranking of a passage depends on that passage alone, never
        on what else the context holds, so padding a context does not change it.
        """
        shared: dict[int, float] = defaultdict(float)
        for stem in sorted(set(stems)):
            weight = _weight(stem)
            for place in self._by_stem.get(stem, ()):
                shared[place] += weight
        if among is not None:
            shared = {place: weight for place, weight in shared.items() if self.passages[place].source.id in among}
        ranked = ((weight * self._density(place), -place) for place, weight in shared.items())
        return [self.passages[-place] for _, place in heapq.nlargest(limit, ranked)]

    def _density(self, place: int) -> float:
        size = self._sizes[place]
        return 1.0 - _DENSITY_COST * size / (size + _DENSITY_HALF)

    def around(self, passage: Passage, before: int = 1, after: int = 1) -> Sequence[Passage]:
        """`passage` with its neighbours in the same source, in reading order."""
        low, high = max(0, passage.place - before), passage.place + after + 1
        return [near for near in self.passages[low:high] if near.source is passage.source]

    def reading(self, run: Sequence[Passage]) -> Reading:
        """Consecutive passages read as one text; the runs that were asked for last are kept."""
        if len(run) == 1:
            return run[0].reading
        key = run[0].place, run[-1].place
        known = self._runs.get(key)
        if known is None:
            if len(self._runs) >= _MOST_RUNS:
                self._runs = {}
            known = self._runs[key] = analyse(" \n".join(passage.text for passage in run)).reading
        return known

    def before(self, passage: Passage) -> Passage | None:
        """The passage right before `passage` in the same source."""
        near = self.passages[passage.place - 1] if passage.place else None
        return near if near and near.source is passage.source else None

    def of_sources(self, *, documents: bool, facts: bool) -> Context:
        """Return the context with only the facts of a database, or only with the rest."""
        if documents and facts:
            return self
        if not documents and not facts:
            return Context(())
        if facts:
            self._facts_only = self._facts_only or Context(each for each in self.sources if each.kind == "facts")
            return self._facts_only
        self._without_facts = self._without_facts or Context(each for each in self.sources if each.kind != "facts")
        return self._without_facts

    def spelled_out(self, initialism: str, find: Callable[[str, str], set[str] | None]) -> str:
        """Return the one phrase that `find` returns for an initialism in the sources, else ""; looked up once."""
        known = self._spelled.get(initialism)
        if known is None and self._searched < _MOST_SEARCHED:
            self._searched += sum(min(len(source.text), MAX_CHARS) for source in self.sources)
            found = [find(initialism, source.text[:MAX_CHARS]) for source in self.sources]
            phrases: set[str] = set().union(*(each or () for each in found))
            known = phrases.pop() if None not in found and len(phrases) == 1 else ""
            self._spelled[initialism] = known
        return known or ""

    def renewed(self) -> Context:
        """Return this context for another answer, without what bounds the work on one."""
        context = copy(self)
        context._spelled, context._searched = {}, 0
        context._facts_only = context._without_facts = None
        return context

    def folded(self, source: Source) -> Folded:
        """The text of a source as quotations are compared with it, folded once."""
        if source.text not in self._folded:
            self._folded[source.text] = fold_source(source.text)
        return self._folded[source.text]

    def resolve(self, label: str) -> Source | None:
        """The source that an answer means by the citation `label` ("1", "[1]", "Document 2", a title), or None.

        An id goes before a label, a label of a later message before the same one of an earlier message.
        """
        return next((self._by_label[form] for form in _forms(label) if form in self._by_label), None)

    @cached_property
    def _by_label(self) -> dict[str, Source]:
        named: dict[str, Source] = {}
        for source in self.sources:
            named.setdefault(_forms(source.id)[0], source)
        latest_first = sorted(
            self.sources, key=lambda source: -1 if source.message_index is None else source.message_index
        )
        labelled: dict[str, Source] = {}
        for source in latest_first:
            for label in source.labels:
                form = _forms(label)[0]
                known = labelled.get(form)
                if known is None or known.message_index != source.message_index:
                    labelled[form] = source
        return labelled | named


def _forms(label: str) -> tuple[str, ...]:
    """What a citation may be called, plainest first: without brackets and case, then only its number."""
    plain = unicodedata.normalize("NFKC", label).strip(" \t\n[](){}【】<>\"'*^.,:;").split("†")[0].casefold().strip()
    number = _CITED_NUMBER.match(plain)
    return (plain, str(int(number[1]))) if number else (plain,)


@memo(2**15, LONGEST_WORD)
def _weight(stem: str) -> float:
    """How much a shared word tells, from its looks alone: numbers and long words most, everyday words least."""
    if stem[:1].isdigit():
        return 1.5
    if stem in _COMMON:
        return 0.5
    return min(1.5, 0.7 + 0.1 * len(stem)) if stem.isascii() else 1.2
