"""The layout of a claim, its lead and its evidence for an entailment model."""

from hypothesis import given
from hypothesis import strategies as st

from groundwire.backends.pairs import (
    CLAIM,
    EVIDENCE,
    LAYOUTS,
    LEAD,
    MATCHED,
    MISSING,
    Layout,
    claim_first_matched,
    evidence_first,
)
from tests.backends.tiny_models import bpe, word_piece

WORDS = word_piece()
CLAIMED, GIVEN = "The wind farm serves fishermen.", "Its ships serve the farm off the coast."


def test_evidence_first_is_what_the_tokenizer_makes_of_two_texts():
    pair, whole = evidence_first(WORDS, CLAIMED, "", GIVEN, 512), WORDS.encode(GIVEN, CLAIMED)
    assert (pair.ids, pair.types) == (whole.ids, whole.type_ids)
    assert [CLAIMED[slice(*place)] for place in pair.places if place] == [
        "The",
        "wind",
        "farm",
        "serves",
        "fishermen",
        ".",
    ]


def test_a_matched_pair_marks_the_words_of_the_other_text():
    pair = claim_first_matched(WORDS, CLAIMED, "", GIVEN, 512)
    whole = [WORDS.encode(text, add_special_tokens=False) for text in (CLAIMED, GIVEN)]
    pieces = [[text[slice(*span)] for span in each.offsets] for text, each in zip((CLAIMED, GIVEN), whole, strict=True)]
    texts = [None, *pieces[0], None, None, *pieces[1], None]
    of_type = {
        kind: {text for text, given in zip(texts, pair.types, strict=True) if given == kind} for kind in range(4)
    }
    assert of_type[MISSING] == {"wind", "fishermen"}
    assert of_type[CLAIM] == {None, "The", "farm", "serves", "."}
    assert "farm" in of_type[MATCHED]
    assert {"the", "off", "coast", "."} <= of_type[EVIDENCE]
    assert pair.types[0] == CLAIM
    assert pair.types[-1] == EVIDENCE


def test_a_matched_pair_without_evidence_ends_as_evidence():
    pair = claim_first_matched(WORDS, "wind farm", "", "", 512)
    assert list(pair.types) == [CLAIM, MISSING, MISSING, CLAIM, LEAD, EVIDENCE]


def test_a_lead_is_between_claim_and_evidence_and_matches_nothing():
    pair = claim_first_matched(WORDS, "It serves ships.", "The farm is old.", GIVEN, 512)
    texts = [WORDS.id_to_token(each) for each in pair.ids]
    first, second = (at for at, text in enumerate(texts) if text == "[SEP]" and at < len(texts) - 1)
    assert set(pair.types[first + 1 : second + 1]) == {LEAD}
    assert LEAD not in pair.types[: first + 1] + pair.types[second + 1 :]


def test_number_words_match_digits():
    pair = claim_first_matched(WORDS, "3 ships", "", "three ships", 512)
    assert MISSING not in pair.types


BYTES = bpe()


@given(
    st.text(max_size=60),
    st.text(max_size=20),
    st.text(max_size=200),
    st.sampled_from(sorted(LAYOUTS)),
    st.integers(24, 80),
)
def test_any_texts_make_a_pair_of_bounded_length_whose_places_lie_in_the_claim(
    claim: str, lead: str, evidence: str, name: str, limit: int
):
    layout: Layout = LAYOUTS[name]
    for tokenizer in (WORDS, BYTES):
        pair = layout(tokenizer, claim, lead, evidence, limit)
        assert len(pair.ids) == len(pair.types) == len(pair.places) <= limit
        assert all(0 <= place[0] <= place[1] <= len(claim) for place in pair.places if place)


def test_the_text_of_a_special_token_is_read_as_text():
    WORDS.encode_special_tokens = True
    pair = claim_first_matched(WORDS, CLAIMED, "", "[SEP] [CLS]", 512)
    assert list(pair.ids).count(WORDS.token_to_id("[SEP]")) == 3
