"""All routes that read or change stored data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from groundwire.config import Admin
from groundwire.errors import ConfigError
from groundwire.http.admin import Sessions, read_keys
from groundwire.http.audited_history import AuditedHistory
from groundwire.http.endpoints import Handler
from groundwire.http.pages.pages import Pages
from groundwire.http.pages.rendering import Rendering
from groundwire.http.reviews import review_routes
from groundwire.storage.history.history import History
from groundwire.storage.memory import MemoryFacts, Reports

if TYPE_CHECKING:
    from groundwire.telemetry.metrics import Metrics


_SHORTEST_SECRET = 32


def admin_routes(
    history: History,
    reports: Reports,
    settings: Admin,
    environ: Mapping[str, str],
    default_secret: bytes,
    metrics: Metrics | None = None,
    memory: MemoryFacts | None = None,
) -> tuple[tuple[str, str, Handler], ...]:
    """Return path, method and handler of the API and the pages for admins. Raises ConfigError for an unreadable key.

    `default_secret` signs sessions if the settings name no secret.
    """
    file = Path(settings.keys_file) if settings.keys_file else None
    keys = read_keys(settings.keys, file, environ.get(settings.key_env))
    audited = AuditedHistory(history, reports, metrics, memory)
    pages = Pages(audited, Sessions(keys, _secret(settings, environ) or default_secret, settings.session), Rendering())
    return (*review_routes(audited, keys), *pages.routes())


def _secret(settings: Admin, environ: Mapping[str, str]) -> bytes:
    """Return the secret that signs sessions, shared by replicas; empty if not configured."""
    given = environ.get(settings.session_secret_env, "")
    if given and len(given) < _SHORTEST_SECRET:
        needed = f"must hold {_SHORTEST_SECRET} characters or more"
        raise ConfigError([f"admin.session_secret_env: the variable {settings.session_secret_env} {needed}"])
    return given.encode()
