"""Render a report as the JSON member `grounding`: the same in bodies, streams, stored reports and the library."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from groundwire.domain import Budget, Choice, Citation, ConfidenceParts, Judgement, Message, Probability, Source
from groundwire.report import ChoiceReport, Confidence, Correction, Report, SelfConsistency, Violation

_TOOL_CALL = re.compile(r"/tool_calls/(\d+)/function/arguments")

VERSION = 1


def render(report: Report, units: Utf16 | None = None) -> dict[str, Any]:
    """Return the report as JSON values; offsets are in code points, or in UTF-16 units if `units` is given.

    A report without verdicts yet has only the members up to `warnings`.
    """
    wire: dict[str, Any] = {
        "id": report.id,
        "version": VERSION,
        "status": report.status,
        "verdict": report.verdict,
        "score": _round(report.score),
        "offset_unit": "utf16" if units else "codepoint",
        "flags": list(report.flags),
        "warnings": list(report.warnings),
    }
    if report.status == "pending" or (report.status == "deferred" and not report.degraded):
        return wire  # nothing is verified yet
    if report.coverage:
        wire["coverage"] = {
            "claims_total": report.coverage.claims_total,
            "claims_checked": report.coverage.claims_checked,
            "claims_skipped": report.coverage.claims_skipped,
            "answer_examined": _round(report.coverage.answer_examined),
            "context_examined": _round(report.coverage.context_examined),
        }
    if report.confidence:
        wire["confidence"] = _confidence(report.confidence)
    if report.risk:
        wire["risk"] = {
            "score": _round(report.risk.score),
            "level": report.risk.level,
            "factors": list(report.risk.factors),
            "recommendation": report.risk.recommendation,
        }
    if report.quality is not None:
        wire["quality"] = _round(report.quality)
    wire["sources"] = [
        {
            "id": source.id,
            **({} if source.label is None else {"label": source.label}),
            "kind": source.kind,
            **({} if source.message_index is None else {"message_index": source.message_index}),
            **({} if not source.part_index else {"part_index": source.part_index}),
            **({} if source.title is None else {"title": source.title}),
            **({} if source.url is None else {"url": source.url}),
            "chars": len(source.text),
            "sha256": source.sha256,
        }
        for source in report.sources
    ]
    if report.prompt:
        wire["prompt"] = {
            "reported_tokens": report.prompt.reported,
            "at_least_tokens": report.prompt.at_least,
            "truncated": report.prompt.is_truncated,
        }
    wire["choices"] = [_choice(choice, units) for choice in report.choices]
    if report.consistency:
        contradictions = [asdict(each) | {"at": round(each.at, 3)} for each in report.consistency.contradictions]
        wire["consistency"] = {"score": _round(report.consistency.score), "contradictions": contradictions}
    if report.quotes:
        wire["quotes"] = {
            "extracted": report.quotes.extracted,
            "validated": report.quotes.validated,
            "rejected": report.quotes.rejected,
            "rejected_by_field": dict(report.quotes.rejected_by_field),
        }
    if report.violations is not None:
        wire["schema"] = {"violations": _violations(report.violations)}
    if report.numeric:
        wire["numeric"] = {
            "total_claims": report.numeric.total_claims,
            "verified_claims": report.numeric.verified_claims,
            "unverified_claims": report.numeric.unverified_claims,
            "not_checked": report.numeric.not_checked,
            "confidence_adjustment": report.numeric.confidence_adjustment,
            "flagged": [
                {"choice": choice, "id": claim, **asdict(number)} for choice, claim, number in report.numeric.flagged
            ],
        }
    wire["cache"] = {
        "hits": report.cache.hits,
        "misses": report.cache.misses,
        "oldest_s": _round(report.cache.oldest_s),
    }
    if report.correction:
        wire["correction"] = _correction(report.correction)
    if report.self_consistency:
        wire["self_consistency"] = _self_consistency(report.self_consistency)
    if report.stages:
        wire["stages"] = [asdict(stage) | {"ms": round(stage.ms, 2)} for stage in report.stages]
    wire["timing_ms"] = {name: round(value, 2) for name, value in report.timing_ms}
    wire["degraded"] = [{"verifier": verifier, "reason": reason} for verifier, reason in report.degraded]
    if report.attempts:
        wire["attempts"] = [asdict(attempt) for attempt in report.attempts]
    wire["config"] = report.config
    return wire


class Utf16:
    """Convert offsets from code points to UTF-16 units, given the texts that they refer to."""

    def __init__(self, choices: Sequence[Choice], messages: Sequence[Message], sources: Sequence[Source]) -> None:
        self._choices = {choice.index: choice for choice in choices}
        self._parts = {(m.index, at): part.text for m in messages for at, part in enumerate(m.parts)}
        self._sources = {source.id: source for source in sources}
        self._wide = cache(_wide)

    def in_answer(self, choice: int, pointer: str | None, offset: int) -> int:
        """Convert an offset in the text of a choice, or in the arguments of a tool call if `pointer` refers to one."""
        found = self._choices[choice]
        call = _TOOL_CALL.match(pointer or "")
        return self._widened(found.arguments[int(call[1])] if call else found.text, offset)

    def in_source(self, id_: str, offset: int) -> int:
        """Convert an offset in the original text that a source was cut from."""
        source = self._sources[id_]
        if source.message_index is None:
            return self._widened(source.text, offset)
        return self._widened(self._parts[source.message_index, source.part_index or 0], offset)

    def _widened(self, text: str, offset: int) -> int:
        return offset + bisect_left(self._wide(text), offset)


def _wide(text: str) -> list[int]:
    """Return the positions of characters that take two UTF-16 units."""
    return [] if text.isascii() else [at for at, character in enumerate(text) if ord(character) > 0xFFFF]


def summary(wire: dict[str, Any]) -> dict[str, Any]:
    """Return a rendered report without its claims."""
    choices = [{key: value for key, value in choice.items() if key != "claims"} for choice in wire.get("choices", ())]
    return {**wire, "choices": choices} if choices else wire


def _choice(choice: ChoiceReport, units: Utf16 | None) -> dict[str, Any]:
    return {
        "index": choice.index,
        "verdict": choice.verdict,
        "score": _round(choice.score),
        "claims": [_claim(judgement, choice.index, units) for judgement in choice.judgements],
    }


def _claim(judgement: Judgement, choice: int, units: Utf16 | None) -> dict[str, Any]:
    claim, verdict = judgement.claim, judgement.verdict
    start, end = claim.start, claim.end
    if units:
        start, end = (units.in_answer(choice, claim.pointer, offset) for offset in (start, end))
    return {
        "id": claim.id,
        "text": claim.text,
        "start": start,
        "end": end,
        **({} if claim.pointer is None else {"pointer": claim.pointer}),
        "kind": claim.kind,
        "label": verdict.label,
        "score": _round(verdict.score) if verdict.label != "not_checked" else None,
        "confidence": _round(judgement.confidence) if verdict.label != "not_checked" else None,
        **({"confidence_parts": _parts(judgement.parts)} if judgement.parts else {}),
        "stated_confidence": _round(claim.stated_confidence),
        "verifier": verdict.verifier or None,
        "method": verdict.method,
        "reason": verdict.reason,
        **({} if claim.skip_reason is None else {"skip_reason": claim.skip_reason}),
        **({"flags": flags} if (flags := _flags(judgement)) else {}),
        "citations": [_citation(citation, units) for citation in verdict.citations],
        **({} if judgement.budget is None else {"budget": render_budget(judgement.budget)}),
    }


def _flags(judgement: Judgement) -> list[str]:
    """Return the flags that the verdicts on a claim raise in addition to its label."""
    return list(dict.fromkeys(flag for verdict in judgement.verdicts for flag in verdict.flags))


def render_claim(judgement: Judgement) -> dict[str, Any]:
    """Render one claim as in a report, with offsets in code points."""
    return _claim(judgement, 0, None)


def render_budget(budget: Budget) -> dict[str, Any]:
    """Render the budget of a claim. Unknown values are null; `missing` is the cause when the status is unavailable."""
    return {
        "p0": _round(budget.p0.value if budget.p0 else None),
        "p1": _round(budget.p1.value if budget.p1 else None),
        "required_bits": _round(budget.required_bits),
        "observed_bits": _round(budget.observed_bits),
        "budget_gap": _round(budget.budget_gap),
        "status": budget.status,
        "target": budget.target,
        "resolution": budget.resolution,
        **_observed("p1", budget.p1),
        **_observed("p0", budget.p0),
        **({"decorative": list(budget.decorative)} if budget.decorative else {}),
        **({} if budget.missing is None else {"missing": budget.missing.cause}),
    }


def _observed(name: str, probability: Probability | None) -> dict[str, Any]:
    """Render the method of a probability, and its interval unless that is a single value."""
    if probability is None:
        return {}
    interval = {f"{name}_interval": [_round(probability.lower), _round(probability.upper)]}
    return {**(interval if probability.lower < probability.upper else {}), "method": probability.method}


def _citation(citation: Citation, units: Utf16 | None) -> dict[str, Any]:
    start, end = citation.start, citation.end
    if units:
        start, end = (units.in_source(citation.source, offset) for offset in (start, end))
    return {
        "source": citation.source,
        "start": start,
        "end": end,
        "text": citation.text,
        "score": _round(citation.score),
        "match": citation.match,
    }


def _correction(found: Correction) -> dict[str, Any]:
    if found.status == "pending":
        return {"status": found.status}
    return {
        "status": found.status,
        "answer": found.answer,
        **({} if found.violations is None else {"violations": _violations(found.violations)}),
        "usage": {"prompt_tokens": found.prompt_tokens, "completion_tokens": found.completion_tokens},
        **({"reason": found.reason} if found.reason else {}),
    }


def _violations(violations: Sequence[Violation]) -> list[dict[str, Any]]:
    return [
        {
            "field": violation.field,
            **({} if violation.index is None else {"index": violation.index}),
            "expected": violation.expected,
            "found": violation.found,
        }
        for violation in violations
    ]


def _self_consistency(found: SelfConsistency) -> dict[str, Any]:
    asked = {"status": found.status, "samples": found.asked, "temperatures": list(found.temperatures)}
    if found.status == "pending":
        return asked
    return {
        **asked,
        "answered": found.answered,
        "risk": _round(found.risk),
        "claims": [
            {
                "choice": each.choice,
                "id": each.claim,
                "votes": list(each.votes),
                "variance": _round(each.variance),
            }
            for each in found.claims
        ],
        "usage": {
            "calls": found.calls,
            "prompt_tokens": found.prompt_tokens,
            "completion_tokens": found.completion_tokens,
        },
        **({"reasons": list(found.reasons)} if found.reasons else {}),
    }


def _confidence(confidence: Confidence) -> dict[str, Any]:
    return {
        "score": _round(confidence.score),
        "level": confidence.level,
        "recommendation": confidence.recommendation,
        "parts": _parts(confidence),
    }


def _parts(parts: Confidence | ConfidenceParts) -> dict[str, float | None]:
    return {name: _round(getattr(parts, name)) for name in ("retrieval", "source", "extraction", "consistency")}


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
