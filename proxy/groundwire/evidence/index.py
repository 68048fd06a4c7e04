"""Index the sources of an answer by passage, to find the evidence for a claim anywhere in them.

The analysis of texts is cached: documents recur between requests, and sentences within them.
"""

from __future__ import annotations

import hashlib
import heapq
import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from groundwire.caches import BoundedCache, memo, memo_of_words
from groundwire.domain import Citation, Match, Source, SourceKind
from groundwire.evidence.passages import cut
from groundwire.evidence.tables import Piece
from groundwire.text.binding import Binding, Given, bind, given_by, note_near
from groundwire.text.folding import Folded, fold
from groundwire.text.quantities import Quantity, find_quantities
from groundwire.text.reading import Reading
from groundwire.text.words import (
    CALENDAR,
    LIGHT_WORDS,
    LONGEST_WORD,
    UNIT_WORDS,
    Word,
    concept,
    content_stems,
    stem,
)

_UNTELLING = (
    frozenset(map(stem, "value amount total number figure result quantity sum count score data year end".split()))
    | CALENDAR
)
_NONE: frozenset[str] = frozenset()
_MEASURED = frozenset(map(stem, "value result figure reading measurement level minimum maximum min max limit".split()))
"""Names of columns whose bare numbers have the unit of a column "Unit"; those of prices, counts and ages have not."""
_UNIT_CELL = re.compile(r"(?:^|\|) *units?: ([^|]{1,20})", re.IGNORECASE)
_SAME_START = 4  # minimum length of a word and its abbreviation, of which one must begin with the other


def cell_at(text: str, place: int) -> str:
    """Return the cell that contains the offset `place`, with the name of its column."""
    end = text.find("|", place)
    return text[text.rfind("|", 0, place) + 1 : end if end >= 0 else len(text)].strip()


def is_in_name(text: str, place: int) -> bool:
    """Return whether the offset `place` is in the name of a column, not in the value of a cell."""
    colon, end = text.find(": ", place), text.find("|", place)
    return colon >= 0 and (end < 0 or colon < end) and "|" in text


def names_column(stems: Collection[str], spoken: Collection[str]) -> bool:
    """Return whether the stems `spoken` name a column with these specific stems; a column without any always fits."""
    if not stems:
        return True
    concepts = _concepts(frozenset(spoken))
    return any(concept(each) in concepts or _is_short_for(each, spoken) for each in stems)


@lru_cache(maxsize=64)
def _concepts(stems: frozenset[str]) -> frozenset[str]:
    return frozenset(map(concept, stems))


def column_at(text: str, place: int) -> frozenset[str]:
    """Return the specific stems of a column's name, without those that all columns of the row share."""
    name, colon, _ = cell_at(text, place).partition(": ")
    return _specific(name, _in_all_names(text)) if colon else _NONE


@memo(4096, 256)
def _specific(name: str, shared: frozenset[str]) -> frozenset[str]:
    stems = content_stems(name) - shared - _UNTELLING - LIGHT_WORDS
    return frozenset(each for each in stems if not each[0].isdigit() and each not in UNIT_WORDS)


@memo(64, 2048, long_entries=64)
def _in_all_names(text: str) -> frozenset[str]:
    """Return the stems that the names of all columns of a row share, if there are at least two."""
    names = [content_stems(cell.partition(": ")[0]) for cell in text.split("|") if ": " in cell]
    return frozenset.intersection(*names) if len(names) > 1 else _NONE


def _is_short_for(name: str, spoken: Collection[str]) -> bool:
    return len(name) >= _SAME_START and any(
        each.startswith(name) or name.startswith(each) for each in spoken if len(each) >= _SAME_START
    )


_MAX_BYTES = 4 * 2**20  # for each of the two caches, of passages and of sources
_BYTES_PER_CHAR = 30  # measured, for a text with its whole analysis
_MAX_CHARS = 4_000  # longer passages are not cached: each would evict too many others
_MAX_SOURCE_CHARS = 2**16
_SOURCE_BYTES_PER_CHAR = 15  # measured, for a text cut into pieces


