"""Decode content codings (RFC 9110, section 8.4), and split streams into events without changing a byte."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from groundwire.dialects.jsonbytes import loads

_EITHER_FORMAT = zlib.MAX_WBITS | 32  # zlib or gzip, detected from the header
_MEMBER = b"\x1f"
_PIECE = 2**15


class Decoder:
    """Decode one body chunk by chunk. `known` is False for a coding that is not supported, such as br."""

    def __init__(self, coding: bytes | None) -> None:
        name = (coding or b"identity").strip().lower()
        self.known = name in (b"identity", b"", b"gzip", b"x-gzip", b"deflate")
        self.is_identity = name in (b"identity", b"")
        self._zlib = None if self.is_identity else zlib.decompressobj(_EITHER_FORMAT)
        self._is_over = False

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decoded bytes of a chunk, in pieces of 32 KiB at most.

        Raises ValueError when they do not match the coding.
        """
        if len(chunk) <= _PIECE and self._zlib is None:
            yield chunk
            return
        for at in range(0, len(chunk), _PIECE):
            piece = chunk[at : at + _PIECE]
            yield from (piece,) if self._zlib is None else self._decoded(piece)

    def whole(self, body: bytes, limit: int) -> bytes:
        """Return the decoded body. Raises ValueError when it is invalid or longer than `limit`."""
        if self._zlib is None:
            return body
        decoded, size = [], 0
        for piece in self.pieces(body):
            decoded.append(piece)
            size += len(piece)
            if size > limit:
                raise ValueError(f"it expands to over {limit} bytes")
        return b"".join(decoded)

    def _decoded(self, rest: bytes) -> Iterator[bytes]:
        assert self._zlib is not None  # noqa: S101 - see `pieces`
        is_full = False
        try:
            while (rest or is_full) and not self._is_over:
                if self._zlib.eof:  # a gzip body may have several members (RFC 1952, section 2.2)
                    self._is_over = not rest.startswith(_MEMBER)
                    self._zlib = zlib.decompressobj(_EITHER_FORMAT)
                    continue
                piece = self._zlib.decompress(rest, _PIECE)
                if piece:
                    yield piece
                rest = self._zlib.unconsumed_tail or self._zlib.unused_data
                is_full = len(piece) == _PIECE and not self._zlib.eof
        except zlib.error as error:
            raise ValueError(f"it is not what its content-encoding says: {error}") from error


DONE = b"[DONE]"


class EventTooLarge(ValueError):
    """An event exceeded the size limit without ending."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event with its original bytes and its data (None for one without data, such as a comment)."""

    raw: bytes
    data: bytes | None

    @property
    def is_done(self) -> bool:
        """True for OpenAI's end mark."""
        return self.data is not None and self.data.strip() == DONE


_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # a stream may begin with one
_LINE_END = re.compile(rb"\r\n|\n|\r")
_MAX_LINES = 10_000  # maximum lines of an event; one with more is not read


class EventSplitter:
    """Split chunks of bytes into events. The result is independent of the chunking; joining `raw` gives the input."""

    def __init__(self, max_event: int = 32 * 1024 * 1024) -> None:
        self._pending = bytearray()
        self._scanned = 0
        self._max_event = max_event

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield each event that `chunk` completes. Raises EventTooLarge once an unfinished one exceeds the limit."""
        if not self._pending and (event := _whole(chunk)):
            yield event
            return
        is_open = not self._pending.endswith(b"\r") and b"\n" not in chunk and b"\r" not in chunk
        self._pending += chunk
        while not is_open and (match := _BLANK_LINE.search(self._pending, max(0, self._scanned - 3))):
            end = match.end()
            if self._pending[end - 1 : end] == b"\r" and end == len(self._pending):
                break  # its \n may be in the next chunk
            with memoryview(self._pending) as pending:
                raw = bytes(pending[:end])
            del self._pending[:end]
            self._scanned = 0
            yield Event(raw, _data(raw))
        self._scanned = len(self._pending)
        if self._scanned > self._max_event:
            raise EventTooLarge(f"an event of over {self._max_event} bytes")

    def rest(self) -> Iterator[Event]:
        """Yield the last event of a stream that ended without a blank line, if any."""
        if self._pending:
            raw = bytes(self._pending)
            self._pending.clear()
            yield Event(raw, _data(raw))


def _whole(chunk: bytes) -> Event | None:
    """Return `chunk` as an event if it is exactly one data line and one blank line, the usual case."""
    if chunk.startswith(b"data: ") and chunk.endswith(b"\n\n") and b"\r" not in chunk and chunk.count(b"\n") == 2:
        return Event(chunk, chunk[6:-2])
    return None


def _data(raw: bytes) -> bytes | None:
    if raw.count(b"\n") + raw.count(b"\r") > _MAX_LINES:
        return None
    raw = raw.removeprefix(_BYTE_ORDER_MARK)
    values = []
    for line in _LINE_END.split(raw) if b"\r" in raw else raw.split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"data":
            values.append(value.removeprefix(b" "))
    return b"\n".join(values) if values else None


def _sse_event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def _named_event(data: bytes) -> bytes:
    name: str = loads(data)["type"]
    return b"event: " + name.encode() + b"\n" + _sse_event(data)


def _comment(text: bytes) -> bytes:
    return b": " + text + b"\n"  # not a blank line: openai-python would take it for an empty event


class LineSplitter:
    """Split chunks of bytes into lines. The lines do not depend on the chunking; joining `raw` gives the input."""

    def __init__(self, max_line: int) -> None:
        self._pending = bytearray()
        self._max_line = max_line

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield each line that `chunk` completes. Raises EventTooLarge if the unfinished rest exceeds the limit."""
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            raw = bytes(self._pending) + line + b"\n"
            self._pending.clear()
            yield Event(raw, raw.strip() or None)
        self._pending += rest
        if len(self._pending) > self._max_line:
            raise EventTooLarge(f"a line of over {self._max_line} bytes")

    def rest(self) -> Iterator[Event]:
        """Yield the last line of a stream that ended without a line break, if any."""
        if self._pending:
            raw = bytes(self._pending)
            self._pending.clear()
            yield Event(raw, raw.strip() or None)


@dataclass(frozen=True, slots=True)
class Framing:
    """One way of framing events.

    `splitter` builds a splitter for a maximum event size in bytes, `event` frames a JSON object as an event, and
    `comment` frames text that clients ignore (None: not available, hence no keep-alives).
    """

    media_type: bytes
    splitter: Callable[[int], EventSplitter | LineSplitter]
    event: Callable[[bytes], bytes]
    comment: Callable[[bytes], bytes] | None


SSE = Framing(b"text/event-stream", EventSplitter, _sse_event, _comment)
NAMED_SSE = Framing(b"text/event-stream", EventSplitter, _named_event, _comment)
NDJSON = Framing(b"application/x-ndjson", LineSplitter, lambda data: data + b"\n", None)
