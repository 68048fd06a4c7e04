"""The passages that a model reads alongside a claim."""

from hypothesis import given
from hypothesis import strategies as st

from groundwire.domain import Source
from groundwire.evidence.index import Context
from groundwire.text.words import words
from groundwire.verifiers.selection import MAX_WORDS, NEAR_WORDS, plain_text, select_evidence, select_sources

FILLER = " ".join(f"Visitor {number} enjoyed the quiet museum of the town." for number in range(60))
FACT = "The Harwick wind farm came into service in May 2019."


def select(claim: str, *texts: str, lead: str = "") -> str:
    return select_evidence(
        claim, lead, Context([Source(str(at), "source", text) for at, text in enumerate(texts)])
    ).text


def test_a_short_context_is_read_whole():
    text = "A mill stands by the river. It was built in 1890."
    assert select("Nothing of the kind.", text) == "A mill stands by the river.\nIt was built in 1890."


def test_the_passage_about_the_claim_is_found_in_any_position():
    for text in (f"{FACT} {FILLER}", f"{FILLER} {FACT}", f"{FILLER} {FACT} {FILLER}"):
        assert FACT in select("The wind farm of Harwick started in 2019.", text)


def test_a_claim_in_the_words_of_a_passage_comes_with_less_around_it():
    around = (
        20 * "Many people from near and far enjoyed the museum of the town, its fine cafe and its garden by the river. "
    )
    near, free = (select(each, f"{around}{FACT} {around}") for each in (FACT, "Power has been produced off Harwick."))
    assert FACT in near
    assert FACT in free
    assert len(words(near)) <= NEAR_WORDS < len(words(free)) <= MAX_WORDS


def test_a_language_model_reads_all_parts_that_share_words_with_such_a_claim():
    text = f"{FILLER} {FACT} {FILLER} The wind farm has 40 turbines. {FILLER}"
    (found,) = select_sources(FACT, "", Context([Source("s", "source", text)]), max_chars=4_000)
    assert FACT in found.text
    assert "40 turbines" in found.text


def test_two_facts_of_one_claim_are_both_found():
    other = "Norrin Energy owns the harbour."
    found = select(
        "The Harwick wind farm started in May 2019 and Norrin Energy owns the harbour.", FACT + FILLER, other
    )
    assert FACT.rstrip(".") in found
    assert other in found


def test_a_lead_brings_the_passage_that_a_pronoun_refers_to():
    assert FACT in select("It began then.", f"{FILLER} {FACT} {FILLER}", lead="The Harwick wind farm is in the north.")


def test_a_source_that_is_cited_goes_first():
    context = Context(
        [
            Source("a", "source", f"The fee is 5 euros a day. {FILLER}"),
            Source("b", "source", f"The fee is 6 euros. {FILLER}"),
        ]
    )
    cited = select_evidence("The fee is 6 euros a day.", "", context, {"b"}, limit=8)
    assert next(each.source.id for each in cited.passages) == "b"


def test_passages_under_one_heading_begin_with_it():
    text = "# Opening hours\n\nMonday to Friday from 9 to 5.\n\nSaturday from 10 to 2.\n"
    assert select("It is open.", text) == "Opening hours\nMonday to Friday from 9 to 5.\nSaturday from 10 to 2."


def test_markup_and_citations_are_left_out():
    assert plain_text("- The **fee** is [5 euros](https://a.example/b) [1].") == "The fee is 5 euros ."
    assert plain_text("The <b>fee</b> is<br/>5 < 6 eu\u00adros.") == "The fee is 5 < 6 euros."


@given(st.text(max_size=80), st.lists(st.text(max_size=400), max_size=4))
def test_evidence_of_any_text_is_bounded_and_in_reading_order(claim: str, texts: list[str]):
    found = select_evidence(claim, "", Context([Source(str(at), "source", text) for at, text in enumerate(texts)]))
    places = [each.place for each in found.passages]
    assert places == sorted(set(places))
    assert len(places) <= 1 or sum(len(words(each.text)) for each in found.passages) <= MAX_WORDS
