"""Verify a file of answers, write the job's summary, and exit with 1 if too many answers are flagged.

The inputs are variables, see action.yml. Needs the command `groundwire`, and otherwise the standard library only.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

MAX_LISTED = 20  # flagged answers in the summary, whose size GitHub limits
MAX_TEXT = 300  # characters of a claim or reason in it

Result = Mapping[str, Any]


def main(environ: Mapping[str, str]) -> int:
    """Run the check with the inputs in these variables, and return the exit status."""
    reports = Path(environ["REPORTS"])
    command = ["groundwire", "batch", environ["ANSWERS"], str(reports), "--overwrite"]
    done = subprocess.run([*command, *shlex.split(environ.get("ARGUMENTS", ""))], check=False)  # noqa: S603
    if done.returncode not in (0, 1):  # 1: rows that could not be read are in the reports
        return done.returncode
    results = [json.loads(line) for line in reports.read_text(encoding="utf-8").splitlines()]
    unread = [each for each in results if "error" in each]
    flagged = [each for each in results if "error" not in each and _counts(each, environ.get("FLAGS", "").split())]
    allowed = most_allowed(environ.get("MAX_FLAGGED") or "0", len(results))
    passed = bool(results) and not unread and len(flagged) <= allowed
    _append(environ.get("GITHUB_STEP_SUMMARY"), summary(results, flagged, unread, allowed, passed=passed))
    score = mean_score(results)
    outputs = {"answers": len(results), "flagged": len(flagged), "score": "" if score is None else f"{score:.4f}"}
    _append(environ.get("GITHUB_OUTPUT"), "".join(f"{name}={value}\n" for name, value in outputs.items()))
    if passed:
        return 0
    found = f"{len(flagged)} of {len(results)} answers are flagged, at most {allowed} may be"
    print(f"::error title=Groundwire::{found}; {len(unread)} rows could not be read")
    return 1


def most_allowed(given: str, total: int) -> int:
    """Return the most flagged answers of so many: a number, or a share such as 5%, rounded down."""
    try:
        number = float(given.removesuffix("%"))
        if number >= 0:
            return math.floor(number * total / 100 if given.endswith("%") else number)
    except ValueError:
        pass
    sys.exit(f"max-flagged must be a number or a share such as 5%, not {given!r}")


def mean_score(results: Sequence[Result]) -> float | None:
    """Return the mean score of the answers of which something was checked."""
    reports = [each["grounding"] for each in results if "grounding" in each]
    scores = [report["score"] for report in reports if report["score"] is not None]
    return sum(scores) / len(scores) if scores else None


def summary(
    results: Sequence[Result], flagged: Sequence[Result], unread: Sequence[Result], allowed: int, *, passed: bool
) -> str:
    """Return the summary as Markdown."""
    score = mean_score(results)
    verdicts = Counter(each["grounding"]["verdict"] for each in results if "grounding" in each)
    lines = [
        f"## Groundwire: {'passed' if passed else 'failed'}",
        f"{len(flagged)} of {len(results)} answers are flagged; at most {allowed} may be. "
        f"Mean score {'–' if score is None else f'{score:.2f}'}; {len(unread)} rows could not be read.",
        "| verdict | answers |\n|---|---|\n"
        + "\n".join(f"| {name} | {count} |" for name, count in verdicts.most_common()),
    ]
    if flagged:
        worst = sorted(flagged, key=lambda each: (each["grounding"]["score"] is None, each["grounding"]["score"] or 0))
        rows = [row for each in worst[:MAX_LISTED] for row in _rows(each)]
        lines.append("| answer | claim | reason |\n|---|---|---|\n" + "\n".join(rows))
    lines += [f"- row {each['row']}: {_cell(each['error'])}" for each in unread[:MAX_LISTED]]
    return "\n\n".join(lines) + "\n"


def _counts(result: Result, flags: Collection[str]) -> bool:
    return any(not flags or flag in flags for flag in result["grounding"]["flags"])


def _rows(result: Result) -> list[str]:
    """Return the rows of one answer: a claim that is not supported in each, or else the flags."""
    report = result["grounding"]
    claims = [claim for choice in report["choices"] for claim in choice["claims"]]
    wrong = [(claim["text"], claim["reason"]) for claim in claims if claim["label"] in ("unsupported", "contradicted")]
    name = str(result.get("id") or f"row {result['row']}")
    return ["| " + " | ".join(map(_cell, (name, *row))) + " |" for row in wrong or [("", ", ".join(report["flags"]))]]


def _cell(text: str) -> str:
    """Return a text that cannot end a cell of a Markdown table, nor be read as markup."""
    short = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
    escaped = "".join(f"&#{ord(char)};" if char in "&<>|`*_[]\\~#" else char for char in short)
    return " ".join(escaped.split())


def _append(file: str | None, text: str) -> None:
    if file:
        with Path(file).open("a", encoding="utf-8") as opened:
            opened.write(text)


if __name__ == "__main__":
    sys.exit(main(os.environ))