class Analysis:
    """The analysis of one text, each part computed on first use. It depends on the text alone."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def reading(self) -> Reading:
        """The text parsed into words."""
        return Reading(self._text)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The quantities in the text, in order."""
        return find_quantities(self._text)

    @cached_property
    def bindings(self) -> tuple[Binding, ...]:
        """The words and dates that belong to each quantity."""
        return bind(self._text, self.reading.words, self.quantities)

    @cached_property
    def units(self) -> tuple[tuple[Given, ...], ...]:
        """The units and scales that the column or row of each quantity may state."""
        return tuple(_given(self._text, each) for each in self.quantities)

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The places of the dates, and of the other quantities outside the names of columns."""
        return tuple(
            place
            for place, each in enumerate(self.quantities)
            if each.kind == "date" or not is_in_name(self._text, each.start)
        )

    @cached_property
    def columns(self) -> tuple[frozenset[str], ...]:
        """The specific stems of the name of each quantity's column; none outside of rows."""
        return tuple(column_at(self._text, each.start) for each in self.quantities)

    @cached_property
    def names(self) -> frozenset[str]:
        """The stems of the proper names that are in no quantity."""
        return self.reading.names(self.quantities)


def _given(text: str, quantity: Quantity) -> tuple[Given, ...]:
    if quantity.kind not in ("count", "currency"):
        return ()
    column, colon, _ = text[text.rfind("|", 0, quantity.start) + 1 : quantity.start].rpartition(": ")
    label = text.partition("|")[0]
    named = (given_by(column.strip()) if colon else ()) or (
        given_by(label.strip()) if len(label) < quantity.start else ()
    )
    if named or not (colon and quantity.is_bare):
        return named
    stems = content_stems(column)
    return _given_in_cell(text) if stems and stems <= _MEASURED else ()


@memo(64, 2048, long_entries=64)
def _given_in_cell(text: str) -> tuple[Given, ...]:
    """Return the unit that a row has in a cell of its own, below "Unit"."""
    found = _UNIT_CELL.search(text)
    amount = f"1 {found[1].strip()}" if found else ""
    return tuple(
        Given(each.kind, each.unit, each.worth, each.offset, each.scale, each.written)
        for each in find_quantities(amount)[:1]
        if each.unit and each.kind != "date" and each.end + len(each.rate) == len(amount)
    )


class Cut:
    """The text of a source cut into pieces, with the stems of the content words of each."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.pieces = tuple((piece, content_stems(piece.text)) for piece in cut(text))

    @cached_property
    def folded(self) -> Folded:
        """The text as folded for the comparison of quotations."""
        return fold(self._text)


_cut: BoundedCache[str, Cut] = BoundedCache(_MAX_BYTES)
_recent: BoundedCache[str, Analysis] = BoundedCache(_MAX_BYTES)


def analyse(text: str) -> Analysis:
    """Return the analysis of a text, from the cache if possible."""
    if len(text) > _MAX_CHARS:
        return Analysis(text)
    found = _recent.get(text)
    if found is None:
        found = Analysis(text)
        _recent.put(text, found, len(text) * _BYTES_PER_CHAR)
    return found


def cut_source(text: str) -> Iterator[tuple[Piece, frozenset[str]]]:
    """Yield the pieces of a source's text with their stems; those of a long text lazily and without the cache."""
    if len(text) > _MAX_SOURCE_CHARS:
        return ((piece, content_stems(piece.text)) for piece in cut(text))
    return iter(_cut_of(text).pieces)


def fold_source(text: str) -> Folded:
    """Return a source's text as folded for the comparison of quotations."""
    return fold(text) if len(text) > _MAX_SOURCE_CHARS else _cut_of(text).folded


def _cut_of(text: str) -> Cut:
    found = _cut.get(text)
    if found is None:
        found = Cut(text)
        _cut.put(text, found, len(text) * _SOURCE_BYTES_PER_CHAR)
    return found


T = TypeVar("T")

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
_LOOK_EVERY = 64  # passages between two checks of the time limit
_LONGEST_HEADING = 240
MAX_CHARS, MAX_PASSAGES = 4_000_000, 60_000
"""Limits of one context: a million tokens of prose, or short lines that take as long to read."""


