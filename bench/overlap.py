"""Measure a baseline of word overlap on labelled answers: the minimum for any verifier.

    python -m bench.overlap FILES... [--json OUT]

An answer is as grounded as its sentence with the smallest share of content words in the context.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from bench.report import markdown
from groundwire.evaluation.figures import auroc
from groundwire.evaluation.rows import Row, read_rows
from groundwire.text.sentences import sentences
from groundwire.text.words import content_stems


def support(row: Row) -> float:
    """Return the least share (0–1), over the sentences of an answer, of content stems that the context has."""
    known = content_stems("\n".join(row.context))
    found = [content_stems(row.answer[start:end]) for start, end in sentences(row.answer)]
    shares = [len(stems & known) / len(stems) for stems in found if stems]
    return min(shares, default=1.0)


def main() -> None:
    """Print AUROC of every set."""
    parser = argparse.ArgumentParser(description="Measures a baseline of word overlap.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = {}
    for path in given.files:
        rows, _ = read_rows(path.read_text(encoding="utf-8").split("\n"))
        found[path.stem] = round(auroc([(1 - support(row), row.label) for row in rows]) or 0.0, 3)
    print(markdown(("set", "AUROC"), list(found.items())))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
