"""Cut the text of a source into the passages that are read separately.

Prose gives sentences; one of more than 400 characters and 100 words gives overlapping windows of 80 words. A line that
is separate (a list item, a heading, `key: value`) is never joined with its neighbours. Rows of tables (pipes, CSV, TSV,
HTML) and JSON records are rendered with their names, as `tables.py` describes. Only lines of
punctuation, such as rules, and markup are left out.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import chain, pairwise

from groundwire.evidence.tables import Piece, Row, html_rows, pipe_rows, read_records, read_rows, separated_rows
from groundwire.text.jsontext import Misfit, Node, read_tree
from groundwire.text.sentences import library_cuts

Line = tuple[int, int]

_TAG = re.compile(r"<[/!a-zA-Z][^<>]*>|&(?:#\d{1,6}|#x[0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
_INLINE_TAG = re.compile(
    r"</?(?:a|b|i|u|s|em|strong|span|code|sup|sub|mark|small|font|abbr|cite|q|label)[\s/>]", re.IGNORECASE
)
_TABLE = re.compile(r"<(/?)table\b[^<>]*>", re.IGNORECASE)
_LIST_ITEM = re.compile(r"(?:[-*+•‣◦▪·–]|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)])\s")
_KEY_VALUE = re.compile(r"[^\W\d_][^:\n]{0,60}:\s")
_HEADING = re.compile(r"#{1,6}\s+(.*?)[\s#]*$")
_BOLD_HEADING = re.compile(r"(?:\*\*|__)([^*_]{1,100}):?(?:\*\*|__):?$")
_RULE = frozenset("-=*_#~+|:`\"'.<> \t\r")
_TOKEN = re.compile(r"\S{1,40}")
_ENDS_SENTENCE = re.compile(r"[.!?:;。！？…][)\]\"'”’*]{0,3}$")
_LONGEST_CHARS, _WINDOW, _STRIDE = 400, 80, 60
_WRAPPED_FROM = 50
_SHORT_CELL = 48
_DELIMITERS = ("\t", ",", ";")
_ONE_NUMBER = re.compile(r"\d{1,3},\d{3}|\d+,\d{1,2}")
_MOST_QUOTED_LINES = 50


def cut(text: str) -> Iterator[Piece]:
    """Yield the passages of `text` in reading order. Linear in its length, for any Unicode text.

    The rendering of prose is its slice, with tags and character references replaced by text of the same length.
    """
    position = 0
    for start, end in _html_tables(text):
        yield from _cut_lines(text, position, start)
        rows, caption = html_rows(text, start, end)
        if caption:
            yield Piece(start, rows[0].start if rows else end, caption)
        yield from _cut_table(rows, caption, caption)
        position = end
    yield from _cut_lines(text, position, len(text))


def _html_tables(text: str) -> Iterator[Line]:
    """Yield the spans of outermost HTML tables that contain a row."""
    depth = start = 0
    for tag in _TABLE.finditer(text):
        if not tag[1]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth and "<t" in text[start + 1 : tag.end()]:
                yield start, tag.end()


def _cut_lines(text: str, low: int, high: int) -> Iterator[Piece]:
    """Yield the passages of `text[low:high]`, which contains no HTML table."""
    plain = text[low:high]
    if "<" in plain or "&" in plain:
        plain = _TAG.sub(_same_length, plain)
    for piece in _Reader(plain).pieces():
        yield piece._replace(start=piece.start + low, end=piece.end + low) if low else piece


def _same_length(match: re.Match[str]) -> str:
    """Return text of the same length: spaces for an inline tag, a line break for another one, a decoded reference."""
    token = match.group()
    if token[0] == "&":
        return html.unescape(token).ljust(len(token))[: len(token)]
    return " " * len(token) if _INLINE_TAG.match(token) else " " * (len(token) - 1) + "\n"


class _Reader:
    """Read a text without HTML tables from top to bottom, with the last heading as state."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = _lines(text)
        self.heading = ""
        self.unreadable_to = 0  # up to this offset, parsing as JSON has failed
        self.untabled_to = 0  # up to this offset, parsing as CSV has failed

    def pieces(self) -> Iterator[Piece]:
        index = 0
        while index < len(self.lines):
            start, end = self.lines[index]
            if start == end or not _has_words(self.text, start, end):
                index += 1
                continue
            last = index + 1
            if self.text[start] in "[{" and start >= self.unreadable_to and (tree := self._json_at(start)):
                for reading in read_records(self.text, tree, cut):
                    yield reading if reading.heading else reading._replace(heading=self.heading)
                while index < len(self.lines) and self.lines[index][0] < tree.end:
                    index += 1
                continue
            while last < len(self.lines) and "|" in self.text[start:end] and "|" in self.text[slice(*self.lines[last])]:
                last += 1
            rows = pipe_rows(self.text, self.lines[index:last]) if last - index > 1 else self._separated(index)
            if rows:
                last = max(last, index + 1)
                while last < len(self.lines) and self.lines[last][0] < rows[-1].end:
                    last += 1
                yield from _cut_table(rows, self._caption(index), self.heading)
            else:
                last = self._paragraph_end(index)
                yield from self._paragraph(index, last)
            index = last

    def _json_at(self, start: int) -> Node | None:
        """Return the JSON value that begins at `start` and fills its lines, if there is one."""
        tree = read_tree(self.text, start)
        self.unreadable_to = tree.end
        if isinstance(tree, Misfit) or not tree.leaves:
            return None
        rest = self.text.find("\n", tree.end)
        trailing = self.text[tree.end : rest if rest >= 0 else len(self.text)].strip(" \t\r,;`")
        is_citation_mark = not tree.in_object and tree.leaves == 1
        return None if trailing or is_citation_mark else tree

    def _separated(self, index: int) -> list[Row]:
        """Return the rows of the CSV or TSV that begins at line `index`; none if these lines are not a table."""
        start, end = self.lines[index]
        if start < self.untabled_to or index + 1 == len(self.lines):
            return []
        for delimiter in _DELIMITERS:
            count = self.text.count(delimiter, start, end)
            if not count or any(len(cell) > _SHORT_CELL for cell in self.text[start:end].split(delimiter)):
                continue
            last = self._delimited_run(index, delimiter, count)
            if last - index > 1 and (count > 1 or self._are_pairs(self.lines[index:last], delimiter)):
                rows = separated_rows(self.text, self.lines[index:last], delimiter)
                if len({len(row.cells) for row in rows}) == 1 and _like_a_table(rows, delimiter):
                    return rows
                self.untabled_to = max(self.untabled_to, self.lines[last - 1][1])
        return []

    def _are_pairs(self, lines: list[Line], delimiter: str) -> bool:
        """Return whether lines with one delimiter each are a table of two columns, not prose or a list of numbers."""
        shown = [self.text[start:end] for start, end in lines]
        if delimiter == "\t":
            return True
        return not any(f"{delimiter} " in line for line in shown) and not all(map(_ONE_NUMBER.fullmatch, shown))

    def _delimited_run(self, index: int, delimiter: str, count: int) -> int:
        """Return the line after those with `count` delimiters, like line `index`, or inside an open quotation."""
        quoted = 0
        while index < len(self.lines) and quoted <= _MOST_QUOTED_LINES:
            start, end = self.lines[index]
            marks = self.text.count('"', start, end)
            if not quoted and not marks and self.text.count(delimiter, start, end) != count:
                break
            if not quoted and marks and self.text.find(delimiter, start, end) < 0:
                break
            quoted = (quoted + 1 if quoted else 0) if marks % 2 == 0 else (0 if quoted else 1)
            index += 1
        return index

    def _caption(self, index: int) -> str:
        """Return the line above the table at line `index`, if it is short and at most one empty line away."""
        for above in range(index - 1, max(-1, index - 3), -1):
            start, end = self.lines[above]
            if end > start:
                return self.text[start:end] if end - start <= 200 else ""
        return ""

    def _paragraph_end(self, index: int) -> int:
        """Return the line after the paragraph that begins at line `index`: the end of its wrapped lines."""
        while index + 1 < len(self.lines) and self._is_wrapped(self.lines[index], self.lines[index + 1]):
            index += 1
        return index + 1

    def _is_wrapped(self, line: Line, following: Line) -> bool:
        if following[0] == following[1] or line[0] == line[1]:
            return False
        first, second = self.text[line[0] : line[1]], self.text[following[0] : following[1]]
        if _LIST_ITEM.match(second) or second[0] in "#{[<>`=" or "|" in second or _HEADING.match(first):
            return False
        if second[0].islower() and not _KEY_VALUE.match(second):
            return True
        if len(first) < _WRAPPED_FROM or _KEY_VALUE.match(second):
            return False
        return len(second) >= _WRAPPED_FROM or not _ENDS_SENTENCE.search(first[-4:])

    def _paragraph(self, first: int, last: int) -> Iterator[Piece]:
        start, end = self.lines[first][0], self.lines[last - 1][1]
        heading = self._heading(first) if last == first + 1 else ""
        if heading:
            self.heading = heading
            yield Piece(start, end, self.text[start:end])
            return
        for low, high in _sentences(self.text[start:end]):
            yield Piece(start + low, start + high, self.text[start + low : start + high], self.heading)

    def _heading(self, index: int) -> str:
        """Return the text of a heading: a line with a heading mark, or a short one alone above a text; else ""."""
        line = self.text[slice(*self.lines[index])]
        if len(line) > 120:
            return ""
        if marked := _HEADING.match(line) or _BOLD_HEADING.match(line):
            return marked[1].strip()
        if line[:6].lower() == "title:":
            return line[6:].strip()
        following = self.lines[index + 1] if index + 1 < len(self.lines) else (0, 0)
        if following[0] == following[1]:
            alone = (
                index + 1 < len(self.lines)
                and len(line) <= 80
                and (index == 0 or self.lines[index - 1][0] >= self.lines[index - 1][1])
            )
            return line if alone and not _ENDS_SENTENCE.search(line[-4:]) and not _KEY_VALUE.match(line) else ""
        return line if not _RULE.difference(self.text[slice(*following)]) else ""


