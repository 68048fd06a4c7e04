"""The checks of Groundwire's endpoints and of the MCP server: JSON values in, JSON values out."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from groundwire.dialects.checks import (
    AnswerCheck,
    ClaimCheck,
    EvidenceCheck,
    MemoryCheck,
    TextCheck,
    TraceCheck,
    read_check,
    render_claims,
    render_violations,
    sources_of,
)
from groundwire.dialects.dialect import Answer
from groundwire.dialects.jsonbytes import dumps, loads, loads_object
from groundwire.dialects.openai import CHAT
from groundwire.dialects.request import Request
from groundwire.domain import Cause, Judgement, restored
from groundwire.errors import BadRequest, Overload, TryLater
from groundwire.evidence.index import Context
from groundwire.features.information_budget import assertion, targets_of
from groundwire.gateway.claims import LONGEST_S, Answered, Auditor, ClaimChecker, Memory, Offered
from groundwire.gateway.completion import Completions
from groundwire.gateway.forward import Caller
from groundwire.gateway.reports import CHECK, CHECK_PREFIX, log_violations, longest_wait
from groundwire.gateway.service import GroundingService
from groundwire.gateway.session import GroundingSession
from groundwire.library import find_claims
from groundwire.pipeline import MAX_SEARCH, MAX_VIOLATIONS
from groundwire.report import render_claim
from groundwire.verifiers.quotes import check_quotes
from groundwire.verifiers.schema import read_evidence
from groundwire.wire import Call

Rendered = Mapping[str, Any]

_DEFER_S = 0.1  # for keeping a job, beyond the time for the facts themselves
_OFF = "{} off. To switch it on, set information_budget.enabled and information_budget.{}.enabled."
_CUT_SHORT: frozenset[Cause] = frozenset({"rate_limited", "unreachable", "overload", "timeout"})


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


@dataclass(frozen=True, slots=True)
class Checks:
    """All checks. `memory` is None if the gate is off; `timeout` is in seconds, for a claim.

    `audits` enables trace audits over HTTP.
    """

    completions: Completions
    checker: ClaimChecker
    auditor: Auditor
    timeout: float
    memory: Memory | None = None
    audits: bool = False

    async def claim(self, check: ClaimCheck, caller: Caller) -> Rendered:
        """Verify one claim and render it as in a report, with its budget."""
        session = self.checker.open("output_verification", caller, self.timeout)
        sources, targets = sources_of(check.sources), targets_of(check.confidence)
        return render_claim(await session.check(assertion(check.claim), sources, targets))

    async def answer(self, check: AnswerCheck, request: Request, caller: Caller, call: Call | None = None) -> bytes:
        """Return the report on an answer, as its request wants to see it.

        It is made, kept and recorded like the report on an answer that passes through. Its request is sampled with the
        headers of `call`. Raises UnknownModel where a model is to be sampled that no upstream serves.
        """
        service, options = self.completions.grounding, request.options
        service.telemetry.about(options.session, options.subject)
        try:
            session = GroundingSession.begin(service, request, "async" if options.mode == "async" else "sync", caller)
        except Overload:
            annotation = service.unread(request)
            return annotation.shown or annotation.whole
        try:
            if call is not None:
                await self.completions.repeat(session, request, call)
            message = {"role": "assistant", "content": check.answer}
            whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
            session.conclude(Answer.whole(CHAT, whole))
            annotation = await session.annotation(None)
        except BaseException:
            session.abandon()
            raise
        return annotation.shown or annotation.whole

    async def claims(self, check: TextCheck, _: Caller) -> Rendered:
        """The claims of a text."""
        return render_claims(await self.checker.workers.insist(find_claims, check.text, self.checker.policy))

    async def evidence(self, check: EvidenceCheck, _: Caller) -> Rendered:
        """The quotations of a JSON answer, or where it breaks the shape that was declared for them."""
        return await self.checker.workers.insist(self._evidence, check)

    def _evidence(self, check: EvidenceCheck) -> Rendered:
        policy = self.checker.policy.quotes
        try:
            answer = loads_object(check.answer.encode()) if isinstance(check.answer, str) else check.answer
        except ValueError as error:
            raise BadRequest("'answer': it is no JSON", param="answer") from error
        quotes, violations = read_evidence(answer, check.evidence_fields)
        if violations:
            text = check.answer if isinstance(check.answer, str) else dumps(check.answer).decode()
            log_violations(None, violations, [text])
            return render_violations(violations[:MAX_VIOLATIONS])
        found = check_quotes(quotes, Context(sources_of(check.sources)), policy, max_search=MAX_SEARCH)
        if found.unchecked:
            raise BadRequest("'answer': it has too many quotations to look up in so much text", param="answer")
        return found.to_dict()

    async def remember(self, check: MemoryCheck, caller: Caller, tenant: str = "") -> Rendered:
        """Decide which facts pass the gate, and store them. Raises BadRequest if the gate is off."""
        until = asyncio.get_running_loop().time() + LONGEST_S + _DEFER_S
        answered = await self._memory.admit(_offered(check), check.subject, caller, tenant)
        fact_ids = tuple(each.fact.id if each.fact else None for each in answered)
        job = CheckJob("memory", check.model_dump(mode="json"), tenant, fact_ids, self._service.telemetry.origin())
        found, judgements = _decided(check.subject, answered), [each.judgement for each in answered]
        try:
            async with asyncio.timeout_at(until):
                return await self._deferred(found, judgements, job)
        except TimeoutError:
            return found

    async def facts_about(self, subject: str, tenant: str = "") -> Rendered:
        """The facts that a tenant keeps about a subject. Raises MemoryUnavailable, and BadRequest without a gate."""
        facts = await self._memory.about(subject, tenant)
        return {
            "subject": subject,
            "facts": [
                {
                    "id": fact.id,
                    "text": fact.text,
                    "confidence": round(fact.confidence, 4),
                    "at": fact.at,
                    "is_source": fact.is_verified,
                }
                for fact in facts
            ],
        }

    async def trace(self, check: TraceCheck, caller: Caller, tenant: str = "") -> Rendered:
        """Audit every step, and check whether the answer follows. Raises BadRequest if the audit is off."""
        if not self.audits:
            raise BadRequest(_OFF.format("Trace auditing is", "trace_auditing"))
        return await self.audit(check, caller, tenant)

    async def audit(self, check: TraceCheck, caller: Caller, tenant: str = "") -> Rendered:
        """Audit a trace, whether or not that is enabled over HTTP."""
        audit = await self.auditor.audit(check, caller)
        job = CheckJob("trace", check.model_dump(mode="json"), tenant, origin=self._service.telemetry.origin())
        judgements = [step.judgement for step in audit.steps]
        return await self._deferred(audit.to_dict(), judgements, job)

    async def _deferred(self, found: Rendered, judgements: Sequence[Judgement], job: CheckJob) -> Rendered:
        """Return the result of a check, with the id of the job that completes it if it was cut short."""
        queue = self._service.queue
        if queue is None or not _is_cut_short(judgements):
            return found
        id_ = CHECK_PREFIX + secrets.token_hex(12)
        payload = dumps({each.name: getattr(job, each.name) for each in fields(job)})  # asdict would copy the check
        if not await queue.defer(CHECK, id_, payload, job.tenant, longest_wait(judgements)):
            return found
        result = {"id": id_, "status": "deferred", **found}
        queue.reports.put(id_, dumps(result), job.tenant)
        return result

    async def finish(self, id_: str, payload: bytes, seconds: float) -> bytes:
        """Do a check that was left to a job, in `seconds` at most, and return its result as JSON.

        Raises TryLater, with the result as far as it came, when it was cut short again.
        """
        job = restored(CheckJob, loads(payload))
        self._service.telemetry.link_origin(job.origin)
        caller, body = Caller(str(job.check.get("model", ""))), dumps(job.check)
        if job.kind == "trace":
            audit = await replace(self.auditor, timeout=seconds).audit(read_check(TraceCheck, body), caller)
            found, judgements = audit.to_dict(), [step.judgement for step in audit.steps]
        else:
            check = read_check(MemoryCheck, body)
            answered = await self._memory.prove(_offered(check), caller, seconds)
            judgements = [each.judgement for each in answered]
            if check.subject is not None and not _is_cut_short(judgements):
                answered = await self._memory.revise(check.subject, job.kept, answered, job.tenant)
            found = _decided(check.subject, answered)
        if _is_cut_short(judgements):
            so_far = dumps({"id": id_, "status": "partial", **found})
            raise TryLater("cut short: no model could be asked", after=longest_wait(judgements), so_far=so_far)
        result = dumps({"id": id_, "status": "complete", **found})
        self._service.reports.put(id_, result, job.tenant)
        return result

    @property
    def _service(self) -> GroundingService:
        return self.completions.grounding

    @property
    def _memory(self) -> Memory:
        if self.memory is None:
            raise BadRequest(_OFF.format("The memory gate is", "memory_gate"))
        return self.memory


def _is_cut_short(judgements: Sequence[Judgement]) -> bool:
    """Return whether a claim was not measured for lack of capacity, time or a model."""
    budgets = (judgement.budget for judgement in judgements)
    return any(each.missing.cause in _CUT_SHORT for each in budgets if each and each.missing)


def _offered(check: MemoryCheck) -> list[Offered]:
    """Return each fact with its own sources and those that it cites, or without either with all of the check."""
    shared, offered = {source.id: source for source in sources_of(check.sources)}, list[Offered]()
    for fact in check.facts:
        evidence = (*sources_of(fact.sources), *(shared[id_] for id_ in fact.cites if id_ in shared))
        if not (fact.sources or fact.cites):
            evidence = tuple(shared.values())
        unknown = tuple(id_ for id_ in fact.cites if id_ not in shared)
        offered.append(Offered(fact.text, evidence, fact.confidence, unknown))
    return offered


def _decided(subject: str | None, answered: Sequence[Answered]) -> dict[str, Any]:
    accepted = sum(each.admission.rejected is None for each in answered)
    return {
        "subject": subject,
        "accepted": accepted,
        "rejected": len(answered) - accepted,
        "facts": [_fact(each, has_subject=subject is not None) for each in answered],
    }


def _fact(answered: Answered, *, has_subject: bool) -> Rendered:
    admission = answered.admission
    return {
        "id": answered.fact.id if answered.fact else None,
        "text": answered.judgement.claim.text,
        "status": "rejected" if admission.rejected else "accepted",
        **({"reason": admission.rejected} if admission.rejected else {}),
        "grounding": admission.grounding,
        "confidence": None if admission.confidence is None else round(admission.confidence, 4),
        "stated_confidence": round(answered.stated, 4),
        "stored": has_subject and answered.fact is not None,
        "claim": render_claim(answered.judgement),
    }
