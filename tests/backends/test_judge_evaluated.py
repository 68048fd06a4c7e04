"""eval and calibrate with an entailment model, as a user runs them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from groundwire.backends.loading import load_judge
from groundwire.cli import app
from groundwire.config import JudgeSettings
from groundwire.evaluation.rows import SAMPLE
from groundwire.verifiers.signals import read_combination
from tests.backends.tiny_models import modernbert_folder


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def sure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that supports every claim."""
    return modernbert_folder(tmp_path_factory.mktemp("sure"), lean=20.0)


def flagged(path: Path) -> int:
    (result,) = json.loads(path.read_text())["datasets"].values()
    return sum(outcome["flagged"] for outcome in result["outcomes"])


def test_eval_measures_the_verdicts_that_a_model_takes_part_in(sure: Path, tmp_path: Path):
    run("eval", "--model", "off", "--json", str(tmp_path / "alone.json"))
    run("eval", "--model", str(sure), "--json", str(tmp_path / "sure.json"))
    assert flagged(tmp_path / "sure.json") < flagged(tmp_path / "alone.json")


def test_calibrate_writes_what_the_model_is_used_with(sure: Path, tmp_path: Path):
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()
    copies = [json.loads(line) | {"id": f"{n}-{k}"} for n, line in enumerate(lines) for k in range(4)]
    (tmp_path / "mine.jsonl").write_text("\n".join(json.dumps(row) for row in copies))
    out = tmp_path / "groundwire.json"
    shown = run("calibrate", "--data", str(tmp_path), "--model", str(sure), "--out", str(out))
    stored = json.loads(out.read_text())
    assert json.loads(shown[shown.index("{") :])["model"] == stored["card"]["model"] == str(sure)
    assert stored["card"]["open"] > 0
    judge = load_judge(JudgeSettings(model=str(sure), weights=str(out)))
    assert judge.combination == read_combination(out.read_text())
