"""The GitHub Action: its step runs as a runner would run it, with the inputs of action.yml."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[1] / ".github/actions/check"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))
SOURCES = ["In 2023 revenue was $4.2 million."]
RIGHT = {"id": "right", "answer": "Revenue was $4.2M in 2023.", "sources": SOURCES}
WRONG = {"id": "wrong | <b>", "answer": "Revenue was $4.9M in 2023.", "sources": SOURCES}


@dataclass(frozen=True)
class Run:
    """The results of the action that a runner sees."""

    status: int
    log: str
    summary: str
    outputs: Mapping[str, str]


def run(folder: Path, rows: list[Any], **inputs: str) -> Run:
    """Run the step `check` with these inputs, in a folder with the rows in answers.jsonl."""
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (step,) = [each for each in ACTION["runs"]["steps"] if each.get("id") == "check"]
    given = {name: about.get("default", "") for name, about in ACTION["inputs"].items()}
    given |= {"answers": "answers.jsonl", "arguments": "--judge off"} | {
        name.replace("_", "-"): value for name, value in inputs.items()
    }
    variables = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: given[m[1]], text) for name, text in step["env"].items()
    }
    files = {name: folder / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    for file in files.values():
        file.write_text("", encoding="utf-8")
    environ = {
        **os.environ,
        **variables,
        **{name: str(file) for name, file in files.items()},
        "GITHUB_ACTION_PATH": str(FOLDER),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    summary, outputs = (file.read_text(encoding="utf-8") for file in files.values())
    pairs = dict(line.split("=", 1) for line in outputs.splitlines())
    return Run(done.returncode, done.stdout + done.stderr, summary, pairs)


def test_flagged_answers_fail_the_check_and_are_in_the_summary(tmp_path: Path) -> None:
    found = run(tmp_path, [RIGHT, WRONG])
    assert found.status == 1
    assert "::error title=Groundwire::1 of 2 answers are flagged, at most 0 may be" in found.log
    assert found.outputs == {"answers": "2", "flagged": "1", "score": "0.5000"}
    assert set(found.outputs) == set(ACTION["outputs"])
    assert "## Groundwire: failed" in found.summary
    (row,) = [line for line in found.summary.splitlines() if "4.9M" in line]
    assert row.count("|") == 4
    assert "wrong &#124; &#60;b&#62;" in row
    assert len((tmp_path / "grounding-reports.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("inputs", "status"),
    [
        ({"max_flagged": "1"}, 0),
        ({"max_flagged": "50%"}, 0),
        ({"max_flagged": "49%"}, 1),
        ({"flags": "quote_not_found"}, 0),
        ({"flags": "quote_not_found contradicted_claims"}, 1),
        ({"max_flagged": "some"}, 1),
    ],
    ids=str,
)
def test_the_threshold_and_the_flags_that_count_are_inputs(tmp_path: Path, inputs: dict[str, str], status: int) -> None:
    found = run(tmp_path, [RIGHT, WRONG], **inputs)
    assert found.status == status, found.log
    assert "Traceback" not in found.log
    assert ("max-flagged must be a number" in found.log) == (inputs.get("max_flagged") == "some")


@pytest.mark.parametrize("rows", [[RIGHT, {"answer": 3}], []], ids=["a row that cannot be read", "no rows"])
def test_answers_that_were_not_checked_do_not_pass(tmp_path: Path, rows: list[Any]) -> None:
    found = run(tmp_path, rows, max_flagged="100%")
    assert found.status == 1
    assert "## Groundwire: failed" in found.summary or not rows


def test_columns_are_arguments(tmp_path: Path) -> None:
    row = {"response": {"text": RIGHT["answer"]}, "context": SOURCES}
    found = run(tmp_path, [row], arguments="--judge off --answer response.text --sources context")
    assert (found.status, found.outputs["flagged"]) == (0, "0"), found.log


def test_the_steps_use_declared_inputs_and_text_of_users_is_no_script() -> None:
    steps = ACTION["runs"]["steps"]
    used = set(re.findall(r"inputs\.([\w-]+)", json.dumps(steps)))
    assert used == set(ACTION["inputs"])
    assert not [step for step in steps if "${{" in step.get("run", "")]
