"""Promises of the documents: the README's example is the real output, and no command or flag is missing from it."""

from __future__ import annotations

import ast
import doctest
import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from groundwire.backends.loading import load_judge
from groundwire.cli import app
from groundwire.config import load_settings
from groundwire.dialects.dialect import Answer
from groundwire.dialects.openai import CHAT
from groundwire.dialects.request import HEADERS, Options
from groundwire.domain import Choice, Claim, Exchange, Source, Status
from groundwire.evidence.index import Context
from groundwire.evidence.messages import gather
from groundwire.pipeline import verify
from groundwire.policy import Policy
from groundwire.scoring.aggregate import FLAGS

ROOT = Path(__file__).parent.parent
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
WIRE = (ROOT / "docs/wire.md").read_text(encoding="utf-8")
PAGES = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
]


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def differences(promised: Any, real: Any, place: str = "") -> list[str]:
    """List the places where `real` does not hold the promised value; it may hold more."""
    if isinstance(promised, dict):
        missing = [f"{place}.{key} is missing" for key in promised.keys() - real.keys()]
        shared = promised.keys() & real.keys()
        return missing + [found for key in shared for found in differences(promised[key], real[key], f"{place}.{key}")]
    if isinstance(promised, list):
        pairs = zip(promised, real, strict=True)
        return [found for at, (one, other) in enumerate(pairs) for found in differences(one, other, f"{place}[{at}]")]
    return [] if promised == real else [f"{place}: {real!r}, not {promised!r}"]


def test_the_example_of_the_readme_is_what_comes_out() -> None:
    code = blocks("python")[0]
    call = next(node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.keyword) and node.arg == "messages")
    answer = re.search(r"content\s+# '(.*)'", code)
    assert answer
    exchange = Exchange(messages=CHAT.messages({"messages": ast.literal_eval(call.value)}))
    report = verify([Choice(0, answer[1], "stop")], Context(gather(exchange)), judge=load_judge()).to_dict()
    promised = json.loads(re.sub(r"//.*", "", blocks("jsonc")[0]))
    del promised["id"]
    assert differences(promised, report) == []


@pytest.mark.parametrize("example", blocks("pycon"), ids=lambda text: text.splitlines()[0])
def test_every_session_of_the_readme_prints_the_output_shown(example: str) -> None:
    session = doctest.DocTestParser().get_doctest(example, {}, "README.md", "README.md", 0)
    assert session.examples
    assert doctest.DocTestRunner(verbose=False).run(session).failed == 0


def test_the_pages_quote_the_figures_that_were_measured_last() -> None:
    measured = (ROOT / "bench/results/eval.md").read_text(encoding="utf-8")
    assert measured.count("\n") > 10
    assert measured in (ROOT / "docs/accuracy.md").read_text(encoding="utf-8")
    for group, row in (("core", "seven public sets"), ("tables", "five public sets")):
        cells = re.search(rf"\*\*{group}, mean\*\* .*", measured)
        assert cells
        figures = [float(value) for value in re.findall(r"\*\*(\.\d+)\*\*", cells[0])]
        alarms, balanced, auroc = figures[1:4]
        misses = 1 - (2 * balanced - (1 - alarms))
        assert_row(row, alarms, misses, auroc)


def assert_row(row: str, alarms: float, misses: float, auroc: float) -> None:
    cells = f"| {alarms:.0%} | {misses:.0%} | {auroc:.3f} |".replace("| 0.", "| .")
    assert re.search(rf"\| {row}.* " + re.escape(cells), README.replace(" %", "%"))


@pytest.mark.parametrize(
    ("row", "suite", "judge"),
    [
        ("twenty everyday", "everyday_later", "entailment model"),
        ("twenty others", "everyday_open", "entailment model"),
        ("the first twenty by word overlap", "everyday_later", "word overlap, fifteen lines"),
    ],
)
def test_the_readme_quotes_the_everyday_documents(row: str, suite: str, judge: str) -> None:
    measured = json.loads((ROOT / f"bench/results/{suite}.json").read_text(encoding="utf-8"))["figures"][judge]
    assert_row(row, measured["false_alarms"], measured["misses"], measured["auroc"])


def commands() -> list[str]:
    groups = [(group.name, group.typer_instance.registered_commands) for group in app.registered_groups]
    return [
        *(command.name or command.callback.__name__ for command in app.registered_commands),
        *(f"{name} {command.name}" for name, inner in groups for command in inner),
    ]


@pytest.mark.parametrize("command", commands())
def test_every_command_is_documented(command: str) -> None:
    assert f"groundwire {command}" in (ROOT / "docs/commands.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("flag", FLAGS)
def test_every_flag_is_documented(flag: str) -> None:
    assert re.search(rf"^\| .*`{flag}`.* \|", WIRE, re.MULTILINE)


@pytest.mark.parametrize("option", [*Options.model_fields, *HEADERS, *get_args(Status)])
def test_every_option_and_status_is_documented(option: str) -> None:
    assert re.search(rf"`(?:grounding)?\.?{option}`", WIRE)


def test_the_example_of_a_verifier_works() -> None:
    module: dict[str, Any] = {}
    exec(blocks("python", CONTRIBUTING)[0], module)
    context = Context([Source("s", "source", "Write to info@acme.org.")])
    for address, label in (("help@acme.org", "unsupported"), ("info@acme.org", None)):
        text = f"Write to {address}."
        verdict = module["verify"](Claim("c1", text, 0, len(text)), context, Policy())
        assert (verdict and verdict.label) == label


def test_the_example_of_a_dialect_works() -> None:
    module: dict[str, Any] = {}
    exec(blocks("python", CONTRIBUTING)[1], module)
    answer = Answer(module["ANSWERS"], 1)
    for event in ({"text": "Hello", "done": False}, {"text": " there.", "done": True}):
        answer.add(event)
    assert [(each.text, each.finish_reason) for each in answer.choices()] == [("Hello there.", "stop")]


def test_the_lines_that_an_addition_changes_are_in_the_code() -> None:
    removed = re.findall(r"^- (.*)$", "".join(blocks("diff", CONTRIBUTING)), re.MULTILINE)
    settings = re.search(r"^## Add a setting\n(.*?)^## ", CONTRIBUTING, re.MULTILINE | re.DOTALL)
    assert settings
    rows = re.findall(r"^\| `([\w./]+)`.*? \| (.*) \|$", settings[1], re.MULTILINE)
    lines = [*removed, *(line for _, cell in rows for line in re.findall(r"`([^`]*=[^`]*|[^`]*: [^`]*)`", cell))]
    assert len(lines) > 8
    code = [*(ROOT / "proxy").rglob("*.py"), ROOT / "config.yaml"]
    texts = "\n".join(path.read_text(encoding="utf-8") for path in code)
    assert [line for line in lines if line not in texts] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors that links to the headings of a page use."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", PAGES)
def test_every_link_to_a_heading_finds_it(document: str) -> None:
    page = ROOT / document
    links = re.findall(r"\]\((?!https?://)([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    assert [(to, at) for to, at in links if at not in anchors(page.parent / to if to else page)] == []


@pytest.mark.parametrize("document", PAGES)
def test_every_example_of_settings_can_be_used(document: str, tmp_path: Path) -> None:
    examples = re.findall(
        r"^```yaml\n(\S.*?)```", (ROOT / document).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    for example in examples:
        file = tmp_path / "config.yaml"
        file.write_text(example, encoding="utf-8")
        load_settings(file, {})


@pytest.mark.parametrize("document", PAGES)
def test_every_link_into_the_project_leads_somewhere(document: str) -> None:
    page = ROOT / document
    links = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
