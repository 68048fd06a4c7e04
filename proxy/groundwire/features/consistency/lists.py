"""Extract complete lists from answers, and compare two of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from groundwire.domain import Claim
from groundwire.features.consistency.statement_context import Said
from groundwire.text.quantities import find_quantities
from groundwire.text.words import REFERENTS, concept, content_stems, stem, words

_INLINE = re.compile(
    r"(?P<subject>[^,;:]{2,120}?)(?:(?P<copula> are| were)|(?P<closed> consists? of| comprises?| is made (?:up )?of|"
    r" are made (?:up )?of)|(?P<taken> (?:(?:is |are )?(?:currently |still )?(?:takes?|taking|receives?|receiving|on|"
    r"prescribed|treated with|allergic to))(?= \w))|:)(?: the following:?)?(?: both)? (?P<items>[^;:]{3,600})$",
    re.IGNORECASE | re.DOTALL,
)
_OPEN = re.compile(
    r"\b(?:includ\w+|such as|for example|e\.g|some|among|like|etc|and (?:more|others|so on)|at least|mainly|mostly|"
    r"several|examples?|many|also|additionally|in addition|besides|as well|other|others|further|additional)\b",
    re.IGNORECASE,
)
_DOSING = frozenset(
    "daily twice once thrice weekly monthly nightly day night morning evening bedtime needed every hour hours week per "
    "tablet tablets capsule capsules dose doses times time mg mcg g ml units iu prn bid tid qd".split()
)
_NOT_TAKEN = frozenset(
    map(
        stem,
        "note notes minutes picture pictures photo photos photograph photographs care part place time break breaks "
        "class classes course courses step steps action turn turns risk risks responsibility holiday train bus taxi "
        "call calls payment payments order orders booking bookings instruction instructions feedback email emails "
        "leave site board duty track course schedule strike monday tuesday wednesday thursday friday saturday sunday "
        "card cards cash mail letters visitors guests walk walks nap naps bath baths shower showers".split(),
    )
)
_TAKING = re.compile(
    r"\b(?:tak(?:es?|ing)|receiv(?:es?|ing)|prescri\w+|medicat\w+|medicines?|drugs?|supplements?|allerg\w+|on)\b",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"\b(?:patient|client|resident|he|she|they|i|you|who|mother|father|wife|husband|son|daughter|mr|mrs|ms|dr|child|"
    r"baby|woman|man|boy|girl|user|person)\b|^\W*[A-Z][a-z]",
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
                "branches products subjects symptoms formats methods currencies partners shareholders days planets "
                "medications medicines drugs prescriptions supplements allergies diagnoses attendees participants "
                "speakers directors owners subsidiaries allergens beneficiaries signatories"
            )
        ),
    )
)
_LONGEST_ITEM = 3  # content words; a longer item is a statement


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list: the concepts that name it, and its text."""

    meanings: frozenset[str]
    text: str

    def is_like(self, other: Item) -> bool:
        """Return whether one of two items names the other, perhaps with more words."""
        return self.meanings <= other.meanings or other.meanings <= self.meanings


@dataclass(frozen=True, slots=True)
class Listing:
    """A list that is presented as complete: its subject as a statement, the claim that contains it, and its items.

    `taken` means that it lists medicines that a person takes, or substances that a person does not tolerate.
    """

    subject: Said
    claim: Claim
    items: tuple[Item, ...]
    text: str
    taken: bool = False


def listings(statements: Sequence[Said]) -> Iterator[Listing]:
    """Yield the complete lists of one answer: within a sentence, or as items under a lead-in that ends in a colon."""
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


def only_in(one: Listing, other: Listing) -> tuple[str, ...]:
    """Return the texts of the items in one list that the other does not have."""
    return tuple(item.text for item in one.items if not any(map(item.is_like, other.items)))


def _inline(said: Said) -> Listing | None:
    found = _INLINE.match(said.text.strip().rstrip("."))
    if found is None or _OPEN.search(said.text):
        return None
    items = [item for item in _JOINT.split(found["items"]) if item.strip()]
    if not _is_complete(said, found, items):
        return None
    subject = found["subject"] + (found["taken"] or "")
    claim = Claim("", subject, 0, len(subject), lead=said.claim.lead)
    return _listing(Said(claim, said.at, said.question, said.exchange), said.claim, items, said.text.strip())


def _is_complete(said: Said, found: re.Match[str], items: Sequence[str]) -> bool:
    """Return whether a sentence gives a complete list of things; "the rooms are clean and quiet" does not.

    The medicines that a person takes, and the substances that a person does not tolerate, form a complete list.
    """
    if found["closed"]:
        return True
    if found["taken"]:
        taken = {word.stem for item in items for word in words(item)}
        return bool(_PERSON.search(found["subject"])) and taken.isdisjoint(_NOT_TAKEN)
    heads = {concept(word.stem) for word in words(found["subject"])}
    names = sum(item.strip()[:1].isupper() for item in items)
    return not heads.isdisjoint(_COLLECTIVE) or (found["copula"] is not None and names == len(items))


def _listing(subject: Said, claim: Claim, items: Sequence[str], text: str) -> Listing | None:
    read = [Item(frozenset(map(concept, _named(item))), item.strip(" .*_")) for item in items]
    if len(read) < 2 or any(not 0 < len(item.meanings) <= _LONGEST_ITEM for item in read):
        return None
    taken = bool(_TAKING.search(subject.text))
    return Listing(subject, claim, tuple(read), text, taken)


def _named(item: str) -> frozenset[str]:
    """Return the stems that name an item, without its dose and frequency."""
    spans = [(each.start, each.end) for each in find_quantities(item)]
    kept = [
        word.stem
        for word in words(item)
        if word.is_content and word.lower not in _DOSING and not any(low <= word.start < high for low, high in spans)
    ]
    return frozenset(kept or content_stems(item)) - REFERENTS
