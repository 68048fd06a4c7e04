"""The inputs that all builders share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from groundwire.config import Settings
from groundwire.errors import ConfigError
from groundwire.telemetry import Telemetry
from groundwire.upstream.http import HttpClient


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The inputs that all builders share; secrets come from `environ`."""

    settings: Settings
    environ: Mapping[str, str]
    transport: HttpClient
    telemetry: Telemetry

    def secret(self, variable: str, setting: str) -> str:
        """Return the value of a variable. Raises ConfigError, naming the setting that refers to it, when it is
        not set.
        """
        secret = self.environ.get(variable)
        if not secret:
            raise ConfigError([f"{setting}: the variable {variable} is not set"])
        return secret
