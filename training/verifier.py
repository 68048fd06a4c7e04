"""The encoder that is trained: a MiniLM with one output for a pair and one for each of its tokens. Needs torch."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from transformers import BertConfig, BertModel

_TYPES = 4  # of tokens, see `proxy.evidence.pairs`


class Verifier(nn.Module):
    """A BERT encoder that starts from the weights in a folder, with token types and outputs of our own."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        config = BertConfig.from_pretrained(folder)
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0  # slow on a processor
        size = config.hidden_size
        self.bert = BertModel.from_pretrained(folder, config=config, add_pooling_layer=False)
        embeddings = self.bert.embeddings
        embeddings.token_type_embeddings = _widened(embeddings.token_type_embeddings.weight.data)
        self.pair = nn.Sequential(nn.Linear(size, size), nn.Tanh(), nn.Linear(size, 1))
        self.token = nn.Linear(size, 1)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The log-odds that each pair is supported (pairs), and that each token is wrong (pairs, tokens)."""
        hidden = self.bert(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state
        return self.pair(hidden[:, 0]).squeeze(-1), self.token(hidden).squeeze(-1)


def _widened(segments: torch.Tensor) -> nn.Embedding:
    """Token types that all begin as the first of BERT's segments, each a little off it."""
    made = nn.Embedding(_TYPES, segments.shape[1])
    made.weight.data = segments[:1].repeat(_TYPES, 1) + 0.02 * torch.randn(_TYPES, segments.shape[1])
    return made
