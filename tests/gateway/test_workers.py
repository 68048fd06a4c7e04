"""CPU work runs outside the event loop, in a bounded number of jobs."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from groundwire.errors import Overload
from groundwire.offload import Workers


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


class Gate:
    """A job that runs until it is released, and counts its starts."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.began = 0

    def __call__(self) -> str:
        self.began += 1
        assert self.open.wait(60)
        return "done"


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what it waits for happens in other threads
            await asyncio.sleep(0.001)


def test_a_job_runs_in_a_thread_of_its_own() -> None:
    async def work() -> None:
        name = await Workers(1, 1).run(lambda: threading.current_thread().name)
        assert name.startswith("groundwire-verify")

    run(work())


def test_results_and_errors_come_back() -> None:
    async def work() -> None:
        workers = Workers(2, 8)
        assert await workers.run(divmod, 7, 2) == (3, 1)
        assert await workers.run(sorted, [1, 3, 2], reverse=True) == [3, 2, 1]
        with pytest.raises(ZeroDivisionError):
            await workers.run(divmod, 1, 0)

    run(work())


def test_a_job_beyond_the_queue_is_refused_at_once_and_room_comes_back() -> None:
    async def work() -> None:
        workers, gate = Workers(1, 3), Gate()
        jobs = [asyncio.create_task(workers.run(gate)) for _ in range(3)]
        await asyncio.sleep(0)
        assert workers.is_full
        with pytest.raises(Overload):
            await workers.run(gate)
        assert (workers.shed, workers.waiting, workers.capacity) == (1, 3, 3)
        gate.open.set()
        assert await asyncio.gather(*jobs) == ["done"] * 3
        await until(lambda: not workers.is_full)
        assert await workers.run(gate) == "done"

    run(work())


def test_a_concluding_job_always_has_room() -> None:
    async def work() -> None:
        workers, gate = Workers(1, 1), Gate()
        first = asyncio.create_task(workers.run(gate))
        await until(lambda: gate.began)
        concluding = asyncio.create_task(workers.insist(lambda: "concluded"))
        await asyncio.sleep(0)
        gate.open.set()
        assert await asyncio.gather(first, concluding) == ["done", "concluded"]

    run(work())


def test_a_cancelled_job_that_waits_never_runs_and_leaves_its_place() -> None:
    async def work() -> None:
        workers, gate, waiting = Workers(1, 2), Gate(), Gate()
        first = asyncio.create_task(workers.run(gate))
        await until(lambda: gate.began)
        second = asyncio.create_task(workers.run(waiting))
        await until(lambda: workers.is_full)
        second.cancel()
        await asyncio.wait({second})
        await until(lambda: not workers.is_full)
        gate.open.set()
        assert await first == "done"
        assert await workers.run(lambda: "next") == "next"
        assert waiting.began == 0

    run(work())


def test_a_cancelled_job_that_runs_keeps_its_place_until_it_ends() -> None:
    """Its thread is busy: a free place would admit work that cannot run."""

    async def work() -> None:
        workers, gate = Workers(1, 1), Gate()
        job = asyncio.create_task(workers.run(gate))
        await until(lambda: gate.began)
        job.cancel()
        await asyncio.wait({job})
        assert workers.is_full
        gate.open.set()
        await until(lambda: not workers.is_full)

    run(work())


def test_as_many_jobs_run_at_once_as_there_are_threads() -> None:
    async def work() -> None:
        workers, gate = Workers(2, 10), Gate()
        jobs = [asyncio.create_task(workers.run(gate)) for _ in range(5)]
        await until(lambda: gate.began == 2)
        await asyncio.sleep(0.05)
        assert gate.began == 2
        gate.open.set()
        await asyncio.gather(*jobs)

    run(work())


def test_closing_drops_what_waits_and_blocks_nobody() -> None:
    async def work() -> None:
        workers, gate = Workers(1, 10), Gate()
        jobs = [asyncio.create_task(workers.run(gate)) for _ in range(3)]
        await until(lambda: gate.began)
        workers.close()  # would wait for ever if it waited for the gate
        gate.open.set()
        await asyncio.wait(jobs)
        assert gate.began == 1

    run(work())
