"""Write the static vectors of word pieces that select the evidence for a claim.

    python -m training.vectors BASE CLAIMS OUT

The vector of a piece is what the sentence encoder BASE makes of it alone, less the mean of all, reduced to `SIZE`
principal components, without the first one. Its length is the inverse document frequency of the piece among the
passages of the schemas in CLAIMS. One pass over claims that are grouped by facts then moves the vectors such that a
claim is closest to the passage that states its fact: the passage that has nearly all words of another claim about the
fact, and far more than any other passage. OUT is the folder of the model.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

from groundwire.backends.pairs import WordPiece
from groundwire.backends.vectors import FILE
from groundwire.domain import Source
from groundwire.evidence.index import Context
from groundwire.text.reading import read_claim
from groundwire.verifiers.selection import plain_text
from groundwire.verifiers.signals import known_places
from training.batches import load_tokenizer
from training.model import from_base, shape_of
from training.schemas import Schema, fill, read_schemas

SIZE = 128
_BATCH = 512
_HIGHEST = 127  # of the whole numbers that stand for the values of a row
_FEWEST, _MOST = 4, 40  # passages of a text
_LEAST_SHARE, _LEAST_LEAD = 0.7, 0.25  # of a claim's words in the passage that states it, and before the next one
_WEIGHTS = {"supported": 1.0, "contradicted": 0.7, "unsupported": 0.4}
_PAIRS, _RATE, _DROPPED = 32, 0.01, 0.3


def main() -> None:
    """Write the rows and their factors."""
    parser = argparse.ArgumentParser(description="Writes static vectors of word pieces.")
    for name in ("base", "claims", "out"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    tokenizer = WordPiece(json.loads((given.base / "tokenizer.json").read_text(encoding="utf-8")))
    schemas = list(read_schemas(given.claims, "training"))
    first = reduced(encoded(given.base)) * frequencies(schemas, tokenizer, given.base)[:, None]
    rows = tuned(first, [pair for schema in schemas for pair in pairs(schema, tokenizer)])
    scales = np.abs(rows).max(axis=1, keepdims=True) / _HIGHEST
    np.savez(given.out / FILE, rows=np.rint(rows / scales).astype(np.int8), scales=scales[:, 0].astype(np.float32))


def encoded(base: Path) -> NDArray[np.float32]:
    """Return what the encoder makes of each piece of its vocabulary alone, (pieces, hidden)."""
    model, tokenizer = from_base(base).eval(), load_tokenizer(base)
    segments = load_file(base / "model.safetensors")["embeddings.token_type_embeddings.weight"]
    model.types.weight.data[:] = segments[0]
    begin, end = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    found = []
    with torch.no_grad():
        for at in range(0, model.shape.words, _BATCH):
            ids = torch.tensor([[begin, id_, end] for id_ in range(at, min(model.shape.words, at + _BATCH))])
            hidden = model.norm(
                model.words(ids) + model.positions(torch.arange(3)) + model.types(torch.zeros_like(ids))
            )
            for layer in model.layers:
                hidden = layer(hidden, None)
            found.append(hidden.mean(1))
    return torch.cat(found).numpy()


def reduced(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the vectors with `SIZE` components, of length 1."""
    centred = vectors - vectors.mean(axis=0)
    _, _, components = np.linalg.svd(centred, full_matrices=False)
    found = centred @ components[1 : 1 + SIZE].T
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def frequencies(schemas: Sequence[Schema], tokenizer: WordPiece, base: Path) -> NDArray[np.float32]:
    """Return the inverse document frequency of each piece, by passages."""
    counts, passages = Counter[int](), 0
    for schema in schemas:
        for each in Context([Source("s", "source", schema.evidence[0])]).passages:
            passages += 1
            counts.update(set(tokenizer.ids(plain_text(each.text))))
    return np.array([math.log((passages + 1) / (counts[id_] + 1)) for id_ in range(shape_of(base).words)], np.float32)


class Stated(NamedTuple):
    """A claim with its label, and the index of the passage that states its fact, or the contrary of it."""

    label: str
    claim: str
    place: int


def stated(schema: Schema) -> tuple[Context, list[Stated]]:
    """Return the evidence of a schema, and the claims about each fact that one of them finds by its words."""
    values, others = schema.draw(random.Random(0))  # noqa: S311
    context, found = Context([Source("s", "source", fill(schema.evidence[0], values, others))]), []
    for fact in schema.facts if _FEWEST <= len(context.passages) <= _MOST else ():
        claims = [(label, plain_text(fill(text, values, others))) for label, text in fact]
        near = max((_nearest(text, context) for label, text in claims if label == "supported"), default=None)
        if near and near.share >= _LEAST_SHARE:
            found += [Stated(label, text, near.place) for label, text in claims if text != near.claim]
    return context, found


class Pair(NamedTuple):
    """A claim and the passages of its text as pieces, the index of the one that states its fact, and a weight."""

    claim: Sequence[int]
    passages: Sequence[Sequence[int]]
    target: int
    weight: float


def pairs(schema: Schema, tokenizer: WordPiece) -> Iterator[Pair]:
    """Yield the claims of a schema with their passages as pieces."""
    context, claims = stated(schema)
    passages = [tokenizer.ids(plain_text(each.text)) or [0] for each in context.passages] if claims else []
    for label, claim, place in claims:
        yield Pair(tokenizer.ids(claim) or [0], passages, place, _WEIGHTS[label])


class _Near(NamedTuple):
    share: float
    place: int
    claim: str


def _nearest(claim: str, context: Context) -> _Near:
    """Return the passage with most words of a claim, and their share; 0 if another one has nearly as many."""
    reading = read_claim(claim)
    count = max(1, len(reading.content))
    shares = [(len(known_places(reading, each)) / count, each.place) for each in context.passages]
    (most, place), (second, _) = sorted(shares, key=lambda each: (-each[0], each[1]))[:2]
    return _Near(most if most - second >= _LEAST_LEAD else 0.0, place, claim)


def tuned(rows: NDArray[np.float32], given: list[Pair]) -> NDArray[np.float32]:
    """Return the vectors after one pass over all pairs, with a share of the pieces of each text left out."""
    chance = random.Random(0)  # noqa: S311
    table = nn.EmbeddingBag.from_pretrained(torch.tensor(rows), freeze=False, mode="sum")
    sharpness = nn.Parameter(torch.tensor(8.0))
    optimizer = torch.optim.Adam([{"params": table.weight, "lr": _RATE}, {"params": sharpness, "lr": 0.02}])
    chance.shuffle(given)

    def vectors(texts: Sequence[Sequence[int]]) -> torch.Tensor:
        kept = [[id_ for id_ in text if chance.random() >= _DROPPED] or text for text in texts]
        starts = np.cumsum([0, *map(len, kept[:-1])])
        return functional.normalize(table(torch.tensor([id_ for text in kept for id_ in text]), torch.tensor(starts)))

    for at in range(0, len(given), _PAIRS):
        optimizer.param_groups[0]["lr"] = _RATE * max(0.05, 1 - at / len(given))
        loss = torch.tensor(0.0)
        for pair in given[at : at + _PAIRS]:
            claim, *passages = vectors([pair.claim, *pair.passages])
            likely = sharpness * (torch.stack(passages) @ claim)
            loss = loss + pair.weight * functional.cross_entropy(likely[None], torch.tensor([pair.target]))
        optimizer.zero_grad()
        (loss / _PAIRS).backward()
        optimizer.step()
    return table.weight.detach().numpy()


if __name__ == "__main__":
    main()
