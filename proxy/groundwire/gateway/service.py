"""Verify the exchanges that pass through the gateway: the components, built once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, TypeVar

from groundwire.backends.schema_process import SchemaProcess
from groundwire.caches import BoundedCache
from groundwire.dialects.request import Request
from groundwire.domain import Exchange
from groundwire.gateway.byte_budget import ByteBudget
from groundwire.gateway.deferred import DeferredQueue
from groundwire.gateway.external_context import ExternalContextLoader
from groundwire.gateway.models import LanguageJudges, ModelStage
from groundwire.gateway.reports import Annotation, Recorder, annotate, log_result, new_id, unverified_report
from groundwire.gateway.workers import Workers
from groundwire.judge import Judge
from groundwire.pipeline import AnswerSnapshot, Prepared, policy_digest, prepare
from groundwire.policy import Policy
from groundwire.report import Report
from groundwire.storage.reports import Reports
from groundwire.storage.verdicts import VerdictCache
from groundwire.telemetry import Telemetry

T = TypeVar("T")

_MAX_EVIDENCE = 8 * 2**20  # bytes
_BYTES_PER_CHAR = 20  # of a context with its index, measured


class EvidenceCache:
    """The evidence of the latest exchanges, as clients send the same documents again. Any thread may use it."""

    def __init__(self, max_bytes: int = _MAX_EVIDENCE) -> None:
        self._recent: BoundedCache[bytes, Prepared] = BoundedCache(max_bytes)

    def prepare(self, exchange: Exchange, is_over: Callable[[], bool]) -> Prepared:
        """Prepare the evidence of an exchange; it is stored unless `is_over` ended reading it."""
        key = blake2b(repr((exchange.messages, exchange.sources)).encode(), digest_size=16).digest()
        if known := self._recent.get(key):
            return replace(known, exchange=exchange, context=known.context.renewed())
        prepared = prepare(exchange, is_over)
        if prepared.context.is_complete:
            size = sum(len(source.text) for source in prepared.context.sources)
            self._recent.put(key, replace(prepared, exchange=Exchange()), size * _BYTES_PER_CHAR)
        return prepared


@dataclass(frozen=True, slots=True)
class GroundingService:
    """The components for verifying exchanges. `timeout` is the time in seconds for judging one answer without a model.

    `model_stage` is queried about claims that the judge leaves open, and so is the model of `language_judges`, if one
    judges; both have separate time limits. `queue` receives the work for jobs: all of mode async, and verification that
    was cut short. `external_context` loads context that a request refers to, `recorder` stores exchanges, `budget`
    bounds the memory for requests and answers. `log_rejections` enables an event about rejected quotations.
    """

    workers: Workers
    cache: VerdictCache
    reports: Reports
    policy: Policy
    telemetry: Telemetry
    timeout: float
    judge: Judge = Judge()
    model_stage: ModelStage | None = None
    language_judges: LanguageJudges | None = None
    schemas: SchemaProcess = field(default_factory=SchemaProcess)
    evidence: EvidenceCache = field(default_factory=EvidenceCache)
    queue: DeferredQueue | None = None
    external_context: ExternalContextLoader = field(default_factory=ExternalContextLoader)
    recorder: Recorder | None = None
    budget: ByteBudget = field(default_factory=ByteBudget)
    log_rejections: bool = True
    clock: Callable[[], float] = time.perf_counter
    now: Callable[[], float] = time.time
    _in_flight: dict[Hashable, asyncio.Future[None]] = field(default_factory=dict)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def unread(self, request: Request, id_: str = "", reason: str | None = None) -> Annotation:
        """Return and store the report on an exchange that passes without verification.

        With a `reason` it has failed; without one there was no memory for it.
        """
        id_ = id_ or new_id()
        with self.telemetry.verification(id_) as span:
            report = unverified_report(id_, policy_digest(self.policy_of(request)), reason)
            annotation = annotate(report, request)
            self.store(annotation, request)
            self.telemetry.evaluated(span, report, None)
            self.log(report, AnswerSnapshot(()))
            return annotation

    def policy_of(self, request: Request) -> Policy:
        """Return the policy for a request, which may ask for fewer verifiers than are enabled."""
        wanted = request.options.verifiers
        if wanted is None:
            return self.policy
        return replace(self.policy, verifiers=tuple(name for name in self.policy.verifiers if name in wanted))

    def store(self, annotation: Annotation, request: Request) -> None:
        """Store a report, to be fetched by its id."""
        self.reports.put(annotation.report.id, annotation.whole, request.tenant)

    def record(self, annotation: Annotation, request: Request, answer: AnswerSnapshot) -> None:
        """Record an exchange in the background, if there is a store."""
        if self.recorder is not None:
            self.start(self.recorder.record(annotation, request, answer))

    def log(self, report: Report, answer: AnswerSnapshot) -> None:
        """Log the result of a report."""
        log_result(report, answer, self.policy.quotes if self.log_rejections else None)

    @asynccontextmanager
    async def exclusive(self, key: Hashable) -> AsyncIterator[None]:
        """Wait until nobody else is in this context with the same key."""
        while key in self._in_flight:
            await asyncio.wait({self._in_flight[key]})
        self._in_flight[key] = done = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            del self._in_flight[key]
            done.set_result(None)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` in the background; a failure is raised where its result is used."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # mark it as retrieved

    async def settle(self, seconds: float) -> None:
        """Wait `seconds` at most for reports in progress and for their recording."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=seconds)
