"""Limits of processor time, kept fairly: they are stated for a machine that nobody else slows down."""

import time
from collections.abc import Callable

_STATED_FOR_S = 0.0075  # what `_slowness` measures on the machine that the limits were stated for, when it is quiet


def keeps(limit: float, work: Callable[[], object]) -> bool:
    """Whether some work keeps a limit in seconds, at one of many tries, on a machine of the pace that it has just then.

    Others on the same cores cost up to half of it, for moments or for minutes.
    """
    for _ in range(20):
        slowness = _slowness()
        begun = time.thread_time()
        work()
        if time.thread_time() - begun < limit * slowness:
            return True
        time.sleep(0.05)
    return False


def _slowness() -> float:
    """How many times slower than the one of the limits this machine is, 1 at least."""
    begun, total = time.thread_time(), 0
    for number in range(100_000):
        total += number * number % 7
    return max(1.0, (time.thread_time() - begun) / _STATED_FOR_S)
