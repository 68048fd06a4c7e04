"""Remove cited evidence from a context: cited spans are replaced by a marker, the structure around them remains."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from groundwire.domain import Citation, Source
from groundwire.evidence.passages import cut
from groundwire.text.folding import Folded, fold
from groundwire.text.words import words

MARKER = "[EVIDENCE REMOVED]"

_REPEATED_CHARS, _REPEATED_WORDS = 20, 4  # minimum size of a copy; shorter repetitions may be chance

_GAP = re.compile(r"[ \t]*")
_CELL = re.compile(r"[^\n\r|\t]+")
_LEAD = re.compile(r"\s*(?:(?:[-*+•>]|#{1,6}|\d{1,3}[.)])\s+)*")

_Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The sources for the ablation of one citation: `without` it, and with it `alone`, all others removed."""

    without: tuple[Source, ...]
    alone: tuple[Source, ...]


def scrub(
    sources: Sequence[Source], citations: Sequence[Citation], protected: Sequence[Citation] = ()
) -> tuple[Source, ...]:
    """Return the sources with every cited span replaced by `MARKER`, and everything else unchanged.

    Spans that overlap or touch get one marker; separate lines and table cells get one each. Copies elsewhere of at
    least four cited words, as folded for quotations, are replaced as well, because they are the same evidence. Spans of
    `protected` are never replaced. A citation of an unknown source changes nothing.
    """
    spans = [_cited(source, citations) for source in sources]
    evidence = [piece for source, own in zip(sources, spans, strict=True) for piece in _pieces(source, own)]
    return tuple(
        _without(source, [*own, *_repetitions(fold(source.text), evidence)], _cited(source, protected))
        for source, own in zip(sources, spans, strict=True)
    )


def scrub_all(sources: Sequence[Source]) -> tuple[Source, ...]:
    """Return the sources with only their structure: the context of p0 for a claim that cites nothing."""
    return tuple(_without(source, [(0, len(source.text))], ()) for source in sources)


def leave_one_out(sources: Sequence[Source], citations: Sequence[Citation]) -> tuple[LeftOut, ...]:
    """Return the sources without each citation, and with it alone, in the order of the citations."""
    apart = [(each, [other for other in citations if other != each]) for each in citations]
    return tuple(
        LeftOut(scrub(sources, [each], protected=others), scrub(sources, others, protected=[each]))
        for each, others in apart
    )


def _matches(citation: Citation, source: Source) -> bool:
    start, end = citation.start - source.offset, citation.end - source.offset
    return 0 <= start < end <= len(source.text) and source.text[start:end] == citation.text


def _cited(source: Source, citations: Iterable[Citation]) -> list[_Span]:
    """Return the cited spans of a source, relative to its text."""
    return [
        (each.start - source.offset, each.end - source.offset)
        for each in citations
        if each.source == source.id and _matches(each, source)
    ]


def _pieces(source: Source, spans: Iterable[_Span]) -> Iterator[str]:
    """Yield the sentences of cited spans, folded, that are long enough to be recognised elsewhere."""
    for text in (source.text[start:end] for start, end in spans):
        for piece in cut(text):
            folded = fold(text[piece.start : piece.end]).text.strip(" .,;:|")
            if len(folded) >= _REPEATED_CHARS and len(words(folded)) >= _REPEATED_WORDS:
                yield folded


def _repetitions(text: Folded, evidence: Iterable[str]) -> Iterator[_Span]:
    """Yield the spans at which a text contains a piece of evidence in whole words and numbers."""
    for piece in dict.fromkeys(evidence):
        for found in re.finditer(rf"(?<!\w)(?<!\d[.,]){re.escape(piece)}(?!\w)(?![.,]\d)", text.text):
            yield text.origin(*found.span())


def _without(source: Source, spans: Iterable[_Span], protected: Iterable[_Span]) -> Source:
    parts, position = [], 0
    for start, end in _less(_merged(source.text, spans), sorted(protected)):
        parts += [source.text[position:start], _CELL.sub(_marked, source.text[start:end])]
        position = end
    return replace(source, text="".join([*parts, source.text[position:]])) if parts else source


def _marked(cell: re.Match[str]) -> str:
    """Return a line or cell with the marker for its words, and with its indent, bullet and trailing space."""
    text = cell.group()
    lead = _LEAD.match(text)
    start, end = lead.end() if lead else 0, len(text.rstrip())
    return f"{text[:start]}{MARKER}{text[end:]}" if any(map(str.isalnum, text[start:end])) else text


def _merged(text: str, spans: Iterable[_Span]) -> list[_Span]:
    """Return the spans in order, merged if they overlap or have only spaces and tabs between them."""
    merged: list[_Span] = []
    for start, end in sorted(spans):
        if merged and (start <= merged[-1][1] or _GAP.fullmatch(text, merged[-1][1], start)):
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _less(spans: Iterable[_Span], protected: Sequence[_Span]) -> Iterator[_Span]:
    """Yield the parts of the spans that lie in no protected span."""
    for start, end in spans:
        position = start
        for protected_start, protected_end in protected:
            if protected_start < end and protected_end > position:
                if protected_start > position:
                    yield position, protected_start
                position = max(position, protected_end)
        if position < end:
            yield position, end
