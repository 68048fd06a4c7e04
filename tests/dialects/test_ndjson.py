"""Lines of JSON: the same lines under any chunking, every byte kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.dialects.framing import NDJSON, EventTooLarge, LineSplitter

PIECES = [b"\n", b'{"a":1}\n', b"\r\n", "\u2028".encode()]
CHUNKS = st.lists(st.binary(max_size=12) | st.sampled_from(PIECES), max_size=12)


def test_each_line_is_an_event_with_its_bytes() -> None:
    events = list(LineSplitter(100).feed(b'{"a":1}\n \r\n{"b":2}\r\n'))
    assert [event.raw for event in events] == [b'{"a":1}\n', b" \r\n", b'{"b":2}\r\n']
    assert [event.data for event in events] == [b'{"a":1}', None, b'{"b":2}']


def test_a_last_line_needs_no_line_break() -> None:
    lines = LineSplitter(100)
    assert [event.data for event in lines.feed(b'{"a":1}\n{"b"')] == [b'{"a":1}']
    assert [event.data for event in lines.rest()] == [b'{"b"']
    assert list(lines.rest()) == []


@given(CHUNKS)
def test_lines_are_the_same_under_any_chunking(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    cut, uncut = LineSplitter(1000), LineSplitter(1000)
    events = [event for chunk in chunks for event in cut.feed(chunk)] + list(cut.rest())
    assert events == [*uncut.feed(whole), *uncut.rest()]
    assert b"".join(event.raw for event in events) == whole


def test_a_line_without_end_is_refused_at_the_limit() -> None:
    lines = LineSplitter(10)
    list(lines.feed(b"x" * 10))
    with pytest.raises(EventTooLarge):
        list(lines.feed(b"x"))


def test_there_are_no_comments() -> None:
    assert NDJSON.comment is None
    assert NDJSON.event(b"{}") == b"{}\n"
