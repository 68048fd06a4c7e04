"""A claim finds its evidence anywhere, regardless of the other context, and in bounded time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.domain import Citation, Source
from groundwire.evidence.index import Context
from groundwire.text.words import content_stems
from tests.steps import is_linear

FACT = "Marlow Bridge was opened to traffic on 14 August 1832."
CLAIM = content_stems("The Marlow Bridge opened in August 1832.")
FILLER = (
    "The weather in the valley was mild and the people of the town went about their work. A bridge is a structure. "
    "Traffic on the road grew by the year. In August the shop opened late. "
)


def padded(words: int, place: str) -> str:
    copies = words // len(FILLER.split())
    before = {"start": 0, "middle": copies // 2, "end": copies}[place]
    return FILLER * before + FACT + " " + FILLER * (copies - before)


@pytest.mark.parametrize("place", ["start", "middle", "end"])
@pytest.mark.parametrize("words", [2_000, 32_000, 128_000])
def test_padding_never_hides_the_evidence(words: int, place: str) -> None:
    context = Context([Source("a", "document", padded(words, place))])
    assert context.nearest(CLAIM, 1)[0].text == FACT
    assert context.examined == 1.0


def test_padding_in_other_sources_does_not_change_what_is_found() -> None:
    alone = Context([Source("a", "document", FACT)]).nearest(CLAIM, 3)
    padding = [Source(f"p{n}", "document", FILLER) for n in range(50)]
    among_others = Context([*padding, Source("a", "document", FACT), *padding]).nearest(CLAIM, 1)
    assert [passage.text for passage in among_others] == [passage.text for passage in alone]


@given(
    st.lists(
        st.sampled_from([FACT, *FILLER.split(". "), "Marlow is old", "1832"]), min_size=2, max_size=8, unique=True
    ),
    st.data(),
)
def test_two_passages_rank_alike_in_every_context(texts: list[str], data: st.DataObject) -> None:
    every = [passage.text for passage in Context([Source(t, "document", t) for t in texts]).nearest(CLAIM, 20)]
    first, second = data.draw(st.lists(st.sampled_from(texts), min_size=2, max_size=2, unique=True))
    order = sorted((first, second), key=texts.index)
    pair = [passage.text for passage in Context([Source(t, "document", t) for t in order]).nearest(CLAIM, 20)]
    assert pair == [text for text in every if text in pair]


def test_names_and_numbers_weigh_more_than_everyday_words() -> None:
    context = Context([Source("a", "document", "The new company said last year. Kowalski paid 4711.")])
    assert context.nearest(["new", "compani", "kowalski", "4711"], 1)[0].text == "Kowalski paid 4711."


def test_search_can_be_restricted_to_some_sources() -> None:
    context = Context([Source("a", "document", FACT), Source("b", "document", FILLER)])
    assert {passage.source.id for passage in context.nearest(CLAIM, 5, among=["b"])} == {"b"}


def test_neighbours_are_of_the_same_source() -> None:
    context = Context([Source("a", "document", "One. Two."), Source("b", "document", "Three. Four.")])
    assert [near.text for near in context.around(context.passages[2])] == ["Three.", "Four."]


def test_citation_points_into_the_original_text() -> None:
    source = Source("a", "document", FACT, message_index=0, part_index=0, offset=100)
    citation = Context([source]).passages[0].cite(1.0, "exact")
    assert (citation.start, citation.end, citation.text) == (100, 100 + len(FACT), FACT)


@pytest.mark.parametrize(
    "label",
    [
        "1",
        "[1]",
        "【1】",
        "【1†source】",
        "Document 1",
        "doc-1",
        "doc_1",
        "Source 1",
        "passage #1",
        "[^1]",
        "(1)",
        "Report.pdf",
        "report.pdf",
    ],
)
def test_ways_to_cite_a_document(label: str) -> None:
    wanted = Source("m0.d1", "document", FACT, labels=("1", "report.pdf"))
    context = Context([wanted, Source("m0.d2", "document", FILLER, labels=("2",))])
    assert context.resolve(label) is wanted


@pytest.mark.parametrize("label", ["3", "Document 11", "", "[]", "1832", "Figure 1", "report"])
def test_unknown_citation_resolves_to_nothing(label: str) -> None:
    assert Context([Source("m0.d1", "document", FACT, labels=("1", "report.pdf"))]).resolve(label) is None


def test_digest_distinguishes_contexts() -> None:
    assert Context([Source("a", "document", FACT)]).digest == Context([Source("a", "document", FACT)]).digest
    assert Context([Source("a", "document", FACT)]).digest != Context([Source("b", "document", FACT)]).digest


@pytest.mark.slow
def test_long_context_is_built_in_linear_time() -> None:
    assert is_linear(lambda text: Context([Source("a", "document", text)]), padded(40_000, "middle"))


def test_empty_context_finds_nothing() -> None:
    assert not Context([]).nearest(CLAIM, 5)


@pytest.mark.parametrize(
    "text", ["One. Two is here.\n\nThree.", '{"a": {"b": 1, "c": {"d": 2}}, "e": 3}', "a,b\n1,2\n3,4"]
)
def test_a_citation_leads_back_to_its_passage(text: str) -> None:
    context = Context([Source("s", "source", "Before."), Source("t", "document", text, offset=40)])
    assert [context.passage_of(each.cite(1.0, "exact")) for each in context.passages] == list(context.passages)
    assert context.passage_of(Citation("t", 4, 9, "", 1.0, "exact")) is None
    assert context.passage_of(Citation("other", 41, 45, "", 1.0, "exact")) is None
