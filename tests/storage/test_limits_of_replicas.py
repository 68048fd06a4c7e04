"""Limits on a client's requests, per minute and at once, within one process."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.storage.limits import Limits, LocalLimits, Turn


class Clock:
    """A clock that a test moves."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def take(limits: LocalLimits, may: Limits, name: str = "app") -> Turn:
    return asyncio.run(limits.take(name, may))


def test_a_client_may_use_up_its_minute_at_once_and_then_go_on_steadily(clock: Clock) -> None:
    limits, may = LocalLimits(clock), Limits(requests_per_minute=6)
    assert [take(limits, may).remaining for _ in range(6)] == [5, 4, 3, 2, 1, 0]
    refused = take(limits, may)
    assert (refused.granted, refused.remaining, refused.wait, refused.reset) == (False, 0, pytest.approx(10), 60)
    clock.now += 9.9
    assert not take(limits, may).granted
    clock.now += 0.1
    assert take(limits, may).granted, "and what was refused took nothing"
    assert not take(limits, may).granted
    clock.now += 60
    assert take(limits, may).remaining == 5


def test_clients_do_not_share_their_turns(clock: Clock) -> None:
    limits, may = LocalLimits(clock), Limits(1, 1)
    assert take(limits, may, "one").granted
    assert not take(limits, may, "one").granted
    assert take(limits, may, "other").granted


def test_so_many_may_run_at_once(clock: Clock) -> None:
    limits, may = LocalLimits(clock), Limits(concurrent=2)
    first, second = take(limits, may), take(limits, may)
    assert (first.granted, second.granted, take(limits, may).granted) == (True, True, False)
    limits.give_back(first)
    third = take(limits, may)
    assert third.granted
    assert not take(limits, may).granted


def test_one_too_many_at_once_costs_none_of_the_minute(clock: Clock) -> None:
    limits, may = LocalLimits(clock), Limits(2, 1)
    first = take(limits, may)
    refused = take(limits, may)
    assert (refused.granted, refused.remaining) == (False, None)
    limits.give_back(first)
    assert take(limits, may).remaining == 0


def test_limits_may_change_while_requests_run(clock: Clock) -> None:
    limits = LocalLimits(clock)
    unlimited = take(limits, Limits(requests_per_minute=600))
    assert not take(limits, Limits(concurrent=1)).granted
    limits.give_back(unlimited)
    assert take(limits, Limits(concurrent=1)).granted


@given(st.integers(1, 500), st.lists(st.floats(0, 5), max_size=100))
def test_never_more_than_twice_the_limit_in_any_minute(per_minute: int, pauses: list[float]) -> None:
    clock = Clock()
    granted: list[float] = []
    limits = LocalLimits(clock)

    async def ask() -> None:
        for pause in [0.0] * per_minute + pauses:
            clock.now += pause
            if (await limits.take("app", Limits(per_minute))).granted:
                granted.append(clock.now)

    asyncio.run(ask())
    assert bisect_right(granted, granted[0]) <= per_minute
    for at, start in enumerate(granted):
        assert bisect_left(granted, start + 60) - at <= 2 * per_minute
