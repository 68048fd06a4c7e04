"""Makes the training pairs: claims beside the evidence that the product itself would align them with.

    python -m training.pairs DATA OUT [--written training/written.jsonl.gz]

DATA is a folder of labelled answers, one JSONL file a set. Three kinds of claims: of labelled answers, written by us on
passages of the same texts, and made wrong or put otherwise by rules. Each line of OUT is a pair.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from training.labelled import labelled
from training.pair import Pair, Span, changed
from training.perturb import SAME, WRONG, with_invention
from training.sentences import sentences
from training.written import read_written, written


def main() -> None:
    """Writes the pairs, shuffled, and prints how many there are of each origin and label."""
    parser = argparse.ArgumentParser(description="Makes the training pairs.")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--written", type=Path, help="the claims that we wrote")
    parser.add_argument("--sentences", type=int, default=5000, help="how many sentences of the texts to take")
    parser.add_argument("--repeat", type=int, default=1, help="how often to take the written claims")
    given = parser.parse_args()
    pairs = assembled(given.data, given.written, given.sentences, given.repeat)
    with given.out.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(asdict(pair), ensure_ascii=False) + "\n" for pair in pairs)
    print(len(pairs), sorted(Counter((pair.origin, pair.truth) for pair in pairs).items()))


def assembled(data: Path, own_file: Path | None, count: int, repeat: int) -> list[Pair]:
    """All pairs in random order, always the same one as long as strings hash alike (PYTHONHASHSEED)."""
    chance = random.Random(3)  # noqa: S311
    known = list(labelled(data))
    ours = read_written(own_file, data) if own_file else []
    rounds = [list(written(ours, chance)) for _ in range(repeat)]
    sound = [pair for pair in known + rounds[0] if pair.truth]
    taken = sentences(data, chance, count)
    made = [*perturbed(sound, chance, wrong=2, same=1), *perturbed(taken, chance, wrong=2, same=2)]
    every = [*known, *(pair for each in rounds for pair in each), *made, *chance.sample(taken, len(taken) // 3)]
    chance.shuffle(every)
    return every


def perturbed(base: Sequence[Pair], chance: random.Random, wrong: int, same: int) -> Iterator[Pair]:
    """What the rules make of supported claims: up to `wrong` false ones and `same` true ones of each."""
    for pair in base:
        for other in _wrong(pair, base, chance, wrong):
            bad: list[Span] | None = changed(pair.claim, other)
            if chance.random() < 0.35:
                other, bad = _dressed(other, pair.evidence, bad, chance)
            yield Pair(other, pair.evidence, 0, "perturbed", bad)
        for other in _same(pair, chance, same):
            yield Pair(other, pair.evidence, 1, "same")


def _wrong(pair: Pair, base: Sequence[Pair], chance: random.Random, count: int) -> set[str]:
    made: set[str] = set()
    if chance.random() < 0.15:
        made.add(with_invention(pair.claim, chance.choice(base).claim, chance) or pair.claim)
    for rule in chance.sample(WRONG, len(WRONG)):
        if len(made) >= count:
            break
        if (other := rule(pair.claim, pair.evidence, chance)) and other != pair.claim:
            made.add(other)
    return made - {pair.claim}


def _same(pair: Pair, chance: random.Random, count: int) -> list[str]:
    made: list[str] = []
    for rule in chance.sample(SAME, len(SAME)):
        if len(made) >= count:
            break
        if (other := rule(pair.claim, pair.evidence, chance)) and other != pair.claim:
            made.append(other)
    return made


def _dressed(text: str, evidence: str, bad: list[Span] | None, chance: random.Random) -> tuple[str, list[Span] | None]:
    """A wrong claim put otherwise as well, so that rewording is no sign of truth."""
    other = chance.choice(SAME)(text, evidence, chance)
    return (other, None) if other else (text, bad)


if __name__ == "__main__":
    main()
