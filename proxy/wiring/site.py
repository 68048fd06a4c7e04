"""Where a house is built: the settings, what stands outside them, and the house before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import httpx

from proxy.config import Settings
from proxy.errors import ConfigError
from proxy.telemetry import Telemetry
from proxy.upstream.upstream import Upstream
from proxy.wiring.house import House

T = TypeVar("T")


class Estate:
    """What a house takes over from the one before it: parts whose settings are the same."""

    def __init__(self, settings: Settings, before: House | None) -> None:
        self.taken: list[object] = []
        self._settings = settings
        self._before = before

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """Those of the house before."""
        return self._before.passage.router.upstreams if self._before else ()

    def take(self, had: Callable[[House], T | None], make: Callable[[], T], *sections: str) -> T:
        """The part that the house before `had`, if these sections are as they were, else a new one."""
        before = self._before
        if before is None or any(getattr(before.settings, it) != getattr(self._settings, it) for it in sections):
            return make()
        taken = had(before)
        if taken is None:
            return make()
        self.taken.append(taken)
        return taken


@dataclass(frozen=True, slots=True)
class Site:
    """What builders need; secrets come from `environ`."""

    settings: Settings
    environ: Mapping[str, str]
    transport: httpx.AsyncBaseTransport
    telemetry: Telemetry
    estate: Estate

    def secret(self, variable: str, named_by: str) -> str:
        """What a variable holds. Raises ConfigError, naming the key that names it, when it is not set."""
        secret = self.environ.get(variable)
        if not secret:
            raise ConfigError([f"{named_by}: the variable {variable} is not set"])
        return secret
