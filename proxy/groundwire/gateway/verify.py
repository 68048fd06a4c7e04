"""Verification of one exchange: evidence is prepared while the model works, claims are judged as they come."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from hashlib import blake2b

import structlog
from pydantic_core import to_json

from groundwire.backends.schema_process import SchemaProcess
from groundwire.claims.answer import is_bare_number
from groundwire.domain import Choice, Claim, Exchange, Judgement, Source, Status
from groundwire.errors import Overload
from groundwire.evidence.gathering import gather, question
from groundwire.evidence.index import Context
from groundwire.evidence.prompt_size import Bounds, prompt_size
from groundwire.features.consistency.compare import Past, compare
from groundwire.gateway.cascade import ModelStage, Stopwatch, stages
from groundwire.gateway.estimators import Asker
from groundwire.gateway.evidence import EvidenceCache
from groundwire.gateway.judging import LanguageJudges
from groundwire.gateway.recall import Recall, Recalled
from groundwire.gateway.workers import Workers
from groundwire.judge import Judge, Opened, unjudged
from groundwire.pipeline import MAX_SEARCH, Ask, read, with_schema
from groundwire.policy import Policy
from groundwire.report import CacheUse, Consistency, Report, StageUse
from groundwire.scoring.aggregate import Examined, Reading, summarise
from groundwire.storage.verdicts import VerdictCache
from groundwire.verifiers.schema import TOO_LONG_ANSWER, SchemaResult

log = structlog.get_logger("groundwire.verification")


_BATCH = 16  # claims judged in one job, so that exchanges take turns in the workers

_TIMEOUT = "The time for checking this answer was over."
_OVERLOAD = "There was no room to check it under the present load."


@dataclass(frozen=True, slots=True)
class Verification:
    """The components of verification. `timeout` is the time in seconds for judging one answer by words.

    `model` is queried about claims that these leave open, within a separate time limit, and so is the language model of
    `judging`, if it is the judge.
    """

    workers: Workers
    cache: VerdictCache
    timeout: float
    judge: Judge = Judge()
    model: ModelStage | None = None
    judging: LanguageJudges | None = None
    schemas: SchemaProcess = field(default_factory=SchemaProcess)
    evidence: EvidenceCache = field(default_factory=EvidenceCache)
    in_flight: dict[Hashable, asyncio.Future[None]] = field(default_factory=dict)
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
        """Start verification: `load` reads the exchange in a worker, where its evidence is gathered and indexed.

        The context from `recall` is evidence in addition to that of the exchange.
        """
        return Examination(self, load, ask, policy, id_ or new_id(), asker, recall, tenant)


@dataclass(frozen=True, slots=True)
class Prepared:
    """An exchange with its evidence, ready to be searched, and the milliseconds that this took.

    `started` is when its answer had come to its end.
    """

    exchange: Exchange
    context: Context
    bounds: Bounds
    ms: float
    started: float = 0.0


@dataclass(frozen=True, slots=True)
class Received:
    """An answer, whether it broke off, and what its model server reports of it."""

    choices: Sequence[Choice]
    cut_short: bool = False
    warnings: Sequence[str] = ()
    prompt_tokens: int | None = None
    given: Sequence[Source] = ()


def _nothing(_report: Report) -> None:
    pass


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
        self._turn = parts.model.begin(policy, asker) if parts.model else None
        self._language = parts.judging.begin(asker) if parts.judging else None
        self._stopwatch = Stopwatch()
        self._preparing = asyncio.create_task(self._prepared(load, recall))
        self._preparing.add_done_callback(_heard)

    async def _prepared(self, load: Callable[[], Exchange], recall: Recall | None) -> Prepared:
        self._recalled = await recall() if recall else Recalled()
        return await self._parts.workers.run(self._prepare, load)

    def _prepare(self, load: Callable[[], Exchange]) -> Prepared:
        start, recalled = self._parts.clock(), self._recalled.sources
        deadline = start + self._parts.timeout
        if earlier := [each for each in self._recalled.earlier if each.exchange != self.id]:
            self._past = Past(earlier, self._policy)
        exchange = load()
        exchange = replace(exchange, sources=(*exchange.sources, *recalled)) if recalled else exchange
        evidence = self._parts.evidence.of(exchange, is_over=lambda: self._parts.clock() > deadline)
        return Prepared(exchange, evidence.context, evidence.bounds, (self._parts.clock() - start) * 1000)

    async def look_ahead(self, choices: Sequence[Choice]) -> None:
        """Judge the claims in a growing answer, so that little is left at its end.

        The results are provisional: a claim that the rest of the answer changes is judged again.
        """
        if self._language and self._language.identity:
            return  # the judge is the answering model; a query now would delay its answer
        context = (await asyncio.shield(self._preparing)).context
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
        then: Callable[[Report], None] = _nothing,
    ) -> Report:
        """Return the report on an answer; `prompt_tokens` is the number that the model server reports (None: unknown).

        The output of tools at the model server, `given`, is evidence too. `then` is called with the report by the
        worker that made it, if one job did.

        Raises nothing but cancellation: failures are part of the report.
        """
        received = Received(choices, cut_short, warnings, prompt_tokens, given)
        validating = asyncio.create_task(self._validate(choices)) if self._ask.json_schema is not None else None
        try:
            prepared = await self._prepared_for(received)
            if validating is None and self._is_at_hand:
                return await self._report_at_once(received, prepared, then)
            readings = await self._parts.workers.run(self._read, choices, prepared)
            return await self._report_in_steps(received, prepared, readings, validating)
        except Overload:
            return overloaded_report(self.id, self._config)
        except Exception as error:
            log.exception("verification.failed", grounding_id=self.id)
            return failed_report(self.id, error, self._config)
        finally:
            if validating is not None:
                validating.cancel()

    @property
    def _is_at_hand(self) -> bool:
        """True if nothing has to be waited for: no language model, no earlier answers, no other replica."""
        asks = self._turn or self._language or self._past
        return not asks and self._parts.cache.is_local

    async def _prepared_for(self, received: Received) -> Prepared:
        started = self._parts.clock()
        prepared = replace(await asyncio.shield(self._preparing), started=started)
        if not received.given:
            return prepared
        context = await self._parts.workers.run(_context, prepared.exchange, received.given)
        return replace(prepared, context=context)

    async def _report_at_once(self, received: Received, prepared: Prepared, then: Callable[[Report], None]) -> Report:
        """Read, judge and summarise an answer in one call of a worker; step by step where it has too many claims.

        Of equal answers at the same time, one is judged first.
        """
        answer = self._config, prepared.context.digest, tuple((each.text, each.arguments) for each in received.choices)
        in_flight = self._parts.in_flight
        while answer in in_flight:
            await asyncio.wait({in_flight[answer]})
        in_flight[answer] = done = asyncio.get_running_loop().create_future()
        try:
            readings, report = await self._parts.workers.run(self._at_once, received, prepared, then)
            return report or await self._report_in_steps(received, prepared, readings, None)
        finally:
            del in_flight[answer]
            done.set_result(None)

    def _at_once(
        self, received: Received, prepared: Prepared, then: Callable[[Report], None]
    ) -> tuple[list[Reading], Report | None]:
        readings = self._read(received.choices, prepared)
        read_at = self._parts.clock()
        claims = [claim for reading in readings for claim in reading.claims]
        judged = self._judge_now(claims, prepared.context)
        if judged is None:
            return readings, None
        report = self._summarise(received, prepared, _examined(readings, judged[0]), read_at, judged[1])
        then(report)
        return readings, report

    def _judge_now(self, claims: Sequence[Claim], context: Context) -> tuple[list[Judgement], CacheUse] | None:
        """Return a judgement for each claim: known, from the cache, or given now; None if too many are to be given."""
        deadline = self._parts.clock() + self._parts.timeout
        keys = self._keys(claims, context)
        fresh = self._fresh(claims, keys)
        kept, use = self._parts.cache.recent(list(fresh), self._tenant)
        missing = {key: claim for key, claim in fresh.items() if key not in kept}
        if len(missing) > _BATCH:
            return None
        judged = self._judge_batch(list(missing.values()), context, deadline) if missing else []
        found = dict(zip(missing, judged, strict=True))
        self._parts.cache.keep(found, self._tenant)
        self._known |= kept | found
        return self._judged(claims, keys), use

    async def _validate(self, choices: Sequence[Choice]) -> dict[int, SchemaResult]:
        """Validate choices against the JSON schema of the request, if it has one; the results are by their index."""
        said = [choice for choice in choices if choice.text]
        if self._ask.json_schema is None or not said:
            return {}
        whole = [choice for choice in said if not choice.unread]
        texts = [choice.text for choice in whole]
        results = await self._parts.schemas.validate(texts, self._ask.json_schema, self._parts.timeout)
        found = {choice.index: TOO_LONG_ANSWER for choice in said}
        return found | {choice.index: result for choice, result in zip(whole, results, strict=True)}

    async def _report_in_steps(
        self,
        received: Received,
        prepared: Prepared,
        readings: Sequence[Reading],
        validating: Awaitable[Mapping[int, SchemaResult]] | None,
    ) -> Report:
        """Return the report on an answer that was read, with whatever has to be waited for."""
        context, read_at = prepared.context, self._parts.clock()
        judgements, cache = await self._judgements([claim for each in readings for claim in each.claims], context)
        if self._turn:
            judgements = await self._turn.hear(judgements, context)
        validated = await validating if validating is not None else {}
        readings = [with_schema(each, validated.get(each.choice.index)) for each in readings]
        examined = _examined(readings, judgements)
        consistency = await self._consistency(examined, prepared.exchange, self._past) if self._past else None
        return await self._parts.workers.insist(
            self._summarise, received, prepared, examined, read_at, cache, consistency
        )

    def _summarise(
        self,
        received: Received,
        prepared: Prepared,
        examined: Sequence[Examined],
        read_at: float,
        cache: CacheUse,
        consistency: Consistency | None = None,
    ) -> Report:
        started, done = prepared.started, self._parts.clock()
        judgements = [judgement for each in examined for judgement in each.judgements]
        return summarise(
            self.id,
            examined,
            prepared.context,
            self._policy,
            temperature=prepared.exchange.temperature,
            consistency=consistency,
            prompt=prompt_size(received.prompt_tokens, prepared.bounds),
            cut_short=received.cut_short,
            warnings=(*received.warnings, *self._recalled.warnings),
            cache=cache,
            stages=self._stages(judgements),
            timing_ms=(
                ("context", prepared.ms),
                ("claims", (read_at - started) * 1000),
                ("verify", (done - read_at) * 1000),
                ("total", (done - started) * 1000),
            ),
            config=self._config,
        )

    def _stages(self, judgements: Sequence[Judgement]) -> tuple[StageUse, ...]:
        """Return the cost of each stage, if a model may be queried."""
        if not self._turn and not self._language:
            return ()
        return stages(judgements, self._stopwatch, self._language, self._turn.used if self._turn else None)

    async def _consistency(self, examined: Sequence[Examined], exchange: Exchange, past: Past) -> Consistency | None:
        """Compare the answer with earlier ones about its subject; None when that fails or capacity is lacking."""
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

    def _read(self, choices: Sequence[Choice], prepared: Prepared) -> list[Reading]:
        share = MAX_SEARCH // max(1, len(choices))
        ask = replace(self._ask, json_schema=None, max_search=share)  # schemas are validated in a separate process
        if any(is_bare_number(choice.text) for choice in choices):
            ask = replace(ask, question=ask.question or question(prepared.exchange))
        return [read(choice, prepared.context, self._policy, ask) for choice in choices]

    async def _judgements(self, claims: Sequence[Claim], context: Context) -> tuple[list[Judgement], CacheUse]:
        """A judgement for each claim: known from looking ahead, from the cache, or given now."""
        deadline = self._parts.clock() + self._parts.timeout
        keys = self._keys(claims, context)
        fresh = self._fresh(claims, keys)
        judged, use = await self._parts.cache.get(
            list(fresh), partial(self._judge, list(fresh.values()), context, deadline), self._tenant
        )
        self._known |= zip(fresh, judged, strict=True)
        return self._judged(claims, keys), use

    def _keys(self, claims: Sequence[Claim], context: Context) -> list[bytes]:
        """Return the key of each claim's verdict; empty where it is not to be judged."""
        by = self._language.identity if self._language else ""
        config = f"{self._config} {by}" if by else self._config
        return [b"" if claim.skip_reason is not None else claim_key(claim, context, config) for claim in claims]

    def _fresh(self, claims: Sequence[Claim], keys: Sequence[bytes]) -> dict[bytes, Claim]:
        return {key: claim for key, claim in zip(keys, claims, strict=True) if key and not self._is_known(key)}

    def _judged(self, claims: Sequence[Claim], keys: Sequence[bytes]) -> list[Judgement]:
        """Return the known judgements, each on the claim as this answer has it."""
        return [
            replace(self._known[key], claim=claim) if key else unjudged(claim, "skipped", "")
            for claim, key in zip(claims, keys, strict=True)
        ]

    def _is_known(self, key: bytes) -> bool:
        return key in self._known and self._known[key].verdict.label != "not_checked"

    async def _judge(
        self, claims: Sequence[Claim], context: Context, deadline: float, positions: Sequence[int]
    ) -> list[Judgement]:
        """Judge the claims at `positions` in batches; past the deadline or the queue, return them as not checked."""
        wanted = [claims[position] for position in positions]
        if self._language:
            return await self._judge_by_language(wanted, context, deadline)
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

    async def _judge_by_language(self, claims: Sequence[Claim], context: Context, deadline: float) -> list[Judgement]:
        """Judge claims by a language model, which is asked about all that are open at once, off the workers."""
        assert self._language is not None  # noqa: S101 - see `_judge`
        parts: list[Opened | list[Judgement]] = []
        for at in range(0, len(claims), _BATCH):
            batch = claims[at : at + _BATCH]
            if self._parts.clock() > deadline:
                parts.append([unjudged(claim, "timeout", _TIMEOUT) for claim in batch])
                continue
            try:
                parts.append(await self._parts.workers.run(self._open_batch, batch, context, deadline))
            except Overload:
                parts.append([unjudged(claim, "overload", _OVERLOAD) for claim in batch])
        opened = [part for part in parts if isinstance(part, Opened)]
        opinions = iter(await self._language.judge([question for part in opened for question in part.questions]))
        judgements: list[Judgement] = []
        for part in parts:
            if isinstance(part, Opened):
                answers = [next(opinions) for _ in part.questions]
                judgements += await self._parts.workers.insist(
                    self._parts.judge.close, part, answers, context, self._policy, self._stopwatch.timed
                )
            else:
                judgements += part
        return judgements

    def _open_batch(self, claims: Sequence[Claim], context: Context, deadline: float) -> Opened:
        def is_over() -> bool:
            return self._parts.clock() > deadline

        return self._parts.judge.open(claims, context, self._policy, is_over, self._stopwatch.timed)

    def _judge_batch(self, claims: Sequence[Claim], context: Context, deadline: float) -> list[Judgement]:
        def is_over() -> bool:
            return self._parts.clock() > deadline

        return self._parts.judge(claims, context, self._policy, is_over, self._stopwatch.timed)

    def cancel(self) -> None:
        """Cancel the work queued for this exchange."""
        self._preparing.cancel()
        if self._turn:
            self._turn.cancel()


