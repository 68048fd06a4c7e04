"""Limit the work on one claim. Steps are counted, so that verdicts do not depend on the machine's speed."""

from __future__ import annotations

import time
from collections.abc import Callable

MAX_STEPS = 5_000
"""Maximum comparisons and computations for the numbers of one claim: about 0.07 s; ordinary claims need under 1,000."""

_LOOK_EVERY = 256  # steps between two checks of the clock


class WorkLimitExceeded(Exception):
    """Raised if a claim needs more steps than allowed."""


class DeadlineExceeded(Exception):
    """Raised if a claim takes too long: a safeguard, because the step limit usually applies first."""


class Work:
    """A counter of the steps for one claim, limited to `max_steps` and to `timeout_s` seconds of `clock`."""

    def __init__(
        self, timeout_s: float = float("inf"), max_steps: int = MAX_STEPS, clock: Callable[[], float] = time.thread_time
    ) -> None:
        self.steps = 0
        self._max_steps = max_steps
        self._clock = clock
        self._deadline = clock() + timeout_s
        self._next_look = 0

    def spend(self, steps: int = 1) -> None:
        """Count `steps`. Raises WorkLimitExceeded or DeadlineExceeded beyond a limit."""
        self.steps += steps
        if self.steps > self._max_steps:
            raise WorkLimitExceeded
        if self.steps >= self._next_look:
            self._next_look = self.steps + _LOOK_EVERY
            if self._clock() > self._deadline:
                raise DeadlineExceeded
