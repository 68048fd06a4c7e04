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
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

import groundwire.http.paths  # noqa: F401 - the convertor named text
from groundwire.config import Settings
from groundwire.container import House, build_house
from groundwire.dialects.dialect import Dialect
from groundwire.dialects.error import error_body, openai_error
from groundwire.dialects.known import DIALECTS
from groundwire.dialects.messages import MESSAGES
from groundwire.dialects.ollama import ollama_error
from groundwire.errors import UnknownReview
from groundwire.extras import require_extras
from groundwire.http.checks import check_routes
from groundwire.http.clients import Clients
from groundwire.http.direct import DirectApp
from groundwire.http.endpoints import Edge, Endpoint, Handler, Hosted, alive, fetch_report, ready
from groundwire.http.errors import ErrorShape
from groundwire.http.guard import Guard
from groundwire.http.ollama import ollama_paths
from groundwire.http.openapi import document
from groundwire.http.process_state import Standing, standing_of
from groundwire.wire import Call, Reply

log = structlog.get_logger("groundwire.server")


def build_app(
    settings: Settings,
    house: House | None = None,
    environ: Mapping[str, str] = os.environ,
    standing: Standing | None = None,
) -> Starlette:
    """Build the ASGI application for `settings`, over the given components or new ones.

    `standing` is the state of the serving process, if that is more than this application. Raises ConfigError when the
    components cannot be built, or a key cannot be read.
    """
    house = house or build_house(settings, environ)
    standing = standing or standing_of(settings.server)
    guard = _guard(settings, house)
    edge = Edge(
        house.telemetry,
        settings.server.max_body,
        settings.stream.keepalive,
        guard,
        standing.admission,
        settings.server.proxy_networks,
    )
    unguarded = replace(edge, guard=None)
    always = replace(unguarded, admission=None)
    passage, completions = house.passage, house.completions
    agents = _agents(settings, house, edge)
    ours, count = "/v1/grounding", f"{MESSAGES.path}/count_tokens"

    def at(
        path: str, handle: Handler, method: str | None = None, below: str = "", error: ErrorShape = openai_error
    ) -> Route:
        return Route(path, Endpoint(edge, below + path, handle, error), methods=[method] if method else None)

    def open_at(path: str, handle: Handler, method: str | None = None) -> Route:
        return Route(path, Endpoint(unguarded, path, handle), methods=[method] if method else None)

    def sign(path: str, handle: Handler) -> Route:
        return Route(path, Endpoint(always, path, handle), methods=["GET"])

    def completion(dialect: Dialect) -> Route:
        endpoint = Endpoint(edge, dialect.path, lambda call, _: completions.complete(dialect, call), dialect.error)
        return Route(dialect.path, endpoint, methods=["POST"])

    return DirectApp(
        always,
        direct=[completion(dialect) for dialect in DIALECTS if not dialect.native],
        routes=[
            *(at(path, handle, method, error=ollama_error) for path, method, handle in ollama_paths(house)),
            at("/v1/embeddings", lambda call, _: passage.by_model("embeddings", call), "POST"),
            at(count, lambda call, _: passage.by_model("count_tokens", call), "POST", error=MESSAGES.error),
            at("/v1/models", lambda call, _: passage.models(call), "GET"),
            at("/v1/models/{model:path}", lambda call, params: passage.one_model(call, params["model"]), "GET"),
            *(open_at(path, handle, method) for path, method, handle in _stored(settings, house, environ, standing)),
            Mount(
                ours,
                routes=[
                    *(at(path, handle, method, below=ours) for path, method, handle in check_routes(house.checks)),
                    at("/{id}", fetch_report(house.find_report), "GET", below=ours),
                ],
            ),
            at("/v1", lambda call, _: passage.to_default(call)),
            at("/v1/{path:path}", lambda call, _: passage.to_default(call)),
            sign("/healthz", alive),
            sign("/readyz", ready(standing, lambda: (*house.degraded(), *(guard.degraded() if guard else ())))),
            *(sign("/metrics", handle) for handle in _metrics(settings, house, environ)),
            open_at("/openapi.json", document(), "GET"),
            *(agents.routes if agents else ()),
        ],
        exception_handlers={HTTPException: _http_error},
        lifespan=partial(_lifespan, house, agents),
    )


def _guard(settings: Settings, house: House) -> Guard | None:
    """Return the guard that checks client keys, if configured. Raises ConfigError when the keys cannot be read."""
    file = settings.server.keys
    return None if file is None else Guard(Clients(Path(file)), house.limiter, settings.server.tenant_of)


def _metrics(settings: Settings, house: House, environ: Mapping[str, str]) -> tuple[Handler, ...]:
    """Return the handler of the metrics, if they are enabled."""
    if house.telemetry.metrics is None:
        return ()
    from groundwire.http.metrics import metrics_handler

    return (metrics_handler(house.telemetry.metrics, settings, environ),)


def _stored(
    settings: Settings, house: House, environ: Mapping[str, str], standing: Standing
) -> tuple[tuple[str, str | None, Handler], ...]:
    """Return the routes of stored data; without a store they report that, so that no admin key is sent upstream."""
    if house.history is None:
        paths = ("/v1/reviews", "/v1/reviews/{path:text}", "/v1/grounding", "/v1/subjects/{path:text}")
        return tuple((path, None, _nothing_stored) for path in paths)
    from groundwire.http.admin_routes import stored_routes  # with the database, which few need

    metrics = house.telemetry.metrics
    memory = house.checks.memory.facts if house.checks.memory else None
    return stored_routes(house.history, house.reports, settings.admin, environ, standing.secret, metrics, memory)


async def _nothing_stored(_: Call, __: Mapping[str, str]) -> Reply:
    raise UnknownReview("Nothing is stored here: store.url is not set.")


@asynccontextmanager
async def _lifespan(house: House, agents: Agents | None, _: Starlette) -> AsyncIterator[None]:
    try:
        await house.start()
    except Exception:
        log.exception("start.failed")  # otherwise the server logs it in words that may quote an address
        raise
    async with agents.running() if agents else nullcontext():
        yield
    await house.close()


@dataclass(frozen=True, slots=True)
class Agents:
    """The MCP server as part of the application: its routes, and the context in which they run."""

    routes: tuple[BaseRoute, ...]
    running: Callable[[], AbstractAsyncContextManager[None]]


def _agents(settings: Settings, house: House, edge: Edge) -> Agents | None:
    """The MCP server, where it is switched on. Raises ConfigError when its extra is not installed."""
    if not settings.mcp.enabled:
        return None
    require_extras(("mcp.enabled", "mcp"))
    from groundwire.http.mcp import check_call, mcp_server, mounted

    server, max_body = mcp_server(house.checks), min(settings.server.max_body, settings.mcp.max_body)
    routes = tuple(
        Route(
            route.path, Hosted(edge, route.path, route.app, max_body, check_call), methods=["POST"]
        )  # GET would wait for news that never come
        for route in mounted(server, settings.mcp).routes
        if isinstance(route, Route)
    )
    return Agents(routes, server.session_manager.run)


async def _http_error(request: Request, error: Exception) -> Response:
    """A path or method that there is not, in OpenAI's shape."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for that class only
    code = {404: "unknown_url", 405: "method_not_allowed"}.get(error.status_code)
    body = error_body(f"{error.detail} ({request.method} {request.url.path})", "invalid_request_error", None, code)
    return Response(body, error.status_code, error.headers, "application/json")
