"""Build the model servers and the router, and check that the extras for the settings are installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from groundwire.config import Settings
from groundwire.config import Upstream as UpstreamSettings
from groundwire.config.server import Retries as RetrySettings
from groundwire.errors import ConfigError
from groundwire.extras import require_extras
from groundwire.telemetry import Telemetry
from groundwire.upstream.http import HttpClient
from groundwire.upstream.litellm import LitellmUpstream, MediaHosts, read_host
from groundwire.upstream.router import Retries, Router, UpstreamModels
from groundwire.upstream.upstream import (
    ANTHROPIC_VERSION,
    HeaderRules,
    LimitedUpstream,
    OpenAIUpstream,
    Upstream,
    allow_list,
    bearer,
    x_api_key,
)


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


def check_extras(settings: Settings) -> None:
    """Raise ConfigError with one line for each setting that needs an extra that is not installed."""
    require_extras(*_upstreams(settings), *_others(settings))


def check_upstream_extras(settings: Settings) -> None:
    """Raise ConfigError as `check_extras` does, for the upstreams only."""
    require_extras(*_upstreams(settings))


def _upstreams(settings: Settings) -> Iterator[tuple[str, str]]:
    for name, upstream in settings.upstreams.items():
        if upstream.dialect == "litellm":
            yield f"upstreams.{name}.dialect", "providers"


def _others(settings: Settings) -> Iterator[tuple[str, str]]:
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
    if settings.telemetry.otlp_endpoint is not None:
        yield "telemetry.otlp_endpoint", "telemetry"
    if settings.quotes.mode == "fuzzy":
        yield "quotes.mode", "fuzzy"
    if settings.correction.enabled:
        yield "correction.enabled", "schema"
    if settings.mcp.enabled:
        yield "mcp.enabled", "mcp"


def build_router(context: BuildContext) -> Router:
    """Build all model servers and the router. Raises ConfigError, naming every missing extra or secret."""
    check_upstream_extras(context.settings)
    upstreams = context.settings.upstreams.items()
    if missing := [problem for name, each in upstreams for problem in _missing(name, each, context.environ)]:
        raise ConfigError(missing)
    return Router(
        [
            UpstreamModels(
                _limited(_upstream(name, each, context), each),
                each.models,
                each.aliases,
                _retries(each.retries),
                each.instead,
                frozenset(each.fallback_on),
            )
            for name, each in upstreams
        ]
    )


def _retries(settings: RetrySettings) -> Retries:
    return Retries(
        count=settings.count,
        statuses=frozenset(settings.statuses),
        initial_backoff=settings.initial_backoff,
        max_backoff=settings.max_backoff,
        deadline=settings.deadline,
        after_timeout=settings.after_timeout,
    )


def _missing(name: str, settings: UpstreamSettings, environ: Mapping[str, str]) -> Iterator[str]:
    key = settings.api_key_env
    if key is not None and not environ.get(key):
        yield f"upstreams.{name}.api_key_env: the variable {key} is not set"
    for each in settings.headers_env.values():
        if not environ.get(each):
            yield f"upstreams.{name}.headers_env: the variable {each} is not set"


def _limited(upstream: Upstream, settings: UpstreamSettings) -> Upstream:
    """Apply the configured limits to an upstream."""
    limits = settings.limits
    is_limited = limits.max_concurrent or limits.per_minute
    return LimitedUpstream(upstream, **dict(limits)) if is_limited else upstream


def _upstream(name: str, settings: UpstreamSettings, context: BuildContext) -> Upstream:
    variable = settings.api_key_env
    key = None if variable is None else context.environ[variable]
    headers = _headers(settings, context)
    if settings.dialect == "litellm":
        return LitellmUpstream(
            name,
            settings.litellm_model or "",
            key=key,
            base_url=settings.base_url,
            timeout=settings.timeout,
            headers=headers.added,
            truncation_alarm=settings.truncation_alarm,
            media_hosts=MediaHosts(frozenset(map(read_host, settings.allowed_media_hosts))),
        )
    return OpenAIUpstream(
        name,
        settings.base_url or "",
        context.transport,
        key=key,
        timeout=settings.timeout,
        connect_timeout=settings.connect_timeout,
        forwards_documents=settings.forwards_documents,
        headers=headers,
        truncation_alarm=settings.truncation_alarm,
        provider=settings.dialect,
        ollama_url=settings.ollama_url,
    )


def _headers(settings: UpstreamSettings, context: BuildContext) -> HeaderRules:
    """Return the rules of forwarded and added headers."""
    secret = {header: context.environ[variable].strip() for header, variable in settings.headers_env.items()}
    is_anthropic = settings.dialect == "anthropic"
    return HeaderRules(
        None if settings.request_headers is None else allow_list(settings.request_headers),
        None if settings.response_headers is None else allow_list(settings.response_headers),
        tuple((header.lower().encode(), value.encode()) for header, value in {**settings.headers, **secret}.items()),
        ANTHROPIC_VERSION if is_anthropic else (),
        x_api_key if is_anthropic else bearer,
    )
