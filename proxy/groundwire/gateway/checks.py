"""The checks of Groundwire's endpoints and of the MCP server: JSON values in, JSON values out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from groundwire.dialects.checks import (
    AnswerCheck,
    Check,
    ClaimCheck,
    EvidenceCheck,
    FactIn,
    MemoryCheck,
    TextCheck,
    TraceCheck,
    read_check,
    render_claims,
    render_violations,
    sources_of,
)
from groundwire.dialects.dialect import Answer
from groundwire.dialects.jsonbytes import dumps, loads_object
from groundwire.dialects.openai import CHAT
from groundwire.dialects.request import Request
from groundwire.domain import Source
from groundwire.errors import BadRequest, Overload, TryLater
from groundwire.evidence.index import Context
from groundwire.features.information_budget.estimates import assertion, targets_of
from groundwire.gateway.claims import LONGEST_S, Answered, Auditor, ClaimChecker, Memory, Offered
from groundwire.gateway.completion import Completions
from groundwire.gateway.deferred import CheckJob, deferred, is_cut_short, longest_wait
from groundwire.gateway.forward import Caller
from groundwire.gateway.reports import log_violations
from groundwire.gateway.service import GroundingService
from groundwire.gateway.session import GroundingSession
from groundwire.library import find_claims
from groundwire.pipeline import MAX_SEARCH, MAX_VIOLATIONS
from groundwire.report import render_claim
from groundwire.verifiers.quotes import check_quotes
from groundwire.verifiers.schema import read_evidence
from groundwire.wire import Call

C = TypeVar("C", bound=Check)

_DEFER_S = 0.1  # for keeping a job, beyond the time for the facts themselves
_OFF = "{} off. To switch it on, set information_budget.enabled and information_budget.{}.enabled."


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

    async def claim(self, check: ClaimCheck, caller: Caller) -> Mapping[str, Any]:
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
            session.conclude(_whole(check))
            annotation = await session.annotation(None)
        except BaseException:
            session.abandon()
            raise
        return annotation.shown or annotation.whole

    async def claims(self, check: TextCheck, _: Caller) -> Mapping[str, Any]:
        """The claims of a text."""
        return render_claims(await self.checker.workers.insist(find_claims, check.text, self.checker.policy))

    async def evidence(self, check: EvidenceCheck, _: Caller) -> Mapping[str, Any]:
        """The quotations of a JSON answer, or where it breaks the shape that was declared for them."""
        return await self.checker.workers.insist(self._evidence, check)

    def _evidence(self, check: EvidenceCheck) -> Mapping[str, Any]:
        policy = self.checker.policy.quotes
        try:
            answer = loads_object(check.answer.encode()) if isinstance(check.answer, str) else check.answer
        except ValueError as error:
            raise BadRequest("'answer': it is no JSON", param="answer") from error
        quotes, violations = read_evidence(answer, check.fields)
        if violations:
            text = check.answer if isinstance(check.answer, str) else dumps(check.answer).decode()
            log_violations(None, violations, [text])
            return render_violations(violations[:MAX_VIOLATIONS])
        found = check_quotes(quotes, Context(sources_of(check.sources)), policy, max_search=MAX_SEARCH)
        if found.unchecked:
            raise BadRequest("'answer': it has too many quotations to look up in so much text", param="answer")
        return found.to_dict()

    async def remember(self, check: MemoryCheck, caller: Caller, tenant: str = "") -> Mapping[str, Any]:
        """Decide which facts pass the gate, and store them. Raises BadRequest if the gate is off."""
        until = asyncio.get_running_loop().time() + LONGEST_S + _DEFER_S
        answered = await self._memory.admit(_offered(check), check.subject, caller, tenant)
        fact_ids = tuple(each.fact.id if each.fact else None for each in answered)
        job = CheckJob("memory", check.model_dump(mode="json"), tenant, fact_ids, self._service.telemetry.origin())
        found, judgements = _decided(check.subject, answered), [each.judgement for each in answered]
        try:
            async with asyncio.timeout_at(until):
                return await deferred(found, judgements, job, self._service.queue)
        except TimeoutError:
            return found

    async def facts_about(self, subject: str, tenant: str = "") -> Mapping[str, Any]:
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

    async def trace(self, check: TraceCheck, caller: Caller, tenant: str = "") -> Mapping[str, Any]:
        """Audit every step, and check whether the answer follows. Raises BadRequest if the audit is off."""
        if not self.audits:
            raise BadRequest(_OFF.format("Trace auditing is", "trace_auditing"))
        return await self.audit(check, caller, tenant)

    async def audit(self, check: TraceCheck, caller: Caller, tenant: str = "") -> Mapping[str, Any]:
        """Audit a trace, whether or not that is enabled over HTTP."""
        audit = await self.auditor.audit(check, caller)
        job = CheckJob("trace", check.model_dump(mode="json"), tenant, origin=self._service.telemetry.origin())
        judgements = [step.judgement for step in audit.steps]
        return await deferred(audit.to_dict(), judgements, job, self._service.queue)

    async def finish(self, id_: str, payload: bytes, seconds: float) -> bytes:
        """Do a check that was left to a job, in `seconds` at most, and return its result as JSON.

        Raises TryLater, with the result as far as it came, when it was cut short again.
        """
        job = CheckJob.read(payload)
        self._service.telemetry.link_origin(job.origin)
        if job.kind == "trace":
            audit = await replace(self.auditor, timeout=seconds).audit(_again(TraceCheck, job), _caller(job))
            found, judgements = audit.to_dict(), [step.judgement for step in audit.steps]
        else:
            check = _again(MemoryCheck, job)
            answered = await self._memory.prove(_offered(check), _caller(job), seconds)
            judgements = [each.judgement for each in answered]
            if check.subject is not None and not is_cut_short(judgements):
                answered = await self._memory.revise(check.subject, job.fact_ids, answered, job.tenant)
            found = _decided(check.subject, answered)
        if is_cut_short(judgements):
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


def _whole(check: AnswerCheck) -> Answer:
    """Return the answer of a check as a model server would have given it."""
    message = {"role": "assistant", "content": check.answer}
    return Answer.whole(CHAT, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


def _offered(check: MemoryCheck) -> list[Offered]:
    shared = {source.id: source for source in sources_of(check.sources)}
    return [_one_offered(fact, shared) for fact in check.facts]


def _one_offered(fact: FactIn, shared: Mapping[str, Source]) -> Offered:
    own = sources_of(fact.sources)
    unknown = tuple(id_ for id_ in fact.cites if id_ not in shared)
    cited: Sequence[Source] = [shared[id_] for id_ in fact.cites if id_ in shared]
    all_shared = () if own or fact.cites else tuple(shared.values())
    return Offered(fact.text, (*own, *cited, *all_shared), fact.confidence, unknown)


def _again(shape: type[C], job: CheckJob) -> C:
    return read_check(shape, dumps(job.check))


def _caller(job: CheckJob) -> Caller:
    return Caller(str(job.check.get("model", "")))


def _decided(subject: str | None, answered: Sequence[Answered]) -> dict[str, Any]:
    accepted = sum(each.admission.rejected is None for each in answered)
    return {
        "subject": subject,
        "accepted": accepted,
        "rejected": len(answered) - accepted,
        "facts": [_fact(each, has_subject=subject is not None) for each in answered],
    }


def _fact(answered: Answered, *, has_subject: bool) -> Mapping[str, Any]:
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
