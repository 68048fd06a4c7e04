"""The HTTP API of stored data, for admins: the review queue, decisions, exports, trends, search, and deletion."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal
from urllib.parse import parse_qs

from pydantic import BaseModel

import groundwire.http.endpoints  # noqa: F401 - the convertor named text
from groundwire.dialects.jsonbytes import dumps
from groundwire.dialects.request import read_object
from groundwire.dialects.reviews import (
    AccuracyOut,
    ClaimDecisionIn,
    DayOut,
    DecisionIn,
    DecisionOut,
    EntityHistory,
    EntityOut,
    ExchangeOut,
    ExchangePage,
    ExchangeQuery,
    ExportQuery,
    Forgotten,
    MentionOut,
    Metrics,
    MetricsQuery,
    PrecisionOut,
    RatioOut,
    ReviewDetail,
    ReviewFilter,
    ReviewOut,
    ReviewPage,
    ReviewQuery,
    SimilarOut,
    SimilarPage,
    SimilarQuery,
    SubjectQuery,
    TotalOut,
    flat,
    read_asked,
)
from groundwire.errors import BadRequest, ReportUnavailable, ReviewConflict, StoreUnavailable, UnknownReview
from groundwire.gateway.forward import parsed
from groundwire.http.admin import AdminHandler, AdminKeys, require_admin
from groundwire.http.audited_history import AuditedHistory
from groundwire.http.endpoints import Handler
from groundwire.http.exchange import JSON
from groundwire.http.guard import FREE_REQUESTS, FailedAttempts
from groundwire.storage.history.exchange import Query, Summary
from groundwire.storage.history.reviews import Decided, Finding, Ratio, Wanted
from groundwire.storage.history.tables import LABELS, VERDICTS
from groundwire.storage.history.trends import Figures, ScoreName
from groundwire.wire import Call, Chunks, Headers, Reply

_DAYS = 30
_LONGEST_DAYS = 366
_MEANS: tuple[ScoreName, ...] = ("score", "confidence", "consistency", "risk", "quality")
_FORMULA = (*"=+-@＝＋－＠", "\t", "\r", "\n")  # characters that begin a formula in a spreadsheet cell

_COLUMNS = (
    "id", "exchange", "at", "model", "tenant", "subject", "session", "flags", "label", "verifier", "method",
    "score", "confidence", "original_confidence",
    "question", "claim", "reason", "evidence", "decision", "note", "who", "decided_at",
)  # fmt: skip


def review_routes(history: AuditedHistory, keys: AdminKeys) -> tuple[tuple[str, str, Handler], ...]:
    """Return path, method and handler of each endpoint; paths with parameters come after those that they also match."""

    failed = FailedAttempts(free=FREE_REQUESTS)

    def admins(handle: AdminHandler) -> Handler:
        return require_admin(keys, _with_store(handle), failed)

    return (
        ("/v1/reviews", "GET", admins(_queue(history))),
        ("/v1/reviews", "POST", admins(_decide_on_claim(history))),
        ("/v1/reviews/export", "GET", admins(_export(history))),
        ("/v1/reviews/{id}", "GET", admins(_finding(history))),
        ("/v1/reviews/{id}", "POST", admins(_decide(history))),
        ("/v1/grounding", "GET", admins(_exchanges(history))),
        ("/v1/grounding/metrics", "GET", admins(_metrics(history))),
        ("/v1/grounding/similar", "GET", admins(_similar(history))),
        ("/v1/subjects/{subject:text}/entities", "GET", admins(_entities(history))),
        ("/v1/subjects/{subject:text}", "DELETE", admins(_forget(history))),
    )


def _with_store(handle: AdminHandler) -> AdminHandler:
    """Render store failures and conflicting decisions in OpenAI's shape."""

    async def handler(call: Call, params: Mapping[str, str], who: str) -> Reply:
        try:
            return await handle(call, params, who)
        except StoreUnavailable as error:
            raise ReportUnavailable(str(error), operator=error.operator) from error
        except ReviewConflict as conflict:
            return Reply(409, JSON, dumps(conflict_body(conflict)))

    return handler


