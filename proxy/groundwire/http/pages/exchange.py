"""One exchange for its page: claims in the answer, evidence in the sources, and open findings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundwire.domain import Choice, Source
from groundwire.errors import ReviewConflict
from groundwire.http.pages.highlight import Segment, Span, cut
from groundwire.storage.history.exchange import HISTORY, PromptMessage, Stored, Summary
from groundwire.storage.history.reviews import Decided, Finding

_TOOL_CALL = re.compile(r"/tool_calls/(\d+)/function/arguments")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence for a claim, or a contradicting earlier statement (match "history"; the source is its exchange).

    `anchor` is its mark in the source, None if that is not shown.
    """

    source: str
    text: str
    match: str
    anchor: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A claim with its verdict. `key` names it on the page; `finding` is there when it was flagged."""

    key: str
    text: str
    label: str
    verifier: str
    reason: str
    score: float | None
    confidence: float | None
    evidence: tuple[Evidence, ...]
    finding: Finding | None = None

    @property
    def anchor(self) -> str:
        """The id of its card on the page."""
        return f"finding-{self.finding.id}" if self.finding else f"claim-{self.key}"


@dataclass(frozen=True, slots=True)
class Marked:
    """A stretch of evidence in a source: its anchor, and the claims that cite it."""

    anchor: str
    claims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerView:
    """A text of an answer, split into its claims; `title` identifies it if there are several."""

    title: str
    segments: tuple[Segment[ClaimView], ...]


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source with its evidence; `is_cited` is set if any claim cites it."""

    id: str
    kind: str
    title: str | None
    url: str | None
    segments: tuple[Segment[Marked], ...]
    chars: int
    is_cited: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """A decision that came too late: its finding, its note, and the conflicting decision."""

    finding: int
    note: str
    conflict: ReviewConflict


@dataclass(frozen=True, slots=True)
class ExchangeView:
    """An exchange as its page shows it. `earlier` are the decisions on each finding before its last one.

    `remarks` are the warnings of its report and the factors of its risk, `prompt` the messages of its request.
    """

    summary: Summary
    answers: tuple[AnswerView, ...]
    sources: tuple[SourceView, ...]
    flagged: tuple[ClaimView, ...]
    others: tuple[ClaimView, ...]
    whole: tuple[Finding, ...]
    contradictions: tuple[Mapping[str, Any], ...]
    remarks: tuple[str, ...]
    prompt: tuple[PromptMessage, ...]
    earlier: Mapping[int, tuple[Decided, ...]]
    refused: Refused | None = None
    next_open: Finding | None = None

    @property
    def open(self) -> int:
        """The number of open findings."""
        findings = [*(claim.finding for claim in self.flagged), *self.whole]
        return sum(finding is not None and finding.decided is None for finding in findings)


