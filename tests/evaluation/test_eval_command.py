"""`groundwire eval` as a user runs it, on our own sample."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.evaluation.figures import check_baseline, group_means, measure
from groundwire.evaluation.rows import SAMPLE, Outcome, Row, examine, read_rows
from groundwire.evaluation.run import markdown_table
from groundwire.policy import Policy


def run(*arguments):
    return CliRunner().invoke(app, ["eval", *map(str, arguments)])


@pytest.fixture(scope="module")
def sample_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    result = run(SAMPLE, "--json", folder / "run.json", "--plots", folder / "plots", "--table", folder / "run.md")
    assert result.exit_code == 0, result.output
    return folder


def test_run_writes_figures_intervals_and_outcomes(sample_run):
    written = json.loads((sample_run / "run.json").read_text())
    figures = written["datasets"]["sample"]
    assert figures["n"] == len(figures["outcomes"]) >= 40
    assert figures["intervals"]["f1"][0] <= figures["f1"] <= figures["intervals"]["f1"][1]
    assert figures["span_f1"] > 0
    assert figures["balanced_accuracy"] > 0.7


def test_reliability_diagram_is_an_svg(sample_run):
    assert ElementTree.parse(sample_run / "plots" / "sample.svg").getroot().tag.endswith("svg")


def test_table_has_the_figures_of_each_set_and_the_means_of_each_group(sample_run):
    heading, _, row = (sample_run / "run.md").read_text().splitlines()
    cells = dict(zip(heading.split(" | "), row.split(" | "), strict=True))
    figures = json.loads((sample_run / "run.json").read_text())["datasets"]["sample"]
    assert cells["n"] == str(figures["n"])
    assert float(cells["balanced accuracy"]) == pytest.approx(figures["balanced_accuracy"], abs=0.0005)
    core = measure("qags_report", [examine(read_rows(SAMPLE.read_text().splitlines())[0][0], Policy())])
    assert markdown_table([core]).splitlines()[-1].startswith("| **core, mean** |")


def test_bad_lines_are_named_and_the_rest_is_measured(tmp_path: Path):
    file = tmp_path / "mine.jsonl"
    file.write_text(SAMPLE.read_text().splitlines()[0] + "\nnot JSON\n")
    result = run(file)
    assert result.exit_code == 0
    assert f"{file}:2: passed over: no JSON" in result.stderr.replace("\n", "")
    assert "mine" in result.stdout


def test_run_compares_with_an_earlier_one_of_the_same_rows(sample_run):
    result = run(SAMPLE, "--compare", sample_run / "run.json", "--limit", "10")
    assert result.exit_code == 0
    assert "+0.000" in result.stdout


@pytest.mark.parametrize(
    ("baseline", "exit_code"),
    [
        pytest.param({"sample.balanced_accuracy": 0.5}, 0, id="kept"),
        pytest.param({"sample.balanced_accuracy": 1.01}, 1, id="too low"),
        pytest.param({"sample.false_alarms": {"max": -0.1}}, 1, id="too high"),
        pytest.param({"other.f1": 0.1}, 1, id="not measured"),
    ],
)
def test_figure_outside_the_baseline_fails_the_run(tmp_path: Path, baseline, exit_code):
    stored = tmp_path / "baseline.json"
    stored.write_text(json.dumps(baseline))
    result = run(SAMPLE, "--limit", "12", "--baseline", stored)
    assert result.exit_code == exit_code
    assert (next(iter(baseline)) in result.stdout) == bool(exit_code)


def test_a_bound_of_zero_is_named(tmp_path: Path):
    stored = tmp_path / "baseline.json"
    stored.write_text(json.dumps({"sample.coverage": {"max": 0}}))
    result = run(SAMPLE, "--limit", "2", "--baseline", stored)
    assert "the baseline asks for at most 0" in " ".join(result.stdout.split())


def test_bound_equal_to_the_measured_figure_is_met():
    run = {"datasets": {"a": {"f1": 0.5}}, "groups": {}}
    assert check_baseline(run, {"a.f1": 0.5}) == []
    assert check_baseline(run, {"a.f1": 0.51}) == ["a.f1 is 0.5000; the baseline asks for at least 0.51."]


def test_group_means_take_each_set_once_whatever_its_size():
    right, wrong = Outcome("1", 1, True, 0.0, 1.0, 5, 1.0), Outcome("2", 0, False, 1.0, 1.0, 5, 1.0)
    missed = Outcome("3", 1, False, 1.0, 1.0, 5, 1.0)
    results = [
        measure("begin_report", [right, wrong] * 10),
        measure("bump_report", [missed, wrong]),
        measure("mine", [missed, wrong]),
    ]
    means = group_means(results)
    assert list(means) == ["core"]
    assert means["core"]["sets"] == 2
    assert means["core"]["balanced_accuracy"] == pytest.approx((1.0 + 0.5) / 2)


CONTEXT = ("The mill opened in 1904. It closed in 1977.",)


def test_flagged_characters_are_those_of_the_claims_that_are_not_supported():
    answer = "The mill opened in 1904. It closed in 1955."
    found = examine(Row("a", CONTEXT, answer, 1, ((25, 43),)), Policy())
    assert found.flagged
    assert found.spans == (18, 18, 18)
    assert found.support is not None
    assert found.support < 0.5


def test_answer_without_checkable_claims_is_neither_flagged_nor_supported():
    found = examine(Row("a", CONTEXT, "How can I help you?", 0), Policy())
    assert (found.flagged, found.support, found.checked) == (False, None, 0.0)


def test_ungrounded_answer_without_marked_spans_counts_for_no_span_figure():
    assert examine(Row("a", CONTEXT, "It closed in 1955.", 1), Policy()).spans is None
