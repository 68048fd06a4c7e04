"""Events are split from a stream the same way in any chunks, and lose no byte."""

import json

import httpx
import pytest
from httpx_sse import EventSource
from hypothesis import example, given
from hypothesis import strategies as st

from groundwire.dialects.framing import Event, EventSplitter, EventTooLarge
from tests.steps import growth

LINE_ENDS = (b"\n", b"\r\n", b"\r")
FRAGMENTS = st.sampled_from(
    [
        b"data: ",
        b"data:",
        b"data",
        b"event: x",
        b"id: 7",
        b": note",
        b"{}",
        b"[DONE]",
        b"\xe2\x80\xa8",
        b" ",
        *LINE_ENDS,
    ]
)
STREAMS = st.lists(FRAGMENTS | st.binary(max_size=4), max_size=40).map(b"".join)
CHUNKINGS = st.lists(st.integers(1, 7), max_size=60)


def cut(stream: bytes, sizes: list[int]) -> list[bytes]:
    """Split the stream into chunks of these sizes; the rest is the last chunk."""
    chunks, at = [], 0
    for size in sizes:
        chunks.append(stream[at : at + size])
        at += size
    return [*chunks, stream[at:]]


def decoded(chunks: list[bytes]) -> list[Event]:
    decoder = EventSplitter()
    return [event for chunk in chunks for event in decoder.feed(chunk)] + list(decoder.rest())


@given(STREAMS, CHUNKINGS)
@example(b"data: a\r\n\r\ndata: b\r\n\r\n", [10, 1, 1, 1])
@example(b"data: a\r\r\n\ndata: b\n\n", [8, 1, 1, 1])
@example(b"\ndata: a\n\n", [1, 9])
def test_any_chunking_gives_the_same_events(stream: bytes, sizes: list[int]) -> None:
    assert decoded(cut(stream, sizes)) == decoded([stream]) == decoded([bytes([byte]) for byte in stream])


@given(STREAMS, CHUNKINGS)
def test_the_bytes_of_all_events_are_the_stream(stream: bytes, sizes: list[int]) -> None:
    assert b"".join(event.raw for event in decoded(cut(stream, sizes))) == stream


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1), max_size=8),
    st.sampled_from(LINE_ENDS),
    CHUNKINGS,
)
def test_valid_streams_read_as_httpx_sse_reads_them(texts: list[str], end: bytes, sizes: list[int]) -> None:
    """U+2028 and its like are escaped, since httpx-sse splits lines on them."""
    values = [json.dumps(text) for text in texts]
    stream = b"".join(b"data: " + value.encode() + end + end for value in values)
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=stream)
    oracle = [event.data for event in EventSource(response).iter_sse()]
    assert [(event.data or b"").decode() for event in decoded(cut(stream, sizes))] == oracle == values


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        pytest.param(b'data: {"a":1}\n\n', [b'{"a":1}'], id="one line"),
        pytest.param(b"data:x\n\n", [b"x"], id="no space after the colon"),
        pytest.param(b"data:  x\n\n", [b" x"], id="only one space is dropped"),
        pytest.param(b"data: a\ndata: b\n\n", [b"a\nb"], id="lines are joined"),
        pytest.param(b"data\n\n", [b""], id="data without a colon is empty"),
        pytest.param(b"event: x\nid: 1\ndata: y\nretry: 5\n\n", [b"y"], id="other fields"),
        pytest.param(b": comment\n\n", [None], id="comment"),
        pytest.param(b"datax: no\n\n", [None], id="a field that only begins like data"),
        pytest.param(b"data: a\n\ndata: b", [b"a", b"b"], id="no blank line at the end"),
        pytest.param(b"data: a\r\rdata: b\r\r", [b"a", b"b"], id="carriage returns"),
        pytest.param(b"data: a\r\ndata: b\r\n\r\n", [b"a\nb"], id="both together end one line"),
        pytest.param(
            "data: \u2028\u0085\x0b\x0c\n\n".encode(), ["\u2028\u0085\x0b\x0c".encode()], id="no other line end"
        ),
        pytest.param(b"data: \xff\xfe\n\n", [b"\xff\xfe"], id="invalid UTF-8"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_events_carry_their_joined_data_lines(stream: bytes, data: list[bytes | None]) -> None:
    assert [event.data for event in decoded([stream])] == data


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_an_event_of_very_many_lines_passes_unread(end: bytes) -> None:
    few, many = (b"data: x" + end) * 4_000 + end, (b"data: x" + end) * 12_000 + end
    events = list(decoded([few + many]))
    assert [event.data for event in events] == [b"\n".join([b"x"] * 4_000), None]
    assert b"".join(event.raw for event in events) == few + many


def test_a_character_split_across_chunks_stays_whole() -> None:
    stream = 'data: {"text":"naïve 🙂"}\n\n'.encode()
    for at in range(len(stream)):
        assert [event.data for event in decoded([stream[:at], stream[at:]])] == [stream[6:-2]]


def test_an_event_is_given_as_soon_as_its_blank_line_is_there() -> None:
    decoder = EventSplitter()
    assert list(decoder.feed(b"data: a\n")) == []
    assert [event.data for event in decoder.feed(b"\ndata: b")] == [b"a"]


@pytest.mark.parametrize(
    ("data", "is_done"),
    [(b"[DONE]", True), (b" [DONE] ", True), (b'"[DONE]"', False), (b"[DONE", False), (None, False)],
)
def test_the_end_mark(data: bytes | None, is_done: bool) -> None:
    assert Event(b"", data).is_done is is_done


def test_an_event_that_never_ends_is_refused_at_the_limit() -> None:
    decoder = EventSplitter(max_event=1000)
    list(decoder.feed(b"data: " + b"x" * 994))
    with pytest.raises(EventTooLarge):
        list(decoder.feed(b"x"))


def test_many_events_are_under_a_limit_for_each() -> None:
    decoder = EventSplitter(max_event=100)
    assert len([event for _ in range(100) for event in decoder.feed(b"data: x\r\n\r\ndata: y\n\n")]) == 200


@pytest.mark.slow
def test_an_event_in_tiny_chunks_is_read_in_linear_time() -> None:
    def feed(chunks: int) -> None:
        decoder = EventSplitter()
        for _ in range(chunks):
            list(decoder.feed(b"data: \r\r:x"[:3]))

    assert growth(feed, 1000, 4000) < 6
    feed(1_000_000)
