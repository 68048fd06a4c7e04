"""Edits one member of a JSON object in its bytes, so that all the other bytes stay as they were sent."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]', re.DOTALL)


def loads(raw: bytes | str) -> Any:
    """The value of a JSON text in UTF-8; what orjson refuses (NaN, lone surrogates) the standard library reads.

    Raises ValueError when it is no JSON at all.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        try:
            return json.loads(raw if isinstance(raw, str) else raw.decode())  # of bytes, it would take UTF-16 too
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
    members = list(_members(body))
    kept = [at for at, member in enumerate(members) if member.name not in names]
    if len(kept) == len(members):
        return body
    pieces = [body[: members[0].start]]
    for place, at in enumerate(kept):
        before = members[at - 1].end if place else members[at].start
        pieces.append(body[before : members[at].end])
    return b"".join((*pieces, body[members[-1].end :]))


def replaced(body: bytes, name: str, value: Any) -> bytes:
    """`body`, a JSON object, with the value of its top-level member `name` changed; every other byte stays."""
    for member in reversed(list(_members(body))):
        if member.name == name:
            body = body[: member.value] + dumps(value) + body[member.end :]
    return body


def with_member(body: bytes, name: str, value: bytes, inside: Sequence[str] = ()) -> bytes:
    """`body`, a JSON object, with one member added at its end; `value` is JSON already.

    It is added to the object that `inside` leads to from member to member, or where that leads nowhere, to `body`.
    """
    for member in _members(body) if inside else ():
        if member.name == inside[0] and body[member.value : member.value + 1] == b"{":
            added = with_member(body[member.value : member.end], name, value, inside[1:])
            return body[: member.value] + added + body[member.end :]
    end = body.rindex(b"}")
    comma = b"" if body[:end].rstrip().endswith(b"{") else b","
    return body[:end] + comma + dumps(name) + b":" + value + body[end:]


class _Member(NamedTuple):
    """A top-level member: its name, and where it starts, where its value starts, and where both end."""

    name: str
    start: int
    value: int
    end: int


def _members(body: bytes) -> Iterator[_Member]:
    depth = 0
    name: str | None = None
    start = value = 0
    for match in _TOKEN.finditer(body):
        mark = match.group()
        if depth == 1 and mark in (b",", b"}"):
            if name is not None:
                yield _Member(name, start, value, _back_over_space(body, match.start()))
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
