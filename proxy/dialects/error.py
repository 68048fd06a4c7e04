"""OpenAI's error shape, in bodies and in streams."""

from __future__ import annotations

from proxy.dialects.jsonbytes import dumps


def error_body(message: str, type_: str, param: str | None = None, code: str | None = None) -> bytes:
    """An error as a JSON body."""
    return dumps({"error": {"message": message, "type": type_, "param": param, "code": code}})


def error_event(message: str, type_: str, code: str | None = None) -> bytes:
    """An error as an event of a stream that has failed: SDKs raise on it."""
    return b"data: " + error_body(message, type_, None, code) + b"\n\n"
