"""The embedded verifier as a backend that makes no call, and may have no memory or time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from groundwire.backends.budgets import Cited, budgets
from groundwire.backends.estimators import EmbeddedEstimator
from groundwire.domain import Estimate, Probability, Unavailable
from groundwire.errors import Overload
from groundwire.offload import Workers
from groundwire.policy import Policy
from groundwire.scoring.budget import TARGETS
from tests.backends.asked import CONTEXT, DENIED_CLAIM, SILENT_CLAIM, STATED_CLAIM


def estimating(work: Callable[[EmbeddedEstimator], Awaitable[Any]], *, seconds: float = 20.0, run: Any = None) -> Any:
    async def inside() -> Any:
        workers = Workers(1, 10)
        until = asyncio.get_running_loop().time() + seconds
        try:
            return await work(EmbeddedEstimator(run or workers.run, Policy(), until))
        finally:
            workers.close()

    return asyncio.run(inside())


def test_its_probability_lies_on_the_side_of_its_verdict() -> None:
    found: Sequence[Estimate] = estimating(
        lambda each: each.batch_estimate([STATED_CLAIM, DENIED_CLAIM, SILENT_CLAIM], CONTEXT)
    )
    target = TARGETS["verifier"]
    stated, denied, silent = (each.value for each in found if isinstance(each, Probability))
    assert stated >= target > 1 - target >= denied
    assert silent < target


def test_a_claim_that_the_context_states_has_a_budget_without_any_call() -> None:
    stated, silent = estimating(lambda each: budgets([Cited(STATED_CLAIM), Cited(SILENT_CLAIM)], CONTEXT, each))
    assert (stated.status, silent.status) == ("supported", "not_entailed")
    assert stated.budget_gap <= 0


@pytest.mark.parametrize(
    ("raised", "cause"), [(Overload("full"), "overload"), (TimeoutError(), "timeout")], ids=["no room", "no time"]
)
def test_without_room_or_time_there_is_no_probability(raised: Exception, cause: str) -> None:
    async def run(_: object) -> Sequence[Estimate]:
        raise raised

    found = estimating(lambda each: each.estimate_probability(STATED_CLAIM, CONTEXT), run=run)
    assert found == Unavailable(cause)  # type: ignore[arg-type]


def test_it_ends_with_its_time() -> None:
    async def run(_: object) -> Sequence[Estimate]:
        await asyncio.sleep(30)
        return []

    assert estimating(
        lambda each: each.batch_estimate([STATED_CLAIM] * 2, CONTEXT), seconds=0.05, run=run
    ) == [Unavailable("timeout")] * 2  # fmt: skip
