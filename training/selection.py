"""Measure how often the evidence that the proxy selects has the passage that states a claim's fact.

    python -m training.selection CLAIMS [--texts 1]

By words, and by words and vectors, on the claims of development schemas whose passage `training.vectors.stated` finds.
With `--texts`, so many texts are read together.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from groundwire.backends.loading import shipped_vectors
from groundwire.evidence.index import Context
from groundwire.verifiers.selection import select_evidence
from training.schemas import read_schemas
from training.vectors import stated


def main() -> None:
    """Print the shares by label."""
    parser = argparse.ArgumentParser(description="Measures the selection of evidence.")
    parser.add_argument("claims", type=Path)
    parser.add_argument("--texts", type=int, default=1, help="the number of texts that are read together")
    given = parser.parse_args()
    texts = [found for each in read_schemas(given.claims, "development") if (found := stated(each))[1]]
    chance = random.Random(0)  # noqa: S311
    counts: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for context, claims in texts:
        others = [each.sources[0] for each, _ in chance.sample(texts, given.texts) if each is not context]
        every = [*context.sources, *(replace(each, id=str(at)) for at, each in enumerate(others[: given.texts - 1]))]
        joined = Context(every)
        for label, claim, place in claims:
            by_words, by_both = (select_evidence(claim, "", joined, vectors=each) for each in (None, shipped_vectors()))
            found = [any(each.place == place for each in evidence.passages) for evidence in (by_words, by_both)]
            counts[label].append((found[0], found[1]))
    for label, found_all in counts.items():
        words, both = (sum(each[at] for each in found_all) / len(found_all) for at in (0, 1))
        print(f"{label:12} {len(found_all):6,} claims: by words {words:.3f}, by words and vectors {both:.3f}")


if __name__ == "__main__":
    main()
