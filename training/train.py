"""Train the entailment model.

    python -m training.train CLAIMS PUBLIC BASE RUN [--passes 6] [--rate 2e-4] [--threads 1]
    torchrun --nproc-per-node 2 -m training.train CLAIMS PUBLIC BASE RUN ...

CLAIMS is a folder of claim schemas, PUBLIC the examples that `training.public` wrote, BASE the encoder to start from,
RUN a folder for checkpoints and the log. A run that was interrupted goes on with the pass that it was in. The schemas
are read again towards the end of each pass, for the next one. Processes that torchrun starts train on other examples
each, take the mean of their weights every 20 steps, and write to RUN/0, RUN/1 and so on.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import distributed
from torch.nn import functional

from groundwire.backends.pairs import CLAIM, MISSING
from training.batches import Batch, Tokens, batches, load_tokenizer, padded, tokenized
from training.corpus import draw_examples, unrelated
from training.edits import with_edits
from training.evaluate import figures, score
from training.example import SUPPORTED, Example
from training.model import Judge, from_base
from training.schemas import read_schemas

_WARM_UP = 60  # steps
_DECAY = 0.998  # of the average of the weights, per step
_TOKEN_SHARE, _WRONG_WEIGHT, _SMOOTHING = 0.3, 3.0, 0.04
_LOG_EVERY, _STORE_EVERY, _MEAN_EVERY = 50, 200, 20  # steps
_DRAWN_AT = 0.75  # part of a pass after which the examples of the next one are drawn
_UNRELATED = 0.1  # share of the public examples whose evidence is replaced
_EDITED, _EDITED_PUBLIC = 0.4, 0.7  # shares of the supported examples that are also edited, where that is possible
_MAX_SHARE = 2.5
_SEEDS_APART = 500  # seeds of two processes


@dataclass(frozen=True, slots=True)
class Plan:
    """The inputs and the length of a training run."""

    claims: Path
    public: Path
    base: Path
    run: Path
    passes: int
    rate: float
    final: float
    share: float
    shares: Mapping[str, float]
    minutes: float
    frozen: int
    seed: int
    bf16: bool
    started: float
    start: Path | None


def main() -> None:
    """Train, and write the log and the weights."""
    parser = argparse.ArgumentParser(description="Trains the entailment model.")
    for name in ("claims", "public", "base", "run"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--passes", type=int, default=6)
    parser.add_argument("--rate", type=float, default=2e-4, help="the highest learning rate")
    parser.add_argument("--final", type=float, default=0.03, help="the part of the rate that is left at the end")
    parser.add_argument("--share", type=float, default=0.3, help="the share of the public examples in each pass")
    parser.add_argument(
        "--shares",
        nargs="*",
        default=[],
        metavar="NAME=SHARE",
        help="the share, in each pass, of schemas of files whose name begins so, a regular expression; the first that "
        "fits, else all; and of the public examples of the set of this name, instead of --share",
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="end by then, with the rate falling in time")
    parser.add_argument("--weights", type=Path, help="weights to go on from")
    parser.add_argument("--frozen", type=int, default=-1, help="layers that stay as they are, with the embeddings")
    parser.add_argument("--seed", type=int, default=0, help="another one draws other values and other public examples")
    parser.add_argument(
        "--bf16", action="store_true", help="multiply in bfloat16: three times as fast where the CPU can"
    )
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    rank = int(os.environ.get("RANK", "0"))
    run = given.run / str(rank) if "RANK" in os.environ else given.run
    shares = {name: float(share) for name, _, share in (each.partition("=") for each in given.shares)}
    plan = Plan(
        given.claims,
        given.public,
        given.base,
        run,
        given.passes,
        given.rate,
        given.final,
        given.share,
        shares,
        given.minutes,
        given.frozen,
        given.seed + rank * _SEEDS_APART,
        given.bf16,
        time.time(),
        given.weights,
    )
    train(plan, Peers())


def examples_of(plan: Plan, at: int) -> list[Tokens]:
    """Return the examples of pass `at` as tokens: every claim of the training schemas, and some public ones."""
    at += plan.seed
    chance = random.Random(1000 + at)  # noqa: S311
    public = [Example(**json.loads(line)) for line in plan.public.open(encoding="utf-8")]
    public = [each for each in public if chance.random() < plan.shares.get(each.origin, plan.share)]
    labelled = list(_with_unrelated(public, chance))
    every = read_schemas(plan.claims, "training")
    schemas = [each for each in every if chance.random() < _share(plan, each.origin)]
    drawn = list(draw_examples(schemas, at))
    examples = [*with_edits(labelled, _EDITED_PUBLIC, chance), *with_edits(drawn, _EDITED, chance)]
    return decorrelated(list(tokenized(examples, load_tokenizer(plan.base))))


def _share(plan: Plan, origin: str) -> float:
    return next((share for name, share in plan.shares.items() if re.match(name, origin)), 1.0)


def _with_unrelated(examples: Sequence[Example], chance: random.Random) -> Iterator[Example]:
    """Yield the examples; some have evidence of another claim of the same set."""
    by_origin: dict[str, list[Example]] = defaultdict(list)
    for each in examples:
        by_origin[each.origin].append(each)
    for each in examples:
        others = [
            other.evidence for other in chance.sample(by_origin[each.origin], min(6, len(by_origin[each.origin])))
        ]
        others = [text for text in others if text != each.evidence]
        yield unrelated(each, others, chance) if others and chance.random() < _UNRELATED else each


def decorrelated(examples: Sequence[Tokens]) -> list[Tokens]:
    """Return the examples with weights under which the share of a claim's words in its evidence says less of its label.

    The weights under which it would say nothing, by their square root: some of it holds for real answers too.
    """
    keys = [(each.label == SUPPORTED, _overlap(each)) for each in examples]
    both, right, near = Counter(keys), Counter(key[0] for key in keys), Counter(key[1] for key in keys)
    share = {key: right[key[0]] * near[key[1]] / (count * len(keys)) for key, count in both.items()}
    return [
        replace(each, weight=each.weight * min(_MAX_SHARE, math.sqrt(share[key])))
        for each, key in zip(examples, keys, strict=True)
    ]


def _overlap(example: Tokens) -> int:
    """Return the bucket, 0 to 5, of the share of the claim's tokens whose word is in the evidence."""
    missing = sum(each == MISSING for each in example.types)
    return round(5 * (1 - missing / (missing + sum(each == CLAIM for each in example.types))))


