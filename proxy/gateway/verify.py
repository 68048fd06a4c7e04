"""Verification of one exchange: evidence is prepared while the model works, claims are judged as they come."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from hashlib import blake2b

import orjson
import structlog

from proxy.errors import Overload
from proxy.evidence.schema_process import SchemaProcess
from proxy.gateway.cascade import ModelStage, Stopwatch, stages
from proxy.gateway.estimators import Asker
from proxy.gateway.recall import Recall, Recalled
from proxy.gateway.workers import Workers
from proxy.stores.verdicts import VerdictCache
from proxy.types import CacheUse, Choice, Claim, Consistency, Exchange, Judgement, Policy, Report, Source, Status
from proxy.verification.aggregate import Examined, Reading, summarise
from proxy.verification.claims.answer import is_bare_number
from proxy.verification.consistency.compare import Past, compare
from proxy.verification.context.gathering import gather, question
from proxy.verification.context.index import Context
from proxy.verification.examine import MAX_SEARCH, Ask, read, with_schema
from proxy.verification.judge import Judge, unjudged
from proxy.verification.prompt import Bounds, bounds_of, prompt_size
from proxy.verification.schema import SchemaResult

log = structlog.get_logger("groundwire.verification")


_BATCH = 16  # claims judged in one job, so that exchanges take turns in the workers

_TIMEOUT = "The time for checking this answer was over."
_OVERLOAD = "There was no room to check it under the present load."


@dataclass(frozen=True, slots=True)
class Verification:
    """Everything that verifying needs. `timeout` is the time in seconds for judging one answer by words.

    `model` is asked about what these leave open, within a time of its own.
    """

    workers: Workers
    cache: VerdictCache
    timeout: float
    judge: Judge = Judge()
    model: ModelStage | None = None
    schemas: SchemaProcess = field(default_factory=SchemaProcess)
    clock: Callable[[], float] = time.perf_counter
    now: Callable[[], float] = time.time

    def begin(
        self,
        load: Callable[[], Exchange],
        ask: Ask,
        policy: Policy,
        id_: str | None = None,
        asker: Asker = Asker(),
        recall: Recall | None = None,
        tenant: str = "",
    ) -> Examination:
        """Starts on an exchange: `load` reads it in a worker, where its evidence is gathered and indexed at once.

        What `recall` gives is evidence too, beside what the exchange holds.
        """
        return Examination(self, load, ask, policy, id_ or new_id(), asker, recall, tenant)


class Examination:
    """The verification of one exchange, from its request to its report. `id` names the report from the start."""

    def __init__(
        self,
        parts: Verification,
        load: Callable[[], Exchange],
        ask: Ask,
        policy: Policy,
        id_: str,
        asker: Asker,
        recall: Recall | None = None,
        tenant: str = "",
    ) -> None:
        self.id = id_
        self._tenant = tenant
        self._parts = parts
        self._ask = ask
        self._policy = policy
        self._config = policy_digest(policy)
        self._known: dict[bytes, Judgement] = {}
        self._recalled = Recalled()
        self._past: Past | None = None
        self._bounds = Bounds()
        self._turn = parts.model.begin(policy, asker) if parts.model else None
        self._stopwatch = Stopwatch()
        self._preparing = asyncio.create_task(self._prepared(load, recall))
        self._preparing.add_done_callback(_heard)

    async def _prepared(self, load: Callable[[], Exchange], recall: Recall | None) -> tuple[Exchange, Context, float]:
        self._recalled = await recall() if recall else Recalled()
        return await self._parts.workers.run(self._prepare, load)

    def _prepare(self, load: Callable[[], Exchange]) -> tuple[Exchange, Context, float]:
        start, recalled = self._parts.clock(), self._recalled.sources
        deadline = start + self._parts.timeout
        if earlier := [each for each in self._recalled.earlier if each.exchange != self.id]:
            self._past = Past(earlier, self._policy)
        exchange = load()
        exchange = replace(exchange, sources=(*exchange.sources, *recalled)) if recalled else exchange
        context = _context(exchange, is_over=lambda: self._parts.clock() > deadline)
        self._bounds = bounds_of(exchange.messages)
        return exchange, context, (self._parts.clock() - start) * 1000

    async def look_ahead(self, choices: Sequence[Choice]) -> None:
        """Judges the claims that a growing answer holds so far, so that little is left at its end.

        Nothing is concluded from it: a claim that the rest of the answer changes is judged anew.
        """
        _, context, _ = await asyncio.shield(self._preparing)
        for choice in choices:
            reading = await self._parts.workers.run(read, choice, context, self._policy)
            judgements, _ = await self._judgements(reading.claims[:-1], context)
            if self._turn:
                self._turn.look_ahead(judgements, context)

    async def report(
        self,
        choices: Sequence[Choice],
        *,
        cut_short: bool = False,
        warnings: Sequence[str] = (),
        prompt_tokens: int | None = None,
        given: Sequence[Source] = (),
    ) -> Report:
        """The report on an answer, of a model server that read so many tokens of its prompt (None: nobody knows).

        What its own tools gave the model while it answered is evidence too.

        It raises nothing but cancellation: what could not be done is said in it (RE1).
        """
        validating = asyncio.create_task(self._validate(choices))
        try:
            return await self._report(choices, validating, cut_short, warnings, prompt_tokens, given)
        except Overload:
            return overloaded_report(self.id, self._config)
        except Exception as error:
            log.exception("verification.failed", grounding_id=self.id)
            return failed_report(self.id, error, self._config)
        finally:
            validating.cancel()

    async def _validate(self, choices: Sequence[Choice]) -> dict[int, SchemaResult]:
        """Validate choices against the JSON schema of the request, if it has one; the results are by their index."""
        said = [choice for choice in choices if choice.text]
        if self._ask.json_schema is None or not said:
            return {}
        texts = [choice.text for choice in said]
        results = await self._parts.schemas.validate(texts, self._ask.json_schema, self._parts.timeout)
        return {choice.index: result for choice, result in zip(said, results, strict=True)}

    async def _report(
        self,
        choices: Sequence[Choice],
        validating: Awaitable[Mapping[int, SchemaResult]],
        cut_short: bool,
        warnings: Sequence[str],
        prompt_tokens: int | None,
        given: Sequence[Source],
    ) -> Report:
        clock, workers = self._parts.clock, self._parts.workers
        started = clock()
        exchange, context, context_ms = await asyncio.shield(self._preparing)
        if given:
            context = await workers.run(_context, exchange, given)
        readings = await workers.run(self._read, choices, exchange, context)
        read_at = clock()
        claims = [claim for reading in readings for claim in reading.claims]
        judgements, cache = await self._judgements(claims, context)
        if self._turn:
            judgements = await self._turn.hear(judgements, context)
        validated = await validating
        readings = [with_schema(each, validated.get(each.choice.index)) for each in readings]
        examined = _examined(readings, judgements)
        consistency = await self._consistency(examined, exchange, self._past) if self._past else None
        done = clock()
        timing = (
            ("context", context_ms),
            ("claims", (read_at - started) * 1000),
            ("verify", (done - read_at) * 1000),
            ("total", (done - started) * 1000),
        )
        return await workers.insist(
            summarise,
            self.id,
            examined,
            context,
            self._policy,
            temperature=exchange.temperature,
            consistency=consistency,
            prompt=prompt_size(prompt_tokens, self._bounds),
            cut_short=cut_short,
            warnings=(*warnings, *self._recalled.warnings),
            cache=cache,
            stages=stages(judgements, self._stopwatch, self._turn.used) if self._turn else (),
            timing_ms=timing,
            config=self._config,
        )

    async def _consistency(self, examined: Sequence[Examined], exchange: Exchange, past: Past) -> Consistency | None:
        """The answer beside earlier ones of its subject; unknown where that fails or there is no room for it (RE1)."""
        said = [(each.reading.choice.index, each.judgements) for each in examined]
        asked = self._ask.question or question(exchange)
        try:
            now = self._parts.now()
            return await self._parts.workers.run(partial(compare, said, past, self._policy, at=now, question=asked))
        except Overload:
            return None
        except Exception:
            log.exception("consistency.failed", grounding_id=self.id)
            return None

    def _read(self, choices: Sequence[Choice], exchange: Exchange, context: Context) -> list[Reading]:
        share = MAX_SEARCH // max(1, len(choices))
        ask = replace(self._ask, json_schema=None, max_search=share)  # schemas are validated in a separate process
        if any(is_bare_number(choice.text) for choice in choices):
            ask = replace(ask, question=ask.question or question(exchange))
        return [read(choice, context, self._policy, ask) for choice in choices]

    async def _judgements(self, claims: Sequence[Claim], context: Context) -> tuple[list[Judgement], CacheUse]:
        """A judgement for each claim: known from looking ahead, from the cache, or given now."""
        deadline = self._parts.clock() + self._parts.timeout
        checkable = {claim_key(claim, context, self._config): claim for claim in claims if claim.skip_reason is None}
        fresh = {key: claim for key, claim in checkable.items() if not self._is_known(key)}
        judged, use = await self._parts.cache.get(
            list(fresh), partial(self._judge, list(fresh.values()), context, deadline), self._tenant
        )
        self._known |= zip(fresh, judged, strict=True)
        return [self._judgement(claim, context) for claim in claims], use

    def _is_known(self, key: bytes) -> bool:
        return key in self._known and self._known[key].verdict.label != "not_checked"

    def _judgement(self, claim: Claim, context: Context) -> Judgement:
        if claim.skip_reason is not None:
            return unjudged(claim, "skipped", "")
        return replace(self._known[claim_key(claim, context, self._config)], claim=claim)

    async def _judge(
        self, claims: Sequence[Claim], context: Context, deadline: float, positions: Sequence[int]
    ) -> list[Judgement]:
        """Judges the claims at `positions`, a batch at a time; past the deadline or the queue, says that it did not."""
        wanted = [claims[position] for position in positions]
        judgements: list[Judgement] = []
        for at in range(0, len(wanted), _BATCH):
            batch = wanted[at : at + _BATCH]
            if self._parts.clock() > deadline:
                judgements += [unjudged(claim, "timeout", _TIMEOUT) for claim in batch]
                continue
            try:
                judgements += await self._parts.workers.run(self._judge_batch, batch, context, deadline)
            except Overload:
                judgements += [unjudged(claim, "overload", _OVERLOAD) for claim in batch]
        return judgements

    def _judge_batch(self, claims: Sequence[Claim], context: Context, deadline: float) -> list[Judgement]:
        def is_over() -> bool:
            return self._parts.clock() > deadline

        return self._parts.judge(claims, context, self._policy, is_over, self._stopwatch.timed)

    def cancel(self) -> None:
        """Ends what is queued for this exchange."""
        self._preparing.cancel()
        if self._turn:
            self._turn.cancel()


def _context(exchange: Exchange, given: Sequence[Source] = (), is_over: Callable[[], bool] = lambda: False) -> Context:
    """Return the evidence of an exchange, and what it was given besides, ready to be searched."""
    whole = replace(exchange, sources=(*exchange.sources, *given)) if given else exchange
    context = Context(gather(whole), is_over)
    context.digest  # noqa: B018 - computed here, off the event loop
    return context


def new_id() -> str:
    """An id for a report, which nobody can guess."""
    return "gw-" + secrets.token_hex(12)


def failed_report(id_: str, error: Exception, config: str) -> Report:
    """The report of a verification that failed under the settings that `config` is the digest of."""
    return _without_verdict(id_, "failed", "error", f"Verification failed ({type(error).__name__}).", config)


def overloaded_report(id_: str, config: str) -> Report:
    """The report of a verification for which there was no room (DQ3)."""
    return _without_verdict(id_, "skipped", "overload", _OVERLOAD, config)


def unread_report(id_: str, reason: str, config: str) -> Report:
    """Return the report on an exchange of which request or answer could not be read, and say why."""
    return _without_verdict(id_, "failed", "error", reason, config)


def _without_verdict(id_: str, status: Status, reason: str, warning: str, config: str) -> Report:
    degraded, flags = (("all", reason),), ("verifier_degraded",)
    return Report(id_, status, "not_checked", flags=flags, warnings=(warning,), degraded=degraded, config=config)


@lru_cache(maxsize=64)
def policy_digest(policy: Policy) -> str:
    """Names the settings that decide verdicts: the first 16 hexadecimal digits of a digest."""
    return blake2b(orjson.dumps(asdict(policy)), digest_size=8).hexdigest()


def claim_key(claim: Claim, context: Context, config: str) -> bytes:
    """The exact key of a verdict: everything about claim, evidence and settings that it depends on (CA1)."""
    parts = (config, context.digest, claim.kind, claim.lead, claim.cited, claim.text)
    return blake2b(repr(parts).encode(), digest_size=16).digest()


def _examined(readings: Sequence[Reading], judgements: Sequence[Judgement]) -> list[Examined]:
    remaining = iter(judgements)
    return [Examined(reading, tuple(next(remaining) for _ in reading.claims)) for reading in readings]


def _heard(task: asyncio.Task[object]) -> None:
    """Marks a task's failure as seen; whoever needs its result meets it again."""
    if not task.cancelled():
        task.exception()