def _context(exchange: Exchange, given: Sequence[Source]) -> Context:
    """Return the evidence of an exchange and `given` as an index."""
    context = Context(gather(replace(exchange, sources=(*exchange.sources, *given))))
    context.digest  # noqa: B018 - computed here, off the event loop
    return context


def new_id() -> str:
    """An id for a report, which nobody can guess."""
    return "gw-" + secrets.token_hex(12)


def failed_report(id_: str, error: Exception, config: str) -> Report:
    """The report of a verification that failed under the settings that `config` is the digest of."""
    return _without_verdict(id_, "failed", "error", f"Verification failed ({type(error).__name__}).", config)


def overloaded_report(id_: str, config: str) -> Report:
    """Return the report of a verification that was skipped for lack of capacity."""
    return _without_verdict(id_, "skipped", "overload", _OVERLOAD, config)


def unread_report(id_: str, reason: str, config: str) -> Report:
    """Return the report on an exchange whose request or answer could not be read, with the reason."""
    return _without_verdict(id_, "failed", "error", reason, config)


def _without_verdict(id_: str, status: Status, reason: str, warning: str, config: str) -> Report:
    degraded, flags = (("all", reason),), ("verifier_degraded",)
    return Report(id_, status, "not_checked", flags=flags, warnings=(warning,), degraded=degraded, config=config)


@lru_cache(maxsize=64)
def policy_digest(policy: Policy) -> str:
    """Return a digest of the settings that verdicts depend on: 16 hexadecimal digits."""
    return blake2b(to_json(asdict(policy)), digest_size=8).hexdigest()


def claim_key(claim: Claim, context: Context, config: str) -> bytes:
    """Return the exact key of a verdict: everything in claim, evidence and settings that it depends on."""
    parts = (config, context.digest, claim.kind, claim.lead, claim.cited, claim.text)
    return blake2b(repr(parts).encode(), digest_size=16).digest()


def _examined(readings: Sequence[Reading], judgements: Sequence[Judgement]) -> list[Examined]:
    remaining = iter(judgements)
    return [Examined(reading, tuple(next(remaining) for _ in reading.claims)) for reading in readings]


def _heard(task: asyncio.Task[object]) -> None:
    """Mark a task's failure as retrieved; it is raised again where the result is used."""
    if not task.cancelled():
        task.exception()
