"""Lists that answers give as complete, and whether two of them match (CO1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from proxy.types import Claim
from proxy.verification.alignment.lexicon import REFERENTS, concept
from proxy.verification.consistency.said import Said
from proxy.verification.words import content_stems, words

_INLINE = re.compile(
    r"(?P<subject>[^,;:]{3,120}?)(?:(?P<copula> are| were)|(?P<closed> consists? of| comprises?| is made (?:up )?of|"
    r" are made (?:up )?of)|:)(?: the following:?)? (?P<items>[^;:]{3,600})$",
    re.IGNORECASE | re.DOTALL,
)
_OPEN = re.compile(
    r"\b(?:includ\w+|such as|for example|e\.g|some|among|like|etc|and (?:more|others|so on)|at least|mainly|mostly|"
    r"several|examples?|many)\b",
    re.IGNORECASE,
)
_JOINT = re.compile(r"\s*(?:,\s*(?:and|or)\b|,|\band\b|\s&\s)\s*")
_COLLECTIVE = frozenset(
    map(
        concept,
        (
            word.stem
            for word in words(
                "members ingredients parts components options categories types languages requirements colours colors "
                "steps stages phases plans sizes flavours founders authors winners countries cities sites offices "
                "branches products subjects symptoms formats methods currencies partners shareholders days planets"
            )
        ),
    )
)
_LONGEST_ITEM = 3  # content words; what is longer says something of its own


@dataclass(frozen=True, slots=True)
class Listing:
    """A list that is given as complete: its subject as a statement, the claim it stands in, and its items' words."""

    subject: Said
    claim: Claim
    items: tuple[frozenset[str], ...]
    text: str


def listings(statements: Sequence[Said]) -> Iterator[Listing]:
    """The complete lists of one answer: in a sentence, or as items under a lead-in that ends in a colon."""
    for said in statements:
        if said.claim.skip_reason is None and (found := _inline(said)):
            yield found
    for lead, group in groupby(statements, key=lambda said: said.claim.lead):
        items = [said for said in group if said.claim.skip_reason is None]
        if lead.rstrip().endswith(":") and len(items) > 1 and not _OPEN.search(lead):
            subject = Said(Claim("", lead, 0, len(lead)), items[0].at, items[0].question, items[0].exchange)
            text = f"{lead.strip()} {', '.join(item.text.strip() for item in items)}"
            if found := _listing(subject, items[0].claim, [item.text for item in items], text):
                yield found


def differ(one: Listing, other: Listing) -> tuple[str, ...]:
    """The items that only one of two lists has."""
    return tuple(
        " ".join(sorted(item))
        for here, there in ((one, other), (other, one))
        for item in here.items
        if not any(item <= each or each <= item for each in there.items)
    )


def _inline(said: Said) -> Listing | None:
    found = _INLINE.match(said.text.strip().rstrip("."))
    if found is None or _OPEN.search(said.text):
        return None
    items = [item for item in _JOINT.split(found["items"]) if item.strip()]
    heads = {concept(word.stem) for word in words(found["subject"])}
    names = sum(item.strip()[:1].isupper() for item in items)
    is_list = bool(found["closed"]) or not heads.isdisjoint(_COLLECTIVE) or (found["copula"] and names == len(items))
    if not is_list:
        return None  # "the rooms are clean and quiet" lists nothing
    claim = Claim("", found["subject"], 0, len(found["subject"]), lead=said.claim.lead)
    return _listing(Said(claim, said.at, said.question, said.exchange), said.claim, items, said.text.strip())


def _listing(subject: Said, claim: Claim, items: Sequence[str], text: str) -> Listing | None:
    read = [frozenset(map(concept, content_stems(item) - REFERENTS)) for item in items]
    if len(read) < 2 or any(not 0 < len(item) <= _LONGEST_ITEM for item in read):
        return None
    return Listing(subject, claim, tuple(read), text)
