"""Split one block of text into sentences: the boundaries of the library, corrected for the answers of models.

A citation after the full stop belongs to the sentence before it. There is no boundary inside a quotation, a
parenthesis, code or a link. A line break ends a sentence unless the line was merely wrapped.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from sentencex import get_sentence_boundaries

QUOTE_LIMIT = 600
"""Maximum length of a quotation in characters; an opening mark without a closing one in this range is ignored."""

_WINDOW = 4096
_WRAPPED_LINE = 60

# Marks that the library pairs in quadratic time (_KEEP pairs them instead), and CJK stops (see _CJK_END).
_MASK = str.maketrans(
    dict.fromkeys("\"'`“”‘’«»‹›„‚「」『』《》〈〉【】", "*") | dict.fromkeys("。！？｡", "x") | {"\n": " "}
)

_KEEP = re.compile(
    rf'(?<![\w"])"(?=[^\s"])[^"]{{1,{QUOTE_LIMIT}}}+"(?!\w)'
    rf"|“[^“”]{{1,{QUOTE_LIMIT}}}+”"
    rf"|«[^«»]{{1,{QUOTE_LIMIT}}}+»"
    rf"|„[^„“”]{{1,{QUOTE_LIMIT}}}+[“”]"
    rf"|「[^「」]{{1,{QUOTE_LIMIT}}}+」"
    rf"|『[^『』]{{1,{QUOTE_LIMIT}}}+』"
    rf"|(?<!\w)‘(?:[^‘’]|(?<=\w)’(?=\w)){{1,{QUOTE_LIMIT}}}+’(?!\w)"
    r"|(?<![\w'])'(?=[A-Z])(?:[^'\n]|(?<=\w)'(?=\w)){1,200}+'(?!\w)"
    r"|`[^`\n]{1,300}+`"
    r"|\([^()]{1,300}+\)"
    r"|\[[^\[\]]{1,300}+\]"
    r"|https?://[^\s<>]{1,500}+"
)
_CJK_END = re.compile(r"[。！？｡]++(?:[」』”’\"）)]++(?!\w))?+")
_CLOSED = re.compile(r"[.!?…][\"'”“’»*_)\]¹²³⁴-⁹]++(?=\s++[\"“‘*_(]*+[A-Z])")
_PARTED = re.compile(r"(?<=[\w'\"] )[!?]++(?=\s)")  # "is it ? it is": text joined from tokens
_CLOSERS = re.compile(r"[\"'”’»*_)\]]+")
_CLOSING = frozenset("\"'”’»*_)]")
_CITING = frozenset("[【(¹²³⁰⁴⁵⁶⁷⁸⁹")
_ILL = re.compile(r"\bill\.\s(?=[A-Z])")  # not the state, which is "Ill."
_WORD = re.compile(r"[^\W_]")
_GLUED = re.compile(
    r"[a-z]{2}\.(?!Com|Net|Org|Name)(?:[A-Z][a-z]{2,20}+(?=[\s,])|(?:It|In|He|We|If|As|At|On|To|A|I)\s)"
)
_CITES = re.compile(
    r"(?:[ \t]?(?:\[\^?[^\[\]\n]{0,30}\d[^\[\]\n]{0,30}\](?:\(https?://[^\s()]{1,300}\))?|【[^【】\n]{1,40}】|[¹²³⁰⁴-⁹]+"
    r"|\((?:source|doc|document|passage|ref)s?\.?[ \t:#]?[^()\n]{0,30}\d[^()\n]{0,10}\)))+(?=\s|$|[.,;])[.]?",
    re.IGNORECASE,
)
_BREAK = re.compile(r"\n[ \t>]*+(?=[^\W_a-z]|[\[\"“*|])")
_ENUMERATOR = re.compile(r"\W*(?:\d{1,3}|[A-Za-z])[.)]\W*$")
_SHORTENED = frozenset("approx no nos fig figs eq sec ch vol pp p art para ca est min max avg dept st vs".split())
_UNFINISHED = frozenset(
    "a an the of in on at to for by with from and or but nor as is are was were be that which who than into its "
    "their his her mr mrs ms dr st".split()
)
_LINE_ENDS = frozenset(".!?:;。|")
_LAST_WORD = re.compile(r"([^\W\d_]+)\.?$")


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans `(start, end)` of the sentences of one block, without the white space around them.

    Every letter and digit of `text` is in exactly one span. Accepts any Unicode; lazy, and linear in the length.
    """
    start = 0
    for cut in chain(_cuts(text), (len(text),)):
        piece = text[start:cut]
        if cut <= start or (cut < len(text) and len(piece) < 12 and _ENUMERATOR.match(piece)):
            continue
        if _WORD.search(piece):
            stripped = piece.strip()
            first = start + piece.index(stripped)
            yield first, first + len(stripped)
        start = cut


