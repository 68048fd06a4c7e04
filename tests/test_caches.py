"""Caches of results by text hold neither long texts nor more results than their limit."""

import gc
import weakref

import pytest

from groundwire.caches import memo, memo_of_words
from groundwire.text.words import LONGEST_WORD, stem, words
from groundwire.verifiers.vetoes import may_be_one


class Text(str):
    """A text whose end can be observed."""

    __slots__ = ("__weakref__",)


class Counted:
    """A function that counts its calls by the lengths of their texts."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, text: str, offset: int = 0) -> int:
        self.calls.append(len(text))
        return len(text) + offset


def test_short_texts_are_computed_once_and_the_least_used_go() -> None:
    counted = Counted()
    cached = memo(2, 10)(counted)
    assert [cached(text) for text in ("a", "bb", "a", "ccc", "a", "bb")] == [1, 2, 1, 3, 1, 2]
    assert counted.calls == [1, 2, 3, 2]


def test_long_texts_are_computed_anew_unless_there_is_room_for_their_results() -> None:
    counted = Counted()
    unkept, kept = memo(2, 3)(counted), memo(2, 3, long_entries=1)(counted)
    assert unkept("long") == unkept("long") == 4
    assert counted.calls == [4, 4]
    assert (kept("longer"), kept("longer"), kept("longer", 1), kept("longer")) == (6, 6, 7, 6)
    assert counted.calls == [4, 4, 6, 6, 6]
    assert kept("other1") == 6


def test_a_long_text_is_not_stored_but_its_result_is() -> None:
    counted = Counted()
    cached = memo(100, 10, long_entries=100)(counted)
    text = Text("a" * 11)
    alive = weakref.ref(text)
    assert cached(text) == 11
    del text
    gc.collect()
    assert alive() is None
    assert cached("a" * 11) == 11
    assert counted.calls == [11]


def test_a_long_text_that_cannot_be_read_is_not_stored_either() -> None:
    def fail(text: str) -> int:
        raise ValueError(text[:1])

    cached = memo(2, 3, long_entries=2)(fail)
    for _ in range(2):
        with pytest.raises(ValueError, match="l"):
            cached("long")


def test_a_full_memo_of_words_is_emptied() -> None:
    counted = Counted()
    cached = memo_of_words(2, 3)(counted)
    assert [cached(text) for text in ("a", "bb", "a", "ccc", "ccc", "a")] == [1, 2, 1, 3, 3, 1]
    assert counted.calls == [1, 2, 3, 1]


def test_a_memo_of_words_does_not_keep_long_texts() -> None:
    counted = Counted()
    cached = memo_of_words(2, 3)(counted)
    text = Text("long")
    alive = weakref.ref(text)
    assert cached(text) == cached(text) == 4
    assert counted.calls == [4, 4]
    del text
    gc.collect()
    assert alive() is None


def test_words_of_extraordinary_length_are_read_and_not_stored() -> None:
    word = Text("a" * (LONGEST_WORD + 1))
    alive = weakref.ref(word)
    assert [each.text for each in words(f"{word} and {word}")] == [word, "and", word]
    assert stem(word) == word
    del word
    gc.collect()
    assert alive() is None


def test_names_of_extraordinary_length_are_compared_by_their_beginnings() -> None:
    letters = "".join(map(chr, range(0x4E00, 0x5200))) * 20
    assert may_be_one("Abc" + letters, "Abc" + letters[::-1])
    assert not may_be_one("Abc" + letters, "Xbc" + letters)
