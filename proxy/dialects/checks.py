"""The wire shapes of the endpoints that check what they are given: claims, facts, traces, answers with sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, FailFast, Field, JsonValue, ValidationError

from proxy.dialects.chat import CHAT
from proxy.dialects.jsonbytes import dumps
from proxy.dialects.options import (
    MAX_VALUES,
    Evidence,
    Options,
    explicit_sources,
    has_over,
    in_json_words,
    path_of,
)
from proxy.dialects.report import render_budget, render_claim
from proxy.dialects.request import Request, read_object, read_request
from proxy.errors import BadRequest
from proxy.types import Claim, Source, Violation
from proxy.verification.quote import QuoteResult
from proxy.verification.trace import Audit, AuditedStep

M = TypeVar("M", bound="Check")

_LONGEST = 20_000  # characters of one claim, fact or step; what is longer is an answer, and to be verified as one

Assertion = Annotated[str, Field(min_length=1, max_length=_LONGEST)]
Confidence = Annotated[float, Field(ge=0.0, le=1.0, strict=False)]
EvidenceList = Annotated[tuple[Evidence, ...], FailFast(), Field(strict=False)]


class Check(BaseModel):
    """What is checked; an unknown key or a value of the wrong type is refused by name."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ClaimCheck(Check):
    """One claim and its evidence. `confidence` is the belief that the evidence has to carry it to."""

    claim: Assertion
    evidence: EvidenceList
    confidence: Confidence | None = None
    model: str = ""


class FactIn(Check):
    """A fact with its evidence: its own, or those of the shared evidence that `cites` names, or else all of that."""

    text: Assertion
    confidence: Confidence | None = None
    evidence: EvidenceList = ()
    cites: Annotated[tuple[str, ...], FailFast(), Field(strict=False)] = ()


class MemoryCheck(Check):
    """Facts for the memory of a subject; without one they are decided on and not kept."""

    facts: Annotated[tuple[FactIn, ...], FailFast(), Field(strict=False, min_length=1, max_length=100)]
    subject: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    evidence: EvidenceList = ()
    model: str = ""


class TraceCheck(Check):
    """Steps of reasoning, what they start from, and the answer that they should lead to."""

    steps: Annotated[tuple[Assertion, ...], FailFast(), Field(strict=False, min_length=1, max_length=200)]
    context: EvidenceList = ()
    answer: Assertion | None = None
    question: Annotated[str, Field(max_length=_LONGEST)] = ""
    model: str = ""


class TextCheck(Check):
    """A text whose claims are looked for."""

    text: str


class EvidenceCheck(Check):
    """A JSON answer, its fields that hold quotations, and the sources that these are looked for in."""

    answer: str | dict[str, JsonValue]
    fields: Annotated[tuple[str, ...], FailFast(), Field(strict=False, min_length=1)]
    sources: EvidenceList


class AnswerCheck(Check):
    """An answer and what it was given; what else `grounding` takes stands beside these keys."""

    answer: str
    question: str = ""
    messages: Annotated[tuple[dict[str, JsonValue], ...], FailFast(), Field(strict=False)] = ()
    documents: JsonValue = None
    model: str = ""


def read_check(shape: type[M], raw: bytes) -> M:
    """A body of this shape. Raises BadRequest, naming the key that is wrong."""
    return _validated(shape, _read(raw))


def _read(raw: bytes) -> dict[str, Any]:
    body = read_object(raw)
    if has_over(body, MAX_VALUES):
        raise BadRequest(f"The body of your request must not hold over {MAX_VALUES:,} values.")
    return body


