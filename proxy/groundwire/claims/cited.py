"""Find the citations in the text of an answer, with their spans and labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_RANGE_LIMIT = 50
_READ = 3000

_LABEL = (
    r"(?:[A-Za-z][A-Za-z .:#_-]{0,24}?)?\d{1,3}"
    r"|[A-Za-z][\w.:#-]{0,40}?\d[\w.:#-]{0,20}"
    r"|[\w-]{1,40}\.(?:pdf|txt|md|html?|docx?|csv|json)"
)
_JOIN = r"[ \t]{0,2}(?:,|;|&|and|-|–|to)[ \t]{0,2}"
_NAMES = r"(?:source|document|doc|passage|reference|ref|snippet|excerpt|chunk|citation|context|search result)s?"
_MARKS = re.compile(
    r"\[\[(?P<double>\d{1,3})\]\]"
    rf"|\[\^?(?P<square>(?:{_LABEL})(?:{_JOIN}(?:{_LABEL})){{0,12}})\](?!\((?!https?:))"
    r"|【(?P<lens>\d{1,3})(?::\d{1,4})?(?:†[^【】\n]{0,60})?】"
    rf"|\b{_NAMES}[ \t]?(?:\#|no\.?|number)?[ \t]?"
    rf"(?P<named>\d{{1,3}}(?!\d|[.,%]\d|%)(?:(?:{_JOIN}|, and )\d{{1,3}}(?!\d|\.\d|%)){{0,12}})"
    r"|(?P<raised>[¹²³⁰⁴-⁹]{1,3}(?:[,⁻ʼ][¹²³⁰⁴-⁹]{1,3})*)",
    re.IGNORECASE,
)
_HINTS = frozenset("[【¹²³⁴⁵⁶⁷⁸⁹")
_NAMED = ("source", "doc", "passage", "ref", "snippet", "excerpt", "chunk", "citation", "context", "search result")
_SEPARATOR = re.compile(r",|;|&|\band\b")
_RUN = re.compile(r"(\d{1,3})[ \t]{0,2}(?:-|–|to)[ \t]{0,2}(\d{1,3})")
_RAISED = str.maketrans("¹²³⁰⁴⁵⁶⁷⁸⁹", "1230456789")
_PREFIX = re.compile(rf"{_NAMES}[ \t:#.]{{0,2}}(?:no\.?)?[ \t]?(?=\d)", re.IGNORECASE)
_CODE = re.compile(r"`[^`\n]{1,300}+`")
_UNITS = frozenset("m cm mm km ft mi in yd sq inches feet miles meters metres kilometers kilometres x n r s c".split())
_WORD_BEFORE = re.compile(r"([^\W\d_]+|\d)$")


class Mark(NamedTuple):
    """One citation mark: its span and the labels in it, in order, in the form of `Source.labels`."""

    start: int
    end: int
    labels: tuple[str, ...]


def find_marks(text: str) -> Iterator[Mark]:
    """Yield the citation marks of `text` in order.

    Recognised are [1], [1, 2], [1-3], [^1], [doc-3], [[1]](url), 【4†source】, "(Source 2)", "Documents 2 and 3" and
    superscript digits after a word; not Markdown links, code, or superscripts of units (m²). Only the first `_READ`
    characters are read.
    """
    text = text[:_READ]
    if _HINTS.isdisjoint(text):
        lower = text.lower()
        if not any(name in lower for name in _NAMED):
            return
    code = [match.span() for match in _CODE.finditer(text)] if "`" in text else []
    for match in _MARKS.finditer(text):
        if any(start < match.start() < end for start, end in code):
            continue
        if match["raised"] and _is_exponent(text, match.start()):
            continue
        if labels := _labels(match):
            yield Mark(match.start(), match.end(), labels)


def cited(text: str) -> tuple[str, ...]:
    """Return the distinct labels that `text` cites, in order of appearance."""
    return labels_of(find_marks(text))


def labels_of(marks: Iterable[Mark]) -> tuple[str, ...]:
    """Return the distinct labels of `marks`, in order of appearance."""
    return tuple(dict.fromkeys(label for mark in marks for label in mark.labels))


def without(marks: Iterable[Mark], text: str) -> str:
    """Return `text` with its marks replaced by spaces, so that offsets stay valid."""
    pieces: list[str] = []
    start = 0
    for mark in marks:
        pieces += text[start : mark.start], " " * (mark.end - mark.start)
        start = mark.end
    return "".join(pieces) + text[start:] if pieces else text


def _labels(match: re.Match[str]) -> tuple[str, ...]:
    if raised := match["raised"]:
        return tuple(re.findall(r"\d+", raised.translate(_RAISED)))
    inside = match["double"] or match["square"] or match["lens"] or match["named"]
    labels: list[str] = []
    for part in _SEPARATOR.split(inside):
        label = _PREFIX.sub("", part).strip(" #:.")
        if (run := _RUN.fullmatch(label)) and 0 < int(run[2]) - int(run[1]) <= _RANGE_LIMIT:
            labels += map(str, range(int(run[1]), int(run[2]) + 1))
        elif label:
            labels.append(label)
    return tuple(labels)


def _is_exponent(text: str, place: int) -> bool:
    """Return whether a superscript digit belongs to a unit or a formula: m², 10³, x²."""
    before = _WORD_BEFORE.search(text[max(0, place - 16) : place])
    return before is not None and (before[1].isdigit() or before[1].lower() in _UNITS)
