"""Errors as HTTP: which status, type and code each kind has, in OpenAI's shape (GW7)."""

from __future__ import annotations

from proxy.dialects.error import error_body
from proxy.errors import (
    BadRequest,
    BodyTooLarge,
    MemoryUnavailable,
    NotAdmin,
    ReportUnavailable,
    RequestError,
    UnknownModel,
    UnknownReport,
    UnknownReview,
    UpstreamBroken,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from proxy.types import Headers, Reply

_INVALID = "invalid_request_error"
_UPSTREAM = "upstream_error"

_ANSWERS: tuple[tuple[type[RequestError], int, str, str | None], ...] = (
    (BadRequest, 400, _INVALID, None),
    (BodyTooLarge, 413, _INVALID, "request_too_large"),
    (UnknownModel, 404, _INVALID, "model_not_found"),
    (UnknownReport, 404, _INVALID, "report_not_found"),
    (UnknownReview, 404, _INVALID, "review_not_found"),
    (NotAdmin, 401, _INVALID, "invalid_admin_key"),
    (ReportUnavailable, 503, "server_error", "report_unavailable"),
    (MemoryUnavailable, 503, "server_error", "memory_unavailable"),
    (UpstreamUnreachable, 502, _UPSTREAM, "upstream_unreachable"),
    (UpstreamTimeout, 504, _UPSTREAM, "upstream_timeout"),
    (UpstreamBroken, 502, _UPSTREAM, "upstream_broken"),
)

JSON: Headers = ((b"content-type", b"application/json"),)


def error_reply(error: RequestError) -> Reply:
    """What a client is told of an error."""
    status, type_, code = next(
        ((status, type_, code) for kind, status, type_, code in _ANSWERS if isinstance(error, kind)),
        (500, "server_error", None),
    )
    return Reply(status, JSON, error_body(str(error), type_, error.param, code))


def unexpected_reply() -> Reply:
    """What a client is told when the fault is ours."""
    return Reply(500, JSON, error_body("The proxy failed to handle the request.", "server_error"))