def _lines(text: str) -> list[Line]:
    """Return the spans of the lines of `text`, without the white space around them."""
    spans: list[Line] = []
    position = 0
    for line in text.split("\n"):
        stripped = line.strip()
        start = position + (len(line) - len(line.lstrip()) if stripped else 0)
        spans.append((start, start + len(stripped)))
        position += len(line) + 1
    return spans


def _has_words(text: str, start: int, end: int) -> bool:
    return end - start > 400 or not _RULE.issuperset(text[start:end])


def _like_a_table(rows: list[Row], delimiter: str) -> bool:
    """Return whether delimited lines are a table rather than prose: short cells, a head of names, no sentences."""
    if delimiter == "\t":
        return True
    cells = [cell for row in rows[:20] for cell in row.cells]
    if sum(map(len, cells)) > 30 * len(cells) or not all(rows[0].cells[1:]):
        return False
    if any(_ENDS_SENTENCE.search(row.cells[-1][-4:]) for row in rows[:20]):
        return False
    return not any(cell[:1].isdigit() and not cell.isdigit() for cell in rows[0].cells)


def _cut_table(rows: list[Row], caption: str, heading: str) -> Iterator[Piece]:
    for row in read_rows(rows, _read_cell, caption):
        if row.text:
            yield row if row.heading else row._replace(heading=heading)


