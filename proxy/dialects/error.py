"""Errors as clients are told of them: OpenAI's shape, in bodies and in streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proxy.dialects.jsonbytes import dumps


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in OpenAI's words; `status` is the HTTP status that it has, or would have had."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None
    status: int = 500


def openai_error(fault: Fault) -> Mapping[str, Any]:
    """An error in OpenAI's shape; as an event of a stream, SDKs raise on it."""
    return {"error": {"message": fault.message, "type": fault.type, "param": fault.param, "code": fault.code}}


def error_body(message: str, type_: str, param: str | None = None, code: str | None = None) -> bytes:
    """An error as a JSON body in OpenAI's shape."""
    return dumps(openai_error(Fault(message, type_, param, code)))
