"""Render a report: the part shown to the client, the stored part, and the summary headers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from groundwire.dialects.jsonbytes import dumps
from groundwire.dialects.report import Utf16, render, summary
from groundwire.dialects.request import Request
from groundwire.domain import Choice
from groundwire.report import Report
from groundwire.wire import Headers


@dataclass(frozen=True, slots=True)
class Annotation:
    """A report in its wire form, as JSON: `shown` to the client (None when it asked for none) and `kept` whole."""

    report: Report
    shown: bytes | None
    kept: bytes

    @property
    def headers(self) -> Headers:
        """The `x-grounding-` headers of a response."""
        score = "" if self.report.score is None else f"{self.report.score:.4f}"
        return (
            (b"x-grounding-id", self.report.id.encode()),
            (b"x-grounding-status", self.report.status.encode()),
            (b"x-grounding-verdict", self.report.verdict.encode()),
            (b"x-grounding-score", score.encode()),
            (b"x-grounding-flags", ",".join(self.report.flags).encode()),
        )


def annotate(report: Report, request: Request, choices: Sequence[Choice] = ()) -> Annotation:
    """Render a report as its request asks; offsets are converted if it counts in UTF-16."""
    units = None
    if request.options.offset_unit == "utf16" and report.choices:
        units = Utf16(choices, request.exchange().messages, report.sources)
    wire = render(report, units)
    kept = dumps(wire)
    if request.options.detail == "none":
        return Annotation(report, None, kept)
    return Annotation(report, dumps(summary(wire)) if request.options.detail == "summary" else kept, kept)


def stand_in(
    id_: str, request: Request, config: str, status: Literal["pending", "deferred"], *warnings: str
) -> Annotation:
    """Return the annotation for a report that is not ready: its id, by which it can be fetched later."""
    told = (*request.warnings, *warnings)
    return annotate(Report(id_, status, "not_checked", warnings=told, config=config), request)