def exchange_view(
    stored: Stored,
    findings: Sequence[Finding],
    earlier: Mapping[int, tuple[Decided, ...]],
    refused: Refused | None = None,
    next_open: Finding | None = None,
) -> ExchangeView:
    """Build the view of an exchange, with its findings in the order of the answer."""
    flagged = {(finding.choice, finding.claim): finding for finding in findings if finding.claim is not None}
    passages = _Passages(stored.sources)
    is_utf16 = stored.report.get("offset_unit") == "utf16"
    answers: list[AnswerView] = []
    claims: list[ClaimView] = []
    for reported in stored.report.get("choices", ()):
        index = reported["index"]
        choice = next((each for each in stored.choices if each.index == index), Choice(index, ""))
        texts = (choice.text, *choice.arguments)
        spans: list[list[Span[ClaimView]]] = [[] for _ in texts]
        for claim in reported.get("claims", ()):
            finding = flagged.get((index, claim["id"]))
            at = min(_text_of(claim), len(texts) - 1)
            view = _claim(claim, f"{index}-{claim['id']}", finding, passages)
            start, end = _place(claim, finding, texts[at], is_utf16)
            spans[at].append(Span(start, end, view))
            claims.append(view)
        many = len(stored.report["choices"]) > 1
        answers += [
            AnswerView(_title(index if many else None, at), cut(text, spans[at]))
            for at, text in enumerate(texts)
            if text
        ]
    return ExchangeView(
        stored.summary,
        tuple(answers),
        passages.views(),
        tuple(claim for claim in claims if claim.finding),
        tuple(claim for claim in claims if not claim.finding),
        tuple(finding for finding in findings if finding.claim is None),
        tuple((stored.report.get("consistency") or {}).get("contradictions", ())),
        (*stored.report.get("warnings", ()), *(stored.report.get("risk") or {}).get("factors", ())),
        stored.prompt,
        earlier,
        refused,
        next_open,
    )


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

    def views(self) -> tuple[SourceView, ...]:
        """The sources with all that is cited of them, those that are cited first."""
        views = [self._view(number, source) for number, source in enumerate(self._sources)]
        return tuple(sorted(views, key=lambda view: not view.is_cited))

    def _view(self, number: int, source: Source) -> SourceView:
        spans = [
            Span(start, end, Marked(_anchor(number, start, end), tuple(claims)))
            for (of, start, end), claims in self._cited.items()
            if of == number
        ]
        title = source.title or source.label or None
        return SourceView(
            source.id, source.kind, title, source.url, cut(source.text, spans), len(source.text), bool(spans)
        )


def _anchor(source: int, start: int, end: int) -> str:
    return f"evidence-{source}-{start}-{end}"


def _find(source: Source, citation: Mapping[str, Any]) -> tuple[int, int] | None:
    """Locate a citation in the stored passage, by its offsets or else by its text."""
    start, end, text = citation["start"] - source.offset, citation["end"] - source.offset, citation.get("text", "")
    if 0 <= start < end <= len(source.text) and source.text[start:end] == text:
        return start, end
    at = source.text.find(text) if text else -1
    return (at, at + len(text)) if at >= 0 else None


def _text_of(claim: Mapping[str, Any]) -> int:
    """Return the index of the claim's text in its choice: 0 is the answer, the others are arguments of tool calls."""
    call = _TOOL_CALL.match(claim.get("pointer") or "")
    return int(call[1]) + 1 if call else 0


def _place(claim: Mapping[str, Any], finding: Finding | None, text: str, is_utf16: bool) -> tuple[int, int]:
    """Return the span of a claim in code points, the unit of all stored findings."""
    if finding and finding.start is not None and finding.end is not None:
        return finding.start, finding.end
    if not is_utf16:
        return claim["start"], claim["end"]
    return _narrowed(text, claim["start"]), _narrowed(text, claim["end"])


def _narrowed(text: str, units: int) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "replace"))


def _claim(claim: Mapping[str, Any], key: str, finding: Finding | None, passages: _Passages) -> ClaimView:
    return ClaimView(
        key,
        claim.get("text", ""),
        claim["label"],
        claim.get("verifier") or "",
        (finding.reason if finding else "")
        or claim.get("reason")
        or (claim.get("skip_reason") or "").replace("_", " "),
        claim.get("score"),
        claim.get("confidence"),
        (*_evidence(key, claim, passages), *_earlier(finding)),
        finding,
    )


def _evidence(key: str, claim: Mapping[str, Any], passages: _Passages) -> Iterator[Evidence]:
    for citation in claim.get("citations", ()):
        anchor = passages.cite(key, citation)
        yield Evidence(citation["source"], citation.get("text", ""), citation["match"], anchor)


def _earlier(finding: Finding | None) -> Iterator[Evidence]:
    """Yield the statements of earlier answers that a claim contradicts."""
    for citation in finding.citations if finding else ():
        if citation.match == HISTORY:
            yield Evidence(citation.source, citation.text, HISTORY)


def _title(choice: int | None, text: int) -> str:
    parts = [f"Choice {choice + 1}"] if choice is not None else []
    return ", ".join([*parts, f"arguments of tool call {text}"] if text else parts)
