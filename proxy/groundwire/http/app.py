"""The HTTP application: all routes, and the handlers of the proxy's own paths."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from groundwire.config import Admin, Server, Settings
from groundwire.container import Container, build_container
from groundwire.dialects.anthropic import MESSAGES
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
from groundwire.dialects.dialect import Dialect, error_body, openai_error
from groundwire.dialects.jsonbytes import dumps
from groundwire.dialects.ollama import OLLAMA_CHAT
from groundwire.dialects.openai import CHAT
from groundwire.dialects.request import DIALECTS
from groundwire.errors import (
    BadRequest,
    ConfigError,
    JobsUnavailable,
    ReportUnavailable,
    StoreUnavailable,
    UnknownReport,
    UnknownReview,
)
from groundwire.extras import require_extras
from groundwire.gateway.checks import Checks
from groundwire.gateway.forward import Caller, parsed
from groundwire.http.endpoints import Admission, Endpoint, EndpointContext, MountedEndpoint, PathFilter
from groundwire.http.exchange import JSON, ErrorShape, Handler
from groundwire.http.guard import Guard, Sessions, require_admin
from groundwire.http.keys import Clients, read_admin_keys
from groundwire.http.openapi import document
from groundwire.http.pages.playground import Playground
from groundwire.limits import Capacity
from groundwire.storage.memory import MemoryFacts, Reports
from groundwire.telemetry import INSTALL
from groundwire.wire import Call, Reply, header

if TYPE_CHECKING:
    from groundwire.storage.history.history import History
    from groundwire.telemetry.metrics import Metrics

log = structlog.get_logger("groundwire.server")

Routes = tuple[tuple[str, str | None, Handler], ...]
"""Path, method (None: any) and handler of each route."""

Running = Callable[[], AbstractAsyncContextManager[None]]

M = TypeVar("M", bound=Check)

_SHORTEST_SECRET = 32  # characters
_NO_METRICS = Reply(
    501,
    ((b"content-type", b"text/plain; charset=utf-8"),),
    f"There are no metrics because prometheus-client is not installed: {INSTALL}\n".encode(),
)


def traffic_limits(settings: Server) -> Capacity:
    """Return the limits on concurrent requests and on the bytes of their bodies; a larger body is admitted alone."""
    queue, timeout = settings.queue, settings.queue_timeout
    return Capacity(settings.max_concurrent, settings.max_bodies, queue, timeout, oversized=True)


@dataclass(slots=True)
class ProcessState:
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
        if self.admission.waiting:
            yield "traffic", "overload"


def build_app(
    settings: Settings,
    container: Container | None = None,
    environ: Mapping[str, str] = os.environ,
    state: ProcessState | None = None,
) -> Starlette:
    """Build the ASGI application for `settings`, over the given components or new ones.

    `state` is the state of the serving process, if that is more than this application. Raises ConfigError when the
    components cannot be built, or a key cannot be read.
    """
    container = container or build_container(settings, environ)
    server = settings.server
    state = state or ProcessState(Admission(traffic_limits(server)))
    keys = None if server.keys is None else Clients(Path(server.keys))
    guard = None if keys is None else Guard(keys, container.limiter, server.tenant_of)
    context = EndpointContext(
        container.telemetry,
        server.max_body,
        settings.stream.keepalive,
        guard,
        state.admission,
        server.proxy_networks,
    )
    unguarded = replace(context, guard=None)
    always = replace(unguarded, admission=Admission(Capacity()))
    passage, completions = container.passage, container.completions
    agent_routes, run_agents = _agents(settings, container, context)
    prefix, count = "/v1/grounding", f"{MESSAGES.path}/count_tokens"

    def at(
        path: str,
        method: str | None,
        handle: Handler,
        *,
        below: str = "",
        error: ErrorShape = openai_error,
        context: EndpointContext = context,
    ) -> Route:
        return Route(path, Endpoint(context, below + path, handle, error), methods=[method] if method else None)

    def completion(dialect: Dialect) -> Route:
        return at(dialect.path, "POST", lambda call, _: completions.complete(dialect, call), error=dialect.error)

    playground = Playground(
        verify=lambda check, request: container.checks.answer(check, request, Caller()),
        complete=partial(completions.complete, CHAT),
        degraded=container.degraded,
        guard=guard,
        models=settings.named_models,
        has_store=container.history is not None,
    )
    app = Starlette(
        routes=[
            *(completion(dialect) for dialect in DIALECTS if not dialect.native),
            *(at(*route, error=OLLAMA_CHAT.error) for route in _ollama_routes(container)),
            at("/v1/embeddings", "POST", lambda call, _: passage.by_model("embeddings", call)),
            at(count, "POST", lambda call, _: passage.by_model("count_tokens", call), error=MESSAGES.error),
            at("/v1/models", "GET", lambda call, _: passage.models(call)),
            at("/v1/models/{model:path}", "GET", lambda call, params: passage.one_model(call, params["model"])),
            *(at(*route, context=unguarded) for route in playground.routes()),
            *(at(*route, context=unguarded) for route in _stored_routes(settings, container, environ, state)),
            Mount(
                prefix,
                routes=[
                    *(at(*route, below=prefix) for route in _check_routes(container.checks)),
                    at("/{id}", "GET", _fetch_report(container), below=prefix),
                ],
            ),
            at("/v1", None, lambda call, _: passage.to_default(call)),
            at("/v1/{path:path}", None, lambda call, _: passage.to_default(call)),
            at("/healthz", "GET", _alive, context=always),
            at("/readyz", "GET", _ready(state, container, guard), context=always),
            *(at(*route, context=always) for route in _metrics_routes(settings, container, environ)),
            at("/openapi.json", "GET", document, context=unguarded),
            *agent_routes,
        ],
        middleware=[Middleware(PathFilter, context=always)],
        exception_handlers={HTTPException: _http_error},
        lifespan=partial(_lifespan, container, run_agents),
    )
    app.router.redirect_slashes = False  # the redirect would contain a host that the client chose
    return app


@asynccontextmanager
async def _lifespan(container: Container, run_agents: Running, _: Starlette) -> AsyncIterator[None]:
    try:
        await container.start()
    except Exception:
        log.exception("start.failed")  # otherwise the server logs it in words that may quote an address
        raise
    async with run_agents():
        yield
    await container.close()


async def _http_error(request: Request, error: Exception) -> Response:
    """Render an unknown path or method as an error in OpenAI's shape."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for that class only
    code = {404: "unknown_url", 405: "method_not_allowed"}.get(error.status_code)
    body = error_body(f"{error.detail} ({request.method} {request.url.path})", "invalid_request_error", None, code)
    return Response(body, error.status_code, error.headers, "application/json")


