"""The tokenizer of the shipped model returns the tokens that the library `tokenizers` does."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from groundwire.backends.pairs import WordPiece, is_wordpiece

SHIPPED = Path(str(files("groundwire.backends"))) / "shipped" / "tokenizer.json"
DESCRIBED = json.loads(SHIPPED.read_text(encoding="utf-8"))
OURS = WordPiece(DESCRIBED)

TEXTS = [
    "",
    "Revenue was $4.2M in 2023 [1]. Profit rose to $900K.",
    "Ünïted Nations' café, naïve coöperation — “quoted” text… 12 °C",
    "a\tb\nc\r\nd  e\x00f\x0bg\x85h\u200bi\ufeffj\u00a0k\u3000l",
    "[CLS] special [SEP] tokens [MASK] are text [PAD] [UNK]",
    "中文和English混合。日本語のテキスト、한국어 문장.",
    "İstanbul Σίσυφος ΑΣ straße ﬁne ½ №5 ① x² H₂O",
    "e\u0301tude q\u0307\u0323 A\u030a",
    "supercalifragilisticexpialidocious " + "x" * 100 + " " + "y" * 101,
    "🙂 emoji 👍🏽 and ☃ symbols ™ © € ₹",
    "don't can't l'été O'Neill rock'n'roll self-evident 3:1 1,234,567.89",
    "Ελληνικά; ερώτηση\u037e العربية עברית हिन्दी ไทย",
]


def library() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(SHIPPED))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


THEIRS = library()


def assert_same(text: str) -> None:
    expected, found = THEIRS.encode(text, add_special_tokens=False), OURS.encode(text)
    assert list(found.ids) == expected.ids
    assert list(found.offsets) == expected.offsets


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_and_offsets_are_those_of_the_library(text: str) -> None:
    assert_same(text)


@given(st.text(alphabet=st.characters(max_codepoint=0x5FF, blacklist_categories=["Cs", "Cn"]), max_size=60))
def test_any_text_of_the_common_scripts_has_the_same_tokens(text: str) -> None:
    assert_same(text)


def test_the_documentation_has_the_same_tokens() -> None:
    for page in sorted((Path(__file__).parents[2] / "docs").glob("*.md")):
        assert_same(page.read_text(encoding="utf-8"))


def test_special_tokens_have_their_ids() -> None:
    assert [OURS.token_to_id(name) for name in ("[CLS]", "[SEP]", "[none]")] == [101, 102, None]


def test_only_uncased_wordpiece_with_special_tokens_is_recognized() -> None:
    assert is_wordpiece(DESCRIBED)
    normalizer, model = DESCRIBED["normalizer"], DESCRIBED["model"]
    assert not is_wordpiece({**DESCRIBED, "normalizer": {**normalizer, "lowercase": False}})
    assert not is_wordpiece({**DESCRIBED, "normalizer": None})
    assert not is_wordpiece({**DESCRIBED, "model": {**model, "type": "BPE"}})
    assert not is_wordpiece({**DESCRIBED, "added_tokens": [{"id": 1, "content": "x", "special": False}]})
