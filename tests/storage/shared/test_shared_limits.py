"""Limits that replicas share; slots are freed with their replica, and without Redis each counts alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from groundwire.storage.limits import Limits
from groundwire.storage.shared import SharedLimits, SharedRedis
from tests.servers.redis_of_tests import Gate, RedisOfTests

PATIENT_S = 60.0
Start = Callable[..., SharedLimits]


def with_replicas(redis: RedisOfTests, work: Callable[[Start], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        started: list[tuple[SharedLimits, SharedRedis]] = []

        def start(url: str = redis.url, patience: float = PATIENT_S, lease: float = 30.0) -> SharedLimits:
            shared = SharedRedis(url, patience)
            started.append((SharedLimits(shared, redis.name, lease), shared))
            return started[-1][0]

        try:
            return await work(start)
        finally:
            for limits, shared in started:
                await limits.aclose()
                await shared.aclose()

    return asyncio.run(asyncio.wait_for(run(), 60))


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + PATIENT_S
    while not await is_so():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def test_replicas_share_the_requests_of_a_minute(real_redis: RedisOfTests) -> None:
    async def work(start: Start) -> None:
        one, other, may = start(), start(), Limits(requests_per_minute=4)
        turns = [await each.take("app", may) for each in (one, other, one, other)]
        assert [(turn.granted, turn.remaining) for turn in turns] == [(True, 3), (True, 2), (True, 1), (True, 0)]
        refused = await other.take("app", may)
        assert (refused.granted, refused.remaining) == (False, 0)
        assert 0 < refused.wait <= 15
        assert refused.reset == pytest.approx(60, abs=PATIENT_S)
        assert (await one.take("another", may)).granted

    with_replicas(real_redis, work)


def test_the_bucket_fills_and_goes(real_redis: RedisOfTests) -> None:
    async def work(start: Start) -> None:
        limits, may = start(), Limits(requests_per_minute=600)
        while (await limits.take("app", may)).granted:
            pass
        await until(lambda: _granted(limits, may))
        assert 0 < real_redis.client.pttl(real_redis.keys()[0]) <= 61_000, "and leaves nothing behind"

    with_replicas(real_redis, work)


async def _granted(limits: SharedLimits, may: Limits) -> bool:
    turn = await limits.take("app", may)
    if turn.granted:
        limits.give_back(turn)
    return turn.granted


def test_replicas_share_the_places(real_redis: RedisOfTests) -> None:
    async def work(start: Start) -> None:
        one, other, may = start(), start(), Limits(requests_per_minute=2, concurrent=1)
        turn = await one.take("app", may)
        refused = await other.take("app", may)
        assert (turn.granted, refused.granted, refused.remaining) == (True, False, None)
        one.give_back(turn)
        await until(lambda: _granted(other, may))

    with_replicas(real_redis, work)


def test_many_at_once_never_get_more_than_there_is(real_redis: RedisOfTests) -> None:
    async def work(start: Start) -> None:
        replicas, may = [start() for _ in range(3)], Limits(requests_per_minute=1000, concurrent=7)
        turns = await asyncio.gather(*(each.take("app", may) for each in replicas * 20))
        assert sum(turn.granted for turn in turns) == 7

    with_replicas(real_redis, work)


def test_the_places_of_a_killed_replica_are_free_again(real_redis: RedisOfTests) -> None:
    async def work(start: Start) -> None:
        killed, other, may = start(lease=1.0), start(lease=1.0), Limits(concurrent=1)
        assert (await killed.take("app", may)).granted
        await killed.aclose()  # it renews nothing any more, and gives nothing back
        await until(lambda: _granted(other, may))

    with_replicas(real_redis, work)


def test_the_slot_of_a_long_stream_is_renewed(real_redis: RedisOfTests) -> None:
    async def work(start: Start) -> None:
        limits = start(lease=3.0)
        assert (await limits.take("app", Limits(concurrent=1))).granted
        (name,) = real_redis.keys()
        ((slot, until_then),) = real_redis.client.zrange(name, 0, -1, withscores=True)

        async def is_renewed() -> bool:
            return bool(real_redis.client.zscore(name, slot) > until_then)

        await until(is_renewed)

    with_replicas(real_redis, work)


@pytest.mark.parametrize("may", [Limits(requests_per_minute=1), Limits(concurrent=1)], ids=["rate", "at once"])
def test_while_redis_is_down_each_replica_counts_for_itself(gate: Gate, real_redis: RedisOfTests, may: Limits) -> None:
    async def work(start: Start) -> None:
        one, other = start(gate.url, 0.5), start(gate.url, 0.5)
        gate.shut()
        first = await one.take("app", may)
        assert (first.granted, (await one.take("app", may)).granted) == (True, False)
        assert (await other.take("app", may)).granted
        one.give_back(first)
        assert (await one.take("app", may)).granted is (may.concurrent is not None)

    with_replicas(real_redis, work)


def test_a_turn_is_given_back_where_it_was_taken(gate: Gate, real_redis: RedisOfTests) -> None:
    async def work(start: Start) -> None:
        limits, may = start(gate.url, 0.5), Limits(concurrent=1)
        while (shared := await limits.take("app", may)).lease is None:
            limits.give_back(shared)  # Redis was not quick enough for this once
        gate.shut()
        alone = await limits.take("app", may)
        assert (alone.granted, alone.lease) == (True, None)
        limits.give_back(alone)
        limits.give_back(shared)
        assert (await limits.take("app", may)).granted

    with_replicas(real_redis, work)


def test_a_client_that_leaves_while_it_waits_takes_no_slot(gate: Gate, real_redis: RedisOfTests) -> None:
    async def work(start: Start) -> None:
        limits, may = start(gate.url), Limits(concurrent=1)
        limits.give_back(await limits.take("warm", Limits(requests_per_minute=9)))
        gate.shut()
        taking = asyncio.create_task(limits.take("app", may))
        await asyncio.sleep(0.1)
        taking.cancel()
        await asyncio.wait({taking})
        gate.open()
        await until(lambda: _granted(limits, may))

    with_replicas(real_redis, work)
