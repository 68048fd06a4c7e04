"""Normalise text for the comparison of quotations, and map offsets in the result back to the original text."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import category, is_normalized, normalize

from groundwire.caches import memo_of_words

_INVISIBLE = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
_PIECE = re.compile(
    # Printable ASCII with single spaces, stopping one short of a character that might combine with the last one.
    r"(?P<plain>[!-;=-~]+(?:[ \n\t][!-;=-~]+)*(?![^\x00-\x7f]))"
    r"|(?P<space>\s+)"
    r"|</?(?P<tag>[A-Za-z][A-Za-z0-9:-]*+)(?:\s[^<>=]*=[^<>]*|\s*)/?>"
    r"|<![^<>]*>"
    rf"|[{_INVISIBLE}]+"
    r"|(?P<other>[\s\S][^\x00-\x7f\s]*)"
)
_BLOCK_TAGS = frozenset(
    "address article aside blockquote body br caption dd div dl dt figcaption figure footer h1 h2 h3 h4 h5 h6 header "
    "hr html li main nav ol option p pre section table tbody td tfoot th thead title tr ul".split()
)
_VANISHING = frozenset(
    code
    for first, last in re.findall(r"(.)(?:-(.))?", _INVISIBLE)
    for code in range(ord(first), ord(last or first) + 1)
)
_TYPOGRAPHY: dict[int, str | None] = {
    **dict.fromkeys(map(ord, "“”„‟«»″‶〝〞"), '"'),
    **dict.fromkeys(map(ord, "‘’‚‛‹›′‵´"), "'"),
    **dict.fromkeys(map(ord, "‐‑‒–—―−⁃﹘﹣－"), "-"),
    ord("⁄"): "/",
    **dict.fromkeys(_VANISHING),
}


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text with the mapping to its original.

    Piece `i` begins at `places[i]` in `text`; `pieces[i]` is `(start, end, whole)` with its span in the original. A
    piece that is `whole` maps as a unit, any other one character by character.
    """

    text: str
    places: tuple[int, ...]
    pieces: tuple[tuple[int, int, bool], ...]

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original text that the non-empty span `[start, end)` of `text` came from."""
        first, last = bisect_right(self.places, start) - 1, bisect_right(self.places, end - 1) - 1
        began, _, whole = self.pieces[first]
        origin_start = began if whole else began + start - self.places[first]
        began, ended, whole = self.pieces[last]
        return origin_start, ended if whole else began + end - self.places[last]


def fold(text: str) -> Folded:
    """Return `text` under NFKC and case folding, with straight quotes, ASCII hyphens and single spaces.

    Invisible characters and tags are dropped; a tag of a block element leaves a space, as a reader sees a break there.
    Folding is idempotent, except where removing a tag leaves another one behind. Linear in the length of the text.
    """
    if text.isascii() and "<" not in text and text.isprintable() and "  " not in text and text == text.strip():
        return Folded(text.lower(), (0,), ((0, len(text), False),))
    builder = _Builder()
    for match in _PIECE.finditer(text):
        start, end = match.span()
        if match.lastgroup == "plain":
            builder.add(match.group().replace("\n", " ").replace("\t", " ").lower(), start, end, whole=False)
        elif match.lastgroup == "space" or (match["tag"] and match["tag"].lower() in _BLOCK_TAGS):
            builder.add(" ", start, end, whole=True)
        elif match.lastgroup == "other":
            _add_unicode(builder, match.group(), start)
    return builder.build()


class _Builder:
    """Collect folded pieces, with no two spaces in a row."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.places: list[int] = []
        self.pieces: list[tuple[int, int, bool]] = []
        self.length = 0

    def add(self, text: str, start: int, end: int, *, whole: bool) -> None:
        """Append the folded `text` that came from `[start, end)` of the original."""
        if text.startswith(" ") and (not self.parts or self.parts[-1].endswith(" ")):
            text = text[1:]
        if not text:
            return
        self.parts.append(text)
        self.places.append(self.length)
        self.pieces.append((start, end, whole))
        self.length += len(text)

    def build(self) -> Folded:
        return Folded("".join(self.parts).rstrip(" "), tuple(self.places), tuple(self.pieces))


def _add_unicode(builder: _Builder, run: str, start: int) -> None:
    """Fold a run of non-ASCII characters, after at most one ASCII character, each with its combining marks."""
    straight = run.translate(_TYPOGRAPHY).casefold()
    if len(straight) == len(run) and is_normalized("NFKC", run) and is_normalized("NFKC", straight):
        builder.add(straight, start, start + len(run), whole=False)
        return
    position = 0
    while position < len(run):
        end = position + 1
        while end < len(run) and _combines(run[end]):
            end += 1
        builder.add(_fold_cluster(run[position:end]), start + position, start + end, whole=True)
        position = end


@lru_cache(maxsize=4096)
def _combines(char: str) -> bool:
    """Return whether `char` may combine with the one before it: a mark, a Hangul vowel or final, an invisible one."""
    return category(char)[0] == "M" or "\u1160" <= char <= "\u11ff" or char in "\uff9e\uff9f" or ord(char) in _VANISHING


@memo_of_words(4096, 16)
def _fold_cluster(cluster: str) -> str:
    folded = normalize("NFKC", cluster.translate(_TYPOGRAPHY)).casefold()
    return " ".join(re.split(r"\s+", normalize("NFKC", folded).translate(_TYPOGRAPHY)))
