"""The extras that the settings need."""

from __future__ import annotations

from collections.abc import Iterator

from groundwire.config import Settings
from groundwire.extras import require_extras


def check_extras(settings: Settings) -> None:
    """Raise ConfigError with one line for each setting that needs an extra that is not installed."""
    require_extras(*_upstreams(settings), *_storage(settings), *_others(settings))


def check_upstream_extras(settings: Settings) -> None:
    """Raise ConfigError as `check_extras` does, for the upstreams only."""
    require_extras(*_upstreams(settings))


def _upstreams(settings: Settings) -> Iterator[tuple[str, str]]:
    for name, upstream in settings.upstreams.items():
        if upstream.dialect == "litellm":
            yield f"upstreams.{name}.dialect", "providers"


def _storage(settings: Settings) -> Iterator[tuple[str, str]]:
    if settings.cache.redis_url is not None:
        yield "cache.redis_url", "redis"
    for setting, url, extra in (
        ("store.url", settings.store.url, "history"),
        ("jobs.url", settings.jobs.url, "jobs"),
        ("facts.url", settings.facts.url, "history"),
    ):
        if url is not None:
            yield setting, extra
            if url.startswith("postgresql"):
                yield setting, "postgres"


def _others(settings: Settings) -> Iterator[tuple[str, str]]:
    if settings.telemetry.otlp_endpoint is not None:
        yield "telemetry.otlp_endpoint", "telemetry"
    if settings.quotes.mode == "fuzzy":
        yield "quotes.mode", "fuzzy"
    if settings.correction.enabled:
        yield "correction.enabled", "schema"
    if settings.mcp.enabled:
        yield "mcp.enabled", "mcp"
