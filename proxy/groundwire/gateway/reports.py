"""Reports on the way out: rendered for the client, logged, and recorded in the history."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import structlog

from groundwire.dialects.jsonbytes import dumps
from groundwire.dialects.request import Request
from groundwire.domain import Choice, Exchange, Message, Status
from groundwire.evidence.messages import question
from groundwire.evidence.requests import intent_of
from groundwire.offload import Workers
from groundwire.pipeline import OVERLOAD, AnswerSnapshot
from groundwire.policy import QuotePolicy
from groundwire.report import QuoteCounts, Report, Utf16, Violation
from groundwire.storage.history.exchange import Entry, PromptMessage, Usage
from groundwire.telemetry import short_hash
from groundwire.wire import Headers

if TYPE_CHECKING:  # it loads SQLAlchemy, which is needed only with a database
    from groundwire.storage.history.history import History

log = structlog.get_logger("groundwire.grounding")
history_log = structlog.get_logger("groundwire.history")

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
        answers=[_described(answer) for answer in answers],
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
        claims=[{"id": claim.id, **_described(claim.text)} for claim in claims],
        transcript=_described("\n\n".join(source.text for source in report.sources)),
    )


def _described(text: str) -> dict[str, int | str]:
    """Return the length of a text and the digest that names it."""
    return {"chars": len(text), "sha256": short_hash(text)}


@dataclass(frozen=True, slots=True)
class Recorder:
    """Record exchanges in `store`; a worker prepares the entries."""

    store: History
    workers: Workers
    now: Callable[[], float] = time.time

    async def record(self, annotation: Annotation, request: Request, answer: AnswerSnapshot) -> None:
        """Record an exchange with the current time. Raises nothing but cancellation."""
        try:
            entry = await self.workers.insist(entry_of, annotation, request, answer, self.now())
        except Exception:  # noqa: BLE001 - logged with its traceback
            history_log.exception("history.unreadable", grounding_id=annotation.report.id)
        else:
            self.store.record(entry)

    async def record_now(self, annotation: Annotation, request: Request, answer: AnswerSnapshot) -> None:
        """Record an exchange, and wait until it is written or the store is down. Raises nothing but cancellation."""
        await self.record(annotation, request, answer)
        await self.store.flush()


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
        usage=Usage(*answer.tokens, answer.upstream_ms),
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
