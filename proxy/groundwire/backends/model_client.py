"""Query a server over HTTP, within limits: return its JSON answer, or the reason why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import structlog

from groundwire.dialects.framing import Decoder
from groundwire.dialects.jsonbytes import dumps, loads
from groundwire.domain import Unavailable
from groundwire.errors import UpstreamBroken, UpstreamTimeout, UpstreamUnreachable
from groundwire.telemetry import Telemetry, UpstreamCall
from groundwire.wire import Call, Headers, Reply, header

log = structlog.get_logger("groundwire.estimates")

_BUSY = (429, 503, 529)  # rate limited, temporarily unavailable, and Anthropic's "overloaded"
_REFUSALS = (400, 404, 422)
_MOST = 4 * 2**20  # bytes of an answer; 20 logprobs for each of some hundred tokens take a tenth of that
_LONGEST_WAIT_S = 3600.0
_REASON = 600  # bytes of a refusal that are read

T = TypeVar("T")

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """The server rejects this form of the question; another one may work. `message` starts its explanation."""

    status: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class ModelClient:
    """A server to query: `send` performs a call. `headers` are sent with every question.

    `provider` and `operation` are its names in the GenAI conventions, under which each question is recorded.
    """

    name: str
    send: Callable[[Call], Awaitable[Reply]]
    target: str
    limits: Limits
    meter: Meter
    headers: Headers = ()
    telemetry: Telemetry = Telemetry()
    provider: str = "openai"
    operation: str = "chat"

    async def ask(self, question: Mapping[str, Any]) -> Body | Refused | Unavailable:
        """Return the server's answer, a JSON object, if it arrives in time; waiting for a slot counts too."""
        call = Call("POST", self.target, (*self.headers, (b"content-type", b"application/json")), dumps(question))
        try:
            async with asyncio.timeout_at(self.limits.until), self.limits.at_once:
                self.meter.calls += 1
                return await self._exchange(call, question)
        except (TimeoutError, UpstreamTimeout):
            return Unavailable("timeout")
        except (UpstreamUnreachable, UpstreamBroken) as error:
            return self.failed(type(error).__name__, "unreachable")
        except Exception as error:  # noqa: BLE001 - no fault of a backend may reach an answer
            return self.failed(type(error).__name__)

    async def _exchange(self, call: Call, question: Mapping[str, Any]) -> Body | Refused | Unavailable:
        """Send one question, recorded as a separate call with its tokens."""
        recorded = UpstreamCall(self.telemetry, self.operation, self.provider, self.name, question, "probe")
        try:
            reply = await self.send(replace(call, headers=recorded.propagated(call.headers)))
            recorded.replied(reply.status)
            answer = self._read(reply, await _body(reply))
            if isinstance(answer, Mapping):
                recorded.answered(_word(answer, "id"), _word(answer, "model"), (), _usage(answer))
            return answer
        except BaseException as error:
            recorded.failed(error)
            raise
        finally:
            recorded.end()

    def _read(self, reply: Reply, body: bytes) -> Body | Refused | Unavailable:
        if reply.status in _BUSY:
            return Unavailable("rate_limited", _retry_after(reply.headers))
        if reply.status in _REFUSALS:
            return Refused(reply.status, body[:_REASON].decode(errors="replace"))
        if reply.status != 200:
            return self.failed(f"status {reply.status}", "unreachable" if reply.status >= 500 else "error")
        answer = loads(body)
        if not isinstance(answer, dict):
            return self.failed("no JSON object")
        self.meter.prompt_tokens += _tokens(answer, "prompt_tokens")
        self.meter.completion_tokens += _tokens(answer, "completion_tokens")
        return answer

    def failed(self, reason: str, cause: Literal["error", "unreachable"] = "error") -> Unavailable:
        """Log the reason for a missing estimate and return its cause."""
        log.warning("estimate.failed", backend=self.name, reason=reason)
        return Unavailable(cause)


async def _body(reply: Reply) -> bytes:
    """Read and decode the body of a reply. Raises ValueError when it is too long or cannot be read."""
    if isinstance(reply.body, bytes):
        return reply.body
    decoder = Decoder(header(reply.headers, b"content-encoding"))
    read = bytearray()
    async with aclosing(reply.body) as chunks:
        async for chunk in chunks:
            for piece in decoder.pieces(chunk):
                read += piece
                if len(read) > _MOST:
                    raise ValueError("the answer is too long")
    return bytes(read)


def _retry_after(headers: Headers) -> float | None:
    """Return the seconds that a server asked to wait; a date is not read."""
    try:
        return min(max(0.0, float((header(headers, b"retry-after") or b"").decode("latin-1"))), _LONGEST_WAIT_S)
    except ValueError:
        return None


def _usage(answer: Body) -> Mapping[str, Any]:
    usage = answer.get("usage")
    return usage if isinstance(usage, Mapping) else {}


def _word(answer: Body, name: str) -> str | None:
    word = answer.get(name)
    return word if isinstance(word, str) else None


def _tokens(answer: Body, name: str) -> int:
    count = _usage(answer).get(name)
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0


@dataclass(slots=True)
class Meter:
    """Counts the cost of estimates: calls sent, and tokens as far as the servers report them."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an operation: claims per call, concurrent calls (shared by all), and deadline (loop time)."""

    batch_size: int
    at_once: asyncio.Semaphore
    until: float


def groups(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Split items, in their order, into groups of `size`."""
    return [items[at : at + size] for at in range(0, len(items), size)]
