"""Derive the recommendation of a report: one sentence, from its verdict, flags, risk and confidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from groundwire.domain import Label
from groundwire.report import Report

_MAX_GROUNDS = 2

_FLAG_GROUNDS: Mapping[str, str] = {
    "quotes_all_rejected": "none of its quotations is in the sources",
    "inconsistent_with_history": "it contradicts an earlier answer",
    "evidence_schema_violation": "its JSON does not have the required form",
    "context_truncated": "the model did not read all of its context",
    "unknown_citation": "it cites a source that does not exist",
    "budget_gap": "the evidence does not carry all of its claims",
    "answer_truncated": "it breaks off or was not checked to its end",
    "verifier_degraded": "not every check could be made",
    "low_confidence": "confidence in it is low",
}
"""The reason given for each flag, most serious first. Flags of single claims are absent: their labels give the reason.
"""


def recommend(report: Report) -> str:
    """Return one sentence that recommends how to use an answer, and why.

    An answer can be used only if all of its checked claims are supported and at least as many as the unchecked ones, it
    has no flag, its risk is low and its confidence is not. It must not be used as it is if a source contradicts it, no
    checked claim is supported, all of its quotations were rejected or its risk is critical. At most two reasons are
    given.
    """
    is_unusable = _is_unusable(report)
    if report.verdict == "not_applicable" and not report.flags and not is_unusable:
        return "Nothing in this answer can be checked against sources."
    if report.verdict == "not_checked" and not is_unusable:
        return "This answer was not checked: verify it before you use it."
    grounds = " and ".join(_grounds(report)[:_MAX_GROUNDS])
    if is_unusable:
        return f"Do not use this answer as it is: {grounds}."
    if grounds:
        return f"Check this answer before you use it: {grounds}."
    checked = _count(report, "supported")
    every = "the only checked claim is" if checked == 1 else f"all {checked} checked claims are"
    unchecked = _unchecked(report)
    rest = f"; {_claims(unchecked)} could not be checked" if unchecked else ""
    return f"This answer can be used: {every} supported by the sources{rest}."


def _is_unusable(report: Report) -> bool:
    is_critical = report.risk is not None and report.risk.level == "critical"
    flags = {"contradicted_claims", "quotes_all_rejected"}
    return is_critical or report.verdict == "ungrounded" or not flags.isdisjoint(report.flags)


def _grounds(report: Report) -> list[str]:
    """Return the reasons not to use an answer unchecked, most serious first."""
    found = [*_claim_grounds(report)]
    found += [ground for flag, ground in _FLAG_GROUNDS.items() if flag in report.flags]
    if report.confidence and report.confidence.level in ("low", "very_low") and "low_confidence" not in report.flags:
        found.append(_FLAG_GROUNDS["low_confidence"])
    if not found and report.risk and report.risk.level != "low":
        found.append(f"its risk is {report.risk.level}")
    if not found and report.flags:
        found.append("it has been flagged")
    return found


def _claim_grounds(report: Report) -> Iterator[str]:
    contradicted, unsupported = _count(report, "contradicted"), _count(report, "unsupported")
    if contradicted:
        yield f"the sources contradict {_claims(contradicted)}"
    if unsupported:
        yield f"no source supports {_claims(unsupported)}"
    if (unchecked := _unchecked(report)) > _count(report, "supported"):
        yield f"{_claims(unchecked)} could not be checked"


def _count(report: Report, label: Label) -> int:
    return sum(judgement.verdict.label == label for choice in report.choices for judgement in choice.judgements)


def _unchecked(report: Report) -> int:
    """Return the number of claims that assert something but were not checked."""
    return sum(
        judgement.verdict.label == "not_checked" and judgement.claim.skip_reason is None
        for choice in report.choices
        for judgement in choice.judgements
    )


def _claims(count: int) -> str:
    return "1 claim" if count == 1 else f"{count} claims"
