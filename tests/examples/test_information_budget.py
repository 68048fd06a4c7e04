"""The example of docs/information-budget.md runs and prints the documented values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "information_budget.py"


def test_the_example_shows_a_supported_claim_a_flagged_one_and_what_they_cost() -> None:
    run = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=50, check=False)
    assert run.returncode == 0, run.stderr
    said = run.stdout
    assert "[EVIDENCE REMOVED]" in said
    assert "p1 0.98, p0 0.4, gap -0.1625 bits: supported" in said
    assert "p1 0.4, p0 None, gap None bits: not_entailed" in said
    assert "unsupported_claims, budget_gap" in said
    assert "model: 2 claims, 2 calls" in said
