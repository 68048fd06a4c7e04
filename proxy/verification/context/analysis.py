"""What is found in a text, kept for a while, as documents come again and sentences recur in them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from proxy.verification.bounded import BoundedCache
from proxy.verification.context.passages import Piece, cut
from proxy.verification.folding import Folded, fold
from proxy.verification.numbers.binding import Binding, bind
from proxy.verification.numbers.grammar import Quantity, find_quantities
from proxy.verification.text.reading import Reading
from proxy.verification.words import content_stems

_MAX_BYTES = 4 * 2**20  # for passages, and as much for sources
_BYTES_PER_CHAR = 30  # of a text and all that is found in it, measured
_MAX_CHARS = 4_000  # a longer passage would push out too many others
_MAX_SOURCE_CHARS = 2**16
_SOURCE_BYTES_PER_CHAR = 15  # of a text in pieces, measured


class Analysis:
    """What is found in one text, each part when it is first asked for. It depends on nothing but the text."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def reading(self) -> Reading:
        """The text read for its vetoes."""
        return Reading(self._text)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Its quantities, in order."""
        return find_quantities(self._text)

    @cached_property
    def bindings(self) -> tuple[Binding, ...]:
        """What each of its quantities measures."""
        return bind(self._text, self.reading.words, self.quantities)

    @cached_property
    def names(self) -> frozenset[str]:
        """The stems of its proper names, as far as they lie in no quantity."""
        return self.reading.names(self.quantities)


class Cut:
    """A source's text cut into pieces, and the stems of the content words of each."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.pieces = tuple((piece, content_stems(piece.text)) for piece in cut(text))

    @cached_property
    def folded(self) -> Folded:
        """The text as quotations are compared with it."""
        return fold(self._text)


_cut: BoundedCache[str, Cut] = BoundedCache(_MAX_BYTES)
_recent: BoundedCache[str, Analysis] = BoundedCache(_MAX_BYTES)


def analyse(text: str) -> Analysis:
    """Return the analysis of a text, one that was made before where there is one."""
    if len(text) > _MAX_CHARS:
        return Analysis(text)
    found = _recent.get(text)
    if found is None:
        found = Analysis(text)
        _recent.put(text, found, len(text) * _BYTES_PER_CHAR)
    return found


def cut_source(text: str) -> Iterator[tuple[Piece, frozenset[str]]]:
    """Yield the pieces of a source's text with the stems of each; those of a long text one by one."""
    if len(text) > _MAX_SOURCE_CHARS:
        return ((piece, content_stems(piece.text)) for piece in cut(text))
    return iter(_cut_of(text).pieces)


def fold_source(text: str) -> Folded:
    """Return a source's text as quotations are compared with it."""
    return fold(text) if len(text) > _MAX_SOURCE_CHARS else _cut_of(text).folded


def _cut_of(text: str) -> Cut:
    found = _cut.get(text)
    if found is None:
        found = Cut(text)
        _cut.put(text, found, len(text) * _SOURCE_BYTES_PER_CHAR)
    return found
