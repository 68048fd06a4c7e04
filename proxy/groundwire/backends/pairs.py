"""Encode a claim, its lead and its evidence as the tokens that an entailment model reads.

Cross-encoders for entailment and prompts read the evidence first. The layout of the shipped model begins with the claim
and marks by token types which words of claim and evidence match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from groundwire.backends.wordpiece import Tokens, WordPiece
from groundwire.text.words import Word, words

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

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
        kept = max(0, len(cut.ids) - excess)
        found = tokenizer.encode(evidence[: cut.offsets[kept - 1][1]] if kept else "", hypothesis)
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
    kept = [at for at in range(len(pair.ids)) if at != doubled]
    return Pair([pair.ids[at] for at in kept], [pair.types[at] for at in kept], [pair.places[at] for at in kept])


def claim_first_matched(tokenizer: Tokenizer | WordPiece, claim: str, lead: str, evidence: str, limit: int) -> Pair:
    """Return `[CLS] claim [SEP] lead [SEP] evidence [SEP]` with the token types of a matched pair."""
    begin, end = tokenizer.token_to_id("[CLS]") or 0, tokenizer.token_to_id("[SEP]") or 0
    first, second, third = (_encode(tokenizer, text) for text in (claim, lead, evidence))
    mine, theirs = words(claim), words(evidence)
    said, given = set(map(_key, mine)), set(map(_key, theirs))
    missing = _touching(first.offsets, [word for word in mine if _key(word) not in given])
    matched = _touching(third.offsets, [word for word in theirs if word.is_content and _key(word) in said])
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


def _touching(places: Sequence[Span], found: Iterable[Word]) -> list[bool]:
    """Return whether each token, in order, overlaps one of the words, which are in order too."""
    spans, at, touching = [(word.start, word.end) for word in found], 0, []
    for start, end in places:
        while at < len(spans) and spans[at][1] <= start:
            at += 1
        touching.append(at < len(spans) and spans[at][0] < end)
    return touching
