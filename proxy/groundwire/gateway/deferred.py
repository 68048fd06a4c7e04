"""Verification by background jobs: serialise its inputs, restore them, and look up its result."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import structlog

from groundwire.dialects.jsonbytes import dumps, loads
from groundwire.dialects.request import DIALECTS, HEADERS, Request, read_request
from groundwire.domain import Cause, Choice, Judgement, Source, restored
from groundwire.errors import JobsUnavailable
from groundwire.pipeline import AnswerSnapshot
from groundwire.report import Attempt, Report
from groundwire.storage.jobs import Jobs
from groundwire.storage.memory import Reports
from groundwire.storage.transact import Work
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
_MAX_REQUEST = 2**22  # bytes of a request that a job stores
_NOT_NOW = ("rate_limited", "unavailable")
_NOT_FINAL = ("pending", "deferred")
_CUT_SHORT: frozenset[Cause] = frozenset({"rate_limited", "unreachable", "overload", "timeout"})

_PARTS: Mapping[str, type[Any]] = {"choices": Choice, "attempts": Attempt, "given": Source}

Rendered = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeferredQueue:
    """Verification by jobs, and the resulting reports. `work` lists the functions of these jobs."""

    jobs: Jobs
    reports: Reports
    work: Sequence[Work] = ()

    async def take(
        self, id_: str, request: Request, answer: AnswerSnapshot, origin: str | None = None, after: float | None = None
    ) -> bool:
        """Leave the verification of an answer to a job; return False if it is too large, or cannot be stored.

        `origin` is the current trace; the first attempt is made `after` so many seconds.
        """
        if len(request.raw) > _MAX_REQUEST:
            return False
        payload = await asyncio.to_thread(write, request, answer, origin)
        return await self.defer(EXAMINATION, id_, payload, request.tenant, after)

    async def defer(self, kind: str, id_: str, payload: bytes, tenant: str, after: float | None) -> bool:
        """Leave work of a kind to a job; return False if it cannot be stored."""
        try:
            await self.jobs.defer(kind, id_, payload, tenant, after)
        except JobsUnavailable:
            return False
        return True

    async def find(self, id_: str, tenant: str = "") -> bytes | None:
        """Return a tenant's report, or the result of its check, in its current state; None when there is none.

        Raises JobsUnavailable when the jobs cannot be read now.
        """
        stored = self.reports.get(id_, tenant)
        if stored is not None and loads(stored).get("status") not in _NOT_FINAL:
            return stored
        try:
            outcome = await self.jobs.result(CHECK if id_.startswith(CHECK_PREFIX) else EXAMINATION, id_, tenant)
        except JobsUnavailable:
            if stored is None:
                raise
            return stored
        if outcome.state in ("unknown", "pending"):
            return stored or (dumps(_deferred(id_)) if outcome.state == "pending" else None)
        found = outcome.result if outcome.state == "done" else dumps(_failed(id_, outcome.reason))
        self.reports.put(id_, found, tenant)
        return found


def _deferred(id_: str) -> Mapping[str, Any]:
    """Return the placeholder for work that a job has not done yet."""
    if id_.startswith(CHECK_PREFIX):
        return {"id": id_, "status": "deferred"}
    return Report(id_, "deferred", "not_checked").to_dict()


def _failed(id_: str, reason: str) -> Mapping[str, Any]:
    """Return the result of work that was given up."""
    if id_.startswith(CHECK_PREFIX):
        return {"id": id_, "status": "failed", "reason": reason}
    warning = f"The background check was given up: {reason}."
    degraded, flags = (("all", "error"),), ("verifier_degraded",)
    return Report(id_, "failed", "not_checked", flags=flags, warnings=(warning,), degraded=degraded).to_dict()


def is_unfinished(report: Report) -> bool:
    """Return whether verification may achieve more later, because capacity, time or a model was lacking."""
    return any(each in _NO_ROOM or each[1] in _NOT_NOW for each in report.degraded)


def is_cut_short(judgements: Sequence[Judgement]) -> bool:
    """Return whether a claim was not measured for lack of capacity, time or a model."""
    budgets = (judgement.budget for judgement in judgements)
    return any(each.missing.cause in _CUT_SHORT for each in budgets if each and each.missing)


def requested_wait(report: Report) -> float | None:
    """Return the longest wait, in seconds, that a model's server asked for in this report; None when none did."""
    return longest_wait(judgement for choice in report.choices for judgement in choice.judgements)


def longest_wait(judgements: Iterable[Judgement]) -> float | None:
    """Return the longest wait, in seconds, that a model's server asked for; None when none did."""
    missing = (each.budget.missing for each in judgements if each.budget and each.budget.missing)
    return max((each.retry_after for each in missing if each.retry_after is not None), default=None)


def write(request: Request, answer: AnswerSnapshot, origin: str | None = None) -> bytes:
    """Return all that the verification of an answer needs, as JSON."""
    options = {header: getattr(request.options, name) for header, name in HEADERS.items()}
    return dumps(
        {
            "dialect": request.dialect.name,
            "request": request.raw.decode(),
            "headers": {header: value for header, value in options.items() if value is not None},
            "heard": asdict(answer),
            "origin": origin,
            "tenant": request.tenant,
            "question": request.question,
        }
    )


def read(payload: bytes) -> tuple[Request, AnswerSnapshot, str | None]:
    """Restore the output of `write`."""
    found: dict[str, Any] = loads(payload)
    tenant = found.get("tenant", "")  # jobs of earlier versions have none
    request = read_request(_DIALECTS[found["dialect"]], found["request"].encode(), found["headers"], tenant)
    request = replace(request, question=found.get("question", ""))
    answer = found["heard"]
    parts = {name: [restored(shape, each) for each in answer.get(name, ())] for name, shape in _PARTS.items()}
    return request, restored(AnswerSnapshot, {**answer, **parts}), found.get("origin")


def traced(telemetry: Telemetry, kind: str, run: Run) -> Run:
    """Return the same work, with every attempt at it recorded in telemetry."""

    async def attempt(id_: str, payload: bytes) -> bytes:
        with telemetry.job(kind, id_):
            return await run(id_, payload)

    return attempt


@dataclass(frozen=True, slots=True)
class CheckJob:
    """A check to be done again: of which `kind`, its body, and for which model and tenant.

    `kept` are the ids of the facts that the memory holds meanwhile, in the order of the check.
    """

    kind: str
    check: Rendered
    tenant: str = ""
    kept: tuple[str | None, ...] = ()
    origin: str | None = None

    def write(self) -> bytes:
        """Return the job as JSON."""
        return dumps(asdict(self))

    @staticmethod
    def read(payload: bytes) -> CheckJob:
        """Restore the output of `write`."""
        return restored(CheckJob, loads(payload))


async def deferred(
    found: Rendered, judgements: Sequence[Judgement], job: CheckJob, queue: DeferredQueue | None
) -> Rendered:
    """Return the result of a check, with the id of the job that completes it if it was cut short."""
    if queue is None or not is_cut_short(judgements):
        return found
    id_ = CHECK_PREFIX + secrets.token_hex(12)
    if not await queue.defer(CHECK, id_, job.write(), job.tenant, longest_wait(judgements)):
        return found
    result = {"id": id_, "status": "deferred", **found}
    queue.reports.put(id_, dumps(result), job.tenant)
    return result
