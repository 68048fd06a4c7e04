"""A Redis that is down, or hangs, blocks nobody for long, and is used again once it has recovered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest
from redis.asyncio import Redis

from groundwire.errors import StoreUnavailable
from groundwire.storage.shared import SharedRedis
from tests.servers.redis_of_tests import Gate, RedisOfTests

NOWHERE = "redis://127.0.0.1:1"
PATIENT_S = 40.0


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 50))


def ping(redis: Redis) -> Any:
    return redis.ping()


async def answered(shared: SharedRedis) -> None:
    """Retry until there is an answer: a busy machine may be late once."""
    deadline = time.monotonic() + PATIENT_S
    while True:
        with suppress(StoreUnavailable):
            await shared.ask(ping)
            return
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def refused(shared: SharedRedis) -> None:
    with pytest.raises(StoreUnavailable):
        await shared.ask(ping)


def test_only_the_first_waits_for_one_that_hangs(silent_redis: Gate) -> None:
    async def work() -> None:
        shared = SharedRedis(silent_redis.url, timeout=0.5)
        for _ in range(1000):  # 500 s, if each waited
            await refused(shared)
        assert shared.degraded() == (
            "unavailable; verdicts and limits are those of this process, 1000 questions unanswered"
        )
        assert silent_redis.accepted <= 2  # one for the first question, one for the ping
        await shared.aclose()

    run(work())


def test_those_who_ask_at_once_wait_no_longer_than_one(silent_redis: Gate) -> None:
    async def work() -> None:
        shared = SharedRedis(silent_redis.url, timeout=0.5)
        await asyncio.gather(*(refused(shared) for _ in range(200)))  # 100 s, if they waited in turn
        await shared.aclose()

    run(work())


def test_one_that_is_not_there_is_down() -> None:
    async def work() -> None:
        shared = SharedRedis(NOWHERE, PATIENT_S)
        await refused(shared)
        assert shared.degraded()
        await shared.aclose()

    run(work())


def test_a_redis_that_has_recovered_is_used_again(gate: Gate) -> None:
    async def work() -> None:
        shared = SharedRedis(gate.url, timeout=0.5)
        await answered(shared)
        gate.shut()
        await refused(shared)
        assert shared.degraded()
        gate.open()
        await answered(shared)
        await shared.aclose()

    run(work())


def test_an_answer_that_comes_too_late_is_nobodys(gate: Gate, real_redis: RedisOfTests) -> None:
    """A connection on which a late answer is still to come is not used for the next question."""

    async def work() -> None:
        shared = SharedRedis(gate.url, timeout=0.5)
        real_redis.client.set(real_redis.name, "late")
        await answered(shared)
        gate.shut()
        with pytest.raises(StoreUnavailable):
            await shared.ask(lambda redis: redis.get(real_redis.name))
        gate.open()
        await answered(shared)
        with suppress(StoreUnavailable):
            assert await shared.ask(lambda redis: redis.get(f"{real_redis.name}-none")) is None
        await shared.aclose()

    run(work())


def test_background_work_is_done_before_the_end(real_redis: RedisOfTests) -> None:
    async def work() -> None:
        shared = SharedRedis(real_redis.url, PATIENT_S)

        async def put() -> None:
            await shared.ask(lambda redis: redis.set(real_redis.name, "1"))

        shared.in_background(put())
        await shared.aclose()

    run(work())
    assert real_redis.keys()


def test_background_work_is_bounded(silent_redis: Gate) -> None:
    async def work() -> None:
        shared = SharedRedis(silent_redis.url, PATIENT_S)
        begun = 0

        async def count() -> None:
            nonlocal begun
            begun += 1
            await asyncio.sleep(PATIENT_S)

        for _ in range(1000):
            shared.in_background(count())
        await asyncio.sleep(0)
        assert begun <= 256
        await shared.aclose()

    run(work())
