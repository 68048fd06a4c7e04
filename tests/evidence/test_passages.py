"""Text is cut into passages without loss and in bounded time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.evidence.passages import cut
from tests.steps import is_linear


def readings(text: str) -> list[str]:
    return [piece.text for piece in cut(text)]


def test_sentences_are_passages() -> None:
    assert readings("Dr. Smith paid $3.5 million. She left.") == ["Dr. Smith paid $3.5 million.", "She left."]


def test_wrapped_lines_are_one_text_and_list_items_are_not() -> None:
    wrapped = "The committee met in the old town hall of the city of Bern, as it\nhad done since 1950."
    assert readings(f"{wrapped}\n- tea\n- milk") == [wrapped, "- tea", "- milk"]


def test_number_of_a_list_item_stays_with_its_text() -> None:
    assert readings("1. Open the lid.\n2. Close it.") == ["1. Open the lid.", "2. Close it."]


def test_passage_knows_its_heading() -> None:
    pieces = list(cut("# Returns\n\nThirty days.\n\n**Shipping**\nFive days."))
    assert [(piece.text, piece.heading) for piece in pieces if piece.text.endswith(".")] == [
        ("Thirty days.", "Returns"),
        ("Five days.", "Shipping"),
    ]


def test_heading_above_an_empty_line_is_known_without_a_mark() -> None:
    assert [piece.heading for piece in cut("Opening hours\n\nWe open at nine.")] == ["", "Opening hours"]


def test_tags_are_blanked_and_blocks_cut() -> None:
    text = "<p>Hello <b>big</b> world</p><p>Next &amp; last</p>"
    assert [" ".join(reading.split()) for reading in readings(text)] == ["Hello big world", "Next & last"]


def test_endless_sentence_is_read_in_overlapping_windows() -> None:
    text = " ".join(f"word{n}" for n in range(1000))
    pieces = list(cut(text))
    assert all(len(piece.text.split()) <= 80 for piece in pieces)
    assert all(before.end > after.start for before, after in pairwise(pieces))
    assert (pieces[0].start, pieces[-1].end) == (0, len(text))


PROSE = st.text(st.characters(exclude_characters="<&{[|,;\t"), max_size=400)
ANY = st.text(max_size=300) | st.lists(
    st.sampled_from(
        [
            "a | b\n",
            "| - | - |\n",
            '{"a": [1, "x"]}',
            "{",
            "[",
            "<table>",
            "<tr>",
            "<td>",
            "</table>",
            "<p>",
            "&amp;",
            "1. ",
            "x,y,z\n",
            "\t",
            "\n",
            "# ",
            "Long words here. ",
            '"',
            "\\",
            "é",
            "\ud800",
            "。",
            "\r\n",
            "\u2028",
        ]
    ),
    max_size=40,
).map("".join)


@given(ANY)
def test_any_text_gives_passages_inside_it(text: str) -> None:
    for piece in cut(text):
        assert 0 <= piece.start < piece.end <= len(text)
        assert piece.text


@given(PROSE)
def test_prose_reads_as_its_slices_and_loses_no_word(text: str) -> None:
    covered = [False] * len(text)
    for piece in cut(text):
        assert piece.text == text[piece.start : piece.end]
        covered[piece.start : piece.end] = [True] * (piece.end - piece.start)
    assert not [char for char, seen in zip(text, covered, strict=True) if char.isalnum() and not seen]


HOSTILE = {
    "<": "<" * 64_000,
    "|": "|" * 64_000,
    "{": "{" * 64_000,
    "[": "[" * 64_000,
    "{ on lines": "{\n" * 32_000,
    "open strings": '{"a\n' * 16_000,
    "[[1],": "[[1]," * 12_000,
    "citations": "[1]" * 20_000,
    "open documents": "<doc>" * 12_000,
    "open tables": "<table>" * 9_000,
    "rows": "<table>" + "<tr>" * 16_000,
    "cells": "<table><tr>" + "<td>x" * 12_000 + "</table>",
    "unbalanced quotes": 'a,"b,c\n' * 9_000,
    "tabs": "a\tb\n" * 16_000,
    "one word": "a" * 64_000,
    "white space": " " * 64_000,
    "lines": "a\n" * 32_000,
    "references": "&" * 64_000,
    "in": "in " * 20_000,
    "rules": "-" * 64_000,
    "cjk": "中" * 64_000,
    "surrogates": "\ud800" * 64_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_cut_in_linear_time(text: str) -> None:
    assert is_linear(lambda text: list(cut(text)), text[:16_384])
    for _ in cut(text * 4):
        pass
