"""Threads for CPU-bound work, to keep the event loop free, with admission control."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from groundwire.errors import Overload

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """`threads` workers and room for `queue` jobs, running or waiting. Used from one event loop.

    Jobs run in the context that they were given in, so that their lines in the log name its trace. `shed` counts those
    that there was no room for.
    """

    def __init__(self, threads: int, queue: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="groundwire-verify")
        self.capacity = queue
        self._jobs = 0
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
        """The result of a small `job` that concludes work already done, and for which there is always room."""
        loop = asyncio.get_running_loop()
        self._jobs += 1
        future = self._pool.submit(copy_context().run, partial(job, *args, **kwargs))
        future.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(self._leave))
        return await asyncio.wrap_future(future)

    @property
    def waiting(self) -> int:
        """The number of jobs running or waiting."""
        return self._jobs

    @property
    def is_full(self) -> bool:
        """True if further jobs are rejected."""
        return self._jobs >= self.capacity

    def _leave(self) -> None:
        self._jobs -= 1

    def close(self) -> None:
        """Let running jobs end and drop waiting ones."""
        self._pool.shutdown(wait=False, cancel_futures=True)
