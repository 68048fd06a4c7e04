"""Waiting for what another process does, without guessing how long that takes."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def found_within(seconds: float, look: Callable[[], T | None]) -> T:
    """What `look` finds as soon as that is not None. Raises AssertionError when it finds nothing in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (value := look()) is not None:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s")
