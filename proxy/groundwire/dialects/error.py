"""Errors in the shapes that clients expect, in bodies and in streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from groundwire.dialects.jsonbytes import dumps


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in OpenAI's terms; `status` is the HTTP status, also where the error is sent within a stream."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None
    status: int = 500


def openai_error(fault: Fault) -> Mapping[str, Any]:
    """Render an error in OpenAI's shape; SDKs raise on it as a stream event too."""
    return {"error": {"message": fault.message, "type": fault.type, "param": fault.param, "code": fault.code}}


_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def anthropic_error(fault: Fault) -> Mapping[str, Any]:
    """Render an error in Anthropic's shape, as a body or an event; its type follows from its status."""
    otherwise = "api_error" if fault.status >= 500 else "invalid_request_error"
    type_ = _ANTHROPIC_TYPES.get(fault.status, otherwise)
    return {"type": "error", "error": {"type": type_, "message": fault.message}}


def error_body(message: str, type_: str, param: str | None = None, code: str | None = None) -> bytes:
    """Return an error as a JSON body in OpenAI's shape."""
    return dumps(openai_error(Fault(message, type_, param, code)))
