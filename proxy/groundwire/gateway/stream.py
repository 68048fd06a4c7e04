"""Stream an answer to the client: every event unchanged, and the verdict on or after the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from groundwire.dialects.dialect import Answer, Fault
from groundwire.dialects.framing import Decoder, Event, EventTooLarge
from groundwire.dialects.jsonbytes import dumps, loads_object, with_member
from groundwire.dialects.request import Request
from groundwire.errors import RequestError, UpstreamBroken
from groundwire.gateway.forward import parsed
from groundwire.gateway.session import GroundingSession
from groundwire.wire import Chunks

Carrier = Literal["last_event", "extra_event", "comment", "none"]


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Delivery of verdicts: the `carrier`, and how long (seconds) to hold a last event for one."""

    carrier: Carrier = "last_event"
    tail_budget: float = 0.15
    max_event: int = 32 * 2**20


class AnnotatedStream:
    """The events of one answer including its verdict.

    Only the event that carries the verdict is held, `tail_budget` at most. When the upstream breaks off, so does this
    stream: an error event, then the error itself, and a report with status `partial`.
    """

    def __init__(self, request: Request, session: GroundingSession, decoder: Decoder, settings: StreamSettings) -> None:
        self.answer = Answer(request.dialect, request.expected_choices)
        self._dialect = request.dialect
        self._framing = request.dialect.framing
        self._request = request
        self._session = session
        self._decoder = decoder
        self._settings = settings
        self._is_delivered = settings.carrier == "none" or request.options.detail == "none"

    async def events(self, chunks: Chunks) -> Chunks:
        """Yield the client's stream, in pieces that end where an event ends; to be primed.

        Raises UpstreamBroken or UpstreamTimeout.
        """
        split = self._framing.splitter(self._settings.max_event)
        try:
            async with aclosing(chunks), aclosing(self._decoded(chunks)) as decoded:
                yield b""
                async for chunk in decoded:
                    async for piece in self._passed(split.feed(chunk)):
                        yield piece
                    if not self._session.feed(self.answer):
                        async for piece in self._unread(split.rest(), decoded):
                            yield piece
                        return
            async for piece in self._passed(split.rest()):
                yield piece
            self._session.conclude(self.answer, cut_short=self.answer.is_cut_short)
            if self.answer.is_finished and not self._is_delivered:
                yield await self._verdict()
        except (RequestError, ValueError) as error:
            self._session.conclude(self.answer, cut_short=True)
            fault = Fault(str(error), "upstream_error", None, "stream_broken")
            yield self._framing.event(dumps(self._dialect.failure(fault)))
            raise error if isinstance(error, RequestError) else UpstreamBroken(str(error)) from error
        except BaseException:  # the client has disconnected; a promised report is still completed
            if not (self._is_delivered and self._session.is_concluding):
                self._session.abandon()
            raise

    async def _decoded(self, chunks: Chunks) -> Chunks:
        """Yield the chunks without their coding, in pieces between which the event loop takes its turn."""
        async for chunk in chunks:
            is_first = True
            for piece in self._decoder.pieces(chunk):
                if not is_first:
                    await asyncio.sleep(0)
                is_first = False
                yield piece

    async def _unread(self, split: Iterable[Event], decoded: Chunks) -> Chunks:
        """Yield the rest of a stream unread for lack of memory; its report, fetched by its id, has the reason."""
        self._is_delivered = True
        self._session.shed()
        for event in split:
            yield event.raw
        async for chunk in decoded:
            yield chunk

    async def _passed(self, events: Iterable[Event]) -> Chunks:
        """The bytes of `events`, together where nothing is waited for, with the verdict where it belongs.

        Raises EventTooLarge behind the events that came before that one.
        """
        passing: list[bytes] = []
        try:
            for event in events:
                place = self._place(event, await self._body(event))
                if place == "nowhere":
                    passing.append(event.raw)
                    continue
                if place == "after":
                    passing.append(event.raw)
                if passing:
                    yield b"".join(passing)
                verdict = await self._verdict(event if place == "on" else None)
                passing = [verdict + event.raw if place == "before" else verdict]
        except EventTooLarge:
            if passing:
                yield b"".join(passing)
            raise
        if passing:
            yield b"".join(passing)

    async def _body(self, event: Event) -> Mapping[str, Any] | None:
        """Return the JSON object that the data of an event is, or None: such an event passes unread."""
        data = event.data
        if data is None or event.is_done:
            return None
        return await parsed(data, lambda: _object(data))

    def _place(self, event: Event, body: Mapping[str, Any] | None) -> Literal["nowhere", "before", "on", "after"]:
        """Add an event to the answer, and return the place of the verdict relative to it."""
        if event.is_done:
            self._session.conclude(self.answer, cut_short=self.answer.is_cut_short)
            return "nowhere" if self._is_delivered else "before"
        if body is None:
            return "nowhere"
        self.answer.add(body)
        if not self.answer.is_finished:
            return "nowhere"
        side = self._dialect.carrier_side(body, self._request.body)
        if side is None:
            return "nowhere"  # there is more to come, such as the usage
        self._session.conclude(self.answer)
        if self._is_delivered:
            return "nowhere"
        if self._carrier == "last_event":
            return "on" if event.raw.count(event.data or b"") == 1 else "nowhere"
        return side if self._carrier == "extra_event" else "after"

    @property
    def _carrier(self) -> Carrier:
        """The configured carrier, if the dialect supports it."""
        carrier = self._settings.carrier
        return "last_event" if carrier == "comment" and self._framing.comment is None else carrier

    async def _verdict(self, carrier: Event | None = None) -> bytes:
        """Return the bytes of the verdict: `carrier` with `grounding` in it, or a separate event or comment."""
        annotation = await self._session.annotation(self._settings.tail_budget)
        self._is_delivered = True
        shown = annotation.shown or b"null"
        if carrier is not None and carrier.data is not None:
            return await parsed(carrier.data, partial(_carrying, carrier, shown, self._dialect.inside))
        if self._framing.comment is not None and self._carrier == "comment":
            return self._framing.comment(b"grounding " + shown)
        return self._framing.event(with_member(dumps(self.answer.own_event), "grounding", shown))


def _carrying(carrier: Event, shown: bytes, inside: Sequence[str]) -> bytes:
    """Return the bytes of an event with `grounding` in its data."""
    assert carrier.data is not None  # noqa: S101 - a carrier has data
    return carrier.raw.replace(carrier.data, with_member(carrier.data, "grounding", shown, inside))


def _object(data: bytes) -> Mapping[str, Any] | None:
    try:
        body = loads_object(data)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