def conflict_body(conflict: ReviewConflict) -> dict[str, Any]:
    """Return the body of a conflict: an error, the other decision, and its version."""
    error = {"message": str(conflict), "type": "invalid_request_error", "param": "version", "code": "review_conflict"}
    decided = Decided("rejected", conflict.who, conflict.at, conflict.note)
    decision = decision_out(decided).model_dump(mode="json") | {"decision": conflict.decision}
    return {"error": error, "decision": decision, "version": conflict.version}


def _queue(history: AuditedHistory) -> AdminHandler:
    async def handle(call: Call, _: Mapping[str, str], who: str) -> Reply:
        query = read_asked(ReviewQuery, parameters(call))
        page = await history.queue(who, wanted(query), query.after, query.limit)
        return _json(ReviewPage(reviews=[review_out(each) for each in page.items], after=page.after))

    return handle


def _finding(history: AuditedHistory) -> AdminHandler:
    async def handle(_: Call, params: Mapping[str, str], who: str) -> Reply:
        found = await history.finding(who, finding_id(params["id"]))
        if found is None:
            raise UnknownReview(f"There is no finding with the id {params['id']}", param="id")
        finding, decisions = found
        made = [decision_out(each) for each in decisions]
        return _json(ReviewDetail(**review_out(finding).model_dump(), decisions=made))

    return handle


def _decide(history: AuditedHistory) -> AdminHandler:
    async def handle(call: Call, params: Mapping[str, str], who: str) -> Reply:
        given = read_asked(DecisionIn, await parsed(call.body, lambda: read_object(call.body)))
        found = await history.decide(who, finding_id(params["id"]), given.version, given.decision, given.note)
        if found is None:
            raise UnknownReview(f"There is no finding with the id {params['id']}", param="id")
        return _json(review_out(found))

    return handle


def _decide_on_claim(history: AuditedHistory) -> AdminHandler:
    async def handle(call: Call, _: Mapping[str, str], who: str) -> Reply:
        given = read_asked(ClaimDecisionIn, await parsed(call.body, lambda: read_object(call.body)))
        return _json(review_out(await history.decide_on_claim(who, given)))

    return handle


def _export(history: AuditedHistory) -> AdminHandler:
    async def handle(call: Call, _: Mapping[str, str], who: str) -> Reply:
        query = read_asked(ExportQuery, parameters(call))
        return export_reply(await history.export(who, wanted(query)), query.format)

    return handle


def _exchanges(history: AuditedHistory) -> AdminHandler:
    async def handle(call: Call, _: Mapping[str, str], who: str) -> Reply:
        query = read_asked(ExchangeQuery, parameters(call))
        page = await history.exchanges(who, conditions(query), query.after, query.limit)
        return _json(ExchangePage(exchanges=[_exchange_out(each) for each in page.items], after=page.after))

    return handle


def _similar(history: AuditedHistory) -> AdminHandler:
    async def handle(call: Call, _: Mapping[str, str], who: str) -> Reply:
        query = read_asked(SimilarQuery, parameters(call))
        found = await history.similar(who, query.q, query.subject, query.limit, query.tenant)
        items = [
            SimilarOut(**_exchange_out(each.exchange).model_dump(), similarity=round(each.similarity, 4))
            for each in found
        ]
        return _json(SimilarPage(exchanges=items))

    return handle


def _entities(history: AuditedHistory) -> AdminHandler:
    async def handle(call: Call, params: Mapping[str, str], who: str) -> Reply:
        found = await history.entities(who, params["subject"], read_asked(SubjectQuery, parameters(call)).tenant)
        items = [
            EntityOut(
                name=entity.name,
                mentions=[
                    MentionOut(exchange=each.exchange, at=_time(each.at), statement=each.statement)
                    for each in entity.mentions
                ],
            )
            for entity in found
        ]
        return _json(EntityHistory(subject=params["subject"], entities=items))

    return handle


