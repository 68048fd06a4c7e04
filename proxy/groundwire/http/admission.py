"""Admission control, and the state of the process that serves.

Excess requests are rejected (503 with Retry-After) instead of being delayed, so that traffic never hangs.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from groundwire.config import Server
from groundwire.errors import Leaving, TooBusy
from groundwire.limits import Capacity, ConcurrencyLimiter, LimiterClosed, LimitReached, Slot


class Admission(ConcurrencyLimiter):
    """Count active requests, and queue those beyond the limits, up to a number and for a time."""

    async def acquire(self, size: int = 0) -> Slot:
        """Admit a request with a body of `size` bytes when there is capacity. Raises TooBusy, or Leaving during
        shutdown.
        """
        try:
            return await super().acquire(size)
        except LimitReached as reached:
            after = max(1, math.ceil(reached.after))
            raise TooBusy("The proxy is handling too many requests. Please try again.", after=after) from None
        except LimiterClosed:
            message = "The proxy is about to stop. Please try again: another one may answer."
            raise Leaving(message, after=1) from None

    @property
    def is_full(self) -> bool:
        """True if requests have to wait."""
        return self.waiting > 0


@dataclass(slots=True)
class ProcessState:
    """The admission control, the shutdown state, and the errors of the latest settings.

    `secret` is random, for data that must not outlive the process.
    """

    admission: Admission
    is_draining: bool = False
    config: str | None = None
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def degraded(self) -> Iterator[tuple[str, str]]:
        """Yield the degraded parts, each with its reason."""
        if self.config is not None:
            yield "config", self.config
        if self.admission.is_full:
            yield "traffic", "overload"


def new_process_state(settings: Server) -> ProcessState:
    """Return the initial state of a process with these settings."""
    return ProcessState(Admission(traffic_limits(settings)))


def traffic_limits(settings: Server) -> Capacity:
    """Return the limits on concurrent requests and on the bytes of their bodies; a larger body is admitted alone."""
    queue, timeout = settings.queue, settings.queue_timeout
    return Capacity(settings.max_concurrent, settings.max_bodies, queue, timeout, oversized=True)
