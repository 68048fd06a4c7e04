"""Results as files: JSON with all figures, and a Markdown table for people, under bench/results."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "bench" / "results"


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the value that `percent` of `values` do not exceed, interpolated."""
    return quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else values[0]


def machine() -> dict[str, Any]:
    """Return the properties of the machine that affect the figures, and the commit.

    `pgo` is whether Python was built with profile-guided optimisation, which makes it faster.
    """
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "cpu": models[0].partition(":")[2].strip() if models else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "pgo": "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or ""),
        "commit": commit.stdout.strip() or "unknown",
    }


def write(name: str, result: Mapping[str, Any], table: str) -> None:
    """Write NAME.json and NAME.md."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(_rounded(result), indent=1) + "\n")
    (FOLDER / f"{name}.md").write_text(table + "\n")


def heading(title: str, result: Mapping[str, Any]) -> str:
    """Return the head of a table: its title, method and machine."""
    on = result["machine"]
    build = "with PGO" if on["pgo"] else "without PGO"
    place = f"{on['cores']} × {on['cpu']}, Python {on['python']} {build}, commit {on['commit']}"
    return f"# {title}\n\n`{result['command']}` on {place}.\n"


def markdown(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value
