"""Errors as HTTP: the status, type and code of each kind, in OpenAI's terms and the dialect's shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from groundwire.dialects.dialect import Fault, openai_error
from groundwire.dialects.jsonbytes import dumps
from groundwire.errors import (
    BadRequest,
    BodyTooLarge,
    Leaving,
    MemoryUnavailable,
    NotAdmin,
    ReportUnavailable,
    RequestError,
    TooBusy,
    TooManyRequests,
    UnknownKey,
    UnknownModel,
    UnknownReport,
    UnknownReview,
    UpstreamBroken,
    UpstreamBusy,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from groundwire.wire import Headers, Reply

_INVALID = "invalid_request_error"
_UPSTREAM = "upstream_error"

_ANSWERS: tuple[tuple[type[RequestError], int, str, str | None], ...] = (
    (BadRequest, 400, _INVALID, None),
    (BodyTooLarge, 413, _INVALID, "request_too_large"),
    (UnknownModel, 404, _INVALID, "model_not_found"),
    (UnknownReport, 404, _INVALID, "report_not_found"),
    (UnknownReview, 404, _INVALID, "review_not_found"),
    (NotAdmin, 401, _INVALID, "invalid_admin_key"),
    (UnknownKey, 401, _INVALID, "invalid_api_key"),
    (TooManyRequests, 429, "requests", "rate_limit_exceeded"),
    (Leaving, 503, "server_error", "server_leaving"),
    (TooBusy, 503, "server_error", "server_busy"),
    (ReportUnavailable, 503, "server_error", "report_unavailable"),
    (MemoryUnavailable, 503, "server_error", "memory_unavailable"),
    (UpstreamBusy, 429, "requests", "upstream_busy"),
    (UpstreamUnreachable, 502, _UPSTREAM, "upstream_unreachable"),
    (UpstreamTimeout, 504, _UPSTREAM, "upstream_timeout"),
    (UpstreamBroken, 502, _UPSTREAM, "upstream_broken"),
)

JSON: Headers = ((b"content-type", b"application/json"),)


ErrorShape = Callable[[Fault], Mapping[str, Any]]
"""Render the body of an error for the clients of a dialect."""


def error_reply(error: RequestError, shape: ErrorShape = openai_error) -> Reply:
    """Return the reply for an error."""
    status, type_, code = next(
        ((status, type_, code) for kind, status, type_, code in _ANSWERS if isinstance(error, kind)),
        (500, "server_error", None),
    )
    headers = error.headers if isinstance(error, (TooBusy, TooManyRequests, UpstreamBusy)) else ()
    return _reply(Fault(str(error), type_, error.param, code, status), shape, headers)


def unexpected_reply(shape: ErrorShape = openai_error) -> Reply:
    """Return the reply for an unexpected exception."""
    return _reply(Fault("The proxy failed to handle the request.", "server_error"), shape)


def _reply(fault: Fault, shape: ErrorShape, headers: Headers = ()) -> Reply:
    return Reply(fault.status, JSON + headers, dumps(shape(fault)))
