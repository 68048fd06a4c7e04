"""A claim and its evidence as the tokens that an encoder reads.

Most encoders read the evidence first and then the claim, with the token types that their tokenizer gives. One may also
read the claim first, with token types that tell which words of the two texts match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tokenizers import Encoding, Tokenizer

from proxy.verification.words import words

Span = tuple[int, int]

EVIDENCE, MATCHED, CLAIM, MISSING = range(4)
"""The token types of a matched pair: evidence, a content word of it that the claim has too, claim, a word of it that is
missing in the evidence. Words are compared by their stems."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The tokens of a pair with their types, and which span of the claim each one is (None: it is not of the claim)."""

    ids: Sequence[int]
    types: Sequence[int]
    places: Sequence[Span | None]


Layout = Callable[[Tokenizer, str, str], Pair]
"""Makes a pair of a claim and of its evidence's text."""


def evidence_first(tokenizer: Tokenizer, claim: str, evidence: str) -> Pair:
    """Premise and hypothesis, or prompt and answer, as the tokenizer puts two texts together."""
    found = tokenizer.encode(evidence, claim)
    return Pair(found.ids, found.type_ids, _places(found, sequence=1))


def claim_first_matched(tokenizer: Tokenizer, claim: str, evidence: str) -> Pair:
    """Claim and evidence, with the types of a matched pair. A special token has the plain type of its text."""
    found = tokenizer.encode(claim, evidence)
    mine, theirs = words(claim), words(evidence)
    said, given = {word.stem for word in mine}, {word.stem for word in theirs}
    missing = [(word.start, word.end) for word in mine if word.stem not in given]
    matched = [(word.start, word.end) for word in theirs if word.is_content and word.stem in said]
    in_claim = list(_touching(_places(found, sequence=0), missing))
    in_evidence = list(_touching(_places(found, sequence=1), matched))
    begins = next((at for at, sequence in enumerate(found.sequence_ids) if sequence == 1), len(found.ids) - 1)
    types = [CLAIM + is_missing for is_missing in in_claim[:begins]]
    types += [EVIDENCE + is_matched for is_matched in in_evidence[begins:]]
    return Pair(found.ids, types, _places(found, sequence=0))


LAYOUTS: dict[str, Layout] = {"evidence_first": evidence_first, "claim_first_matched": claim_first_matched}
"""Every layout there is, by the name that a model's config.json gives under "groundwire"."""


def _places(found: Encoding, sequence: int) -> list[Span | None]:
    return [span if each == sequence else None for span, each in zip(found.offsets, found.sequence_ids, strict=True)]


def _touching(places: Sequence[Span | None], spans: Sequence[Span]) -> Iterable[bool]:
    """For each token, in order, whether it overlaps one of the spans, which are in order too."""
    at = 0
    for place in places:
        while place and at < len(spans) and spans[at][1] <= place[0]:
            at += 1
        yield place is not None and at < len(spans) and spans[at][0] < place[1]
