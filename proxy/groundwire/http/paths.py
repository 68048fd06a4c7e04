"""Paths of requests: normalised before routing, and refused if they could leave the upstream's base path."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.convertors import PathConvertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send

from groundwire.dialects.dialect import error_body
from groundwire.errors import BadRequest
from groundwire.http.endpoints import Endpoint, EndpointContext
from groundwire.http.errors import JSON
from groundwire.upstream.http import has_dot_segment, normalised
from groundwire.wire import Call, Reply

_ALLOWED = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"


class TextConvertor(PathConvertor):
    """Match the rest of a path, line breaks included, at which Starlette's `path` stops."""

    regex = "(?s:.*)"


register_url_convertor("text", TextConvertor())


class PathFilter:
    """ASGI middleware that refuses TRACE and paths with dot segments.

    Requests are routed by their path as sent, without needless percent-encoding, which is also the forwarded form.
    """

    def __init__(self, app: ASGIApp, context: EndpointContext) -> None:
        self._app = app
        self._bad_path = Endpoint(context, "/..", _refuse_path)
        self._bad_method = Endpoint(context, "TRACE", _refuse_method)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        raw = scope.get("raw_path")
        path = normalised(raw.decode("latin-1") if raw else scope["path"])
        scope = {**scope, "path": path}
        if has_dot_segment(path):
            await self._bad_path(scope, receive, send)
        elif scope["method"] in ("TRACE", "CONNECT"):
            await self._bad_method(scope, receive, send)
        else:
            await self._app(scope, receive, send)


async def _refuse_path(_: Call, __: Mapping[str, str]) -> Reply:
    raise BadRequest("The path of the request has a segment '.' or '..', which is not forwarded.")


async def _refuse_method(call: Call, _: Mapping[str, str]) -> Reply:
    body = error_body(f"{call.method} is not allowed here.", "invalid_request_error", None, "method_not_allowed")
    return Reply(405, (*JSON, (b"allow", _ALLOWED)), body)
