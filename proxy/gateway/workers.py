"""Threads for CPU work, so that none of it runs on the event loop (RE3), behind an admission control of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from proxy.errors import Overload

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
        """The result of `job`, run in a worker. Raises Overload when there is no room for it (DQ3).

        Cancelling this takes a waiting job out of the queue; one that runs already runs to its end unheard.
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
        """Jobs that run or wait."""
        return self._jobs

    @property
    def is_full(self) -> bool:
        """Whether checks are being shed."""
        return self._jobs >= self.capacity

    def _leave(self) -> None:
        self._jobs -= 1

    def close(self) -> None:
        """Lets running jobs end and drops waiting ones."""
        self._pool.shutdown(wait=False, cancel_futures=True)
