"""Examples from public labelled answers, and from the claims that we wrote about passages of them.

    python -m training.public DATA OUT

Only sets whose licence allows weights to be fitted, without the fold that is held out for measuring.
"""

from __future__ import annotations

import argparse
import json
import random
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

from groundwire.claims.answer import find_claims
from groundwire.domain import Claim
from groundwire.evaluation.rows import Row, context_of
from groundwire.policy import Policy
from groundwire.verifiers.selection import plain_text, select_evidence
from training.corpus import LIMITS, selected
from training.data import PAIRED, SETS, context_key, rows_to_fit
from training.example import CONTRADICTED, NOT_SUPPORTED, SUPPORTED, UNSUPPORTED, Example, Span, difference
from training.schemas import LABELS
from training.written import read_written

_WRITTEN = Path(__file__).with_name("written.jsonl.gz")
_POLICY = Policy()
_FINE = {"E": SUPPORTED, "C": CONTRADICTED, "N": UNSUPPORTED}
_SENTENCE, _AMONG = 60, 0.35  # words of a context that is one sentence; share of these put among others


def main() -> None:
    """Write the examples as JSON lines."""
    parser = argparse.ArgumentParser(description="Makes training examples from public labelled answers.")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    with given.out.open("w", encoding="utf-8") as out:
        for example in (*written(given.data), *labelled(given.data), *paired(given.data)):
            out.write(json.dumps(asdict(example), ensure_ascii=False) + "\n")


def written(folder: Path) -> Iterator[Example]:
    """Yield the claims that we wrote, each about its passage."""
    for each in read_written(_WRITTEN, folder):
        for text in each.supported:
            yield selected(Example(text, "", each.passage, SUPPORTED, "written", wrong=[]), _limit(text))
        for kind, text in each.unsupported:
            label = LABELS.index(kind) if kind in LABELS else NOT_SUPPORTED
            wrong = difference(list(each.supported), text)
            yield selected(Example(text, "", each.passage, label, "written", wrong=wrong), _limit(text))


def _limit(claim: str) -> int:
    """Return one of the limits of evidence, always the same one for a claim."""
    return LIMITS[zlib.crc32(claim.encode()) % len(LIMITS)]


def labelled(folder: Path) -> Iterator[Example]:
    """Yield the claims of labelled answers whose own label follows from their answer's."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for name in SETS:
            rows = rows_to_fit(folder, name)
            yield from _known(name, rows, list(pool.map(_claims, rows, chunksize=16)))


def _claims(row: Row) -> list[tuple[Claim, str]]:
    """Return the claims of an answer that are checked, each with its evidence."""
    context = context_of(row)
    claims = [each for each in find_claims(row.answer, _POLICY).claims if each.skip_reason is None]
    return (
        [(each, select_evidence(each.text, each.lead, context, limit=_limit(each.text)).text) for each in claims]
        if context.passages
        else []
    )


def paired(folder: Path) -> Iterator[Example]:
    """Yield the pairs of sets for natural language inference, where the folder has them.

    A third of the sentences, of which each pair has only one, stand among those of other pairs. Contradictions of SNLI
    count as not supported: many of its sentences have nothing to do with each other.
    """
    for path in (folder / f"{name}.jsonl" for name in PAIRED):
        if not path.exists():
            continue
        with path.open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        chance = random.Random(0)  # noqa: S311
        for row in rows:
            claim, context = row["answer"], row["context"]
            if len(context.split()) < _SENTENCE and chance.random() < _AMONG:
                others = [each["context"] for each in chance.sample(rows, chance.randrange(1, 5))]
                others.insert(chance.randrange(len(others) + 1), context)
                context = "\n\n".join(others)
            label = _FINE[row["meta"]["fine"]]
            if path.stem == "snli" and label == CONTRADICTED:
                label = NOT_SUPPORTED
            wrong = [] if label == SUPPORTED else None
            yield selected(Example(claim, "", context, label, path.stem, wrong=wrong), _limit(claim))


def _known(name: str, rows: Sequence[Row], found: Sequence[Sequence[tuple[Claim, str]]]) -> Iterator[Example]:
    """Yield the claims whose label is known.

    All of a sound answer are supported, and so are the same sentences in other answers about its context. Of an unsound
    one, those on marked spans are wrong and the others right; without spans the only one left is wrong.
    """
    both = list(zip(rows, found, strict=True))
    sound = {(context_key(row), claim.text) for row, claims in both if not row.label for claim, _ in claims}
    for row, claims in both:
        doubtful = [claim for claim, _ in claims if (context_key(row), claim.text) not in sound]
        for claim, evidence in claims:
            text, bad = plain_text(claim.text), _marked(claim, row)
            if claim not in doubtful or (row.spans is not None and not bad):
                yield Example(text, claim.lead, evidence, SUPPORTED, name, wrong=[])
            elif bad or len(doubtful) == 1:
                spans = bad if bad and text == claim.text else None
                yield Example(text, claim.lead, evidence, NOT_SUPPORTED, name, wrong=spans)


def _marked(claim: Claim, row: Row) -> list[Span]:
    """Return the spans of a claim that are marked as wrong in its answer, counted from the claim's start."""
    spans = [(low - claim.start, high - claim.start) for low, high in row.spans or ()]
    length = claim.end - claim.start
    return [(max(0, low), min(len(claim.text), high)) for low, high in spans if low < length and high > 0]


if __name__ == "__main__":
    main()
