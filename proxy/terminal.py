"""A report for people: the answer with its claims coloured, and for each claim what was found and where."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from proxy.config import Settings
from proxy.dialects.report import render
from proxy.errors import EvidenceGroundingError, GroundwireError
from proxy.evidence.loading import load_judge
from proxy.telemetry import configure_logs
from proxy.types import Choice, Source
from proxy.verification.context.index import Context
from proxy.verification.examine import Ask, verify

_STYLES = {"supported": "green", "contradicted": "bold red", "unsupported": "yellow", "not_checked": "dim"}
_SIGNS = {"supported": "✓", "contradicted": "✗", "unsupported": "?", "not_checked": "·"}
_VERDICTS = {
    "grounded": "green",
    "partially_grounded": "yellow",
    "ungrounded": "red",
    "not_applicable": "dim",
    "not_checked": "dim",
}
_SHOWN = 160  # characters of a citation
_OF_A_PROXY = frozenset({"id", "cache", "timing_ms", "config"})


def check_files(answer: Path, sources: Sequence[Path], fields: Sequence[str], settings: Settings, as_json: bool) -> int:
    """Checks an answer file against source files and prints the report. Returns the exit status.

    Raises OSError or GroundwireError when a file cannot be read, and EvidenceGroundingError where the settings say so.
    """
    configure_logs(settings.telemetry)
    text = sys.stdin.read() if str(answer) == "-" else _read(answer)
    context = Context(
        Source(str(path), "source", _read(path), title=path.name, labels=(path.name, path.stem, str(number)))
        for number, path in enumerate(sources, start=1)
    )
    judge = load_judge(settings.judge)
    report = verify([Choice(0, text, "stop")], context, settings.policy, Ask(tuple(fields)), judge)
    if settings.quotes.fail_on_all_rejected and report.quotes and "quotes_all_rejected" in report.flags:
        raise EvidenceGroundingError(report.quotes.rejected)
    wire = render(report)
    if as_json:
        print(json.dumps({key: wire[key] for key in wire if key not in _OF_A_PROXY}, indent=2, ensure_ascii=False))
    else:
        Console().print(view([text], wire))
    if wire["score"] is None:
        return 2
    return 0 if wire["score"] == 1 else 1


def view(answers: Sequence[str], grounding: Mapping[str, Any]) -> RenderableType:
    """A `grounding` object below the texts of the choices that it speaks of; with no texts, the object alone."""
    shown: list[RenderableType] = []
    for choice in grounding.get("choices", []):
        if answers:
            shown += [_highlighted(answers[choice["index"]], choice["claims"]), Text()]
        shown += [line for claim in choice["claims"] for line in _claim(claim)]
    return Group(*shown, *_violations(grounding), Text(), _summary(grounding))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise GroundwireError(f"{path}: is no text in UTF-8") from error


def _highlighted(answer: str, claims: Sequence[Mapping[str, Any]]) -> Text:
    text = Text(answer)
    for claim in claims:
        if not claim.get("pointer", "").startswith("/tool_calls"):
            text.stylize(_STYLES[claim["label"]], claim["start"], claim["end"])
    return text


def _claim(claim: Mapping[str, Any]) -> list[Text]:
    style = _STYLES[claim["label"]]
    about = claim["verifier"] or claim["method"]
    head = Text.assemble(
        (f" {_SIGNS[claim['label']]} {claim['label']:<13}", style),
        (claim["id"] + " ", "dim"),
        _shortened(claim["text"]),
    )
    lines = [head, Text(f"     {about}: {claim['reason']}", "dim" if claim["label"] == "not_checked" else "")]
    for citation in claim["citations"]:
        place = f"{citation['source']} {citation['start']}–{citation['end']}"
        nearest = "nearest: " if claim["label"] == "unsupported" else ""
        lines.append(Text.assemble(f"     ↳ {nearest}{place} ", (f"“{_shortened(citation['text'])}”", "italic")))
    return lines


def _violations(grounding: Mapping[str, Any]) -> list[Text]:
    found = grounding.get("schema", {}).get("violations", [])
    return [
        Text(f" ! {each['field'] or 'the answer'}: expected {each['expected']}, found {each['found']}")
        for each in found
    ]


def _summary(grounding: Mapping[str, Any]) -> Text:
    score = "nothing checked" if grounding["score"] is None else f"score {grounding['score']:.2f}"
    coverage = grounding.get("coverage")
    checked = f"{coverage['claims_checked']} of {coverage['claims_total']} claims checked" if coverage else "no claims"
    flags = ", ".join(grounding["flags"]) or "none"
    took = grounding.get("timing_ms", {}).get("total")
    timing = f" · {took:.1f} ms" if took else ""
    verdict = grounding["verdict"]
    return Text.assemble(
        (verdict, f"bold {_VERDICTS[verdict]}"),
        f" · {score} · {checked} · flags: {flags}{timing}",
        *_warnings(grounding),
    )


def _warnings(grounding: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(f"\n! {warning}", "yellow") for warning in grounding["warnings"]]


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "…"
