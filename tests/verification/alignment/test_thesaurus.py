"""ST1, ST5: what the thesaurus of the package says of two words."""

from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.verification.alignment.thesaurus import FILE, related
from proxy.verification.words import stem

LINES = files("proxy.verification.alignment").joinpath(FILE).read_text("ascii").splitlines()


def is_stated_by(claimed: str, said: str) -> bool:
    alike, narrower, _ = related(stem(claimed))
    return stem(said) in alike | narrower


@pytest.mark.parametrize(
    ("claimed", "said"),
    [
        ("lawyer", "attorney"),
        ("attorney", "lawyer"),
        ("decision", "decided"),
        ("destroyed", "destruction"),
        ("Belgian", "Belgium"),
        ("animals", "dog"),
        ("vehicle", "car"),
        ("pay", "bought"),
        ("large", "gigantic"),
    ],
)
def test_a_word_is_stated_by_a_synonym_a_derivation_or_a_narrower_word(claimed: str, said: str) -> None:
    assert is_stated_by(claimed, said)


@pytest.mark.parametrize(
    ("claimed", "said"),
    [("dog", "animal"), ("car", "vehicle"), ("attorney", "doctor"), ("profit", "loss"), ("bank", "river")],
)
def test_a_word_is_not_stated_by_a_broader_or_another_one(claimed: str, said: str) -> None:
    assert not is_stated_by(claimed, said)


@pytest.mark.parametrize(("one", "other"), [("cheap", "expensive"), ("difficult", "easy"), ("north", "south")])
def test_antonyms_are_opposite_both_ways_and_not_alike(one: str, other: str) -> None:
    assert stem(other) in related(stem(one)).opposite
    assert stem(one) in related(stem(other)).opposite
    assert not is_stated_by(one, other)


def test_irregular_forms_are_found_and_given() -> None:
    assert related(stem("bought")) == related(stem("buy"))
    assert stem("bought") in related(stem("purchase")).alike


def test_every_line_is_found_by_its_stem() -> None:
    assert [line.split("\t")[0] for line in LINES] == sorted(line.split("\t")[0] for line in LINES)
    for line in (LINES[0], *LINES[1:-1:97], LINES[-1]):
        word, *groups = line.split("\t")
        assert [set(group.split()) <= found for group, found in zip(groups, related(word), strict=True)] == [True] * 3


@given(st.text(max_size=40))
def test_any_text_may_be_asked_for(text: str) -> None:
    alike, narrower, opposite = related(text)
    assert alike.isdisjoint(opposite)
    assert narrower.isdisjoint(opposite)


def test_the_licence_of_wordnet_ships_with_its_words() -> None:
    licence = files("proxy.verification.alignment").joinpath("thesaurus.license").read_text("utf-8")
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in licence