def _metrics(history: AuditedHistory) -> AdminHandler:
    async def handle(call: Call, _: Mapping[str, str], who: str) -> Reply:
        query = read_asked(MetricsQuery, parameters(call))
        if query.by == "subject":
            await history.subjects(who)
        last = query.to or datetime.now(UTC).date()
        first = query.from_ or last - timedelta(days=_DAYS - 1)
        if not timedelta(0) <= last - first < timedelta(days=_LONGEST_DAYS):
            raise BadRequest(f"'from' must be a day before 'to', at most {_LONGEST_DAYS} days in all", param="from")
        end = last + timedelta(days=1)
        totals = await history.totals(query.by, first, end)
        days = await history.daily(query.by, first, end)
        since = day_start(first)
        precision = await history.precision(since)
        agreement = await history.agreement(since)
        metrics = Metrics(
            from_=first,
            to=last,
            by=query.by,
            totals=[TotalOut(key=key, **_figures(figures)) for key, figures in totals],
            days=[DayOut(day=each.day, key=each.key, **_figures(each.figures)) for each in days],
            precision=[
                PrecisionOut(
                    flag=each.flag,
                    verifier=each.verifier,
                    confirmed=each.confirmed,
                    rejected=each.rejected,
                    precision=each.ratio.value,
                    interval=each.ratio.interval,
                )
                for each in precision
            ],
            verifiers=[
                AccuracyOut(**asdict(each), precision=_ratio_out(each.precision), recall=_ratio_out(each.recall))
                for each in await history.accuracy(since)
            ],
            agreement=_ratio_out(agreement),
        )
        return Reply(200, JSON, dumps(metrics.model_dump(mode="json", by_alias=True)))

    return handle


def _forget(history: AuditedHistory) -> AdminHandler:
    async def handle(call: Call, params: Mapping[str, str], who: str) -> Reply:
        subject, tenant = params["subject"], read_asked(SubjectQuery, parameters(call)).tenant
        return _json(Forgotten(subject=subject, deleted=await history.forget(who, subject, tenant)))

    return handle


def parameters(call: Call) -> dict[str, str]:
    """Return the parameters of a call's query."""
    return flat(parse_qs(call.target.partition("?")[2], keep_blank_values=True))


