"""The handlers of the proxy's own paths: checks, reports, probes, metrics, and Ollama's API."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs

from groundwire.config import Settings
from groundwire.container import Container
from groundwire.dialects.checks import (
    Check,
    ClaimCheck,
    EvidenceCheck,
    MemoryCheck,
    TextCheck,
    TraceCheck,
    read_answer_check,
    read_check,
)
from groundwire.dialects.dialect import Dialect
from groundwire.dialects.jsonbytes import dumps
from groundwire.dialects.request import DIALECTS
from groundwire.errors import (
    BadRequest,
    ConfigError,
    JobsUnavailable,
    ReportUnavailable,
    StoreUnavailable,
    UnknownReport,
)
from groundwire.gateway.checks import Checks
from groundwire.gateway.forward import Caller, parsed
from groundwire.http.admin import configured_keys, require_admin
from groundwire.http.admission import ProcessState
from groundwire.http.endpoints import Handler
from groundwire.http.exchange import JSON
from groundwire.telemetry import INSTALL
from groundwire.wire import Call, Reply, header

if TYPE_CHECKING:
    from groundwire.telemetry.metrics import Metrics


M = TypeVar("M", bound=Check)


def check_routes(checks: Checks) -> tuple[tuple[str, str, Handler], ...]:
    """Return path below `/v1/grounding`, method and handler of each check."""
    return (
        ("/verify", "POST", _answer(checks)),
        ("/claims", "POST", _check(TextCheck, checks.claims)),
        ("/claim", "POST", _check(ClaimCheck, checks.claim)),
        ("/evidence", "POST", _check(EvidenceCheck, checks.evidence)),
        ("/trace", "POST", _check(TraceCheck, checks.trace, for_tenant=True)),
        ("/memory", "POST", _check(MemoryCheck, checks.remember, for_tenant=True)),
        ("/memory", "GET", _stored(checks)),
    )


def _check(shape: type[M], run: Callable[..., Awaitable[Mapping[str, Any]]], *, for_tenant: bool = False) -> Handler:
    """Return the handler of a check. With `for_tenant` something of it is stored for the tenant."""

    async def handle(call: Call, _: Mapping[str, str]) -> Reply:
        check = await parsed(call.body, lambda: read_check(shape, call.body))
        caller = Caller.of(getattr(check, "model", ""), call.headers)
        found = await (run(check, caller, call.tenant) if for_tenant else run(check, caller))
        return Reply(200, JSON, dumps(found))

    return handle


def _answer(checks: Checks) -> Handler:
    async def handle(call: Call, _: Mapping[str, str]) -> Reply:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in call.headers}
        read = partial(read_answer_check, call.body, headers, call.tenant)
        check, request = await parsed(call.body, read)
        return Reply(200, JSON, await checks.answer(check, request, Caller.of(check.model, call.headers), call))

    return handle


def _stored(checks: Checks) -> Handler:
    async def handle(call: Call, _: Mapping[str, str]) -> Reply:
        subject = parse_qs(call.target.partition("?")[2]).get("subject", [""])[0]
        if not subject:
            raise BadRequest("'subject' must be given: /v1/grounding/memory?subject=…", param="subject")
        return Reply(200, JSON, dumps(await checks.facts_about(subject, call.tenant)))

    return handle


_EMBEDDINGS = ("/api/embed", "/api/embeddings")


def ollama_paths(container: Container) -> Iterator[tuple[str, str | None, Handler]]:
    """Yield each path with its method (None: any) and handler; nothing if no upstream is an Ollama."""
    router = container.passage.router.ollamas()
    if router is None:
        return
    completions, passage = replace(container.completions, router=router), replace(container.passage, router=router)

    def completion(dialect: Dialect) -> Handler:
        return lambda call, _: completions.complete(dialect, replace(call, native=True))

    for dialect in DIALECTS:
        if dialect.native:
            yield dialect.path, "POST", completion(dialect)
    for path in _EMBEDDINGS:
        yield path, "POST", lambda call, _: passage.by_model("embeddings", replace(call, native=True))
    yield "/api/{path:path}", None, lambda call, _: passage.to_default(replace(call, native=True))


_NOT_INSTALLED = Reply(
    501,
    ((b"content-type", b"text/plain; charset=utf-8"),),
    f"There are no metrics because prometheus-client is not installed: {INSTALL}\n".encode(),
)


def metrics_handler(metrics: Metrics | None, settings: Settings, environ: Mapping[str, str] = os.environ) -> Handler:
    """Return the handler of the metrics, for everybody or for admins. Raises ConfigError if no admin key exists.

    They are rendered in a thread, which takes some milliseconds. Without metrics the reply names the missing library.
    """

    async def answer(call: Call, _: Mapping[str, str]) -> Reply:
        if metrics is None:
            return _NOT_INSTALLED
        accept = (header(call.headers, b"accept") or b"").decode("latin-1")
        text, content_type = await asyncio.to_thread(metrics.registry.render, accept)
        return Reply(200, ((b"content-type", content_type.encode()),), text)

    if settings.telemetry.metrics_access == "open":
        return answer
    keys = configured_keys(settings.admin, environ)
    if not keys.digests:
        raise ConfigError(["telemetry.metrics_access: admin: there is no admin key"])
    return require_admin(keys, lambda call, params, _: answer(call, params))


def fetch_report(find: Callable[[str, str], Awaitable[bytes | None]]) -> Handler:
    """Return a handler that fetches a report by its id for the tenant that owns it; others get not found."""

    async def fetch(call: Call, params: Mapping[str, str]) -> Reply:
        try:
            report = await find(params["id"], call.tenant)
        except (JobsUnavailable, StoreUnavailable) as error:
            message = "Stored reports cannot be read at the moment. Please try again."
            raise ReportUnavailable(message, param="id", operator=error.operator) from error
        if report is None:
            raise UnknownReport(f"There is no report with the id '{params['id']}'", param="id")
        return Reply(200, JSON, report)

    return fetch


async def alive(_: Call, __: Mapping[str, str]) -> Reply:
    """Report that the process is running."""
    return Reply(200, JSON, dumps({"status": "ok"}))


def ready(state: ProcessState, degraded: Callable[[], Iterable[tuple[str, str]]]) -> Handler:
    """Return a handler that reports readiness and degraded parts. It calls no model."""

    async def answer(_: Call, __: Mapping[str, str]) -> Reply:
        reasons = [{"part": part, "reason": reason} for part, reason in (*state.degraded(), *degraded())]
        if state.is_draining:
            return Reply(503, JSON, dumps({"status": "draining", "degraded": reasons}))
        return Reply(200, JSON, dumps({"status": "degraded" if reasons else "ready", "degraded": reasons}))

    return answer
