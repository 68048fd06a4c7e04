"""A bound on the work that one claim may cause, counted in steps so that no verdict depends on the machine's speed."""

from __future__ import annotations

import time
from collections.abc import Callable

MAX_STEPS = 5_000
"""Comparisons and computations for the numbers of one claim: at most some 0.07 s; ordinary claims need under 1,000."""

_LOOK_EVERY = 256  # steps between two looks at the clock


class WorkLimitExceeded(Exception):
    """More steps were needed than a claim may take."""


class DeadlineExceeded(Exception):
    """The time for a claim is over; a safeguard, for steps end the work first on any usual machine."""


class Work:
    """A count of the steps taken for one claim, which ends at `max_steps` or after `timeout_s` seconds of `clock`."""

    def __init__(
        self,
        timeout_s: float = float("inf"),
        max_steps: int = MAX_STEPS,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self.steps = 0
        self._max_steps = max_steps
        self._clock = clock
        self._deadline = clock() + timeout_s
        self._next_look = 0

    def spend(self, steps: int = 1) -> None:
        """Count `steps`. Raises WorkLimitExceeded, DeadlineExceeded."""
        self.steps += steps
        if self.steps > self._max_steps:
            raise WorkLimitExceeded
        if self.steps >= self._next_look:
            self._next_look = self.steps + _LOOK_EVERY
            if self._clock() > self._deadline:
                raise DeadlineExceeded
