"""Builds the parts of the house from the settings; the only file that names every concrete class."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx

from proxy.config import Settings
from proxy.config import Upstream as UpstreamSettings
from proxy.errors import ConfigError
from proxy.gateway.completion import Completions, CompletionSettings
from proxy.gateway.grounding import Grounder
from proxy.gateway.passthrough import PassThrough
from proxy.gateway.stream import StreamSettings
from proxy.gateway.verify import Verification
from proxy.gateway.workers import Workers
from proxy.stores.reports import Reports
from proxy.stores.verdicts import VerdictCache
from proxy.telemetry import Telemetry, build_telemetry
from proxy.upstream.litellm import LitellmUpstream
from proxy.upstream.openai import OpenAIUpstream
from proxy.upstream.router import Router, Served
from proxy.upstream.transport import AiohttpTransport
from proxy.upstream.upstream import Upstream
from proxy.verification.judge import VERIFIERS, Verifier


@dataclass(frozen=True, slots=True)
class House:
    """The parts that the HTTP edge leads to."""

    completions: Completions
    passage: PassThrough
    reports: Reports
    telemetry: Telemetry
    workers: Workers

    def degraded(self) -> tuple[tuple[str, str], ...]:
        """Which parts work less than fully just now, each with its reason."""
        return (("verification", "overload"),) if self.workers.is_full else ()

    async def close(self) -> None:
        """Closes connections, ends workers, and sends what telemetry still holds."""
        for upstream in self.passage.router.upstreams:
            await upstream.aclose()
        self.workers.close()
        self.telemetry.close()


def build_house(
    settings: Settings,
    environ: Mapping[str, str] = os.environ,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    telemetry: Telemetry | None = None,
    verifiers: Sequence[tuple[str, Verifier]] = VERIFIERS,
) -> House:
    """The house that `settings` describe; secrets come from `environ`. Raises ConfigError when one is missing.

    The other arguments replace what the settings would give, for tests and for those who embed the proxy.
    """
    telemetry = telemetry or build_telemetry(settings.telemetry)
    router = _router(settings, environ, transport or AiohttpTransport())
    grounding = settings.grounding
    workers = Workers(grounding.workers, grounding.queue)
    cache = VerdictCache(settings.cache.max_entries, settings.cache.ttl)
    reports = Reports(grounding.keep_reports)
    grounder = Grounder(
        verification=Verification(workers, cache, grounding.timeout, verifiers),
        reports=reports,
        policy=settings.policy,
        telemetry=telemetry,
        log_rejections=settings.quotes.log_rejections,
    )
    stream = settings.stream
    completions = Completions(
        router,
        grounder,
        CompletionSettings(
            mode=grounding.mode if grounding.enabled else "off",
            timeout=grounding.timeout,
            max_answer=settings.server.max_body,
            stream=StreamSettings(stream.carrier, stream.tail_budget, stream.max_event),
        ),
        telemetry,
    )
    return House(completions, PassThrough(router, telemetry), reports, telemetry, workers)


def _router(settings: Settings, environ: Mapping[str, str], transport: httpx.AsyncBaseTransport) -> Router:
    return Router(
        [
            Served(_upstream(name, each, environ, transport), each.models, each.aliases)
            for name, each in settings.upstreams.items()
        ]
    )


def _upstream(
    name: str, settings: UpstreamSettings, environ: Mapping[str, str], transport: httpx.AsyncBaseTransport
) -> Upstream:
    key = None
    if settings.api_key_env is not None:
        key = environ.get(settings.api_key_env)
        if not key:
            raise ConfigError([f"upstreams.{name}.api_key_env: the variable {settings.api_key_env} is not set"])
    if settings.dialect == "litellm":
        return LitellmUpstream(
            name, settings.litellm_model or "", key=key, base_url=settings.base_url, timeout=settings.timeout
        )
    return OpenAIUpstream(
        name,
        settings.base_url or "",
        transport,
        key=key,
        timeout=settings.timeout,
        connect_timeout=settings.connect_timeout,
        forwards_documents=settings.forwards_documents,
    )
