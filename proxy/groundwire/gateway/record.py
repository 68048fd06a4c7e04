"""Record exchanges once their reports are made; nothing waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from groundwire.dialects.request import Request
from groundwire.domain import Exchange, Message
from groundwire.evidence.gathering import question
from groundwire.evidence.intent import intent_of
from groundwire.gateway.annotate import Annotation
from groundwire.gateway.deferred import Heard
from groundwire.gateway.workers import Workers
from groundwire.storage.history.exchange import Entry, PromptMessage

log = structlog.get_logger("groundwire.history")

_MAX_QUESTION = 8_000  # characters
_MAX_MESSAGE = 16_000
_MAX_PROMPT = 64_000
_MIN_MESSAGE = 200
_LEFT_OUT = "\n[…]\n"


class Store(Protocol):
    """The store of exchanges."""

    def record(self, entry: Entry) -> None:
        """Queue an exchange for recording; never fails."""


@dataclass(frozen=True, slots=True)
class Recorder:
    """Record exchanges in `store`; a worker prepares the entries."""

    store: Store
    workers: Workers
    now: Callable[[], float] = time.time

    async def record(self, annotation: Annotation, request: Request, heard: Heard) -> None:
        """Record an exchange with the current time. Raises nothing but cancellation."""
        try:
            entry = await self.workers.insist(entry_of, annotation, request, heard, self.now())
        except Exception:
            log.exception("history.unreadable", grounding_id=annotation.report.id)
        else:
            self.store.record(entry)


def entry_of(annotation: Annotation, request: Request, heard: Heard, at: float) -> Entry:
    """Build the entry of an exchange at a time in Unix seconds."""
    options, exchange = request.options, request.exchange()
    asked, message = request.question or question(exchange), request.question or last_user_message(exchange)
    return Entry(
        at=at,
        report=annotation.report,
        kept=annotation.kept,
        model=heard.model or request.model,
        question=_shortened(message, _MAX_QUESTION),
        choices=tuple(heard.choices),
        subject=options.subject,
        session=options.session,
        intent=intent_of(asked or message),
        asked=_shortened(asked, _MAX_QUESTION),
        prompt=_prompt(exchange),
        tenant=request.tenant,
    )


def last_user_message(exchange: Exchange) -> str:
    """Return the text of the last message of the user, "" where there is none."""
    spoken = (_text(message) for message in reversed(exchange.messages) if message.role == "user")
    return next((text for text in spoken if text), "")


def _prompt(exchange: Exchange) -> tuple[PromptMessage, ...]:
    """Return the messages of a request, the last ones first in line for the space that there is."""
    left, kept = _MAX_PROMPT, []
    for message in reversed(exchange.messages):
        text = _shortened(_text(message), min(left, _MAX_MESSAGE))
        if text:
            kept.append(PromptMessage(message.role, text))
            left -= len(text)
        if left < _MIN_MESSAGE:
            break
    return tuple(reversed(kept))


def _text(message: Message) -> str:
    """Return the text of a message, without its document parts, which are stored as sources."""
    is_of_tool = message.role == "tool"
    return "\n\n".join(part.text for part in message.parts if part.kind == "text" or is_of_tool).strip()


def _shortened(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters, its middle left out where it is longer."""
    if len(text) <= limit:
        return text
    head = (limit - len(_LEFT_OUT)) // 2
    return text[:head] + _LEFT_OUT + text[-(limit - len(_LEFT_OUT) - head) :]
