"""Write the labelled answers that `groundwire calibrate --model` is run on: data that the model was not trained on.

    python -m training.calibration CLAIMS DATA OUT

The schemas kept for development, a file for each of theirs, and the fold of each public set that is held out.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

from training.corpus import draw_examples
from training.data import CALIBRATED, FOLDS, HELD_OUT, context_key, rows_of
from training.example import SUPPORTED
from training.schemas import read_schemas


def main() -> None:
    """Write one JSONL file for each set."""
    parser = argparse.ArgumentParser(description="Writes labelled answers to calibrate a model on.")
    for name in ("claims", "data", "out"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name, rows in (*_schemas(given.claims).items(), *_public(given.data).items()):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (given.out / f"{name}.jsonl").write_text(text, encoding="utf-8")


def _schemas(folder: Path) -> dict[str, list[dict[str, object]]]:
    rows: dict[str, list[dict[str, object]]] = defaultdict(list)
    schemas = list(read_schemas(folder, "development"))
    for number, example in enumerate(draw_examples(schemas, 11, 2, whole=True)):
        if not example.lead:
            label = int(example.label != SUPPORTED)
            row = {"id": str(number), "context": [example.evidence], "answer": example.claim, "label": label}
            rows[f"claims_{example.origin}"].append(row)
    return rows


def _public(folder: Path) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {}
    for name in CALIBRATED:
        found[name] = [
            {
                "id": row.id,
                "context": list(row.context),
                "answer": row.answer,
                "question": row.question,
                "label": row.label,
                "spans": None if row.spans is None else [{"start": low, "end": high} for low, high in row.spans],
            }
            for row in rows_of(folder, name)
            if name == "ragtruth_dev" or context_key(row) % FOLDS == HELD_OUT
        ]
    return found


if __name__ == "__main__":
    main()
