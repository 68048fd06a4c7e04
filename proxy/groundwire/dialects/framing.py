"""Framing of event streams, independent of the content of events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

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


class Splitter(Protocol):
    """Split chunks of bytes into events. The result is independent of the chunking; joining `raw` gives the input."""

    def feed(self, chunk: bytes, /) -> Iterator[Event]:
        """Yield each event that `chunk` completes. Raises EventTooLarge once an unfinished one exceeds the limit."""

    def rest(self) -> Iterator[Event]:
        """Yield the last event of a stream that ended without its end mark, if any."""


@dataclass(frozen=True, slots=True)
class Framing:
    """One way of framing events.

    `splitter` builds a splitter for a maximum event size in bytes, `event` frames a JSON object as an event, and
    `comment` frames text that clients ignore (None: not available, hence no keep-alives).
    """

    media_type: bytes
    splitter: Callable[[int], Splitter]
    event: Callable[[bytes], bytes]
    comment: Callable[[bytes], bytes] | None
