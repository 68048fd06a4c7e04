"""Claims from the gold answers of a question set about annual reports, in the format of `groundwire eval`."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.suites.figures import numbers_in, value_of

FILE = "tatqa_gold.jsonl"
_ASKED = re.compile(r"What (is|was|are|were) (the [^?]{8,160})\?")
_NUMBER = re.compile(r"([$€£]?)(-?\d[\d,]*(?:\.\d+)?)(%| thousand| million| billion)?")
_COMPUTED = (
    ("growth", re.compile(r"percentage (?:change|increase|decrease|growth)|growth rate")),
    ("share", re.compile(r"percentage|proportion|ratio")),
    ("average", re.compile(r"average")),
    ("difference", re.compile(r"change|difference|increase|decrease")),
    ("total", re.compile(r"total|sum|combined")),
)
_VAGUE = re.compile(r"respective|following|\bthat\b|same")
_YEAR = re.compile(r"(?:19|20)\d\d")


def rows_in(folder: Path, *, stated: int, computed: int, seed: int) -> list[dict[str, Any]]:
    """Return at most so many claims with stated and computed numbers, as rows of numbers.jsonl; none without the file.

    Only a question that names one quantity, with one number for an answer, becomes a claim. `another` is a different
    number of the same context.
    """
    path = folder / FILE
    if not path.exists():
        return []
    rng = random.Random(seed)
    found = list(_claims([json.loads(line) for line in path.read_text().splitlines()]))
    rng.shuffle(found)
    read_off = [_with_other_row(row, rng) for row in found if row["kind"] == "stated"][:stated]
    return read_off + [row for row in found if row["kind"] != "stated"][:computed]


def _claims(items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for item in items:
        asked, number = _ASKED.fullmatch(item["question"].strip()), _NUMBER.fullmatch(item["answer"].strip())
        if not asked or not number or _VAGUE.search(item["question"]) or _YEAR.fullmatch(number[2]):
            continue
        kind = _kind(item)
        if kind:
            verb, subject = asked.groups()
            claim = f"{subject[0].upper()}{subject[1:]} {verb} {number[1]}{{{number[2]}}}{number[3] or ''}."
            yield {"id": item["id"], "domain": "reports", "context": item["context"], "claim": claim, "kind": kind}


def _kind(item: Mapping[str, Any]) -> str | None:
    if item["task"] == "FinQA-span":
        number = item["answer"].strip("$€£%").split()[0].rstrip("%")
        return "stated" if list(numbers_in(item["context"])).count(number) == 1 else None
    if item["task"] != "FinQA-arithmetic":
        return None
    return next((kind for kind, asks in _COMPUTED if asks.search(item["question"])), None)


def _with_other_row(row: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    number = row["claim"].partition("{")[2].partition("}")[0]
    like = ("." in number, "," in number)
    others = [
        other
        for other in numbers_in(row["context"])
        if (("." in other), ("," in other)) == like
        and value_of(other) != value_of(number)
        and not _YEAR.fullmatch(other)
        and len(other) > 2
    ]
    return row | {"other_row": [number, rng.choice(others)]} if others else row
