"""ST4: how a claim and its evidence are laid out for an encoder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import bpe, word_piece

from proxy.evidence.pairs import CLAIM, EVIDENCE, LAYOUTS, MATCHED, MISSING, Layout, claim_first_matched, evidence_first

WORDS = word_piece()
CLAIMED, GIVEN = "The wind farm serves fishermen.", "Its ships serve the farm off the coast."


def test_evidence_first_is_what_the_tokenizer_makes_of_two_texts():
    pair, whole = evidence_first(WORDS, CLAIMED, GIVEN), WORDS.encode(GIVEN, CLAIMED)
    assert (pair.ids, pair.types) == (whole.ids, whole.type_ids)
    assert [CLAIMED[slice(*place)] for place in pair.places if place] == [
        "The",
        "wind",
        "farm",
        "serves",
        "fishermen",
        ".",
    ]


def test_a_matched_pair_tells_which_words_the_other_text_has():
    pair = claim_first_matched(WORDS, CLAIMED, GIVEN)
    whole = WORDS.encode(CLAIMED, GIVEN)
    texts = [
        None if sequence is None else (CLAIMED, GIVEN)[sequence][slice(*span)]
        for span, sequence in zip(whole.offsets, whole.sequence_ids, strict=True)
    ]
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
    pair = claim_first_matched(WORDS, "wind farm", "")
    assert list(pair.types) == [CLAIM, MISSING, MISSING, CLAIM, EVIDENCE]


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(sorted(LAYOUTS)))
def test_any_two_texts_make_a_pair_whose_places_lie_in_the_claim(claim: str, evidence: str, name: str):
    layout: Layout = LAYOUTS[name]
    for tokenizer in (WORDS, BYTES):
        pair = layout(tokenizer, claim, evidence)
        assert len(pair.ids) == len(pair.types) == len(pair.places)
        assert all(0 <= place[0] <= place[1] <= len(claim) for place in pair.places if place)


BYTES = bpe()


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_keeps_every_word_of_both_texts(name: str):
    pair = LAYOUTS[name](WORDS, CLAIMED, GIVEN)
    assert sorted(pair.ids) == sorted(WORDS.encode(CLAIMED, GIVEN).ids)
