"""Write the weighted mean of several weights of one model.

    python -m training.mix OUT WEIGHTS*SHARE [WEIGHTS*SHARE ...]

The shares (0–1) add up to 1. Means of weights from one start often judge better than either: see EXPERIMENTS.md.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch


def main() -> None:
    """Write the mean."""
    parser = argparse.ArgumentParser(description="Writes the weighted mean of several weights of one model.")
    parser.add_argument("out", type=Path)
    parser.add_argument("parts", nargs="+", metavar="WEIGHTS*SHARE")
    given = parser.parse_args()
    parts = [(Path(path), float(share)) for path, _, share in (each.rpartition("*") for each in given.parts)]
    if not math.isclose(sum(share for _, share in parts), 1.0):
        parser.error("the shares do not add up to 1")
    torch.save(mixed([(torch.load(path), share) for path, share in parts]), given.out)


def mixed(parts: list[tuple[dict[str, torch.Tensor], float]]) -> dict[str, torch.Tensor]:
    """Return the weighted mean of states of one model."""
    return {name: sum(state[name] * share for state, share in parts) for name in parts[0][0]}  # type: ignore[misc]


if __name__ == "__main__":
    main()
