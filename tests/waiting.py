"""Waiting for the effects of another process, without guessing how long they take."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def found_within(seconds: float, look: Callable[[], T | None]) -> T:
    """Return the first result of `look` that is not None. Raise AssertionError when there is none in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (value := look()) is not None:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s")
