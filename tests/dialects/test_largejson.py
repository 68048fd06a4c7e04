"""Large JSON is parsed in steps to the same values as by any other parser, and bounded before it is built."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from groundwire.dialects import jsonbytes
from groundwire.dialects.jsonbytes import (
    ValuesTooLarge,
    edited,
    is_light,
    loads_object,
    members,
    parse_large,
    with_member,
)

TEXT = st.text(st.characters(), max_size=60) | st.sampled_from(['"\\', "é😀" * 9, "\ud800", "\ud83d\ude00", "\\u00e9"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=4)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small examples take many steps."""
    monkeypatch.setattr(jsonbytes, "_STEP", 16)
    monkeypatch.setattr(jsonbytes, "_STEP_VALUES", 2)
    monkeypatch.setattr(jsonbytes, "_MAX_DEPTH", 40)


@given(OBJECTS, st.sampled_from([None, 1]), st.booleans())
def test_an_object_has_the_values_that_other_parsers_find(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    try:
        raw = text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        raw = json.dumps(value, indent=indent).encode()
    assert parse_large(raw) == json.loads(raw)
    assert {each.name: json.loads(raw[each.value : each.end]) for each in members(raw)} == json.loads(raw)


@given(st.binary(max_size=40).map(lambda junk: b'{"a":[{"b":"' + junk))
@pytest.mark.parametrize("end", [b"", b'"}]}'])
def test_invalid_json_is_refused_as_by_other_parsers(end: bytes, raw: bytes) -> None:
    try:
        expected = json.loads((raw + end).decode())
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 - any of its subclasses
            parse_large(raw + end)
    else:
        assert parse_large(raw + end) == expected


@pytest.mark.parametrize(
    "raw",
    [
        b"", b" ", b"[]", b'"x"', b"{", b'{"a"', b'{"a":', b'{"a":1', b'{"a":1,', b'{"a":1,}', b'{"a":1}x',
        b'{"a":[1,]}',
        b'{"a":[1}', b'{"a":tru}', b'{"a":"x\\"}', b'{"a":"\x01"}', b'{"a":"\xff"}', b'{a:1}',
        b'{"a":' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
def test_a_text_that_is_no_json_object_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any of its subclasses
        parse_large(raw)


TOO_MANY = {
    "members": b",".join(b'"k%d":1' % n for n in range(20_000)),
    "arrays": b'"x":[' + b",".join([b"[]"] * 200_000) + b"]",
    "objects": b'"x":[' + b",".join([b'{"a":1}'] * 100_000) + b"]",
    "numbers": b'"x":[' + b",".join([b"5"] * 500_000) + b"]",
    "depth": b'"x":' + b"[" * 300_000 + b"]" * 300_000,
    "members of a member": b'"x":{' + b",".join(b'"k%d":1' % n for n in range(100_000)) + b"}",
}


@pytest.mark.parametrize("name", TOO_MANY)
def test_too_many_values_are_refused_before_they_are_built(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    raw = b'{"model":"m",' + TOO_MANY[name] + b"}"
    assert not is_light(raw)
    with pytest.raises(ValuesTooLarge):
        loads_object(raw)


def test_a_skipped_member_may_hold_any_number_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    raw = b'{"model":"m","input":[' + b",".join([b"1000"] * 500_000) + b'],"grounding":{}}'
    assert parse_large(raw, skipped=("input",)) == {"model": "m", "grounding": {}}
    assert edited(raw, {"input", "grounding"}, {}) == b'{"model":"m"}'


def test_a_long_string_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonbytes, "MAX_STRING", 50)
    raw = json.dumps({"a": "é" * 100, "b": "x" * 40}).encode()
    assert parse_large(raw) == {"a": "é" * 50, "b": "x" * 40}


@given(OBJECTS, st.booleans())
def test_edits_of_a_large_body_are_those_of_a_small_one(value: dict[str, Any], in_lines: bool) -> None:
    assume("z" not in value)  # the name of the member that makes the body large
    body = {"model": "m", **value, "grounding": {"mode": "sync"}}
    small = json.dumps(body, indent=1 if in_lines else None).encode()
    large = json.dumps({**body, "z": "," * 200_000}, indent=1 if in_lines else None).encode()
    assert not is_light(large)
    for edit in (
        lambda raw: edited(raw, {"grounding"}, {}),
        lambda raw: edited(raw, (), {"model": "n"}),
        lambda raw: edited(raw, {"grounding"}, {"model": "n"}),
        lambda raw: with_member(raw, "added", b"[1]"),
        lambda raw: with_member(raw, "added", b"[1]", ("grounding",)),
    ):
        result = json.loads(edit(large))
        del result["z"]
        assert list(result.items()) == list(json.loads(edit(small)).items())


@pytest.mark.parametrize(("levels", "is_read"), [(900, True), (2_000, False)])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_a_large_object_has_a_bounded_number_of_levels(opening: str, levels: int, is_read: bool) -> None:
    """Each level of a skipped value is a step, and 200,000 of them take half a second."""
    closing = "]" if opening == "[" else "}"
    raw = ('{"x":' + opening * levels + "1" + closing * levels + ',"text":"' + "a" * 2**18 + '"}').encode()
    if is_read:
        assert [each.name for each in members(raw)] == ["x", "text"]
    else:
        with pytest.raises(ValuesTooLarge, match="too many levels"):
            list(members(raw))
