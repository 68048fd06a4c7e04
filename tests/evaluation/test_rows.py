"""Labelled files are read line by line, and a bad line is named and skipped."""

import json

import pytest

from groundwire.evaluation.rows import SAMPLE, draw, read_rows

GOOD = {"id": "a", "context": "Snow fell.", "answer": "It snowed.", "label": 0}


def read(*rows):
    return read_rows(json.dumps(row) if isinstance(row, dict) else row for row in rows)


def test_row_needs_no_more_than_id_context_answer_and_label():
    (row,), problems = read(GOOD)
    assert (row.id, row.context, row.answer, row.label, row.spans) == ("a", ("Snow fell.",), "It snowed.", 0, None)
    assert not problems


def test_context_may_be_a_list_of_passages():
    (row,), _ = read(GOOD | {"context": ["Snow fell.", "It melted."]})
    assert row.context == ("Snow fell.", "It melted.")


def test_rows_of_one_source_share_a_group():
    rows, _ = read(GOOD | {"meta": {"source_id": 7}}, GOOD | {"id": "b", "meta": {"source_id": 7}})
    assert [row.group for row in rows] == ["7", "7"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param("{", "no JSON", id="broken JSON"),
        pytest.param("[" * 100_000, "recursion", id="hostile nesting"),
        pytest.param("[1]", "no JSON object", id="a list"),
        pytest.param({"id": "b", "context": "x", "label": 0}, '"answer" is missing', id="no answer"),
        pytest.param(GOOD | {"id": 3}, '"id" is missing or no text', id="id is a number"),
        pytest.param(GOOD | {"label": 2}, "neither 0 nor 1", id="label 2"),
        pytest.param(GOOD | {"label": "1"}, "neither 0 nor 1", id="label as text"),
        pytest.param(GOOD | {"label": 0.0}, "neither 0 nor 1", id="label as a share"),
        pytest.param(GOOD | {"context": [1]}, '"context" is neither', id="context of numbers"),
        pytest.param(GOOD | {"label": 1, "spans": [{"start": 5, "end": 99}]}, "outside", id="span too far"),
        pytest.param(GOOD | {"label": 1, "spans": [{"start": 5}]}, '"spans" is no list', id="span without end"),
        pytest.param(GOOD | {"label": 1, "spans": [{"start": 0, "end": 1e999}]}, "whole numbers", id="endless span"),
        pytest.param(GOOD | {"label": 1, "spans": [{"start": "0", "end": 2}]}, "whole numbers", id="text as an offset"),
        pytest.param(GOOD | {"spans": [{"start": 0, "end": 2}]}, "grounded answer", id="grounded answer with a span"),
    ],
)
def test_bad_line_is_named_and_the_others_are_read(line, why):
    rows, problems = read("", GOOD | {"id": "first"}, line, GOOD | {"id": "last"})
    assert [row.id for row in rows] == ["first", "last"]
    assert [problem.line for problem in problems] == [3]
    assert why in problems[0].why


def test_second_row_with_one_id_is_a_problem():
    rows, problems = read(GOOD, GOOD)
    assert len(rows) == 1
    assert [problem.line for problem in problems] == [2]


def test_drawn_rows_are_the_same_every_time_and_keep_their_order():
    rows, _ = read(*(GOOD | {"id": str(number)} for number in range(50)))
    drawn = draw(rows, 10)
    assert drawn == draw(rows, 10)
    assert [int(row.id) for row in drawn] == sorted(int(row.id) for row in drawn)
    assert len(drawn) == 10
    assert draw(rows, 99) == draw(rows, None) == rows


def test_shipped_sample_is_sound_and_has_both_classes():
    rows, problems = read_rows(SAMPLE.read_text(encoding="utf-8").splitlines())
    assert not problems
    assert len(rows) >= 40
    assert 0.4 < sum(row.label for row in rows) / len(rows) < 0.6
    assert all(bool(row.spans) == bool(row.label) for row in rows)
