"""A thread for work on large bodies, which would block the event loop for too long.

It is a single thread, because more of them would contend for the GIL with the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MAX_JOINED = 2**18  # bytes that may be joined on the event loop

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
