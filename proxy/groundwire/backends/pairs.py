"""Encode a claim, its lead and its evidence as the tokens that an entailment model reads.

Cross-encoders for entailment and prompts read the evidence first. The layout of the shipped model begins with the claim
and marks by token types which words of claim and evidence match.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from groundwire.text.words import Word, words

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


_NORMALIZER = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True}
_PLAIN = re.compile(r"[\t\n\r -~]*+")
_PLAIN_WORD = re.compile(r"[0-9A-Za-z]++|[!-/:-@\[-`{-~]")
_LETTERS = re.compile(r"[0-9a-z]++")
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

    def ids(self, text: str) -> list[int]:
        """Return the ids of the tokens of a text, without punctuation and unknown words."""
        if _PLAIN.fullmatch(text):
            found: Iterable[str] = _LETTERS.findall(text.lower())
        else:
            found = (word for word, _ in _words(text) if not (len(word) == 1 and _is_mark(word)))
        pieces = (self._pieces(word) for word in found if len(word) <= _MAX_WORD)
        return [id_ for each in pieces for id_, _, _ in each if id_ != self._unknown]

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


@lru_cache(maxsize=2)
def load_wordpiece(path: Path) -> WordPiece:
    """Load the tokenizer of a tokenizer.json, shared by all who read the same file."""
    return WordPiece(json.loads(path.read_text(encoding="utf-8")))


def can_use_wordpiece(tokenizer: Path, layout: str | None) -> bool:
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


Span = tuple[int, int]

EVIDENCE, MATCHED, CLAIM, MISSING, LEAD = range(5)
"""The token types of a matched pair: evidence, a content word of it that the claim has too, claim, a word of the claim
that the evidence lacks, and the lead of the claim. Words are compared by their stems.
"""

_SURROGATE = re.compile("[\ud800-\udfff]")
_DIGITS = {
    word: str(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
} | {"once": "1", "twice": "2", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90"}


@dataclass(frozen=True, slots=True)
class Pair:
    """The tokens of a pair with their types, and the span of the claim for each (None: not in the claim)."""

    ids: Sequence[int]
    types: Sequence[int]
    places: Sequence[Span | None]


Layout = Callable[[Any, str, str, str, int], Pair]
"""Encode a claim, its lead and its evidence in a maximum number of tokens; the end of the evidence is cut off."""


def evidence_first(tokenizer: Tokenizer, claim: str, lead: str, evidence: str, limit: int) -> Pair:
    """Return premise and hypothesis as the tokenizer joins two texts. The lead begins the hypothesis."""
    hypothesis, evidence = readable(f"{lead} {claim}" if lead else claim), readable(evidence)
    found = tokenizer.encode(evidence, hypothesis)
    if (excess := len(found.ids) - limit) > 0:
        cut = tokenizer.encode(evidence, add_special_tokens=False)
        remaining = max(0, len(cut.ids) - excess)
        found = tokenizer.encode(evidence[: cut.offsets[remaining - 1][1]] if remaining else "", hypothesis)
    before = len(hypothesis) - len(claim)
    places = [
        (span[0] - before, span[1] - before) if sequence == 1 and span[0] >= before else None
        for span, sequence in zip(found.offsets, found.sequence_ids, strict=True)
    ]
    return Pair(found.ids[:limit], found.type_ids[:limit], places[:limit])


def evidence_first_one_separator(tokenizer: Tokenizer, claim: str, lead: str, evidence: str, limit: int) -> Pair:
    """Return the pair of `evidence_first` with one separator, also for tokenizers such as RoBERTa's that insert two.

    MiniCheck's models were trained on evidence and claim joined by one.
    """
    pair = evidence_first(tokenizer, claim, lead, evidence, limit)
    around = tokenizer.encode("", "").ids  # the special tokens that the tokenizer adds to two texts
    if len(around) < 4 or around[1] != around[2]:
        return pair
    doubled = next((at for at in range(1, len(pair.ids)) if pair.ids[at - 1] == pair.ids[at] == around[1]), None)
    remaining = [at for at in range(len(pair.ids)) if at != doubled]
    return Pair(
        [pair.ids[at] for at in remaining], [pair.types[at] for at in remaining], [pair.places[at] for at in remaining]
    )


def claim_first_matched(tokenizer: Tokenizer | WordPiece, claim: str, lead: str, evidence: str, limit: int) -> Pair:
    """Return `[CLS] claim [SEP] lead [SEP] evidence [SEP]` with the token types of a matched pair."""
    begin, end = tokenizer.token_to_id("[CLS]") or 0, tokenizer.token_to_id("[SEP]") or 0
    first, second, third = (_encode(tokenizer, text) for text in (claim, lead, evidence))
    mine, theirs = words(claim), words(evidence)
    claimed, given = set(map(_key, mine)), set(map(_key, theirs))
    missing = _overlaps(first.offsets, [word for word in mine if _key(word) not in given])
    matched = _overlaps(third.offsets, [word for word in theirs if word.is_content and _key(word) in claimed])
    ids = [begin, *first.ids, end, *second.ids, end, *third.ids]
    types = [CLAIM, *(CLAIM + each for each in missing), CLAIM, *[LEAD] * len(second.ids), LEAD]
    types += [EVIDENCE + each for each in matched]
    places: list[Span | None] = [None, *first.offsets]
    places += [None] * (len(ids) - len(places) + 1)
    return Pair([*ids[: limit - 1], end], [*types[: limit - 1], EVIDENCE], [*places[: len(ids)][: limit - 1], None])


LAYOUTS: dict[str, Layout] = {
    "evidence_first": evidence_first,
    "evidence_first_one_separator": evidence_first_one_separator,
    "claim_first_matched": claim_first_matched,
}
"""Every layout by its name in a profile, or in a model's config.json under "groundwire"."""


def _encode(tokenizer: Tokenizer | WordPiece, text: str) -> Encoding | Tokens:
    return tokenizer.encode(readable(text), add_special_tokens=False)


def readable(text: str) -> str:
    """Replace lone surrogates, which a tokenizer refuses, one for one."""
    return _SURROGATE.sub("\ufffd", text)


def _key(word: Word) -> str:
    return _DIGITS.get(word.lower, word.stem)


def _overlaps(places: Sequence[Span], found: Iterable[Word]) -> list[bool]:
    """Return whether each token, in order, overlaps one of the words, which are in order too."""
    spans, at, overlaps = [(word.start, word.end) for word in found], 0, []
    for start, end in places:
        while at < len(spans) and spans[at][1] <= start:
            at += 1
        overlaps.append(at < len(spans) and spans[at][0] < end)
    return overlaps
