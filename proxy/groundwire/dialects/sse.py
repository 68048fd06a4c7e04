r"""Split server-sent events from a byte stream, keeping every byte (WHATWG HTML, section 9.2.6).

Only \n, \r\n and \r end a line, and bytes are decoded per event, so U+2028 and characters split across packets do no
harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from groundwire.dialects.framing import Event, EventTooLarge, Framing
from groundwire.dialects.jsonbytes import loads

_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # a stream may begin with one
_LINE_END = re.compile(rb"\r\n|\n|\r")
_MAX_LINES = 10_000  # maximum lines of an event; one with more is not read


class Decoder:
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


def _event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def _named_event(data: bytes) -> bytes:
    name: str = loads(data)["type"]
    return b"event: " + name.encode() + b"\n" + _event(data)


def _comment(text: bytes) -> bytes:
    return b": " + text + b"\n"  # not a blank line: openai-python would take it for an empty event


SSE = Framing(b"text/event-stream", Decoder, _event, _comment)
NAMED_SSE = Framing(b"text/event-stream", Decoder, _named_event, _comment)
