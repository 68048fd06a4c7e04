"""Restore weights to train on from an exported model: its int8 weights in full precision.

    python -m training.restore MODEL BASE WEIGHTS

MODEL is a folder with model.onnx, as `training.export` writes it. The matrices of linear layers are found by the names
of the nodes that multiply with them, which begin with the name of the layer; all else by its own name.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from training.model import Judge, shape_of

_QUANTIZED = "_quantized"  # ends the name of an int8 initializer, whose scale and zero point are named likewise


def main() -> None:
    """Write the weights."""
    parser = argparse.ArgumentParser(description="Restores weights from an exported model.")
    for name in ("model", "base", "weights"):
        parser.add_argument(name, type=Path)
    given = parser.parse_args()
    torch.save(restore(given.model / "model.onnx", given.base), given.weights)


def restore(stored: Path, base: Path) -> dict[str, torch.Tensor]:
    """Return the weights of an exported graph by the names of `Judge`. Raises ValueError if the graph lacks one."""
    graph = onnx.load(stored).graph
    values = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    matrices = {
        node.name.strip("/").rpartition("/")[0].replace("/", "."): node.input[1].removesuffix(_QUANTIZED)
        for node in graph.node
        if node.op_type == "MatMulInteger"
    }
    found = {}
    for name, parameter in Judge(shape_of(base)).state_dict().items():
        matrix = matrices.get(name.removesuffix(".weight"))
        value = _full(name, values) if matrix is None else _full(matrix, values).T
        if value.shape != parameter.shape:
            raise ValueError(f"{name} is {value.shape} in the graph, and {tuple(parameter.shape)} in the model")
        found[name] = torch.from_numpy(np.array(value, np.float32, order="C"))
    return found


def _full(name: str, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return an initializer in full precision."""
    if name in values:
        return values[name]
    if f"{name}{_QUANTIZED}" not in values:
        raise ValueError(f"the graph has no {name}")
    scale, zero = values[f"{name}_scale"], values[f"{name}_zero_point"]
    return (values[f"{name}{_QUANTIZED}"].astype(np.float32) - zero.astype(np.float32)) * scale


if __name__ == "__main__":
    main()
