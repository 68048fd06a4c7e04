"""JSON read with the place of every value."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.text.jsontext import Misfit, Node, offsets_of, parse_object, read_tree, scalars

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
).filter(lambda value: isinstance(value, (dict, list)))


def as_python(node: Node) -> object:
    if node.items is None:
        return node.value
    inside = [(item.key, as_python(item)) for item in node.items]
    return dict(inside) if node.in_object else [value for _, value in inside]


def leaf_values(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in leaf_values(inner)]
    return [leaf for inner in value for leaf in leaf_values(inner)] if isinstance(value, list) else [value]


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_tree_has_the_values_and_the_span_of_the_json(value: object, indent: int | None, ascii_: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_)
    tree = read_tree(f"x: {text} y", 3)
    assert isinstance(tree, Node)
    assert repr(as_python(tree)) == repr(value)
    assert (tree.start, tree.end, tree.leaves) == (3, 3 + len(text), len(leaf_values(value)))


@given(JSON)
def test_scalars_are_all_leaves_at_their_reported_places(value: object) -> None:
    text = json.dumps(value)
    found = list(scalars(text))
    assert repr([scalar.value for scalar in found]) == repr(leaf_values(value))
    for scalar in found:
        written = text[scalar.start : scalar.end]
        read = json.loads(f'"{written}"' if isinstance(scalar.value, str) else written)
        assert repr(read) == repr(scalar.value)


@given(st.text(max_size=30))
def test_escaped_string_maps_to_where_it_is_written(value: str) -> None:
    text = json.dumps([value])
    places = offsets_of(text, 2, len(text) - 2)
    if places is None:
        assert text[2:-2] == value
        return
    assert len(places) == len(value) + 1
    for index, char in enumerate(value):
        assert json.loads(f'"{text[places[index] : places[index + 1]]}"') == char


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "{",
        "[1",
        '{"a"',
        '{"a": }',
        '{"a" 1}',
        "[1,]",
        "[1 2]",
        "{1: 2}",
        "[1}",
        '{"a": 1]',
        "]",
        "1",
        '"a"',
        "[" * 65 + "]" * 65,
    ],
)
def test_malformed_text_is_a_misfit(text: str) -> None:
    assert isinstance(read_tree(text), Misfit)


def test_python_literals_are_read() -> None:
    tree = read_tree("{'a': None, 'b': [True, 'it\\'s', \"x\"]}")
    assert isinstance(tree, Node)
    assert as_python(tree) == {"a": None, "b": [True, "it's", "x"]}


@given(st.text(alphabet="[]{},:\"'\\1a \n", max_size=60))
def test_any_text_is_a_tree_or_a_misfit(text: str) -> None:
    assert read_tree(text).end <= len(text)


@pytest.mark.parametrize("text", ["1", '"a"', "nothing", "", "{", '{"a": 1} x', "[" * 100_000])
def test_anything_but_a_whole_object_or_array_is_no_object(text: str) -> None:
    assert parse_object(text) is None


def test_pointer_escapes_slash_and_tilde() -> None:
    (scalar,) = scalars('{"a/b": [{"c~d": 1}]}')
    assert scalar.pointer == "/a~1b/0/c~0d"
