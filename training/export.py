"""Exports a trained encoder as int8 ONNX, in a folder as `encoder.model` of the config names one.

    python -m training.export WEIGHTS BASE OUT

The graph has two outputs: `logits`, the log-odds that the evidence supports the claim, and `token_logits`, those that a
token is wrong. Weights are quantised by channel, activations while it runs. Needs torch, transformers, onnx and
onnxruntime.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import nn

from training.verifier import Verifier

_INPUTS, _OUTPUTS = ["input_ids", "attention_mask", "token_type_ids"], ["logits", "token_logits"]
_KEPT = ("model_type", "max_position_embeddings", "pad_token_id")
_OWN = {
    "architectures": ["BertForSequenceClassification"],
    "id2label": {"0": "supported"},
    "groundwire": {"layout": "claim_first_matched", "max_tokens": 256},
}


class _Graph(nn.Module):
    """The verifier with its outputs in the shape that classifiers have."""

    def __init__(self, verifier: Verifier) -> None:
        super().__init__()
        self.verifier = verifier

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`logits` (pairs, 1) and `token_logits` (pairs, tokens)."""
        pair, token = self.verifier(input_ids, attention_mask, token_type_ids)
        return pair.unsqueeze(-1), token


def main() -> None:
    """Writes model.onnx, tokenizer.json and config.json."""
    parser = argparse.ArgumentParser(description="Exports a trained encoder as int8 ONNX.")
    parser.add_argument("weights", type=Path)
    parser.add_argument("base", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    verifier = Verifier(given.base)
    verifier.load_state_dict(torch.load(given.weights))
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.onnx"
        _write_graph(verifier, whole)
        quantize_dynamic(
            whole, given.out / "model.onnx", weight_type=QuantType.QInt8, per_channel=True, reduce_range=False
        )
    shutil.copy(given.base / "tokenizer.json", given.out / "tokenizer.json")
    _write_config(given.base, given.out)


def _write_graph(verifier: Verifier, path: Path) -> None:
    """The graph in full precision, for any number of pairs and tokens."""
    verifier.bert.set_attn_implementation("eager")
    tried = torch.ones(1, 24, dtype=torch.long)
    pairs, tokens = {0: "pairs"}, {0: "pairs", 1: "tokens"}
    torch.onnx.export(
        _Graph(verifier).eval(),
        (tried, tried, tried),
        path,
        input_names=_INPUTS,
        output_names=_OUTPUTS,
        dynamic_axes={"logits": pairs, "token_logits": tokens} | dict.fromkeys(_INPUTS, tokens),
        opset_version=17,
        dynamo=False,
    )


def _write_config(base: Path, out: Path) -> None:
    """What the proxy asks of a model's config: kept from the base, and how this one is read."""
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    stored = {name: config[name] for name in _KEPT if name in config} | _OWN
    (out / "config.json").write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
