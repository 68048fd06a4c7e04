"""The model that is trained: a MiniLM that reads a pair, with three outputs for it and one for each of its tokens."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

from groundwire.backends.pairs import CLAIM, MISSING
from training.batches import STEP

TYPES = 5
"""Token types, see `groundwire.backends.pairs`."""


_DROPPED = 0.1  # share of the channels that a layer does not add while it is trained


class Shape(NamedTuple):
    """The sizes of a BERT encoder."""

    layers: int
    hidden: int
    heads: int
    inner: int
    words: int
    positions: int


class Layer(nn.Module):
    """One layer of a BERT encoder."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.attend = attend
        self.query_key_value = nn.Linear(shape.hidden, 3 * shape.hidden)
        self.attended = nn.Linear(shape.hidden, shape.hidden)
        self.norm_attended = nn.LayerNorm(shape.hidden, eps=1e-12)
        self.inner = nn.Linear(shape.hidden, shape.inner)
        self.outer = nn.Linear(shape.inner, shape.hidden)
        self.norm_outer = nn.LayerNorm(shape.hidden, eps=1e-12)

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None, first: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the hidden states (pairs, tokens, size) after this layer, of the `first` tokens if it is given.

        `mask` is added to the attention.
        """
        query, key, value = self.query_key_value(hidden).split(hidden.shape[-1], dim=-1)
        if first is not None:
            hidden, query = hidden[:, :first], query[:, :first]
        attended = self.attend(query, key, value, mask, self.heads)
        hidden = self.norm_attended(hidden + self._dropped(self.attended(attended)))
        return self.norm_outer(hidden + self._dropped(self.outer(functional.gelu(self.inner(hidden)))))

    def _dropped(self, added: torch.Tensor) -> torch.Tensor:
        """Leave out a share of the channels of each pair in training; dropout by the element is slow on a CPU."""
        if not self.training:
            return added
        kept = torch.rand(added.shape[0], 1, added.shape[2], device=added.device) >= _DROPPED
        return added * (kept / (1 - _DROPPED)).to(added.dtype)


def attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, heads: int
) -> torch.Tensor:
    """Return the sums of values, all (pairs, tokens, size), that each query attends to; `mask` is added to the scores.

    It is written out: torch's fused attention takes half of a training step on a CPU.
    """
    query, key, value = (each.unflatten(-1, (heads, -1)).transpose(1, 2) for each in (query, key, value))
    scores = query / math.sqrt(query.shape[-1]) @ key.transpose(-1, -2)
    if mask is not None:
        scores = scores + mask.to(scores.dtype)
    shares = functional.softmax(scores, dim=-1)
    return (shares.to(value.dtype) @ value).transpose(1, 2).flatten(-2)


class Judge(nn.Module):
    """An encoder with outputs for the three labels of a pair, and for each token that it makes the claim wrong."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.words, shape.hidden)
        self.positions = nn.Embedding(shape.positions, shape.hidden)
        self.types = nn.Embedding(TYPES, shape.hidden)
        self.norm = nn.LayerNorm(shape.hidden, eps=1e-12)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.pooled = nn.Linear(2 * shape.hidden, shape.hidden)
        self.dropout = nn.Dropout(0.1)
        self.label = nn.Linear(shape.hidden, 3)
        self.token = nn.Linear(shape.hidden, 1)

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor | None, types: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-odds of the labels (pairs, 3), and of each of the first tokens being wrong (pairs, claimed).

        `ids`, `mask` (1 for a token, 0 for padding; None without any) and `types` are (pairs, tokens). Claims come
        first, and the last layer computes only as many tokens as the longest of them has.
        """
        places = torch.arange(ids.shape[1], device=ids.device)
        hidden = self.norm(self.words(ids) + self.positions(places) + self.types(types))
        added = None if mask is None else ((1.0 - mask.to(hidden.dtype)) * -10000.0)[:, None, None, :]
        claim = ((types == CLAIM) | (types == MISSING)).to(hidden.dtype)
        claimed = claim.sum(1).max().to(torch.long)
        if self.training:
            claimed = (-(-claimed // STEP) * STEP).clamp(max=ids.shape[1])
        for layer in self.layers[:-1]:
            hidden = layer(hidden, added)
        hidden, claim = self.layers[-1](hidden, added, claimed), claim[:, :claimed]
        mean = (hidden * claim[:, :, None]).sum(1) / claim.sum(1, keepdim=True).clamp(min=1.0)
        pooled = torch.tanh(self.pooled(torch.cat([hidden[:, 0], mean], dim=1)))
        return self.label(self.dropout(pooled)), self.token(hidden).squeeze(-1)


def shape_of(base: Path) -> Shape:
    """Read the sizes of the encoder in a folder."""
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    names = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size")
    return Shape(*(config[name] for name in names), config["max_position_embeddings"])


def from_base(base: Path) -> Judge:
    """Return a model that starts from the encoder in a folder; its token types and outputs are new."""
    model = Judge(shape_of(base))
    stored = load_file(base / "model.safetensors")
    own = model.state_dict()
    own["words.weight"] = stored["embeddings.word_embeddings.weight"]
    own["positions.weight"] = stored["embeddings.position_embeddings.weight"]
    segments = stored["embeddings.token_type_embeddings.weight"]
    own["types.weight"] = segments[:1].repeat(TYPES, 1) + 0.02 * torch.randn(TYPES, segments.shape[1])
    for part in ("weight", "bias"):
        own[f"norm.{part}"] = stored[f"embeddings.LayerNorm.{part}"]
        for at in range(len(model.layers)):
            theirs, ours = f"encoder.layer.{at}.", f"layers.{at}."
            three = [stored[f"{theirs}attention.self.{name}.{part}"] for name in ("query", "key", "value")]
            own[f"{ours}query_key_value.{part}"] = torch.cat(three)
            own[f"{ours}attended.{part}"] = stored[f"{theirs}attention.output.dense.{part}"]
            own[f"{ours}norm_attended.{part}"] = stored[f"{theirs}attention.output.LayerNorm.{part}"]
            own[f"{ours}inner.{part}"] = stored[f"{theirs}intermediate.dense.{part}"]
            own[f"{ours}outer.{part}"] = stored[f"{theirs}output.dense.{part}"]
            own[f"{ours}norm_outer.{part}"] = stored[f"{theirs}output.LayerNorm.{part}"]
    model.load_state_dict(own)
    return model
