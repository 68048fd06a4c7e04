"""The grounding of one exchange in the making: begun with the request, concluded with the answer, kept for later."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import structlog

from proxy.dialects.answer import Answer
from proxy.dialects.options import Mode
from proxy.dialects.request import Request
from proxy.gateway.annotate import Annotation, annotate, pending
from proxy.gateway.verify import Verification, failed_report
from proxy.stores.reports import Reports
from proxy.telemetry import Telemetry, short_hash
from proxy.types import Choice, Policy, Report

T = TypeVar("T")

log = structlog.get_logger("groundwire.grounding")

_LOOK_EVERY = 300  # characters of a streamed answer between two looks ahead, or an eighth of it when that is more
_LOOK_UNTIL = 2**18  # characters; so long an answer is read once more at its end only


@dataclass(frozen=True, slots=True)
class Grounder:
    """What grounding needs beside an exchange. `log_rejections` asks for an event about rejected quotations (QU5)."""

    verification: Verification
    reports: Reports
    policy: Policy
    telemetry: Telemetry
    log_rejections: bool = True
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def begin(self, request: Request, mode: Mode) -> Grounding:
        """Starts on an exchange, while its model is still to be asked."""
        return Grounding(self, request, mode)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs `work` beside everything else and holds on to it; a failure shows where its result is wanted."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as seen

    def policy_of(self, request: Request) -> Policy:
        """The policy for one request, which may ask for fewer verifiers than are enabled."""
        wanted = request.options.verifiers
        if wanted is None:
            return self.policy
        return replace(self.policy, verifiers=tuple(name for name in self.policy.verifiers if name in wanted))


class Grounding:
    """One exchange's grounding. All its methods are quick: the work is done in tasks and workers of its own."""

    def __init__(self, parts: Grounder, request: Request, mode: Mode) -> None:
        self._parts = parts
        self._request = request
        self._mode = mode
        self._examination = parts.verification.begin(request.exchange, request.ask, parts.policy_of(request))
        self._looking: asyncio.Task[None] | None = None
        self._next_look = _LOOK_EVERY
        self._concluding: asyncio.Task[Annotation] | None = None
        self._concluded_length = 0

    @property
    def id(self) -> str:
        """The report's id, known from the start."""
        return self._examination.id

    def look_ahead(self, answer: Answer) -> None:
        """Has the claims of a growing answer judged, whenever enough of it is new."""
        if not self._next_look <= answer.length <= _LOOK_UNTIL or (self._looking and not self._looking.done()):
            return
        self._next_look = answer.length + max(_LOOK_EVERY, answer.length // 8)
        self._looking = self._parts.start(self._examination.look_ahead(self._request.examinable(answer)))

    def conclude(self, answer: Answer, *, cut_short: bool = False) -> None:
        """Starts on the report; once is enough, unless the answer has grown since. `cut_short`: it broke off."""
        if self._concluding is not None:
            if answer.length == self._concluded_length:
                return
            self._concluding.cancel()
        self._concluded_length = answer.length
        choices = self._request.examinable(answer)
        self._concluding = self._parts.start(self._conclude(answer, choices, cut_short))

    @property
    def is_concluding(self) -> bool:
        """Whether the answer has come to its end and its report is being made, or is made."""
        return self._concluding is not None

    async def annotation(self, within: float) -> Annotation:
        """The concluded report, or, when it is not ready `within` seconds or was not to be waited for, its stand-in."""
        assert self._concluding is not None  # noqa: S101 - conclude() comes first
        if self._mode == "sync":
            await asyncio.wait({self._concluding}, timeout=within)
        if self._concluding.done():
            return self._concluding.result()
        stand_in = pending(self.id, self._request)
        self._parts.reports.put(self.id, stand_in.kept)
        return stand_in

    def abandon(self) -> None:
        """Ends whatever is still to be done: the client has gone, or there is no answer to check."""
        self._examination.cancel()
        for task in (self._looking, self._concluding):
            if task is not None:
                task.cancel()

    async def _conclude(self, answer: Answer, choices: Sequence[Choice], cut_short: bool) -> Annotation:
        telemetry = self._parts.telemetry
        span = telemetry.verification_span(self.id)
        try:
            report = await self._examination.report(choices, cut_short=cut_short, warnings=self._request.warnings)
            annotation = await self._annotated(report, choices)
            self._parts.reports.put(self.id, annotation.kept)
            telemetry.evaluated(span, report, answer.id)
            self._log(report, answer)
            return annotation
        finally:
            span.end()

    async def _annotated(self, report: Report, choices: Sequence[Choice]) -> Annotation:
        """The report in its wire form; should that fail, a report that says so (RE1)."""
        try:
            return await self._parts.verification.workers.insist(annotate, report, self._request, choices)
        except Exception as error:
            log.exception("grounding.failed", grounding_id=self.id)
            return annotate(failed_report(self.id, error), self._request)

    def _log(self, report: Report, answer: Answer) -> None:
        log.info(
            "grounding.report",
            grounding_id=report.id,
            model=answer.model,
            status=report.status,
            verdict=report.verdict,
            score=report.score,
            flags=list(report.flags),
            total_ms=round(dict(report.timing_ms).get("total", 0.0), 2),
        )
        if self._parts.log_rejections and report.quotes and report.quotes.rejected:
            level = log.warning if "quotes_all_rejected" in report.flags else log.info
            level("grounding.quotes_checked", **_rejections(report))


def _rejections(report: Report) -> Mapping[str, Any]:
    """What may be told of rejected quotations: counts, lengths and short hashes of the claims that hold them (QU5)."""
    assert report.quotes is not None  # noqa: S101 - asked about rejected quotations only
    claims = [
        judgement.claim
        for choice in report.choices
        for judgement in choice.judgements
        if any(verdict.verifier == "quote" and verdict.label == "unsupported" for verdict in judgement.verdicts)
    ]
    return {
        "grounding_id": report.id,
        "extracted": report.quotes.extracted,
        "validated": report.quotes.validated,
        "rejected": report.quotes.rejected,
        "rejected_by_field": dict(report.quotes.rejected_by_field),
        "claims": [{"id": claim.id, "chars": len(claim.text), "sha256": short_hash(claim.text)} for claim in claims],
    }
