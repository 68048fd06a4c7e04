"""Find the quotations of an answer: text between quotation marks, and block quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from groundwire.text.words import STOPWORDS, words

_MARKS = re.compile("[\"'“”„‟«»‹›「」『』‘’‚]")
_CLOSES = {
    '"': '"',
    "'": "'",
    "“": "”",
    "”": "”",
    "„": "“”‟",
    "‟": "”",
    "«": "»",
    "»": "«»",
    "‹": "›",
    "›": "‹›",
    "「": "」",
    "『": "』",
    "‘": "’",
    "‚": "‘’",
}
_SINGLE = "'‘‚"
_DIRECTED = "「『„«‹"
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_APHAERESIS = re.compile(r"\d|(?:tis|twas|em|til|cause|n|bout|round)\b", re.IGNORECASE)

_BLOCK_MARK = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_BLOCK = re.compile(r"(?:^[ \t]{0,3}>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_DASHES = "—–-"
_BYLINE_CHARS = 120
_TERM_WORDS = 2
_ASKS = re.compile(
    r"\s*(?:how (?:to|do|does|can|much|many)|wh(?:at|ere|en|y|o) (?:is|are|do|does|to))\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation of an answer: the text between its marks, and the span of that text."""

    text: str
    start: int
    end: int


def find_quotes(text: str) -> tuple[Quote, ...]:
    """Return the outermost quotations of `text`, in order, in any of the usual marks, in linear time.

    A quotation stays within its paragraph. Unpaired marks, apostrophes and marks for feet or inches quote nothing.
    Single marks must be where a quotation can begin and end.
    """
    pairs: list[tuple[int, int]] = []
    for start, end in _paragraphs(text):
        pairs.extend(_pairs(text, start, end))
    quotes: list[Quote] = []
    reach = -1
    for opened, closed in sorted(pairs):
        if opened > reach and (inner := text[opened + 1 : closed]).strip():
            quotes.append(Quote(inner, opened + 1, closed))
            reach = closed
    return tuple(quotes)


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _PARAGRAPH.finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _pairs(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the positions of paired marks, matched with a stack. A mark left open inside a closed pair is dropped."""
    stack: list[int] = []
    open_marks: dict[str, int] = {}
    places = [match.start() for match in _MARKS.finditer(text, start, end)]
    for index, place in enumerate(places):
        following = places[index + 1] if index + 1 < len(places) else None
        opener = _opener_of(text, place, open_marks)
        if opener and _can_close(text, place, following):
            while text[popped := stack.pop()] != opener:
                open_marks[text[popped]] -= 1
            open_marks[opener] -= 1
            yield popped, place
        elif _can_open(text, place):
            stack.append(place)
            open_marks[text[place]] = open_marks.get(text[place], 0) + 1


def _opener_of(text: str, place: int, open_marks: Mapping[str, int]) -> str | None:
    mark = text[place]
    return next((opener for opener, count in open_marks.items() if count and mark in _CLOSES[opener]), None)


def _can_open(text: str, place: int) -> bool:
    mark, before, after = text[place], text[place - 1 : place], text[place + 1 : place + 2]
    if mark not in _CLOSES or not after or (after.isspace() and mark not in "«‹"):
        return False
    if mark in _DIRECTED:
        return True
    if before.isalnum() and (before.isascii() or mark in _SINGLE):
        return False
    return not (mark in _SINGLE and _APHAERESIS.match(text, place + 1))


def _can_close(text: str, place: int, following: int | None) -> bool:
    mark, before, after = text[place], text[place - 1 : place], text[place + 1 : place + 2]
    if mark in "」』»›«‹":
        return True
    if before.isspace() or (after.isalnum() and (after.isascii() or mark in "'’‘")):
        return False
    closes_later = following is not None and text[following] == mark and not text[following - 1].isspace()
    if mark == '"' and before.isdigit() and closes_later:
        return False  # 5'10" inside a quotation
    return not (mark in "'’" and before in "sS" and after == " " and closes_later)  # the dogs' bowls


def block_text(text: str) -> str:
    """Return the text of a block quote.

    Its marks, a last line with its author and enclosing quotation marks are removed.
    """
    said = _BLOCK_MARK.sub("", text).strip()
    body, _, last = said.rpartition("\n")
    if body and len(last) <= _BYLINE_CHARS and last.lstrip().startswith(tuple(_DASHES)):
        said = body.rstrip()
    inner = find_quotes(said)
    return inner[0].text if len(inner) == 1 and len(inner[0].text) >= len(said) - 3 else said


def quoted_texts(text: str) -> list[str]:
    """Return the quoted texts, in order: runs between quotation marks, and block quotes whole."""
    found: list[str] = []
    end = 0
    for block in _BLOCK.finditer(text):
        found += [quote.text for quote in find_quotes(text[end : block.start()])]
        found.append(block_text(block.group()))
        end = block.end()
    return [each for each in found + [quote.text for quote in find_quotes(text[end:])] if each.strip()]


def is_term(text: str) -> bool:
    """Return whether a quoted run is a term, a name, a title or a question rather than somebody's words."""
    found = words(text)
    if len(found) <= _TERM_WORDS:
        return True
    if text.rstrip()[-1:] == "?" or _ASKS.match(text):
        return True
    content = [word for word in found if word.stem not in STOPWORDS]
    titled = all(word.text[:1].isupper() or word.is_number for word in content)
    return titled and found[0].text[:1].isupper() and text.rstrip()[-1:] not in ".!;"
