"""The models that verification queries: the judging language model, estimators of probabilities, and their limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

import structlog

from groundwire.backends.budgets import Cited, Estimator, budgets
from groundwire.backends.language_judge import BlockingModel, LanguageJudge
from groundwire.backends.model_client import Limits, Meter
from groundwire.domain import Budget, Claim, Estimate, Judgement, Operation, Probability, Source, Unavailable
from groundwire.evidence.index import Context
from groundwire.features.information_budget import cited_evidence, is_undecided, joined
from groundwire.gateway.forward import Caller
from groundwire.judge import Judge
from groundwire.offload import Workers
from groundwire.policy import Policy
from groundwire.report import StageUse
from groundwire.scoring.budget import measure
from groundwire.storage.cache import Cache
from groundwire.verifiers.entailment import NoModel, Opinion, Question, State
from groundwire.verifiers.selection import plain_text

if TYPE_CHECKING:
    from groundwire.storage.shared import SharedValues

log = structlog.get_logger("groundwire.verification")
judge_log = structlog.get_logger("groundwire.judge")

_CONCURRENT_CALLS = 8  # calls to model servers in flight, of all operations together
_GRACE_S = 0.05  # for waiting for an estimate that another operation computes
_WAITING, _WAITING_QUEUE = 8, 64


@dataclass(frozen=True, slots=True)
class Backend:
    """An estimator for one operation, and the identity of its model."""

    estimator: Estimator
    identity: str


OpenBackend = Callable[[Caller, Limits, Meter], Backend]
"""Prepare a backend for one operation. Raises UnknownModel when no upstream serves the caller's model."""


@dataclass(frozen=True, slots=True)
class Estimators:
    """The backends by name, and the backend of each operation; a missing operation is off.

    `timeout` is the time in seconds for all estimates of one operation.
    """

    backends: Mapping[str, OpenBackend]
    operations: Mapping[Operation, str]
    cache: Cache[Estimate]
    batch_size: int
    timeout: float
    at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_CONCURRENT_CALLS))

    def open(self, operation: Operation, caller: Caller = Caller(), meter: Meter | None = None) -> CachedEstimator:
        """An estimator whose time begins now, and whose cost `meter` counts.

        Raises UnknownModel, and KeyError when the operation is off.
        """
        limits = Limits(self.batch_size, self.at_once, asyncio.get_running_loop().time() + self.timeout)
        backend = self.backends[self.operations[operation]](caller, limits, meter or Meter())
        return CachedEstimator(backend, self.cache, limits.until)


def estimate_cache(
    max_entries: int, ttl: float, further: SharedValues[Estimate] | None = None, max_size: int = 64 * 2**20
) -> Cache[Estimate]:
    """Build a cache of estimates; only probabilities are stored, so that failures are retried."""

    def is_known(estimate: Estimate) -> bool:
        return isinstance(estimate, Probability)

    return Cache(max_entries, ttl, is_known, is_known, further=further, max_size=max_size)


@dataclass(frozen=True, slots=True)
class CachedEstimator:
    """An estimator that caches results and shares concurrent queries, until a time of the event loop."""

    backend: Backend
    cache: Cache[Estimate]
    until: float

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        """See `Estimator`."""
        (estimate,) = await self.batch_estimate([claim], context)
        return estimate

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        """See `Estimator`."""
        digest = await asyncio.to_thread(context_digest, context)
        keys = [estimate_key(self.backend.identity, claim, digest) for claim in claims]

        async def compute(places: Sequence[int]) -> Sequence[Estimate]:
            return await self.backend.estimator.batch_estimate([claims[place] for place in places], context)

        try:
            async with asyncio.timeout_at(self.until + _GRACE_S):
                found, _ = await self.cache.get(keys, compute)
        except TimeoutError:
            return [Unavailable("timeout")] * len(claims)
        return found


def context_digest(sources: Sequence[Source]) -> str:
    """Return a digest of the sources as shown to a model."""
    shown = [(source.id, source.title, source.sha256) for source in sources]
    return blake2b(repr(shown).encode(), digest_size=16).hexdigest()


def estimate_key(identity: str, claim: Claim, context: str) -> bytes:
    """Return the exact key of an estimate: everything that its question and its model depend on."""
    return blake2b(repr((identity, claim.text, claim.lead, context)).encode(), digest_size=16).digest()


