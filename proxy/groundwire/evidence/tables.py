"""Render the rows of tables and JSON records together with the names of their rows and columns.

A row is rendered as `Revenue (in millions) | 2024: 4.2 | 2023: 3.9`: cells joined by " | ", each as `column: value`.
The first cell has no prefix if its column has no name; the row group above it and the scale of the table follow it in
brackets. A row without column names is rendered as its cells, `Revenue | 4.2 | 3.9`; a row of two as `Age: 30`.

A record is rendered as `price: 3 | address.city: Paris`, each value after its path. Small objects are one text; larger
ones are split into groups of adjacent fields. `heading` has the path and the name of the record.

The length is limited: a wide row gives several texts, each with its first cell, and a long cell or string is a separate
text. Names are clipped, so the total length is linear in the table.
"""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

from groundwire.text.jsontext import Node, offsets_of

_DELIMITER = frozenset(" \t|:+=-")
_NUMBER = re.compile(r"[-+(~<>≈±]*\s*(?:[$€£¥₹]|[A-Z]{3}\s)?\s*[-+(]?\d[\d,.\s]*(?:%|[a-zA-Z]{1,3})?\)?\s*[%*†]?$")
_YEAR = re.compile(r"(?:FY|CY|Q[1-4]|H[12])?['’ ]{0,2}(?:(?:19|20)\d\d[AEF]?|\d\d)?$", re.IGNORECASE)
_MONEY = (
    r"(?:[$€£¥₹]|(?:US|EU)[$D]|US dollars?|EUR|GBP|CHF|JPY|INR|CAD|AUD|CNY|SEK|NOK|DKK|euros?|dollars?|pounds?|yen|"
    r"rupees?)"
)
_SIZE = r"(?:thousand|million|billion|crore|lakh|mio|mln|mn|bn|mm|m|k)s?"
_SCALE = re.compile(
    rf"\b(?:in )?{_MONEY} ?(?:in )?{_SIZE}\b|\b{_SIZE} (?:of )?{_MONEY}(?!\w)|\b(?:thousand|million|billion)s\b|"
    r"(?:[a-z]{1,12}|[$€£¥₹])? ?\bin (?:[$€£¥₹] ?|[a-z]{2,8} )?(?:thousand|million|billion|crore|lakh)s?"
    r"(?: of [a-z$. ]{1,20})?(?:,? except [a-z/ -]{1,50})?"
    r"|[$€£¥₹] ?(?:thousand|million|billion|mn|bn|m|000)s?\b|['’]000s?\b|\b000s\b",
    re.IGNORECASE,
)
_SIGNS = frozenset("$€£¥₹")
_CURRENCY_GAP = re.compile(r"([$€£¥₹])\s+(?=[\d(])")
_TABLE_TAG = re.compile(r"<(/?)(table|tr|td|th|caption)\b([^<>]*)>", re.IGNORECASE)
_TAG = re.compile(r"<[/!a-zA-Z][^<>]*>")
_COLSPAN = re.compile(r"colspan\s*=\s*[\"']?(\d{1,2})", re.IGNORECASE)
_MOST_HEADER_ROWS = 3
_HEAD_SIGHT = 8  # rows that are read to recognise a head
MAX_FIELDS, MAX_READING = 24, 1200
"""Maximum cells and characters of one text; further ones of the row go into another text."""
MAX_NAME = 120
"""Maximum length of the name of a row, a column or a group, which many texts repeat."""


class Row(NamedTuple):
    """The cells of one row and its span; `named` if the markup marks them as column names."""

    start: int
    end: int
    cells: list[str]
    named: bool = False


class Piece(NamedTuple):
    """A span with its rendering, and the heading or the row group above it ("" if there is none)."""

    start: int
    end: int
    text: str
    heading: str = ""


ReadText = Callable[[str], Iterator[str]]
"""Cut a long cell into texts that are read separately."""


class _Names(NamedTuple):
    """The head of a table: a name per column, and the scale of its numbers."""

    columns: tuple[str, ...]
    scale: str


