"""Fine-tunes a MiniLM encoder to tell whether evidence supports a claim, with a lexical match flag for every token.

    python -m training.train PAIRS BASE OUT [--epochs 1] [--rate 1.2e-4] [--first WEIGHTS] [--origins NAME[=SHARE] ...]

The encoder reads "[CLS] claim [SEP] evidence [SEP]" as a cross-encoder. Its token types say more than BERT's two
segments: see `proxy.evidence.pairs`. It learns two things at once: from the first token whether the claim is supported,
and from the claim's tokens which of them make it wrong, where that is known. Needs torch, transformers and tokenizers.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import nn

from training.batches import Batch, Example, batches, padded, read_examples
from training.verifier import Verifier

_WARM_UP = 0.06  # of the steps
_TOKEN_SHARE, _WRONG_WEIGHT = 0.5, 4.0  # what the tokens count beside the pair, and a wrong one beside a right one
_TOLD, _STORED = 20, 400  # steps


def main() -> None:
    """Trains, tells how it goes, and stores the weights."""
    given = _arguments()
    torch.manual_seed(0)
    chance = random.Random(0)  # noqa: S311
    examples = read_examples(given.pairs, _tokenizer(given.base))
    steps = _steps(_drawn(examples, _shares(given.origins), chance), given.epochs, chance)
    model = Verifier(given.base)
    if given.first:
        model.load_state_dict(torch.load(given.first))
    train(model, steps, given.rate, given.last_rate, given.out)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fine-tunes an encoder on training pairs.")
    parser.add_argument("pairs", type=Path)
    parser.add_argument("base", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--rate", type=float, default=1.2e-4)
    parser.add_argument("--first", type=Path, help="weights to go on from")
    parser.add_argument("--last-rate", type=float, default=0.0, help="what part of the rate is left at the end")
    parser.add_argument(
        "--origins",
        nargs="*",
        default=[],
        help="kinds of pairs to take, each with the share of it that is taken, as in perturbed=0.1",
    )
    return parser.parse_args()


def _tokenizer(base: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _shares(origins: Sequence[str]) -> dict[str, float]:
    return {name: float(share or 1) for name, _, share in (each.partition("=") for each in origins)}


def _drawn(examples: Sequence[Example], shares: Mapping[str, float], chance: random.Random) -> list[Example]:
    """The share of each origin's examples that is asked for; all of them when no origin is."""
    return [each for each in examples if not shares or chance.random() < shares.get(each.origin, 0)]


def _steps(examples: Sequence[Example], epochs: float, chance: random.Random) -> list[list[Example]]:
    """The batches of so many epochs, in new batches and a new order each time."""
    whole = math.ceil(epochs)
    steps = [batch for _ in range(whole) for batch in batches(examples, chance)]
    return steps[: int(len(steps) * epochs / whole)]


def train(model: Verifier, steps: Sequence[Sequence[Example]], rate: float, last_rate: float, out: Path) -> None:
    """Takes every step once; the rate rises at first, then falls to its part `last_rate`. Stores the weights."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda at: min(1.0, (at + 1) / (_WARM_UP * len(steps))) * (1 - (1 - last_rate) * at / len(steps))
    )
    start, seen, right, count, lost = time.time(), 0, 0.0, 0, 0.0
    for at, examples in enumerate(steps, start=1):
        batch = padded(examples)
        loss, correct = _losses(model, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        seen, right = seen + batch.ids.numel(), right + correct
        count, lost = count + len(examples), lost + loss.item()
        if at % _TOLD == 0 or at == len(steps):
            passed = time.time() - start
            progress = f"{at}/{len(steps)} loss {lost / _TOLD:.3f} right {right / count:.3f}"
            print(f"{progress} {seen / passed:.0f} tokens/s {passed:.0f} s", flush=True)
            right, count, lost = 0.0, 0, 0.0
        if at % _STORED == 0 or at == len(steps):
            torch.save(model.state_dict(), out)


def _losses(model: Verifier, batch: Batch) -> tuple[torch.Tensor, float]:
    """The loss of a batch, and how many of its pairs are told right."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        pair, token = model(batch.ids, batch.mask, batch.types)
    loss = nn.functional.binary_cross_entropy_with_logits(pair.float(), batch.truth)
    known = batch.wrong >= 0
    if known.any():
        wrong = batch.wrong[known]
        weight = torch.where(wrong > 0, _WRONG_WEIGHT, 1.0)
        loss = loss + _TOKEN_SHARE * nn.functional.binary_cross_entropy_with_logits(token.float()[known], wrong, weight)
    return loss, float(((pair > 0).float() == batch.truth).sum())


if __name__ == "__main__":
    main()
