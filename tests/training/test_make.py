"""training/make.sh and the data of its fit: with public sets and without."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from training import calibration
from training.data import SETS

ROOT = Path(__file__).parents[2]
RECORDER = '#!/bin/sh\necho "$(basename "$0") $*" >> "$CALLS"\n'


def make(tmp_path: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
    """Run the script with programs that only record how they are called."""
    for name in ("python", "groundwire"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(RECORDER)
        program.chmod(0o755)
    calls = tmp_path / "calls"
    places = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "CALLS": str(calls), "WORK": str(tmp_path / "work")}
    run = subprocess.run(
        ["bash", str(ROOT / "training/make.sh"), *arguments],
        env={**os.environ, **places, "PYTHON": "python"},
        capture_output=True,
        text=True,
    )
    return run, [line.split() for line in calls.read_text().splitlines()] if calls.exists() else []


def modules(calls: list[list[str]]) -> dict[str, list[str]]:
    return {call[2]: call[3:] for call in calls if call[:2] == ["python", "-m"]}


def test_without_public_sets_the_script_makes_no_public_examples(tmp_path: Path):
    out = tmp_path / "out"
    stale = tmp_path / "work/calibration/q2_tune.jsonl"
    stale.parent.mkdir(parents=True)
    stale.write_text("{}\n")
    run, calls = make(tmp_path, str(out))
    assert run.returncode == 0, run.stderr
    called = modules(calls)
    assert list(called) == [f"training.{name}" for name in ("vectors", "train", "evaluate", "export", "calibration")]
    public = Path(called["training.train"][1])
    assert public.read_text() == ""
    assert "--data" not in called["training.calibration"]
    assert not stale.exists()


def test_with_public_sets_training_and_fit_read_them(tmp_path: Path):
    run, calls = make(tmp_path, "sets", str(tmp_path / "out"))
    assert run.returncode == 0, run.stderr
    called = modules(calls)
    assert called["training.public"][0] == "sets"
    assert called["training.calibration"][-2:] == ["--data", "sets"]


def test_every_file_goes_to_the_output_folder(tmp_path: Path):
    out = tmp_path / "out"
    _, calls = make(tmp_path, str(out))
    called = modules(calls)
    assert called["training.vectors"][-1] == called["training.export"][-1] == str(out)
    assert calls[-1][-1] == str(out / "groundwire.json")
    assert out.is_dir()
    assert not any("shipped" in word for call in calls for word in call)


@pytest.mark.parametrize("arguments", [(), ("one", "two", "three")])
def test_a_wrong_number_of_arguments_is_refused(tmp_path: Path, arguments: tuple[str, ...]):
    run, calls = make(tmp_path, *arguments)
    assert run.returncode == 2
    assert "[DATA] OUT" in run.stderr
    assert not calls


@pytest.fixture
def claims(tmp_path: Path) -> Path:
    folder = tmp_path / "claims"
    folder.mkdir()
    lines = [
        {
            "evidence": [f"Ann has three boats in harbour {number}."],
            "supported": ["Ann owns boats."],
            "contradicted": ["Ann never owned a boat."],
            "unsupported": ["Ann will sell the boats."],
        }
        for number in range(60)
    ]
    (folder / "business.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return folder


def fitted_on(monkeypatch: pytest.MonkeyPatch, claims: Path, out: Path, *more: str) -> dict[str, int]:
    """Return the sets that calibration writes, with the number of their answers."""
    monkeypatch.setattr(sys, "argv", ["calibration", str(claims), str(out), *more])
    calibration.main()
    return {path.stem: len(path.read_text().splitlines()) for path in out.iterdir()}


def test_the_fit_needs_no_public_set(monkeypatch: pytest.MonkeyPatch, claims: Path, tmp_path: Path):
    found = fitted_on(monkeypatch, claims, tmp_path / "out")
    assert set(found) == {"claims_prose", "numbers"}
    assert all(found.values())


def test_the_fit_reads_the_public_sets_that_are_given(monkeypatch: pytest.MonkeyPatch, claims: Path, tmp_path: Path):
    data = tmp_path / "sets"
    data.mkdir()
    for name in SETS:
        rows = [{"id": str(at), "context": f"Text {at}.", "answer": "It is.", "label": at % 2} for at in range(40)]
        (data / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    found = fitted_on(monkeypatch, claims, tmp_path / "out", "--data", str(data))
    assert set(found) == {"claims_prose", "numbers", *SETS}
    assert 0 < found["q2_tune"] < 40
