"""Citations in answer text (CL1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.claims.cited import cited, find_marks, without

CITED = {
    "number": ("It rose [1].", ("1",)),
    "several": ("It rose [1, 2; 4].", ("1", "2", "4")),
    "adjacent": ("It rose.[1][2]", ("1", "2")),
    "range": ("It rose [1-3].", ("1", "2", "3")),
    "range_with_a_dash": ("It rose [1–3].", ("1", "2", "3")),
    "identifier": ("It rose [doc-3].", ("doc-3",)),
    "identifiers": ("It rose [doc-1, doc-2].", ("doc-1", "doc-2")),
    "file": ("It rose [handbook.pdf].", ("handbook.pdf",)),
    "footnote": ("It rose.[^1]", ("1",)),
    "lens": ("It rose【1】.", ("1",)),
    "lens_with_source": ("It rose【4†source】.", ("4",)),
    "named": ("It rose (Source 2).", ("2",)),
    "named_in_brackets": ("It rose [Source: 3].", ("3",)),
    "named_in_text": ("Document 2 says so.", ("2",)),
    "named_plural": ("Passages 1, 2, and 3 say so.", ("1", "2", "3")),
    "twice_is_once": ("[1] says so [1].", ("1",)),
    "raised": ("It rose.¹ It fell²", ("1", "2")),
    "linked_number": ("It rose [[1]](https://a.b).", ("1",)),
    "number_as_link_text": ("It rose [1](https://a.b).", ("1",)),
    "link": ("See [the report](https://a.b).", ()),
    "unit": ("It is 5 km² or 10³ m².", ()),
    "year": ("In [2020] it rose.", ()),
    "editorial": ("It rose [sic] and [...] fell.", ()),
    "code": ("Call `a[1]`.", ()),
    "decimal_after_a_name": ("Source 1.5 is a version.", ()),
    "share_after_a_name": ("From this source 5% came.", ()),
    "year_after_a_name": ("The document 2023 is long.", ()),
    "article_of_a_law": ("Article 5 forbids it.", ()),
}


@pytest.mark.parametrize(("text", "labels"), CITED.values(), ids=CITED)
def test_labels_are_read(text, labels):
    assert cited(text) == labels


@given(st.text(alphabet=st.sampled_from("[]()【】†12,-–^ asourced¹²`.#"), max_size=80))
def test_marks_are_ordered_and_blanking_keeps_every_place(text):
    marks = list(find_marks(text))
    place = 0
    for mark in marks:
        assert place <= mark.start < mark.end <= len(text)
        assert all(mark.labels)
        place = mark.end
    assert len(without(marks, text)) == len(text)
