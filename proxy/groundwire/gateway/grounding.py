"""The grounding of one exchange in the making: begun with the request, concluded with the answer, kept for later."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import structlog

from groundwire.dialects.answer import Answer
from groundwire.dialects.options import Mode
from groundwire.dialects.request import Request
from groundwire.domain import Choice
from groundwire.errors import TryLater
from groundwire.gateway.annotate import Annotation, annotate, stand_in
from groundwire.gateway.byte_budget import ByteBudget, ByteReservation
from groundwire.gateway.correction import Correcting
from groundwire.gateway.deferred import Heard, Later, is_unfinished, read, wait_asked_for
from groundwire.gateway.estimators import Asker
from groundwire.gateway.recall import Recaller
from groundwire.gateway.record import Recorder
from groundwire.gateway.report_log import log_rejections, log_report, log_timeouts, log_violations
from groundwire.gateway.sampling import Sampling
from groundwire.gateway.verify import (
    Examination,
    Verification,
    failed_report,
    new_id,
    overloaded_report,
    policy_digest,
    unread_report,
)
from groundwire.policy import Policy
from groundwire.report import Attempt, Report
from groundwire.scoring.aggregate import rate
from groundwire.storage.reports import Reports
from groundwire.telemetry import Telemetry

T = TypeVar("T")

log = structlog.get_logger("groundwire.grounding")

_LOOK_EVERY = 300  # characters of a streamed answer between two looks ahead, or an eighth of it when that is more
_NOT_DURABLE = (
    "jobs: the report is not kept in the database of jobs, and is lost if this process ends before it is made"
)
_LOOK_UNTIL = 2**18  # characters; so long an answer is read once more at its end only


@dataclass(frozen=True, slots=True)
class Grounder:
    """The components for verifying exchanges. `log_rejections` enables an event about rejected quotations.

    `later` receives the work for jobs: all of mode async, and verification that was cut short. `recaller` loads context
    that a request refers to, `recorder` stores exchanges, and `room` bounds the memory for requests and answers.
    """

    verification: Verification
    reports: Reports
    policy: Policy
    telemetry: Telemetry
    log_rejections: bool = True
    later: Later | None = None
    recaller: Recaller = field(default_factory=Recaller)
    recorder: Recorder | None = None
    room: ByteBudget = field(default_factory=ByteBudget)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def begin(self, request: Request, mode: Mode, asker: Asker) -> Grounding:
        """Start on an exchange, while its model is still to be asked.

        Raises Overload when there is no room for it.
        """
        return Grounding(self, request, mode, asker, self.room.reserve(len(request.raw)))

    def unread(self, request: Request, id_: str, reason: str | None = None) -> Annotation:
        """Return the report on an exchange that passes unread, and keep it to be fetched by its id.

        With a `reason` it has failed; without one there was no room for it.
        """
        with self.telemetry.verification(id_) as span:
            config = policy_digest(self.policy_of(request))
            report = unread_report(id_, reason, config) if reason else overloaded_report(id_, config)
            annotation = annotate(report, request)
            self.reports.put(id_, annotation.kept, request.tenant)
            self.telemetry.evaluated(span, report, None)
            self._log(report, Heard(()))
            return annotation

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` in the background and keep a reference to it; a failure is raised where its result is used."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # mark it as retrieved

    async def settle(self, within: float) -> None:
        """Wait for reports in progress, and for their recording, `within` seconds at most."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=within)

    def policy_of(self, request: Request) -> Policy:
        """The policy for one request, which may ask for fewer verifiers than are enabled."""
        wanted = request.options.verifiers
        if wanted is None:
            return self.policy
        return replace(self.policy, verifiers=tuple(name for name in self.policy.verifiers if name in wanted))

    def examine(self, request: Request, id_: str, asker: Asker) -> Examination:
        """Start the verification of an answer to `request`."""
        policy = self.policy_of(request)
        recall = self.recaller.of(request)
        return self.verification.begin(request.exchange, request.ask, policy, id_, asker, recall, request.tenant)

    async def finish(self, id_: str, payload: bytes) -> bytes:
        """Verify an answer left to a job, and return its report as JSON.

        Raises TryLater, with the partial report, when it was cut short again.
        """
        request, heard, origin = await asyncio.to_thread(read, payload)
        self.telemetry.goes_back_to(origin)
        self.telemetry.about(request.options.session, request.options.subject)
        annotation = await self.conclude(self.examine(request, id_, Asker(request.model)), request, heard)
        self.record(annotation, request, heard)
        if is_unfinished(annotation.report):
            reasons = sorted({reason for _, reason in annotation.report.degraded})
            after = wait_asked_for(annotation.report)
            raise TryLater(f"cut short: {', '.join(reasons)}", after=after, so_far=annotation.kept)
        self.reports.put(id_, annotation.kept, request.tenant)
        return annotation.kept

    async def conclude(
        self,
        examination: Examination,
        request: Request,
        heard: Heard,
        sampling: Sampling | None = None,
        correcting: Correcting | None = None,
    ) -> Annotation:
        """Return the report on an answer in its wire form; it is traced and logged, not stored.

        Pending samples and a correction are not waited for: they are added to the stored report.
        """
        with self.telemetry.verification(examination.id) as span:
            warnings = (*request.warnings, *self.recaller.unmet(request.options))
            rendered: list[Annotation] = []
            is_final = sampling is None and correcting is None and not heard.attempts
            report = await examination.report(
                heard.choices,
                cut_short=heard.cut_short,
                warnings=warnings,
                prompt_tokens=heard.prompt_tokens,
                given=heard.given,
                then=lambda made: rendered.append(annotate(made, request, heard.choices)) if is_final else None,
            )
            report = replace(report, attempts=heard.attempts) if heard.attempts else report
            if await self._defers(report, request, heard):
                report = replace(report, status="deferred")
            if sampling is not None:
                report = self._rated(replace(report, self_consistency=await sampling.so_far(report)))
            if correcting is not None:
                report = replace(report, correction=correcting.due(report, heard))
            is_rendered = bool(rendered) and rendered[0].report is report
            annotation = rendered[0] if is_rendered else await self._annotated(report, request, heard.choices)
            self.telemetry.evaluated(span, report, heard.answer_id)
            self._log(report, heard)
            if any(
                each is not None and each.status == "pending" for each in (report.self_consistency, report.correction)
            ):
                self.start(self._complete(report, request, heard, sampling, correcting))
            return annotation

    async def _defers(self, report: Report, request: Request, heard: Heard) -> bool:
        """Have a report that was cut short completed by a job; False where that is not needed or not possible."""
        if self.later is None or not is_unfinished(report):
            return False
        return await self.later.take(report.id, request, heard, self.telemetry.origin(), wait_asked_for(report))

    async def _complete(
        self,
        report: Report,
        request: Request,
        heard: Heard,
        sampling: Sampling | None,
        correcting: Correcting | None,
    ) -> None:
        """Add the samples and the correction to the stored report."""
        is_due = report.correction is not None and report.correction.status == "pending"
        correction = self.start(correcting.complete(report, heard)) if correcting is not None and is_due else None
        if sampling is not None:
            report = self._rated(replace(report, self_consistency=await sampling.complete(report)))
        if correction is not None:
            report = replace(report, correction=await correction)
        annotation = await self._annotated(report, request, heard.choices)
        self.reports.put(report.id, annotation.kept, request.tenant)
        self.record(annotation, request, heard)

    def record(self, annotation: Annotation, request: Request, heard: Heard) -> None:
        """Record an exchange in the background, if there is a store."""
        if self.recorder is not None:
            self.start(self.recorder.record(annotation, request, heard))

    def _rated(self, report: Report) -> Report:
        return rate(report, self.policy.thresholds)

    async def _annotated(self, report: Report, request: Request, choices: Sequence[Choice]) -> Annotation:
        """Return the report in its wire form; if rendering fails, a failed report."""
        try:
            return await self.verification.workers.insist(annotate, report, request, choices)
        except Exception as error:
            log.exception("grounding.failed", grounding_id=report.id)
            return annotate(failed_report(report.id, error, report.config), request)

    def _log(self, report: Report, heard: Heard) -> None:
        log_report(report, heard.model)
        log_violations(report.id, report.violations or (), [choice.text for choice in heard.choices if choice.text])
        log_timeouts(report)
        if self.log_rejections:
            log_rejections(report, self.policy.quotes)


