"""Verification options of a request, as in wire.md, and errors that name a wrong one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.dialects.request import Options, explicit_sources, read_options
from groundwire.domain import Source
from groundwire.errors import BadRequest

DEFAULT = Options()


def read(grounding: Any = None, **headers: str) -> Options:
    body = {} if grounding is None else {"grounding": grounding}
    return read_options(body, {name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize("body", [{}, {"grounding": None}, {"grounding": {}}], ids=["absent", "null", "empty"])
def test_a_request_without_options_gets_the_defaults(body: dict[str, Any]) -> None:
    assert read_options(body, {}) == DEFAULT
    assert (DEFAULT.mode, DEFAULT.detail, DEFAULT.offset_unit, DEFAULT.check_tool_calls) == (
        None,
        "full",
        "codepoint",
        False,
    )


def test_every_documented_key_is_read() -> None:
    asked = {
        "mode": "async",
        "detail": "summary",
        "sources": [{"id": "a", "title": "T", "text": "x", "url": "http://x", "metadata": {"k": [1]}}, {"text": "y"}],
        "verifiers": ["quote", "statement"],
        "evidence_fields": ["quotes", "/result/quotes"],
        "facts": {"property_id": 1},
        "subject": "s",
        "session": "t",
        "samples": 3,
        "corrective_retry": True,
        "memory": True,
        "check_tool_calls": True,
        "offset_unit": "utf16",
    }
    assert set(asked) == set(Options.model_fields)
    assert read(asked).model_dump(mode="json", exclude_unset=True) == asked


@pytest.mark.parametrize(
    ("grounding", "param"),
    [
        pytest.param([], "grounding", id="a list"),
        pytest.param("full", "grounding", id="a string"),
        pytest.param(True, "grounding", id="a boolean"),
        pytest.param(0, "grounding", id="zero"),
        pytest.param({"moed": "sync"}, "grounding.moed", id="unknown key"),
        pytest.param({"": 1}, "grounding.", id="empty key"),
        pytest.param({"mode": "fast"}, "grounding.mode", id="unknown mode"),
        pytest.param({"mode": 1}, "grounding.mode", id="mode of another type"),
        pytest.param({"detail": "all"}, "grounding.detail", id="unknown detail"),
        pytest.param({"detail": None}, "grounding.detail", id="detail null"),
        pytest.param({"sources": 5}, "grounding.sources", id="sources neither text nor list"),
        pytest.param({"sources": {"text": "x"}}, "grounding.sources", id="sources one object"),
        pytest.param({"sources": [5]}, "grounding.sources.0", id="a source neither text nor object"),
        pytest.param({"sources": [{"text": "x"}, {"title": "y"}]}, "grounding.sources.1.text", id="text missing"),
        pytest.param({"sources": [{"text": 1}]}, "grounding.sources.0.text", id="text of another type"),
        pytest.param({"sources": [{"text": "x", "id": 1}]}, "grounding.sources.0.id", id="id of another type"),
        pytest.param(
            {"sources": [{"text": "x", "score": 1}]}, "grounding.sources.0.score", id="unknown key of a source"
        ),
        pytest.param({"verifiers": ["qoute"]}, "grounding.verifiers.0", id="unknown verifier"),
        pytest.param({"evidence_fields": [1]}, "grounding.evidence_fields.0", id="evidence field no string"),
        pytest.param({"facts": []}, "grounding.facts", id="facts no object"),
        pytest.param({"samples": 2}, "grounding.samples", id="too few samples"),
        pytest.param({"samples": 6}, "grounding.samples", id="too many samples"),
        pytest.param({"samples": "3"}, "grounding.samples", id="samples a string"),
        pytest.param({"samples": True}, "grounding.samples", id="samples a boolean"),
        pytest.param({"check_tool_calls": "yes"}, "grounding.check_tool_calls", id="a word for true"),
        pytest.param({"check_tool_calls": 1}, "grounding.check_tool_calls", id="a number for true"),
        pytest.param({"subject": 7}, "grounding.subject", id="subject of another type"),
        pytest.param({"offset_unit": "bytes"}, "grounding.offset_unit", id="unknown unit"),
    ],
)
def test_the_error_names_the_wrong_option(grounding: Any, param: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(grounding)
    assert caught.value.param == param
    assert f"'{param}'" in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "options"),
    [
        ({"x_grounding_mode": "off"}, {"mode": "off"}),
        ({"x_grounding_detail": "none"}, {"detail": "none"}),
        ({"x_grounding_subject": "s", "x_grounding_session": "t"}, {"subject": "s", "session": "t"}),
    ],
    ids=["mode", "detail", "subject and session"],
)
def test_every_scalar_has_a_header_twin(headers: dict[str, str], options: dict[str, Any]) -> None:
    assert read(None, **headers) == Options(**options)


def test_the_body_goes_before_the_header() -> None:
    assert read({"mode": "async"}, x_grounding_mode="off", x_grounding_detail="none") == Options(
        mode="async", detail="none"
    )


def test_a_wrong_header_is_named_as_a_header() -> None:
    with pytest.raises(BadRequest) as caught:
        read({"detail": "none"}, x_grounding_mode="fast")
    assert caught.value.param == "x-grounding-mode"


def test_a_wrong_value_is_reported_to_the_caller_but_not_logged() -> None:
    with pytest.raises(BadRequest) as caught:
        read({"mode": "sikret"})
    assert "sikret" in str(caught.value)
    assert "sikret" not in caught.value.operator


def test_a_long_wrong_value_is_not_repeated() -> None:
    with pytest.raises(BadRequest) as caught:
        read({"mode": "A whole document that somebody put in the wrong place."})
    assert "document" not in str(caught.value)


def document(
    number: int, text: str, id_: str | None = None, title: str | None = None, label: str | None = None, **names: str
) -> Source:
    labels = tuple(each for each in (id_, str(number), title, label) if each)
    label = id_ or label or title
    return Source(id_ or f"document-{number}", "document", text, title=title, labels=labels, label=label, **names)


@pytest.mark.parametrize(
    ("documents", "sources"),
    [
        pytest.param(["one", "two"], [document(1, "one"), document(2, "two")], id="strings"),
        pytest.param([{"text": "x", "title": "T"}], [document(1, "x", title="T")], id="vLLM's"),
        pytest.param(
            [{"id": "d1", "data": {"text": "x", "title": "T"}}], [document(1, "x", "d1", "T")], id="Cohere's v2"
        ),
        pytest.param([{"id": "d1", "data": "x"}], [document(1, "x", "d1")], id="Cohere's data as a string"),
        pytest.param([{"id": "d1", "title": "T", "snippet": "x"}], [document(1, "x", "d1", "T")], id="Cohere's v1"),
        pytest.param(
            [{"page_content": "x", "metadata": {"source": "a"}}], [document(1, "x", label="a")], id="LangChain's"
        ),
        pytest.param(
            [{"text": "x", "id": "d1", "url": "https://a"}], [document(1, "x", "d1", url="https://a")], id="URL"
        ),
        pytest.param(
            [{"text": "x", "metadata": {"source": "https://a", "title": "T", "page": 1}}],
            [document(1, "x", None, "T", label="https://a", url="https://a")],
            id="URL in metadata",
        ),
        pytest.param([{"text": "x", "url": "no address"}], [document(1, "x")], id="no URL"),
        pytest.param([{"content": "x", "id": 7}], [document(1, "x", "7")], id="a number as id"),
        pytest.param(["a", {"title": "no text"}, "c"], [document(1, "a"), document(3, "c")], id="numbers as written"),
        pytest.param([None, 1, [], {"text": 5}, {"data": {"text": 1}}], [], id="nothing readable"),
        pytest.param("x", [], id="no list"),
        pytest.param(None, [], id="none"),
    ],
)
def test_documents_of_every_convention(documents: Any, sources: list[Source]) -> None:
    assert list(explicit_sources(DEFAULT, documents)) == sources


def test_a_source_is_a_text_or_an_object() -> None:
    options = read_options({"grounding": {"sources": ["one", {"id": "b", "text": "two"}]}}, {})
    first, second = explicit_sources(options, None)
    assert (first.id, first.text, first.labels) == ("source-1", "one", ("1",))
    assert (second.id, second.text, second.labels) == ("b", "two", ("b", "2"))


@pytest.mark.parametrize("text", ["A plain text.", "", "[1]"])
def test_a_plain_text_is_a_list_of_one_source(text: str) -> None:
    assert read({"sources": text}) == read({"sources": [text]})
    (source,) = explicit_sources(read({"sources": text}), None)
    assert (source.id, source.text) == ("source-1", text)


@pytest.mark.parametrize("source", [5, None, ["x"], {"text": 5}, {"title": "x"}])
def test_no_error_names_our_classes(source: Any) -> None:
    with pytest.raises(BadRequest) as caught:
        read_options({"grounding": {"sources": [source]}}, {})
    assert "SourceIn" not in str(caught.value)
    assert "instance" not in str(caught.value)


def test_sources_come_before_documents() -> None:
    options = read({"sources": [{"text": "mine", "id": "a"}, {"text": "mine too", "title": "B"}]})
    assert [(s.id, s.kind, s.labels) for s in explicit_sources(options, ["theirs"])] == [
        ("a", "source", ("a", "1")),
        ("source-2", "source", ("2", "B")),
        ("document-1", "document", ("1",)),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*Options.model_fields, "text", "id", "data", "title", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(JSON, JSON)
def test_nothing_raises_but_a_bad_request(grounding: Any, documents: Any) -> None:
    try:
        options = read_options({"grounding": grounding}, {})
    except BadRequest:
        options = DEFAULT
    assert all(isinstance(source.text, str) for source in explicit_sources(options, documents))
