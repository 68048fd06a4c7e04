"""Everything that is forwarded and not verified: other paths of the API, and the list of models."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog

from proxy.dialects.jsonbytes import dumps, loads, replaced, without
from proxy.dialects.request import model_of, read_object
from proxy.errors import BadRequest, RequestError, UnreadableBody
from proxy.gateway.bodies import parsed
from proxy.gateway.forward import Forwarding
from proxy.telemetry import Telemetry
from proxy.types import Call, Reply
from proxy.upstream.attempts import Attempts
from proxy.upstream.headers import without_keys
from proxy.upstream.router import Route, Router
from proxy.upstream.upstream import Upstream

_SAFE = ("GET", "HEAD", "OPTIONS")

log = structlog.get_logger("groundwire.gateway")


@dataclass(frozen=True, slots=True)
class PassThrough:
    """Calls that go on as they came."""

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
        """What the upstream that serves a model says of it."""
        upstreams = self.router.upstreams
        route = self.router.choose(model) if len(upstreams) > 1 else self.router.default
        return await self._forwarded(replace(route, fallbacks=()), call)

    async def models(self, call: Call) -> Reply:
        """The models of all upstreams in one list; with a single upstream, its own reply.

        An upstream that cannot be asked is left out; when none can, the first one's error is raised. The client's key
        is shown to the default upstream only: nothing says that it is meant for the others.
        """
        upstreams = self.router.upstreams
        if len(upstreams) == 1:
            return await self._forwarded(self.router.default, call)
        plain = replace(call, headers=tuple(pair for pair in call.headers if pair[0] != b"accept-encoding"))
        keyless = replace(plain, headers=without_keys(plain.headers))
        asked = [_listed(each, keyless if place else plain) for place, each in enumerate(upstreams)]
        listed = await asyncio.gather(*asked, return_exceptions=True)
        models = [model for each in listed if isinstance(each, list) for model in each]
        failures = [each for each in listed if isinstance(each, RequestError)]
        for failure in failures:
            log.warning("models.left_out", reason=failure.operator)
        if failures and len(failures) == len(upstreams):
            raise failures[0]
        unique = {str(model.get("id")): model for model in reversed(models)}
        body = dumps({"object": "list", "data": list(reversed(unique.values()))})
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
    reply = await upstream.send(call)
    raw = reply.body if isinstance(reply.body, bytes) else b"".join([chunk async for chunk in reply.body])
    if reply.status != 200:
        raise BadRequest(f"upstream '{upstream.name}' does not list its models (status {reply.status})")
    try:
        body = loads(raw)
    except ValueError:
        body = None
    data = body.get("data") if isinstance(body, dict) else None
    return [model for model in data if isinstance(model, dict)] if isinstance(data, list) else []