def _cuts(text: str) -> Iterator[int]:
    """Yield the offsets at which a new sentence begins, in order."""
    cuts = heapq.merge(
        (cut for found in library_cuts(text) if (cut := _shift(text, found))),
        (match.end() for match in _CLOSED.finditer(text) if _closes_a_sentence(text, match)),
        (match.end() for match in _PARTED.finditer(text)),
        (match.end() for match in _CJK_END.finditer(text)),
        (match.start() + 1 for match in _BREAK.finditer(text) if _ends_line(text, match.start())),
    )
    cuts = heapq.merge(cuts, (match.end() for match in _ILL.finditer(text)))
    return _outside(cuts, (match.span() for match in _KEEP.finditer(text)))


def kept_whole(text: str) -> list[tuple[int, int]]:
    """Return the spans without boundaries: quotations, parentheses, brackets, code and URLs of bounded length."""
    return [match.span() for match in _KEEP.finditer(text)]


def _outside(cuts: Iterable[int], spans: Iterator[tuple[int, int]]) -> Iterator[int]:
    """Yield the cuts that are strictly inside none of the spans."""
    start, end = next(spans, (0, 0))
    for cut in cuts:
        while end <= cut and end:
            start, end = next(spans, (0, 0))
        if not (start < cut < end):
            yield cut


def library_cuts(text: str) -> Iterator[int]:
    """Yield the offsets at which the library ends a sentence, in order.

    Unlike the library, it is linear and accepts any Unicode. The library is called on one window at a time; the next
    window begins at the last boundary found in the one before.
    """
    start = 0
    while start < len(text):
        window = text[start : start + _WINDOW].translate(_MASK)
        if not _WORD.search(window):
            start += len(window)
            continue
        ends = [start + boundary["end_index"] for boundary in _boundaries(window)]
        if start + len(window) < len(text):
            ends.pop()  # the end of the window need not end a sentence
        yield from ends
        start = ends[-1] if ends else start + len(window)


def _boundaries(text: str) -> list[dict[str, int]]:
    try:
        found: list[dict[str, int]] = get_sentence_boundaries("en", text)
    except UnicodeEncodeError:  # the library does not accept lone surrogates
        found = get_sentence_boundaries("en", re.sub("[\ud800-\udfff]", "x", text))
    return found


def _shift(text: str, cut: int) -> int:
    """Move a boundary after the closing marks and citations that belong to its sentence; return 0 to drop it."""
    if cut >= len(text):
        return 0
    end = cut
    while end and text[end - 1].isspace():
        end -= 1
    if end == cut and not text[cut].isspace() and _is_one_name(text, cut):
        return 0
    if (closed := _closed(text, end)) > end:
        end = closed
        if _follower(text, end).islower():
            return 0
    follower = _follower(text, end)
    if follower and follower in _CITING and (cites := _CITES.match(text, end)):
        return cites.end() if not _follower(text, cites.end()).islower() else max(cut, end)
    if follower.islower() and text[end - 1] == "]":
        return text.rindex("[", 0, end) if "[" in text[max(0, end - 40) : end] else cut
    if (
        follower.isdigit()
        and (word := _LAST_WORD.search(text[max(0, end - 12) : end]))
        and word[1].lower() in _SHORTENED
    ):
        return 0
    return max(cut, end)


def _closed(text: str, end: int) -> int:
    """Return the end of the closing marks at `end` if white space or nothing follows them; else `end`."""
    if end < len(text) and text[end] in _CLOSING and (closers := _CLOSERS.match(text, end)):
        return closers.end() if closers.end() == len(text) or text[closers.end()].isspace() else end
    return end


def _follower(text: str, end: int) -> str:
    """Return the first character after `end`, at most one space away."""
    return text[end : end + 2].lstrip()[:1]


def _is_one_name(text: str, cut: int) -> bool:
    """Return whether a full stop without a space after it is inside a name such as "Node.Js"."""
    return text[cut - 1] == "." and text[cut].isalnum() and not _GLUED.match(text, max(0, cut - 3))


def _closes_a_sentence(text: str, match: re.Match[str]) -> bool:
    """Return whether closing marks end a sentence: a parenthesis only if it contains a whole sentence."""
    if ")" not in match.group():
        return True
    opening = text.rfind("(", max(0, match.start() - 300), match.start())
    before = text[max(0, opening - 3) : opening].rstrip()
    return opening >= 0 and (not before or before[-1] in ".!?")


def _ends_line(text: str, newline: int) -> bool:
    """Return whether a line break ends a sentence.

    It does after a hard break, sentence punctuation or an empty line, and after a short line unless that ends in a
    comma or a function word.
    """
    line = text[text.rfind("\n", 0, newline) + 1 : newline]
    bare = line.strip()
    if not bare or bare[-1] in _LINE_ENDS or line[-2:] == "  " or bare[-1] == "\\":
        return True
    if len(bare) >= _WRAPPED_LINE or bare[-1] == ",":
        return False
    return bare.rpartition(" ")[2].rstrip(".").lower() not in _UNFINISHED
