"""`groundwire check --judge`: one answer under several judges, and `serve --judge`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from groundwire.cli import _judged_by
from groundwire.config import load_settings
from tests.edge.upstream import Received, Reply, Upstream, body_reply, chat_body, error_reply

SOURCE = "The board of Acme, after long talks with the unions, sold the plant in March.\n"
ANSWER = "Acme parted with its factory in spring."


def groundwire(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from groundwire.cli import main; main()", *arguments]
    environ = {name: text for name, text in os.environ.items() if not name.startswith("GROUNDWIRE_JUDGE")}
    environ["COLUMNS"] = "160"
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, env=environ)


@pytest.fixture
def model() -> Iterator[Upstream]:
    with Upstream() as server:
        server.reply = lambda _: body_reply(chat_body("STATED"))
        yield server


@pytest.fixture
def folder(tmp_path: Path, model: Upstream) -> Path:
    (tmp_path / "answer.txt").write_text(ANSWER, encoding="utf-8")
    (tmp_path / "report.md").write_text(SOURCE, encoding="utf-8")
    settings = {
        "upstreams": {"up": {"base_url": model.base_url, "models": ["judge-*"]}},
        "judge": {"by": "judge-7b", "timeout": "250s"},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return tmp_path


def test_check_uses_the_judge_of_the_settings(folder: Path, model: Upstream) -> None:
    done = groundwire("check", "answer.txt", "report.md", cwd=folder)
    assert (done.returncode, "✓ supported" in done.stdout) == (0, True), done.stderr
    assert [each.received.json()["model"] for each in model.exchanges] == ["judge-7b"]


def test_all_configured_judges_are_shown_side_by_side(folder: Path, model: Upstream) -> None:
    done = groundwire("check", "answer.txt", "report.md", "--judge", "all", cwd=folder)
    head, *rows = [line for line in done.stdout.splitlines() if line.strip(" ─")]
    assert head.split() == ["claim", "off", "encoder", "judge-7b"], done.stderr
    assert rows[0].rstrip().split("  ")[-1].strip().startswith("✓ supported")
    assert {"score", "seconds"} <= {row.split()[0] for row in rows}
    assert len(model.exchanges) == 1


def test_whole_reports_of_several_judges_as_json(folder: Path) -> None:
    done = groundwire("check", "answer.txt", "report.md", "--judge", "judge-7b", "--judge", "off", "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert list(found) == ["judge-7b", "off"]
    assert found["judge-7b"]["choices"][0]["claims"][0]["method"] == "model"
    assert done.returncode == 0  # by the first


def test_a_judge_that_fails_is_shown_as_degraded(folder: Path, model: Upstream) -> None:
    def fails(_: Received) -> Reply:
        return error_reply(500, "out of memory", type="server_error")

    model.reply = fails
    done = groundwire("check", "answer.txt", "report.md", "--judge", "off", "--judge", "judge-7b", cwd=folder)
    (row,) = [line for line in done.stdout.splitlines() if "degraded" in line]
    assert "unavailable" in row


def test_the_answering_model_cannot_judge_without_a_proxy(folder: Path) -> None:
    done = groundwire("check", "answer.txt", "report.md", "--judge", "self", cwd=folder)
    assert (done.returncode, "self is the model that answered" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("name", "by", "model"),
    [
        ("self", "self", "shipped"),
        ("off", "off", "shipped"),
        ("qwen3:8b", "qwen3:8b", "shipped"),
        ("encoder", "encoder", "shipped"),
        ("encoder:nli-deberta-v3-small", "encoder", "nli-deberta-v3-small"),
        ("encoder:models/own", "encoder", "models/own"),
    ],
)
def test_a_name_on_the_command_line_is_a_setting(name: str, by: str, model: str) -> None:
    settings = load_settings(None, _judged_by(name)).judge
    assert (settings.by, settings.model) == (by, model)
