"""The shape of evidence fields and of answers with a JSON schema."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.report import Violation
from groundwire.verifiers.schema import SchemaResult, read_evidence, validate_schema
from tests.steps import growth

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


@pytest.mark.slow
def test_quotations_are_read_in_linear_time() -> None:
    small, large = ({"q": [f"quote number {number}" for number in range(count)]} for count in (1000, 4000))
    assert growth(lambda answer: read_evidence(answer, ["q"]), small, large) < 6


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "items": {"type": "array", "items": {"type": "integer"}}},
    "required": ["name"],
    "additionalProperties": False,
}


def validated(answer: object, schema: dict[str, Any]) -> SchemaResult:
    return validate_schema(json.dumps(answer), schema)


def test_a_valid_answer_has_no_violation() -> None:
    assert validated({"name": "x", "items": [1]}, SCHEMA).outcome == "valid"


def test_violations_name_place_rule_and_type_and_no_text() -> None:
    result = validated({"items": [1, "secret"]}, SCHEMA)
    assert result.outcome == "invalid"
    assert {(each.field, each.index, each.expected, each.found) for each in result.violations} == {
        ("", None, "required name", "object"),
        ("/items/1", 1, "type integer", "string"),
    }
    assert "secret" not in repr(result)


@pytest.mark.parametrize(
    ("schema", "answer", "expected"),
    [
        pytest.param({"type": ["integer", "null"]}, "x", "type null or integer", id="one of several types"),
        pytest.param({"minLength": 3}, "x", "minLength 3", id="a bound"),
        pytest.param({"multipleOf": 0.5}, 0.3, "multipleOf 0.5", id="a factor"),
        pytest.param({"pattern": "^b"}, "secret", "pattern", id="a pattern"),
        pytest.param({"enum": ["a"]}, "secret", "enum", id="an enumeration"),
        pytest.param({"additionalProperties": False}, {"secret": 1}, "additionalProperties", id="any property"),
        pytest.param({"anyOf": [{"type": "null"}, {"const": 1}]}, "secret", "anyOf", id="no alternative"),
        pytest.param({"uniqueItems": True}, [{"secret": 1}] * 2, "uniqueItems", id="the same twice"),
    ],
)
def test_a_violation_names_its_rule(schema: dict[str, Any], answer: object, expected: str) -> None:
    result = validated(answer, schema)
    assert [each.expected for each in result.violations] == [expected]
    assert "secret" not in repr([(each.expected, each.found) for each in result.violations])


@pytest.mark.parametrize("text", ["no JSON", "", "{", '{"a": }', "[" * 100_000])
def test_a_text_that_is_no_json_violates_every_schema(text: str) -> None:
    assert validate_schema(text, {}) == SchemaResult("invalid", (Violation("", None, "JSON", "text"),))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        pytest.param({"type": "no such type"}, "the rule at /type is not valid", id="an invalid schema"),
        pytest.param({"$ref": "http://127.0.0.1:9/schema.json"}, "none is fetched", id="a remote reference"),
        pytest.param({"$ref": "file:///etc/hostname"}, "none is fetched", id="a reference to a file"),
        pytest.param({"$id": "http://127.0.0.1:9/a", "$ref": "b"}, "none is fetched", id="a reference to a sibling"),
        pytest.param({"$ref": "#/$defs/none"}, "a part it does not have", id="a reference to nothing"),
        pytest.param({"$schema": "http://127.0.0.1:9/own"}, "$schema is not supported", id="a dialect of one's own"),
        pytest.param({"pattern": "("}, "the pattern at /pattern", id="no pattern"),
        pytest.param({"items": {"pattern": "(?=a)b"}}, "the pattern at /items/pattern", id="look-ahead"),
        pytest.param({"pattern": r"(a)\1"}, "linear time", id="a back-reference"),
        pytest.param({"patternProperties": {"(?<!a)b": {}}}, "linear time", id="look-behind in a name"),
        pytest.param({"pattern": "(a{1000}){1000}"}, "linear time", id="a pattern that is too large"),
    ],
)
def test_a_schema_that_can_not_be_used_is_no_fault_of_the_answer(schema: dict[str, Any], reason: str) -> None:
    result = validated("text", schema)
    assert (result.outcome, result.violations) == ("not_checked", ())
    assert reason in result.reason


def test_a_schema_nested_too_deeply_is_not_used() -> None:
    schema: dict[str, Any] = {}
    for _ in range(400):
        schema = {"not": schema}
    assert "too deeply" in validated(1, schema).reason


def test_a_reference_to_itself_comes_to_an_end() -> None:
    assert validated(1, {"$ref": "#"}).outcome == "valid"


def test_a_recursive_schema_is_used() -> None:
    tree = {"properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    assert validated({"children": [{"children": []}]}, tree).outcome == "valid"
    assert [each.field for each in validated({"children": [{"children": 1}]}, tree).violations] == [
        "/children/0/children"
    ]


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        pytest.param({"pattern": "^(a+)+$"}, "a" * 100_000 + "!", id="nested repetition"),
        pytest.param({"pattern": "^(a|aa)+$"}, "a" * 100_000 + "!", id="alternatives that overlap"),
        pytest.param({"patternProperties": {"^(a+)+$": {"not": {}}}}, {"a" * 100_000 + "!": 1}, id="a property's name"),
        pytest.param({"propertyNames": {"pattern": "^(a+)+$"}}, {"a" * 100_000 + "!": 1}, id="names of properties"),
        pytest.param({"uniqueItems": True}, [{"x": each} for each in range(20_000)], id="distinct objects"),
    ],
)
def test_a_check_that_can_be_linear_comes_to_an_end(schema: dict[str, Any], answer: object) -> None:
    """Each of these took from half a minute to for ever with an engine that backtracks, or pairs all items."""
    assert validated(answer, schema).outcome in ("valid", "invalid")


def test_the_number_of_violations_is_bounded() -> None:
    result = validated(["x"] * 1000, {"items": {"type": "integer"}})
    assert len(result.violations) == 100


def test_an_answer_with_half_a_character_is_not_checked() -> None:
    result = validate_schema(r'{"a": "\ud800"}', {"properties": {"a": {"pattern": "x"}}})
    assert result.outcome == "not_checked"
