"""Write the static vectors of word pieces that select the evidence for a claim.

    python -m training.vectors BASE CLAIMS OUT

The vector of a piece is what the sentence encoder BASE makes of it alone, less the mean of all, reduced to `SIZE`
principal components, without the first one. Its length is the inverse document frequency of the piece among the
passages of the schemas in CLAIMS. OUT is the folder of the model.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

from groundwire.backends.vectors import FILE
from groundwire.domain import Source
from groundwire.evidence.index import Context
from training.batches import load_tokenizer
from training.model import from_base
from training.schemas import read_schemas

SIZE = 128
_BATCH = 512
_HIGHEST = 127  # of the whole numbers that stand for the values of a row


def main() -> None:
    """Write the rows and their factors."""
    parser = argparse.ArgumentParser(description="Writes static vectors of word pieces.")
    for name in ("base", "claims", "out"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    rows = reduced(encoded(given.base)) * frequencies(given.base, given.claims)[:, None]
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


def frequencies(base: Path, claims: Path) -> NDArray[np.float32]:
    """Return the inverse document frequency of each piece, by passages."""
    tokenizer, counts, passages = load_tokenizer(base), Counter[int](), 0
    for schema in read_schemas(claims, "training"):
        for each in Context([Source("s", "source", schema.evidence[0])]).passages:
            passages += 1
            counts.update(set(tokenizer.encode(each.text, add_special_tokens=False).ids))
    every = range(tokenizer.get_vocab_size())
    return np.array([math.log((passages + 1) / (counts[id_] + 1)) for id_ in every], np.float32)


if __name__ == "__main__":
    main()
