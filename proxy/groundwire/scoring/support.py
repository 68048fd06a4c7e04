"""Estimate how well an answer is supported as a whole, from the judgements on its claims."""

from __future__ import annotations

from collections.abc import Iterable

from groundwire.domain import Judgement


def answer_support(judgements: Iterable[Judgement]) -> float | None:
    """Return the support (0–1) of the weakest checked claim, or None if no claim was checked.

    The minimum is used because one invented claim spoils an answer. The claims of one answer tend to fail together, so
    the product of their probabilities would be too low for long answers.
    """
    return min(map(support, filter(_is_checked, judgements)), default=None)


def support(judgement: Judgement) -> float:
    """Return the lowest score (0–1) of the verifiers that checked the claim; if none did, the score of its verdict."""
    return min(
        (verdict.score for verdict in judgement.verdicts if verdict.label != "not_checked"),
        default=judgement.verdict.score,
    )


def _is_checked(judgement: Judgement) -> bool:
    return judgement.verdict.label != "not_checked"
