"""The claims that we wrote about passages of public texts.

The claims are in this folder, the passages are not: each is identified by its set, its row and its sentences in it.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from training.data import rows_of

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Written:
    """A passage, the claims that it supports, and other claims, each with the kind of its error.

    The kind is a label where the writer decided between contradicted and unsupported.
    """

    passage: str
    supported: Sequence[str]
    unsupported: Sequence[tuple[str, str]]


def read_written(path: Path, folder: Path) -> list[Written]:
    """Read claims from a gzipped JSONL file, and cut their passages out of the data sets in `folder`.

    Raises KeyError when a row is missing.
    """
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    texts = {
        (name, row.id): "\n".join(row.context)
        for name in sorted({each["set"] for each in found})
        for row in rows_of(folder, name)
    }
    return [
        Written(
            passage=cut(texts[each["set"], each["id"]], each["first"], each["count"]),
            supported=each["supported"],
            unsupported=[(kind, text) for kind, text in each["unsupported"]],
        )
        for each in found
    ]


def cut(text: str, first: int, count: int) -> str:
    """Return `count` sentences or lines of a text from number `first` (from 0) on, joined by blanks."""
    parts = [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]
    return " ".join(parts[first : first + count])
