"""The report as the JSON member `grounding`."""

from __future__ import annotations

from typing import Any

from groundwire.report import Report
from groundwire.report import Utf16 as Utf16
from groundwire.report import render_budget as render_budget
from groundwire.report import render_claim as render_claim


def render(report: Report, units: Utf16 | None = None) -> dict[str, Any]:
    """Return the report as JSON values; offsets are in code points, or in UTF-16 units if `units` is given."""
    return dict(report.to_dict(units))


def summary(wire: dict[str, Any]) -> dict[str, Any]:
    """Return a rendered report without its claims."""
    choices = [{key: value for key, value in choice.items() if key != "claims"} for choice in wire.get("choices", ())]
    return {**wire, "choices": choices} if choices else wire
