"""The form in which quotations are compared, and the mapping back to the original."""

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.text.folding import fold
from tests.steps import is_linear

TEXT = st.text(
    st.one_of(st.characters(exclude_characters="<＜﹤"), st.sampled_from(" \n\u00a0\u200b\u0301\u00ade“’—ﬁ"))
)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        pytest.param("“Quick” ‘brown’", "\"quick\" 'brown'", id="typographic quotes"),
        pytest.param("a – b — c ‑ d", "a - b - c - d", id="dashes"),
        pytest.param("5\u00a0km \u202f away", "5 km away", id="no-break spaces"),
        pytest.param("zero\u200bwidth\ufeff so\u00adft", "zerowidth soft", id="invisible characters"),
        pytest.param("the <b>quick</b> fox", "the quick fox", id="inline tags"),
        pytest.param("<p>One.</p><p>Two.</p>", "one. two.", id="block tags part words"),
        pytest.param("one<br/>two", "one two", id="line break tag"),
        pytest.param("a < b and c > d", "a < b and c > d", id="comparison is no tag"),
        pytest.param("  many \n\n\t spaces ", "many spaces", id="white space"),
        pytest.param("Straße ﬁne Ⅳ ２", "strasse fine iv 2", id="compatibility forms and case"),
        pytest.param("e\u0301\u200b o\u200b\u0308", "é ö", id="combining marks"),
        pytest.param("", "", id="empty"),
        pytest.param("\ud800x", "\ud800x", id="lone surrogate"),
    ],
)
def test_folds(text: str, folded: str) -> None:
    assert fold(text).text == folded


@given(TEXT)
def test_folding_twice_changes_nothing(text: str) -> None:
    once = fold(text).text
    assert fold(once).text == once


@given(st.text(st.characters(categories=("L", "M", "N", "Z"))))
def test_composed_and_decomposed_forms_meet(text: str) -> None:
    assert fold(normalize("NFD", text)).text == fold(normalize("NFC", text)).text


@given(TEXT, st.data())
def test_the_origin_of_a_span_folds_to_what_holds_that_span(text: str, data: st.DataObject) -> None:
    folded = fold(text)
    if not folded.text:
        return
    start = data.draw(st.integers(0, len(folded.text) - 1))
    end = data.draw(st.integers(start + 1, len(folded.text)))
    origin_start, origin_end = folded.origin(start, end)
    assert 0 <= origin_start < origin_end <= len(text)
    assert folded.text[start:end].strip() in fold(text[origin_start:origin_end]).text


def test_the_origin_of_plain_words_is_exact() -> None:
    text = "The “Big”  <b>brown</b>\u00a0fox\u2014e\u0301te\u0301"
    folded = fold(text)
    for word, original in (("big", "Big"), ("brown", "brown"), ("fox", "fox"), ("été", "e\u0301te\u0301")):
        start = folded.text.index(word)
        origin = folded.origin(start, start + len(word))
        assert text[slice(*origin)] == original


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["a", "<", "<a ", "<a b=c ", "  ", "a  b", "é", "e\u0301", "漢，", "aé", "<!", "\u200b"]
)
def test_hostile_text_is_folded_in_linear_time(unit: str) -> None:
    assert is_linear(fold, (unit * 16384)[:16384])
    assert fold((unit * 262_144)[:262_144])