@dataclass(frozen=True)
class Passage:
    """The smallest piece of a source that is read separately: a sentence, a table row, a JSON record.

    `start` and `end` are offsets into `source.text`. `text` is this slice or, for a row or a record, its rendering with
    row and column names. `place` is the index in `Context.passages`; `heading` is the heading, caption or title above
    it, "" if there is none.
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
        """`text` parsed into words."""
        return self.analysis.reading

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of the content words of `text`."""
        return content_stems(self.text)

    @cached_property
    def heading_stems(self) -> frozenset[str]:
        """The stems of the content words of `heading`."""
        return content_stems(self.heading) if self.heading else frozenset()

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The quantities of `text`."""
        return self.analysis.quantities

    @cached_property
    def note(self) -> Given | None:
        """The unit and scale that a note nearby gives to bare numbers ("in millions"), for rows or several numbers."""
        if not self.is_row and len(self.quantities) <= _FEW:
            return None
        return note_near(self.text, self.source.text, self.start, self.end)

    @cached_property
    def is_row(self) -> bool:
        """Return whether it is a row of a table or a record."""
        return "|" in self.text or "\t" in self.text

    def cite(self, score: float, match: Match) -> Citation:
        """Return this passage as a citation, with offsets in the original message text."""
        return cite(self.source, self.start, self.end, score, match)


def cite(source: Source, start: int, end: int, score: float, match: Match) -> Citation:
    """Return the span `[start, end)` of `source.text` as a citation, with offsets in the original message text.

    The match of a citation of a database is always "sql".
    """
    match = "sql" if source.kind == "facts" else match
    text = source.text[start:end]
    return Citation(source.id, source.offset + start, source.offset + end, text, round(score, 4), match)


class Context:
    """The sources of one exchange, indexed for search. Building it is linear in the text.

    Reading stops at `MAX_CHARS` characters, at `MAX_PASSAGES` passages, or when `is_over` returns True.
    """

    def __init__(self, sources: Iterable[Source], is_over: Callable[[], bool] = lambda: False) -> None:
        self.sources: tuple[Source, ...] = tuple(sources)
        self.passages: tuple[Passage, ...] = ()
        self._folded: dict[str, Folded] = {}
        self._parts: dict[bool, Context] = {}
        self._derived: dict[Hashable, Any] = {}
        self._by_stem: dict[str, list[int]] = defaultdict(list)
        self._densities: list[float] = []
        self._spans: dict[str, tuple[int, int]] = {}
        self._read(is_over)

    def _read(self, is_over: Callable[[], bool]) -> None:
        passages: list[Passage] = []
        total, read = sum(len(source.text) for source in self.sources), 0
        for source in self.sources:
            first = len(passages)
            end = self._read_source(source, passages, MAX_CHARS - read, is_over)
            self._spans[source.id] = first, len(passages)
            read += end
            if end < len(source.text):
                break
        self.passages = tuple(passages)
        self.examined = read / total if total else 1.0
        """The share (0–1) of the sources' characters that was read: 1 unless a limit was reached.

        Text in no passage counts as read: markup and rules, and the names of JSON containers, which the passages below
        them repeat.
        """

    def _read_source(self, source: Source, passages: list[Passage], room: int, is_over: Callable[[], bool]) -> int:
        """Add the passages of a source, and return the offset up to which it was read."""
        end, by_stem = 0, self._by_stem
        for piece, stems in cut_source(source.text[:room]):
            place = len(passages)
            if place >= MAX_PASSAGES or (place % _LOOK_EVERY == 0 and is_over()):
                return end
            heading = piece.heading or source.title or ""
            passages.append(Passage(source, piece.start, piece.end, piece.text, place, heading[:_LONGEST_HEADING]))
            self._densities.append(1.0 - _DENSITY_COST * len(stems) / (len(stems) + _DENSITY_HALF))
            for each in stems:
                by_stem[each].append(place)
            end = piece.end
        return min(room, len(source.text))

    @property
    def is_complete(self) -> bool:
        """Return whether all sources were read to their end, so that absence from the passages is absence."""
        return self.examined >= 1.0

    @cached_property
    def kinds(self) -> Mapping[str, SourceKind]:
        """The kind of each source by its id."""
        return {source.id: source.kind for source in self.sources}

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the sources, as far as they were read: equal digests give equal verdicts and citations."""
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
        """Return the `limit` passages that share most of `stems`, best first, and earlier ones first among equals.

        Words that look rare weigh more than common ones, and of two passages that share the same words the shorter one
        is first. `among` restricts the search to these source ids. The score of a passage depends on that passage
        alone, so padding a context does not change the ranking.
        """
        shared: dict[int, float] = defaultdict(float)
        for each in sorted(set(stems)):
            weight = _weight(each)
            for place in self._by_stem.get(each, ()):
                shared[place] += weight
        if among is not None:
            shared = {place: weight for place, weight in shared.items() if self.passages[place].source.id in among}
        densities = self._densities
        ranked = ((weight * densities[place], -place) for place, weight in shared.items())
        return [self.passages[-place] for _, place in heapq.nlargest(limit, ranked)]

    def around(self, passage: Passage, before: int = 1, after: int = 1) -> Sequence[Passage]:
        """Return `passage` with its neighbours in the same source, in reading order."""
        low, high = max(0, passage.place - before), passage.place + after + 1
        return [near for near in self.passages[low:high] if near.source is passage.source]

    def passage_of(self, citation: Citation) -> Passage | None:
        """Return the passage that a citation begins in."""
        low, high = self._spans.get(citation.source, (0, 0))
        if low == high:
            return None
        start = citation.start - self.passages[low].source.offset
        place = bisect_right(self.passages, start, low, high, key=lambda each: each.start) - 1
        return self.passages[place] if place >= low and start < self.passages[place].end else None

    def before(self, passage: Passage) -> Passage | None:
        """Return the passage directly before `passage` in the same source."""
        near = self.passages[passage.place - 1] if passage.place else None
        return near if near and near.source is passage.source else None

    def of_sources(self, *, documents: bool, facts: bool) -> Context:
        """Return the context with only the facts of a database, or only the other sources, as requested."""
        if documents and facts:
            return self
        if not documents and not facts:
            return Context(())
        if facts not in self._parts:
            self._parts[facts] = Context(each for each in self.sources if (each.kind == "facts") is facts)
        return self._parts[facts]

    def derived(self, analysis: Hashable, compute: Callable[[], T]) -> T:
        """Return the result of an analysis of the passages, computed once for the context and its copies."""
        if analysis not in self._derived:
            self._derived[analysis] = compute()
        found: T = self._derived[analysis]
        return found

    def renewed(self) -> Context:
        """Return a copy for another answer, with the limits and caches that apply to one answer reset."""
        context = copy(self)
        context._parts = {}
        return context

    def folded(self, source: Source) -> Folded:
        """Return the text of a source as folded for the comparison of quotations, cached."""
        if source.text not in self._folded:
            self._folded[source.text] = fold_source(source.text)
        return self._folded[source.text]

    @property
    def folded_text(self) -> str:
        """The folded texts of all sources, line by line: one search shows that no source has a text."""
        return self.derived("folded", lambda: "\n".join(self.folded(each).text for each in self.sources))

    def resolve(self, label: str) -> Source | None:
        """Return the source for the citation `label` ("1", "[1]", "Document 2", a title), or None.

        Ids have precedence over labels, and labels of later messages over equal ones of earlier messages.
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
    """Return the normal forms of a citation: without brackets and case, then only its number, if it has one."""
    plain = unicodedata.normalize("NFKC", label).strip(" \t\n[](){}【】<>\"'*^.,:;").split("†")[0].casefold().strip()
    number = _CITED_NUMBER.match(plain)
    return (plain, str(int(number[1]))) if number else (plain,)


@memo_of_words(2**15, LONGEST_WORD)
def _weight(stem: str) -> float:
    """Return the weight of a shared word by its form: high for numbers and long words, low for common ones."""
    if stem[:1].isdigit():
        return 1.5
    if stem in _COMMON:
        return 0.5
    return min(1.5, 0.7 + 0.1 * len(stem)) if stem.isascii() else 1.2
