"""One member of a JSON object is removed, changed or added, and every other byte stays."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.dialects.jsonbytes import dumps, edited, loads, with_member
from tests.steps import steps

NAMES = st.sampled_from(
    ["grounding", "model", "messages", "a", "", '"', "\\", "{", "naïve", "🙂", "documents"]
) | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)  # larger ones are read as floats, as in JavaScript
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=8)
    | st.sampled_from(['"', "\\", "}", '{"grounding":1}', ",", "\\\\", '\\"']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
SPACE = st.text(" \t\r\n", max_size=2)


@st.composite
def written_objects(draw: st.DrawFn) -> tuple[bytes, list[tuple[str, Any, bytes]]]:
    """A JSON object as somebody might write it, and its members: name, value, and the bytes of both."""
    members = []
    for _ in range(draw(st.integers(0, 5))):
        name, value = draw(NAMES), draw(VALUES)
        spelled = draw(st.sampled_from([json.dumps(name), json.dumps(name, ensure_ascii=False), escaped(name)]))
        indent = draw(st.sampled_from([None, 1]))
        text = f"{spelled}{draw(SPACE)}:{draw(SPACE)}{json.dumps(value, indent=indent)}"
        members.append((name, value, text.encode()))
    body = (draw(SPACE) + "{" + draw(SPACE)).encode()
    body += b",".join(draw(SPACE).encode() + raw + draw(SPACE).encode() for *_, raw in members)
    return body + ("}" + draw(SPACE)).encode(), members


def escaped(name: str) -> str:
    """A JSON string whose every character is spelled \\uXXXX."""
    units = name.encode("utf-16-be")
    return '"' + "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)) + '"'


def pairs(body: bytes) -> list[tuple[str, Any]]:
    """Return the members of an object in order, including duplicates."""
    found: list[tuple[str, Any]] = []
    json.loads(
        body.decode(), object_pairs_hook=lambda members: found.__setitem__(slice(None), members) or dict(members)
    )
    return found


def condensed(raw: bytes) -> bytes:
    return bytes(byte for byte in raw if byte not in b" \t\r\n,")


def without(body: bytes, names: set[str]) -> bytes:
    return edited(body, names, {})


@given(written_objects(), st.sets(NAMES, min_size=1, max_size=3))
def test_without_takes_out_those_members_and_nothing_else(
    written: tuple[bytes, list[tuple[str, Any, bytes]]], names: set[str]
) -> None:
    body, members = written
    left = without(body, names)
    assert pairs(left) == [(name, value) for name, value, _ in members if name not in names]
    kept = b"".join(raw for name, _, raw in members if name not in names)
    assert condensed(left) == b"{" + condensed(kept) + b"}"


@given(written_objects())
def test_without_an_absent_name_is_the_same_bytes(written: tuple[bytes, list[tuple[str, Any, bytes]]]) -> None:
    assert without(written[0], {"no such name"}) == written[0]


@given(written_objects(), VALUES)
def test_replaced_changes_one_value_and_nothing_else(
    written: tuple[bytes, list[tuple[str, Any, bytes]]], value: Any
) -> None:
    body, members = written
    changed = edited(body, (), {"model": value})
    assert pairs(changed) == [(name, value if name == "model" else old) for name, old, _ in members]
    if not any(name == "model" for name, *_ in members):
        assert changed == body


@given(written_objects(), st.sets(NAMES, max_size=2), VALUES)
def test_both_edits_at_once_are_one_after_the_other(
    written: tuple[bytes, list[tuple[str, Any, bytes]]], names: set[str], value: Any
) -> None:
    body, _ = written
    assert edited(body, names, {"model": value}) == edited(without(body, names), (), {"model": value})


@given(written_objects(), VALUES)
def test_with_member_adds_one_at_the_end_and_keeps_the_bytes(
    written: tuple[bytes, list[tuple[str, Any, bytes]]], value: Any
) -> None:
    body, members = written
    added = with_member(body, "grounding", dumps(value))
    assert pairs(added) == [*((name, old) for name, old, _ in members), ("grounding", value)]
    inserted = (b"," if members else b"") + b'"grounding":' + dumps(value)
    end = body.rindex(b"}")
    assert added == body[:end] + inserted + body[end:]


@pytest.mark.parametrize(
    ("body", "left"),
    [
        pytest.param('{"grounding":{}}', "{}", id="the only one"),
        pytest.param('{"grounding":{},"a":1}', '{"a":1}', id="the first"),
        pytest.param('{"a":1,"grounding":{}}', '{"a":1}', id="the last"),
        pytest.param('{"a":1,"grounding":{},"b":2}', '{"a":1,"b":2}', id="the middle"),
        pytest.param('{"grounding":1,"grounding":2,"a":3,"grounding":4}', '{"a":3}', id="all of them"),
        pytest.param('{"gro\\u0075nding":{},"a":1}', '{"a":1}', id="an escaped spelling"),
        pytest.param('{"\\u0067\\u0072ounding":1,"a":1}', '{"a":1}', id="another escaped spelling"),
        pytest.param(
            '{"a":{"grounding":1},"b":[{"grounding":2}]}', '{"a":{"grounding":1},"b":[{"grounding":2}]}', id="nested"
        ),
        pytest.param(
            '{"a":"grounding","b":"\\"grounding\\":1"}', '{"a":"grounding","b":"\\"grounding\\":1"}', id="in values"
        ),
        pytest.param('{"Grounding":1,"grounding ":2}', '{"Grounding":1,"grounding ":2}', id="similar names"),
        pytest.param('{"grounding":"}],{[\\\\","a":1}', '{"a":1}', id="brackets in its value"),
        pytest.param('{"a":NaN,"grounding":-Infinity}', '{"a":NaN}', id="not a number"),
        pytest.param('{"grounding":1e999,"a":' + "9" * 400 + "}", '{"a":' + "9" * 400 + "}", id="huge integer"),
        pytest.param('{"a":"\\ud800","grounding":"\\udfff"}', '{"a":"\\ud800"}', id="lone surrogates"),
        pytest.param('{"\\ud800":1,"grounding":2}', '{"\\ud800":1}', id="a lone surrogate in a name"),
        pytest.param('{\n  "a": 1,\n  "grounding": {}\n}\n', '{\n  "a": 1\n}\n', id="indented"),
    ],
)
def test_no_spelling_hides_a_member(body: str, left: str) -> None:
    assert without(body.encode(), {"grounding"}) == left.encode()


def test_deep_nesting_is_no_obstacle() -> None:
    deep = b'{"a":' + b"[" * 900 + b"]" * 900 + b',"grounding":1}'
    assert without(deep, {"grounding"}) == deep.replace(b',"grounding":1', b"")


def test_a_large_image_is_not_scanned_byte_by_byte() -> None:
    body = b'{"image":"' + b"QUJD" * 1_500_000 + b'","grounding":{},"model":"m"}'
    assert steps(lambda: without(body, {"grounding"})) < 1000
    assert without(body, {"grounding"}) == body.replace(b'"grounding":{},', b"")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"-Infinity", -math.inf),
        (b"NaN", pytest.approx(math.nan, nan_ok=True)),
        (b'"\\ud800"', "\ud800"),
        (b'{"a":1,"a":2}', {"a": 2}),
    ],
    ids=["infinity", "not a number", "lone surrogate", "duplicate key"],
)
def test_loads_reads_what_other_readers_read(raw: bytes, value: Any) -> None:
    assert loads(raw) == value


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"{'a':1}",
        b'{"a":1,}',
        b'{"a":"\xff"}',
        '{"a":1}'.encode("utf-16"),
        '{"a":1}'.encode("utf-32-le"),
        b"[" * 200_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    ],
    ids=["nothing", "half", "quotes", "comma", "not UTF-8", "UTF-16", "UTF-32", "deep", "deep and whole"],
)
def test_loads_refuses_what_is_no_json(raw: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any ValueError is what it promises
        loads(raw)


@given(VALUES)
def test_dumps_and_loads_are_inverse(value: Any) -> None:
    assert loads(dumps(value)) == value


@given(st.binary(max_size=60) | st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_loads_raises_nothing_but_value_error(raw: bytes) -> None:
    try:
        loads(raw)
    except ValueError:
        pass


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"type":"x","response":{"id":"a"}}', b'{"type":"x","response":{"id":"a","grounding":1}}'),
        (b'{ "response" : { } , "n":{"response":{}} }', b'{ "response" : { "grounding":1} , "n":{"response":{}} }'),
        (b'{"type":"x"}', b'{"type":"x","grounding":1}'),
        (b'{"response":null}', b'{"response":null,"grounding":1}'),
        (b'{"response":[{}]}', b'{"response":[{}],"grounding":1}'),
    ],
    ids=["inside", "spaced", "no such member", "null", "array"],
)
def test_a_member_is_added_inside_an_object(body: bytes, told: bytes) -> None:
    assert with_member(body, "grounding", b"1", ("response",)) == told


@pytest.mark.parametrize("value", [b"[" * 150 + b"]" * 150, b"0." + b"0" * 5000 + b"1"])
def test_members_of_a_light_body_are_found_whatever_their_values(value: bytes) -> None:
    assert without(b'{"a":' + value + b',"b":1}', {"b"}) == b'{"a":' + value + b"}"
