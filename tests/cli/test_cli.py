"""The command: check, config and demo as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def groundwire(*arguments: str, cwd: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from groundwire.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, input=text, capture_output=True, text=True, timeout=150)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "report.md").write_text("Revenue was $4.2 million in 2023. The office is in Oslo.", encoding="utf-8")
    (tmp_path / "staff.csv").write_text("Name,Role,Since\nIda,Engineer,2019\nOle,Designer,2021\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("Revenue was $4.2M in 2023. The office is in Oslo.", 0),
        ("Revenue was $5.9M in 2023. The office is in Oslo.", 1),
        ("The office has a large swimming pool.", 1),
        ("How can I help you?", 2),
    ],
    ids=["supported", "contradicted", "unsupported", "nothing to check"],
)
def test_check_reports_its_verdict_by_its_exit_status(folder: Path, answer: str, status: int) -> None:
    (folder / "answer.txt").write_text(answer, encoding="utf-8")
    assert groundwire("check", "answer.txt", "report.md", cwd=folder).returncode == status


def test_check_shows_each_claim_with_reason_and_place(folder: Path) -> None:
    shown = groundwire("check", "-", "report.md", "staff.csv", cwd=folder, text="Revenue was $5.9M in 2023.").stdout
    assert "contradicted" in shown
    assert "says $4.2 million, the answer says $5.9M" in shown
    assert "report.md 0–33" in shown


def test_check_prints_the_report_as_json(folder: Path) -> None:
    result = groundwire("check", "-", "staff.csv", "--json", cwd=folder, text="Ida has been an engineer since 2019.")
    report = json.loads(result.stdout)
    assert (report["verdict"], report["sources"][0]["id"]) == ("grounded", "staff.csv")
    assert result.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("check", "missing.txt", "report.md"), "missing.txt: No such file or directory"),
        (("config", "--config", "missing.yaml"), "missing.yaml: No such file or directory"),
        (("serve", "--config", "wrong.yaml"), "wrong.yaml:2: server.prot: unknown key (did you mean 'port'?)"),
    ],
    ids=["no answer", "no config", "typo"],
)
def test_an_error_of_the_user_gives_one_sentence(folder: Path, arguments: tuple[str, ...], complaint: str) -> None:
    (folder / "wrong.yaml").write_text("server:\n  prot: 1\n", encoding="utf-8")
    result = groundwire(*arguments, cwd=folder)
    assert result.returncode == 2
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr


def test_config_prints_what_can_be_read_back(folder: Path) -> None:
    printed = groundwire("config", cwd=folder).stdout
    (folder / "printed.yaml").write_text(printed, encoding="utf-8")
    again = groundwire("config", "--config", "printed.yaml", cwd=folder).stdout
    assert again.splitlines()[1:] == printed.splitlines()[1:]


def test_the_demo_runs_and_ends_by_itself(folder: Path) -> None:
    result = groundwire("demo", "--pace", "0", cwd=folder)
    assert result.returncode == 0, result.stderr
    for expected in (
        "grounded ·",
        "partially_grounded ·",
        "is not in any source",
        "the answer says 84.5",
    ):
        assert expected in result.stdout.replace("\n", " ")
