"""One exchange for its page: claims in the answer, evidence in the sources, and open findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundwire.domain import Source
from groundwire.errors import ReviewConflict
from groundwire.http.pages.rendering import Span, cut
from groundwire.storage.history.exchange import HISTORY, Stored
from groundwire.storage.history.reviews import Decided, Finding


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence for a claim, or an earlier statement that contradicts it (match "history"; the source is its exchange).

    `name` is that of the source, `anchor` the mark in it, None if that is not shown.
    """

    source: str
    text: str
    match: str
    anchor: str | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A claim with its verdict. `key` names it on the page; `finding` is set if it was flagged or decided on."""

    key: str
    choice: int
    id: str
    text: str
    label: str
    verifier: str
    reason: str
    score: float | None
    confidence: float | None
    evidence: Sequence[Evidence]
    finding: Finding | None = None

    @property
    def anchor(self) -> str:
        """The id of its card on the page."""
        return f"finding-{self.finding.id}" if self.finding else f"claim-{self.key}"


@dataclass(frozen=True, slots=True)
class Refused:
    """A decision that conflicts with an earlier one: its finding, its note, and the earlier decision."""

    finding: int
    note: str
    conflict: ReviewConflict


def exchange_view(
    stored: Stored,
    findings: Sequence[Finding],
    earlier: Mapping[int, tuple[Decided, ...]],
    refused: Refused | None = None,
    next_open: Finding | None = None,
) -> dict[str, Any]:
    """Return the values of an exchange for its page, with its findings in the order of the answer.

    `earlier` are the decisions on each finding before its last one.
    """
    found = {(finding.choice, finding.claim): finding for finding in findings if finding.claim is not None}
    passages = _Passages(stored.sources)
    report = stored.report
    choices = report.get("choices", ())
    answers: list[dict[str, Any]] = []
    claims: list[ClaimView] = []
    for reported in choices:
        index = reported["index"]
        texts = stored.texts(index)
        spans: list[list[Span[ClaimView]]] = [[] for _ in texts]
        for claim in reported.get("claims", ()):
            view = _claim(claim, index, found.get((index, claim["id"])), passages)
            at, start, end = stored.place(index, claim)
            spans[at].append(Span(start, end, view))
            claims.append(view)
        answers += [
            {"title": _title(index if len(choices) > 1 else None, at), "segments": cut(text, spans[at])}
            for at, text in enumerate(texts)
            if text
        ]
    flagged = [claim for claim in claims if claim.finding and claim.finding.flags]
    whole = [finding for finding in findings if finding.claim is None]
    warnings, factors = report.get("warnings", ()), (report.get("risk") or {}).get("factors", ())
    to_review = [*(claim.finding for claim in flagged), *whole]
    return {
        "summary": stored.summary,
        "prompt": stored.prompt,
        "answers": answers,
        "sources": passages.views(),
        "flagged": flagged,
        "others": [claim for claim in claims if not (claim.finding and claim.finding.flags)],
        "whole": whole,
        "open": sum(finding is not None and finding.decided is None for finding in to_review),
        "contradictions": (report.get("consistency") or {}).get("contradictions", ()),
        "warnings": warnings,
        "factors": factors,
        "remarks": (*warnings, *factors),
        "earlier": earlier,
        "refused": refused,
        "next_open": next_open,
    }


class _Passages:
    """The sources of an exchange; collects their citations."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._cited: dict[tuple[int, int, int], list[str]] = {}

    def cite(self, claim: str, citation: Mapping[str, Any]) -> str | None:
        """Mark evidence in its source for a claim, and return its anchor; None if the source does not contain it."""
        for number, source in enumerate(self._sources):
            span = _find(source, citation) if source.id == citation["source"] else None
            if span:
                self._cited.setdefault((number, *span), []).append(claim)
                return _anchor(number, *span)
        return None

    def views(self) -> list[dict[str, Any]]:
        """Return the sources with their marked citations, cited sources first."""
        views: list[dict[str, Any]] = []
        for number, source in enumerate(self._sources):
            spans = [
                Span(start, end, {"anchor": _anchor(number, start, end), "claims": claims})
                for (of, start, end), claims in self._cited.items()
                if of == number
            ]
            given = {name: getattr(source, name) for name in ("id", "kind", "name", "url")}
            segments = cut(source.text, spans)
            views.append(given | {"segments": segments, "chars": len(source.text), "is_cited": bool(spans)})
        return sorted(views, key=lambda view: not view["is_cited"])

    def name(self, id_: str) -> str:
        """Return the name of a source, or its id if it is not stored."""
        return next((source.name for source in self._sources if source.id == id_), id_)


def _anchor(source: int, start: int, end: int) -> str:
    return f"evidence-{source}-{start}-{end}"


def _find(source: Source, citation: Mapping[str, Any]) -> tuple[int, int] | None:
    """Locate a citation in the stored passage, by its offsets or else by its text."""
    start, end, text = citation["start"] - source.offset, citation["end"] - source.offset, citation.get("text", "")
    if 0 <= start < end <= len(source.text) and source.text[start:end] == text:
        return start, end
    at = source.text.find(text) if text else -1
    return (at, at + len(text)) if at >= 0 else None


def _claim(claim: Mapping[str, Any], choice: int, finding: Finding | None, passages: _Passages) -> ClaimView:
    key = f"{choice}-{claim['id']}"
    evidence = [
        Evidence(
            each["source"],
            each.get("text", ""),
            each["match"],
            passages.cite(key, each),
            passages.name(each["source"]),
        )
        for each in claim.get("citations", ())
    ]
    if finding:
        earlier = (each for each in finding.citations if each.match == HISTORY)
        evidence += [Evidence(each.source, each.text, HISTORY) for each in earlier]
    skipped = (claim.get("skip_reason") or "").replace("_", " ")
    return ClaimView(
        key,
        choice,
        claim["id"],
        claim.get("text", ""),
        claim["label"],
        claim.get("verifier") or "",
        (finding.reason if finding else "") or claim.get("reason") or skipped,
        claim.get("score"),
        claim.get("confidence"),
        evidence,
        finding,
    )


def _title(choice: int | None, text: int) -> str:
    parts = [f"Choice {choice + 1}"] if choice is not None else []
    return ", ".join([*parts, f"arguments of tool call {text}"] if text else parts)
