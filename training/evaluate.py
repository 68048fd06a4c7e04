"""Measure a model on schemas that it was not trained on.

python -m training.evaluate WEIGHTS BASE CLAIMS [--part held_out] [--forms 4]
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from tokenizers import Tokenizer

from training.batches import Tokens, batches, load_tokenizer, padded, tokenized
from training.corpus import draw_examples, selected, unrelated
from training.example import CONTRADICTED, NOT_SUPPORTED, SUPPORTED, UNSUPPORTED, Example
from training.model import Judge, shape_of
from training.schemas import read_schemas


class Scored(NamedTuple):
    """The answer to an example, its probability of support and the likeliest label, with its true label and origin."""

    support: float
    guess: int
    label: int
    origin: str


def main() -> None:
    """Print the figures as JSON, over all schemas and by file."""
    parser = argparse.ArgumentParser(description="Measures a model on schemas it was not trained on.")
    for name in ("weights", "base", "claims"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--part", default="held_out")
    parser.add_argument("--forms", type=int, default=4)
    parser.add_argument("--bf16", action="store_true", help="multiply in bfloat16")
    given = parser.parse_args()
    model = Judge(shape_of(given.base))
    model.load_state_dict(torch.load(given.weights))
    schemas = list(read_schemas(given.claims, given.part))
    tokenizer = load_tokenizer(given.base)
    drawn = list(draw_examples(schemas, 7, given.forms, plain=True))
    scored = score(model, list(tokenized(drawn, tokenizer)), bf16=given.bf16)
    found = {
        "all": figures(scored),
        "unrelated": {"supported": supported_share(model, swapped(drawn), tokenizer)},
    }
    for origin in sorted({each.origin for each in scored}):
        found[origin] = figures([each for each in scored if each.origin == origin])
    print(json.dumps(found, indent=1))


def swapped(examples: Sequence[Example]) -> list[Example]:
    """Return claims with evidence of other schemas, a tenth of them: none is supported."""
    chance = random.Random(5)  # noqa: S311
    chosen = chance.sample(examples, len(examples) // 10)
    return [
        selected(unrelated(each, [other.evidence for other in chance.sample(examples, 6)], chance)) for each in chosen
    ]


def supported_share(model: Judge, examples: Sequence[Example], tokenizer: Tokenizer) -> float:
    """Return the share (0–1) of the claims that the model calls supported."""
    scored = score(model, list(tokenized(examples, tokenizer)))
    return round(sum(each.guess == SUPPORTED for each in scored) / max(1, len(scored)), 4)


def figures(scored: Sequence[Scored]) -> dict[str, float]:
    """Return accuracy over three labels, and AUROC of support against the others and against each of them."""
    right = [each.support for each in scored if each.label == SUPPORTED]

    def against(*labels: int) -> float:
        return round(auroc(right, [each.support for each in scored if each.label in labels]), 4)

    return {
        "claims": len(scored),
        "accuracy": round(sum(each.guess == each.label for each in scored) / max(1, len(scored)), 4),
        "auroc": against(CONTRADICTED, UNSUPPORTED, NOT_SUPPORTED),
        "contradicted": against(CONTRADICTED),
        "unsupported": against(UNSUPPORTED),
    }


def score(model: Judge, examples: Sequence[Tokens], *, bf16: bool = False) -> list[Scored]:
    """Return the answer of a model to each example, in any order."""
    model.eval()
    found: list[Scored] = []
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
        for batch in batches(examples, random.Random(0)):  # noqa: S311
            tensors = padded(batch)
            label, _ = model(tensors.ids, tensors.mask, tensors.types)
            likely = torch.softmax(label.float(), dim=1)
            answers = zip(batch, likely[:, 0].tolist(), likely.argmax(1).tolist(), strict=True)
            found += [Scored(support, guess, each.label, each.origin) for each, support, guess in answers]
    return found


def auroc(right: Sequence[float], wrong: Sequence[float]) -> float:
    """Return the probability that a right one scores higher than a wrong one; ties count by half."""
    if not right or not wrong:
        return 0.5
    ranked = sorted([(score, 1) for score in right] + [(score, 0) for score in wrong])
    ranks, at = 0.0, 0
    while at < len(ranked):
        end = at
        while end < len(ranked) and ranked[end][0] == ranked[at][0]:
            end += 1
        ranks += (at + 1 + end) / 2 * sum(label for _, label in ranked[at:end])
        at = end
    return (ranks - len(right) * (len(right) + 1) / 2) / (len(right) * len(wrong))


if __name__ == "__main__":
    main()
