"""Split Markdown into blocks with exact offsets, line by line, and find the citation marks in it.

It is strictly linear in the text, uses code-point offsets, and is lenient where models write loose Markdown (bullets
such as "•", under-indented sublists, fences that never close). It follows CommonMark and GitHub's tables otherwise.
Lines end in LF, CRLF or CR.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from typing import Literal, NamedTuple

BlockKind = Literal["paragraph", "heading", "list_item", "quote", "table_header", "table_row", "code", "html", "rule"]

LEAD_LIMIT = 400


class Block(NamedTuple):
    """A run of lines of one kind, without list, quote and heading markers at its edges.

    `lead` is text needed to understand the block: the line ending in ":" (else the heading) above a list, followed by
    the parent item; the header cells of a table row joined by " | ". It is at most `LEAD_LIMIT` characters long.
    `quoted` means that the block is in a block quote; then `text[start:end]` still has the quote markers of all lines
    but the first.
    """

    kind: BlockKind
    start: int
    end: int
    lead: str = ""
    quoted: bool = False


class _Line(NamedTuple):
    """A line without its margins, and the offset of its text.

    `indent` is its column, not counting quote markers, and `depth` the number of these.
    """

    text: str
    start: int
    indent: int
    depth: int


class _Item(NamedTuple):
    """An open list item: the columns of its marker and of its content, and the lead of its children."""

    marker: int
    content: int
    lead: str


_BLANK = _Line("", 0, 0, 0)
_QUOTE_MARKS = re.compile(r"(?:>[ \t]{0,3})+")
_MARKER = re.compile(
    r"(?:[-+*•‣◦▪●–]|\d{1,3}[.)]|\((?:\d{1,3}|[a-z])\)|[a-z]\))(?=[ \t]|$)[ \t]*(?:\[[ xX]\](?=[ \t])[ \t]*)?"
)
_HEADING = re.compile(r"#{1,6}(?=[ \t]|$)[ \t]*")
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_DELIMITER = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$")
_PIPE = re.compile(r"(?<!\\)\|")
_RAW_HTML = re.compile(r"<(script|pre|style|textarea)(?=[\s>]|$)|<!--", re.IGNORECASE)
_HTML = re.compile(
    r"</?(?:address|article|aside|blockquote|body|center|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]"
    r"|head|header|hr|html|li|main|nav|ol|p|section|summary|table|tbody|td|tfoot|th|thead|title|tr|ul)(?=[\s/>]|$)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w")
_STARTERS = frozenset("#-+*•‣◦▪●–=_`~<>|(0123456789")
_NOTHING = frozenset(("", *"-*+•#|=:.,;<>[](){}'\"!?/\\"))
_MOST_LINES = 4096
_MAX_NESTING = 16


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of `text` in order, with disjoint spans. Linear in the length of any text."""
    return _Scanner(text).scan()


