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
        self.scale = 1 / math.sqrt(shape.hidden // shape.heads)
        self.query_key_value = nn.Linear(shape.hidden, 3 * shape.hidden)
        self.attended = nn.Linear(shape.hidden, shape.hidden)
        self.norm_attended = nn.LayerNorm(shape.hidden, eps=1e-12)
        self.inner = nn.Linear(shape.hidden, shape.inner)
        self.outer = nn.Linear(shape.inner, shape.hidden)
        self.norm_outer = nn.LayerNorm(shape.hidden, eps=1e-12)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the hidden states (pairs, tokens, size) after this layer; `mask` is added to the attention.

        The attention is written out: torch's fused one takes half of a training step on a CPU.
        """
        pairs, tokens, size = hidden.shape
        parts = self.query_key_value(hidden).view(pairs, tokens, 3, self.heads, size // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        likeness = query * self.scale @ key.transpose(-1, -2)
        shares = functional.softmax(likeness + mask.to(likeness.dtype), dim=-1)
        attended = (shares.to(value.dtype) @ value).transpose(1, 2).reshape(pairs, tokens, size)
        hidden = self.norm_attended(hidden + self._dropped(self.attended(attended)))
        return self.norm_outer(hidden + self._dropped(self.outer(functional.gelu(self.inner(hidden)))))

    def _dropped(self, added: torch.Tensor) -> torch.Tensor:
        """Leave out a share of the channels of each pair in training; dropout by the element is slow on a CPU."""
        if not self.training:
            return added
        kept = torch.rand(added.shape[0], 1, added.shape[2], device=added.device) >= _DROPPED
        return added * (kept / (1 - _DROPPED)).to(added.dtype)


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

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-odds of the labels (pairs, 3), and of each token being wrong (pairs, tokens).

        `ids`, `mask` (1 for a token, 0 for padding) and `types` are (pairs, tokens).
        """
        places = torch.arange(ids.shape[1], device=ids.device)
        hidden = self.norm(self.words(ids) + self.positions(places) + self.types(types))
        added = ((1.0 - mask.to(hidden.dtype)) * -10000.0)[:, None, None, :]
        for layer in self.layers:
            hidden = layer(hidden, added)
        claim = ((types == 2) | (types == 3)).to(hidden.dtype) * mask.to(hidden.dtype)
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
