"""Examples as tokens, and batches of them as tensors."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from tokenizers import Tokenizer

from groundwire.backends.pairs import claim_first_matched
from training.example import SUPPORTED, Example, Span

UNKNOWN = -1.0
"""The label of a token of which nobody knows whether it is wrong."""
MAX_TOKENS = 256  # of a pair
_BATCH_TOKENS = 4096  # padding included
STEP = 16
"""Batches are padded to a multiple of it: a processor compiles its products for each new length."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """An example as tokens: ids, types, and for each whether it is wrong (1), right (0) or unknown (-1)."""

    ids: Sequence[int]
    types: Sequence[int]
    wrong: Sequence[float]
    label: int
    weight: float
    origin: str


class Batch(NamedTuple):
    """Examples as tensors: `ids`, `mask`, `types` and `wrong` (pairs, tokens), `label` and `weight` (pairs)."""

    ids: torch.Tensor
    mask: torch.Tensor
    types: torch.Tensor
    wrong: torch.Tensor
    label: torch.Tensor
    weight: torch.Tensor


def load_tokenizer(base: Path) -> Tokenizer:
    """Load the tokenizer of a folder, which then takes special tokens in a text for text."""
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True
    return tokenizer


def tokenized(examples: Iterable[Example], tokenizer: Tokenizer) -> Iterator[Tokens]:
    """Yield examples as tokens."""
    for each in examples:
        pair = claim_first_matched(tokenizer, each.claim, each.lead, each.evidence, MAX_TOKENS)
        wrong = [_wrong(each, place) for place in pair.places]
        yield Tokens(pair.ids, pair.types, wrong, each.label, each.weight, each.origin)


def _wrong(example: Example, place: Span | None) -> float:
    if place is None or example.wrong is None:
        return UNKNOWN
    if example.label == SUPPORTED:
        return 0.0
    return float(any(low < place[1] and place[0] < high for low, high in example.wrong))


def batches(examples: Sequence[Tokens], chance: random.Random) -> list[list[Tokens]]:
    """Put examples of about one length into batches, in random order."""
    found: list[list[Tokens]] = [[]]
    for each in sorted(examples, key=lambda each: len(each.ids) + chance.random() * 10):
        if (len(found[-1]) + 1) * (-(-len(each.ids) // STEP) * STEP) > _BATCH_TOKENS:
            found.append([])
        found[-1].append(each)
    chance.shuffle(found)
    return found


def padded(batch: Sequence[Tokens]) -> Batch:
    """Return a batch as tensors, all of one length."""
    longest = -(-max(len(each.ids) for each in batch) // STEP) * STEP
    return Batch(
        ids=torch.tensor([_filled(each.ids, 0, longest) for each in batch]),
        mask=torch.tensor([_filled([1] * len(each.ids), 0, longest) for each in batch]),
        types=torch.tensor([_filled(each.types, 0, longest) for each in batch]),
        wrong=torch.tensor([_filled(each.wrong, UNKNOWN, longest) for each in batch]),
        label=torch.tensor([each.label for each in batch]),
        weight=torch.tensor([each.weight for each in batch]),
    )


def _filled(values: Sequence[float], filler: float, length: int) -> list[float]:
    return [*values, *[filler] * (length - len(values))]
