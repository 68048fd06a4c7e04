"""Stored data for admins: access with an audit log, and the HTTP API over it.

The API has the review queue, decisions, exports, trends, search, and deletion.
"""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl

from pydantic import BaseModel

import groundwire.http.endpoints  # noqa: F401 - the convertor named text
from groundwire.dialects.jsonbytes import dumps
from groundwire.dialects.request import read_object
from groundwire.dialects.reviews import (
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
    read_asked,
)
from groundwire.errors import BadRequest, ReportUnavailable, ReviewConflict, StoreUnavailable, UnknownReview
from groundwire.features.consistency import Entity, entity_history
from groundwire.gateway.forward import parsed
from groundwire.http.exchange import JSON, Handler
from groundwire.http.guard import FREE_REQUESTS, AdminHandler, FailedAttempts, require_admin
from groundwire.http.keys import AdminKeys
from groundwire.storage.history.exchange import Page, Query, Similar, Stored, Summary
from groundwire.storage.history.history import Action, History
from groundwire.storage.history.reviews import Decided, Decision, Finding, Wanted
from groundwire.storage.history.tables import LABELS, VERDICTS
from groundwire.storage.history.trends import Figures, ScoreName
from groundwire.storage.memory import MemoryFacts, Reports
from groundwire.wire import Call, Chunks, Headers, Reply

if TYPE_CHECKING:
    from groundwire.telemetry.metrics import Metrics as LiveMetrics

_DAYS = 30
_LONGEST_DAYS = 366
_ANSWERS = 200  # of a subject, the newest, in which names are looked for
_MEANS: tuple[ScoreName, ...] = ("score", "confidence", "consistency", "risk", "quality")
_FORMULA = (*"=+-@＝＋－＠", "\t", "\r", "\n")  # characters that begin a formula in a spreadsheet cell

