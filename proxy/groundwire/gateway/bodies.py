"""Parse bodies of requests and answers, those that would hold the event loop for too long in a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from groundwire.dialects.answer import Answer
from groundwire.dialects.dialect import Dialect
from groundwire.dialects.encoding import Decoder
from groundwire.dialects.jsonbytes import is_light, loads_object
from groundwire.dialects.largejson import ValuesTooLarge
from groundwire.offload import offloaded

T = TypeVar("T")

_INLINE = 2**12  # bytes of an answer in a content coding that are decoded on the event loop


class ReadAnswer(NamedTuple):
    """A body without its content coding, and the answer in it, or the reason why there is none."""

    body: bytes
    answer: Answer | None
    reason: str = ""


async def parsed(body: bytes, parse: Callable[[], T]) -> T:
    """Return the result of `parse` on a JSON body."""
    return parse() if is_light(body) else await offloaded(parse)


async def read_answer(raw: bytes, decoder: Decoder, dialect: Dialect, limit: int) -> ReadAnswer:
    """Parse the body of an answer, which decodes to `limit` bytes at most. Raises nothing but cancellation."""
    try:
        is_short = decoder.is_identity or len(raw) <= _INLINE
        body = decoder.whole(raw, limit) if is_short else await offloaded(decoder.whole, raw, limit)
        return await parsed(body, lambda: ReadAnswer(body, _answer(body, dialect)))
    except ValueError as error:
        return ReadAnswer(raw, None, f"The answer cannot be read: {error}.")


def _answer(body: bytes, dialect: Dialect) -> Answer:
    try:
        found = loads_object(body)
    except ValuesTooLarge:
        raise
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return Answer.whole(dialect, found)
