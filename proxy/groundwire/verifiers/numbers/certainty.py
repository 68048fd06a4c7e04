"""Numbers in a passage that has all other words of the claim."""

from __future__ import annotations

from collections.abc import Set

from groundwire.domain import Claim, Verdict
from groundwire.evidence.index import Context
from groundwire.text.quantities import find_quantities
from groundwire.text.words import Word, words

CERTAIN_SCORE = 0.04
"""The probability that such a claim is supported: 2 of 71 in the calibration sets, with a pseudo-count of one each."""


def is_certain(claim: Claim, verdict: Verdict, context: Context) -> bool:
    """Return whether nothing but a number distinguishes a claim from a passage that states another value.

    `verdict` is the numeric one. Units, months and number words have to occur in the passage too.
    """
    if verdict.label != "contradicted" or verdict.method != "mismatch":
        return False
    return _is_in_a_passage({word.stem for word in words(claim.text) if _counts(word)}, verdict, context)


def is_stated_together(claim: Claim, verdict: Verdict, context: Context) -> bool:
    """Return whether a passage cited by a numeric verdict has all content words of a claim outside its quantities."""
    spans = [(each.start, each.end) for each in find_quantities(claim.text)]
    outside = (word for word in words(claim.text) if not any(start <= word.start < end for start, end in spans))
    return _is_in_a_passage({word.stem for word in outside if _counts(word)}, verdict, context)


def _counts(word: Word) -> bool:
    return word.carries_meaning and not word.is_number


def _is_in_a_passage(stems: Set[str], verdict: Verdict, context: Context) -> bool:
    """Return whether a cited passage, with its headings, has all of the stems."""
    cited = map(context.passage_of, verdict.citations)
    return any(stems <= passage.stems | passage.heading_stems for passage in cited if passage)
