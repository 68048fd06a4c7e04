"""Draws pairs in which missing words give the label away no more than they do in real answers.

    python -m training.balance PAIRS OUT

Whoever writes claims on purpose says supported ones in other words, and unsupported ones in the words of the passage,
so that an encoder learns to trust what it does not find. Of the written claims with about the same share of missing
words as many supported as unsupported ones are drawn, give or take a quarter; of pairs that rules made only a few,
and half of the labelled ones twice.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proxy.verification.words import words

_SHARES = {"perturbed": 0.12, "same": 0.1, "sentence": 0.3}
_SUPPORTED_SHARES = {"bump_tune": 0.5}
_TWICE = ("wice_tune", "defacto_train", "faithdial_tune", "fm2_tune", "q2_tune")
_BINS, _SPARE, _MORE = 5, 20, 1.25

Pair = dict[str, Any]


def missing(pair: Pair) -> int:
    """The share of the claim's content words that its evidence lacks, in fifths."""
    said = [word.stem for word in words(pair["claim"]) if word.is_content]
    found = {word.stem for word in words(pair["evidence"])}
    return round(_BINS * sum(stem not in found for stem in said) / max(1, len(said)))


def balanced(pairs: Sequence[Pair], chance: random.Random) -> list[Pair]:
    """Of each bin of missing words about as many supported as unsupported pairs."""
    bins: dict[int, tuple[list[Pair], list[Pair]]] = defaultdict(lambda: ([], []))
    for pair in pairs:
        bins[missing(pair)][pair["truth"]].append(pair)
    drawn: list[Pair] = []
    for _, both in sorted(bins.items()):
        most = int(_MORE * min(map(len, both))) + _SPARE
        for each in both:
            drawn += chance.sample(each, min(len(each), most))
    return drawn


def others(pairs: Sequence[Pair], chance: random.Random) -> list[Pair]:
    """The pairs that nobody wrote, by their shares."""
    drawn: list[Pair] = []
    for pair in pairs:
        share = _SHARES.get(pair["origin"], _SUPPORTED_SHARES.get(pair["origin"], 1.0) if pair["truth"] else 1.0)
        drawn += [pair] if chance.random() < share else []
        drawn += [pair] if pair["origin"] in _TWICE and chance.random() < 0.5 else []
    return drawn


def main() -> None:
    """Writes the drawn pairs, shuffled."""
    parser = argparse.ArgumentParser(description="Draws pairs whose labels missing words do not give away.")
    parser.add_argument("pairs", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    chance = random.Random(5)  # noqa: S311
    pairs = [json.loads(line) for line in given.pairs.read_text(encoding="utf-8").splitlines()]
    written = [pair for pair in pairs if pair["origin"] == "written"]
    drawn = balanced(written, chance) + others([pair for pair in pairs if pair["origin"] != "written"], chance)
    chance.shuffle(drawn)
    given.out.write_text("".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in drawn), encoding="utf-8")
    print(f"{len(drawn)} pairs, {sum(pair['truth'] for pair in drawn)} of them supported")


if __name__ == "__main__":
    main()
