"""Further calls of a model for the same exchange: samples of its answer, and corrections. The answer waits for none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from groundwire.backends.schema_process import SchemaProcess
from groundwire.config.grounding import Correction as CorrectionSettings
from groundwire.config.grounding import Sampling
from groundwire.dialects.framing import Decoder
from groundwire.dialects.jsonbytes import dumps, loads_object
from groundwire.dialects.request import Request
from groundwire.errors import GroundwireError
from groundwire.features.agreement import compare_answers, risk_of
from groundwire.gateway.forward import Forwarding, as_it_is, chunks_of, read, read_answer
from groundwire.judge import Judge
from groundwire.offload import Workers, offloaded
from groundwire.pipeline import MAX_VIOLATIONS, AnswerSnapshot
from groundwire.policy import Policy
from groundwire.report import Correction, Report, SampledClaim, SelfConsistency, Violation
from groundwire.telemetry import Telemetry
from groundwire.telemetry.names import Purpose
from groundwire.upstream.router import Route
from groundwire.verifiers.schema import NO_JSON, read_evidence
from groundwire.wire import Call, header, without

log = structlog.get_logger("groundwire.repeat")
sampling_log = structlog.get_logger("groundwire.sampling")

_CONCURRENT = 8  # samples in flight, of all exchanges together; and as many corrections
_STEP = 0.1  # difference of temperature between further samples
_COMPARING_S = 0.02  # a comparison within this time is part of the immediate report
_MAX_LISTED = 20  # violations in the message to the model
_VALIDATING_S = 2.0
_MAX_ANSWER = 4 * 2**20  # bytes
_MESSAGE = (
    "Your answer does not have the form that was asked for:\n{violations}\n"
    "Reply with the whole answer once more in that form, and with nothing else. Do not change what it says."
)

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
    """A request that can be sent again: `call` is how it went out on its route."""

    telemetry: Telemetry
    request: Request
    route: Route
    call: Call

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
        headers = without(self.call.headers, _NOT_REPEATED)
        call = replace(self.call, headers=headers, body=await asyncio.to_thread(dumps, body))
        forwarding = Forwarding(self.telemetry, dialect.operation, body, purpose)
        reply = await forwarding.send(self.route.once(), as_it_is(call))
        answer = None
        try:
            async with aclosing(chunks_of(reply)) as chunks:
                raw, end = await read(chunks, _MAX_ANSWER)
            if reply.status != 200:
                return Repeated(reason=f"status {reply.status}")
            if end == "whole":
                decoder = Decoder(header(reply.headers, b"content-encoding"))
                _, answer, _ = await read_answer(raw, decoder, dialect, _MAX_ANSWER)
        except BaseException as error:
            forwarding.broke_off(error)
            raise
        finally:
            forwarding.end(answer)
        if answer is None:
            return Repeated(reason="unreadable")
        text = "\n\n".join(choice.text for choice in answer.choices() if choice.text)
        usage = {name: answer.usage.get(name) for name in ("prompt_tokens", "completion_tokens")}
        counts = {name: value for name, value in usage.items() if isinstance(value, int)}
        return Repeated(text, "" if text.strip() else "no text", **counts)


@dataclass(frozen=True, slots=True)
class Sampler:
    """Samples answers, a bounded number at a time over all exchanges."""

    telemetry: Telemetry
    workers: Workers
    policy: Policy
    judge: Judge
    settings: Sampling
    at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_CONCURRENT))

    def begin(self, request: Request, route: Route, call: Call) -> SamplingSession | None:
        """Start sampling for a request that is sent as `call`; None if no samples are wanted."""
        settings, requested = self.settings, request.options.samples
        count = (requested if settings.on_request else None) or (settings.samples if settings.enabled else 0)
        refusal = "too_large" if len(call.body) > MAX_REPEATED else "" if count else "not_allowed"
        if refusal and requested is None:
            return None
        at = () if refusal else temperatures(settings.temperatures, count)
        return SamplingSession(self, Repeat(self.telemetry, request, route, call), at, refusal)


def temperatures(given: Sequence[float], count: int) -> tuple[float, ...]:
    """The temperatures of `count` samples: those given, then each a tenth above the one before, up to 2."""
    found = list(given[:count])
    while len(found) < count:
        found.append(min(2.0, round(found[-1] + _STEP, 4)) if found else 0.0)
    return tuple(found)


class SamplingSession:
    """The samples of one exchange; a `refusal` is the reason why there are none."""

    def __init__(self, parts: Sampler, repeat: Repeat, at: tuple[float, ...], refusal: str = "") -> None:
        self._parts = parts
        self._repeat = repeat
        self._at = at
        self._refusal = refusal
        self._sampling = asyncio.create_task(self._sampled())
        # mark a failure as retrieved; it is raised again where the result is used
        self._sampling.add_done_callback(lambda task: task.cancelled() or task.exception())

    def cancel(self) -> None:
        """Cancel the calls: the client has disconnected, or there is no answer to compare."""
        self._sampling.cancel()

    async def so_far(self, report: Report) -> SelfConsistency:
        """Return the result if the samples are complete and quickly compared, else `pending`."""
        if self._sampling.done():
            try:
                return await asyncio.wait_for(self.complete(report), _COMPARING_S)
            except TimeoutError:
                pass
        return SelfConsistency("pending", len(self._at), self._at)

    async def complete(self, report: Report) -> SelfConsistency:
        """Return the comparison once the samples are complete. Raises nothing but cancellation."""
        try:
            samples = await asyncio.shield(self._sampling)
            return await self._parts.workers.insist(self._compared, samples, report)
        except Exception as error:  # noqa: BLE001 - no fault of sampling may reach an answer
            sampling_log.warning("sampling.failed", grounding_id=report.id, error=type(error).__name__)
            return SelfConsistency("failed", len(self._at), self._at, reasons=("error",))

    def _compared(self, samples: Sequence[Repeated], report: Report) -> SelfConsistency:
        texts = [sample.text for sample in samples if sample.text.strip()]
        found = [
            (choice.index, each)
            for choice in report.choices
            for each in compare_answers(
                [judgement.claim for judgement in choice.judgements], texts, self._parts.policy, self._parts.judge
            )
        ]
        return SelfConsistency(
            status="complete" if texts else "failed",
            asked=len(self._at),
            temperatures=self._at,
            answered=len(texts),
            risk=risk_of(each for _, each in found),
            claims=tuple(SampledClaim(index, each.claim.id, each.votes, each.variance) for index, each in found),
            calls=len(samples),
            prompt_tokens=sum(sample.prompt_tokens for sample in samples),
            completion_tokens=sum(sample.completion_tokens for sample in samples),
            reasons=tuple(dict.fromkeys(filter(None, (self._refusal, *(sample.reason for sample in samples))))),
        )

    async def _sampled(self) -> Sequence[Repeated]:
        if not self._at:
            return ()
        body = await self._repeat.body()
        return await asyncio.gather(*(self._sample(body, temperature) for temperature in self._at))

    async def _sample(self, body: Mapping[str, Any], temperature: float) -> Repeated:
        repeated = self._repeat.request.dialect.resampled(body, temperature)
        try:
            async with asyncio.timeout(self._parts.settings.timeout), self._parts.at_once:
                return await self._repeat.ask(repeated, "sample")
        except TimeoutError:
            return Repeated(reason="timeout")


@dataclass(frozen=True, slots=True)
class Corrector:
    """Requests corrections of answers that violate their schema, a bounded number at a time."""

    telemetry: Telemetry
    schemas: SchemaProcess
    workers: Workers
    settings: CorrectionSettings
    at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_CONCURRENT))

    def begin(self, request: Request, route: Route, call: Call) -> CorrectionSession | None:
        """Return the correction of the answer to a request sent as `call`; None if it is not wanted."""
        is_requested = request.options.corrective_retry
        if not (is_requested or self.settings.enabled):
            return None
        is_allowed = self.settings.enabled or self.settings.on_request
        refusal = "not_allowed" if not is_allowed else "too_large" if len(call.body) > MAX_REPEATED else ""
        return CorrectionSession(self, Repeat(self.telemetry, request, route, call), refusal)


@dataclass(frozen=True, slots=True)
class CorrectionSession:
    """The correction of one answer, which begins once its violations are known; a `refusal` is why there is none."""

    parts: Corrector
    repeat: Repeat
    refusal: str

    def due(self, report: Report, answer: AnswerSnapshot) -> Correction | None:
        """Return the state of the correction before the model is asked; None if there is nothing to correct."""
        if not report.violations:
            return None
        if self.refusal:
            return Correction("failed", reason=self.refusal)
        if len(_texts(answer)) != 1:
            return Correction("failed", reason="several_choices")
        return Correction("pending")

    async def complete(self, report: Report, answer: AnswerSnapshot) -> Correction:
        """Ask for the correction and validate it. Raises nothing but cancellation."""
        try:
            async with asyncio.timeout(self.parts.settings.timeout), self.parts.at_once:
                message = _MESSAGE.format(violations=_listed(report.violations or ()))
                dialect, body = self.repeat.request.dialect, await self.repeat.body()
                found = await self.repeat.ask(dialect.continued(body, _texts(answer)[0], message), "correction")
            violations = None if found.reason else await self._violations(found.text)
        except TimeoutError:
            return Correction("failed", reason="timeout")
        except Exception:  # noqa: BLE001 - no fault of a correction may reach a report
            return Correction("failed", reason="error")
        return Correction(
            "failed" if found.reason else "complete",
            found.text or None,
            violations,
            found.prompt_tokens,
            found.completion_tokens,
            found.reason,
        )

    async def _violations(self, text: str) -> tuple[Violation, ...]:
        ask = self.repeat.request.ask
        found = await self.parts.workers.insist(_broken, text, ask.evidence_fields) if ask.evidence_fields else ()
        if ask.json_schema is not None:
            (result,) = await self.parts.schemas.validate([text], ask.json_schema, _VALIDATING_S)
            found = (*found, *result.violations)
        return tuple(dict.fromkeys(found))[:MAX_VIOLATIONS]


def _texts(answer: AnswerSnapshot) -> list[str]:
    return [choice.text for choice in answer.choices if choice.text]


def _broken(text: str, fields: Sequence[str]) -> tuple[Violation, ...]:
    try:
        return read_evidence(json.loads(text), fields)[1]
    except (ValueError, RecursionError):
        return (NO_JSON,)


def _listed(violations: Sequence[Violation]) -> str:
    """Return violations as lines for a model, the first of them where there are many."""
    lines = [
        f"- {each.field or 'the answer'}{'' if each.index is None else f'[{each.index}]'}: "
        f"expected {each.expected}, found {each.found}"
        for each in violations[:_MAX_LISTED]
    ]
    more = len(violations) - _MAX_LISTED
    return "\n".join([*lines, *([f"- and {more} more"] if more > 0 else [])])
