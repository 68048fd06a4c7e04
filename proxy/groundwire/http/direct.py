"""Route requests: reject invalid paths and methods, and look up the paths of model traffic directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from groundwire.dialects.error import error_body
from groundwire.errors import BadRequest
from groundwire.http.endpoints import Endpoint, EndpointContext
from groundwire.http.errors import JSON
from groundwire.upstream.paths import has_dot_segment, normalised
from groundwire.wire import Call, Reply

_ALLOWED = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"


class DirectApp(Starlette):
    """An application that finds its `direct` routes by one look-up; all other paths use Starlette's router.

    They are also ordinary routes, with a plain path and their methods, and handle their errors themselves. Requests are
    routed by their path as sent, without needless percent-encoding, which is also the forwarded form. Slashes are never
    added by a redirect, which would contain a host that the client chose.
    """

    def __init__(
        self, context: EndpointContext, *, direct: Sequence[Route], routes: Sequence[Any], **options: Any
    ) -> None:
        super().__init__(routes=[*direct, *routes], **options)
        self.router.redirect_slashes = False
        self._direct: dict[tuple[str, str], ASGIApp] = {
            (method, route.path): route.app for route in direct for method in route.methods or ()
        }
        self._dot_segment = Endpoint(context, "/..", _refuse_path)
        self._trace = Endpoint(context, "TRACE", _refuse_method)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        raw = scope.get("raw_path")
        path = normalised(raw.decode("latin-1") if raw else scope["path"])
        scope = {**scope, "path": path}
        if has_dot_segment(path):
            await self._dot_segment(scope, receive, send)
        elif scope["method"] in ("TRACE", "CONNECT"):
            await self._trace(scope, receive, send)
        else:
            await (self._direct.get((scope["method"], path)) or super().__call__)(scope, receive, send)


async def _refuse_path(_: Call, __: Mapping[str, str]) -> Reply:
    raise BadRequest("The path of the request has a segment '.' or '..', which is not forwarded.")


async def _refuse_method(call: Call, _: Mapping[str, str]) -> Reply:
    body = error_body(f"{call.method} is not allowed here.", "invalid_request_error", None, "method_not_allowed")
    return Reply(405, (*JSON, (b"allow", _ALLOWED)), body)
