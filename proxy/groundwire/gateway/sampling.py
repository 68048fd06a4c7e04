"""Sample further answers to the same request and compare them. The answer never waits for this."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from groundwire.dialects.request import Request
from groundwire.features.agreement import compare_answers
from groundwire.gateway.repeat import MAX_REPEATED, Repeat, Repeated
from groundwire.gateway.workers import Workers
from groundwire.judge import Judge
from groundwire.policy import Policy
from groundwire.report import Report, SampledClaim, SelfConsistency
from groundwire.telemetry import Telemetry
from groundwire.upstream.router import Route
from groundwire.wire import Call

log = structlog.get_logger("groundwire.sampling")

_STEP = 0.1  # difference of temperature between further samples
_AT_ONCE = 8  # samples in flight, of all exchanges together
_COMPARING_S = 0.02  # a comparison within this time is part of the immediate report


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """Settings of sampling: `samples` for each answer when `enabled`, or as a request asks, if permitted.

    `timeout` (seconds) is for all samples of one answer, `max_answer` (bytes) for one of them.
    """

    enabled: bool = False
    samples: int = 3
    temperatures: tuple[float, ...] = (0.0, 0.1, 0.2)
    on_request: bool = True
    timeout: float = 60.0
    max_answer: int = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Sampler:
    """Samples answers, a bounded number at a time over all exchanges."""

    settings: SamplingSettings
    telemetry: Telemetry
    workers: Workers
    policy: Policy
    judge: Judge = Judge()
    at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    def begin(self, request: Request, route: Route, call: Call) -> Sampling | None:
        """Start sampling for a request that is sent as `call`; None if no samples are wanted."""
        settings, asked = self.settings, request.options.samples
        default = settings.samples if settings.enabled else 0
        count = (asked if settings.on_request else None) or default
        if len(call.body) > MAX_REPEATED:
            count = 0
        if not count and asked is None:
            return None
        repeat = Repeat(self.telemetry, request, route, call, settings.max_answer)
        return Sampling(self, repeat, temperatures(settings.temperatures, count))


def temperatures(given: Sequence[float], count: int) -> tuple[float, ...]:
    """The temperatures of `count` samples: those given, then each a tenth above the one before, up to 2."""
    found = list(given[:count])
    while len(found) < count:
        found.append(min(2.0, round(found[-1] + _STEP, 4)) if found else 0.0)
    return tuple(found)


class Sampling:
    """The samples of one exchange on their way; none where they were asked for and may not be."""

    def __init__(self, parts: Sampler, repeat: Repeat, at: tuple[float, ...]) -> None:
        self._parts = parts
        self._repeat = repeat
        self._at = at
        self._sampling = asyncio.create_task(self._sampled())
        self._sampling.add_done_callback(_heard)

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
            log.warning("sampling.failed", grounding_id=report.id, error=type(error).__name__)
            return SelfConsistency("failed", len(self._at), self._at, reasons=("error",))

    def _compared(self, samples: Sequence[Repeated], report: Report) -> SelfConsistency:
        texts = [sample.text for sample in samples if sample.text.strip()]
        found = [
            (choice.index, each)
            for choice in report.choices
            for each in compare_answers(
                [judgement.claim for judgement in choice.judgements], texts, self._parts.policy, self._parts.judge
            ).claims
        ]
        known = [each.variance for _, each in found if each.variance is not None]
        return SelfConsistency(
            status="complete" if texts else "failed",
            asked=len(self._at),
            temperatures=self._at,
            answered=len(texts),
            risk=sum(known) / len(known) if known else None,
            claims=tuple(SampledClaim(index, each.claim.id, each.votes, each.variance) for index, each in found),
            calls=len(samples),
            prompt_tokens=sum(sample.prompt_tokens for sample in samples),
            completion_tokens=sum(sample.completion_tokens for sample in samples),
            reasons=tuple(dict.fromkeys(sample.reason for sample in samples if sample.reason))
            if self._at
            else ("not_allowed",),
        )

    async def _sampled(self) -> Sequence[Repeated]:
        asked = await self._repeat.body()
        return await asyncio.gather(*(self._sample(asked, temperature) for temperature in self._at))

    async def _sample(self, asked: Mapping[str, Any], temperature: float) -> Repeated:
        body = self._repeat.request.dialect.again(asked, temperature)
        try:
            async with asyncio.timeout(self._parts.settings.timeout), self._parts.at_once:
                return await self._repeat.ask(body, "sample")
        except TimeoutError:
            return Repeated(reason="timeout")


def _heard(task: asyncio.Task[Any]) -> None:
    """Mark a failure as retrieved; it is raised again where the result is used."""
    if not task.cancelled():
        task.exception()
