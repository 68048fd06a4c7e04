"""Further calls of a model for the same exchange, alongside its answer: samples of it and corrections."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import structlog

from groundwire.dialects.answer import Answer
from groundwire.dialects.encoding import Decoder
from groundwire.dialects.jsonbytes import dumps, loads_object
from groundwire.dialects.request import Request
from groundwire.errors import GroundwireError
from groundwire.gateway.bodies import read_answer
from groundwire.gateway.forward import Forwarding, as_it_is, chunks_of, read
from groundwire.offload import offloaded
from groundwire.telemetry import Telemetry
from groundwire.telemetry.names import Purpose
from groundwire.upstream.headers import header
from groundwire.upstream.router import Route
from groundwire.wire import Call

log = structlog.get_logger("groundwire.repeat")

MAX_REPEATED = 2**22
"""Maximum size in bytes of a request to repeat; parts of a larger one may not have been read."""

_NOT_REPEATED = frozenset({b"idempotency-key", b"accept", b"content-length"})


@dataclass(frozen=True, slots=True)
class Repeated:
    """One more answer, or the reason why there is none; with its tokens as far as the server reports them."""

    text: str = ""
    reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Repeat:
    """A request that can be sent again: `call` is how it went out on its route. `max_answer` is in bytes."""

    telemetry: Telemetry
    request: Request
    route: Route
    call: Call
    max_answer: int = 4 * 2**20

    async def body(self) -> Mapping[str, Any]:
        """Return the body of the call."""
        found: Mapping[str, Any] = await offloaded(loads_object, self.call.body)
        return found

    async def ask(self, body: Mapping[str, Any] | None, purpose: Purpose) -> Repeated:
        """Send the request with another body (None: there is none to send). Raises nothing but cancellation."""
        if body is None:
            return Repeated(reason="not_repeatable")
        try:
            return await self._answered(body, purpose)
        except TimeoutError:
            return Repeated(reason="timeout")
        except GroundwireError as error:
            return Repeated(reason=type(error).__name__)
        except Exception as error:  # noqa: BLE001 - no fault of a model server may reach an answer
            log.warning(f"{purpose}.failed", error=type(error).__name__)
            return Repeated(reason="error")

    async def _answered(self, body: Mapping[str, Any], purpose: Purpose) -> Repeated:
        dialect = self.request.dialect
        headers = tuple(pair for pair in self.call.headers if pair[0] not in _NOT_REPEATED)
        call = replace(self.call, headers=headers, body=await asyncio.to_thread(dumps, body))
        forwarding = Forwarding(self.telemetry, dialect.operation, body, purpose)
        reply = await forwarding.send(self.route.once(), as_it_is(call))
        answer = None
        try:
            async with aclosing(chunks_of(reply)) as chunks:
                raw, end = await read(chunks, self.max_answer)
            if reply.status != 200:
                return Repeated(reason=f"status {reply.status}")
            if end == "whole":
                decoder = Decoder(header(reply.headers, b"content-encoding"))
                answer = (await read_answer(raw, decoder, dialect, self.max_answer)).answer
        except BaseException as error:
            forwarding.broke_off(error)
            raise
        finally:
            forwarding.end(answer)
        return _of(answer) if answer else Repeated(reason="unreadable")


def _of(answer: Answer) -> Repeated:
    text = "\n\n".join(choice.text for choice in answer.choices() if choice.text)
    usage = {name: answer.usage.get(name) for name in ("prompt_tokens", "completion_tokens")}
    counts = {name: value for name, value in usage.items() if isinstance(value, int)}
    return Repeated(text, "" if text.strip() else "no text", **counts)