def _ollama_routes(container: Container) -> Iterator[tuple[str, str | None, Handler]]:
    """Yield the routes of Ollama's API; none if no upstream is an Ollama."""
    router = container.passage.router.ollamas()
    if router is None:
        return
    completions, passage = replace(container.completions, router=router), replace(container.passage, router=router)

    def completion(dialect: Dialect) -> Handler:
        return lambda call, _: completions.complete(dialect, replace(call, native=True))

    yield from ((dialect.path, "POST", completion(dialect)) for dialect in DIALECTS if dialect.native)
    for path in ("/api/embed", "/api/embeddings"):
        yield path, "POST", lambda call, _: passage.by_model("embeddings", replace(call, native=True))
    yield "/api/{path:path}", None, lambda call, _: passage.to_default(replace(call, native=True))


def _check_routes(checks: Checks) -> Routes:
    """Return the routes of the checks, below `/v1/grounding`."""

    async def verify(call: Call, _: Mapping[str, str]) -> Reply:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in call.headers}
        read = partial(read_answer_check, call.body, headers, call.tenant)
        check, request = await parsed(call.body, read)
        return Reply(200, JSON, await checks.answer(check, request, Caller.of(check.model, call.headers), call))

    async def facts(call: Call, _: Mapping[str, str]) -> Reply:
        subject = parse_qs(call.target.partition("?")[2]).get("subject", [""])[0]
        if not subject:
            raise BadRequest("'subject' must be given: /v1/grounding/memory?subject=…", param="subject")
        return Reply(200, JSON, dumps(await checks.facts_about(subject, call.tenant)))

    return (
        ("/verify", "POST", verify),
        ("/claims", "POST", _check(TextCheck, checks.claims)),
        ("/claim", "POST", _check(ClaimCheck, checks.claim)),
        ("/evidence", "POST", _check(EvidenceCheck, checks.evidence)),
        ("/trace", "POST", _check(TraceCheck, checks.trace, for_tenant=True)),
        ("/memory", "POST", _check(MemoryCheck, checks.remember, for_tenant=True)),
        ("/memory", "GET", facts),
    )


def _check(shape: type[M], run: Callable[..., Awaitable[Mapping[str, Any]]], *, for_tenant: bool = False) -> Handler:
    """Return the handler of a check. With `for_tenant` something of it is stored for the tenant."""

    async def handle(call: Call, _: Mapping[str, str]) -> Reply:
        check = await parsed(call.body, lambda: read_check(shape, call.body))
        caller = Caller.of(getattr(check, "model", ""), call.headers)
        found = await (run(check, caller, call.tenant) if for_tenant else run(check, caller))
        return Reply(200, JSON, dumps(found))

    return handle


def _fetch_report(container: Container) -> Handler:
    """Return a handler that fetches a report by its id for the tenant that owns it; others get not found."""

    async def fetch(call: Call, params: Mapping[str, str]) -> Reply:
        try:
            report = await container.find_report(params["id"], call.tenant)
        except (JobsUnavailable, StoreUnavailable) as error:
            message = "Stored reports cannot be read at the moment. Please try again."
            raise ReportUnavailable(message, param="id", operator=error.operator) from error
        if report is None:
            raise UnknownReport(f"There is no report with the id '{params['id']}'", param="id")
        return Reply(200, JSON, report)

    return fetch