class ModelStageSession:
    """The last stage of the cascade: judgements of the model on one answer."""

    def __init__(self, estimators: Estimators, policy: Policy, caller: Caller) -> None:
        self._estimators = estimators
        self._policy = policy
        self._caller = caller
        self._ahead: asyncio.Task[Sequence[Judgement]] | None = None
        self._meter = Meter()
        self._claims = 0
        self._ms = 0.0

    @property
    def used(self) -> StageUse:
        """The claims of the latest turn, and the cost of all turns."""
        cost = self._meter
        return StageUse("model", self._claims, cost.calls, cost.prompt_tokens, cost.completion_tokens, self._ms)

    def look_ahead(self, judgements: Sequence[Judgement], context: Context) -> None:
        """Query the model early about claims that will probably be part of the answer, so that little is left at its
        end.

        Not done if the model that answers is the backend: that would delay its answer.
        """
        if self._policy.model.backend != "self" and (self._ahead is None or self._ahead.done()):
            self._ahead = asyncio.create_task(self.refine(judgements, context))

    async def refine(self, judgements: Sequence[Judgement], context: Context) -> list[Judgement]:
        """Return the judgements, with those on undecided claims refined by the model. Raises only cancellation."""
        start = time.perf_counter()
        places = [at for at, judgement in enumerate(judgements) if is_undecided(judgement, self._policy.model)]
        refined = list(judgements)
        if places:
            measured = await self._measured([judgements[at].claim for at in places], context)
            for at, budget in zip(places, measured, strict=True):
                refined[at] = joined(judgements[at], budget, context, self._policy)
        self._claims = len(places)
        self._ms += (time.perf_counter() - start) * 1000
        return refined

    async def _measured(self, claims: Sequence[Claim], context: Context) -> list[Budget]:
        """Measure claims without their citation marks, each with the evidence that it cites."""
        cited = [Cited(replace(each, text=plain_text(each.text)), *cited_evidence(each, context)) for each in claims]
        try:
            estimator = self._estimators.open("output_verification", self._caller, self._meter)
            return await budgets(cited, context.sources, estimator, self._policy.model.flag_threshold_bits)
        except Exception as error:  # noqa: BLE001 - earlier verdicts must not be lost
            log.warning("model_stage.failed", error=type(error).__name__)
            return [measure(Unavailable("error"))] * len(claims)

    def cancel(self) -> None:
        """Cancel pending queries."""
        if self._ahead is not None:
            self._ahead.cancel()


class _RemoteModel(NoModel):
    """The placeholder of a language model in a judge: it is ready, and a session queries it."""

    state: State = "ready"


OpenJudge = Callable[[Caller, Limits, Meter], LanguageJudge]
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

    def judge(self, fallback: Judge) -> Judge:
        """Return the judge whose questions are sent by a separate session."""
        return Judge(_RemoteModel(), max_chars=self.max_chars, fallback=fallback, vectors=fallback.vectors)

    def blocking(self, fallback: Judge, caller: Caller) -> Judge:
        """Return the judge for a thread of `waiting`, which waits while the event loop asks the model."""
        loop, session = asyncio.get_running_loop(), LanguageJudgeSession(self, caller)
        model = BlockingModel(session, lambda work: asyncio.run_coroutine_threadsafe(work, loop).result())
        return Judge(model, max_chars=self.max_chars, fallback=fallback, vectors=fallback.vectors)


class LanguageJudgeSession:
    """The judge of one exchange."""

    def __init__(self, parts: LanguageJudges, caller: Caller) -> None:
        self._meter = Meter()
        self._claims = 0
        self._ms = 0.0
        self._parts = parts
        self._caller = caller

    @property
    def used(self) -> StageUse:
        """The cost of the questions so far."""
        cost = self._meter
        return StageUse("judge", self._claims, cost.calls, cost.prompt_tokens, cost.completion_tokens, self._ms)

    @property
    def identity(self) -> str:
        """The model that judges, where that depends on the exchange; else empty."""
        return self._caller.model if self._parts.is_own else ""

    async def judge(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        """Return the opinion on each question, in order. It raises nothing but cancellation."""
        if not questions:
            return []
        if self._parts.is_own and not self._caller.model:
            return [Unavailable("no_verdict")] * len(questions)  # no known model gave the answer
        self._claims += len(questions)
        start = asyncio.get_running_loop().time()
        try:
            limits = Limits(self._parts.batch_size, self._parts.at_once, start + self._parts.timeout)
            return await self._parts.open(self._caller, limits, self._meter).judge(questions)
        except Exception as error:  # noqa: BLE001 - the verdicts of other checks must not be lost
            judge_log.warning("judge.failed", error=type(error).__name__)
            return [Unavailable("error")] * len(questions)
        finally:
            self._ms += (asyncio.get_running_loop().time() - start) * 1000