def read_rows(rows: Sequence[Row], read_text: ReadText, caption: str = "") -> Iterator[Piece]:
    """Yield the rendering of every row of a table; rows of its heads give their bare cells. Linear in the table."""
    rows = [row._replace(cells=_joined_signs(row.cells)) for row in rows]
    starts = [0, *(place for place in range(1, len(rows) - 2) if _begins_head(rows[place : place + _HEAD_SIGHT]))]
    for start, end in pairwise([*starts, len(rows)]):
        yield from _read_block(rows[start:end], read_text, caption)


def _read_block(rows: Sequence[Row], read_text: ReadText, caption: str) -> Iterator[Piece]:
    """Yield the renderings of one head and the rows under it."""
    head = _head_size(rows)
    titles = [row.cells[0] for row in rows[:head] if _is_title(row.cells)]
    names = _names([row for row in rows[:head] if not _is_title(row.cells)], " ".join([caption, *titles]))
    for row in rows[:head]:
        for text in _joined_fields("", [cell for cell in row.cells if cell], read_text):
            yield Piece(row.start, row.end, text, "")
    group = next((title for title in titles if not _is_scale(title)), "")[:MAX_NAME]
    for row in rows[head:]:
        title = _group_title(row.cells)
        if title:
            group = title[:MAX_NAME]
        texts = _joined_fields("", [title], read_text) if title else _readings(row.cells, names, group, read_text)
        for text in texts:
            yield Piece(row.start, row.end, text, "" if title else group)


def _begins_head(rows: Sequence[Row]) -> bool:
    """Return whether a new head begins: one name that spans columns, with the column names below it."""
    filled = [cell for cell in rows[0].cells if cell]
    if rows[0].cells[0] or len(filled) != 1 or not _looks_like_names(rows[0].cells):
        return False
    return len([cell for cell in rows[1].cells[1:] if cell]) > 1 and _head_size(rows) > 1


def _readings(cells: Sequence[str], names: _Names, group: str, read_text: ReadText) -> Iterator[str]:
    if len(cells) > len(names.columns) == len([cell for cell in cells if cell]):
        cells = [cell for cell in cells if cell]  # currency signs in separate cells had shifted the numbers
    columns = [(name, cell) for name, cell in zip_longest(names.columns, cells, fillvalue="") if cell]
    if not columns:
        return
    (first_name, first), rest = columns[0], columns[1:]
    aside = "; ".join(filter(None, (group.rstrip(" :"), names.scale)))
    lead = f"{first_name}: {first}" if first_name and first != first_name else first
    if len(cells) == 2 and len(rest) == 1 and not first_name and not rest[0][0]:
        name = f"{first.rstrip(' :')}{f' ({aside})' if aside else ''}"
        if len(name) + len(rest[0][1]) <= MAX_READING:
            yield f"{name}: {rest[0][1]}"
            return
    if aside and not cells[0]:
        lead, rest = f"({aside})", columns
    elif aside:
        lead = f"{lead.rstrip(' :')} ({aside})"
    yield from _joined_fields(lead, [f"{name}: {cell}" if name else cell for name, cell in rest], read_text)


