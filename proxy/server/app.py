"""The HTTP application: every path and what it leads to, in one list."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from proxy.config import Settings
from proxy.dialects.answer import Dialect
from proxy.dialects.chat import CHAT
from proxy.dialects.completions import COMPLETIONS
from proxy.dialects.error import error_body
from proxy.server.endpoints import Edge, Endpoint, Handler, alive, fetch_report, ready
from proxy.wiring import House, build_house


def build_app(settings: Settings, house: House | None = None) -> Starlette:
    """The ASGI application for `settings`, over the house that they describe unless another one is given."""
    house = house or build_house(settings)
    edge = Edge(house.telemetry, settings.server.max_body, settings.stream.keepalive)
    passage, completions = house.passage, house.completions
    ours = "/v1/grounding"

    def at(path: str, handle: Handler, *methods: str, below: str = "") -> Route:
        return Route(path, Endpoint(edge, below + path, handle), methods=methods or None)

    def completion(dialect: Dialect) -> Handler:
        return lambda call, _: completions.complete(dialect, call)

    return Starlette(
        routes=[
            at("/v1/chat/completions", completion(CHAT), "POST"),
            at("/v1/completions", completion(COMPLETIONS), "POST"),
            at("/v1/embeddings", lambda call, _: passage.embeddings(call), "POST"),
            at("/v1/models", lambda call, _: passage.models(call), "GET"),
            at("/v1/models/{model:path}", lambda call, params: passage.one_model(call, params["model"]), "GET"),
            Mount(ours, routes=[at("/{id}", fetch_report(house.reports), "GET", below=ours)]),
            at("/v1/{path:path}", lambda call, _: passage.to_default(call)),
            at("/healthz", alive, "GET"),
            at("/readyz", ready(house.degraded), "GET"),
        ],
        exception_handlers={HTTPException: _http_error},
        lifespan=partial(_lifespan, house),
    )


@asynccontextmanager
async def _lifespan(house: House, _: Starlette) -> AsyncIterator[None]:
    yield
    await house.close()


async def _http_error(request: Request, error: Exception) -> Response:
    """A path or method that there is not, in OpenAI's shape."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for that class only
    code = {404: "unknown_url", 405: "method_not_allowed"}.get(error.status_code)
    body = error_body(f"{error.detail} ({request.method} {request.url.path})", "invalid_request_error", None, code)
    return Response(body, error.status_code, error.headers, "application/json")
