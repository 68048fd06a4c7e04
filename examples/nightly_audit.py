"""A nightly audit of logged answers: verify them, write a page, and exit with 1 if too many are flagged.

`python examples/nightly_audit.py` runs offline, on the demo's exchanges. For cron or a scheduled job of CI:
`python nightly_audit.py LOG.jsonl --out FOLDER --max-flagged 0.05`, where each line of the log has the `request` and
the `response` of one chat completion.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from groundwire.demo.model import SCENARIOS

COLUMNS = ("--answer", "response.choices.0.message.content", "--messages", "request.messages")
COMMAND = (sys.executable, "-c", "from groundwire.cli import main; main()", "batch")


def main() -> int:
    """Run the audit and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path, nargs="?", help="JSON lines; default: the demo's exchanges")
    parser.add_argument("--out", type=Path, default=Path("audit"), help="the folder for reports and page")
    parser.add_argument("--max-flagged", type=float, default=0.05, help="the share of answers that may be flagged")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    log = given.log or demo_log(given.out / "demo.jsonl")
    reports, page = given.out / f"{log.stem}.reports.jsonl", given.out / f"{log.stem}.html"
    done = subprocess.run([*COMMAND, str(log), str(reports), "--html", str(page), *COLUMNS], check=False)  # noqa: S603
    if done.returncode not in (0, 1):  # 1: rows that could not be read
        return done.returncode
    results = [json.loads(line) for line in reports.read_text(encoding="utf-8").splitlines()]
    flagged = [each for each in results if "error" in each or each["grounding"]["flags"]]
    share = len(flagged) / len(results) if results else 1.0
    print(f"{len(flagged)} of {len(results)} answers are flagged ({share:.0%}); see {page}")
    return int(share > given.max_flagged)


def demo_log(file: Path) -> Path:
    """Write the demo's exchanges as a gateway would log them."""
    with file.open("w", encoding="utf-8") as opened:
        for scenario in SCENARIOS:
            message = {"role": "assistant", "content": scenario.answer}
            row = {"request": {"messages": scenario.messages}, "response": {"choices": [{"message": message}]}}
            opened.write(json.dumps(row) + "\n")
    return file


if __name__ == "__main__":
    sys.exit(main())
