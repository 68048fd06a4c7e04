"""Find the report in the objects of the openai and anthropic SDKs, and of libraries that keep these objects.

Nothing here imports those libraries: any object or mapping with a member `grounding` is understood.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    from groundwire.report_schema import GroundingReport

T = TypeVar("T")

_INSIDE = ("response", "response_metadata", "raw", "chunk", "message")
"""Members of events, messages and results of other libraries that may hold the response."""


def grounding_of(value: Any) -> GroundingReport | None:
    """Return the report in a response, in an event, or in the rest of a stream, which is read to its end.

    None if there is no report. Raises TypeError for an asynchronous stream: see `grounding_of_async`.
    """
    if hasattr(value, "__anext__"):
        raise TypeError("an asynchronous stream needs `await grounding_of_async(stream)`")
    if isinstance(value, (list, tuple)) or hasattr(value, "__next__"):
        return _last(map(_report, value))
    return _report(value)


async def grounding_of_async(stream: AsyncIterable[Any]) -> GroundingReport | None:
    """Return the report in the rest of an asynchronous stream, which is read to its end."""
    return _last([found async for event in stream if (found := _report(event))])


class GroundingStream(Generic[T]):
    """A stream that passes every event on and keeps the report that it carries, in `grounding`.

    Works for synchronous (`for`) and asynchronous (`async for`) streams.
    """

    def __init__(self, stream: Iterable[T] | AsyncIterable[T]) -> None:
        self._stream = stream
        self.grounding: GroundingReport | None = None

    def __iter__(self) -> Iterator[T]:
        for event in cast(Iterable[T], self._stream):
            self.grounding = _report(event) or self.grounding
            yield event

    async def __aiter__(self) -> AsyncIterator[T]:
        async for event in cast(AsyncIterable[T], self._stream):
            self.grounding = _report(event) or self.grounding
            yield event


def _report(value: Any) -> GroundingReport | None:
    """Return the report in one object, or in the response inside it."""
    found = _member(value, "grounding")
    if isinstance(found, Mapping) and "verdict" in found:
        return cast("GroundingReport", found)
    inside = (_member(value, name) for name in _INSIDE)
    return next((report for each in inside if each is not None and (report := _report(each))), None)


def _member(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    return None if isinstance(value, (str, bytes)) else getattr(value, name, None)


def _last(reports: Iterable[GroundingReport | None]) -> GroundingReport | None:
    return next((each for each in reversed(list(reports)) if each), None)
