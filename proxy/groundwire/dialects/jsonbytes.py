"""Parse and write JSON, and edit members of an object in its bytes, of which all others stay unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from groundwire.dialects.largejson import Member, members, parse, parse_large

# a text is light up to _LIGHT bytes, or up to _LIGHT_TEXT bytes with at most _LIGHT_VALUES commas and opening brackets
_LIGHT, _LIGHT_TEXT, _LIGHT_VALUES = 2**15, 2**17, 2**12
_PIECE = 2**20
_OPEN = ord("{")
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]', re.DOTALL)


def loads(raw: bytes | str) -> Any:
    """Parse a JSON text in UTF-8, with the standard library if pydantic rejects it (NaN, lone surrogates).

    Raises ValueError when it is not JSON.
    """
    try:
        return parse(raw)
    except ValueError:
        try:
            return json.loads(raw if isinstance(raw, str) else raw.decode())  # given bytes, it would accept UTF-16 too
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def is_light(raw: bytes) -> bool:
    """Return whether a JSON text can be parsed and edited within a few milliseconds."""
    size = len(raw)
    if size <= _LIGHT:
        return True
    return size <= _LIGHT_TEXT and raw.count(b",") + raw.count(b"[") + raw.count(b"{") <= _LIGHT_VALUES


def loads_object(raw: bytes, skipped: Collection[str] = ()) -> Any:
    """Parse a JSON object, in small steps and without the members in `skipped` if it is not light (see `parse_large`).

    Raises ValueError when the text is not JSON. A light text may hold any value; for others, ValueError is also raised
    when it is not an object, and ValuesTooLarge when it holds too many values.
    """
    return loads(raw) if is_light(raw) else parse_large(raw, skipped)


def dumps(value: Any) -> bytes:
    """Return a value as compact UTF-8 JSON; lone surrogates are escaped."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:
        return json.dumps(value, separators=(",", ":")).encode()


def without(body: bytes, names: Collection[str]) -> bytes:
    """Remove the top-level members in `names` from a JSON object; the bytes of the others stay unchanged."""
    found = list(_members(body))
    kept = [at for at, member in enumerate(found) if member.name not in names]
    if len(kept) == len(found):
        return body
    pieces = [*_cut(body, 0, found[0].start)]
    for place, at in enumerate(kept):
        before = found[at - 1].end if place else found[at].start
        pieces += _cut(body, before, found[at].end)
    return b"".join((*pieces, *_cut(body, found[-1].end, len(body))))


def replaced(body: bytes, name: str, value: Any) -> bytes:
    """Replace the value of a top-level member of a JSON object, if present; every other byte stays unchanged."""
    pieces: list[bytes] = []
    end = 0
    for member in _members(body):
        if member.name == name:
            pieces += (*_cut(body, end, member.value), dumps(value))
            end = member.end
    return b"".join((*pieces, *_cut(body, end, len(body)))) if pieces else body


def with_member(body: bytes, name: str, value: bytes, inside: Sequence[str] = ()) -> bytes:
    """Add a member at the end of a JSON object; `value` is JSON text.

    It is added to the innermost object that exists on the path `inside`, or to `body` if there is none.
    """
    for member in _members(body) if inside else ():
        if member.name == inside[0] and body[member.value : member.value + 1] == b"{":
            added = with_member(body[member.value : member.end], name, value, inside[1:])
            return b"".join((*_cut(body, 0, member.value), added, *_cut(body, member.end, len(body))))
    end = body.rindex(b"}")
    comma = b"" if body[_back_over_space(body, end) - 1] == _OPEN else b","
    return b"".join((*_cut(body, 0, end), comma, dumps(name), b":", value, body[end:]))


def _cut(body: bytes, start: int, end: int) -> Iterator[bytes]:
    """Yield a part of a body in pieces: copying a large one at once would hold the GIL, joining pieces does not."""
    for at in range(start, end, _PIECE):
        yield body[at : min(at + _PIECE, end)]


def _members(body: bytes) -> Iterator[Member]:
    return _members_of_light(body) if is_light(body) else members(body)


def _members_of_light(body: bytes) -> Iterator[Member]:
    depth = 0
    name: str | None = None
    start = value = 0
    for match in _TOKEN.finditer(body):
        mark = match.group()
        if depth == 1 and mark in (b",", b"}"):
            if name is not None:
                yield Member(name, start, value, _back_over_space(body, match.start()))
            name = None
        elif depth == 1 and mark == b":":
            value = _over_space(body, match.end())
        elif depth == 1 and name is None:
            name, start = loads(mark), match.start()
        depth += (mark in (b"{", b"[")) - (mark in (b"}", b"]"))
        if depth == 0:
            return


def _over_space(body: bytes, start: int) -> int:
    while body[start] in b" \t\n\r":
        start += 1
    return start


def _back_over_space(body: bytes, end: int) -> int:
    while body[end - 1] in b" \t\n\r":
        end -= 1
    return end
