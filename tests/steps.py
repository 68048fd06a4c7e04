"""Work counted in executed lines of Python, which depends on no clock and on no other load of the machine.

Work inside one call into C is not seen: a regular expression that backtracks, or a search of a long string. Tests whose
subject could do that run it once on a large text as well, where quadratic work exceeds the time limit of every test.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

_NEGLIGIBLE = 2000


def steps(work: Callable[[], object]) -> int:
    """Count the lines that `work` executes on this thread, and the functions that it enters and leaves."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def growth(work: Callable[[T], object], small: T, large: T) -> float:
    """Return by how much the steps for a large input exceed those for a small one. Few steps count as none."""
    return steps(lambda: work(large)) / max(steps(lambda: work(small)), _NEGLIGIBLE)


def is_linear(work: Callable[[str], object], text: str) -> bool:
    """Return whether a whole text takes four times the steps of its first quarter, give or take half."""
    return growth(work, text[: len(text) // 4], text) < 6