class _Scanner:
    """A single pass over the lines, which keeps the open list items and the last lead-in and heading."""

    def __init__(self, text: str) -> None:
        self.lines = _lines(text)
        self.items: list[_Item] = []
        self.lead_in = ""
        self.heading = ""
        self.nesting = 0

    def scan(self) -> Iterator[Block]:
        place = 0
        while place < len(self.lines):
            line = self.lines[place]
            if line.text in _NOTHING:
                place += 1
                continue
            marker = self._marker(line)
            if self.items:
                self._leave_items(line, is_item=marker is not None)
            if marker is not None and (self.items or line.indent < 4):
                place = self._open_item(place, marker)
                continue
            self.nesting = 0
            if line.indent - self._content() >= 4:
                end = self._indented_code_end(place)
                yield self._block("code", place, end)
            elif not _may_start(line.text) and "|" not in line.text:
                end = yield from self._paragraph(place)
            elif fence := _fence(line):
                end = self._fence_end(place, fence)
                yield self._block("code", place, end)
            elif self._is_table(place):
                end = self._table_end(place)
                yield from self._table(place, end)
            elif _is_rule(line.text):
                end = place + 1
                yield self._block("rule", place, end)
            elif heading := _HEADING.match(line.text):
                end = place + 1
                yield from self._atx(line, heading.end())
            elif line.text[0] == "<" and _RAW_HTML.match(line.text):
                end = self._raw_html_end(place)
                yield self._block("code", place, end)
            elif line.text[0] == "<" and _HTML.match(line.text):
                end = self._html_end(place)
                yield self._block("html", place, end)
            elif not _WORD.search(line.text):
                end = place + 1
            else:
                end = yield from self._paragraph(place)
            place = end

    def _block(self, kind: BlockKind, place: int, end: int) -> Block:
        first, last = self.lines[place], self.lines[end - 1]
        ends = max(last.start + len(last.text), first.start + len(first.text))
        return Block(kind, first.start, ends, quoted=first.depth > 0)

    # Lists

    def _content(self) -> int:
        return self.items[-1].content if self.items else 0

    def _marker(self, line: _Line) -> re.Match[str] | None:
        if not _may_start(line.text) or _is_rule(line.text) or self.nesting >= _MAX_NESTING:
            return None
        return _MARKER.match(line.text)

    def _leave_items(self, line: _Line, is_item: bool) -> None:
        while self.items and line.indent < (self.items[-1].marker + 1 if is_item else self.items[-1].content):
            self.items.pop()

    def _open_item(self, place: int, marker: re.Match[str]) -> int:
        """Open the list item on this line; the text after its marker replaces the line, to be read next."""
        line = self.lines[place]
        content = line.indent + marker.end()
        rest = line.text[marker.end() :]
        lead = self.items[-1].lead if self.items else self.lead_in or self.heading
        half = LEAD_LIMIT // 2
        self.items.append(_Item(line.indent, content, f"{lead[-half:]} {rest[: half - 1]}".strip()))
        self.nesting += 1
        if rest:
            self.lines[place] = _line(rest, line.start + marker.end(), content, line.depth)
            return place
        return place + 1

    # Blocks of several lines: each finder returns the index after the last line of the block that begins at `place`

    def _fence_end(self, place: int, mark: str) -> int:
        opening = self.lines[place]
        for end in range(place + 1, len(self.lines)):
            line = self.lines[end]
            if line.text and line.depth < opening.depth:
                return end
            if line.text.startswith(mark) and not line.text.strip(mark[0]) and line.indent < opening.indent + 4:
                return end + 1
        return len(self.lines)

    def _indented_code_end(self, place: int) -> int:
        content, last = self._content(), place
        for end in range(place + 1, len(self.lines)):
            line = self.lines[end]
            if line.text and line.indent < content + 4:
                break
            if line.text:
                last = end
        return last + 1

    def _raw_html_end(self, place: int) -> int:
        tag = _RAW_HTML.match(self.lines[place].text)
        closing = f"</{tag[1].lower()}>" if tag and tag[1] else "-->"
        ends = (end + 1 for end in range(place, len(self.lines)) if closing in self.lines[end].text.lower())
        return next(ends, len(self.lines))

    def _html_end(self, place: int) -> int:
        return next((end for end in range(place + 1, len(self.lines)) if not self.lines[end].text), len(self.lines))

    def _paragraph_end(self, place: int) -> tuple[int, BlockKind]:
        opening = self.lines[place]
        for end in range(place + 1, len(self.lines)):
            line = self.lines[end]
            if not line.text or line.depth > opening.depth:
                return end, "paragraph"
            if line.text[0] in "=-" and line.depth == opening.depth and not line.text.strip(line.text[0]):
                if line.indent - self._content() in range(4):
                    return end, "heading"
                if self.items and line.text[0] == "-" and len(line.text) > 2:
                    return end, "paragraph"
            if self._interrupts(end):
                return end, "paragraph"
        return len(self.lines), "paragraph"

    def _interrupts(self, place: int) -> bool:
        """Return whether this line begins a new block although there is no blank line before it."""
        line = self.lines[place]
        if not _may_start(line.text):
            return "|" in line.text and self._is_table(place)
        if marker := _MARKER.match(line.text):
            if line.indent - self._content() >= 4 and not self.items:
                return False
            if marker.end() == len(line.text) or self.items:
                return marker.end() < len(line.text)
            number = marker.group().strip(" \t.)(")
            return number in ("", "1", "a") or not number.isalnum()
        if line.indent - self._content() >= 4:
            return False
        return (
            _fence(line) is not None
            or self._is_table(place)
            or _is_rule(line.text)
            or _HEADING.match(line.text) is not None
            or (line.text[0] == "<" and (_HTML.match(line.text) or _RAW_HTML.match(line.text)) is not None)
        )

    # Headings and paragraphs

    def _atx(self, line: _Line, skip: int) -> Iterator[Block]:
        title = line.text[skip:]
        closed = title.rstrip("#")
        if not closed or closed[-1] in " \t":
            title = closed.rstrip()
        if title:
            self.heading, self.lead_in = title[:LEAD_LIMIT], ""
            start = line.start + skip
            yield Block("heading", start, start + len(title), quoted=line.depth > 0)

    def _paragraph(self, place: int) -> Generator[Block, None, int]:
        """Yield the paragraph (or underlined heading) that begins here; return the index of the line after it."""
        end, kind = self._paragraph_end(place)
        block = self._block(kind, place, end)
        last = self.lines[end - 1].text
        if kind == "heading":
            self.heading, self.lead_in = last[:LEAD_LIMIT], ""
            yield block
            return end + 1
        if block.quoted or self.items:
            yield block._replace(kind="quote" if block.quoted else "list_item", lead=self._item_lead())
        else:
            yield block
        if not self.items:
            self.lead_in = last[-LEAD_LIMIT:] if last.rstrip("*_ ").endswith(":") else ""
        return end

    def _item_lead(self) -> str:
        """Return the lead of the text here: in a list the lead-in and the parent item, never the item's text."""
        if not self.items:
            return self.lead_in
        return self.items[-2].lead if len(self.items) > 1 else self.lead_in or self.heading

    # Tables

    def _is_table(self, place: int) -> bool:
        if place + 1 >= len(self.lines):
            return False
        header, delimiter = self.lines[place], self.lines[place + 1]
        if not delimiter.text or delimiter.text[0] not in "|-:" or "|" not in header.text + delimiter.text:
            return False
        if not _DELIMITER.match(delimiter.text) or delimiter.depth != header.depth:
            return False
        return len(_cells(header.text)) == len(_cells(delimiter.text))

    def _table_end(self, place: int) -> int:
        for end in range(place + 2, len(self.lines)):
            line = self.lines[end]
            if not line.text or line.depth != self.lines[place].depth:
                return end
            if "|" not in line.text and self._interrupts(end):
                return end
        return len(self.lines)

    def _table(self, place: int, end: int) -> Iterator[Block]:
        header = " | ".join(_cells(self.lines[place].text))[:LEAD_LIMIT]
        yield _row("table_header", self.lines[place], "")
        for line in self.lines[place + 2 : end]:
            yield _row("table_row", line, header)


