"""Bounded, ordered admission with a queue and a timeout; no slot is lost or given twice."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from starlette.types import Message

from groundwire.errors import Leaving, TooBusy
from groundwire.http.endpoints import Admission
from groundwire.http.exchange import ReadAhead
from groundwire.limits import Capacity, Slot


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


async def silent() -> Message:
    """Receive nothing, as from a client that sends no body and stays."""
    return await asyncio.Future[Message]()


async def enter(admission: Admission, size: int = 0) -> Slot:
    return await admission.admit(size, ReadAhead(silent))


async def in_line(admission: Admission, size: int = 0) -> asyncio.Task[Slot]:
    task = asyncio.create_task(enter(admission, size))
    await asyncio.sleep(0)
    return task


def test_places_are_given_in_order() -> None:
    async def work() -> None:
        admission = Admission(Capacity(slots=1, queue=10, queue_timeout=20, oversized=True))
        tasks = [await in_line(admission) for _ in range(4)]
        assert admission.waiting
        for task in tasks:
            place = await task
            assert admission.active == 1
            place.release()
        assert (admission.active, admission.waiting) == (0, 0)
        await admission.wait_until_idle()

    run(work())


def test_a_long_line_is_closed_and_a_wait_ends() -> None:
    async def work() -> None:
        admission = Admission(Capacity(slots=1, queue=1, queue_timeout=0.05))
        first = await enter(admission)
        waiting = await in_line(admission)
        with pytest.raises(TooBusy):
            await enter(admission)
        with pytest.raises(TooBusy):
            await waiting
        assert not admission.waiting
        first.release()
        await enter(admission)

    run(work())


def test_a_request_that_stops_waiting_leaves_its_place_to_others() -> None:
    async def work() -> None:
        admission = Admission(Capacity(slots=1, queue=10, queue_timeout=20, oversized=True))
        first = await enter(admission)
        gone = await in_line(admission)
        next_one = await in_line(admission)
        gone.cancel()
        first.release()
        await next_one
        assert admission.active == 1

    run(work())


def test_a_request_that_stops_waiting_at_its_turn_passes_the_slot_on() -> None:
    async def work() -> None:
        admission = Admission(Capacity(slots=1, queue=10, queue_timeout=20, oversized=True))
        first = await enter(admission)
        gone = await in_line(admission)
        next_one = await in_line(admission)
        first.release()
        gone.cancel()
        await next_one
        assert admission.active == 1

    run(work())


def test_bodies_have_room_together_and_a_large_one_goes_in_alone() -> None:
    async def work() -> None:
        admission = Admission(Capacity(slots=10, size=100, queue=10, queue_timeout=20, oversized=True))
        small = await enter(admission, 60)
        waiting = await in_line(admission, 500)
        small.shrink(10)
        assert not waiting.done()
        small.release()
        large = await waiting
        behind = await in_line(admission, 1)
        assert not behind.done()
        large.shrink(50)
        await behind
        assert admission.active == 2

    run(work())


def test_one_that_gives_up_does_not_hold_up_those_behind_it() -> None:
    async def work() -> None:
        admission = Admission(Capacity(slots=10, size=100, queue=10, queue_timeout=20, oversized=True))
        await enter(admission, 60)
        large = await in_line(admission, 90)
        small = await in_line(admission, 10)
        large.cancel()
        await small
        assert admission.active == 2

    run(work())


def test_at_the_end_nobody_comes_in() -> None:
    async def work() -> None:
        admission = Admission(Capacity(slots=1, queue=10, queue_timeout=20, oversized=True))
        first = await enter(admission)
        waiting = await in_line(admission)
        admission.close()
        with pytest.raises(Leaving):
            await waiting
        with pytest.raises(Leaving):
            await enter(admission)
        assert admission.active == 1
        first.release()
        await admission.wait_until_idle()

    run(work())


def test_more_room_is_taken_once_somebody_leaves() -> None:
    async def work() -> None:
        admission = Admission(Capacity(slots=1, queue=10, queue_timeout=20, oversized=True))
        first = await enter(admission)
        waiting = [await in_line(admission) for _ in range(2)]
        admission.limits = Capacity(slots=2, queue=10, queue_timeout=20, oversized=True)
        first.release()
        await asyncio.gather(*waiting)
        assert admission.active == 2

    run(work())
