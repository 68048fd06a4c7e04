r"""Split streams of JSON lines without changing a byte; only \n ends a line."""

from __future__ import annotations

from collections.abc import Iterator

from groundwire.dialects.framing import Event, EventTooLarge, Framing


class Lines:
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
            yield _line(raw)
        self._pending += rest
        if len(self._pending) > self._max_line:
            raise EventTooLarge(f"a line of over {self._max_line} bytes")

    def rest(self) -> Iterator[Event]:
        """Yield the last line of a stream that ended without a line break, if any."""
        if self._pending:
            raw = bytes(self._pending)
            self._pending.clear()
            yield _line(raw)


def _line(raw: bytes) -> Event:
    return Event(raw, raw.strip() or None)


def _event(data: bytes) -> bytes:
    return data + b"\n"


NDJSON = Framing(b"application/x-ndjson", Lines, _event, None)