def _read_cell(text: str) -> Iterator[str]:
    """Yield the sentences of a long cell."""
    return (text[low:high] for low, high in _sentences(text))


def _sentences(text: str) -> Iterator[Line]:
    """Yield the spans of a paragraph's sentences: "1." stays with the text after it, long ones give windows."""
    held = -1
    for low, high in pairwise(chain((0,), library_cuts(text), (len(text),))):
        sentence = text[low:high]
        low += len(sentence) - len(sentence.lstrip())
        high = low + len(sentence.strip())
        if low >= high:
            continue
        low, held = (held, -1) if held >= 0 else (low, held)
        if high - low <= 4 and not any(map(str.isalpha, text[low:high])) and len(text) > high:
            held = low
        else:
            yield from _windows(text, low, high)
    if held >= 0:
        yield held, len(text.rstrip())


def _windows(text: str, low: int, high: int) -> Iterator[Line]:
    if high - low <= _LONGEST_CHARS:
        yield low, high
        return
    tokens = [token.span() for token in _TOKEN.finditer(text, low, high)]
    if len(tokens) <= _WINDOW + _WINDOW // 4:
        yield low, high
        return
    for first in range(0, len(tokens) - (_WINDOW - _STRIDE), _STRIDE):
        window = tokens[first : first + _WINDOW]
        yield window[0][0], window[-1][1]