async def _alive(_: Call, __: Mapping[str, str]) -> Reply:
    return Reply(200, JSON, dumps({"status": "ok"}))


def _ready(state: ProcessState, container: Container, guard: Guard | None) -> Handler:
    """Return a handler that reports readiness and degraded parts. It calls no model."""

    async def answer(_: Call, __: Mapping[str, str]) -> Reply:
        parts = (*state.degraded(), *container.degraded(), *(guard.degraded() if guard else ()))
        reasons = [{"part": part, "reason": reason} for part, reason in parts]
        status = "draining" if state.is_draining else "degraded" if reasons else "ready"
        return Reply(503 if state.is_draining else 200, JSON, dumps({"status": status, "degraded": reasons}))

    return answer


def _metrics_routes(settings: Settings, container: Container, environ: Mapping[str, str]) -> Routes:
    """Return the route of the metrics if they are enabled, for everybody or for admins.

    They are rendered in a thread, which takes some milliseconds. Raises ConfigError if no admin key exists.
    """
    if not settings.telemetry.metrics:
        return ()
    metrics = container.telemetry.metrics

    async def answer(call: Call, _: Mapping[str, str]) -> Reply:
        if metrics is None:
            return _NO_METRICS
        accept = (header(call.headers, b"accept") or b"").decode("latin-1")
        text, content_type = await asyncio.to_thread(metrics.registry.render, accept)
        return Reply(200, ((b"content-type", content_type.encode()),), text)

    if settings.telemetry.metrics_access == "open":
        return (("/metrics", "GET", answer),)
    keys = read_admin_keys(settings.admin, environ)
    if not keys.digests:
        raise ConfigError(["telemetry.metrics_access: admin: there is no admin key"])
    return (("/metrics", "GET", require_admin(keys, lambda call, params, _: answer(call, params))),)


def _stored_routes(settings: Settings, container: Container, environ: Mapping[str, str], state: ProcessState) -> Routes:
    """Return the routes of stored data; without a store they report that, so that no admin key is sent upstream."""
    if container.history is None:
        paths = ("/v1/reviews", "/v1/reviews/{path:text}", "/v1/grounding", "/v1/subjects/{path:text}")
        return tuple((path, None, _nothing_stored) for path in paths)
    metrics = container.telemetry.metrics
    memory = container.checks.memory.facts if container.checks.memory else None
    return admin_routes(container.history, container.reports, settings.admin, environ, state.secret, metrics, memory)


async def _nothing_stored(_: Call, __: Mapping[str, str]) -> Reply:
    raise UnknownReview("Nothing is stored here: store.url is not set.")


def admin_routes(
    history: History,
    reports: Reports,
    settings: Admin,
    environ: Mapping[str, str],
    default_secret: bytes,
    metrics: Metrics | None = None,
    memory: MemoryFacts | None = None,
) -> Routes:
    """Return the routes of the API and the pages for admins. Raises ConfigError for an unreadable key.

    `default_secret` signs sessions if the settings name no secret, which replicas share.
    """
    from groundwire.http.pages.pages import Pages  # with the database, which few need
    from groundwire.http.pages.rendering import Rendering
    from groundwire.http.reviews import AuditedHistory, ReviewApi

    keys = read_admin_keys(settings, environ)
    secret = environ.get(settings.session_secret_env, "")
    if secret and len(secret) < _SHORTEST_SECRET:
        needed = f"must hold {_SHORTEST_SECRET} characters or more"
        raise ConfigError([f"admin.session_secret_env: the variable {settings.session_secret_env} {needed}"])
    sessions = Sessions(keys, secret.encode() or default_secret, settings.session)
    audited = AuditedHistory(history, reports, metrics, memory)
    return (*ReviewApi(audited, keys).routes(), *Pages(audited, sessions, Rendering()).routes())


def _agents(settings: Settings, container: Container, context: EndpointContext) -> tuple[Sequence[BaseRoute], Running]:
    """Return the routes of the MCP server, if enabled, and the context in which they run.

    Raises ConfigError when its extra is not installed.
    """
    if not settings.mcp.enabled:
        return (), nullcontext
    require_extras(("mcp.enabled", "mcp"))
    from groundwire.http.mcp import check_call, mcp_app, mcp_server

    server, max_body = mcp_server(container.checks), min(settings.server.max_body, settings.mcp.max_body)
    routes = tuple(
        Route(
            route.path, MountedEndpoint(context, route.path, route.app, max_body, check_call), methods=["POST"]
        )  # GET would wait for news that never come
        for route in mcp_app(server, settings.mcp).routes
        if isinstance(route, Route)
    )
    return routes, server.session_manager.run
