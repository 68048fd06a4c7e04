"""Shell completions and the JSON output of commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from groundwire.cli import app

RUNNER = CliRunner()


def completed(shell: str, words: str) -> list[str]:
    """Ask the command for completions, as the script of a shell does."""
    asked = {
        "bash": {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": words},
        "fish": {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    environ = {**os.environ, "_GROUNDWIRE_COMPLETE": f"complete_{shell}", **asked}
    code = "import sys; sys.argv[0] = 'groundwire'; from groundwire.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60)
    return re.findall(r"[\w-]+", done.stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_and_options_are_completed(shell: str) -> None:
    assert "batch" in completed(shell, "groundwire ba")
    assert "--judge" in completed(shell, "groundwire serve --ju")
    assert "create" in completed(shell, "groundwire keys cr")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_of_its_shell(shell: Any) -> None:
    script = RUNNER.invoke(app, ["completions", shell]).output
    assert f"complete_{shell}" in script
    if shutil.which(shell):
        parsed = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True, timeout=30, check=False)
        assert parsed.returncode == 0, parsed.stderr


def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    command = tmp_path / "groundwire"
    command.write_text(f"#!{sys.executable}\nfrom groundwire.cli import main\nmain()\n", encoding="utf-8")
    command.chmod(0o755)
    script = f"{RUNNER.invoke(app, ['completions', 'bash']).output}\nCOMP_WORDS=(groundwire do); COMP_CWORD=1\n"
    script += "_groundwire_completion groundwire\necho ${COMPREPLY[@]}"
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["doctor"], done.stderr


def test_an_unknown_shell_is_refused() -> None:
    assert RUNNER.invoke(app, ["completions", "tcsh"]).exit_code == 2


def test_config_prints_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = json.loads(RUNNER.invoke(app, ["config", "--json"]).stdout)
    assert printed == yaml.safe_load(RUNNER.invoke(app, ["config"]).stdout)


def test_version_prints_json() -> None:
    assert json.loads(RUNNER.invoke(app, ["version", "--json"]).stdout) == {
        "version": RUNNER.invoke(app, ["version"]).stdout.strip()
    }


def test_a_new_key_is_printed_as_json(tmp_path: Path) -> None:
    arguments = ["keys", "create", "app", "--file", str(tmp_path / "keys"), "--expires", "1d", "--json"]
    created = json.loads(RUNNER.invoke(app, arguments).stdout)
    listed = json.loads(RUNNER.invoke(app, ["keys", "list", "--file", str(tmp_path / "keys"), "--json"]).stdout)
    assert created.pop("key")
    assert created == {"name": "app", **listed["app"]}


def test_eval_prints_json_alone_on_standard_output() -> None:
    done = RUNNER.invoke(app, ["eval", "--limit", "2", "--model", "off", "--json", "-"])
    assert json.loads(done.stdout)
    assert "Verdicts against labels" in done.stderr
