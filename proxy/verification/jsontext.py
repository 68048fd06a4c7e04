"""JSON text read with the place of every value, so that what a field says can be cited in the text that carried it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r'[ \t\n\r]*(?:(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")|(?P<mark>[\[\]{},:])'
    r"|(?P<scalar>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null))"
)


class Value(NamedTuple):
    """One scalar: its path from the root (keys and indices), its decoded value, and its span in the text.

    The span of a string lies inside its quotation marks.
    """

    path: tuple[str | int, ...]
    value: str | int | float | bool | None
    start: int
    end: int

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer (RFC 6901)."""
        return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in self.path)


def parse_object(text: str) -> dict[str, object] | list[object] | None:
    """The JSON object or array that `text` is, or None when it is anything else."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, (dict, list)) else None


def scalars(text: str) -> Iterator[Value]:
    """Every scalar of a JSON text that `parse_object` accepted, in order, with its span. Linear, never recursive."""
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
        value = json.loads(match[kind])
        if awaiting_key:
            path[-1] = value
            awaiting_key = False
        elif kind == "string":
            yield Value(tuple(path), value, start + 1, end - 1)
        else:
            yield Value(tuple(path), value, start, end)
