"""Measure a baseline of word overlap on labelled answers: the minimum for any verifier.

    python -m bench.overlap [FILES...] [--json OUT]

FILES are read as by `groundwire eval`; the everyday suites (in suites/) are always measured, by sentence. An answer is
as grounded as its sentence with the smallest share of content words in the context. It is flagged when that share is
at most a threshold: the one with the best balanced accuracy on the same set, which favours the baseline.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.everyday import EVERYDAY
from bench.report import markdown
from bench.suites.case import read
from groundwire.evaluation.figures import auroc
from groundwire.evaluation.rows import Row, read_rows
from groundwire.text.sentences import sentences
from groundwire.text.words import content_stems

Scored = Sequence[tuple[float, int]]
"""The share of an answer's words that the context has, and its label: 1 if it is not grounded."""


def support(row: Row) -> float:
    """Return the least share (0–1), over the sentences of an answer, of content stems that the context has."""
    known = content_stems("\n".join(row.context))
    found = [content_stems(row.answer[start:end]) for start, end in sentences(row.answer)]
    shares = [len(stems & known) / len(stems) for stems in found if stems]
    return min(shares, default=1.0)


def sentence_rows(name: str) -> list[Row]:
    """Return the sentences of a suite, each as an answer about its document."""
    return [
        Row(f"{row['id']}-{place}", (row["document"],), each["text"], int(each["label"] != "supported"))
        for row in read(f"{name}.jsonl")
        for place, each in enumerate(row["sentences"])
    ]


def figures(scored: Scored) -> dict[str, Any]:
    """Return the number of answers, AUROC, and the rates at the threshold with the best balanced accuracy.

    All but the number are None for a set without answers of both labels.
    """
    area = auroc([(1 - share, label) for share, label in scored])
    found: dict[str, Any] = {"answers": len(scored), "auroc": area}
    names = ("balanced_accuracy", "false_alarms", "misses", "threshold")
    best = dict.fromkeys(names) if area is None else dict(zip(names, _best(scored), strict=True))
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in (found | best).items()}


def _best(scored: Scored) -> tuple[float, float, float, float]:
    """Return balanced accuracy, false alarms, misses and threshold; of equal ones, those of the lowest threshold."""
    wrong = sum(label for _, label in scored)
    right = len(scored) - wrong
    counts, flagged, caught = Counter(scored), 0, 0
    found = []
    for threshold in sorted({share for share, _ in scored}):
        flagged, caught = flagged + counts[threshold, 0], caught + counts[threshold, 1]
        alarms, misses = flagged / right, 1 - caught / wrong
        found.append((1 - (alarms + misses) / 2, alarms, misses, threshold))
    return max(found, key=lambda each: each[0])


def main() -> None:
    """Print the figures of every set, and write them."""
    parser = argparse.ArgumentParser(description="Measures a baseline of word overlap.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    sets = {path.stem: read_rows(path.read_text(encoding="utf-8").split("\n"))[0] for path in given.files}
    sets |= {name: sentence_rows(name) for name in EVERYDAY}
    found = {name: figures([(support(row), row.label) for row in rows]) for name, rows in sets.items()}
    head = ("set", *next(iter(found.values())))
    print(
        markdown(
            head,
            [(name, *("–" if value is None else value for value in each.values())) for name, each in found.items()],
        )
    )
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