def finding_id(text: str) -> int:
    """Parse the number of a finding. Raises UnknownReview for anything else."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UnknownReview(f"There is no finding with the id {text}", param="id")
    return int(text)


def conditions(query: ExchangeQuery) -> Query:
    """Return the query of the store."""
    same = ("subject", "session", "model", "flag", "tenant", "verdict", "verifier")
    return Query(
        **{name: getattr(query, name) for name in same},
        text=query.q,
        since=_seconds(query.since),
        until=_seconds(query.until),
        state=None if query.state == "any" else query.state,
        by_risk=query.sort == "risk",
    )


def wanted(query: ReviewFilter) -> Wanted:
    """Return the filter of the store for a query."""
    return Wanted(
        query.state,
        query.flag,
        query.verifier,
        query.model,
        query.subject,
        query.exchange,
        _seconds(query.since),
        _seconds(query.until),
        query.tenant,
    )


def review_out(finding: Finding) -> ReviewOut:
    """Convert a finding to its wire format."""
    plain = {name: getattr(finding, name) for name in ReviewOut.model_fields if name not in ("decision", "citations")}
    citations = [asdict(each) for each in finding.citations]
    decision = decision_out(finding.decided) if finding.decided else None
    given = plain | {"at": _time(finding.at), "citations": citations, "decision": decision}
    return ReviewOut.model_validate(given | {"flags": list(finding.flags)})


def decision_out(decided: Decided) -> DecisionOut:
    """Convert a decision to its wire format."""
    return DecisionOut(decision=decided.decision, who=decided.who, at=_time(decided.at), note=decided.note)


def export_reply(findings: AsyncIterator[Finding], format_: Literal["csv", "jsonl"]) -> Reply:
    """Return findings as a file, streamed as they are read."""
    kind = b"text/csv; charset=utf-8" if format_ == "csv" else b"application/jsonl; charset=utf-8"
    name = b'attachment; filename="groundwire-reviews.' + format_.encode() + b'"'
    headers: Headers = (
        (b"content-type", kind),
        (b"content-disposition", name),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-store"),
    )
    return Reply(200, headers, _csv(findings) if format_ == "csv" else _jsonl(findings))


async def _read(findings: AsyncIterator[Finding]) -> AsyncGenerator[Finding, None]:
    """Yield findings for a file. Raises ReportUnavailable, which breaks the file off, when the store fails."""
    try:
        async for finding in findings:
            yield finding
    except StoreUnavailable as error:
        raise ReportUnavailable(str(error), operator=error.operator) from error


async def _jsonl(findings: AsyncIterator[Finding]) -> Chunks:
    async for finding in _read(findings):
        yield dumps(review_out(finding).model_dump(mode="json")) + b"\n"


async def _csv(findings: AsyncIterator[Finding]) -> Chunks:
    yield _line(_COLUMNS)
    async for finding in _read(findings):
        decided = finding.decided
        yield _line(
            (
                finding.id, finding.exchange, _time(finding.at).isoformat(), finding.model, finding.tenant,
                finding.subject, finding.session, " ".join(finding.flags), finding.label, finding.verifier,
                finding.method, finding.score, finding.confidence, finding.original_confidence,
                finding.question, finding.text, finding.reason,
                " … ".join(each.text for each in finding.citations),
                decided and decided.decision, decided and decided.note, decided and decided.who,
                decided and _time(decided.at).isoformat(),
            )
        )  # fmt: skip


def _line(cells: tuple[Any, ...]) -> bytes:
    """One line of CSV (RFC 4180). No cell of it makes a spreadsheet compute."""
    out = io.StringIO()
    csv.writer(out).writerow([_inert(cell) if isinstance(cell, str) else cell for cell in cells])
    return out.getvalue().encode("utf-8", "replace")


def _inert(cell: str) -> str:
    return f"'{cell}" if cell.lstrip(" ").startswith(_FORMULA) else cell


def _exchange_out(found: Summary) -> ExchangeOut:
    plain = {name: getattr(found, name) for name in ExchangeOut.model_fields}
    return ExchangeOut.model_validate(plain | {"at": _time(found.at), "flags": list(found.flags)})


def _figures(figures: Figures) -> dict[str, Any]:
    counts = figures.counts
    return {
        "exchanges": figures.exchanges,
        "flagged_share": figures.flagged_share,
        "verdicts": {each: counts[f"verdict_{each}"] for each in VERDICTS},
        "claims": counts["claims"],
        "checked": counts["checked"],
        "labels": {each: counts[each] for each in LABELS},
        "mean": {each: figures.mean(each) for each in _MEANS},
        "latency_ms": {
            "mean": figures.mean_ms,
            **{f"p{share}": figures.latency_ms(share / 100) for share in (50, 95, 99)},
        },
        "upstream_ms": figures.upstream_ms,
        "tokens": {"input": figures.tokens("input"), "output": figures.tokens("output")},
        "cache_hit_rate": figures.cache_hit_rate,
    }


def _ratio_out(ratio: Ratio | None) -> RatioOut | None:
    if ratio is None:
        return None
    return RatioOut(count=ratio.count, of=ratio.of, value=ratio.value, interval=ratio.interval)


def _json(model: BaseModel) -> Reply:
    return Reply(200, JSON, dumps(model.model_dump(mode="json")))


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(round(at, 3), UTC)


def _seconds(at: datetime | None) -> float | None:
    return at.timestamp() if at else None


def day_start(day: date) -> float:
    """Return the start of a day in UTC, in Unix seconds."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
