"""Numeric contradictions that decide a claim without a model."""

from __future__ import annotations

from proxy.types import Citation, Claim, Verdict
from proxy.verification.context.index import Context, Passage
from proxy.verification.words import words

CERTAIN_SCORE = 0.03
"""The probability that such a claim is supported: 1 of 64 in the calibration sets, with a pseudo-count of one each."""


def is_certain(claim: Claim, verdict: Verdict, context: Context) -> bool:
    """Return whether nothing but a number distinguishes a claim from a passage that states another value.

    `verdict` is the numeric one. All content words of the claim, apart from numbers, have to occur in the passage or in
    its headings.
    """
    if verdict.label != "contradicted" or verdict.method != "mismatch":
        return False
    content = {word.stem for word in words(claim.text) if word.carries_meaning and not word.is_number}
    return any(
        content <= passage.stems | passage.heading_stems
        for citation in verdict.citations
        for passage in context.passages
        if _cites(citation, passage)
    )


def _cites(citation: Citation, passage: Passage) -> bool:
    return passage.source.id == citation.source and passage.start <= citation.start < passage.end
