"""BERT's uncased WordPiece tokenizer, which the shipped model uses.

Returns the same tokens and offsets as the library `tokenizers` does, which other models need, except for characters
that Unicode has added since version 8: the two know different ones. Special tokens in a text are read as text.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

_NORMALIZER = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True}
_PLAIN = re.compile(r"[\t\n\r -~]*+")
_PLAIN_WORD = re.compile(r"[0-9A-Za-z]++|[!-/:-@\[-`{-~]")
_WORD = re.compile(r"[^ ]+")
_MAX_WORD = 100  # characters; a longer word is unknown
_MAX_CACHED_WORDS = 2**15
_IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F)),
    *((0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


class Tokens(NamedTuple):
    """The tokens of a text: their ids, and their spans in the text."""

    ids: Sequence[int]
    offsets: Sequence[tuple[int, int]]


class WordPiece:
    """A tokenizer for the content of a tokenizer.json; see `is_wordpiece`. It may be called from any thread."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        model = described["model"]
        self._vocabulary: Mapping[str, int] = model["vocab"]
        self._unknown = self._vocabulary[model["unk_token"]]
        self._max_piece = max(map(len, self._vocabulary))
        self._pieces = lru_cache(_MAX_CACHED_WORDS)(self._split)

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token of the vocabulary."""
        return self._vocabulary.get(token)

    def encode(self, text: str, add_special_tokens: bool = False) -> Tokens:
        """Return the tokens of a text. Special tokens are never added."""
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        is_plain = _PLAIN.fullmatch(text) is not None
        for word, places in _plain_words(text) if is_plain else _words(text):
            for id_, start, end in self._pieces(word) if len(word) <= _MAX_WORD else self._whole(word):
                ids.append(id_)
                offsets.append((places[start], places[end - 1] + 1))
        return Tokens(ids, offsets)

    def _whole(self, word: str) -> tuple[tuple[int, int, int], ...]:
        return ((self._unknown, 0, len(word)),)

    def _split(self, word: str) -> tuple[tuple[int, int, int], ...]:
        """Return the id and span of each piece of a word: the longest in the vocabulary first."""
        found, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(min(len(word), start + self._max_piece), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self._vocabulary), None)
            if end is None:
                return self._whole(word)
            found.append((self._vocabulary[prefix + word[start:end]], start, end))
            start = end
        return tuple(found)


def reads(tokenizer: Path, layout: str | None) -> bool:
    """Return whether `WordPiece` replaces the library for a tokenizer.json and a layout; False if it is no JSON."""
    if layout != "claim_first_matched":
        return False
    try:
        return is_wordpiece(json.loads(tokenizer.read_text(encoding="utf-8")))
    except ValueError:
        return False


def is_wordpiece(described: Mapping[str, Any]) -> bool:
    """Return whether `WordPiece` reads texts as the content of a tokenizer.json says."""
    normalizer, model = described.get("normalizer") or {}, described.get("model") or {}
    return (
        {**normalizer, **_NORMALIZER} == normalizer
        and normalizer.get("strip_accents") is not False
        and (described.get("pre_tokenizer") or {}).get("type") == "BertPreTokenizer"
        and (model.get("type"), model.get("continuing_subword_prefix")) == ("WordPiece", "##")
        and model.get("max_input_chars_per_word") == _MAX_WORD
        and all(token.get("special") for token in described.get("added_tokens", ()))
    )


def _plain_words(text: str) -> Iterator[tuple[str, range]]:
    """Yield the words and punctuation marks of a text in printable ASCII, each with the places of its characters."""
    return ((match.group().lower(), range(*match.span())) for match in _PLAIN_WORD.finditer(text))


def _words(text: str) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the normalized words and marks of a text, each with the places of its characters in the text."""
    normalized = [_normalized(character) for character in text]
    places = [at for at, characters in enumerate(normalized) for _ in characters]
    for match in _WORD.finditer("".join(normalized)):
        yield match.group(), places[match.start() : match.end()]


@lru_cache(maxsize=4096)
def _normalized(character: str) -> str:
    """Return a character in lower case and without accents; marks and ideographs are surrounded by spaces."""
    if character in "\t\n\r" or unicodedata.category(character)[0] == "Z":
        return " "
    if character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co"):
        return ""
    bare = (each for each in unicodedata.normalize("NFD", character) if unicodedata.category(each) != "Mn")
    read = "".join(f" {each} " if _is_mark(each) else each.lower() for each in bare)
    return f" {read} " if any(first <= ord(character) <= last for first, last in _IDEOGRAPHS) else read


def _is_mark(character: str) -> bool:
    if character.isascii():
        return not character.isalnum()
    return unicodedata.category(character)[0] == "P"
