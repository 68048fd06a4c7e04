"""Threads for work that would block the event loop for too long: on large bodies, and for verification."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Generic, ParamSpec, TypeVar

from groundwire.errors import Overload
from groundwire.pipeline import IO, Need, Pause, Steps

P = ParamSpec("P")
T = TypeVar("T")

MAX_JOINED = 2**18  # bytes that may be joined on the event loop

# a single thread for bodies, because more of them would contend for the GIL with the event loop
_thread = ThreadPoolExecutor(1, thread_name_prefix="groundwire-bodies")


async def offloaded(job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `job` in the thread and return its result; jobs run one at a time."""
    call = partial(copy_context().run, partial(job, *args, **kwargs))
    return await asyncio.get_running_loop().run_in_executor(_thread, call)


async def joined(chunks: Sequence[bytes], size: int) -> bytes:
    """Join chunks with a total length of `size`."""
    if len(chunks) == 1:
        return chunks[0]
    return b"".join(chunks) if size <= MAX_JOINED else await offloaded(b"".join, chunks)


@dataclass(frozen=True, slots=True)
class _Done(Generic[T]):
    """The result of a computation in steps."""

    value: T


def _advance(steps: Steps[T], result: object) -> Need | _Done[T]:
    """Run a computation, given the result of its last need, until its next need or its end."""
    try:
        return steps.send(result)
    except StopIteration as end:
        return _Done(end.value)


class Workers:
    """Threads for verification, with a `queue` of jobs, running or waiting; further ones are rejected.

    Used from one event loop. Jobs run in the context of their submission, so that their log events have its trace.
    `waiting` counts jobs running or waiting, `shed` rejected ones.
    """

    def __init__(self, threads: int, queue: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="groundwire-verify")
        self.capacity = queue
        self.waiting = 0
        self.shed = 0

    async def run(self, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `job` in a worker and return its result. Raises Overload when the queue is full.

        Cancelling removes a waiting job from the queue; a running one completes and its result is dropped.
        """
        if self.is_full:
            self.shed += 1
            raise Overload("too many checks are waiting")
        return await self.insist(job, *args, **kwargs)

    async def insist(self, job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a `job` that continues admitted work, even if the queue is full, and return its result."""
        loop = asyncio.get_running_loop()
        self.waiting += 1
        future = self._pool.submit(copy_context().run, partial(job, *args, **kwargs))
        future.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(self._leave))
        return await asyncio.wrap_future(future)

    async def run_steps(
        self, steps: Steps[T], perform: Callable[[IO], Awaitable[object]], *, is_admitted: bool = False
    ) -> T:
        """Run a computation, one job per step, and perform the I/O that it needs between them.

        Raises Overload when the queue is full before the first step, unless the work is admitted already.
        """
        step = await (self.insist if is_admitted else self.run)(_advance, steps, None)
        while not isinstance(step, _Done):
            if not isinstance(step, Pause):
                step = await self.insist(_advance, steps, await perform(step))
            elif self.is_full:
                self.shed += 1
                step = await self.insist(_advance, steps, False)
            else:
                step = await self.run(_advance, steps, True)
        result: T = step.value
        return result

    @property
    def is_full(self) -> bool:
        """True if further jobs are rejected."""
        return self.waiting >= self.capacity

    def _leave(self) -> None:
        self.waiting -= 1

    def close(self) -> None:
        """Let running jobs end and drop waiting ones."""
        self._pool.shutdown(wait=False, cancel_futures=True)
