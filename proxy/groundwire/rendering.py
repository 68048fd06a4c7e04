"""Render claims, their citations and budgets as JSON values in the wire format; convert offsets to UTF-16 units."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from typing import Any

from groundwire.domain import Budget, Choice, Citation, Claim, ConfidenceParts, Judgement, Message, Probability, Source

_TOOL_CALL = re.compile(r"/tool_calls/(\d+)/function/arguments")


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


def render_claim(judgement: Judgement, choice: int = 0, units: Utf16 | None = None) -> dict[str, Any]:
    """Render one claim of a choice as in a report; offsets are in code points, or converted by `units`."""
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
        "score": rounded(verdict.score) if verdict.label != "not_checked" else None,
        "confidence": rounded(judgement.confidence) if verdict.label != "not_checked" else None,
        **({"confidence_parts": render_parts(judgement.parts)} if judgement.parts else {}),
        "stated_confidence": rounded(claim.stated_confidence),
        "verifier": verdict.verifier or None,
        "method": verdict.method,
        "reason": verdict.reason,
        **({} if claim.skip_reason is None else {"skip_reason": claim.skip_reason}),
        **({"flags": flags} if (flags := _flags(judgement)) else {}),
        "citations": [render_citation(citation, units) for citation in verdict.citations],
        **({} if judgement.budget is None else {"budget": render_budget(judgement.budget)}),
    }


def _flags(judgement: Judgement) -> list[str]:
    """Return the flags that the verdicts on a claim raise in addition to its label."""
    return list(dict.fromkeys(flag for verdict in judgement.verdicts for flag in verdict.flags))


def render_budget(budget: Budget) -> dict[str, Any]:
    """Render the budget of a claim. Unknown values are null; `missing` is the cause when the status is unavailable."""
    return {
        "p0": rounded(budget.p0.value if budget.p0 else None),
        "p1": rounded(budget.p1.value if budget.p1 else None),
        "required_bits": rounded(budget.required_bits),
        "observed_bits": rounded(budget.observed_bits),
        "budget_gap": rounded(budget.budget_gap),
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
    interval = {f"{name}_interval": [rounded(probability.lower), rounded(probability.upper)]}
    return {**(interval if probability.lower < probability.upper else {}), "method": probability.method}


def render_citation(citation: Citation, units: Utf16 | None = None) -> dict[str, Any]:
    """Render one piece of evidence."""
    start, end = citation.start, citation.end
    if units:
        start, end = (units.in_source(citation.source, offset) for offset in (start, end))
    return {
        "source": citation.source,
        "start": start,
        "end": end,
        "text": citation.text,
        "score": rounded(citation.score),
        "match": citation.match,
    }


def render_parts(parts: ConfidenceParts) -> dict[str, Any]:
    """Render the components of a confidence."""
    return {name: rounded(getattr(parts, name)) for name in ("retrieval", "source", "extraction", "consistency")}


def render_source(source: Source) -> dict[str, Any]:
    """Render a source without its text."""
    return {
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


def render_found(claim: Claim) -> dict[str, Any]:
    """Render a claim without a verdict."""
    return {
        "id": claim.id,
        "text": claim.text,
        "start": claim.start,
        "end": claim.end,
        "kind": claim.kind,
        "cited": list(claim.cited),
        "stated_confidence": rounded(claim.stated_confidence),
        **({} if claim.pointer is None else {"pointer": claim.pointer}),
        **({} if claim.skip_reason is None else {"skip_reason": claim.skip_reason}),
    }


def to_json(value: Any, indent: int | None = None) -> str:
    """Return JSON values as text: compact unless an indent is given; lone surrogates are escaped."""
    separators = None if indent else (",", ":")
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    return text if text.isascii() or _is_unicode(text) else json.dumps(value, indent=indent, separators=separators)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def rounded(value: float | None, digits: int = 4) -> float | None:
    """Round a number that may be missing."""
    return None if value is None else round(value, digits)
