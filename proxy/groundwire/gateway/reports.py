"""Reports on the way out: rendered for the client, logged, recorded in the history, and left to jobs."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import structlog

from groundwire.dialects.jsonbytes import dumps, loads
from groundwire.dialects.request import DIALECTS, HEADERS, Request, read_request
from groundwire.domain import Choice, Exchange, Judgement, Message, Source, Status, restored
from groundwire.errors import JobsUnavailable
from groundwire.evidence.messages import question
from groundwire.evidence.requests import intent_of
from groundwire.pipeline import OVERLOAD, AnswerSnapshot
from groundwire.policy import QuotePolicy
from groundwire.report import Attempt, QuoteCounts, Report, Utf16, Violation
from groundwire.storage.history.exchange import Entry, PromptMessage
from groundwire.storage.jobs import Jobs
from groundwire.storage.memory import Reports
from groundwire.storage.transact import Work
from groundwire.telemetry import Telemetry, short_hash
from groundwire.wire import Headers

log = structlog.get_logger("groundwire.grounding")

EXAMINATION = "examination"
CHECK = "check"
CHECK_PREFIX = "gwc-"
"""The prefix of the ids of checks, which distinguishes them from those of reports."""
WEBHOOK = "webhook"

Run = Callable[[str, bytes], Awaitable[bytes]]
"""The function of a job: an id and a payload to a result."""

_DIALECTS = {dialect.name: dialect for dialect in DIALECTS}
_NO_ROOM = (("all", "overload"), ("all", "timeout"))
_MAX_REQUEST = 2**22  # bytes of a request that a job stores
_NOT_NOW = ("rate_limited", "unavailable")
_NOT_FINAL = ("pending", "deferred")
_PARTS: Mapping[str, type[Any]] = {"choices": Choice, "attempts": Attempt, "given": Source}

_MAX_QUESTION = 8_000  # characters
_MAX_MESSAGE = 16_000
_MAX_PROMPT = 64_000
_MIN_MESSAGE = 200
_LEFT_OUT = "\n[…]\n"


def summary(wire: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a report in the wire format without its claims."""
    choices = [{key: value for key, value in choice.items() if key != "claims"} for choice in wire.get("choices", ())]
    return {**wire, "choices": choices} if choices else wire


@dataclass(frozen=True, slots=True)
class Annotation:
    """A report as JSON: the part `shown` to the client (None when it asked for none), and the `whole`, as stored."""

    report: Report
    shown: bytes | None
    whole: bytes

    @property
    def headers(self) -> Headers:
        """The `x-grounding-` headers of a response."""
        score = "" if self.report.score is None else f"{self.report.score:.4f}"
        return (
            (b"x-grounding-id", self.report.id.encode()),
            (b"x-grounding-status", self.report.status.encode()),
            (b"x-grounding-verdict", self.report.verdict.encode()),
            (b"x-grounding-score", score.encode()),
            (b"x-grounding-flags", ",".join(self.report.flags).encode()),
        )


def annotate(report: Report, request: Request, choices: Sequence[Choice] = ()) -> Annotation:
    """Render a report as its request asks; offsets are converted if it counts in UTF-16."""
    units = None
    if request.options.offset_unit == "utf16" and report.choices:
        units = Utf16(choices, request.exchange().messages, report.sources)
    wire = report.to_dict(units)
    whole = dumps(wire)
    if request.options.detail == "none":
        return Annotation(report, None, whole)
    return Annotation(report, dumps(summary(wire)) if request.options.detail == "summary" else whole, whole)


def placeholder(
    id_: str, request: Request, config: str, status: Literal["pending", "deferred"], *warnings: str
) -> Annotation:
    """Return the annotation for a report that is not ready: its id, by which it can be fetched later."""
    report = Report(id_, status, "not_checked", warnings=(*request.warnings, *warnings), config=config)
    return annotate(report, request)


def new_id() -> str:
    """Return an id for a report, which nobody can guess."""
    return "gw-" + secrets.token_hex(12)


def unverified_report(id_: str, config: str, reason: str | None = None) -> Report:
    """Return the report on an answer that was not verified: it failed for a reason or, without one, lacked capacity.

    `config` is the digest of the policy.
    """
    status: Status = "failed" if reason else "skipped"
    degraded, flags = (("all", "error" if reason else "overload"),), ("verifier_degraded",)
    warnings = (reason or OVERLOAD,)
    return Report(id_, status, "not_checked", flags=flags, warnings=warnings, degraded=degraded, config=config)


def log_result(report: Report, answer: AnswerSnapshot, quotes: QuotePolicy | None) -> None:
    """Log the result of a report, its violations and timeouts and, given the policy, its rejected quotations.

    No event contains text of a request or an answer.
    """
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
    log_violations(report.id, report.violations or (), [choice.text for choice in answer.choices if choice.text])
    causes = [
        verdict.method
        for choice in report.choices
        for judgement in choice.judgements
        for verdict in judgement.verdicts
        if verdict.verifier == "numeric" and verdict.method in ("timeout", "work_limit")
    ]
    if causes:
        log.warning("grounding.numbers_not_checked", grounding_id=report.id, **Counter(causes))
    if quotes is not None and report.quotes is not None and report.quotes.rejected:
        _log_rejections(report, report.quotes, quotes)