class Peers:
    """The processes that train together, this one alone unless torchrun started it.

    `ended` is whether one of them has finished; then all do.
    """

    def __init__(self) -> None:
        self.ended = False
        if "RANK" in os.environ:
            distributed.init_process_group("gloo")

    def average(self, model: Judge, *, ends: bool = False) -> None:
        """Set the trained weights to their mean over all processes, each of which has to call this."""
        if not distributed.is_initialized():
            return
        trained = [each.data for each in model.parameters() if each.requires_grad]
        flat = torch.cat([*(each.flatten() for each in trained), torch.tensor([float(ends)])])
        distributed.all_reduce(flat)
        *means, ended = (flat / distributed.get_world_size()).split([*(each.numel() for each in trained), 1])
        for own, mean in zip(trained, means, strict=True):
            own.copy_(mean.view_as(own))
        self.ended = bool(ended)


def train(plan: Plan, peers: Peers) -> None:
    """Run all passes that are left, and store the state after each and every few minutes."""
    torch.manual_seed(plan.seed)
    plan.run.mkdir(parents=True, exist_ok=True)
    names = ("seed", "rate", "final", "share", "shares", "passes", "minutes", "frozen", "bf16")
    _log(plan.run, {name: getattr(plan, name) for name in names} | {"start": str(plan.start or plan.base)})
    model = from_base(plan.base)
    if plan.start:
        model.load_state_dict(torch.load(plan.start))
    average = {name: value.detach().clone() for name, value in model.state_dict().items()}
    _freeze(model, plan.frozen)
    optimizer = torch.optim.AdamW(_groups(model), lr=plan.rate, fused=True)
    first, steps = _restore(plan.run, model, average, optimizer)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        coming = pool.submit(examples_of, plan, first)
        for at in range(first, plan.passes):
            found = coming.result()

            def draw_next(following: int = at + 1) -> None:
                nonlocal coming
                coming = pool.submit(examples_of, plan, following)

            every = batches(found, random.Random(at))  # noqa: S311
            steps = _one_pass(plan, peers, at, every, steps, model, average, optimizer, draw_next)
            state = {"at": at + 1, "steps": steps, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, plan.run / "last.pt")
            torch.save(average, plan.run / "average.pt")
            _log(plan.run, {"pass": at + 1, "examples": len(found)} | _measured(plan, model, average))
            if peers.ended or (time.time() - plan.started) / 60 >= plan.minutes:
                coming.cancel()
                break
    if not peers.ended:
        peers.average(model, ends=True)


