"""Pairs out of the texts themselves: a sentence beside what stands around it, which supports it."""

from __future__ import annotations

import random
import re
from pathlib import Path

from training.data import SETS, rows_to_fit
from training.pair import Pair

_SENTENCE = re.compile(r"[^.!?\n]{40,260}[.!?](?=\s|$)")
_ROWS, _EACH = 700, 3  # rows of a set, and sentences of a row, at most
_AROUND = 260  # characters on either side, at most


def sentences(folder: Path, chance: random.Random, count: int) -> list[Pair]:
    """At most `count` sentences of the sets' texts, no sentence twice."""
    found: dict[str, Pair] = {}
    for name in SETS:
        rows = rows_to_fit(folder, name)
        chance.shuffle(rows)
        for row in rows[:_ROWS]:
            text = chance.choice(row.context)
            places = list(_SENTENCE.finditer(text))
            for place in chance.sample(places, min(_EACH, len(places))):
                claim = place.group().strip()
                found[claim] = Pair(claim, _around(place, text, chance), 1, "sentence")
    every = list(found.values())
    return chance.sample(every, min(count, len(every)))


def _around(place: re.Match[str], text: str, chance: random.Random) -> str:
    """A sentence with a stretch of text on either side, which begins with a whole word."""
    low = max(0, place.start() - chance.randrange(0, _AROUND))
    low = min(text.find(" ", low) + 1 if low else 0, place.start())
    return text[low : place.end() + chance.randrange(0, _AROUND)].strip()
