"""The suites of bench/suites have the stated sizes, labels and changes."""

import json
import random
from pathlib import Path

import pytest

from bench.suites import numbers, quotations, reports
from bench.suites.__main__ import number_cases, paraphrase_cases, quotation_cases
from bench.suites.case import FOLDER, Rate, read
from bench.suites.figures import another_digit, rounded
from groundwire.evaluation.rows import read_rows


@pytest.mark.parametrize(("name", "label", "least"), [("paraphrases", 0, 300), ("edited", 1, 150)])
def test_pairs_are_rows_of_the_eval_command(name, label, least):
    rows, problems = read_rows((FOLDER / f"{name}.jsonl").read_text().splitlines())
    assert not problems
    assert len(rows) >= least
    assert {row.label for row in rows} == {label}


def test_held_out_paraphrases_come_in_pairs():
    rows, problems = read_rows((FOLDER / "paraphrases_heldout.jsonl").read_text().splitlines())
    assert not problems
    contexts = {row.context: {other.label for other in rows if other.context == row.context} for row in rows}
    assert set(map(frozenset, contexts.values())) == {frozenset((0, 1))}
    assert len(contexts) == len(rows) // 2 == 30


def test_edited_twin_differs_from_its_paraphrase_only_in_its_span():
    faithful = {row["id"]: row["answer"] for row in read("paraphrases.jsonl")}
    for row in read("edited.jsonl"):
        (span,), twin = row["spans"], faithful[row["meta"]["twin"]]
        tail = len(row["answer"]) - span["end"]
        assert row["answer"] != twin
        assert twin.startswith(row["answer"][: span["start"]])
        assert twin.endswith(row["answer"][len(row["answer"]) - tail :])


def test_quotations_are_verbatim_and_every_edit_changes_them():
    rows = read("quotations.jsonl")
    assert len(rows) >= 60
    assert all(row["quotation"] in row["context"] for row in rows)
    for row in rows:
        for edit in row["edits"]:
            wrong = quotations.edited(row["quotation"], edit["old"], edit["new"])
            assert wrong not in row["context"], wrong


def test_numbers_are_changed_the_same_way_every_time():
    rows = read("numbers.jsonl")
    assert sum(row["kind"] == "stated" for row in rows) >= 80
    assert set(number_cases(rows)) == set(number_cases(reversed(rows)))


@pytest.mark.parametrize("cases", [paraphrase_cases, quotation_cases, lambda: number_cases(read("numbers.jsonl"))])
def test_every_case_has_an_id_of_its_own_and_no_text_is_both_right_and_wrong(cases):
    found = list(cases())
    assert len({case.id for case in found}) == len(found)
    right, wrong = ({(case.context, case.text) for case in found if case.wrong is each} for each in (False, True))
    assert not right & wrong


CLAIM = numbers.Claim(
    "Sales rose to $", "1,482.5", " million in Q3 2023.", "Sales rose to $1,482.5 million in Q3 2023."
)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param(numbers.unit_swap, "Sales rose to €1,482.5 million in Q3 2023.", id="unit"),
        pytest.param(numbers.sign, "Sales fell to $1,482.5 million in Q3 2023.", id="sign"),
        pytest.param(numbers.neighbouring_period, "Sales rose to $1,482.5 million in Q2 2023.", id="quarter"),
        pytest.param(numbers.rounding, "Sales rose to about $1,480 million in Q3 2023.", id="rounding"),
        pytest.param(numbers.notation, "Sales rose to $1.4825 billion in Q3 2023.", id="notation"),
    ],
)
def test_change_of_a_claim(change, text):
    assert change(CLAIM, random.Random(0)) == text


def test_changed_digit_never_gives_the_same_value():
    rng = random.Random(0)
    assert all(another_digit("10.5", rng) != "10.5" for _ in range(50))
    assert not any(another_digit("10.5", rng).startswith("0") for _ in range(50))


def test_rounding_that_changes_nothing_is_no_rounding():
    assert rounded("1,200", 2) is None
    assert rounded("1,234", 2) == "1,200"


def test_rate_has_wilsons_interval():
    low, high = Rate(8, 10).interval
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert Rate(0, 0).interval == (0.0, 1.0)


def test_gold_answer_with_one_number_becomes_a_claim(tmp_path: Path):
    item = {"id": "a", "task": "FinQA-span", "context": "Sales | $25.7", "label": 0}
    item |= {"question": "What were the net sales in 2019?", "answer": "$25.7 million"}
    (tmp_path / reports.FILE).write_text(json.dumps(item))
    (row,) = reports.rows_in(tmp_path, stated=5, computed=5, seed=0)
    assert row["claim"] == "The net sales in 2019 were ${25.7} million."
    assert reports.rows_in(tmp_path / "elsewhere", stated=5, computed=5, seed=0) == []