def _one_pass(
    plan: Plan,
    peers: Peers,
    at: int,
    every: Sequence[Sequence[Tokens]],
    steps: int,
    model: Judge,
    average: dict[str, torch.Tensor],
    optimizer: torch.optim.Optimizer,
    draw_next: Callable[[], None],
) -> int:
    """Take a step with every batch. The rate rises at first and falls with the cosine over all passes."""
    model.train()
    start, tokens, lost = time.time(), 0, 0.0
    for step, examples in enumerate(every, start=1):
        done = max((at + step / len(every)) / plan.passes, (time.time() - plan.started) / 60 / plan.minutes)
        if peers.ended or (done >= 1 and step < len(every)):
            return steps
        rate = plan.rate * (plan.final + (1 - plan.final) * 0.5 * (1 + math.cos(math.pi * done)))
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (steps + 1) / _WARM_UP)
        batch = padded(examples)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=plan.bf16):
            label, token = model(batch.ids, batch.mask, batch.types)
        loss = _loss(label.float(), token.float(), batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        steps += 1
        if steps % _MEAN_EVERY == 0:
            peers.average(model)
        _blend(average, model, min(_DECAY, (steps + 1) / (steps + 10)))
        tokens, lost = tokens + int(batch.mask.sum()), lost + loss.item()
        if step % _LOG_EVERY == 0:
            pace = tokens / (time.time() - start)
            entry = {"pass": at + 1, "step": step, "of": len(every), "loss": round(lost / _LOG_EVERY, 4)}
            _log(plan.run, entry | {"tokens_per_s": round(pace), "rate": round(rate, 6)})
            lost = 0.0
        if at + 1 < plan.passes and step == round(_DRAWN_AT * len(every)):
            draw_next()
        if step % _STORE_EVERY == 0:
            torch.save(average, plan.run / "average.pt")
    return steps


def _loss(label: torch.Tensor, token: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return the loss of a batch's outputs: of its labels, and of the tokens whose label is known."""
    likely = functional.log_softmax(label, dim=1)
    either = torch.logsumexp(likely[:, 1:], dim=1, keepdim=True)
    own = torch.cat([likely, either], dim=1).gather(1, batch.label[:, None]).squeeze(1)
    smooth = likely.mean(1)
    losses = -(1 - _SMOOTHING) * own - _SMOOTHING * smooth
    loss = (losses * batch.weight).sum() / batch.weight.sum()
    claimed = batch.wrong[:, : token.shape[1]]
    known = claimed >= 0
    if known.any():
        wrong = claimed[known]
        weight = torch.where(wrong > 0, _WRONG_WEIGHT, 1.0)
        loss = loss + _TOKEN_SHARE * functional.binary_cross_entropy_with_logits(token[known], wrong, weight)
    return loss


def _groups(model: Judge) -> list[dict[str, object]]:
    """Put the parameters into groups: no weight decay for vectors."""
    trained = [each for each in model.parameters() if each.requires_grad]
    decayed = [each for each in trained if each.dim() > 1]
    others = [each for each in trained if each.dim() <= 1]
    return [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]


def _freeze(model: Judge, layers: int) -> None:
    """Keep the embeddings and the lowest layers as they are, none of them where `layers` is negative."""
    if layers < 0:
        return
    for part in (model.words, model.positions, model.types, model.norm, *model.layers[:layers]):
        part.requires_grad_(requires_grad=False)


def _blend(average: dict[str, torch.Tensor], model: Judge, decay: float) -> None:
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.requires_grad:
                average[name].lerp_(value, 1 - decay)


def _restore(
    run: Path, model: Judge, average: dict[str, torch.Tensor], optimizer: torch.optim.Optimizer
) -> tuple[int, int]:
    """Take up the state of an interrupted run, if there is one. Returns the pass to begin with and the steps taken."""
    if not (run / "last.pt").exists():
        return 0, 0
    state = torch.load(run / "last.pt")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    average.update(torch.load(run / "average.pt"))
    return state["at"], state["steps"]


def _measured(plan: Plan, model: Judge, average: dict[str, torch.Tensor]) -> dict[str, float]:
    """Measure the averaged weights on the schemas kept for development."""
    averaged = Judge(model.shape)
    averaged.load_state_dict(average)
    schemas = list(read_schemas(plan.claims, "development"))
    examples = list(tokenized(draw_examples(schemas, 7, plain=True), load_tokenizer(plan.base)))
    return figures(score(averaged, examples, bf16=plan.bf16))


def _log(run: Path, entry: Mapping[str, object]) -> None:
    with (run / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps(entry) + "\n")


if __name__ == "__main__":
    main()
