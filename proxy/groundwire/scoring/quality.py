"""Compute the quality score of an answer, and the warnings for missed thresholds."""

from __future__ import annotations

from collections.abc import Iterator

from groundwire.policy import Thresholds
from groundwire.report import Report

_WEIGHTS = {"grounding": 0.5, "consistency": 0.2, "confidence": 0.3}


def quality(report: Report) -> float | None:
    """Return the quality of an answer (0–1): the weighted mean of its known grounding, consistency and confidence.

    None if no claim was checked, whatever else is known.
    """
    if report.score is None:
        return None
    known = [(_WEIGHTS[name], value) for name, value in _measured(report)]
    return sum(weight * value for weight, value in known) / sum(weight for weight, _ in known)


def missed(report: Report, thresholds: Thresholds) -> tuple[str, ...]:
    """Return a warning for each figure of the report that is worse than its threshold."""
    limits = {name: getattr(thresholds, name) for name in _WEIGHTS}
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
