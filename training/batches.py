"""Training pairs as tokens, and batches of them as tensors. Needs torch."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from tokenizers import Tokenizer

from proxy.evidence.pairs import Span, claim_first_matched
from training.pair import Pair

UNKNOWN = -1.0
"""The label of a token of which nobody knows whether it is wrong."""
_TOKENS = 6144  # in a batch, padding included
_LONGEST = 256  # tokens of a pair
_STEP = 16  # batches are padded to a multiple of it


@dataclass(frozen=True, slots=True)
class Example:
    """The tokens of a pair: their ids, types and labels (1 wrong, 0 not, -1 unknown); whether the pair is supported."""

    ids: Sequence[int]
    types: Sequence[int]
    wrong: Sequence[float]
    truth: float
    origin: str


class Batch(NamedTuple):
    """Examples as tensors (pairs, tokens), and `truth` (pairs)."""

    ids: torch.Tensor
    mask: torch.Tensor
    types: torch.Tensor
    wrong: torch.Tensor
    truth: torch.Tensor


def read_examples(path: Path, tokenizer: Tokenizer) -> list[Example]:
    """The pairs of a file as tokens, what is too long cut off."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [_example(Pair(**json.loads(line)), tokenizer) for line in lines]


def _example(pair: Pair, tokenizer: Tokenizer) -> Example:
    read = claim_first_matched(tokenizer, pair.claim, pair.evidence)
    return Example(
        ids=read.ids[:_LONGEST],
        types=read.types[:_LONGEST],
        wrong=[_label(pair, place) for place in read.places[:_LONGEST]],
        truth=float(pair.truth),
        origin=pair.origin,
    )


def _label(pair: Pair, place: Span | None) -> float:
    """Whether a token makes the claim wrong: unknown outside the claim, and where nobody marked what is wrong."""
    if place is None or not (pair.truth or pair.bad):
        return UNKNOWN
    return 0.0 if pair.truth else float(any(low < place[1] and place[0] < high for low, high in pair.bad or ()))


def batches(examples: Sequence[Example], chance: random.Random) -> list[list[Example]]:
    """The examples in batches of about one length, in random order."""
    found: list[list[Example]] = [[]]
    for each in sorted(examples, key=lambda each: len(each.ids) + chance.random() * 12):
        if (len(found[-1]) + 1) * len(each.ids) > _TOKENS:
            found.append([])
        found[-1].append(each)
    chance.shuffle(found)
    return found


def padded(batch: Sequence[Example]) -> Batch:
    """A batch as tensors, all of one length."""
    longest = -(-max(len(each.ids) for each in batch) // _STEP) * _STEP
    return Batch(
        ids=torch.tensor([_filled(each.ids, 0, longest) for each in batch]),
        mask=torch.tensor([_filled([1] * len(each.ids), 0, longest) for each in batch]),
        types=torch.tensor([_filled(each.types, 0, longest) for each in batch]),
        wrong=torch.tensor([_filled(each.wrong, UNKNOWN, longest) for each in batch]),
        truth=torch.tensor([each.truth for each in batch]),
    )


def _filled(values: Sequence[float], filler: float, length: int) -> list[float]:
    return [*values, *[filler] * (length - len(values))]
