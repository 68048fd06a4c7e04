"""The HTTP application: a list of all routes and their handlers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from groundwire.config import Admin, Settings
from groundwire.container import Container, build_container
from groundwire.dialects.chat import CHAT
from groundwire.dialects.checks import AnswerCheck
from groundwire.dialects.dialect import Dialect, error_body, openai_error
from groundwire.dialects.messages import MESSAGES
from groundwire.dialects.ollama import ollama_error
from groundwire.dialects.request import DIALECTS
from groundwire.dialects.request import Request as GroundedRequest
from groundwire.errors import ConfigError, UnknownReview
from groundwire.extras import require_extras
from groundwire.gateway.forward import Caller
from groundwire.http.admin import Sessions, configured_keys
from groundwire.http.admission import Admission, ProcessState, new_process_state
from groundwire.http.endpoints import Endpoint, EndpointContext, Handler, MountedEndpoint, PathFilter
from groundwire.http.exchange import ErrorShape
from groundwire.http.guard import Guard
from groundwire.http.handlers import alive, check_routes, fetch_report, metrics_handler, ollama_paths, ready
from groundwire.http.keys import Clients
from groundwire.http.openapi import document
from groundwire.http.pages.playground import Playground, Services
from groundwire.limits import Capacity
from groundwire.storage.memory import MemoryFacts, Reports
from groundwire.wire import Call, Reply

if TYPE_CHECKING:
    from groundwire.storage.history.history import History
    from groundwire.telemetry.metrics import Metrics

log = structlog.get_logger("groundwire.server")

Running = Callable[[], AbstractAsyncContextManager[None]]


_SHORTEST_SECRET = 32  # characters


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
    state = state or new_process_state(settings.server)
    guard = _guard(settings, container)
    context = EndpointContext(
        container.telemetry,
        settings.server.max_body,
        settings.stream.keepalive,
        guard,
        state.admission,
        settings.server.proxy_networks,
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

    def degraded() -> tuple[tuple[str, str], ...]:
        return (*container.degraded(), *(guard.degraded() if guard else ()))

    def completion(dialect: Dialect) -> Route:
        endpoint = Endpoint(context, dialect.path, lambda call, _: completions.complete(dialect, call), dialect.error)
        return Route(dialect.path, endpoint, methods=["POST"])

    app = Starlette(
        routes=[
            *(completion(dialect) for dialect in DIALECTS if not dialect.native),
            *(at(*route, error=ollama_error) for route in ollama_paths(container)),
            at("/v1/embeddings", "POST", lambda call, _: passage.by_model("embeddings", call)),
            at(count, "POST", lambda call, _: passage.by_model("count_tokens", call), error=MESSAGES.error),
            at("/v1/models", "GET", lambda call, _: passage.models(call)),
            at("/v1/models/{model:path}", "GET", lambda call, params: passage.one_model(call, params["model"])),
            *(at(*route, context=unguarded) for route in _public_pages(settings, container, guard)),
            *(at(*route, context=unguarded) for route in _stored(settings, container, environ, state)),
            Mount(
                prefix,
                routes=[
                    *(at(*route, below=prefix) for route in check_routes(container.checks)),
                    at("/{id}", "GET", fetch_report(container.find_report), below=prefix),
                ],
            ),
            at("/v1", None, lambda call, _: passage.to_default(call)),
            at("/v1/{path:path}", None, lambda call, _: passage.to_default(call)),
            at("/healthz", "GET", alive, context=always),
            at("/readyz", "GET", ready(state, degraded), context=always),
            *(at("/metrics", "GET", handle, context=always) for handle in _metrics(settings, container, environ)),
            at("/openapi.json", "GET", document(), context=unguarded),
            *agent_routes,
        ],
        middleware=[Middleware(PathFilter, context=always)],
        exception_handlers={HTTPException: _http_error},
        lifespan=partial(_lifespan, container, run_agents),
    )
    app.router.redirect_slashes = False  # the redirect would contain a host that the client chose
    return app


def _guard(settings: Settings, container: Container) -> Guard | None:
    """Return the guard that checks client keys, if configured. Raises ConfigError when the keys cannot be read."""
    file = settings.server.keys
    return None if file is None else Guard(Clients(Path(file)), container.limiter, settings.server.tenant_of)


def _public_pages(
    settings: Settings, container: Container, guard: Guard | None
) -> tuple[tuple[str, str, Handler], ...]:
    """Return the routes of the landing page and the playground."""
    completions = container.completions

    async def verify(check: AnswerCheck, request: GroundedRequest) -> bytes:
        return await container.checks.answer(check, request, Caller.of("", ()))

    services = Services(
        verify=verify,
        complete=partial(completions.complete, CHAT),
        degraded=container.degraded,
        admit=guard.admit if guard else None,
        models=settings.named_models,
        has_store=container.history is not None,
    )
    return Playground(services).routes()


def _metrics(settings: Settings, container: Container, environ: Mapping[str, str]) -> tuple[Handler, ...]:
    """Return the handler of the metrics, if they are enabled."""
    if not settings.telemetry.metrics:
        return ()
    return (metrics_handler(container.telemetry.metrics, settings, environ),)


def _stored(
    settings: Settings, container: Container, environ: Mapping[str, str], state: ProcessState
) -> tuple[tuple[str, str | None, Handler], ...]:
    """Return the routes of stored data; without a store they report that, so that no admin key is sent upstream."""
    if container.history is None:
        paths = ("/v1/reviews", "/v1/reviews/{path:text}", "/v1/grounding", "/v1/subjects/{path:text}")
        return tuple((path, None, _nothing_stored) for path in paths)
    metrics = container.telemetry.metrics
    memory = container.checks.memory.facts if container.checks.memory else None
    return admin_routes(container.history, container.reports, settings.admin, environ, state.secret, metrics, memory)


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
    from groundwire.http.audited_history import AuditedHistory  # with the database, which few need
    from groundwire.http.pages.pages import Pages
    from groundwire.http.pages.rendering import Rendering
    from groundwire.http.reviews import ReviewApi

    keys = configured_keys(settings, environ)
    audited = AuditedHistory(history, reports, metrics, memory)
    pages = Pages(audited, Sessions(keys, _secret(settings, environ) or default_secret, settings.session), Rendering())
    return (*ReviewApi(audited, keys).routes(), *pages.routes())


def _secret(settings: Admin, environ: Mapping[str, str]) -> bytes:
    """Return the secret that signs sessions, shared by replicas; empty if not configured."""
    given = environ.get(settings.session_secret_env, "")
    if given and len(given) < _SHORTEST_SECRET:
        needed = f"must hold {_SHORTEST_SECRET} characters or more"
        raise ConfigError([f"admin.session_secret_env: the variable {settings.session_secret_env} {needed}"])
    return given.encode()


async def _nothing_stored(_: Call, __: Mapping[str, str]) -> Reply:
    raise UnknownReview("Nothing is stored here: store.url is not set.")


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


async def _http_error(request: Request, error: Exception) -> Response:
    """Render an unknown path or method as an error in OpenAI's shape."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for that class only
    code = {404: "unknown_url", 405: "method_not_allowed"}.get(error.status_code)
    body = error_body(f"{error.detail} ({request.method} {request.url.path})", "invalid_request_error", None, code)
    return Response(body, error.status_code, error.headers, "application/json")
