"""Split an answer into claims: Markdown blocks, then sentences, then clauses; or the fields of a JSON answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from groundwire.claims.blocks import LEAD_LIMIT
from groundwire.claims.fields import fields, json_of
from groundwire.claims.prose import NUMBER_WORDS, Draft, prose
from groundwire.domain import Claim
from groundwire.policy import Policy


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of one answer, in order, with disjoint spans.

    `total` includes the claims beyond the limit; in texts longer than `_MAX_COUNTED` those are estimated by line and
    sentence ends. `truncated` is set if there are any. `examined` is the share (0–1) of the answer's characters, except
    white space, that was read.
    """

    claims: tuple[Claim, ...]
    total: int
    truncated: bool
    examined: float


_MAX_COUNTED = 2**18
_MAX_KEPT = 2**14  # in characters; the claims of longer answers are not cached
_LETTERS = re.compile(r"[^\W\d_]+")
_UNTELLING = NUMBER_WORDS | frozenset(
    "the a an answer it is was would be will about approximately around roughly nearly one total of to and in cents "
    "dollars dollar usd euros euro eur gbp pounds million millions thousands billions percentage points point years "
    "year months days times x k m bn".split()
)
_END = re.compile(r"[^\W_][^\w\s]*(?:\n|[.!?][^\w\s]*(?=\s|$)|$)")


def find_claims(text: str, policy: Policy, question: str = "") -> Claims:
    """Return at most `policy.max_claims` claims of the answer `text`; those that assert nothing have a skip reason.

    A JSON answer, fenced or not, gives the claims of its fields. A claim that is a bare number has the `question` as
    its lead, as its subject is named only there. Accepts any Unicode; linear in the length.
    """
    find = _find_recent if len(text) + len(question) <= _MAX_KEPT else _find
    return find(text, policy.max_claims, policy.verify_hedged, question)


def _find(text: str, max_claims: int, verify_hedged: bool, question: str) -> Claims:
    json_text = json_of(text)
    drafts = _joined_confidence(prose(text) if json_text is None else fields(json_text))
    taken = list(islice(drafts, max_claims))
    claims = tuple(_claim(number, draft, text, verify_hedged, question) for number, draft in enumerate(taken, 1))
    if next(drafts, None) is None:
        return Claims(claims, len(claims), False, 1.0)
    read = taken[-1].end if taken else 0
    rest = 1 + sum(1 for _ in drafts) if len(text) <= _MAX_COUNTED else sum(1 for _ in _END.finditer(text, read))
    return Claims(claims, len(claims) + max(1, rest), True, _share(text[:read], text))


_find_recent = lru_cache(maxsize=64)(_find)


def _claim(number: int, draft: Draft, text: str, verify_hedged: bool, question: str) -> Claim:
    skip = None if verify_hedged and draft.skip == "hedged" else draft.skip
    own = text[draft.start : draft.end] if draft.text is None else draft.text
    return Claim(
        id=f"c{number}",
        text=own,
        start=draft.start,
        end=draft.end,
        kind=draft.kind,
        lead=draft.lead or (question[-LEAD_LIMIT:] if draft.kind == "numeric" and is_bare_number(own) else ""),
        cited=draft.cited,
        stated_confidence=draft.confidence,
        skip_reason=skip,
        pointer=draft.pointer,
    )


def is_bare_number(text: str) -> bool:
    """Return whether a text has no words but number words, units and fillers, so that its subject is not named."""
    return _UNTELLING.issuperset(_LETTERS.findall(text.lower()))


def _share(part: str, whole: str) -> float:
    return sum(map(len, part.split())) / max(1, sum(map(len, whole.split())))


def _joined_confidence(drafts: Iterator[Draft]) -> Iterator[Draft]:
    """Move a separate statement of confidence ("Confidence: 80%") to the piece before it."""
    waiting: Draft | None = None
    for draft in drafts:
        if draft.skip == "confidence" and draft.pointer is None and waiting is not None:
            waiting = waiting._replace(confidence=draft.confidence)
        if waiting is not None:
            yield waiting
        waiting = draft
    if waiting is not None:
        yield waiting
