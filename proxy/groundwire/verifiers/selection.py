"""Select the passages that a claim is compared with."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import groupby, pairwise
from typing import Protocol

from groundwire.domain import Source
from groundwire.evidence.index import Context, Passage
from groundwire.text.words import content_stems, same_meaning

MAX_WORDS = 120
"""Maximum length, in words, of the evidence for one claim. A single longer passage is used whole."""
NEAR_WORDS = 80
"""The same for a claim most of whose words the closest passages of this length have."""

_MAX_CANDIDATES = 16
_MAX_QUOTED_CHARS = 160
_CHARS_PER_WORD = 8  # English prose, with spaces, punctuation and a margin
_COVERED_WEIGHT = 0.15  # weight of a word of the claim that a chosen passage already contains; a new word weighs 1
_NEAR_SHARE = 0.6  # of the claim's words
_CITED_WEIGHT = 1.5  # weight of a passage of a cited source; others weigh 1
_MARKUP = re.compile(
    r"</?(?:b|i|u|em|strong|code|mark|span|br|p|sup|sub)(?: ?/)?>|"
    r"[*_`#>]+|\[(?=[^\[\]\n]*\]\()|\[[^\[\]\n]{1,40}\](?!\()|【[^【】\n]{1,40}】|\]\([^()\s]{1,500}\)|^\s*[-+•]\s+",
    re.M,
)


class Vectors(Protocol):
    """Vectors of texts, to compare them by meaning. They may be used from any thread."""

    def similarities(self, text: str, context: Context) -> Sequence[float]:
        """Return the similarity (−1 to 1) of a text to each passage of a context, in order."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Passages in reading order, their similarity to the claim, and their joined text under their headings.

    `similarities` is empty if texts are compared by words alone.
    """

    passages: tuple[Passage, ...] = ()
    text: str = ""
    similarities: tuple[float, ...] = ()


def plain_text(text: str) -> str:
    """Return the text on one line, without Markdown, plain tags of HTML, citation marks and soft hyphens."""
    return " ".join(_MARKUP.sub(" ", text.replace("\N{SOFT HYPHEN}", "")).split())


def quoted(passage: Passage) -> str:
    """Return the beginning of a passage in quotation marks, its own ones single, without its final stop."""
    text = plain_text(passage.text).replace('"', "'")
    if len(text) > _MAX_QUOTED_CHARS:
        text = text[:_MAX_QUOTED_CHARS].rsplit(" ", 1)[0] + " …"
    return f'"{text.rstrip(".")}"'


def select_evidence(
    claim: str,
    lead: str,
    context: Context,
    cited: Collection[str] = (),
    limit: int = MAX_WORDS,
    vectors: Vectors | None = None,
    near_limit: int = NEAR_WORDS,
) -> Evidence:
    """Return the passages closest to a claim and its lead by words and, if given, by `vectors`, up to `limit` words.

    A context within the limit is used completely. Passages are chosen greedily for the claim's words that the chosen
    ones lack, and for their similarity; the remaining space goes to neighbours of the best ones. The limit is
    `near_limit` if most of the claim's words are known, and passages of that length have all that are. `cited` are the
    ids of the sources that the claim cites.
    """
    passages = context.passages
    similar = vectors.similarities(f"{lead} {claim}" if lead else claim, context) if vectors else ()
    if len(passages) <= limit and sum(len(each.words) for each in passages) <= limit:
        return _joined(passages, similar)
    stems = content_stems(claim)
    wider = stems | {near for each in stems for near in same_meaning(each)} | content_stems(lead)
    candidates = {each.place: each for each in context.nearest(wider, _MAX_CANDIDATES)}
    if cited:
        candidates |= {each.place: each for each in context.nearest(wider, _MAX_CANDIDATES, cited)}
    closest = nlargest(_MAX_CANDIDATES, range(len(similar)), key=lambda place: (similar[place], -place))
    candidates |= {place: passages[place] for place in closest}
    chosen = _cover(stems, wider, list(candidates.values()), similar, cited, limit)
    if near_limit < limit and (near := _nearest(stems, chosen, near_limit)):
        chosen, limit = near, near_limit
    return _joined(sorted(_with_neighbours(chosen, context, limit), key=lambda each: each.place), similar)


def select_sources(
    claim: str,
    lead: str,
    context: Context,
    max_chars: int,
    cited: Collection[str] = (),
    vectors: Vectors | None = None,
) -> tuple[Source, ...]:
    """Return the sources of a context whole or, if they exceed `max_chars`, only the parts closest to the claim.

    Parts that are not adjacent are separated by a line with an ellipsis. Sources without text are left out.
    """
    if sum(len(each.text) for each in context.sources) <= max_chars:
        return tuple(each for each in context.sources if each.text)
    limit = max_chars // _CHARS_PER_WORD
    chosen = select_evidence(claim, lead, context, cited, limit, vectors, near_limit=limit).passages
    found = []
    for _, group in groupby(chosen, lambda each: id(each.source)):
        passages = list(group)
        parts = [passages[0].text]
        for before, after in pairwise(passages):
            parts += [after.text] if after.place == before.place + 1 else ["…", after.text]
        found.append(replace(passages[0].source, text="\n".join(parts)[:max_chars]))
    return tuple(found)


def _cover(
    stems: frozenset[str],
    wider: frozenset[str],
    candidates: Sequence[Passage],
    similar: Sequence[float],
    cited: Collection[str],
    limit: int,
) -> list[Passage]:
    """Choose candidates greedily by gain, until none that adds anything fits. The first always fits.

    The gain is the weighted number of words, and as much as all words of the claim for a similarity of 1: a word of the
    claim that no chosen passage has weighs 1, a synonym or a word of the lead ½.
    """
    remaining = []
    for each in candidates:
        stated = each.stems | each.heading_stems
        weight = _CITED_WEIGHT if each.source.id in cited else 1.0
        similarity = max(0.0, similar[each.place]) * max(1, len(stems)) if similar else 0.0
        remaining.append((each, stated & stems, (stated & wider) - stems, similarity, weight))
    chosen: list[Passage] = []
    covered, room = frozenset[str](), limit
    while remaining and room > 0:
        gains = [
            weight
            * (len(own - covered) + 0.5 * len(other - covered) + _COVERED_WEIGHT * len(own & covered) + similarity)
            for _, own, other, similarity, weight in remaining
        ]
        at = max(range(len(gains)), key=lambda at: (gains[at], -remaining[at][0].place))
        best = remaining[at][0]
        if gains[at] <= 0:
            break
        del remaining[at]
        if chosen and len(best.words) > room:
            continue
        chosen.append(best)
        covered |= best.stems | best.heading_stems
        room -= len(best.words)
    return chosen


def _nearest(stems: frozenset[str], chosen: Sequence[Passage], limit: int) -> list[Passage]:
    """Return the first chosen passages that have all words of the claim that any of them has.

    Return none if these are few of the claim's words, or the passages are longer than `limit` words together.
    """
    known = [stems & (each.stems | each.heading_stems) for each in chosen]
    stated, covered = frozenset[str]().union(*known), frozenset[str]()
    near: list[Passage] = []
    if not stated or len(stated) < _NEAR_SHARE * len(stems):
        return near
    for passage, own in zip(chosen, known, strict=True):
        near.append(passage)
        covered |= own
        if covered == stated:
            break
    return near if sum(len(each.words) for each in near) <= limit else []


def _with_neighbours(chosen: Sequence[Passage], context: Context, limit: int) -> list[Passage]:
    """Add passages within two places of the chosen ones that fit the remaining space, the closest first."""
    found = {each.place: each for each in chosen}
    room = limit - sum(len(each.words) for each in chosen)
    for near in _neighbours(chosen, context):
        if near.place not in found and len(near.words) <= room:
            found[near.place] = near
            room -= len(near.words)
    return list(found.values())


def _neighbours(chosen: Sequence[Passage], context: Context) -> Iterator[Passage]:
    for distance in (1, 2):
        for each in chosen:
            around = context.around(each, distance, distance)
            yield from (near for near in around if near.place > each.place)
            yield from (near for near in around if near.place < each.place)


def _joined(passages: Sequence[Passage], similar: Sequence[float]) -> Evidence:
    """Join passages line by line, each heading before the first passage under it unless it would be repeated."""
    lines: list[str] = []
    heading = ""
    for each in passages:
        text, above = plain_text(each.text), plain_text(each.heading).rstrip(":.")
        if above and above != heading and above not in text and above not in lines[-1:]:
            lines.append(f"{above}:")
        heading = above
        lines.append(text)
    text = "\n".join(line for line in lines if line)
    return Evidence(tuple(passages), text, tuple(similar[each.place] for each in passages) if similar else ())
