"""The pytest plugin, in a separate session."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from groundwire.integrations.pytest_plugin import assert_grounded
from tests.integrations.conftest import ANSWER, SYSTEM, TRUE

EXAMPLE = """
SOURCES = ["Acme Corp was founded in Oslo in 1998.", "It reported revenue of $4.2 million in 2023."]


def test_right(assert_grounded):
    assert assert_grounded("Acme Corp was founded in Oslo.", SOURCES).verdict == "grounded"


def test_wrong(assert_grounded):
    assert_grounded("It reported revenue of $4.9 million in 2023.", SOURCES)
"""


def test_a_session_finds_the_fixture_and_shows_the_claims(tmp_path: Path) -> None:
    (tmp_path / "test_example.py").write_text(EXAMPLE, encoding="utf-8")
    installed = any(each.name == "groundwire" for each in entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", "groundwire.integrations.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert "1 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    assert "The answer is ungrounded: 0% of the checked claims are supported" in run.stdout
    assert "contradicted: It reported revenue of $4.9 million in 2023." in run.stdout
    assert "reason: " in run.stdout
    assert "source-2: It reported revenue of $4.2 million in 2023." in run.stdout
    assert "pytest_plugin.py" not in run.stdout


def test_the_plugin_imports_nothing_heavy() -> None:
    """Every pytest session loads it where it is installed."""
    script = (
        "import sys; sys.modules.pop('pytest', None); import pytest; before = set(sys.modules);"
        "import groundwire.integrations.pytest_plugin;"
        "print(sorted(m for m in set(sys.modules) - before if m.partition('.')[0] in"
        " ('numpy', 'onnxruntime', 'pydantic', 'litellm', 'openai', 'sqlalchemy')))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("answer", "minimum", "passes"),
    [
        (TRUE, 1.0, True),
        (f"{TRUE} Ann likes tea.", 1.0, False),
        (f"{TRUE} Ann likes tea.", 0.5, True),
        (ANSWER, 0.5, False),
        ("Shall I look?", 0.0, False),
    ],
)
def test_a_share_of_claims_must_be_supported_and_none_contradicted(answer: str, minimum: float, passes: bool) -> None:
    if passes:
        assert assert_grounded(answer, [SYSTEM], minimum=minimum).score
    else:
        with pytest.raises(pytest.fail.Exception, match="The answer is"):
            assert_grounded(answer, [SYSTEM], minimum=minimum)