def _joined_fields(lead: str, fields: Sequence[str], read_text: ReadText) -> Iterator[str]:
    """Yield the fields of a row after its lead, in one text or in as many as the limits require."""
    size = len(lead) + sum(map(len, fields))
    if len(fields) <= MAX_FIELDS and size <= MAX_READING:
        yield " | ".join(filter(None, (lead, *fields)))
        return
    if len(lead) > MAX_NAME:
        yield from read_text(lead)
        lead = lead[:MAX_NAME]
    group: list[str] = []
    width = 0
    for field in fields:
        if group and (len(group) == MAX_FIELDS or width + len(field) > MAX_READING // 2):
            yield " | ".join(filter(None, (lead, *group)))
            group, width = [], 0
        if len(field) > MAX_READING // 2:
            yield from (f"{lead} | {text}" if lead else text for text in read_text(field))
        else:
            group.append(field)
            width += len(field)
    if group:
        yield " | ".join(filter(None, (lead, *group)))


def _joined_signs(cells: Sequence[str]) -> list[str]:
    """Return cells with a lone currency sign joined to the number after it, a lone `)` or `%` to the one before."""
    joined = [_spaced(cell) for cell in cells]
    for column, cell in enumerate(joined):
        if len(cell) > 2:
            continue
        if cell in _SIGNS and column + 1 < len(joined) and joined[column + 1][:1].isdigit():
            joined[column], joined[column + 1] = "", cell + joined[column + 1]
        elif cell in (")", "%", ")%") and column and joined[column - 1][-1:].isdigit():
            joined[column - 1], joined[column] = joined[column - 1] + cell, ""
    return joined


def _spaced(cell: str) -> str:
    """Return a cell with single spaces, and none after a currency sign."""
    if cell.isalnum():
        return cell
    cell = " ".join(cell.split())
    return cell if _SIGNS.isdisjoint(cell) else _CURRENCY_GAP.sub(r"\1", cell)


def _head_size(rows: Sequence[Row]) -> int:
    """Return the number of rows at the top that contain names: those marked so, else those unlike the rows below.

    Titles may be above the names. Of several rows of names only one may name the first column, unless the other cells
    of the further ones are years.
    """
    named = 0
    while named < min(len(rows), _MOST_HEADER_ROWS) and rows[named].named:
        named += 1
    if named or len(rows) < 2:
        return named
    size = titles = next((place for place, row in enumerate(rows[:3]) if not _is_title(row.cells)), 0)
    has_corner = False
    while size < min(len(rows) - 1, titles + _MOST_HEADER_ROWS) and _looks_like_names(rows[size].cells):
        corner, *others = rows[size].cells
        if corner and has_corner and not all(_YEAR.match(cell) for cell in others if cell):
            break
        has_corner = has_corner or bool(corner)
        size += 1
    if size == titles:
        return 0
    if size - titles > 1 and not any(_is_number(cell) for row in rows[size:][:_HEAD_SIGHT] for cell in row.cells[1:]):
        size = titles + 1  # a table of words: only the first row is the head
    if size == 1 and max(len(row.cells) for row in rows) == 2 and rows[0].cells[0]:
        return int(all(_is_number(row.cells[-1]) or row.cells[-1].isdigit() for row in rows[1:]))
    return size


def _is_title(cells: Sequence[str]) -> bool:
    """Return whether only the first of several cells is filled."""
    return len(cells) > 1 and bool(cells[0]) and not any(cells[1:])


def _looks_like_names(cells: Sequence[str]) -> bool:
    others = [cell for cell in cells[1:] if cell]
    return bool(others) and not any(_is_number(cell) for cell in others)


def _is_number(cell: str) -> bool:
    return len(cell) <= 40 and bool(_NUMBER.match(cell)) and not _YEAR.match(cell)


def _names(head: Sequence[Row], caption: str) -> _Names:
    """Return column names from stacked head rows: a name extends over empty cells to its right, a lone one over all."""
    width = max((len(row.cells) for row in head), default=0)
    columns = [""] * width
    for row in head:
        filled = [cell for cell in row.cells if cell]
        reach = filled[0] if len(filled) == 1 and width > 1 else ""
        for column in range(width):
            cell = row.cells[column] if column < len(row.cells) else ""
            if cell and not (len(filled) == 1 and len(head) > 1):
                reach = cell if column else ""
            name = (cell or reach) if column or len(filled) > 1 else ""
            if column and len(filled) == 1 and len(head) > 1:
                name = filled[0]
            if name and not _is_scale(name) and name not in columns[column]:
                columns[column] = f"{columns[column]} {name}".strip()
    stated = " ".join([caption, *(cell for row in head for cell in row.cells)])
    scale = _SCALE.search(stated)
    shown = any(scale.group() in column for column in columns) if scale else True
    columns = [column[:MAX_NAME].rstrip(" :").replace("_", " ") for column in columns]  # as in the keys of records
    return _Names(tuple(columns), scale.group().strip(" ,()") if scale and not shown else "")


def _is_scale(name: str) -> bool:
    match = _SCALE.search(name)
    return match is not None and len(match.group()) >= len(name.strip("() ")) - 3


def _group_title(cells: Sequence[str]) -> str:
    """Return the title of a row group: the only filled cell of its row, or the same text in at least three."""
    filled = [cell for cell in cells if cell]
    if len(cells) > 1 and filled and cells[0] and (len(filled) == 1 or (len(filled) > 2 and len(set(filled)) == 1)):
        return filled[0]
    return ""


def pipe_rows(text: str, lines: Sequence[tuple[int, int]]) -> list[Row]:
    """Return the rows of lines with cells separated by pipes, with or without a delimiter row under the head."""
    rows: list[Row] = []
    shown = [text[start:end].strip() for start, end in lines]
    opens, closes = (sum(line[place] == "|" for line in shown) * 4 >= len(shown) * 3 for place in (0, -1))
    for (start, end), line in zip(lines, shown, strict=True):
        if "-" in line and _DELIMITER.issuperset(line):
            rows = [row._replace(named=True) for row in rows] if len(rows) <= _MOST_HEADER_ROWS else rows
            continue
        if opens and line[0] == "|":  # otherwise the pipe ends an empty first cell
            line = line[1:]
        if opens and closes and line[-1:] == "|":
            line = line[:-1]
        rows.append(
            Row(start, end, [cell.replace("\\|", "|").strip(" \t*_`") for cell in re.split(r"(?<!\\)\|", line)])
        )
    return rows


def separated_rows(text: str, lines: Sequence[tuple[int, int]], delimiter: str) -> list[Row]:
    """Return the rows of CSV or TSV lines; a quoted cell may continue over up to 50 further lines."""
    rows: list[Row] = []
    index = 0
    while index < len(lines):
        start, end = lines[index]
        last = index
        while text.count('"', start, end) % 2 and last + 1 < len(lines) and last - index < 50:
            last += 1
            end = lines[last][1]
        try:
            cells = next(csv.reader([text[start:end]], delimiter=delimiter))
        except (csv.Error, StopIteration):
            cells, last, end = text[start : lines[index][1]].split(delimiter), index, lines[index][1]
        rows.append(Row(start, end, [cell.strip() for cell in cells]))
        index = last + 1
    return rows


def html_rows(text: str, start: int, end: int) -> tuple[list[Row], str]:
    """Return the rows and the caption of the HTML table in `text[start:end]`. Unclosed cells and rows are accepted."""
    rows: list[Row] = []
    cells: list[str] = []
    row_start = content = start
    open_tag, span, headings, caption = "", 1, 0, ""

    def close_cell(at: int) -> None:
        nonlocal caption, open_tag, headings
        if open_tag in ("td", "th"):
            cell = " ".join(html.unescape(_TAG.sub(" ", text[content:at])).split())
            cells.extend([cell] + [""] * (span - 1))
            headings += open_tag == "th"
        elif open_tag == "caption":
            caption = " ".join(_TAG.sub(" ", text[content:at]).split())
        open_tag = ""

    def close_row(at: int) -> None:
        nonlocal cells, headings
        close_cell(at)
        if cells:
            rows.append(Row(row_start, at, cells, named=headings == len([cell for cell in cells if cell]) > 0))
        cells, headings = [], 0

    for tag in _TABLE_TAG.finditer(text, start, end):
        name = tag[2].lower()
        if name in ("tr", "table"):
            close_row(tag.end() if tag[1] else tag.start())
            row_start = tag.end() if tag[1] else tag.start()
            continue
        close_cell(tag.start())
        if not tag[1]:
            colspan = _COLSPAN.search(tag[3]) if len(tag[3]) < 500 else None
            open_tag, content, span = name, tag.end(), max(1, int(colspan[1])) if colspan else 1
    close_row(end)
    return rows, caption


_MOST_FIELDS = 12
_WIDEST = 600
_LONG_STRING = 160
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|_+")
_LONGEST_NAME, _LONGEST_PATH = 120, 240  # characters; every text below repeats them
_NAMING_KEYS = ("name", "title", "label", "id", "key", "symbol", "date")


ReadString = Callable[[str], Iterator[Piece]]


def read_records(text: str, node: Node, read_text: ReadString, path: str = "", heading: str = "") -> Iterator[Piece]:
    """Yield the renderings of a tree; `read_text` cuts strings that are long enough to be separate texts.

    Recursive to the depth of the tree, which `read_tree` limits. Linear in its size.
    """
    items = node.items or []
    if node.leaves and _is_small(node):
        yield Piece(node.value_start, node.end, " | ".join(_fields(text, node, path)), heading)
        return
    naming = _naming(items) if node.in_object else None
    if naming:
        heading = " ".join(filter(None, (heading, str(naming.value))))[-_LONGEST_PATH:]
    group: list[Node] = []
    for item in items:
        if not _is_small(item) or (item.in_object and not node.in_object):
            yield from _group(text, group, path, heading, naming)
            group = []
            step = _joined(path, item.key) if node.in_object else path
            yield from _large(text, item, step, heading, read_text)
        else:
            if len(group) == _MOST_FIELDS:
                yield from _group(text, group, path, heading, naming)
                group = []
            group.append(item)
    yield from _group(text, group, path, heading, naming)


def _large(text: str, item: Node, path: str, heading: str, read_text: ReadString) -> Iterator[Piece]:
    if item.items is not None:
        yield from read_records(text, item, read_text, path, heading)
        return
    start, end = item.value_start + 1, item.end - 1
    places = offsets_of(text, start, end)
    for low, high, reading, inner in read_text(str(item.value)):
        first, last = (places[low], places[high]) if places else (start + low, start + high)
        yield Piece(first, last, reading, inner or heading or path)


def _group(text: str, group: list[Node], path: str, heading: str, naming: Node | None) -> Iterator[Piece]:
    """Yield the rendering of adjacent fields, preceded by the field that names their record."""
    if not group:
        return
    led = group if naming is None or naming in group else [naming, *group]
    fields = [field for item in led for field in _named_fields(text, item, path)]
    if fields:
        yield Piece(group[0].start, group[-1].end, " | ".join(fields), heading)


def _fields(text: str, node: Node, path: str) -> list[str]:
    if not node.in_object:
        values = ", ".join(
            text[item.value_start : item.end] if item.items else _shown(text, item) for item in node.items or []
        )
        return [f"{path}: {values}" if path else values]
    return [field for item in node.items or [] for field in _named_fields(text, item, path)]


def _named_fields(text: str, item: Node, path: str) -> list[str]:
    name = path if isinstance(item.key, int) else _joined(path, item.key)
    if item.items is None:
        return [f"{name}: {_shown(text, item)}" if name else _shown(text, item)]
    return _fields(text, item, name) if item.leaves else []


def _is_small(node: Node) -> bool:
    if node.items is None:
        return not isinstance(node.value, str) or (node.width <= _LONG_STRING and "\n" not in node.value.strip())
    if node.leaves > _MOST_FIELDS or node.width > _WIDEST:
        return False
    return all(_is_small(item) and (node.in_object or not item.in_object) for item in node.items)


def _naming(items: list[Node]) -> Node | None:
    """Return the first short field of an object that names it, if any."""
    named = (item for item in items if item.items is None and item.width <= 80 and str(item.value))
    return next((item for item in named if str(item.key).lower() in _NAMING_KEYS), None)


def _shown(text: str, item: Node) -> str:
    if isinstance(item.value, str):
        return item.value
    written = text[item.value_start : item.end]
    return written.lower() if written in ("True", "False", "None") else written


def _joined(path: str, key: str | int) -> str:
    step = _HUMP.sub(" ", str(key)[:_LONGEST_NAME]).strip()
    return f"{path}.{step}"[-_LONGEST_PATH:] if path else step
