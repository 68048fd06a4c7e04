"""How the process stands, whichever settings it serves with at the moment."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from proxy.config import Server
from proxy.server.admission import Admission, Room


@dataclass(slots=True)
class Standing:
    """Who is let in, whether the process is about to stop, and what is wrong with the settings it was last given.

    `secret` is made up for the process, for what must not outlive it.
    """

    admission: Admission
    is_draining: bool = False
    config: str | None = None
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def degraded(self) -> Iterator[tuple[str, str]]:
        """Which parts of it work less than fully, each with its reason."""
        if self.config is not None:
            yield "config", self.config
        if self.admission.is_full:
            yield "traffic", "overload"


def standing_of(settings: Server) -> Standing:
    """The standing of a process that begins with these settings."""
    return Standing(Admission(room_of(settings)))


def room_of(settings: Server) -> Room:
    """How much traffic is taken."""
    return Room(settings.max_concurrent, settings.max_bodies, settings.queue, settings.queue_timeout)
