"""The labelled answers that weights may be fitted on, and the fold of them that is kept for measuring."""

from __future__ import annotations

import zlib
from pathlib import Path

from groundwire.evaluation.rows import Row, read_rows

SETS = (
    "bump_tune",
    "defacto_train",
    "faithdial_tune",
    "fm2_tune",
    "infotabs_tune",
    "q2_tune",
    "quotesum_gold",
    "ragtruth_dev",
    "storysumm_tune",
    "summedits_tune",
    "tabfact_tune",
    "wice_tune",
)
"""The sets whose licence allows fitting. A fold of each is held out: thresholds are fitted on it."""

PAIRED = ("infotabs_train", "multinli", "snli", "tabfact_val")
"""Sets for natural language inference, in which `meta.fine` of a row is E, C or N. None of them is measured on."""

HELD_OUT, FOLDS = 0, 5


def rows_of(folder: Path, name: str) -> list[Row]:
    """Every row of a set that can be read."""
    with (folder / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return read_rows(lines)[0]


def rows_to_fit(folder: Path, name: str) -> list[Row]:
    """The rows of a set without the fold that is held out."""
    return [row for row in rows_of(folder, name) if context_key(row) % FOLDS != HELD_OUT]


def context_key(row: Row) -> int:
    """Names the context of a row: answers about one text have one key, and so one fold."""
    return zlib.crc32("".join(row.context).encode("utf-8", "surrogatepass"))