def log_violations(id_: str | None, violations: Sequence[Violation], answers: Sequence[str]) -> None:
    """Log that JSON answers break the shape declared for them, if they do; `id_` is that of the report, if any."""
    if not violations:
        return
    log.warning(
        "grounding.schema_violated",
        **({} if id_ is None else {"grounding_id": id_}),
        violations=len(violations),
        answers=[described(answer) for answer in answers],
    )


def _log_rejections(report: Report, counts: QuoteCounts, policy: QuotePolicy) -> None:
    """Log the numbers of rejected quotations, and the lengths and digests of claims and sources."""
    claims = [
        judgement.claim
        for choice in report.choices
        for judgement in choice.judgements
        if any(verdict.verifier == "quote" and verdict.label == "unsupported" for verdict in judgement.verdicts)
    ]
    level = log.warning if "quotes_all_rejected" in report.flags else log.info
    level(
        "grounding.quotes_checked",
        grounding_id=report.id,
        mode="fuzzy" if policy.fuzzy else "substring",
        extracted=counts.extracted,
        validated=counts.validated,
        rejected=counts.rejected,
        rejected_by_field=dict(counts.rejected_by_field),
        claims=[{"id": claim.id, **described(claim.text)} for claim in claims],
        transcript=described("\n\n".join(source.text for source in report.sources)),
    )


def described(text: str) -> dict[str, int | str]:
    """Return the length of a text and the digest that names it."""
    return {"chars": len(text), "sha256": short_hash(text)}


def entry_of(annotation: Annotation, request: Request, answer: AnswerSnapshot, at: float) -> Entry:
    """Build the entry of an exchange at a time in Unix seconds."""
    options, exchange = request.options, request.exchange()
    question_ = request.question or question(exchange)
    message = request.question or last_user_message(exchange)
    return Entry(
        at=at,
        report=annotation.report,
        kept=annotation.whole,
        model=answer.model or request.model,
        question=_shortened(message, _MAX_QUESTION),
        choices=tuple(answer.choices),
        subject=options.subject,
        session=options.session,
        intent=intent_of(question_ or message),
        asked=_shortened(question_, _MAX_QUESTION),
        prompt=_prompt(exchange),
        tenant=request.tenant,
        input_tokens=answer.tokens[0],
        output_tokens=answer.tokens[1],
        upstream_ms=answer.upstream_ms,
    )


def last_user_message(exchange: Exchange) -> str:
    """Return the text of the last message of the user, "" where there is none."""
    texts = (_text(message) for message in reversed(exchange.messages) if message.role == "user")
    return next((text for text in texts if text), "")


def _prompt(exchange: Exchange) -> tuple[PromptMessage, ...]:
    """Return the messages of a request, as far as there is space; the last ones have priority."""
    left, found = _MAX_PROMPT, list[PromptMessage]()
    for message in reversed(exchange.messages):
        text = _shortened(_text(message), min(left, _MAX_MESSAGE))
        if text:
            found.append(PromptMessage(message.role, text))
            left -= len(text)
        if left < _MIN_MESSAGE:
            break
    return tuple(reversed(found))


def _text(message: Message) -> str:
    """Return the text of a message, without its document parts, which are stored as sources."""
    is_of_tool = message.role == "tool"
    return "\n\n".join(part.text for part in message.parts if part.kind == "text" or is_of_tool).strip()


def _shortened(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters, its middle left out where it is longer."""
    if len(text) <= limit:
        return text
    head = (limit - len(_LEFT_OUT)) // 2
    return text[:head] + _LEFT_OUT + text[-(limit - len(_LEFT_OUT) - head) :]


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
        payload = await asyncio.to_thread(write_job, request, answer, origin)
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
    return unverified_report(id_, "", f"The background check was given up: {reason}.").to_dict()


def is_unfinished(report: Report) -> bool:
    """Return whether verification may achieve more later, because capacity, time or a model was lacking."""
    return any(each in _NO_ROOM or each[1] in _NOT_NOW for each in report.degraded)


def requested_wait(report: Report) -> float | None:
    """Return the longest wait, in seconds, that a model's server asked for in this report; None when none did."""
    return longest_wait(judgement for choice in report.choices for judgement in choice.judgements)


def longest_wait(judgements: Iterable[Judgement]) -> float | None:
    """Return the longest wait, in seconds, that a model's server asked for; None when none did."""
    missing = (each.budget.missing for each in judgements if each.budget and each.budget.missing)
    return max((each.retry_after for each in missing if each.retry_after is not None), default=None)


def write_job(request: Request, answer: AnswerSnapshot, origin: str | None = None) -> bytes:
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


def read_job(payload: bytes) -> tuple[Request, AnswerSnapshot, str | None]:
    """Restore the output of `write_job`."""
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
