"""Pairs out of the claims that we wrote on passages of public texts.

The claims lie in this folder, the passages do not: each is named by its set, the row, and which of its sentences it is.
"""

from __future__ import annotations

import difflib
import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from training.data import rows_of
from training.pair import Pair, Span, changed

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_TWIN = 0.75  # how alike a wrong claim is to the right one that it was made of, at least


@dataclass(frozen=True, slots=True)
class Written:
    """A passage, and the claims about it: supported ones, and unsupported ones each with the kind of its error."""

    passage: str
    supported: Sequence[str]
    unsupported: Sequence[tuple[str, str]]


def read_written(path: Path, folder: Path) -> list[Written]:
    """Our claims of a gzipped JSONL file, with their passages cut out of the data sets in `folder`.

    Raises KeyError when a row is not there any more.
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
    """`count` sentences or lines of a text from number `first` (from 0) on, joined by blanks."""
    parts = [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]
    return " ".join(parts[first : first + count])


def written(found: Sequence[Written], chance: random.Random) -> Iterator[Pair]:
    """Each claim with its passage, sometimes beside the beginning of another one."""
    for each in found:
        for text, truth, bad in _told(each):
            evidence = each.passage
            if chance.random() < 0.3:
                other = chance.choice(found).passage[:200]
                evidence = f"{other} {evidence}" if chance.random() < 0.5 else f"{evidence} {other}"
            yield Pair(text, evidence, truth, "written", bad)


def _told(each: Written) -> Iterator[tuple[str, int, list[Span] | None]]:
    """Every claim, whether it is supported, and what makes it wrong where it is the twin of a supported one."""
    for text in each.supported:
        yield text, 1, None
    for _, text in each.unsupported:
        yield text, 0, _difference(each.supported, text)


def _difference(supported: Iterable[str], text: str) -> list[Span] | None:
    """What a wrong claim says other than the right one that is most like it; None when none is much like it."""
    nearest = max(supported, key=lambda other: _likeness(other, text), default="")
    return changed(nearest, text) if _likeness(nearest, text) > _TWIN else None


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()
