"""The check endpoints: parse a call, run the check in the gateway, render the result as JSON."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qs

from groundwire.dialects.checks import (
    Check,
    ClaimCheck,
    EvidenceCheck,
    MemoryCheck,
    TextCheck,
    TraceCheck,
    read_answer_check,
    read_check,
)
from groundwire.dialects.jsonbytes import dumps
from groundwire.errors import BadRequest
from groundwire.gateway.checks import Checks
from groundwire.gateway.forward import Caller, parsed
from groundwire.http.endpoints import Handler
from groundwire.http.errors import JSON
from groundwire.wire import Call, Reply

M = TypeVar("M", bound=Check)


def check_routes(checks: Checks) -> tuple[tuple[str, str, Handler], ...]:
    """Return path below `/v1/grounding`, method and handler of each check."""
    return (
        ("/verify", "POST", _answer(checks)),
        ("/claims", "POST", _check_handler(TextCheck, checks.claims)),
        ("/claim", "POST", _check_handler(ClaimCheck, checks.claim)),
        ("/evidence", "POST", _check_handler(EvidenceCheck, checks.evidence)),
        ("/trace", "POST", _tenant_check_handler(TraceCheck, checks.trace)),
        ("/memory", "POST", _tenant_check_handler(MemoryCheck, checks.remember)),
        ("/memory", "GET", _stored(checks)),
    )


def _check_handler(shape: type[M], run: Callable[[M, Caller], Awaitable[Mapping[str, Any]]]) -> Handler:
    async def handle(call: Call, _: Mapping[str, str]) -> Reply:
        check = await parsed(call.body, lambda: read_check(shape, call.body))
        caller = Caller.of(getattr(check, "model", ""), call.headers)
        return Reply(200, JSON, dumps(await run(check, caller)))

    return handle


def _answer(checks: Checks) -> Handler:
    async def handle(call: Call, _: Mapping[str, str]) -> Reply:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in call.headers}
        read = partial(read_answer_check, call.body, headers, call.tenant)
        check, request = await parsed(call.body, read)
        return Reply(200, JSON, await checks.answer(check, request, Caller.of(check.model, call.headers), call))

    return handle


def _tenant_check_handler(shape: type[M], run: Callable[[M, Caller, str], Awaitable[Mapping[str, Any]]]) -> Handler:
    """Return the handler of a check of which something is kept for the tenant."""

    async def handle(call: Call, _: Mapping[str, str]) -> Reply:
        check = await parsed(call.body, lambda: read_check(shape, call.body))
        caller = Caller.of(getattr(check, "model", ""), call.headers)
        return Reply(200, JSON, dumps(await run(check, caller, call.tenant)))

    return handle


def _stored(checks: Checks) -> Handler:
    async def handle(call: Call, _: Mapping[str, str]) -> Reply:
        subject = parse_qs(call.target.partition("?")[2]).get("subject", [""])[0]
        if not subject:
            raise BadRequest("'subject' must be given: /v1/grounding/memory?subject=…", param="subject")
        return Reply(200, JSON, dumps(await checks.facts_about(subject, call.tenant)))

    return handle
