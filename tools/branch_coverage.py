"""Check that the tests take enough of the branches: the total of `coverage report` counts lines with them.

coverage json -o FILE
python tools/branch_coverage.py FILE
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

MIN_PER_CENT = 92.0


def complaint(totals: Mapping[str, int]) -> str | None:
    """Return the reason for which the `totals` of a report are rejected, if any."""
    branches, covered = totals.get("num_branches", 0), totals.get("covered_branches", 0)
    if not branches:
        return "branch coverage was not measured"
    if 100 * covered < MIN_PER_CENT * branches:
        return f"{_share(covered, branches)} of branches are covered, under {MIN_PER_CENT:.0f} %"
    return None


def _share(covered: int, branches: int) -> str:
    return f"{100 * covered / branches:.2f} % ({covered} of {branches})"


def main(arguments: list[str]) -> int:
    """Print the share of covered branches; return 1 if it is too low or unknown."""
    if len(arguments) != 1:
        print("usage: python tools/branch_coverage.py FILE", file=sys.stderr)
        return 2
    totals = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))["totals"]
    if reason := complaint(totals):
        print(reason, file=sys.stderr)
        return 1
    print("branches covered:", _share(totals["covered_branches"], totals["num_branches"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
