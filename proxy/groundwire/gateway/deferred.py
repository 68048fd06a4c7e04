"""Verification by background jobs: serialise its inputs, restore them, and look up its result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import structlog

from groundwire.dialects.answer import Answer
from groundwire.dialects.jsonbytes import dumps, loads
from groundwire.dialects.known import DIALECTS
from groundwire.dialects.options import HEADERS
from groundwire.dialects.report import render
from groundwire.dialects.request import Request, read_request
from groundwire.domain import Choice, Judgement, Source
from groundwire.errors import JobsUnavailable
from groundwire.report import Attempt, Report
from groundwire.storage.jobs.jobs import Jobs
from groundwire.storage.jobs.work import Work
from groundwire.storage.reports import Reports
from groundwire.telemetry import Telemetry

log = structlog.get_logger("groundwire.deferred")

Run = Callable[[str, bytes], Awaitable[bytes]]
"""The function of a job: an id and a payload to a result."""

EXAMINATION = "examination"
CHECK = "check"
CHECK_PREFIX = "gwc-"
"""The prefix of the ids of checks, which distinguishes them from those of reports."""
WEBHOOK = "webhook"

_DIALECTS = {dialect.name: dialect for dialect in DIALECTS}
_NO_ROOM = (("all", "overload"), ("all", "timeout"))
_MAX_KEPT = 2**22  # bytes of a request that a job keeps
_NOT_NOW = ("rate_limited", "unavailable")
_NOT_FINAL = ("pending", "deferred")


@dataclass(frozen=True, slots=True)
class Heard:
    """The verified parts of an answer: its choices, whether it broke off, and its metadata.

    `attempts` is set if more than one was needed. `prompt_tokens` is the number of prompt tokens that the upstream
    reports, `given` the output of tools at the upstream.
    """

    choices: Sequence[Choice]
    cut_short: bool = False
    answer_id: str | None = None
    model: str | None = None
    attempts: tuple[Attempt, ...] = ()
    prompt_tokens: int | None = None
    given: tuple[Source, ...] = ()

    @staticmethod
    def of(answer: Answer, request: Request, cut_short: bool, attempts: tuple[Attempt, ...] = ()) -> Heard:
        """Return the parts of an answer that `request` wants verified."""
        choices, given = request.examinable(answer), answer.given
        return Heard(choices, cut_short, answer.id, answer.model, attempts, answer.prompt_tokens, given)


@dataclass(frozen=True, slots=True)
class Later:
    """Verification by jobs, and the resulting reports. `work` lists the functions of these jobs."""

    jobs: Jobs
    reports: Reports
    work: Sequence[Work] = ()

    async def take(
        self, id_: str, request: Request, heard: Heard, origin: str | None = None, after: float | None = None
    ) -> bool:
        """Leave an examination to a job. Return False when it could not be kept, or its request is too large for that.

        `origin` is the trace that it is left for later in; it is first tried `after` so many seconds.
        """
        if len(request.raw) > _MAX_KEPT:
            return False
        payload = await asyncio.to_thread(write, request, heard, origin)
        return await self.defer(EXAMINATION, id_, payload, request.tenant, after)

    async def defer(self, kind: str, id_: str, payload: bytes, tenant: str, after: float | None) -> bool:
        """Have work of a kind done later. False when it could not be kept."""
        try:
            await self.jobs.defer(kind, id_, payload, tenant, after)
        except JobsUnavailable:
            return False
        return True

    async def find(self, id_: str, tenant: str = "") -> bytes | None:
        """Return a tenant's report, or the result of its check, as far as it has come; None when there is none.

        Raises JobsUnavailable when that cannot be known just now.
        """
        kept = self.reports.get(id_, tenant)
        if kept is not None and loads(kept).get("status") not in _NOT_FINAL:
            return kept
        try:
            outcome = await self.jobs.result(CHECK if id_.startswith(CHECK_PREFIX) else EXAMINATION, id_, tenant)
        except JobsUnavailable:
            if kept is None:
                raise
            return kept
        if outcome.state in ("unknown", "pending"):
            return kept or (dumps(_deferred(id_)) if outcome.state == "pending" else None)
        found = outcome.result if outcome.state == "done" else dumps(_failed(id_, outcome.reason))
        self.reports.put(id_, found, tenant)
        return found


def _deferred(id_: str) -> Mapping[str, Any]:
    """Return the placeholder for work that a job has not done yet."""
    if id_.startswith(CHECK_PREFIX):
        return {"id": id_, "status": "deferred"}
    return render(Report(id_, "deferred", "not_checked"))


def _failed(id_: str, reason: str) -> Mapping[str, Any]:
    """Return the result of work that was given up."""
    if id_.startswith(CHECK_PREFIX):
        return {"id": id_, "status": "failed", "reason": reason}
    warning = f"The examination was given up: {reason}."
    degraded, flags = (("all", "error"),), ("verifier_degraded",)
    return render(Report(id_, "failed", "not_checked", flags=flags, warnings=(warning,), degraded=degraded))


def is_unfinished(report: Report) -> bool:
    """Return whether verification may achieve more later, because capacity, time or a model was lacking."""
    return any(each in _NO_ROOM or each[1] in _NOT_NOW for each in report.degraded)


def wait_asked_for(report: Report) -> float | None:
    """Return the longest wait, in seconds, that a model's server asked for in this report; None when none did."""
    return longest_wait(judgement for choice in report.choices for judgement in choice.judgements)


def longest_wait(judgements: Iterable[Judgement]) -> float | None:
    """Return the longest wait, in seconds, that a model's server asked for; None when none did."""
    missing = (each.budget.missing for each in judgements if each.budget and each.budget.missing)
    return max((each.retry_after for each in missing if each.retry_after is not None), default=None)


def write(request: Request, heard: Heard, origin: str | None = None) -> bytes:
    """All that an examination needs, as JSON."""
    options = {header: getattr(request.options, name) for header, name in HEADERS.items()}
    return dumps(
        {
            "dialect": request.dialect.name,
            "request": request.raw.decode(),
            "headers": {header: value for header, value in options.items() if value is not None},
            "heard": asdict(heard),
            "origin": origin,
            "tenant": request.tenant,
            "question": request.question,
        }
    )


def read(payload: bytes) -> tuple[Request, Heard, str | None]:
    """Restore the output of `write`."""
    found: dict[str, Any] = loads(payload)
    tenant = found.get("tenant", "")  # jobs of earlier versions have none
    request = read_request(_DIALECTS[found["dialect"]], found["request"].encode(), found["headers"], tenant)
    request = replace(request, question=found.get("question", ""))
    heard = found["heard"]
    choices = tuple(Choice(**{**each, "arguments": tuple(each["arguments"])}) for each in heard["choices"])
    attempts = tuple(Attempt(**each) for each in heard.get("attempts", ()))  # nor these
    given = tuple(Source(**{**each, "labels": tuple(each["labels"])}) for each in heard.get("given", ()))
    read_back = Heard(**{**heard, "choices": choices, "attempts": attempts, "given": given})
    return request, read_back, found.get("origin")


def told_of(telemetry: Telemetry, kind: str, run: Run) -> Run:
    """The same work, with every attempt at it recorded."""

    async def told(id_: str, payload: bytes) -> bytes:
        with telemetry.job(kind, id_):
            return await run(id_, payload)

    return told