class Grounding:
    """The verification of one exchange. All its methods return quickly: the work is done in tasks and workers."""

    def __init__(self, parts: Grounder, request: Request, mode: Mode, asker: Asker, share: ByteReservation) -> None:
        self.id = new_id()
        self._share = share
        self._heard = 0
        self._parts = parts
        self._request = request
        self._mode = mode
        self._later = parts.later if mode == "async" else None
        self._asker = asker
        self._examination = None if self._later else parts.examine(request, self.id, asker)
        self._looking: asyncio.Task[None] | None = None
        self._next_look = _LOOK_EVERY
        self._concluding: asyncio.Task[Annotation] | None = None
        self._concluded_length = 0
        self._sampling: Sampling | None = None
        self._correcting: Correcting | None = None
        self._attempts: tuple[Attempt, ...] = ()
        self._counts_prompt = True

    def sample(self, sampling: Sampling | None) -> None:
        """Use samples of the same request; they are cancelled if a job verifies the answer later."""
        if sampling is not None and self._later is not None:
            sampling.cancel()
        else:
            self._sampling = sampling

    def correct(self, correcting: Correcting | None) -> None:
        """Take on the correction of an answer that breaks its schema; a job that examines it later makes none."""
        self._correcting = None if self._later is not None else correcting

    def answered(self, attempts: tuple[Attempt, ...], *, counts_prompt: bool) -> None:
        """Record the attempts of the answer, if more than one was needed.

        `counts_prompt` is set if the upstream's count of prompt tokens is reliable.
        """
        self._attempts = attempts
        self._counts_prompt = counts_prompt

    def has_room(self, size: int) -> bool:
        """Reserve memory for `size` more bytes of the answer, if available."""
        return self._share.grow(size)

    def hears(self, answer: Answer) -> bool:
        """Return whether there is memory for a growing answer, or it has ended already."""
        more, self._heard = answer.length - self._heard, answer.length
        return self.is_concluding or not more or self.has_room(more)

    def shed(self) -> Annotation:
        """Give up verification for lack of memory and return a report with that reason."""
        self.abandon()
        return self._parts.unread(self._request, self.id)

    def look_ahead(self, answer: Answer) -> None:
        """Judge the claims of a growing answer, whenever enough of it is new."""
        if self._examination is None or (self._looking and not self._looking.done()):
            return
        if not self._next_look <= answer.length <= _LOOK_UNTIL:
            return
        self._next_look = answer.length + max(_LOOK_EVERY, answer.length // 8)
        self._looking = self._parts.start(self._examination.look_ahead(self._request.examinable(answer)))

    def conclude(self, answer: Answer, *, cut_short: bool = False) -> None:
        """Start the report, again only if the answer has grown since. `cut_short` is set if it broke off."""
        later = self._later if self._concluding is None else None  # a job keeps the first version of the answer
        if self._concluding is not None:
            if answer.length == self._concluded_length:
                return
            self._concluding.cancel()
        self._concluded_length = answer.length
        heard = Heard.of(answer, self._request, cut_short, self._attempts)
        heard = heard if self._counts_prompt else replace(heard, prompt_tokens=None)
        self._concluding = self._parts.start(self._leave(later, heard) if later else self._conclude(heard))
        self._concluding.add_done_callback(self._concluded)

    def _concluded(self, task: asyncio.Task[Annotation]) -> None:
        if task is self._concluding:
            self._share.release()

    @property
    def is_concluding(self) -> bool:
        """True if the answer has ended and its report is in progress or complete."""
        return self._concluding is not None

    async def annotation(self, within: float | None) -> Annotation:
        """Return the concluded report, or its stand-in when it is not ready `within` seconds or is not waited for.

        A report that is left for later is waited for only until it is certain to come.
        """
        assert self._concluding is not None  # noqa: S101 - conclude() comes first
        if self._mode == "sync" or self._later:
            await asyncio.wait({self._concluding}, timeout=within)
        return self._concluding.result() if self._concluding.done() else self._pending()

    def abandon(self) -> None:
        """Cancel all work: the client has disconnected, or there is no answer to check."""
        self._share.release()
        if self._examination is not None:
            self._examination.cancel()
        for work in (self._looking, self._concluding, self._sampling):
            if work is not None:
                work.cancel()

    def _pending(self) -> Annotation:
        """Return and store the placeholder for a report in progress."""
        lasting = () if self._later is None else (_NOT_DURABLE,)
        return self._kept(stand_in(self.id, self._request, self._digest, "pending", *lasting))

    def _kept(self, annotation: Annotation) -> Annotation:
        self._parts.reports.put(self.id, annotation.kept, self._request.tenant)
        return annotation

    @property
    def _digest(self) -> str:
        return policy_digest(self._parts.policy_of(self._request))

    async def _leave(self, later: Later, heard: Heard) -> Annotation:
        """Leave the examination to a job; where none can be kept, do it here, as far as that goes."""
        pending = self._pending()
        if not await later.take(self.id, self._request, heard, self._parts.telemetry.origin()):
            self._parts.start(self._conclude(heard))
            return pending
        deferred = stand_in(self.id, self._request, self._digest, "deferred")
        is_waited_for = self._parts.reports.get(self.id, self._request.tenant) == pending.kept
        return self._kept(deferred) if is_waited_for else deferred

    async def _conclude(self, heard: Heard) -> Annotation:
        if self._examination is None:
            self._examination = self._parts.examine(self._request, self.id, self._asker)
        annotation = await self._parts.conclude(
            self._examination, self._request, heard, self._sampling, self._correcting
        )
        self._parts.reports.put(self.id, annotation.kept, self._request.tenant)
        self._parts.record(annotation, self._request, heard)
        return annotation
