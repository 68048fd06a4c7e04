"""ES1, ES2, ES3: the shape of evidence fields and of answers with a JSON schema."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pace import keeps

from proxy.types import Violation
from proxy.verification.schema import read_evidence, validate_schema

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("answer", "quotes", "violations"),
    [
        pytest.param({"q": ["a", "b"]}, ["a", "b"], [], id="list of strings"),
        pytest.param({}, [], [], id="missing"),
        pytest.param({"q": None}, [], [], id="null"),
        pytest.param({"q": [" a ", "", "  ", "a", "b"]}, ["a", "b"], [], id="trimmed, no blanks, no duplicates"),
        pytest.param({"q": "a"}, [], [("q", None, "array", "string")], id="a string is not a list"),
        pytest.param({"q": {"a": 1}}, [], [("q", None, "array", "object")], id="an object is not a list"),
        pytest.param({"q": False}, [], [("q", None, "array", "boolean")], id="false is not nothing"),
        pytest.param({"q": 0}, [], [("q", None, "array", "number")], id="zero is not nothing"),
        pytest.param(
            {"q": ["a", 1, None, ["b"], "c"]},
            ["a", "c"],
            [("q", 1, "string", "number"), ("q", 2, "string", "null"), ("q", 3, "string", "array")],
            id="every element that is no string",
        ),
        pytest.param(["a"], [], [("", None, "object", "array")], id="top level array"),
        pytest.param(None, [], [("", None, "object", "null")], id="top level null"),
        pytest.param("{}", [], [("", None, "object", "string")], id="top level string"),
    ],
)
def test_evidence_is_read_and_never_coerced(
    answer: object, quotes: list[str], violations: list[tuple[str, int | None, str, str]]
) -> None:
    assert read_evidence(answer, ["q"]) == ({"q": quotes}, tuple(Violation(*each) for each in violations))


@pytest.mark.parametrize(
    ("field", "quotes"),
    [
        pytest.param("/result/quotes", ["x"], id="nested"),
        pytest.param("/items/1/q", ["y"], id="index"),
        pytest.param("/a~1b", ["z"], id="escape"),
        pytest.param("/items/9/q", [], id="index beyond the end"),
        pytest.param("/result/quotes/deep", [], id="below a list"),
        pytest.param("/plain", ["p"], id="a name that looks like a pointer"),
    ],
)
def test_a_field_may_be_a_json_pointer(field: str, quotes: list[str]) -> None:
    answer = {"result": {"quotes": ["x"]}, "items": [{}, {"q": ["y"]}], "a/b": ["z"], "/plain": ["p"]}
    assert read_evidence(answer, [field]) == ({field: quotes}, ())


def test_violations_of_all_fields_are_collected() -> None:
    _, violations = read_evidence({"a": 1, "b": [2], "c": ["fine"]}, ["a", "b", "c"])
    assert [(each.field, each.index) for each in violations] == [("a", None), ("b", 0)]


@given(JSON, st.lists(st.text(), max_size=3))
def test_any_json_is_read_to_lists_of_distinct_trimmed_strings(answer: object, fields: list[str]) -> None:
    quotes, _ = read_evidence(answer, fields)
    assert set(quotes) == set(fields)
    for texts in quotes.values():
        assert len(set(texts)) == len(texts)
        assert all(text and text == text.strip() for text in texts)


def test_reading_takes_less_than_a_millisecond() -> None:
    answer = {"q": [f"quote number {number}" for number in range(100)]}
    assert keeps(0.001, lambda: read_evidence(answer, ["q"]))


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "items": {"type": "array", "items": {"type": "integer"}}},
    "required": ["name"],
    "additionalProperties": False,
}


def test_a_valid_answer_has_no_violation() -> None:
    assert validate_schema({"name": "x", "items": [1]}, SCHEMA).outcome == "valid"


def test_violations_name_place_rule_and_type_and_no_text() -> None:
    result = validate_schema({"items": [1, "secret"]}, SCHEMA)
    assert result.outcome == "invalid"
    assert {(each.field, each.index, each.found) for each in result.violations} == {
        ("", None, "object"),
        ("/items/1", 1, "string"),
    }
    assert "secret" not in repr(result)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "no such type"}, id="invalid schema"),
        pytest.param({"$ref": "http://127.0.0.1:9/schema.json"}, id="remote reference is never fetched"),
        pytest.param({"$ref": "#"}, id="endless reference"),
        pytest.param({"type": "string", "pattern": "("}, id="invalid pattern"),
    ],
)
def test_a_schema_that_can_not_be_used_is_no_fault_of_the_answer(schema: dict[str, Any]) -> None:
    result = validate_schema("text", schema)
    assert (result.outcome, result.violations) == ("not_checked", ())
    assert result.reason


def test_the_number_of_violations_is_bounded() -> None:
    result = validate_schema(["x"] * 1000, {"items": {"type": "integer"}})
    assert len(result.violations) == 100
