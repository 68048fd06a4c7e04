"""Render a report for people: the answer with its claims coloured, and the finding and evidence of each claim."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from groundwire.backends.loading import load_judge
from groundwire.config import Settings
from groundwire.documents import read_document
from groundwire.domain import Choice, Source
from groundwire.errors import EvidenceGroundingError
from groundwire.evidence.index import Context
from groundwire.judge import Judge
from groundwire.pipeline import Ask, verify
from groundwire.report import Report
from groundwire.telemetry import configure_logs

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


def compare_judges(
    answer: Path, sources: Sequence[Path], fields: Sequence[str], judges: Mapping[str, Settings], as_json: bool
) -> int:
    """Check an answer by several judges, and print their verdicts side by side. Returns the status of the first."""
    configure_logs(next(iter(judges.values())).telemetry)
    text, context = _answer(answer), _context(sources)
    reports: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for name, settings in judges.items():
        start = time.perf_counter()
        reports[name] = _report(text, context, fields, settings).to_dict()
        seconds[name] = time.perf_counter() - start
    if as_json:
        print(json.dumps({name: _without_proxy(wire) for name, wire in reports.items()}, indent=2, ensure_ascii=False))
    else:
        Console().print(_side_by_side(reports, seconds))
    return _status(next(iter(reports.values())))


def check_files(answer: Path, sources: Sequence[Path], fields: Sequence[str], settings: Settings, as_json: bool) -> int:
    """Check an answer file against source files and print the report. Returns the exit status.

    Raises OSError or GroundwireError when a file cannot be read, and EvidenceGroundingError if the settings require it.
    """
    configure_logs(settings.telemetry)
    text, context = _answer(answer), _context(sources)
    report = _report(text, context, fields, settings)
    if settings.quotes.fail_on_all_rejected and report.quotes and "quotes_all_rejected" in report.flags:
        raise EvidenceGroundingError(report.quotes.rejected)
    wire = report.to_dict()
    if as_json:
        print(json.dumps(_without_proxy(wire), indent=2, ensure_ascii=False))
    else:
        Console().print(view([text], wire))
    return _status(wire)


def _status(wire: Mapping[str, Any]) -> int:
    if wire["score"] is None:
        return 2
    return 0 if wire["score"] == 1 else 1


def _without_proxy(wire: Mapping[str, Any]) -> dict[str, Any]:
    return {key: wire[key] for key in wire if key not in _OF_A_PROXY}


def _answer(path: Path) -> str:
    return sys.stdin.read() if str(path) == "-" else read_document(path)


def _context(sources: Sequence[Path]) -> Context:
    return Context(
        Source(str(path), "source", read_document(path), title=path.name, labels=(path.name, path.stem, str(number)))
        for number, path in enumerate(sources, start=1)
    )


def _report(text: str, context: Context, fields: Sequence[str], settings: Settings) -> Report:
    opened: AbstractContextManager[Judge]
    if settings.judge.is_language:
        from groundwire.container.models import open_judge  # imports the clients of model servers, which takes a while

        opened = open_judge(settings)
    else:
        opened = nullcontext(load_judge(settings.judge))
    with opened as judge:
        return verify([Choice(0, text, "stop")], context, settings.policy, Ask(tuple(fields)), judge)


def _side_by_side(reports: Mapping[str, Any], seconds: Mapping[str, float]) -> Table:
    """A table with a row for each claim and a column for each judge."""
    table = Table("claim", *reports, box=box.SIMPLE_HEAD)
    claims = {name: [each for choice in wire["choices"] for each in choice["claims"]] for name, wire in reports.items()}
    for row in zip(*claims.values(), strict=True):
        table.add_row(_shortened(row[0]["text"]), *(_cell(each) for each in row))
    scores = (wire["score"] for wire in reports.values())
    table.add_section()
    table.add_row("score", *("–" if score is None else f"{score:.2f}" for score in scores))
    table.add_row("seconds", *(f"{each:.1f}" for each in seconds.values()))
    gaps = [", ".join(each["reason"] for each in wire.get("degraded", [])) for wire in reports.values()]
    if any(gaps):
        table.add_row("degraded", *(gap or "–" for gap in gaps))
    return table


def _cell(claim: Mapping[str, Any]) -> Text:
    label = claim["label"]
    score = "" if label == "not_checked" else f" {claim['score']:.2f}"
    return Text(f"{_SIGNS[label]} {label}{score}", _STYLES[label])


def view(answers: Sequence[str], grounding: Mapping[str, Any]) -> RenderableType:
    """Render a `grounding` object below the texts of its choices; without texts, the object alone."""
    shown: list[RenderableType] = []
    for choice in grounding.get("choices", []):
        if answers:
            shown += [_highlighted(answers[choice["index"]], choice["claims"]), Text()]
        shown += [line for claim in choice["claims"] for line in _claim(claim)]
    return Group(*shown, *_violations(grounding), Text(), _summary(grounding))


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
        *((f"\n! {warning}", "yellow") for warning in grounding["warnings"]),
    )


def _shortened(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "…"
