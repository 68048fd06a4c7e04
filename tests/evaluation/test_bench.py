"""The benches that need no server: the ceiling with a perfect judge, the baseline of word overlap, and the machine."""

import json
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench import oracle, overlap
from bench.everyday import EVERYDAY
from bench.report import heading, machine
from bench.suites.case import FOLDER, read
from groundwire.config import JudgeSettings, Settings
from groundwire.container.models import open_judge
from groundwire.judge import Judge
from groundwire.verifiers.entailment import Entailment, Question

SENTENCES = [path.stem for path in FOLDER.glob("*.jsonl") if "sentences" in read(path.name)[0]]


class Counting:
    """A model that has one opinion on every claim, and counts them."""

    state = "ready"

    def __init__(self, supported: float = 0.98) -> None:
        self.opinion = Entailment(supported, 0.01)
        self.asked: list[str] = []

    def entail(self, questions: Sequence[Question]) -> list[Entailment]:
        self.asked += [each.claim for each in questions]
        return [self.opinion] * len(questions)


def test_the_ceiling_is_measured_on_every_suite() -> None:
    known = {(each.context, each.text) for each in oracle.texts()}
    assert len(SENTENCES) >= 5
    for name in SENTENCES:
        assert all(
            (row["document"], each["text"]) in known for row in read(f"{name}.jsonl") for each in row["sentences"]
        )
    for name in ("paraphrases", "edited", "paraphrases_heldout"):
        assert all((row["context"], row["answer"]) in known for row in read(f"{name}.jsonl"))
    for name in ("numbers_heldout", "numbers_fresh"):
        assert all((row["context"], row["claim"]) in known for row in read(f"{name}.jsonl"))


def test_the_ceiling_is_that_of_the_pipeline() -> None:
    claim = "The tank of the machine is big enough for a whole day."
    text = oracle.Text("s", "1", "k", "Fill it up each morning.", f"{claim} {claim}", "supported")
    model = Counting()
    (found,) = oracle.measure([text], Judge(model))
    assert found.is_right
    assert model.asked == [claim]  # the pipeline judges equal claims once


def test_a_perfect_judge_gives_the_labels_of_sentences() -> None:
    known = list(oracle.texts())
    perfect = oracle.Oracle(known)
    tried = [next(e for e in known if (e.suite, e.label) == (s, label)) for s in SENTENCES for label in oracle._ANSWERS]
    with (
        oracle.serving(perfect) as url,
        open_judge(Settings(judge=JudgeSettings(by="external", url=url))) as judge,
    ):
        outcomes = oracle.measure(tried, judge)
    assert [each for each in outcomes if not each.is_right] == []
    assert perfect.unknown == []


def test_advice_that_the_judge_has_read_names_its_verifier() -> None:
    advice = next(each for each in oracle.texts() if each.text == "Serve the beans with crusty bread.")
    (found,) = oracle.measure([advice], Judge(Counting(0.01)))
    assert (found.label, found.verifier) == ("not_checked", "statement")


@pytest.mark.parametrize(
    ("suite", "label", "verifier", "right"),
    [
        ("instructions", "unsupported", "statement", True),
        ("instructions", "unsupported", "", False),  # set aside before the judge has read it
        ("instructions", "contradicted", "statement", False),
        ("everyday", "unsupported", "statement", False),
    ],
)
def test_only_advice_may_stay_unchecked(suite: str, label: str, verifier: str, right: bool) -> None:
    text = oracle.Text(suite, "1", "k", "Context.", "Serve it cold.", label)
    outcome = oracle.Outcome(text, "not_checked", verifier, "")
    assert outcome.is_right is right
    assert oracle.figures([outcome])["wrong_passed"] == (0.0 if right else 1.0)


def test_the_threshold_of_overlap_is_the_one_with_the_best_balanced_accuracy() -> None:
    scored = [(0.2, 1), (0.4, 1), (0.4, 0), (0.8, 1), (0.8, 0), (1.0, 0), (1.0, 0)]
    found = overlap.figures(scored)
    assert (found["threshold"], found["false_alarms"], found["misses"]) == (0.8, 0.5, 0.0)
    assert found["balanced_accuracy"] == 0.75
    assert overlap.figures([(0.5, 0)]) == {
        "answers": 1,
        "auroc": None,
        "balanced_accuracy": None,
        "false_alarms": None,
        "misses": None,
        "threshold": None,
    }


def test_overlap_measures_files_and_everyday_suites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"id": "a", "context": "Boats are red.", "answer": "Boats are red.", "label": 0},
        {"id": "b", "context": "Boats are red.", "answer": "Whales swim north.", "label": 1},
    ]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "out.json"
    monkeypatch.setattr(sys, "argv", ["overlap", str(tmp_path / "own.jsonl"), "--json", str(out)])
    overlap.main()
    found = json.loads(out.read_text())
    assert set(found) == {"own", *EVERYDAY}
    assert found["own"] == {
        "answers": 2,
        "auroc": 1.0,
        "balanced_accuracy": 1.0,
        "false_alarms": 0.0,
        "misses": 0.0,
        "threshold": 0.0,
    }
    assert found["everyday"]["answers"] == sum(len(row["sentences"]) for row in read("everyday.jsonl"))
    assert "| own | 2 | 1.0 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "pgo"), [("'--enable-optimizations' '--with-lto'", True), ("'--prefix=/usr'", False), (None, False)]
)
def test_results_name_whether_python_was_built_with_pgo(
    monkeypatch: pytest.MonkeyPatch, arguments: str | None, pgo: bool
) -> None:
    monkeypatch.setattr(sysconfig, "get_config_var", {"CONFIG_ARGS": arguments}.get)
    on = machine()
    assert on["pgo"] is pgo
    assert ("with PGO" if pgo else "without PGO") in heading("Title", {"machine": on, "command": "x"})
