"""Pairs out of labelled answers: each claim beside the evidence that the statement verifier itself aligns it with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from proxy.evaluation.outcome import context_of
from proxy.evaluation.rows import Row
from proxy.types import Claim, Policy
from proxy.verification import statement
from proxy.verification.claims.answer import find_claims
from proxy.verification.context.index import Context
from training.data import SETS, context_key, rows_to_fit
from training.pair import Pair, Span

_POLICY = Policy()
_WORKERS = 2


class Aligned(NamedTuple):
    """A claim, where it stands in its answer, and its evidence."""

    text: str
    start: int
    end: int
    evidence: str


def labelled(folder: Path) -> Iterator[Pair]:
    """The claims of labelled answers whose own label is known."""
    with ProcessPoolExecutor(_WORKERS, mp_context=get_context("spawn")) as pool:
        for name in SETS:
            rows = rows_to_fit(folder, name)
            yield from known(name, rows, list(pool.map(aligned_claims, rows, chunksize=16)))


def aligned_claims(row: Row) -> list[Aligned]:
    """The claims of an answer that are checked, with their evidence; none without a context."""
    context = context_of(row)
    if not context.passages:
        return []
    claims = [claim for claim in find_claims(row.answer, _POLICY).claims if claim.skip_reason is None]
    found = [(claim, _evidence(claim, context)) for claim in claims]
    return [Aligned(claim.text, claim.start, claim.end, text) for claim, text in found if text is not None]


def _evidence(claim: Claim, context: Context) -> str | None:
    """The passages that a claim is aligned with, in their order; None when it has nothing to look for."""
    found = statement.align(claim, context, _POLICY)
    if found is None:
        return None
    passages = {passage.place: passage for passage in (*found.window, *found.second)}
    return " ".join(passages[place].text for place in sorted(passages))


def known(name: str, rows: Sequence[Row], found: Sequence[Sequence[Aligned]]) -> Iterator[Pair]:
    """The claims of the set `name` whose label follows from their answer's.

    All of a sound answer are supported, and so are the same sentences in other answers about its context. Of an unsound
    one, those on marked spans are wrong and its others right; without spans the only one left is wrong.
    """
    both = list(zip(rows, found, strict=True))
    sound = {(context_key(row), claim.text) for row, claims in both if not row.label for claim in claims}
    for row, claims in both:
        doubtful = [claim for claim in claims if (context_key(row), claim.text) not in sound]
        for claim in claims:
            bad = _marked(claim, row)
            if claim not in doubtful or (row.spans is not None and not bad):
                yield Pair(claim.text, claim.evidence, 1, name)
            elif bad or len(doubtful) == 1:
                yield Pair(claim.text, claim.evidence, 0, name, bad or None)


def _marked(claim: Aligned, row: Row) -> list[Span]:
    """The parts of a claim that are marked as wrong in its answer, counted from the claim's start."""
    spans = [(low - claim.start, high - claim.start) for low, high in row.spans or ()]
    length = claim.end - claim.start
    return [(max(0, low), min(len(claim.text), high)) for low, high in spans if low < length and high > 0]