def _lines(text: str) -> list[_Line]:
    # replace CRLF and CR by text of the same length, so that offsets stay valid
    if "\r" in text:
        text = text.replace("\r\n", " \n").replace("\r", "\n")
    breaks = text.count("\n")
    if breaks > _MOST_LINES and breaks * 4 > len(text):
        text = text.replace("\n", " ")  # thousands of lines of a few characters are not Markdown
    lines: list[_Line] = []
    position = 0
    for raw in text.split("\n"):
        if not raw:
            lines.append(_BLANK)
        elif raw[0] > " " and raw[0] != ">":  # fast path for the most common case
            bare = raw.rstrip()
            lines.append(_Line(bare, position, 0, 0))
        elif raw[:2] == "> " and raw[2:3] not in ("", " ", "\t", ">"):  # fast path for a quoted line
            bare = raw[2:].rstrip()
            lines.append(_Line(bare, position + 2, 0, 1) if bare else _BLANK)
        else:
            lines.append(_line(raw, position, 0, 0))
        position += len(raw) + 1
    return lines


def _line(raw: str, start: int, column: int, depth: int) -> _Line:
    text = raw.lstrip()
    if not text:
        return _BLANK
    margin = len(raw) - len(text)
    if margin:
        column += len(raw[:margin].expandtabs(4)) if "\t" in raw[:margin] else margin
    if text[0] == ">" and (marks := _QUOTE_MARKS.match(text)):
        found = marks.group().count(">")
        inner = text[marks.end() :].lstrip()
        start += margin + len(text) - len(inner)
        # each marker includes one space after it; further spaces indent the text inside the quote
        column += max(0, len(text) - len(inner) - 2 * found)
        text = inner.rstrip()
        return _Line(text, start, column, depth + found)
    return _Line(text.rstrip(), start + margin, column, depth)


def _may_start(text: str) -> bool:
    """Return whether a line could begin a block other than a paragraph or a table; a quick first test."""
    return text[0] in _STARTERS or text[1:2] == ")"


def _fence(line: _Line) -> str | None:
    """Return the marks of the fence that this line opens, if it opens one."""
    fence = _FENCE.match(line.text)
    return fence[1] or fence[2] if fence else None


def _is_rule(text: str) -> bool:
    if len(text) < 3 or text[0] not in "-*_" or text[-1] != text[0]:
        return False
    return text.count(text[0]) >= 3 and not text.strip(f"{text[0]} \t")


def _cells(row: str) -> list[str]:
    row = row.removeprefix("|")
    if row.endswith("|") and not row.endswith("\\|"):
        row = row[:-1]
    return [cell.strip() for cell in _PIPE.split(row)]


def _row(kind: BlockKind, line: _Line, lead: str) -> Block:
    inner = line.text.strip("| \t")
    start = line.start + (line.text.find(inner) if inner else 0)
    return Block(kind, start, start + len(inner), lead, line.depth > 0)


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
