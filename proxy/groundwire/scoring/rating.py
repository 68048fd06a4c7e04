"""Rate a report: its risk, its quality, the warnings for missed thresholds, and its recommendation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from groundwire.domain import Label, Severity
from groundwire.policy import Thresholds
from groundwire.report import Report, Risk

_RISK_WEIGHTS = {"grounding": 0.9, "consistency": 0.6, "self_consistency": 0.6, "confidence": 0.4, "prompt": 0.25}
"""The maximum contribution of each part to the risk; only grounding can make it critical alone."""

_LEVELS: tuple[tuple[float, Severity], ...] = ((0.75, "critical"), (0.5, "high"), (0.3, "medium"), (0.0, "low"))
_MIN_LISTED = 0.05  # smaller parts are not listed as factors


_Part = tuple[float, str]
"""The contribution of one part to the risk (0–1), and its reason in words."""


def assess_risk(report: Report) -> Risk | None:
    """Return the risk of an answer (0–1), or None if its report has no figure to compute it from.

    The parts are grounding, consistency, self-consistency, confidence, and the share of the prompt that the model read.
    They are treated as independent causes of harm: risk = 1 − ∏(1 − part). No part compensates for another, and the
    risk never falls when one of them rises.
    """
    parts = list(_parts(report))
    if not parts:
        return None
    score = 1.0 - math.prod(1.0 - amount for amount, _ in parts)
    level = next(level for least, level in _LEVELS if score >= least)
    heaviest = sorted(parts, key=lambda part: -part[0])
    return Risk(score, level, tuple(reason for amount, reason in heaviest if amount >= _MIN_LISTED))


def _parts(report: Report) -> Iterator[_Part]:
    if part := _grounding([judgement.verdict.label for choice in report.choices for judgement in choice.judgements]):
        yield part
    history, samples = report.consistency, report.self_consistency
    if history and history.score is not None:
        count = len(history.contradictions)
        reason = (
            f"It contradicts earlier answers in {count} places." if count > 1 else "It contradicts an earlier answer."
        )
        yield _RISK_WEIGHTS["consistency"] * (1.0 - history.score), reason
    if samples and samples.risk is not None:
        reason = f"Further answers to the same request differ from it (variance {samples.risk:.2f})."
        yield _RISK_WEIGHTS["self_consistency"] * samples.risk, reason
    if report.prompt and report.prompt.is_truncated and report.prompt.reported is not None:
        read = report.prompt.reported / report.prompt.at_least
        reason = f"The model read at most {read:.0%} of its prompt."
        yield _RISK_WEIGHTS["prompt"] * (1.0 - read), reason
    if report.confidence:
        reason = f"Confidence in it is {report.confidence.level.replace('_', ' ')} ({report.confidence.score:.2f})."
        yield _RISK_WEIGHTS["confidence"] * (1.0 - report.confidence.score), reason


def _grounding(labels: Sequence[Label]) -> _Part | None:
    """Return the part for checked claims that are not supported; contradicted ones have double weight."""
    checked = sum(label != "not_checked" for label in labels)
    if not checked:
        return None
    unsupported, contradicted = labels.count("unsupported"), labels.count("contradicted")
    counts = ((unsupported, "not supported"), (contradicted, "contradicted"))
    counted = " and ".join(f"{count} {'is' if count == 1 else 'are'} {what}" for count, what in counts if count)
    reason = f"Of {checked} checked claim{'s' if checked > 1 else ''}, {counted or 'none is in doubt'}."
    return (_RISK_WEIGHTS["grounding"] * min(1.0, (unsupported + 2 * contradicted) / checked), reason)


_QUALITY_WEIGHTS = {"grounding": 0.5, "consistency": 0.2, "confidence": 0.3}


def quality(report: Report) -> float | None:
    """Return the quality of an answer (0–1): the weighted mean of its known grounding, consistency and confidence.

    None if no claim was checked, whatever else is known.
    """
    if report.score is None:
        return None
    known = [(_QUALITY_WEIGHTS[name], value) for name, value in _measured(report)]
    return sum(weight * value for weight, value in known) / sum(weight for weight, _ in known)


def missed(report: Report, thresholds: Thresholds) -> tuple[str, ...]:
    """Return a warning for each figure of the report that is worse than its threshold."""
    limits = {name: getattr(thresholds, name) for name in _QUALITY_WEIGHTS}
    warnings = [
        f"{name} is {value:.2f}, below {limits[name]:g}" for name, value in _measured(report) if value < limits[name]
    ]
    if report.risk and is_high_risk(report, thresholds):
        warnings.append(f"risk is {report.risk.score:.2f}, above {thresholds.risk:g}")
    return tuple(warnings)


def is_high_risk(report: Report, thresholds: Thresholds) -> bool:
    """Return whether the risk of an answer is above its threshold."""
    return report.risk is not None and report.risk.score > thresholds.risk


def _measured(report: Report) -> Iterator[tuple[str, float]]:
    """Yield the name and value of each known figure of a report."""
    if report.score is not None:
        yield "grounding", report.score
    if report.consistency and report.consistency.score is not None:
        yield "consistency", report.consistency.score
    if report.confidence:
        yield "confidence", report.confidence.score


_MAX_GROUNDS = 2

_FLAG_GROUNDS: Mapping[str, str] = {
    "quotes_all_rejected": "none of its quotations is in the sources",
    "inconsistent_with_history": "it contradicts an earlier answer",
    "evidence_schema_violation": "its JSON does not have the required form",
    "context_truncated": "the model did not read all of its context",
    "unknown_citation": "it cites a source that does not exist",
    "budget_gap": "the evidence is too weak for some of its claims",
    "answer_truncated": "it was cut off or not checked completely",
    "verifier_degraded": "some checks could not be made",
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
        judgement.verdict.label == "not_checked" and not judgement.is_skipped
        for choice in report.choices
        for judgement in choice.judgements
    )


def _claims(count: int) -> str:
    return "1 claim" if count == 1 else f"{count} claims"
