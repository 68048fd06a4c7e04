"""The language model that judges: opened for each exchange, bounded in time and concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog

from groundwire.backends.estimator import Limits, Meter
from groundwire.backends.language import BlockingModel, LanguageJudge
from groundwire.domain import Unavailable
from groundwire.gateway.estimators import Asker
from groundwire.gateway.workers import Workers
from groundwire.judge import Judge
from groundwire.report import StageUse
from groundwire.verifiers.entailment.model import NoModel, Opinion, Question, State

log = structlog.get_logger("groundwire.judge")

_WAITING, _WAITING_QUEUE = 8, 64


class _Elsewhere(NoModel):
    """The place of a language model in a judge: it is ready, and asked by the session that opened the judge."""

    state: State = "ready"


OpenJudge = Callable[[Asker, Limits, Meter], LanguageJudge]
"""Open the judge for one operation. Raises UnknownModel when no upstream serves its model."""


@dataclass(frozen=True, slots=True)
class LanguageJudges:
    """Opens the judge for each exchange; all of them share the limit of concurrent calls.

    With `is_own` the answering model judges its answer. `waiting` are threads that wait for single claims.
    """

    open: OpenJudge
    timeout: float
    at_once: asyncio.Semaphore
    batch_size: int
    max_chars: int
    is_own: bool = False
    waiting: Workers = field(default_factory=lambda: Workers(_WAITING, _WAITING_QUEUE))

    def begin(self, asker: Asker) -> JudgeSession:
        """Return the judge of one exchange."""
        return JudgeSession(self, asker)

    def judge(self, fallback: Judge) -> Judge:
        """Return the judge whose questions are sent by a separate session."""
        return Judge(_Elsewhere(), max_chars=self.max_chars, fallback=fallback)

    def blocking(self, fallback: Judge, asker: Asker) -> Judge:
        """Return the judge for a thread of `waiting`, which waits while the event loop asks the model."""
        loop, session = asyncio.get_running_loop(), self.begin(asker)
        model = BlockingModel(lambda: session, lambda work: asyncio.run_coroutine_threadsafe(work, loop).result())
        return Judge(model, max_chars=self.max_chars, fallback=fallback)


class JudgeSession:
    """The judge of one exchange. `meter` counts the calls and tokens so far, `claims` the questions."""

    def __init__(self, parts: LanguageJudges, asker: Asker) -> None:
        self.meter = Meter()
        self.claims = 0
        self._ms = 0.0
        self._parts = parts
        self._asker = asker

    @property
    def used(self) -> StageUse:
        """The cost of the questions so far."""
        tokens = self.meter.prompt_tokens, self.meter.completion_tokens
        return StageUse("judge", self.claims, self.meter.calls, *tokens, ms=self._ms)

    @property
    def identity(self) -> str:
        """The model that judges, where that depends on the exchange; else empty."""
        return self._asker.model if self._parts.is_own else ""

    async def judge(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        """Return the opinion on each question, in order. It raises nothing but cancellation."""
        if not questions:
            return []
        if self._parts.is_own and not self._asker.model:
            return [Unavailable("no_verdict")] * len(questions)  # an answer that no model of ours gave
        self.claims += len(questions)
        start = asyncio.get_running_loop().time()
        try:
            limits = Limits(self._parts.batch_size, self._parts.at_once, start + self._parts.timeout)
            return await self._parts.open(self._asker, limits, self.meter).judge(questions)
        except Exception as error:  # noqa: BLE001 - no fault of a judge may cost the verdicts of the other checks
            log.warning("judge.failed", error=type(error).__name__)
            return [Unavailable("error")] * len(questions)
        finally:
            self._ms += (asyncio.get_running_loop().time() - start) * 1000
