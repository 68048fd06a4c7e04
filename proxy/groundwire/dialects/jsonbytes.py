"""Parse and write JSON, and edit members of an object in its bytes, of which all others stay unchanged.

A JSON parser holds the GIL from the first byte to the last: 70 ms for 32 MiB of text, 600 ms for 6 MB of `[]`. Large
objects are therefore parsed in small steps, and the size of their values is bounded before these are built.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import PydanticSerializationError, from_json, to_json

# a text is light up to _LIGHT bytes, or up to _LIGHT_TEXT bytes with at most _LIGHT_VALUES commas and opening brackets
_LIGHT, _LIGHT_TEXT, _LIGHT_VALUES = 2**15, 2**17, 2**12
_BLANK = b" \t\n\r"
_OPEN = ord("{")


def loads(raw: bytes | str) -> Any:
    """Parse a JSON text in UTF-8, with the standard library if pydantic rejects it (NaN, lone surrogates).

    Raises ValueError when it is not JSON.
    """
    try:
        return from_json(raw, allow_inf_nan=False, cache_strings="keys")
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


def edited(body: bytes, dropped: Collection[str], values: Mapping[str, Any]) -> bytes:
    """Return a JSON object without the top-level members in `dropped` and with other `values` of those that exist.

    Every other byte stays unchanged.
    """
    found = list(members(body))
    kept = [at for at, member in enumerate(found) if member.name not in dropped]
    if len(kept) == len(found) and not any(member.name in values for member in found):
        return body
    pieces = [*_pieces(body, 0, found[0].start)]
    for place, at in enumerate(kept):
        member, start = found[at], found[at - 1].end if place else found[at].start
        if member.name in values:
            pieces += (*_pieces(body, start, member.value), dumps(values[member.name]))
        else:
            pieces += _pieces(body, start, member.end)
    return b"".join((*pieces, *_pieces(body, found[-1].end, len(body))))


def with_member(body: bytes, name: str, value: bytes, inside: Sequence[str] = ()) -> bytes:
    """Add a member at the end of a JSON object; `value` is JSON text.

    It is added to the innermost object that exists on the path `inside`, or to `body` if there is none.
    """
    for member in members(body) if inside else ():
        if member.name == inside[0] and body[member.value : member.value + 1] == b"{":
            added = with_member(body[member.value : member.end], name, value, inside[1:])
            return b"".join((*_pieces(body, 0, member.value), added, *_pieces(body, member.end, len(body))))
    end = last = body.rindex(b"}")
    while body[last - 1] in _BLANK:
        last -= 1
    comma = b"" if body[last - 1] == _OPEN else b","
    return b"".join((*_pieces(body, 0, end), comma, dumps(name), b":", value, body[end:]))


def _pieces(body: bytes, start: int, end: int) -> Iterator[bytes]:
    """Yield a part of a body in pieces: copying a large one at once would hold the GIL, joining pieces does not."""
    for at in range(start, end, 2**20):
        yield body[at : min(at + 2**20, end)]


MAX_STRING = 2**22  # characters of a string kept: more than any context uses
MAX_MEMBERS = 10_000
MIN_SIZE_LIMIT = 2**24

_STEP = 2**17  # bytes processed by one call of a C function
_STEP_VALUES = 5_000  # values built by one call
_MAX_DEPTH = 10  # nesting depth of arrays and objects larger than a step
_MAX_NESTING = 1_000  # levels, as many as Python reads
_MAX_MARKS = 200_000  # brackets read one by one
_CONTAINER, _ITEM = 200, 50  # bytes of an array or object, and of an item in it, without text

_SPACE = re.compile(rb"[ \t\n\r]*+")
_CHARS_ = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
_FLAT_ = rb'(?:[^"\[\]{}]|"%b")*+' % _CHARS_  # the inside of an array or object that contains no other
_FLAT_ONE_ = rb"\[%b\]|\{%b\}" % (_FLAT_, _FLAT_)
_WORD_ = rb"[-+.0-9A-Za-z]{1,4300}+"  # a number, true, false or null
_CHARS = re.compile(_CHARS_, re.DOTALL)
_STRING = re.compile(rb'"%b"' % _CHARS_, re.DOTALL)
_RUN = re.compile(rb'(?:[^"\[\]{}]|"%b"|%b)*+' % (_CHARS_, _FLAT_ONE_), re.DOTALL)
_ITEMS = re.compile(rb'(?:[ \t\n\r]*+(?:"%b"|%b|%b)[ \t\n\r]*+,)++' % (_CHARS_, _FLAT_ONE_, _WORD_), re.DOTALL)
_WORD = re.compile(_WORD_)
_ANY_WORD = re.compile(rb"[-+.0-9A-Za-z]++")
_LOW_SURROGATE = re.compile(rb"\\u[dD][c-fC-F]")


class ValuesTooLarge(ValueError):
    """A JSON text holds too many values for its size."""


class Member(NamedTuple):
    """A top-level member: its name, its start, the start of its value, and the end of both."""

    name: str
    start: int
    value: int
    end: int


def parse_large(raw: bytes, skipped: Collection[str] = ()) -> dict[str, Any]:
    """Parse a JSON object without its top-level members in `skipped`.

    Strings are cut at `MAX_STRING` characters. Raises ValuesTooLarge, and ValueError when `raw` is not a JSON object.
    """
    reader = _Reader(raw)
    return {each.name: reader.value(each.value, each.end) for each in reader.members() if each.name not in skipped}


def members(raw: bytes) -> Iterator[Member]:
    """Yield the top-level members of a JSON object; their values are not validated.

    Raises ValuesTooLarge, and ValueError when `raw` is not a JSON object.
    """
    return _Reader(raw, is_known=True).members()


class _Reader:
    """Read an object in steps; the numbers of one that `is_known`, parsed before, are not limited, nor is the nesting
    of a light one.
    """

    def __init__(self, raw: bytes, *, is_known: bool = False) -> None:
        self._raw = raw
        self._max_nesting = len(raw) if is_known and is_light(raw) else _MAX_NESTING
        self._word = _ANY_WORD if is_known else _WORD
        self._at = 0
        self._memory = max(MIN_SIZE_LIMIT, 2 * len(raw))
        self._marks = _MAX_MARKS
        self._ends: dict[int, int] = {}  # ends of long strings, by start

    def members(self) -> Iterator[Member]:
        """See `members`."""
        for count, member in enumerate(self._object(0)):
            if count == MAX_MEMBERS:
                raise ValuesTooLarge(f"the JSON object has over {MAX_MEMBERS} members")
            yield member
        if self._peek():
            raise ValueError("something follows the JSON object")

    # --- values -------------------------------------------------------------------------------------------------------

    def value(self, start: int, end: int, depth: int = 1) -> Any:
        """Parse the value between two positions."""
        mark = self._raw[start : start + 1]
        if mark == b'"':
            return self._string(start + 1, end - 1)
        if end - start <= _STEP and self._is_small(start, end):
            return loads(self._raw[start:end])
        if depth > _MAX_DEPTH:
            raise ValueError("large values are nested too deeply")
        if mark == b"{":
            return self._dict(start, depth)
        return self._list(start, depth) if mark == b"[" else loads(self._raw[start:end])

    def _dict(self, start: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for member in self._object(start):
            self._spend(_CONTAINER)
            found[member.name] = self.value(member.value, member.end, depth + 1)
        return found

    def _list(self, start: int, depth: int) -> list[Any]:
        self._at = start + 1
        found: list[Any] = []
        if self._peek() == b"]":
            self._at += 1
            return found
        while True:
            if many := _ITEMS.match(self._raw, self._at, self._at + _STEP // 2):
                self._is_small(*many.span())
                found += loads(b"[%b]" % self._raw[many.start() : many.end() - 1])
                self._at = many.end()
            self._peek()
            self._spend(_ITEM)
            item = self._at
            self._skip()
            end = self._at
            found.append(self.value(item, end, depth + 1))
            self._at = end
            if not self._goes_on(b"]"):
                return found

    def _is_small(self, start: int, end: int) -> bool:
        """Account for the memory of a piece and return whether it can be parsed in one step."""
        bare = _STRING.sub(b"", self._raw[start:end])
        containers = bare.count(b"[") + bare.count(b"{")
        items = bare.count(b",")
        self._spend(_CONTAINER * containers + _ITEM * items)
        return containers + items <= _STEP_VALUES

    def _spend(self, size: int) -> None:
        self._memory -= size
        if self._memory < 0:
            raise ValuesTooLarge("the JSON holds too many values for its size")

    def _string(self, start: int, end: int) -> str:
        """Return the string between two positions, cut at `MAX_STRING` characters."""
        if end - start <= _STEP:
            return _text(self._raw[start:end])
        parts, room = [], MAX_STRING
        while start < end and room > 0:
            cut = _cut(self._raw, start, end)
            parts.append(_text(self._raw[start:cut])[:room])
            room -= len(parts[-1])
            start = cut
        return "".join(parts)

    # --- positions ----------------------------------------------------------------------------------------------------

    def _object(self, start: int) -> Iterator[Member]:
        """Yield the members of the object that begins here."""
        self._at = start
        self._expect(b"{")
        if self._peek() == b"}":
            self._at += 1
            return
        while True:
            self._peek()
            name = self._at
            self._skip_string()
            name_end = self._at
            self._expect(b":")
            self._peek()
            value = self._at
            self._skip()
            end = self._at
            yield Member(self._string(name + 1, name_end - 1), name, value, end)
            self._at = end  # the caller may have read the value
            if not self._goes_on(b"}"):
                return

    def _peek(self) -> bytes:
        """Advance to the next byte that is not white space and return it."""
        mark = self._raw[self._at : self._at + 1]
        while mark and mark in _BLANK:
            self._at = self._end_of(_SPACE)
            mark = self._raw[self._at : self._at + 1]
        return mark

    def _expect(self, mark: bytes) -> None:
        if self._peek() != mark:
            raise ValueError(f"no {mark.decode()} at byte {self._at}")
        self._at += 1

    def _goes_on(self, close: bytes) -> bool:
        """Read the separator after an item and return whether it is a comma."""
        mark = self._peek()
        if mark not in (b",", close):
            raise ValueError(f"neither a comma nor an end at byte {self._at}")
        self._at += 1
        return mark == b","

    def _skip(self) -> None:
        """Skip a value without validating it."""
        mark = self._peek()
        if mark == b'"':
            self._skip_string()
        elif mark == b"{" or mark == b"[":
            self._skip_container()
        elif word := self._word.match(self._raw, self._at):
            self._at = word.end()
        else:
            raise ValueError(f"no value at byte {self._at}")

    def _skip_container(self) -> None:
        depth = 0
        while mark := self._raw[self._at : self._at + 1]:
            if mark == b'"':
                self._skip_string()
            elif mark in b"[]{}":
                depth += 1 if mark in b"[{" else -1
                self._at += 1
                self._marks -= 1
                if not depth:
                    return
                if depth > self._max_nesting:
                    raise ValuesTooLarge("the JSON has too many levels")
                if self._marks < 0:
                    raise ValuesTooLarge("the JSON holds too many arrays and objects")
            self._at = self._end_of(_RUN)
        raise ValueError("the JSON has no end")

    def _skip_string(self) -> None:
        start = self._at
        if self._raw[start : start + 1] != b'"':
            raise ValueError(f"no string at byte {start}")
        end = self._ends.get(start) or self._raw.find(b'"', start + 1)
        if end > 0 and start not in self._ends and self._raw[end - 1] == 0x5C:
            self._at = start + 1
            while (end := self._end_of(_CHARS)) != self._at:
                self._at = end  # a step may end in front of an escape
        if end < 0 or self._raw[end : end + 1] != b'"':
            raise ValueError(f"the string at byte {start} has no end")
        if end - start > _STEP:
            self._ends[start] = end
        self._at = end + 1

    def _end_of(self, pattern: re.Pattern[bytes]) -> int:
        """Return the end of a match of at most one step."""
        match = pattern.match(self._raw, self._at, self._at + _STEP)
        return match.end() if match else self._at


def _cut(raw: bytes, start: int, end: int) -> int:
    """Return a position up to a step behind `start` that splits neither a character nor an escape."""
    if end - start <= _STEP:
        return end
    cut = _end_of_chars(raw, start, start + _STEP)
    escape = raw.rfind(b"\\u", cut - 5, cut)
    if escape > 0 and _end_of_chars(raw, start, escape) == escape:
        cut = escape
    if _LOW_SURROGATE.match(raw, cut):
        cut += 6  # it belongs to the preceding one
    for _ in range(3):
        if raw[cut] & 0xC0 == 0x80:
            cut -= 1
    return min(cut, end)


def _end_of_chars(raw: bytes, start: int, end: int) -> int:
    match = _CHARS.match(raw, start, end)
    return match.end() if match else start


def _text(characters: bytes) -> str:
    text: str = loads(b'"%b"' % characters)
    return text
