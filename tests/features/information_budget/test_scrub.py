"""Evidence cited by a claim is removed from the context, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.domain import Citation, Source
from groundwire.features.information_budget import MARKER, leave_one_out, scrub, scrub_all

REVENUE, PROFIT = "Revenue was $4.2 million in 2023.", "Profit fell to $700K in the same year."
REPORT = Source("s1", "source", f"# Results\n{REVENUE} {PROFIT}\nThe board met in May.")


def cited(text: str, source: Source = REPORT) -> Citation:
    """The first place of a text in a source, as a citation with offsets in the original."""
    start = source.offset + source.text.index(text)
    return Citation(source.id, start, start + len(text), text, 1.0, "exact")


def scrubbed(text: str, *cited_texts: str) -> str:
    source = Source("s", "source", text)
    (found,) = scrub([source], [cited(each, source) for each in cited_texts])
    return found.text


def test_a_cited_span_gives_way_to_the_marker_and_the_rest_stays() -> None:
    (found,) = scrub([REPORT], [cited(REVENUE)])
    assert found.text == f"# Results\n{MARKER} {PROFIT}\nThe board met in May."
    assert (found.id, found.kind) == (REPORT.id, REPORT.kind)


def test_a_source_that_is_not_cited_stays_as_it_is() -> None:
    other = Source("s2", "tool", "Costs rose.")
    assert scrub([REPORT, other], [cited(REVENUE)])[1] is other


def test_offsets_of_citations_count_into_the_original_message() -> None:
    source = Source("d1", "document", REPORT.text, message_index=2, offset=57)
    citation = cited(REVENUE, source)
    assert citation.start > source.text.index(REVENUE)
    assert scrub([source], [citation])[0].text == scrub([REPORT], [cited(REVENUE)])[0].text


@pytest.mark.parametrize(
    ("text", "spans", "left"),
    [
        pytest.param("ab cd ef gh", ["ab cd", "cd ef"], f"{MARKER} gh", id="overlapping"),
        pytest.param("ab cd ef gh", ["ab ", "cd ef"], f"{MARKER} gh", id="touching"),
        pytest.param("ab cd ef gh", ["ab", "cd"], f"{MARKER} ef gh", id="with a space between"),
        pytest.param("ab cd ef gh", ["ab cd ef", "cd"], f"{MARKER} gh", id="one in the other"),
        pytest.param("ab cd ef gh", ["ab", "ef"], f"{MARKER} cd {MARKER} gh", id="apart"),
        pytest.param("ab\ncd\nef", ["ab\ncd"], f"{MARKER}\n{MARKER}\nef", id="lines stay lines"),
        pytest.param("- ab\n  - cd\nef", ["- ab\n  - cd"], f"- {MARKER}\n  - {MARKER}\nef", id="items stay items"),
        pytest.param("1. ab\n2. cd", ["2. cd"], f"1. ab\n2. {MARKER}", id="numbered items"),
        pytest.param("## ab\ncd", ["## ab"], f"## {MARKER}\ncd", id="headings stay headings"),
        pytest.param(
            "| a | b |\n|---|---|\n| c | 5 |",
            ["|---|---|\n| c | 5 |"],
            f"| a | b |\n|---|---|\n| {MARKER} | {MARKER} |",
            id="cells stay cells",
        ),
        pytest.param("ab (cd) ef", ["cd"], f"ab ({MARKER}) ef", id="brackets stay"),
        pytest.param("ab -- cd", ["--"], "ab -- cd", id="rules say nothing"),
    ],
)
def test_the_structure_around_evidence_stays(text: str, spans: list[str], left: str) -> None:
    assert scrubbed(text, *spans) == left


@pytest.mark.parametrize(
    "repeated",
    [
        REVENUE,
        "REVENUE was  $4.2\nmillion in 2023",
        "Note: revenue was $4.2 million in 2023, they said",
        "Revenue was <b>$4.2 million</b> in 2023.",
    ],
    ids=["the same", "in other case and spacing", "inside a sentence", "in other markup"],
)
def test_the_same_words_elsewhere_are_the_same_evidence(repeated: str) -> None:
    other = Source("s2", "document", f"Before. {repeated} After.")
    found = scrub([REPORT, other], [cited(REVENUE)])[1].text
    assert MARKER in found
    assert "4.2" not in found
    assert found.startswith("Before. ")
    assert found.endswith(" After.")


@pytest.mark.parametrize(
    "text",
    [
        "Revenue was $4.2 million in 2022.",
        "In 2023, $4.2 million was our revenue.",
        "revenue was $4.2 million in 20234",
        "Revenue was $4.2 million in 2023.5",
    ],
    ids=["another year", "a paraphrase", "part of a longer number", "part of a decimal"],
)
def test_evidence_in_different_words_stays(text: str) -> None:
    other = Source("s2", "document", text)
    assert scrub([REPORT, other], [cited(REVENUE)])[1] is other


def test_a_copy_is_known_again_in_any_script() -> None:
    said = "二〇二三年の売上高は四百二十万ドルであり、前年を上回った。"
    source = Source("s", "source", f"{said}\n別の資料にもこうある。\n「{said}」")
    assert scrub([source], [cited(said, source)])[0].text.count(MARKER) == 2


@pytest.mark.parametrize("few", ["5%", "Telecommunications Holdings International"])
def test_a_few_words_elsewhere_are_chance(few: str) -> None:
    source = Source("s", "source", f"First: {few}\nSecond: {few}")
    assert scrub([source], [cited(few, source)])[0].text == f"First: {MARKER}\nSecond: {few}"


def test_each_sentence_of_a_cited_span_is_known_again() -> None:
    other = Source("s2", "document", f"It is said: {PROFIT}")
    assert scrub([REPORT, other], [cited(f"{REVENUE} {PROFIT}")])[1].text == f"It is said: {MARKER}."


def test_leaving_one_citation_out_keeps_the_others() -> None:
    first, second = leave_one_out([REPORT], [cited(REVENUE), cited(PROFIT)])
    assert first.without[0].text == f"# Results\n{MARKER} {PROFIT}\nThe board met in May."
    assert first.alone[0].text == f"# Results\n{REVENUE} {MARKER}\nThe board met in May."
    assert second.without[0].text == first.alone[0].text
    assert second.alone[0].text == first.without[0].text


def test_leaving_one_of_two_equal_sources_out_keeps_the_other() -> None:
    copy = Source("s2", "document", REVENUE)
    third = Source("s3", "document", f"Again: {REVENUE}")
    first, _ = leave_one_out([REPORT, copy, third], [cited(REVENUE), cited(REVENUE, copy)])
    assert REVENUE not in first.without[0].text
    assert first.without[1].text == REVENUE
    assert REVENUE not in first.without[2].text, "an uncited copy is gone with the evidence"
    assert first.alone[0].text == REPORT.text
    assert first.alone[1].text == MARKER


def test_citations_that_overlap_are_left_out_apart() -> None:
    source = Source("s", "source", "ab cd ef")
    first, second = leave_one_out([source], [cited("ab cd", source), cited("cd ef", source)])
    assert (first.without[0].text, second.without[0].text) == (f"{MARKER} cd ef", f"ab cd {MARKER}")


def test_without_any_citation_the_whole_context_is_the_evidence() -> None:
    (found,) = scrub_all([REPORT])
    assert found.text == f"# {MARKER}\n{MARKER}\n{MARKER}"


@pytest.mark.parametrize(
    "stray",
    [
        Citation("s9", 0, 3, "# R", 1.0, "exact"),
        Citation("s1", 0, 3, "xyz", 1.0, "exact"),
        Citation("s1", 90, 9000, "", 1.0, "exact"),
        Citation("s1", -3, 0, "", 1.0, "exact"),
    ],
    ids=["no such source", "other words", "beyond the end", "before the start"],
)
def test_a_citation_of_nothing_removes_nothing(stray: Citation) -> None:
    assert scrub([REPORT], [stray]) == (REPORT,)


texts = st.text(st.sampled_from("ab 1.|\n-é"), min_size=1, max_size=60)


@st.composite
def sources_and_citations(draw: st.DrawFn) -> tuple[list[Source], list[Citation]]:
    sources = [Source(f"s{i}", "source", draw(texts), offset=draw(st.integers(0, 9))) for i in range(2)]
    citations = []
    for _ in range(draw(st.integers(0, 4))):
        source = draw(st.sampled_from(sources))
        start = draw(st.integers(0, len(source.text) - 1))
        end = draw(st.integers(start + 1, len(source.text)))
        text, offset = source.text[start:end], source.offset
        citations.append(Citation(source.id, start + offset, end + offset, text, 1.0, "exact"))
    return sources, citations


@given(sources_and_citations())
def test_nothing_that_is_not_cited_is_lost(drawn: tuple[list[Source], list[Citation]]) -> None:
    sources, citations = drawn
    for source, found in zip(sources, scrub(sources, citations), strict=True):
        spans = [(c.start - source.offset, c.end - source.offset) for c in citations if c.source == source.id]
        protected = "".join(
            char for at, char in enumerate(source.text) if not any(start <= at < end for start, end in spans)
        )
        left = iter(found.text.replace(MARKER, ""))
        words = [char for char in protected if char.isalnum()]
        if not any(_is_long(citation) for citation in citations):
            assert all(char in left for char in words), "in the same order"
        assert found.text.count("\n") == source.text.count("\n") or any(map(_is_long, citations))


@given(sources_and_citations())
def test_no_word_stays_where_it_was_cited(drawn: tuple[list[Source], list[Citation]]) -> None:
    sources, citations = drawn
    everything = [Citation(s.id, s.offset, s.offset + len(s.text), s.text, 1.0, "exact") for s in sources]
    for found in scrub(sources, [*citations, *everything]):
        bare = found.text.replace(MARKER, "")
        assert all(not char.isalpha() for char in bare)


def _is_long(citation: Citation) -> bool:
    return len(citation.text) >= 20
