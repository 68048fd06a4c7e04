"""Analyse texts, with a cache: documents recur between requests, and sentences within them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from groundwire.caches import BoundedCache
from groundwire.evidence.cells import column_at, is_in_name
from groundwire.evidence.passages import Piece, cut
from groundwire.text.folding import Folded, fold
from groundwire.text.quantities.binding import Binding, bind
from groundwire.text.quantities.grammar import Quantity, find_quantities
from groundwire.text.quantities.headings import Given, given_by
from groundwire.text.reading import Reading
from groundwire.text.words import content_stems

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
    return (given_by(column.strip()) if colon else ()) or (
        given_by(label.strip()) if len(label) < quantity.start else ()
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
