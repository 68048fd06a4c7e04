"""Stems of words."""

import pytest

from groundwire.text.words import root, stem


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("stopped", "stop"),
        ("planning", "plans"),
        ("cancelled", "cancel"),
        ("travelling", "travels"),
        ("installed", "install"),
        ("fulfill", "fulfils"),
        ("called", "call"),
        ("companies", "company"),
        ("company's", "company"),
    ],
)
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cancelled", "cancellation"),
        ("installed", "installation"),
        ("enrolled", "enrolment"),
        ("fulfilled", "fulfillment"),
        ("controlled", "controller"),
    ],
)
def test_derived_words_have_one_root(one: str, other: str) -> None:
    assert root(stem(one)) == root(stem(other))


@pytest.mark.parametrize(("one", "other"), [("fill", "file"), ("hall", "hal"), ("profit", "profitable")])
def test_different_words_keep_different_stems(one: str, other: str) -> None:
    assert stem(one) != stem(other)
