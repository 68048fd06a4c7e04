"""Edits one member of a JSON object in its bytes, so that all the other bytes stay as they were sent."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

import orjson

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],:]', re.DOTALL)
_SPACE = b" \t\n\r"


def loads(raw: bytes | str) -> Any:
    """The value of a JSON text; what orjson refuses (NaN, lone surrogates, huge integers) the standard library reads.

    Raises ValueError when it is no JSON at all.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        try:
            return json.loads(raw)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def dumps(value: Any) -> bytes:
    """A value as compact UTF-8 JSON; lone surrogates are escaped."""
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        return json.dumps(value, separators=(",", ":")).encode()


def without(body: bytes, names: Collection[str]) -> bytes:
    """`body`, a JSON object, less its top-level members called `names`; every other byte stays."""
    cuts = [(start, end) for name, start, _, end in _members(body) if name in names]
    for start, end in reversed(cuts):
        after = end + _space(body, end)
        if body[after : after + 1] == b",":
            body = body[:start] + body[after + 1 + _space(body, after + 1) :]
        else:
            before = len(body[:start].rstrip(_SPACE))
            body = body[: before - 1 if body[before - 1 : before] == b"," else before] + body[end:]
    return body


def replaced(body: bytes, name: str, value: Any) -> bytes:
    """`body`, a JSON object, with the value of its top-level member `name` changed; every other byte stays."""
    for found, _, value_start, end in reversed(list(_members(body))):
        if found == name:
            body = body[:value_start] + dumps(value) + body[end:]
    return body


def with_member(body: bytes, name: str, value: bytes) -> bytes:
    """`body`, a JSON object, with one member added at its end; `value` is JSON already."""
    end = body.rstrip(_SPACE).rfind(b"}")
    comma = b"" if body[:end].rstrip(_SPACE).endswith(b"{") else b","
    return body[:end] + comma + dumps(name) + b":" + value + body[end:]


def _members(body: bytes) -> Iterator[tuple[str, int, int, int]]:
    """Yields (name, start of the name, start of the value, end of the value) for each top-level member."""
    depth = 0
    name: str | None = None
    name_start = value_start = 0
    awaiting_name = True
    for match in _TOKEN.finditer(body):
        mark = match.group()
        if mark in b"{[":
            depth += 1
        elif depth > 1:
            depth -= mark in b"}]"
        elif mark in b",}":
            if name is not None:
                yield name, name_start, value_start, len(body[: match.start()].rstrip(_SPACE))
            name, awaiting_name = None, True
            depth -= mark == b"}"
        elif mark == b":":
            value_start = match.end() + _space(body, match.end())
        elif awaiting_name and depth == 1:
            name, name_start, awaiting_name = loads(mark), match.start(), False
        if depth == 0:
            return


def _space(body: bytes, start: int) -> int:
    end = start
    while body[end : end + 1] in (b" ", b"\t", b"\n", b"\r"):
        end += 1
    return end - start
