"""How likely it is that an answer is supported as a whole, from the judgements on its claims."""

from __future__ import annotations

from collections.abc import Iterable

from proxy.types import Judgement


def answer_support(judgements: Iterable[Judgement]) -> float | None:
    """The support (0–1) of the answer's weakest claim, or None when none of its claims was checked.

    The weakest claim speaks for all, for one invention spoils an answer; claims of one answer fail together, so that
    multiplying their probabilities would say too little of long answers.
    """
    return min(map(support, filter(_is_checked, judgements)), default=None)


def support(judgement: Judgement) -> float:
    """The least support (0–1) that any verifier which checked the claim gives it."""
    return min(
        (verdict.score for verdict in judgement.verdicts if verdict.label != "not_checked"),
        default=judgement.verdict.score,
    )


def _is_checked(judgement: Judgement) -> bool:
    return judgement.verdict.label != "not_checked"