def read_answer_check(raw: bytes, headers: Mapping[str, str], tenant: str = "") -> tuple[AnswerCheck, Request]:
    """An answer to be verified, and the request that would have led to it. Raises BadRequest."""
    body = _read(raw)
    own = {key: value for key, value in body.items() if key in AnswerCheck.model_fields}
    check = _validated(AnswerCheck, own)
    asked = {key: value for key, value in body.items() if key not in own}
    request: dict[str, Any] = {"messages": list(check.messages), "grounding": asked}
    request |= {"model": check.model} if check.model else {}
    request |= {} if check.documents is None else {"documents": check.documents}
    read = replace(read_request(CHAT, dumps(request), headers, tenant), question=check.question)
    if read.options.samples is not None and not (check.model and check.messages):
        raise BadRequest("'samples' needs 'model' and 'messages', as that request is sent again", param="samples")
    if read.options.corrective_retry and not (check.model and check.messages):
        message = "'corrective_retry' needs 'model' and 'messages', as that request is sent again"
        raise BadRequest(message, param="corrective_retry")
    return check, read


def sources_of(evidence: Sequence[Evidence]) -> tuple[Source, ...]:
    """Return evidence as sources; those without an id are named by their place."""
    return explicit_sources(Options(sources=tuple(evidence)), None)


def render_claims(claims: Sequence[Claim]) -> dict[str, Any]:
    """Claims without verdicts."""
    return {"offset_unit": "codepoint", "claims": [_found(claim) for claim in claims]}


def _found(claim: Claim) -> dict[str, Any]:
    optional = {"pointer": claim.pointer, "skip_reason": claim.skip_reason}
    return {
        "id": claim.id,
        "text": claim.text,
        "start": claim.start,
        "end": claim.end,
        "kind": claim.kind,
        "cited": list(claim.cited),
        "stated_confidence": round(claim.stated_confidence, 4),
        **{key: value for key, value in optional.items() if value is not None},
    }


def render_audit(audit: Audit) -> dict[str, Any]:
    """An audited trace."""
    counts = Counter(step.status for step in audit.steps)
    post_hoc = audit.post_hoc
    return {
        "sound": audit.is_sound,
        "counts": {status: counts[status] for status in ("ENTAILED", "CONTRADICTED", "NOT_IN_CONTEXT", "UNVERIFIABLE")},
        "steps": [_step(step) for step in audit.steps],
        **(
            {}
            if post_hoc is None
            else {"post_hoc": {"status": post_hoc.status, "derived": post_hoc.derived, "reason": post_hoc.reason}}
        ),
    }


def _step(step: AuditedStep) -> dict[str, Any]:
    claim, verdict = step.judgement.claim, step.judgement.verdict
    return {
        "id": claim.id,
        "text": claim.text,
        "status": step.status,
        "reason": verdict.reason,
        "citations": render_claim(step.judgement)["citations"],
        **({} if step.budget is None else {"budget": render_budget(step.budget)}),
    }


def render_quotes(result: QuoteResult) -> dict[str, Any]:
    """What became of the quotations of a JSON answer: those accepted by field, and counts."""
    counts = result.counts
    return {
        "accepted": {name: list(quotes) for name, quotes in result.accepted.items()},
        "quotes": {
            "extracted": counts.extracted,
            "validated": counts.validated,
            "rejected": counts.rejected,
            "rejected_by_field": dict(counts.rejected_by_field),
        },
        "schema": {"violations": []},
    }


def render_violations(violations: Sequence[Violation]) -> dict[str, Any]:
    """Return the wire form of the violations of a JSON answer whose evidence has another shape than was declared."""
    listed = [
        {
            "field": each.field,
            **({} if each.index is None else {"index": each.index}),
            "expected": each.expected,
            "found": each.found,
        }
        for each in violations
    ]
    return {"accepted": {}, "schema": {"violations": listed}}


def _validated(shape: type[M], body: Mapping[str, Any]) -> M:
    if (unknown := next((key for key in body if key not in shape.model_fields), None)) is not None:
        raise _unknown(unknown)
    try:
        return shape.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        path = path_of(first)
        if first["type"] == "extra_forbidden":
            raise _unknown(path) from error
        raise BadRequest(f"'{path}': {in_json_words(first['msg'])}", param=path) from error


def _unknown(path: str) -> BadRequest:
    operator = "there is an unknown key"  # its name may be anything
    return BadRequest(f"'{path}' is no key of this endpoint", param=path, operator=operator)
