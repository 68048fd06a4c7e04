"""Verify one exchange: begun with its request, fed as its answer arrives, and concluded with the report."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self, assert_never

import structlog

from groundwire.dialects.dialect import Answer
from groundwire.dialects.request import Mode, Request
from groundwire.domain import Choice
from groundwire.errors import Overload, TryLater
from groundwire.evidence.messages import question
from groundwire.features.consistency import EarlierAnswers, compare
from groundwire.gateway.forward import Caller
from groundwire.gateway.models import LanguageJudgeSession, ModelStageSession
from groundwire.gateway.repeat import CorrectionSession, SamplingSession
from groundwire.gateway.reports import (
    Annotation,
    DeferredQueue,
    annotate,
    is_unfinished,
    new_id,
    placeholder,
    read_job,
    requested_wait,
    unverified_report,
)
from groundwire.gateway.service import ExternalContext, GroundingService
from groundwire.limits import Slot
from groundwire.pipeline import (
    IO,
    MAX_SEARCH,
    AnswerSnapshot,
    AnswerVerifier,
    AskJudge,
    Prepared,
    RefineJudgements,
    ShareVerdicts,
    Steps,
    VerifierSettings,
    policy_digest,
)
from groundwire.report import Attempt, Consistency, Report
from groundwire.scoring.aggregate import Examined, rate
from groundwire.telemetry.requests import Usage
from groundwire.verifiers.schema import TOO_LONG_ANSWER, SchemaResult

log = structlog.get_logger("groundwire.grounding")

_LOOK_EVERY = 300  # characters of a streamed answer between two looks ahead, or an eighth of it when that is more
_LOOK_UNTIL = 2**18  # characters; a longer answer is read once more at its end only
_NOT_DURABLE = (
    "jobs: the report could not be stored in the jobs database; it is lost if this process ends before it is ready"
)


class GroundingSession:
    """The verification of one exchange; `id` names its report from the start.

    All methods but `verify` return quickly: the work is done in tasks and worker threads.
    """

    def __init__(
        self, service: GroundingService, request: Request, mode: Mode, caller: Caller, memory: Slot, id_: str = ""
    ) -> None:
        self.id = id_ or new_id()
        self._service = service
        self._request = request
        self._mode = mode
        self._queue = service.queue if mode == "async" else None
        self._memory = memory
        self._begun = service.clock()
        self._length = 0
        self._policy = service.policy_of(request)
        self._config = policy_digest(self._policy)
        self._ask = request.ask
        estimators, judges = service.estimators, service.language_judges
        self._model_stage = ModelStageSession(estimators, self._policy, caller) if estimators else None
        self._language_judge = LanguageJudgeSession(judges, caller) if judges else None
        self._external = ExternalContext()
        self._past: EarlierAnswers | None = None
        self._looking: asyncio.Task[None] | None = None
        self._next_look = _LOOK_EVERY
        self._concluding: asyncio.Task[Annotation] | None = None
        self._concluded_length = 0
        self._sampling: SamplingSession | None = None
        self._correction: CorrectionSession | None = None
        self._attempts: tuple[Attempt, ...] = ()
        self._counts_prompt = True
        self._preparing = service.start(self._prepare()) if self._queue is None else None

    @classmethod
    def begin(cls, service: GroundingService, request: Request, mode: Mode, caller: Caller = Caller()) -> Self:
        """Begin to verify an exchange, before its model is queried. Raises Overload when there is no memory for it."""
        return cls(service, request, mode, caller, service.reserve(len(request.raw)))

    # --- the request --------------------------------------------------------------------------------------------------

    def repeat(self, sampling: SamplingSession | None, correction: CorrectionSession | None) -> None:
        """Compare the answer with samples of it and correct it if it breaks its schema, unless a job verifies it."""
        if self._queue is None:
            self._sampling, self._correction = sampling, correction
        elif sampling is not None:
            sampling.cancel()

    async def _prepare(self) -> AnswerVerifier | Overload:
        """Prepare the evidence. Overload is returned, not raised: its traceback would refer to this object, which holds
        the task, and only the garbage collector would free them.
        """
        self._external = await self._service.external_context.load(self._request)
        try:
            return await self._service.workers.run(self._build_verifier)
        except Overload as error:
            return error.with_traceback(None)

    async def _verifier(self) -> AnswerVerifier:
        if self._preparing is None:
            self._preparing = self._service.start(self._prepare())
        prepared = await asyncio.shield(self._preparing)
        if isinstance(prepared, Overload):
            raise Overload(str(prepared))
        return prepared

    def _build_verifier(self) -> AnswerVerifier:
        """Read the request and index its evidence, in a worker."""
        service, external = self._service, self._external
        start = service.clock()
        if earlier := [each for each in external.earlier if each.exchange != self.id]:
            self._past = EarlierAnswers(earlier, self._policy)
        exchange = self._request.exchange()
        if external.sources:
            exchange = replace(exchange, sources=(*exchange.sources, *external.sources))
        prepared = service.evidence.prepare(exchange, lambda: service.clock() > start + service.timeout)
        prepared = replace(prepared, ms=(service.clock() - start) * 1000)
        language = self._language_judge
        settings = VerifierSettings(
            service.judge,
            service.cache,
            self._request.tenant,
            identity=language.identity if language else "",
            asks=language is not None,
            shares=language is not None or not service.cache.is_local,
            refines=self._model_stage is not None,
            costs=lambda: [each.used for each in (language, self._model_stage) if each],
            max_search=MAX_SEARCH,
            timeout=service.timeout,
            clock=service.clock,
        )
        return AnswerVerifier(prepared, self._policy, self._ask, settings, self.id)

    # --- the answer ---------------------------------------------------------------------------------------------------

    def answered(self, attempts: tuple[Attempt, ...], *, counts_prompt: bool) -> None:
        """Record the attempts of the answer, if more than one was needed.

        `counts_prompt` is set if the upstream's count of prompt tokens is reliable.
        """
        self._attempts = attempts
        self._counts_prompt = counts_prompt

    def reserve(self, size: int) -> bool:
        """Reserve memory for `size` more bytes of the answer, if available."""
        return self._memory.grow(size)

    def feed(self, answer: Answer) -> bool:
        """Judge a growing answer whenever enough of it is new; return False if there is no memory for it."""
        more, self._length = answer.length - self._length, answer.length
        if self.is_concluding:
            return True
        if more and not self.reserve(more):
            return False
        is_looking = self._looking is not None and not self._looking.done()
        if self._queue is None and not is_looking and self._next_look <= answer.length <= _LOOK_UNTIL:
            self._next_look = answer.length + max(_LOOK_EVERY, answer.length // 8)
            self._looking = self._service.start(self.look_ahead(self._request.examinable(answer)))
        return True

    async def look_ahead(self, choices: Sequence[Choice]) -> None:
        """Judge the claims in a growing answer, so that little is left at its end."""
        if self._language_judge and self._language_judge.identity:
            return  # the judge is the answering model; a query now would delay its answer
        verifier = await self._verifier()
        judgements = await self._service.workers.run_steps(verifier.look_ahead(choices), self._perform)
        if self._model_stage:
            self._model_stage.look_ahead(judgements, verifier.prepared.context)

    def shed(self) -> Annotation:
        """Give up verification for lack of memory and return a report with that reason."""
        self.abandon()
        return self._service.unread(self._request, self.id)

    def abandon(self) -> None:
        """Cancel all work: the client has disconnected, or there is no answer to check."""
        self._memory.release()
        for work in (self._preparing, self._model_stage, self._looking, self._concluding, self._sampling):
            if work is not None:
                work.cancel()

    # --- the report ---------------------------------------------------------------------------------------------------

    def conclude(self, answer: Answer, *, cut_short: bool = False) -> None:
        """Start the report, again only if the answer has grown since. `cut_short` is set if it broke off."""
        queue = self._queue if self._concluding is None else None  # a job gets the first version of the answer
        if self._concluding is not None:
            if answer.length == self._concluded_length:
                return
            self._concluding.cancel()
        self._concluded_length = answer.length
        tokens = Usage.of(answer.usage)
        snapshot = AnswerSnapshot(
            self._request.examinable(answer),
            cut_short,
            answer.id,
            answer.model,
            self._attempts,
            answer.prompt_tokens if self._counts_prompt else None,
            answer.given,
            (tokens.input, tokens.output),
            (self._service.clock() - self._begun) * 1000,
        )
        self._concluding = self._service.start(self._defer(queue, snapshot) if queue else self._conclude(snapshot))
        self._concluding.add_done_callback(self._concluded)

    def _concluded(self, task: asyncio.Task[Annotation]) -> None:
        if task is self._concluding:
            self._memory.release()

    @property
    def is_concluding(self) -> bool:
        """True if the answer has ended and its report is in progress or complete."""
        return self._concluding is not None

    async def annotation(self, seconds: float | None) -> Annotation:
        """Return the concluded report, or its placeholder when it is not ready in `seconds` or not waited for.

        A report that is left to a job is waited for only until it is certain to come.
        """
        assert self._concluding is not None  # noqa: S101 - conclude() comes first
        if self._mode == "sync" or self._queue:
            await asyncio.wait({self._concluding}, timeout=seconds)
        return self._concluding.result() if self._concluding.done() else self._pending()

    def _pending(self) -> Annotation:
        """Return and store the placeholder for a report in progress."""
        warnings = () if self._queue is None else (_NOT_DURABLE,)
        return self._stored(placeholder(self.id, self._request, self._config, "pending", *warnings))

    def _stored(self, annotation: Annotation) -> Annotation:
        return self._service.store(annotation, self._request)

    async def _defer(self, queue: DeferredQueue, answer: AnswerSnapshot) -> Annotation:
        """Leave verification to a job; if none can be stored, do it here."""
        service, pending = self._service, self._pending()
        if not await queue.take(self.id, self._request, answer, service.telemetry.origin()):
            service.start(self._conclude(answer))
            return pending
        deferred = placeholder(self.id, self._request, self._config, "deferred")
        is_waited_for = service.reports.get(self.id, self._request.tenant) == pending.whole
        return self._stored(deferred) if is_waited_for else deferred

    async def _conclude(self, answer: AnswerSnapshot) -> Annotation:
        annotation = self._stored(await self.verify(answer))
        self._service.record(annotation, self._request, answer)
        return annotation

    async def verify(self, answer: AnswerSnapshot) -> Annotation:
        """Return the report on an answer in its wire form; it is traced and logged, not stored.

        Pending samples and a correction are not waited for: they are added to the stored report.
        """
        service = self._service
        with service.telemetry.verification(self.id) as span:
            annotation = await self._verified(answer)
            report = annotation.report
            if service.queue is not None and is_unfinished(report):
                origin, wait = service.telemetry.origin(), requested_wait(report)
                if await service.queue.take(self.id, self._request, answer, origin, wait):
                    report = replace(report, status="deferred")
            if self._sampling is not None:
                report = self._with_samples(report, await self._sampling.so_far(report))
            if report is not annotation.report:
                annotation = await self._annotated(report, answer)
            service.telemetry.evaluated(span, report, answer.answer_id)
            service.log(report, answer)
            if any(each and each.status == "pending" for each in (report.self_consistency, report.correction)):
                service.start(self._complete(report, answer))
            return annotation

    async def _verified(self, answer: AnswerSnapshot) -> Annotation:
        """Judge an answer and render its report; of equal answers at the same time, one is judged first.

        Raises nothing but cancellation: failures are part of the report.
        """
        service, started = self._service, self._service.clock()
        validating = service.start(self._validated(answer.choices)) if self._ask.json_schema is not None else None
        try:
            verifier = await self._verifier()
            if self._looking is not None:
                await asyncio.wait({self._looking})
            validated = await validating if validating is not None else {}
            texts = tuple((each.text, each.arguments) for each in answer.choices)
            async with service.exclusive((self._config, verifier.prepared.context.digest, texts)):
                report = self._report(verifier, answer, validated, started)
                return await service.workers.run_steps(report, self._perform)
        except Overload:
            return self._unverified(answer)
        except Exception as error:
            log.exception("verification.failed", grounding_id=self.id)
            return self._unverified(answer, error)
        finally:
            if validating is not None:
                validating.cancel()

    def _unverified(self, answer: AnswerSnapshot, error: Exception | None = None) -> Annotation:
        """Return the report of a verification that failed with an error or, without one, for lack of capacity."""
        reason = f"Verification failed ({type(error).__name__})." if error else None
        report = unverified_report(self.id, self._config, reason)
        return annotate(replace(report, attempts=answer.attempts), self._request)

    def _report(
        self,
        verifier: AnswerVerifier,
        answer: AnswerSnapshot,
        validated: Mapping[int, SchemaResult],
        started: float,
    ) -> Steps[Annotation]:
        service, request = self._service, self._request
        warnings = (*request.warnings, *service.external_context.unmet(request.options), *self._external.warnings)
        report = yield from verifier.report(
            answer,
            warnings=warnings,
            validated=validated,
            compare=partial(self._compare, verifier.prepared) if self._past else None,
            started=started,
        )
        if self._correction is not None:
            report = replace(report, correction=self._correction.due(report, answer))
        return annotate(report, request, answer.choices)

    def _compare(self, prepared: Prepared, examined: Sequence[Examined]) -> Consistency | None:
        """Compare the answer with earlier ones about its subject; None when that fails."""
        assert self._past is not None  # noqa: S101 - see `_report`
        statements = [(each.reading.choice.index, each.judgements) for each in examined]
        question_ = self._ask.question or question(prepared.exchange)
        try:
            return compare(statements, self._past, self._policy, at=self._service.now(), question=question_)
        except Exception:
            log.exception("consistency.failed", grounding_id=self.id)
            return None

    async def _validated(self, choices: Sequence[Choice]) -> Mapping[int, SchemaResult]:
        """Validate choices against the JSON schema of the request, if it has one; the results are by their index."""
        schema, written = self._ask.json_schema, [choice for choice in choices if choice.text]
        if schema is None or not written:
            return {}
        whole = [choice for choice in written if not choice.unread]
        results = await self._service.schemas.validate([each.text for each in whole], schema, self._service.timeout)
        found = {choice.index: TOO_LONG_ANSWER for choice in written}
        return found | {choice.index: result for choice, result in zip(whole, results, strict=True)}

    async def _complete(self, report: Report, answer: AnswerSnapshot) -> None:
        """Add the samples and the correction to the stored report."""
        service, correction = self._service, None
        if self._correction is not None and report.correction is not None and report.correction.status == "pending":
            correction = service.start(self._correction.complete(report, answer))
        if self._sampling is not None:
            report = self._with_samples(report, await self._sampling.complete(report))
        if correction is not None:
            report = replace(report, correction=await correction)
        annotation = self._stored(await self._annotated(report, answer))
        service.record(annotation, self._request, answer)

    def _with_samples(self, report: Report, found: Any) -> Report:
        return rate(replace(report, self_consistency=found), self._service.policy.thresholds)

    async def _annotated(self, report: Report, answer: AnswerSnapshot) -> Annotation:
        """Return the report in its wire form; if rendering fails, a failed report."""
        try:
            return await self._service.workers.insist(annotate, report, self._request, answer.choices)
        except Exception as error:
            log.exception("grounding.failed", grounding_id=report.id)
            return self._unverified(answer, error)

    async def _perform(self, need: IO) -> object:
        service = self._service
        match need:
            case AskJudge():
                assert self._language_judge is not None  # noqa: S101 - see `_build_verifier`
                return await self._language_judge.judge(need.questions)
            case RefineJudgements():
                assert self._model_stage is not None  # noqa: S101 - see `_build_verifier`
                return await self._model_stage.refine(need.judgements, need.context)
            case ShareVerdicts():
                run = partial(service.workers.run_steps, perform=self._perform, is_admitted=True)
                return await service.cache.get(need.keys, lambda at: run(need.judge(at)), self._request.tenant)
            case _:
                assert_never(need)


async def verify_deferred(service: GroundingService, id_: str, payload: bytes) -> bytes:
    """Verify an answer that was left to a job, and return its report as JSON.

    Raises TryLater, with the report so far, when it was cut short again or could not be recorded in time. A store that
    is down is not waited for.
    """
    request, answer, origin = await asyncio.to_thread(read_job, payload)
    service.telemetry.link_origin(origin)
    service.telemetry.about(request.options.session, request.options.subject)
    session = GroundingSession(service, request, "sync", Caller(request.model), service.reserve(0), id_)
    try:
        annotation = await session.verify(answer)
    finally:
        session.abandon()
    is_recorded = True
    if service.history is not None:
        try:
            async with asyncio.timeout(service.timeout / 2):
                await service.queue_entry(service.history, annotation, request, answer)
                await service.history.flush()
        except TimeoutError:
            is_recorded = False
    if is_unfinished(annotation.report):
        reasons = sorted({reason for _, reason in annotation.report.degraded})
        after = requested_wait(annotation.report)
        raise TryLater(f"cut short: {', '.join(reasons)}", after=after, so_far=annotation.whole)
    if not is_recorded:  # a replica killed now would lose the exchange: of a job that is done, nobody records it again
        raise TryLater("its exchange is not written yet", so_far=annotation.whole)
    return service.store(annotation, request).whole
