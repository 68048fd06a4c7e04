"""Log events about reports. They hold counts, lengths and hashes, never text of a request or an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import structlog

from groundwire.policy import QuotePolicy
from groundwire.report import Report, Violation
from groundwire.telemetry import short_hash

log = structlog.get_logger("groundwire.grounding")


def log_report(report: Report, model: str | None) -> None:
    """Log the result of a report."""
    log.info(
        "grounding.report",
        grounding_id=report.id,
        model=model,
        status=report.status,
        verdict=report.verdict,
        score=report.score,
        flags=list(report.flags),
        total_ms=round(dict(report.timing_ms).get("total", 0.0), 2),
    )


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


def log_timeouts(report: Report) -> None:
    """Log how many claims had numbers that were not checked in time or within the steps allowed, if any had."""
    causes = [
        verdict.method
        for choice in report.choices
        for judgement in choice.judgements
        for verdict in judgement.verdicts
        if verdict.verifier == "numeric" and verdict.method in ("timeout", "work_limit")
    ]
    if causes:
        log.warning("grounding.numbers_not_checked", grounding_id=report.id, **Counter(causes))


def log_rejections(report: Report, policy: QuotePolicy) -> None:
    """Log the numbers of rejected quotations, if any, and the lengths and digests of claims and sources."""
    counts = report.quotes
    if counts is None or not counts.rejected:
        return
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
