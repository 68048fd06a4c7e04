"""What is known of a claim beside its evidence, apart from the model's opinion: words, names and numbers."""

from __future__ import annotations

from typing import NamedTuple

from proxy.types import Claim, Verdict
from proxy.verification.context.index import Context, Passage
from proxy.verification.entailment.evidence import Evidence, plain_text
from proxy.verification.words import Word, words

_ABOUT = 0.6  # the share of a claim's words in one passage, from which the passage is about the claim


class Signals(NamedTuple):
    """Features of a claim and its evidence, each 0–1 but for the log-odds.

    `model` are the model's log-odds of support. `coverage` is the share of the claim's content words that the evidence
    has, `names` the share of its proper names that occur nowhere in the context. `derived` is 1 where all of the
    claim's numbers are stated or follow from what is stated, `absent` 1 where one of them occurs nowhere, and `wrong`
    1 where a passage about the same thing states another value or states the value of something else. `words` are the
    log-odds of support by words alone.
    """

    model: float
    coverage: float = 0.0
    names: float = 0.0
    derived: float = 0.0
    absent: float = 0.0
    wrong: float = 0.0
    words: float = 0.0


def measure_signals(
    claim: Claim, evidence: Evidence, context: Context, numeric: Verdict | None, log_odds: float, words_odds: float
) -> Signals:
    """Return the signals of a claim. `numeric` is the verdict of the numeric check, if it gave one."""
    found = words(plain_text(claim.text))
    content = {word.stem for word in found if word.carries_meaning}
    stated = frozenset[str]().union(*(each.stems | each.heading_stems for each in evidence.passages))
    names = {word.stem for at, word in enumerate(found) if at and word.is_capital and not word.is_number}
    new = [each for each in names if not context.nearest([each], 1)]
    about = numeric is not None and _is_about(numeric, found, evidence.passages)
    return Signals(
        model=log_odds,
        coverage=len(content & stated) / len(content) if content else 1.0,
        names=len(new) / len(names) if names else 0.0,
        derived=float(numeric is not None and numeric.label == "supported"),
        absent=float(numeric is not None and numeric.method == "absent"),
        wrong=float(numeric is not None and numeric.method in ("mismatch", "misattributed") and about),
        words=words_odds,
    )


def _is_about(numeric: Verdict, found: tuple[Word, ...], passages: tuple[Passage, ...]) -> bool:
    """Return whether the passage that a numeric alarm cites has most of the claim's words."""
    plain = {word.stem for word in found if word.carries_meaning and not word.is_number}
    cited = {citation.text for citation in numeric.citations}
    stems = [each.stems | each.heading_stems for each in passages if each.source.text[each.start : each.end] in cited]
    return bool(plain) and any(len(plain & each) / len(plain) >= _ABOUT for each in stems)
