"""Export a trained model as int8 ONNX, in a folder as `judge.model` names one.

    python -m training.export WEIGHTS BASE OUT

The graph has two outputs: `logits`, one for each label, and `token_logits`, the log-odds that a token of the claim
makes it wrong. Weights are quantised by channel when they are written, activations while the graph runs. Weights are
stored unsigned: the sums of unsigned and signed bytes saturate on processors without VNNI, and verdicts would depend on
the machine.
"""

from __future__ import annotations

import argparse
import copy
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from groundwire.backends.pairs import CLAIM
from training.batches import MAX_TOKENS
from training.model import Judge, shape_of

_INPUTS, _OUTPUTS = ["input_ids", "token_type_ids"], ["logits", "token_logits"]
_KEPT = ("model_type", "max_position_embeddings", "pad_token_id")
_OWN = {
    "architectures": ["BertForSequenceClassification"],
    "id2label": {"0": "supported", "1": "contradicted", "2": "unsupported"},
    "groundwire": {"layout": "claim_first_matched", "max_tokens": MAX_TOKENS},
}


class _Attention(torch.autograd.Function):
    """ONNX Runtime's operator for `attend`: it needs no reshaping around it, and no memory for all scores at once."""

    @staticmethod
    def forward(_: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, heads: int) -> torch.Tensor:
        """Return a tensor of the right shape, which is all that is needed of it while the graph is written."""
        return torch.empty_like(query)

    @staticmethod
    def symbolic(graph: Any, query: Any, key: Any, value: Any, heads: int) -> Any:
        """Add the operator to the graph."""
        added = graph.op("com.microsoft::MultiHeadAttention", query, key, value, num_heads_i=heads)
        return added.setType(query.type())


def main() -> None:
    """Write model.onnx, tokenizer.json and config.json."""
    parser = argparse.ArgumentParser(description="Exports a trained model as int8 ONNX.")
    for name in ("weights", "base", "out"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    model = Judge(shape_of(given.base))
    model.load_state_dict(torch.load(given.weights))
    with tempfile.TemporaryDirectory() as folder:
        whole, signed = Path(folder) / "whole.onnx", Path(folder) / "signed.onnx"
        write_graph(model.eval(), whole)
        quantize_dynamic(whole, signed, weight_type=QuantType.QInt8, per_channel=True, reduce_range=False)
        onnx.save(unsigned(onnx.load(signed)), given.out / "model.onnx")
    shutil.copy(given.base / "tokenizer.json", given.out / "tokenizer.json")
    config = json.loads((given.base / "config.json").read_text(encoding="utf-8"))
    stored = {name: config[name] for name in _KEPT if name in config} | _OWN
    (given.out / "config.json").write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def unsigned(graph: onnx.ModelProto) -> onnx.ModelProto:
    """Return a graph with its signed bytes, and their zero points, as unsigned ones: each value plus 128."""
    for tensor in graph.graph.initializer:
        if tensor.data_type == onnx.TensorProto.INT8:
            values = numpy_helper.to_array(tensor).astype(np.int16) + 128
            tensor.CopyFrom(numpy_helper.from_array(values.astype(np.uint8), tensor.name))
    return graph


def write_graph(model: Judge, path: Path) -> None:
    """Write the graph in full precision, for any number of pairs that have the same number of tokens.

    It takes no attention mask: an addition to every score of the attention, for pairs that are run one by one.
    """
    tried = torch.full((2, 24), CLAIM)
    pairs, tokens, claimed = {0: "pairs"}, {0: "pairs", 1: "tokens"}, {0: "pairs", 1: "claimed"}
    traced = copy.deepcopy(model)
    for layer in traced.layers:
        layer.attend = lambda query, key, value, _, heads: _Attention.apply(query, key, value, heads)
    torch.onnx.export(
        traced,
        (tried, None, tried),
        path,
        input_names=_INPUTS,
        output_names=_OUTPUTS,
        dynamic_axes={"logits": pairs, "token_logits": claimed} | dict.fromkeys(_INPUTS, tokens),
        opset_version=17,
        dynamo=False,
    )


if __name__ == "__main__":
    main()
