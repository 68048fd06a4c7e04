"""How a stream of events goes over the wire, whatever the events say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

DONE = b"[DONE]"


class EventTooLarge(ValueError):
    """An event grew over the limit without ending."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event with its bytes as they came, and its data (None for one that carries none, such as a comment)."""

    raw: bytes
    data: bytes | None

    @property
    def is_done(self) -> bool:
        """Whether this is OpenAI's end mark."""
        return self.data is not None and self.data.strip() == DONE


class Splitter(Protocol):
    """Cuts chunks of bytes into events: the same events under any chunking, and their bytes joined are the input."""

    def feed(self, chunk: bytes, /) -> Iterator[Event]:
        """Yields each event that `chunk` completes. Raises EventTooLarge once an unfinished one is over the limit."""

    def rest(self) -> Iterator[Event]:
        """Yields the last event of a stream that ended without its mark, if there is one."""


@dataclass(frozen=True, slots=True)
class Framing:
    """One way of framing events.

    `splitter` makes one for events of so many bytes at most, `event` writes an event of our own that says this JSON
    object, `comment` something that no client reads (None: there is no such thing, hence no keep-alive either).
    """

    media_type: bytes
    splitter: Callable[[int], Splitter]
    event: Callable[[bytes], bytes]
    comment: Callable[[bytes], bytes] | None
