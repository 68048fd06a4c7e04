"""Everything that is forwarded and not verified: other paths of the API, and the list of models."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import structlog

from groundwire.dialects.jsonbytes import dumps, loads_object, replaced, without
from groundwire.dialects.request import model_of, read_object
from groundwire.errors import BadRequest, RequestError, UnreadableBody
from groundwire.gateway.bodies import parsed
from groundwire.gateway.forward import Forwarding, chunks_of, read
from groundwire.offload import offloaded
from groundwire.telemetry import Telemetry
from groundwire.upstream.attempts import Attempts
from groundwire.upstream.headers import without_keys
from groundwire.upstream.router import Route, Router
from groundwire.upstream.upstream import Upstream
from groundwire.wire import Call, Reply

_SAFE = ("GET", "HEAD", "OPTIONS")
MAX_LIST = 4 * 2**20  # bytes of the models of one upstream

log = structlog.get_logger("groundwire.gateway")


@dataclass(frozen=True, slots=True)
class PassThrough:
    """Calls that are forwarded unchanged."""

    router: Router
    telemetry: Telemetry

    async def to_default(self, call: Call) -> Reply:
        """The default upstream's reply."""
        return await self._forwarded(self.router.default, call)

    async def by_model(self, operation: str, call: Call) -> Reply:
        """Return the reply of the upstream that serves the model which the body names; `grounding` never reaches it.

        A body that names none, or cannot be read, goes to the default upstream. `operation` is its name in telemetry.
        """
        try:
            body = await parsed(call.body, lambda: read_object(call.body, skipped=("input",)))
        except UnreadableBody:
            return await self.to_default(call)
        model = model_of(body)
        route = self.router.choose(model) if model else self.router.default

        async def outgoing(to: Route) -> Call:
            return replace(call, body=await parsed(call.body, lambda: _outgoing(call.body, body, to.model)))

        forwarding = Forwarding(self.telemetry, operation, body)
        return await forwarding.passed(await forwarding.send(route, outgoing))

    async def one_model(self, call: Call, model: str) -> Reply:
        """Return the model's description from the upstream that serves it."""
        upstreams = self.router.upstreams
        route = self.router.choose(model) if len(upstreams) > 1 else self.router.default
        return await self._forwarded(replace(route, fallbacks=()), call)

    async def models(self, call: Call) -> Reply:
        """Return the models of all upstreams in one list; with a single upstream, its reply.

        An upstream that fails is left out; when all fail, the first one's error is raised. The client's key is sent to
        the default upstream only, because it may not be meant for the others.
        """
        upstreams = self.router.upstreams
        if len(upstreams) == 1:
            return await self._forwarded(self.router.default, call)
        plain = replace(call, headers=tuple(pair for pair in call.headers if pair[0] != b"accept-encoding"))
        keyless = replace(plain, headers=without_keys(plain.headers))
        listing = [_listed(each, keyless if place else plain) for place, each in enumerate(upstreams)]
        listed = await asyncio.gather(*listing, return_exceptions=True)
        failures = [each for each in listed if isinstance(each, RequestError)]
        for failure in failures:
            log.warning("models.left_out", reason=failure.operator)
        if failures and len(failures) == len(upstreams):
            raise failures[0]
        body = await offloaded(_joined, [each for each in listed if isinstance(each, list)])
        return Reply(200, ((b"content-type", b"application/json"),), body)

    async def _forwarded(self, route: Route, call: Call) -> Reply:
        """The reply to a call that goes on as it is. One that may change something is not sent twice."""
        if route.is_plain:
            return await route.upstream.send(call)
        attempts = Attempts(lambda to: to.upstream.send(call), lambda _: None, repeatable=call.method in _SAFE)
        reply, _ = await attempts.answer(route)
        return reply


def _outgoing(raw: bytes, body: Mapping[str, Any], model: str) -> bytes:
    """Return the bytes of a body less `grounding`, for an upstream that knows its model as `model`."""
    raw = without(raw, {"grounding"}) if "grounding" in body else raw
    return raw if model == model_of(body) else replaced(raw, "model", model)


async def _listed(upstream: Upstream, call: Call) -> Sequence[dict[str, Any]]:
    """Return the models of an upstream, none where its list cannot be read. Raises RequestError."""
    reply = await upstream.send(call)
    async with aclosing(chunks_of(reply)) as chunks:
        raw, end = await read(chunks, MAX_LIST)
    if reply.status != 200:
        raise BadRequest(f"upstream '{upstream.name}' does not list its models (status {reply.status})")
    if end != "whole":
        raise BadRequest(f"upstream '{upstream.name}' lists its models in over {MAX_LIST} bytes, or breaks off")
    return await parsed(raw, lambda: models_in(raw))


def models_in(raw: bytes) -> Sequence[dict[str, Any]]:
    """Return the models in the list of a model server, none where it is not such a list."""
    try:
        body = loads_object(raw)
    except ValueError:
        return []
    data = body.get("data") if isinstance(body, dict) else None
    return [model for model in data if isinstance(model, dict)] if isinstance(data, list) else []


def _joined(lists: Sequence[Sequence[Mapping[str, Any]]]) -> bytes:
    """Join several lists of models; each id is listed once, from the first upstream."""
    unique = {str(model.get("id")): model for each in reversed(lists) for model in reversed(each)}
    return dumps({"object": "list", "data": list(reversed(unique.values()))})
