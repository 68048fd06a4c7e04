"""The floor of covered branches that `make coverage` applies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "tools/branch_coverage.py"


@pytest.mark.parametrize(
    ("totals", "status", "expected"),
    [
        ({"num_branches": 1000, "covered_branches": 920}, 0, "branches covered: 92.00 % (920 of 1000)"),
        ({"num_branches": 1000, "covered_branches": 919}, 1, "91.90 % (919 of 1000) of branches are covered, under 92"),
        ({"num_branches": 100000, "covered_branches": 91999}, 1, "(91999 of 100000)"),
        ({"num_branches": 0, "covered_branches": 0}, 1, "branch coverage was not measured"),
        ({"percent_covered": 99.0}, 1, "branch coverage was not measured"),
    ],
)
def test_too_few_covered_branches_fail(totals: dict[str, float], status: int, expected: str, tmp_path: Path) -> None:
    report = tmp_path / "coverage.json"
    report.write_text(json.dumps({"totals": totals}), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(report)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == status, done.stderr
    assert expected in done.stdout + done.stderr
