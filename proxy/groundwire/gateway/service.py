"""Verify the exchanges that pass through the gateway: the components, built once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from groundwire.backends.schema_process import SchemaProcess
from groundwire.caches import BoundedCache
from groundwire.dialects.request import Options, Request
from groundwire.domain import Exchange, Source
from groundwire.errors import Overload
from groundwire.features.consistency import EarlierAnswer
from groundwire.gateway.models import Estimators, LanguageJudges
from groundwire.gateway.reports import (
    Annotation,
    DeferredQueue,
    annotate,
    entry_of,
    log_result,
    new_id,
    unverified_report,
)
from groundwire.judge import Judge
from groundwire.limits import Capacity, ConcurrencyLimiter, Slot
from groundwire.offload import Workers
from groundwire.pipeline import AnswerSnapshot, Prepared, policy_digest, prepare
from groundwire.policy import Policy
from groundwire.report import Report
from groundwire.storage.cache import VerdictCache
from groundwire.storage.memory import Reports
from groundwire.telemetry import Telemetry

if TYPE_CHECKING:  # these imports load SQLAlchemy, which is needed only with a database
    from groundwire.backends.facts import FactsDatabase
    from groundwire.gateway.claims import Memory
    from groundwire.storage.history.exchanges import Exchanges
    from groundwire.storage.history.history import History

consistency_log = structlog.get_logger("groundwire.consistency")
history_log = structlog.get_logger("groundwire.history")

_HISTORY_TIMEOUT_S = 0.5  # the report waits for it, the answer does not


@dataclass(frozen=True, slots=True)
class ExternalContext:
    """External context: evidence, earlier answers about the subject, and warnings about failures."""

    sources: tuple[Source, ...] = ()
    warnings: tuple[str, ...] = ()
    earlier: tuple[EarlierAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class ExternalContextLoader:
    """Load external context: facts of `memory` as evidence, values of the user's database from `facts`, and the newest
    earlier answers about a subject from `history`, which are read only if answers are compared (`comparing`).
    """

    memory: Memory | None = None
    facts: FactsDatabase | None = None
    history: Exchanges | None = None
    comparing: bool = True
    newest: int = 50

    async def load(self, request: Request) -> ExternalContext:
        """Load the external context of a request. Raises nothing but cancellation."""
        options, tenant = request.options, request.tenant
        sources, warnings, earlier = list[Source](), list[str](), tuple[EarlierAnswer, ...]()
        if self.memory and options.memory and options.subject is not None:
            sources += await self.memory.sources(options.subject, tenant)
        if self.facts and options.facts is not None:
            found = await self.facts.ask(options.facts, tenant)
            sources += found.sources
            warnings += map(str, found.shortfalls)
            warnings += [f"facts: no template takes {name!r}" for name in found.unknown]
        if self.history and self.comparing and options.subject is not None:
            answers = await self.earlier(self.history, options.subject, tenant)
            if answers is None:
                warnings.append("consistency: earlier answers could not be read")
            earlier = answers or ()
        return ExternalContext(tuple(sources), tuple(warnings), earlier)

    async def earlier(self, history: Exchanges, subject: str, tenant: str = "") -> tuple[EarlierAnswer, ...] | None:
        """Return the earlier answers to a tenant, the newest first; none where their texts are not stored.

        None when the history fails or takes too long. Raises nothing but cancellation.
        """
        try:
            async with asyncio.timeout(_HISTORY_TIMEOUT_S):
                return await history.earlier(subject, tenant, self.newest)
        except Exception as error:  # noqa: BLE001 - any error of a store
            consistency_log.warning("consistency.no_history", error=type(error).__name__)
            return None

    def unmet(self, options: Options) -> Iterator[str]:
        """Yield warnings about context that a request asks for and that is not configured."""
        if options.facts is not None and self.facts is None:
            yield "facts: no SQL templates are configured"
        if options.memory and self.memory is None:
            yield "memory: the memory gate is off"
        elif options.memory and options.subject is None:
            yield "memory: no subject is named"
        for name in ("subject", "session") if self.history is None else ():
            is_used = name == "subject" and options.memory
            if getattr(options, name) is not None and not is_used:
                yield f"{name}: nothing is stored, as store.url is not set"


T = TypeVar("T")

_MAX_EVIDENCE = 8 * 2**20  # bytes
_BYTES_PER_CHAR = 25  # of a context with its index and its vectors, measured


class EvidenceCache:
    """The evidence of the latest exchanges, as clients send the same documents again. Any thread may use it."""

    def __init__(self, max_bytes: int = _MAX_EVIDENCE) -> None:
        self._recent: BoundedCache[bytes, Prepared] = BoundedCache(max_bytes)

    def prepare(self, exchange: Exchange, is_over: Callable[[], bool]) -> Prepared:
        """Prepare the evidence of an exchange; it is stored unless `is_over` ended reading it."""
        key = _digest(exchange)
        if known := self._recent.get(key):
            return replace(known, exchange=exchange, context=known.context.renewed())
        prepared = prepare(exchange, is_over)
        if prepared.context.is_complete:
            size = sum(len(source.text) for source in prepared.context.sources)
            self._recent.put(key, replace(prepared, exchange=Exchange()), size * _BYTES_PER_CHAR)
        return prepared


def _digest(exchange: Exchange) -> bytes:
    """Return the SHA-256 of all that the evidence of an exchange is read from."""
    digest = sha256()

    def add(text: str, *about: object) -> None:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(repr((*about, len(encoded))).encode() + encoded)

    for message in exchange.messages:
        add("", replace(message, parts=()), len(message.parts))
        for part in message.parts:
            add(part.text, replace(part, text=""))
    for source in exchange.sources:
        add(source.text, replace(source, text=""))
    return digest.digest()


@dataclass(frozen=True, slots=True)
class GroundingService:
    """The components for verifying exchanges. `timeout` is the time in seconds for judging one answer without a model.

    A model of `estimators` is queried about claims that the judge leaves open, and so is that of `language_judges`, if
    one judges; both have separate time limits. `queue` receives the work for jobs: all of mode async, and verification
    that was cut short. `external_context` loads context that a request refers to, `history` stores exchanges, `budget`
    bounds the memory for requests and answers. `log_rejections` enables an event about rejected quotations.
    """

    workers: Workers
    cache: VerdictCache
    reports: Reports
    policy: Policy
    telemetry: Telemetry
    timeout: float
    judge: Judge = Judge()
    estimators: Estimators | None = None
    language_judges: LanguageJudges | None = None
    schemas: SchemaProcess = field(default_factory=SchemaProcess)
    evidence: EvidenceCache = field(default_factory=EvidenceCache)
    queue: DeferredQueue | None = None
    external_context: ExternalContextLoader = field(default_factory=ExternalContextLoader)
    history: History | None = None
    budget: ConcurrencyLimiter = field(default_factory=lambda: ConcurrencyLimiter(Capacity()))
    log_rejections: bool = True
    clock: Callable[[], float] = time.perf_counter
    now: Callable[[], float] = time.time
    _in_flight: dict[Hashable, asyncio.Future[None]] = field(default_factory=dict)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def reserve(self, size: int) -> Slot:
        """Reserve memory for one exchange, whose request has `size` bytes. Raises Overload when there is none."""
        slot = self.budget.try_acquire(size)
        if slot is None:
            raise Overload("too much is being verified")
        return slot

    def unread(self, request: Request, id_: str = "", reason: str | None = None) -> Annotation:
        """Return and store the report on an exchange that passes without verification.

        With a `reason` it has failed; without one there was no memory for it.
        """
        id_ = id_ or new_id()
        with self.telemetry.verification(id_) as span:
            report = unverified_report(id_, policy_digest(self.policy_of(request)), reason)
            annotation = self.store(annotate(report, request), request)
            self.telemetry.evaluated(span, report, None)
            self.log(report, AnswerSnapshot(()))
            return annotation

    def policy_of(self, request: Request) -> Policy:
        """Return the policy for a request, which may ask for fewer verifiers than are enabled."""
        wanted = request.options.verifiers
        if wanted is None:
            return self.policy
        return replace(self.policy, verifiers=tuple(name for name in self.policy.verifiers if name in wanted))

    def store(self, annotation: Annotation, request: Request) -> Annotation:
        """Store a report, to be fetched by its id, and return it."""
        self.reports.put(annotation.report.id, annotation.whole, request.tenant)
        return annotation

    def record(self, annotation: Annotation, request: Request, answer: AnswerSnapshot) -> None:
        """Record an exchange in the background, if there is a history."""
        if self.history is not None:
            self.start(self.queue_entry(self.history, annotation, request, answer))

    async def queue_entry(
        self, history: History, annotation: Annotation, request: Request, answer: AnswerSnapshot
    ) -> None:
        """Queue the entry of an exchange, which a worker prepares, for the history. Raises nothing but cancellation."""
        try:
            entry = await self.workers.insist(entry_of, annotation, request, answer, self.now())
        except Exception:  # noqa: BLE001 - logged with its traceback
            history_log.exception("history.unreadable", grounding_id=annotation.report.id)
        else:
            history.record(entry)

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
