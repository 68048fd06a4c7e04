"""A cache of results of functions of a text, bounded by what it holds and not only by how many entries it has.

`functools.lru_cache` keeps its arguments, so that a few thousand texts of half a million characters stay for good.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


class _Long:
    """A long text as a key: compared by hash and length. The text itself is dropped once the result is known."""

    __slots__ = ("_hash", "_length", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._hash = hash(text)
        self._length = len(text)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Long) and (self._hash, self._length) == (other._hash, other._length)


def memo(
    entries: int, longest: int, long_entries: int = 0
) -> Callable[[Callable[Concatenate[str, P], T]], Callable[Concatenate[str, P], T]]:
    """Cache the results for `entries` texts of at most `longest` characters, and for `long_entries` longer ones.

    The text is the first argument; the others are small. Longer texts are not kept themselves, only their results.
    """

    def decorate(function: Callable[Concatenate[str, P], T]) -> Callable[Concatenate[str, P], T]:
        unkept: Callable[..., T] = function
        short: Callable[..., T] = lru_cache(entries)(function)

        @lru_cache(long_entries)
        def long(key: _Long, *args: Any) -> T:
            return unkept(key.text, *args)

        @wraps(function)
        def cached(text: str, *args: Any) -> Any:
            if len(text) <= longest:
                return short(text, *args)
            if not long_entries:
                return unkept(text, *args)
            key = _Long(text)
            try:
                return long(key, *args)
            finally:
                key.text = ""

        return cast(Callable[Concatenate[str, P], T], cached)

    return decorate
