"""Split texts at the boundaries of spans, so that a page can mark them; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Span(Generic[T]):
    """A value attached to the characters `[start, end)` of a text."""

    start: int
    end: int
    about: T


@dataclass(frozen=True, slots=True)
class Segment(Generic[T]):
    """A segment of a text and the values of all spans that cover it. `starts` are those of spans beginning there."""

    text: str
    about: tuple[T, ...] = ()
    starts: tuple[T, ...] = ()


def cut(text: str, spans: Sequence[Span[T]]) -> tuple[Segment[T], ...]:
    """Split a whole text into segments, in order; spans may overlap, and their parts outside the text are ignored."""
    inside = [Span(max(0, span.start), min(len(text), span.end), span.about) for span in spans]
    inside = sorted((span for span in inside if span.start < span.end), key=lambda span: span.start)
    edges = sorted({0, len(text), *(edge for span in inside for edge in (span.start, span.end))})
    found: list[Segment[T]] = []
    covering: list[Span[T]] = []
    next_ = 0
    for start, end in pairwise(edges):
        covering = [span for span in covering if span.end > start]
        begun = next_
        while next_ < len(inside) and inside[next_].start == start:
            next_ += 1
        covering += inside[begun:next_]
        starts = tuple(span.about for span in inside[begun:next_])
        found.append(Segment(text[start:end], tuple(span.about for span in covering), starts))
    return tuple(found)
