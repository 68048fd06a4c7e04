"""The text of message content in every shape in use."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.dialects.dialect import read_messages
from groundwire.domain import Message, Part


def parts(content: Any, role: str = "user") -> tuple[Part, ...]:
    (message,) = read_messages([{"role": role, "content": content}])
    return message.parts


def data_url(raw: bytes, kind: str = "text/plain") -> str:
    return f"data:{kind};base64,{base64.b64encode(raw).decode()}"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("x", [Part("x")], id="a string"),
        pytest.param(None, [], id="null"),
        pytest.param([], [], id="no parts"),
        pytest.param(["a", "b"], [Part("a"), Part("b")], id="a list of strings"),
        pytest.param(
            [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], [Part("a"), Part("b")], id="text parts"
        ),
        pytest.param([{"type": "input_text", "text": "a"}], [Part("a")], id="Responses' input text"),
        pytest.param([{"type": "output_text", "text": "a"}], [Part("a")], id="Responses' output text"),
        pytest.param([{"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}], [], id="an image"),
        pytest.param([{"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}}], [], id="audio"),
        pytest.param([{"type": "refusal", "refusal": "no"}], [], id="a refusal"),
        pytest.param(
            [{"type": "file", "file": {"filename": "a.txt", "file_data": data_url("naïve".encode())}}],
            [Part("naïve", "document", title="a.txt")],
            id="a text file",
        ),
        pytest.param(
            [{"type": "file", "file": {"file_data": data_url(b"{}", "application/json")}}],
            [Part("{}", "document")],
            id="a JSON file",
        ),
        pytest.param(
            [{"type": "input_file", "filename": "a.md", "file_data": data_url(b"# A", "text/markdown")}],
            [Part("# A", "document", title="a.md")],
            id="Responses' input file",
        ),
        pytest.param(
            [{"type": "file", "file": {"file_data": "data:text/plain,50%25%20more"}}],
            [Part("50% more", "document")],
            id="a file spelled in percents",
        ),
        pytest.param(
            [{"type": "file", "file": {"file_data": data_url(b"x", "text/plain;charset=utf-8")}}],
            [Part("x", "document")],
            id="a file with its charset",
        ),
        pytest.param([{"type": "file", "file": {"file_data": data_url(b"%PDF", "application/pdf")}}], [], id="a PDF"),
        pytest.param([{"type": "file", "file": {"file_data": "data:text/plain;base64,@@"}}], [], id="broken base64"),
        pytest.param([{"type": "file", "file": {"file_data": data_url(b"\xff\xfe")}}], [], id="a file in no UTF-8"),
        pytest.param([{"type": "file", "file": {"file_id": "file-1"}}], [], id="a file by its id"),
        pytest.param(
            [{"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}],
            [Part("x", "document", title="T")],
            id="Anthropic's document",
        ),
        pytest.param(
            [{"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a"}, "b"]}}],
            [Part("a\nb", "document")],
            id="Anthropic's document of blocks",
        ),
        pytest.param(
            [{"type": "document", "source": {"type": "content", "content": "a"}}],
            [Part("a", "document")],
            id="Anthropic's document of a string",
        ),
        pytest.param(
            [{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"}}],
            [],
            id="Anthropic's PDF",
        ),
        pytest.param(
            [{"type": "search_result", "source": "http://x", "title": "T", "content": [{"type": "text", "text": "a"}]}],
            [Part("a", "document", "http://x", "T", "http://x")],
            id="Anthropic's search result",
        ),
        pytest.param(
            [{"type": "tool_result", "tool_use_id": "1", "content": "x"}], [Part("x", "tool_result")], id="tool result"
        ),
        pytest.param(
            [{"type": "tool_result", "content": [{"type": "text", "text": "a"}, {"type": "image", "source": {}}]}],
            [Part("a", "tool_result")],
            id="tool result of blocks",
        ),
        pytest.param(
            [{"type": "tool_result", "content": [{"type": "document", "source": {"type": "text", "data": "d"}}]}],
            [Part("d", "document")],
            id="a document in a tool result",
        ),
    ],
)
def test_text_is_found_in_every_shape(content: Any, expected: list[Part]) -> None:
    assert list(parts(content)) == expected


@pytest.mark.parametrize(
    ("wire", "role"),
    [
        ("system", "system"),
        ("developer", "system"),
        ("user", "user"),
        ("assistant", "assistant"),
        ("tool", "tool"),
        ("function", "tool"),
    ],
)
def test_every_role_is_read(wire: str, role: str) -> None:
    assert read_messages([{"role": wire, "content": "x"}]) == (Message(0, role, (Part("x"),)),)  # type: ignore[arg-type]


def test_messages_keep_their_place_among_others() -> None:
    found = read_messages(["x", {"role": "critic", "content": "a"}, {"content": "b"}, {"role": "user", "content": "c"}])
    assert found == (Message(3, "user", (Part("c"),)),)


TYPES = ["text", "file", "input_file", "document", "search_result", "tool_result", "image_url"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(), max_size=4) | st.sampled_from(TYPES),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "file", "file_data", "source", "data", "title"]), inner
        )
    ),
    max_leaves=15,
)


@given(JSON)
def test_no_shape_raises(messages: Any) -> None:
    content = [{"role": "user", "content": messages}, messages]
    for message in read_messages(content) + read_messages(messages):
        assert all(isinstance(part.text, str) for part in message.parts)


def test_a_role_or_type_that_is_no_string_is_passed_over() -> None:
    assert read_messages([{"role": ["user"], "content": "x"}]) == ()
    assert parts([{"type": {"text": 1}, "text": "x"}, "y"]) == (Part("y"),)
