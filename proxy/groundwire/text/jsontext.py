"""Parse JSON text with the span of every value, so that a field can be cited in the text that contains it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

_TOKEN = re.compile(
    r"[ \t\n\r]*(?:"
    r"(?P<string>\"[^\"\\\x00-\x1f]*(?:\\.[^\"\\\x00-\x1f]*)*\"|'[^'\\\x00-\x1f]*(?:\\.[^'\\\x00-\x1f]*)*')"
    r"|(?P<mark>[\[\]{},:])"
    r"|(?P<scalar>-?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Infinity)|true|false|null|NaN|True|False|None|nan))"
)
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_PYTHON_NAMES = {"True": True, "False": False, "None": None, "nan": float("nan")}
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_DEEPEST, _MOST_VALUES = 64, 100_000
_LONG_INTEGER = 100  # digits

Scalar = str | int | float | bool | None


class Value(NamedTuple):
    """One scalar: its path from the root (keys and indices), its decoded value, and its span in the text.

    The span of a string excludes its quotation marks.
    """

    path: tuple[str | int, ...]
    value: Scalar
    start: int
    end: int

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer (RFC 6901)."""
        return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in self.path)


@dataclass(slots=True)
class Node:
    """A value in a tree: a scalar, or a container with its `items`.

    `start` is the offset of the key, or of the value if it has none; `value_start` that of the value. Both and `end`
    include the quotation marks of a string. `leaves` is the number of scalars below it, `width` their total length as
    written.
    """

    key: str | int
    start: int
    value_start: int
    end: int = 0
    value: Scalar = None
    items: list[Node] | None = None
    in_object: bool = False
    leaves: int = 0
    width: int = 0


def parse_object(text: str) -> dict[str, object] | list[object] | None:
    """Return the JSON object or array that `text` is, or None if it is anything else."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, (dict, list)) else None


def scalars(text: str) -> Iterator[Value]:
    """Yield each scalar value of a JSON text that `parse_object` accepts, in order. Linear and not recursive."""
    path: list[str | int] = []
    in_object: list[bool] = []
    awaiting_key = False
    position = 0
    while match := _TOKEN.match(text, position):
        position = match.end()
        if mark := match["mark"]:
            if mark in "{[":
                in_object.append(mark == "{")
                path.append("" if mark == "{" else 0)
                awaiting_key = mark == "{"
            elif mark in "}]":
                in_object.pop()
                path.pop()
                awaiting_key = False
                if not in_object:
                    return
            elif mark == ",":
                awaiting_key = in_object[-1]
                if not awaiting_key:
                    path[-1] = int(path[-1]) + 1
            continue
        kind = "string" if match["string"] is not None else "scalar"
        start, end = match.span(kind)
        value = _decode(match[kind])
        if awaiting_key:
            path[-1] = str(value)
            awaiting_key = False
        elif kind == "string":
            yield Value(tuple(path), value, start + 1, end - 1)
        else:
            yield Value(tuple(path), value, start, end)


class Misfit(NamedTuple):
    """Text that cannot be parsed; `end` is the offset at which parsing stopped."""

    end: int


@dataclass(slots=True)
class _Builder:
    """A tree under construction: its open containers, and the key whose value comes next."""

    open: list[Node] = field(default_factory=list)
    key: str | None = None
    key_start: int = 0

    def start_of(self, position: int) -> tuple[str | int, int]:
        """Return the key (or index) and the start of a value that begins at `position`."""
        if self.key is not None:
            return self.key, self.key_start
        return (len(self.open[-1].items or ()) if self.open else 0), position

    def close(self, node: Node, end: int) -> None:
        """End `node` and append it to the innermost open container."""
        node.end = end
        self.key = None
        if self.open:
            parent = self.open[-1]
            assert parent.items is not None  # noqa: S101 -- only containers are open
            parent.items.append(node)
            parent.leaves += node.leaves
            parent.width += node.width


def read_tree(text: str, position: int = 0) -> Node | Misfit:
    """Parse the object or array at `position`, as JSON or as Python prints it (`{'a': None}`).

    Returns a `Misfit` for text that is malformed, cut off, nested deeper than 64 levels, or of more than 100,000
    values. Linear and not recursive.
    """
    tree, expects, values = _Builder(), "value", 0
    while match := _TOKEN.match(text, position):
        kind = match.lastgroup or "mark"
        written, (start, position) = match[kind], match.span(kind)
        if kind != "mark":
            if expects in ("key", "key or end") and kind == "string":
                tree.key, tree.key_start, expects = str(_decode(written)), start, "colon"
                continue
            values += 1
            if not tree.open or expects not in ("value", "value or end") or values > _MOST_VALUES:
                return Misfit(position)
            key, begin = tree.start_of(start)
            tree.close(Node(key, begin, start, value=_decode(written), leaves=1, width=position - start), position)
            expects = "comma"
        elif written in "{[":
            if expects not in ("value", "value or end") or len(tree.open) == _DEEPEST:
                return Misfit(position)
            key, begin = tree.start_of(start)
            tree.open.append(Node(key, begin, start, items=[], in_object=written == "{"))
            tree.key, expects = None, "key or end" if written == "{" else "value or end"
        elif written in "}]":
            if not tree.open or expects not in ("comma", "key or end", "value or end"):
                return Misfit(position)
            node = tree.open.pop()
            if node.in_object != (written == "}"):
                return Misfit(position)
            tree.close(node, position)
            if not tree.open:
                return node
            expects = "comma"
        elif written == ":" and expects == "colon":
            expects = "value"
        elif written == "," and expects == "comma":
            expects = "key" if tree.open[-1].in_object else "value"
        else:
            return Misfit(position)
    return Misfit(position)


def offsets_of(text: str, start: int, end: int) -> list[int] | None:
    """Return the offset of each decoded code point of the string written in `text[start:end]` (without its quotes).

    The list has one more entry, for the end. None if nothing is escaped, so that offsets are the same.
    """
    if text.find("\\", start, end) < 0:
        return None
    places: list[int] = []
    for escape in _ESCAPE.finditer(text, start, end):
        places += range(start, escape.start() + 1)
        start = escape.end()
    return [*places, *range(start, end), end]


def _decode(written: str) -> Scalar:
    if written[0] in "\"'" and "\\" not in written:
        return written[1:-1]
    if written.isdecimal() and written[0] != "0" and len(written) < _LONG_INTEGER:
        return int(written)
    if written in _PYTHON_NAMES:
        return _PYTHON_NAMES[written]
    try:
        value: Scalar = json.loads(written)
    except ValueError:  # a string as Python writes it, or a number longer than Python reads
        return _ESCAPE.sub(_unescaped, written[1:-1]) if written[0] in "\"'" else written
    return value


def _unescaped(escape: re.Match[str]) -> str:
    """Decode one escape of a Python string; an unknown escape decodes to its last character."""
    code = escape.group()[1:]
    if code[0] in "ux" and len(code) > 1:
        return str(json.loads(f'"\\u00{code[1:]}"' if code[0] == "x" else f'"{escape.group()}"'))
    return _PLAIN_ESCAPES.get(code, code)
