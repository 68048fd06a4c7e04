"""A text for the verifier, and rates over many texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
_Z = 1.959964


@dataclass(frozen=True, slots=True)
class Case:
    """A text with its context; `wrong` is true if an alarm is due, `kind` is the change to the text.

    `level` is its difficulty, `asks` the skill needed to see that it holds: rewording or reasoning.
    """

    id: str
    kind: str
    wrong: bool
    text: str
    context: str
    level: str = ""
    asks: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a case: alarms of the whole report, and of the one check that the suite is about.

    `why` is the reason of the first claim that was flagged. `checked` is False when no claim was checked.
    """

    case: Case
    flagged: bool
    flagged_alone: bool | None
    checked: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Rate:
    """A share `hits / of` with its Wilson interval at 95 %; an empty one has the interval 0–1."""

    hits: int
    of: int

    @property
    def value(self) -> float | None:
        return self.hits / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float]:
        if not self.of:
            return 0.0, 1.0
        share, spread = self.hits / self.of, _Z * _Z / self.of
        middle = (share + spread / 2) / (1 + spread)
        reach = _Z * sqrt(share * (1 - share) / self.of + spread / self.of / 4) / (1 + spread)
        return max(0.0, middle - reach), min(1.0, middle + reach)

    def __str__(self) -> str:
        if not self.of:
            return "–"
        low, high = self.interval
        return f"{self.hits / self.of:.1%} ({low:.1%}–{high:.1%}), {self.hits}/{self.of}"


def alarms(results: Sequence[Result], *, wrong: bool, alone: bool = False) -> Rate:
    """Return the share of wrong (recall) or right texts (false alarms) flagged by the report or the check alone."""
    due = [result.flagged_alone if alone else result.flagged for result in results if result.case.wrong is wrong]
    return Rate(sum(map(bool, due)), len(due))


def precision(results: Sequence[Result], *, alone: bool = False) -> Rate:
    """Return the share of flagged texts that are wrong."""
    flagged = [result for result in results if (result.flagged_alone if alone else result.flagged)]
    return Rate(sum(result.case.wrong for result in flagged), len(flagged))


def read(name: str) -> list[dict[str, Any]]:
    """Return the rows of a file in this folder."""
    return [json.loads(line) for line in (FOLDER / name).read_text().splitlines()]


def plain_claims() -> list[tuple[frozenset[str], str, str]]:
    """Return the plain claims, each with the labels that a careful person accepts, its context and its text."""
    return [
        (frozenset(each["labels"]), row["context"], each["text"])
        for row in read("plain_claims.jsonl")
        for each in row["claims"]
    ]
