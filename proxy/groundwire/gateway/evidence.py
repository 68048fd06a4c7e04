"""The evidence of an exchange, kept for a while, as clients send the same documents again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from groundwire.bounded import BoundedCache
from groundwire.domain import Exchange
from groundwire.evidence.gathering import gather
from groundwire.evidence.index import Context
from groundwire.evidence.prompt_size import Bounds, bounds_of

_MAX_BYTES = 8 * 2**20
_BYTES_PER_CHAR = 20  # of a context with its index, measured


@dataclass(frozen=True, slots=True)
class Evidence:
    """The context of an exchange, ready to be searched, and the bounds of its prompt."""

    context: Context
    bounds: Bounds


class EvidenceCache:
    """The evidence of the exchanges seen last, `max_bytes` of it in all. Any thread may use it."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._recent: BoundedCache[bytes, Evidence] = BoundedCache(max_bytes)

    def of(self, exchange: Exchange, is_over: Callable[[], bool]) -> Evidence:
        """Return the evidence of an exchange. It is kept unless `is_over` ended reading it."""
        key = _key(exchange)
        if known := self._recent.get(key):
            return Evidence(known.context.renewed(), known.bounds)
        found = Evidence(Context(gather(exchange), is_over), bounds_of(exchange.messages))
        found.context.digest  # noqa: B018 - computed here, off the event loop
        if found.context.is_complete:
            size = sum(len(source.text) for source in found.context.sources)
            self._recent.put(key, found, size * _BYTES_PER_CHAR)
        return found


def _key(exchange: Exchange) -> bytes:
    texts = repr((exchange.messages, exchange.sources))
    return blake2b(texts.encode(), digest_size=16).digest()
