"""Restore weights to train on from an exported model: its int8 weights in full precision.

    python -m training.restore MODEL BASE WEIGHTS

MODEL is a folder with model.onnx, as `training.export` writes it. Initializers are matched by their names in a graph
that is written anew from the same code.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from training.export import write_graph
from training.model import Judge, shape_of

_TURNED = "_Transposed"
"""In the names of matrices that some versions of the quantiser transpose."""


def main() -> None:
    """Write the weights."""
    parser = argparse.ArgumentParser(description="Restores weights from an exported model.")
    for name in ("model", "base", "weights"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    torch.save(restore(given.model / "model.onnx", given.base), given.weights)


def restore(stored: Path, base: Path) -> dict[str, torch.Tensor]:
    """Return the weights of an exported graph by the names of `Judge`. Raises ValueError if one has no counterpart."""
    model = Judge(shape_of(base)).eval()
    for each in model.parameters():  # equal vectors would become one initializer
        torch.nn.init.normal_(each, std=0.02)
    with tempfile.TemporaryDirectory() as folder:
        whole, small = Path(folder) / "whole.onnx", Path(folder) / "small.onnx"
        write_graph(model, whole)
        quantize_dynamic(whole, small, weight_type=QuantType.QInt8, per_channel=True, reduce_range=False)
        written = _arrays(whole)
        own, theirs = ({name.replace(_TURNED, "") for name in _arrays(path)} for path in (small, stored))
        if own != theirs:
            raise ValueError(f"other initializers: {sorted(own ^ theirs)[:6]}")
    values = _arrays(stored)
    found = {}
    for name, parameter in model.state_dict().items():
        own = parameter.numpy()
        at, turned = _place(own, written)
        value = _full(at, values)
        if value.shape != written[at].shape:  # the second matrix of a Gemm is transposed when it is quantised
            value = value.T
        found[name] = torch.from_numpy(np.ascontiguousarray(value.T if turned else value, np.float32)).reshape(
            own.shape
        )
    return found


def _arrays(path: Path) -> dict[str, np.ndarray]:
    return {each.name: numpy_helper.to_array(each) for each in onnx.load(path).graph.initializer}


def _place(own: np.ndarray, written: dict[str, np.ndarray]) -> tuple[str, bool]:
    """Return the name of the initializer with these random values, and whether it is transposed."""
    for name, value in written.items():
        if value.shape == own.shape and np.array_equal(value, own):
            return name, False
        if value.ndim == 2 and value.shape == own.T.shape and np.array_equal(value, own.T):
            return name, True
    raise ValueError(f"a parameter of shape {own.shape} is not in the graph")


def _full(name: str, values: dict[str, np.ndarray]) -> np.ndarray:
    for stem in (name, f"{name}{_TURNED}"):
        if f"{stem}_quantized" in values:
            scale, zero = values[f"{stem}_scale"], values[f"{stem}_zero_point"]
            return (values[f"{stem}_quantized"].astype(np.float32) - zero.astype(np.float32)) * scale
    return values[name]


if __name__ == "__main__":
    main()
