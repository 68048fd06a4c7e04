"""The HTTP application: a list of all routes and their handlers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from groundwire.config import Settings
from groundwire.container import Container, build_container
from groundwire.dialects.chat import CHAT
from groundwire.dialects.checks import AnswerCheck
from groundwire.dialects.dialect import Dialect, error_body, openai_error
from groundwire.dialects.messages import MESSAGES
from groundwire.dialects.ollama import ollama_error
from groundwire.dialects.request import DIALECTS
from groundwire.dialects.request import Request as GroundedRequest
from groundwire.errors import UnknownReview
from groundwire.extras import require_extras
from groundwire.gateway.forward import Caller
from groundwire.http.checks import check_routes
from groundwire.http.clients import Clients
from groundwire.http.endpoints import Endpoint, EndpointContext, Handler, MountedEndpoint, alive, fetch_report, ready
from groundwire.http.errors import ErrorShape
from groundwire.http.guard import Guard
from groundwire.http.ollama import ollama_paths
from groundwire.http.openapi import document
from groundwire.http.pages.playground import Playground, Services
from groundwire.http.paths import PathFilter
from groundwire.http.process_state import ProcessState, new_process_state
from groundwire.wire import Call, Reply

log = structlog.get_logger("groundwire.server")


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
    always = replace(unguarded, admission=None)
    passage, completions = container.passage, container.completions
    agents = _agents(settings, container, context)
    prefix, count = "/v1/grounding", f"{MESSAGES.path}/count_tokens"

    def at(
        path: str, handle: Handler, method: str | None = None, below: str = "", error: ErrorShape = openai_error
    ) -> Route:
        return Route(path, Endpoint(context, below + path, handle, error), methods=[method] if method else None)

    def open_at(path: str, handle: Handler, method: str | None = None) -> Route:
        return Route(path, Endpoint(unguarded, path, handle), methods=[method] if method else None)

    def probe(path: str, handle: Handler) -> Route:
        return Route(path, Endpoint(always, path, handle), methods=["GET"])

    def completion(dialect: Dialect) -> Route:
        endpoint = Endpoint(context, dialect.path, lambda call, _: completions.complete(dialect, call), dialect.error)
        return Route(dialect.path, endpoint, methods=["POST"])

    app = Starlette(
        routes=[
            *(completion(dialect) for dialect in DIALECTS if not dialect.native),
            *(at(path, handle, method, error=ollama_error) for path, method, handle in ollama_paths(container)),
            at("/v1/embeddings", lambda call, _: passage.by_model("embeddings", call), "POST"),
            at(count, lambda call, _: passage.by_model("count_tokens", call), "POST", error=MESSAGES.error),
            at("/v1/models", lambda call, _: passage.models(call), "GET"),
            at("/v1/models/{model:path}", lambda call, params: passage.one_model(call, params["model"]), "GET"),
            *(open_at(path, handle, method) for path, method, handle in _public_pages(settings, container, guard)),
            *(open_at(path, handle, method) for path, method, handle in _stored(settings, container, environ, state)),
            Mount(
                prefix,
                routes=[
                    *(
                        at(path, handle, method, below=prefix)
                        for path, method, handle in check_routes(container.checks)
                    ),
                    at("/{id}", fetch_report(container.find_report), "GET", below=prefix),
                ],
            ),
            at("/v1", lambda call, _: passage.to_default(call)),
            at("/v1/{path:path}", lambda call, _: passage.to_default(call)),
            probe("/healthz", alive),
            probe("/readyz", ready(state, lambda: (*container.degraded(), *(guard.degraded() if guard else ())))),
            *(probe("/metrics", handle) for handle in _metrics(settings, container, environ)),
            open_at("/openapi.json", document(), "GET"),
            *(agents.routes if agents else ()),
        ],
        middleware=[Middleware(PathFilter, context=always)],
        exception_handlers={HTTPException: _http_error},
        lifespan=partial(_lifespan, container, agents),
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
        models=_model_names(settings),
        has_store=container.history is not None,
    )
    return Playground(services).routes()


def _model_names(settings: Settings) -> list[str]:
    """Return the models that the settings name; globs are left out."""
    named = (name for each in settings.upstreams.values() for name in (*each.aliases, *each.models))
    return [name for name in named if "*" not in name]


def _metrics(settings: Settings, container: Container, environ: Mapping[str, str]) -> tuple[Handler, ...]:
    """Return the handler of the metrics, if they are enabled."""
    if not settings.telemetry.metrics:
        return ()
    from groundwire.http.metrics import metrics_handler

    return (metrics_handler(container.telemetry.metrics, settings, environ),)


def _stored(
    settings: Settings, container: Container, environ: Mapping[str, str], state: ProcessState
) -> tuple[tuple[str, str | None, Handler], ...]:
    """Return the routes of stored data; without a store they report that, so that no admin key is sent upstream."""
    if container.history is None:
        paths = ("/v1/reviews", "/v1/reviews/{path:text}", "/v1/grounding", "/v1/subjects/{path:text}")
        return tuple((path, None, _nothing_stored) for path in paths)
    from groundwire.http.admin_routes import admin_routes  # with the database, which few need

    metrics = container.telemetry.metrics
    memory = container.checks.memory.facts if container.checks.memory else None
    return admin_routes(container.history, container.reports, settings.admin, environ, state.secret, metrics, memory)


async def _nothing_stored(_: Call, __: Mapping[str, str]) -> Reply:
    raise UnknownReview("Nothing is stored here: store.url is not set.")


@asynccontextmanager
async def _lifespan(container: Container, agents: Agents | None, _: Starlette) -> AsyncIterator[None]:
    try:
        await container.start()
    except Exception:
        log.exception("start.failed")  # otherwise the server logs it in words that may quote an address
        raise
    async with agents.running() if agents else nullcontext():
        yield
    await container.close()


@dataclass(frozen=True, slots=True)
class Agents:
    """The MCP server as part of the application: its routes, and the context in which they run."""

    routes: tuple[BaseRoute, ...]
    running: Callable[[], AbstractAsyncContextManager[None]]


def _agents(settings: Settings, container: Container, context: EndpointContext) -> Agents | None:
    """Build the MCP server, if enabled. Raises ConfigError when its extra is not installed."""
    if not settings.mcp.enabled:
        return None
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
    return Agents(routes, server.session_manager.run)


async def _http_error(request: Request, error: Exception) -> Response:
    """Render an unknown path or method as an error in OpenAI's shape."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for that class only
    code = {404: "unknown_url", 405: "method_not_allowed"}.get(error.status_code)
    body = error_body(f"{error.detail} ({request.method} {request.url.path})", "invalid_request_error", None, code)
    return Response(body, error.status_code, error.headers, "application/json")
