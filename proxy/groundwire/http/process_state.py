"""The state of the process, independent of the current settings."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from groundwire.config import Server
from groundwire.http.admission import Admission, TrafficLimits


@dataclass(slots=True)
class Standing:
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


def standing_of(settings: Server) -> Standing:
    """Return the initial state of a process with these settings."""
    return Standing(Admission(traffic_limits(settings)))


def traffic_limits(settings: Server) -> TrafficLimits:
    """Return the limits of traffic."""
    return TrafficLimits(settings.max_concurrent, settings.max_bodies, settings.queue, settings.queue_timeout)
