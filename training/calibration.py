"""Write the labelled answers that `groundwire calibrate --model` is run on: data that the model was not trained on.

    python -m training.calibration CLAIMS OUT [--data DATA]

At most 750 claims of each of ten kinds of schemas, those kept for development; our own sentences about numbers; and,
with `--data`, the fold of each public set that is held out. Every set counts the same in the fit, so that schemas and
public answers weigh nearly the same.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench.suites.__main__ import number_cases
from bench.suites.case import read
from training.corpus import draw_examples
from training.data import FOLDS, HELD_OUT, SETS, context_key, rows_of
from training.example import SUPPORTED
from training.schemas import Schema, read_schemas


def _free(letters: str) -> list[str]:
    return [f"facts_free_{letter}" for letter in letters]


KINDS = {
    "documents": ("documents", "facts_contracts", "facts_technical", *_free("ch")),
    "everyday": ("facts_leaflets", "facts_rules", "facts_everyday", *_free("aens")),
    "messages": ("facts_messages", "facts_meetings", "facts_dialogue", "facts_chat", *_free("o")),
    "meaning": ("meaning", "minimal_pairs", "facts_pairs", *_free("kq")),
    "inference": ("rules", "events", "facts_senses", "facts_polar", "facts_inference", "facts_steps", *_free("l")),
    "assistants": ("assistants", "facts_web", "facts_plain", "facts_answers", *_free("di")),
    "summaries": ("summaries", "facts_knowledge", *_free("bfjr")),
    "prose": ("business", "people_society", "technology_science", *_free("p")),
    "news": ("facts_news", "facts_reference"),
    "structured": ("structured", "facts_records", "facts_tables", "facts_cells", *_free("gmt")),
}
"""How the names of the files of schemas begin, by kind. The texts from `facts_free_u` on stay out: with them, the
ranking of other sets is no better.
"""

_MAX_CLAIMS = 750  # of a kind


def main() -> None:
    """Write one JSONL file for each set."""
    parser = argparse.ArgumentParser(description="Writes labelled answers to calibrate a model on.")
    for name in ("claims", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--data", type=Path, help="the folder of the public sets")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    schemas = list(read_schemas(given.claims, "development"))
    public = _public(given.data) if given.data else {}
    sets = _schemas(schemas) | {"numbers": _numbers()} | public
    for name, rows in sets.items():
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (given.out / f"{name}.jsonl").write_text(text, encoding="utf-8")


def _schemas(schemas: Sequence[Schema]) -> dict[str, list[dict[str, object]]]:
    rows: dict[str, list[dict[str, object]]] = defaultdict(list)
    for number, example in enumerate(draw_examples(schemas, 11, 2, whole=True, related=True)):
        if not example.lead:
            label = int(example.label != SUPPORTED)
            row = {"id": str(number), "context": [example.evidence], "answer": example.claim, "label": label}
            kind = next((kind for kind, names in KINDS.items() if example.origin.startswith(names)), None)
            if kind:
                rows[f"claims_{kind}"].append(row)
    chance = random.Random(0)  # noqa: S311
    return {name: chance.sample(each, min(_MAX_CLAIMS, len(each))) for name, each in rows.items()}


def _numbers() -> list[dict[str, object]]:
    """Return sentences about numbers, right and wrong. The suites of numbers that are held out stay out."""
    cases = number_cases(read("numbers.jsonl"))
    return [{"id": each.id, "context": [each.context], "answer": each.text, "label": int(each.wrong)} for each in cases]


def _public(folder: Path) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {}
    for name in SETS:
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
            if context_key(row) % FOLDS == HELD_OUT
        ]
    return found


if __name__ == "__main__":
    main()
