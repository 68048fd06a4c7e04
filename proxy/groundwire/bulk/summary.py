"""Figures of a batch, from one pass over its results, as text and as an HTML page."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

WORST = 50
"""The number of answers that the page lists."""

_COLOURS = {
    "grounded": "#2f7d4f",
    "partially_grounded": "#b7791f",
    "ungrounded": "#b3372f",
    "not_applicable": "#9a9a9a",
    "not_checked": "#9a9a9a",
    "error": "#555",
}


@dataclass(slots=True)
class Summary:
    """Counts of verdicts, flags and labels of claims; the mean score; the answers with the lowest scores."""

    rows: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    claims: Counter[str] = field(default_factory=Counter)
    scores: float = 0.0
    scored: int = 0
    worst: list[tuple[float, int, Mapping[str, Any]]] = field(default_factory=list)

    @property
    def score(self) -> float | None:
        """The mean score of the answers of which something was checked."""
        return self.scores / self.scored if self.scored else None

    def add(self, result: Mapping[str, Any]) -> None:
        """Count one result."""
        order = self.rows
        self.rows += 1
        report = result.get("grounding")
        if report is None:
            self.errors[result["error"]] += 1
            self.verdicts["error"] += 1
            return
        self.verdicts[report["verdict"]] += 1
        self.flags.update(report["flags"])
        claims = [claim for choice in report["choices"] for claim in choice["claims"]]
        self.claims.update(claim["label"] for claim in claims)
        if report["score"] is not None:
            self.scores += report["score"]
            self.scored += 1
            heapq.heappush(self.worst, (-report["score"], -order, result))
            if len(self.worst) > WORST:
                heapq.heappop(self.worst)

    def count(self, results: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Yield results and count each."""
        for each in results:
            self.add(each)
            yield each

    def merge(self, later: Summary) -> None:
        """Add the counts of later rows."""
        moved = [(score, order - self.rows, result) for score, order, result in later.worst]
        self.worst = heapq.nlargest(WORST, [*self.worst, *moved])
        heapq.heapify(self.worst)
        self.rows += later.rows
        self.errors += later.errors
        self.verdicts += later.verdicts
        self.flags += later.flags
        self.claims += later.claims
        self.scores += later.scores
        self.scored += later.scored

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {
            "rows": self.rows,
            "errors": dict(self.errors.most_common()),
            "verdicts": dict(self.verdicts.most_common()),
            "flags": dict(self.flags.most_common()),
            "claims": dict(self.claims.most_common()),
            "score": None if self.score is None else round(self.score, 4),
        }


def summarise(results: Iterable[Mapping[str, Any]]) -> Summary:
    """Count all results of a batch."""
    summary = Summary()
    for each in results:
        summary.add(each)
    return summary


def as_html(summary: Summary, title: str) -> str:
    """Return a page with the figures and the answers that have the lowest scores. It needs no script and no network."""
    worst = [result for _, _, result in sorted(summary.worst, reverse=True)]
    score = "–" if summary.score is None else f"{summary.score:.2f}"
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }}
:root {{ color-scheme: light dark }}
table {{ border-collapse: collapse; width: 100%; margin: 1rem 0 }}
td, th {{ text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #8884; vertical-align: top }}
.bar {{ display: flex; height: 1rem; border-radius: 4px; overflow: hidden }}
</style>
<h1>{escape(title)}</h1>
<p>{summary.rows:,} answers, {summary.verdicts["error"]:,} rows with errors, mean score {score}.</p>
{_bar(summary.verdicts)}
{_table("Verdicts", summary.verdicts)}
{_table("Flags", summary.flags)}
{_table("Claims", summary.claims)}
{_table("Errors", summary.errors)}
<h2>Lowest scores</h2>
<table><tr><th>row<th>score<th>claims that are not supported</tr>
{"".join(map(_answer, worst))}
</table>
</html>
"""


def _bar(counts: Counter[str]) -> str:
    parts = (
        f'<span style="flex: {number}; background: {_COLOURS.get(name, "#9a9a9a")}" title="{escape(name)}"></span>'
        for name, number in counts.most_common()
    )
    return f'<div class="bar" role="img" aria-label="Shares of the verdicts">{"".join(parts)}</div>'


def _table(title: str, counts: Counter[str]) -> str:
    rows = "".join(f"<tr><td>{escape(name)}<td>{number:,}</tr>" for name, number in counts.most_common(20))
    return f"<h2>{title}</h2><table>{rows}</table>" if rows else ""


def _answer(result: Mapping[str, Any]) -> str:
    report = result["grounding"]
    claims = [claim for choice in report["choices"] for claim in choice["claims"]]
    wrong = (each for each in claims if each["label"] in ("unsupported", "contradicted"))
    lines = "".join(f"<p><b>{escape(each['text'])}</b><br>{escape(each['reason'])}</p>" for each in wrong)
    name = result.get("id") or result["row"]
    return f"<tr><td>{escape(str(name))}<td>{report['score']:.2f}<td>{lines}</tr>"