_COLUMNS = (
    "id", "exchange", "at", "model", "tenant", "subject", "session", "flags", "label", "verifier", "method",
    "score", "confidence", "original_confidence",
    "question", "claim", "reason", "evidence", "decision", "note", "who", "decided_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AuditedHistory:
    """The history with an audit log; `who` is always the admin's name. Every method raises StoreUnavailable.

    `reports` are those in memory of this process, `memory` the stored facts about subjects; `metrics` count decisions.
    Admins have access to all tenants, or to the one that they name.
    """

    history: History
    reports: Reports
    metrics: LiveMetrics | None = None
    memory: MemoryFacts | None = None

    async def queue(self, who: str, wanted: Wanted, after: int | None = None, limit: int = 50) -> Page[Finding]:
        """Return the findings that match, newest first."""
        await self._note(who, "list", _described(wanted), wanted.subject)
        return await self.history.reviews.page(wanted, after, limit)

    async def answers(
        self, who: str, wanted: Wanted, after: int | None = None, limit: int = 50
    ) -> Page[tuple[Finding, ...]]:
        """Return the findings that match by answer, newest answer first."""
        await self._note(who, "list", _described(wanted), wanted.subject)
        return await self.history.reviews.answers(wanted, after, limit)

    async def finding(self, who: str, id_: int) -> tuple[Finding, tuple[Decided, ...]] | None:
        """Return a finding with all decisions on it, oldest first, or None if there is no such finding."""
        found = await self.history.reviews.get(id_)
        if found is None:
            return None
        await self._note(who, "read", found.exchange, found.subject)
        return found, await self.history.reviews.decisions(id_)

    async def exchange(self, who: str, id_: str) -> tuple[Stored, tuple[Finding, ...]] | None:
        """Return an exchange with its findings in the order of the answer, or None if there is no such exchange."""
        found = await self.history.exchanges.get(id_)
        if found is None:
            return None
        await self._note(who, "read", id_, found.summary.subject)
        return found, await self.history.reviews.of_exchange(id_)

    async def exchanges(self, who: str, query: Query, after: int | None, limit: int) -> Page[Summary]:
        """Return the exchanges that match a query, newest first."""
        await self._note(who, "search" if query.text else "list", _described(query), query.subject)
        return await self.history.exchanges.page(query, after, limit)

    async def similar(
        self, who: str, question: str, subject: str | None, limit: int, tenant: str | None = None
    ) -> tuple[Similar, ...]:
        """Return exchanges with the most similar questions, the most similar first."""
        await self._note(who, "search", "similar questions", subject)
        return await self.history.exchanges.similar(question, subject, limit, tenant)

    async def entities(self, who: str, subject: str, tenant: str | None = None) -> tuple[Entity, ...]:
        """Return the statements about each name in the newest answers about a subject."""
        await self._note(who, "list", "entities", subject)
        answers = await self.history.exchanges.earlier(subject, tenant, _ANSWERS)
        return await asyncio.to_thread(entity_history, answers)

    async def decide(self, who: str, id_: int, version: int, decision: Decision, note: str) -> Finding | None:
        """Decide on a finding as it was at `version`; None if there is none. Raises ReviewConflict."""
        found = await self.history.reviews.decide(id_, version, decision, who, note)
        if found is not None:
            await self._decided(who, found, decision)
        return found

    async def decide_on_claim(self, who: str, given: ClaimDecisionIn) -> Finding:
        """Decide on any claim of an exchange. Raises ReviewConflict, and UnknownReview if there is no such claim."""
        stored = await self.history.exchanges.get(given.exchange)
        found = stored and await self.history.reviews.decide_on_claim(
            stored, given.choice, given.claim, given.version, given.decision, who, given.note
        )
        if not found:
            raise UnknownReview("No stored exchange has this claim.", param="claim")
        await self._decided(who, found, given.decision)
        return found

    async def _decided(self, who: str, found: Finding, decision: Decision) -> None:
        await self._note(who, "decide", f"{found.id} {decision}", found.subject)
        if self.metrics is not None and found.score is not None and found.flags:
            self.metrics.reviewed(found.verifier or "", found.score, is_right=decision == "confirmed")

    async def export(self, who: str, wanted: Wanted) -> AsyncIterator[Finding]:
        """Iterate over the findings that match, newest first; they are read lazily."""
        await self._note(who, "export", _described(wanted), wanted.subject)
        return self.history.reviews.export(wanted)

    async def forget(self, who: str, subject: str, tenant: str | None = None) -> int:
        """Delete all data about a subject, including remembered facts, and return the number of exchanges."""
        if self.memory is not None:
            await self.memory.forget(subject, tenant)
        ids = await self.history.forget(subject, tenant)
        for id_ in ids:
            self.reports.drop(id_)
        await self._note(who, "forget", f"{len(ids)} exchanges")
        return len(ids)

    async def subjects(self, who: str) -> None:
        """Record in the audit log that the figures of subjects were read."""
        await self._note(who, "list", "figures of subjects")

    async def _note(self, who: str, action: Action, what: str, subject: str | None = None) -> None:
        await self.history.note(who, action, what, subject)


class ReviewApi:
    """The endpoints of the API. Store failures and conflicting decisions are rendered in OpenAI's shape."""

    def __init__(self, stored: AuditedHistory, keys: AdminKeys) -> None:
        self._stored = stored
        self._keys = keys
        self._failed = FailedAttempts(free=FREE_REQUESTS)

    def routes(self) -> tuple[tuple[str, str, Handler], ...]:
        """Return path, method and handler; paths with parameters come after those that they also match."""
        return (
            ("/v1/reviews", "GET", self._for_admins(self._queue)),
            ("/v1/reviews", "POST", self._for_admins(self._decide_on_claim)),
            ("/v1/reviews/export", "GET", self._for_admins(self._export)),
            ("/v1/reviews/{id}", "GET", self._for_admins(self._finding)),
            ("/v1/reviews/{id}", "POST", self._for_admins(self._decide)),
            ("/v1/grounding", "GET", self._for_admins(self._exchanges)),
            ("/v1/grounding/metrics", "GET", self._for_admins(self._metrics)),
            ("/v1/grounding/similar", "GET", self._for_admins(self._similar)),
            ("/v1/subjects/{subject:text}/entities", "GET", self._for_admins(self._entities)),
            ("/v1/subjects/{subject:text}", "DELETE", self._for_admins(self._forget)),
        )

    def _for_admins(self, handle: AdminHandler) -> Handler:
        async def handler(call: Call, params: Mapping[str, str], who: str) -> Reply:
            try:
                return await handle(call, params, who)
            except StoreUnavailable as error:
                raise ReportUnavailable(str(error), operator=error.operator) from error
            except ReviewConflict as conflict:
                return _conflict(conflict)

        return require_admin(self._keys, handler, self._failed)

    async def _queue(self, call: Call, _: Mapping[str, str], who: str) -> Reply:
        query = read_asked(ReviewQuery, parameters(call))
        page = await self._stored.queue(who, wanted(query), query.after, query.limit)
        return _json(ReviewPage(reviews=[_review_out(each) for each in page.items], after=page.after))

    async def _finding(self, _: Call, params: Mapping[str, str], who: str) -> Reply:
        found = await self._stored.finding(who, finding_id(params["id"]))
        if found is None:
            raise UnknownReview(f"There is no finding with the id {params['id']}", param="id")
        finding, decisions = found
        made = [_decision_out(each) for each in decisions]
        return _json(ReviewDetail(**_review_out(finding).model_dump(), decisions=made))

    async def _decide(self, call: Call, params: Mapping[str, str], who: str) -> Reply:
        given = read_asked(DecisionIn, await parsed(call.body, lambda: read_object(call.body)))
        found = await self._stored.decide(who, finding_id(params["id"]), given.version, given.decision, given.note)
        if found is None:
            raise UnknownReview(f"There is no finding with the id {params['id']}", param="id")
        return _json(_review_out(found))

    async def _decide_on_claim(self, call: Call, _: Mapping[str, str], who: str) -> Reply:
        given = read_asked(ClaimDecisionIn, await parsed(call.body, lambda: read_object(call.body)))
        return _json(_review_out(await self._stored.decide_on_claim(who, given)))

    async def _export(self, call: Call, _: Mapping[str, str], who: str) -> Reply:
        query = read_asked(ExportQuery, parameters(call))
        return export_reply(await self._stored.export(who, wanted(query)), query.format)

    async def _exchanges(self, call: Call, _: Mapping[str, str], who: str) -> Reply:
        query = read_asked(ExchangeQuery, parameters(call))
        page = await self._stored.exchanges(who, conditions(query), query.after, query.limit)
        return _json(ExchangePage(exchanges=[_exchange_out(each) for each in page.items], after=page.after))

    async def _similar(self, call: Call, _: Mapping[str, str], who: str) -> Reply:
        query = read_asked(SimilarQuery, parameters(call))
        found = await self._stored.similar(who, query.q, query.subject, query.limit, query.tenant)
        items = [
            SimilarOut(**_exchange_out(each.exchange).model_dump(), similarity=round(each.similarity, 4))
            for each in found
        ]
        return _json(SimilarPage(exchanges=items))

    async def _entities(self, call: Call, params: Mapping[str, str], who: str) -> Reply:
        tenant = read_asked(SubjectQuery, parameters(call)).tenant
        items = []
        for entity in await self._stored.entities(who, params["subject"], tenant):
            mentions = [
                MentionOut(exchange=each.exchange, at=_time(each.at), statement=each.statement)
                for each in entity.mentions
            ]
            items.append(EntityOut(name=entity.name, mentions=mentions))
        return _json(EntityHistory(subject=params["subject"], entities=items))

    async def _metrics(self, call: Call, _: Mapping[str, str], who: str) -> Reply:
        query = read_asked(MetricsQuery, parameters(call))
        if query.by == "subject":
            await self._stored.subjects(who)
        last = query.to or datetime.now(UTC).date()
        first = query.from_ or last - timedelta(days=_DAYS - 1)
        if not timedelta(0) <= last - first < timedelta(days=_LONGEST_DAYS):
            raise BadRequest(f"'from' must be a day before 'to', at most {_LONGEST_DAYS} days in all", param="from")
        end = last + timedelta(days=1)
        since = datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp()
        trends, reviews = self._stored.history.trends, self._stored.history.reviews
        totals = await trends.totals(query.by, first, end)
        days = await trends.daily(query.by, first, end)
        precision = await reviews.precision(since)
        metrics = {
            "from_": first,
            "to": last,
            "by": query.by,
            "totals": [TotalOut(key=key, **_figures(figures)) for key, figures in totals],
            "days": [DayOut(day=each.day, key=each.key, **_figures(each.figures)) for each in days],
            "precision": [
                PrecisionOut(**asdict(each), precision=each.ratio.value, interval=each.ratio.interval)
                for each in precision
            ],
            "agreement": await reviews.agreement(since),
            "verifiers": await reviews.accuracy(since),
        }
        found = Metrics.model_validate(metrics, from_attributes=True)
        return Reply(200, JSON, dumps(found.model_dump(mode="json", by_alias=True)))

    async def _forget(self, call: Call, params: Mapping[str, str], who: str) -> Reply:
        subject, tenant = params["subject"], read_asked(SubjectQuery, parameters(call)).tenant
        return _json(Forgotten(subject=subject, deleted=await self._stored.forget(who, subject, tenant)))


def _described(conditions: Wanted | Query) -> str:
    """Describe conditions for the audit log, without the searched text, which is content."""
    return " ".join(
        f"{name}={'…' if name == 'text' else value}"
        for name, value in asdict(conditions).items()
        if value not in (None, False) and name != "subject"
    )


def parameters(call: Call) -> dict[str, str]:
    """Return the parameters of a call's query, the last value of each."""
    return dict(parse_qsl(call.target.partition("?")[2], keep_blank_values=True))


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
    given = {name: getattr(query, name) for name in ReviewFilter.model_fields}
    return Wanted(**given | {"since": _seconds(query.since), "until": _seconds(query.until)})


def _review_out(finding: Finding) -> ReviewOut:
    given = {name: getattr(finding, name) for name in ReviewOut.model_fields if name != "decision"}
    decision = _decision_out(finding.decided) if finding.decided else None
    return ReviewOut.model_validate(given | {"at": _time(finding.at), "decision": decision}, from_attributes=True)


def _decision_out(made: Decided | ReviewConflict) -> DecisionOut:
    return DecisionOut.model_validate(made, from_attributes=True).model_copy(update={"at": _time(made.at)})


def _conflict(conflict: ReviewConflict) -> Reply:
    """Return a conflict: an error, the other decision, and its version."""
    error = {"message": str(conflict), "type": "invalid_request_error", "param": "version", "code": "review_conflict"}
    decision = _decision_out(conflict).model_dump(mode="json")
    return Reply(409, JSON, dumps({"error": error, "decision": decision, "version": conflict.version}))


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
        yield dumps(_review_out(finding).model_dump(mode="json")) + b"\n"


async def _csv(findings: AsyncIterator[Finding]) -> Chunks:
    yield _csv_line(_COLUMNS)
    async for finding in _read(findings):
        decided = finding.decided
        yield _csv_line(
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


def _csv_line(cells: tuple[Any, ...]) -> bytes:
    """Return a line of CSV (RFC 4180), none of whose cells is a formula for a spreadsheet."""
    out = io.StringIO()
    csv.writer(out).writerow(
        [f"'{cell}" if isinstance(cell, str) and cell.lstrip(" ").startswith(_FORMULA) else cell for cell in cells]
    )
    return out.getvalue().encode("utf-8", "replace")


def _exchange_out(found: Summary) -> ExchangeOut:
    return ExchangeOut.model_validate(found, from_attributes=True).model_copy(update={"at": _time(found.at)})


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


def _json(model: BaseModel) -> Reply:
    return Reply(200, JSON, dumps(model.model_dump(mode="json")))


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(round(at, 3), UTC)


def _seconds(at: datetime | None) -> float | None:
    return at.timestamp() if at else None
