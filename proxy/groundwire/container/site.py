"""The inputs of all builders: settings, environment, and the preceding instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from groundwire.config import Settings
from groundwire.container.container import House
from groundwire.errors import ConfigError
from groundwire.telemetry import Telemetry
from groundwire.upstream.http import HttpClient
from groundwire.upstream.upstream import Upstream

T = TypeVar("T")


class Estate:
    """Take over parts whose settings are unchanged from the preceding instance."""

    def __init__(self, settings: Settings, before: House | None) -> None:
        self.taken: list[object] = []
        self._settings = settings
        self._before = before

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """The upstreams of the preceding instance."""
        return self._before.passage.router.upstreams if self._before else ()

    def take(self, had: Callable[[House], T | None], make: Callable[[], T], *sections: str) -> T:
        """Return the part of the preceding instance if these sections are unchanged, else build a new one."""
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
    """The inputs of builders; secrets come from `environ`."""

    settings: Settings
    environ: Mapping[str, str]
    transport: HttpClient
    telemetry: Telemetry
    estate: Estate

    def secret(self, variable: str, named_by: str) -> str:
        """Return the value of a variable. Raises ConfigError, naming the setting that refers to it, when it is
        not set.
        """
        secret = self.environ.get(variable)
        if not secret:
            raise ConfigError([f"{named_by}: the variable {variable} is not set"])
        return secret
