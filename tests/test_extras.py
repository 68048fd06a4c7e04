"""The base install does the main job without the extras, and names the command where one is missing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from groundwire.extras import EXTRAS

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_IN_BASE = sorted(
    {module for modules in EXTRAS.values() for module in modules} | {"openai", "opentelemetry", "orjson"}
)

WITHOUT = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if any(name == each or name.startswith(each + ".") for each in {NOT_IN_BASE!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""
MAIN = WITHOUT + "from groundwire.cli import main; main()"


def run(
    *arguments: str, folder: Path, code: str = MAIN, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={**clean(), **(environ or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("GROUNDWIRE_", "OTEL_"))}


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Run `groundwire serve` without the extras and yield its root address."""
    command = [sys.executable, "-c", MAIN, "serve", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, env=clean(), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = next((line for line in process.stderr if "serves http" in line), "")
        address = re.search(r"http://[\d.:]+", line)
        assert address, line
        yield address.group()
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_serve_answers_and_verifies_without_any_extra(tmp_path: Path) -> None:
    body = {"answer": "Revenue was $5M. Costs fell.", "sources": ["Revenue was $4M in 2023. Costs fell."]}
    with served(tmp_path) as root:
        with urllib.request.urlopen(f"{root}/healthz", timeout=30) as response:
            assert response.status == 200
        request = urllib.request.Request(f"{root}/v1/grounding/verify", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as response:
            report = json.load(response)
    assert [claim["label"] for claim in report["choices"][0]["claims"]] == ["contradicted", "supported"]


def test_the_demo_runs_without_any_extra(tmp_path: Path) -> None:
    done = run("demo", "--pace", "0", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "contradicted" in done.stdout


def test_check_runs_with_the_embedded_model_and_without_any_extra(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text("The office opens at nine. Dogs are allowed.", encoding="utf-8")
    (tmp_path / "source.md").write_text("Our office is open from 9 am. Dogs may come along.", encoding="utf-8")
    done = run("check", "answer.txt", "source.md", "--json", folder=tmp_path)
    report = json.loads(done.stdout)
    assert report["degraded"] == []
    assert report["coverage"]["claims_checked"] == 2


def test_the_library_works_without_any_extra(tmp_path: Path) -> None:
    code = "from groundwire import verify_claims; print(verify_claims('Revenue was $4.2M.', 'Revenue: $4.2M.').verdict)"
    assert run(folder=tmp_path, code=WITHOUT + code).stdout == "grounded\n"


def test_eval_measures_without_any_extra(tmp_path: Path) -> None:
    done = run("eval", "--limit", "2", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "sample" in done.stdout


def test_answers_are_stored_for_review_with_the_extra_history_alone(tmp_path: Path) -> None:
    others = [module for module in NOT_IN_BASE if module not in EXTRAS["history"]]
    code = WITHOUT.replace(repr(NOT_IN_BASE), repr(others)) + (
        "from groundwire.config import Settings\n"
        "from groundwire.http.app import build_app\n"
        "settings = Settings.model_validate({'store': {'url': 'sqlite:///history.db'}})\n"
        "print('/v1/reviews' in [getattr(route, 'path', '') for route in build_app(settings).routes])"
    )
    done = run(folder=tmp_path, code=code)
    assert done.stdout == "True\n", done.stderr


NEEDS = {
    "upstreams: {claude: {dialect: litellm, litellm_model: anthropic/x, models: ['*']}}": (
        "upstreams.claude.dialect",
        "providers",
    ),
    "store: {url: 'sqlite:///history.db'}": ("store.url", "history"),
    "store: {url: 'postgresql://127.0.0.1/test'}": ("store.url", "history,postgres"),
    "jobs: {url: 'sqlite:///jobs.db'}": ("jobs.url", "jobs"),
    "facts: {url: 'sqlite:///facts.db', templates: {one: 'SELECT 1 AS value'}}": ("facts.url", "history"),
    "cache: {redis_url: 'redis://127.0.0.1:6379/0'}": ("cache.redis_url", "redis"),
    "telemetry: {otlp_endpoint: 'http://127.0.0.1:4318'}": ("telemetry.otlp_endpoint", "telemetry"),
    "quotes: {mode: fuzzy}": ("quotes.mode", "fuzzy"),
    "correction: {enabled: true}": ("correction.enabled", "schema"),
    "mcp: {enabled: true}": ("mcp.enabled", "mcp"),
    "judge: {model: owner/name}": ("judge.model: owner/name is on the hub", "hub"),
}


@pytest.mark.parametrize("settings", NEEDS)
def test_a_setting_whose_extra_is_missing_is_an_error_at_start_with_the_command(settings: str, tmp_path: Path) -> None:
    setting, extras = NEEDS[settings]
    (tmp_path / "config.yaml").write_text(settings, encoding="utf-8")
    done = run("serve", "--port", "0", folder=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert f"{setting}: it needs pip install 'groundwire[{extras}]'" in done.stderr


def test_all_missing_extras_are_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("mcp: {enabled: true}\nquotes: {mode: fuzzy}\n", encoding="utf-8")
    done = run("config", folder=tmp_path)
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["quotes.mode", "mcp.enabled"]


@pytest.mark.parametrize(
    ("arguments", "needs"),
    [
        (("mcp",), "groundwire mcp: it needs pip install 'groundwire[mcp]'"),
        (("batch", "in", "out", "--engine", "dask"), "--engine dask: it needs pip install 'groundwire[cluster]'"),
        (("demo", "--stay"), "groundwire demo --stay: it needs pip install 'groundwire[history]'"),
        (("calibrate", "--from-reviews"), "calibrate --from-reviews: it needs pip install 'groundwire[history]'"),
    ],
)
def test_a_command_whose_extra_is_missing_names_the_command_to_install_it(
    arguments: tuple[str, ...], needs: str, tmp_path: Path
) -> None:
    environ = {} if arguments[0] == "demo" else {"GROUNDWIRE_STORE__URL": "sqlite:///history.db"}
    environ = environ if arguments[0] == "calibrate" else {}
    done = run(*arguments, folder=tmp_path, environ=environ)
    assert done.returncode == 2
    assert done.stderr == f"{needs}\n"


def test_a_json_schema_that_cannot_be_validated_is_reported(tmp_path: Path) -> None:
    code = "from groundwire.verifiers.json_schema import validate; print(*validate('{}', '{}')[:2], sep='; ')"
    done = run(folder=tmp_path, code=WITHOUT + code)
    assert done.stdout == ("not_checked; the JSON schema cannot be used: it needs pip install 'groundwire[schema]'\n")


def test_fuzzy_quotations_without_their_library_are_an_error_of_the_library(tmp_path: Path) -> None:
    code = (
        "from groundwire import QuotePolicy, check_quotes\n"
        "text, source = 'He wrote \"the board approved the new budget\".', 'The board has approved a new budget.'\n"
        "try:\n    check_quotes(text, source, policy=QuotePolicy(fuzzy=True))\n"
        "except Exception as error:\n    print(type(error).__name__, error)"
    )
    done = run(folder=tmp_path, code=WITHOUT + code)
    assert "pip install 'groundwire[fuzzy]'" in done.stdout, done.stderr


def test_every_extra_of_the_code_is_one_of_the_distribution_and_all_holds_every_one() -> None:
    extras = PROJECT["optional-dependencies"]
    assert set(EXTRAS) | {"all", "eval"} == set(extras)
    (together,) = extras["all"]
    assert set(re.findall(r"[\w-]+", together)) - {"groundwire"} == set(extras) - {"all"}


def test_the_documentation_describes_every_extra() -> None:
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    assert [extra for extra in PROJECT["optional-dependencies"] if f"| `{extra}` |" not in page] == []


def test_the_changelog_has_the_version_of_the_distribution() -> None:
    assert f"## [{PROJECT['version']}] - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_base_has_at_most_ten_dependencies() -> None:
    assert len(PROJECT["dependencies"]) <= 10
