"""Choose the upstream of a model, and make attempts at one answer: retries and fallbacks, as the route defines.

All of this happens before the first byte of a reply: a reply that a client has begun to receive is never restarted.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from fnmatch import fnmatchcase

import structlog

from groundwire.caches import memo
from groundwire.config.settings import Retries
from groundwire.dialects.dialect import error_body
from groundwire.errors import (
    RequestError,
    UnknownModel,
    UpstreamBroken,
    UpstreamBusy,
    UpstreamConnectTimeout,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from groundwire.report import Attempt
from groundwire.upstream.upstream import Upstream
from groundwire.wire import Headers, Reply, header

Outcome = Reply | RequestError
"""The outcome of one attempt: a reply, whatever its status, or an error."""

_NO_ANSWER = (UpstreamUnreachable, UpstreamTimeout, UpstreamBroken, UpstreamBusy)
_NEVER_ARRIVED = (UpstreamUnreachable, UpstreamConnectTimeout)  # the upstream certainly did not receive the request
_NAMES: tuple[tuple[type[RequestError], str], ...] = (
    (UpstreamUnreachable, "unreachable"),
    (UpstreamConnectTimeout, "connect_timeout"),
    (UpstreamTimeout, "timeout"),
    (UpstreamBroken, "broken"),
    (UpstreamBusy, "busy"),
)


ONCE = Retries()
"""No retries."""


def wait_before_retry(
    retries: Retries, outcome: Outcome, attempts: int, elapsed: float, now: float, chance: float
) -> float | None:
    """Return the seconds until the next attempt, after so many attempts in `elapsed` seconds; None for no further one.

    The wait is a random share (`chance`, 0–1) of one that doubles each time, added to the server's Retry-After. If that
    exceeds `max_backoff`, there is no further attempt, because the server would reject an earlier attempt. `now` is
    Unix time.
    """
    if attempts > retries.count or not _is_retryable(outcome, retries):
        return None
    requested = requested_wait(outcome.headers, now) if isinstance(outcome, Reply) else 0.0
    wait = requested + chance * min(retries.max_backoff, retries.initial_backoff * 2.0 ** (attempts - 1))
    return None if requested > retries.max_backoff or elapsed + wait > retries.deadline else wait


def _is_retryable(outcome: Outcome, retries: Retries) -> bool:
    if isinstance(outcome, Reply):
        return outcome.status in retries.statuses and header(outcome.headers, b"x-should-retry") != b"false"
    if isinstance(outcome, UpstreamBusy):
        return False  # the queue has been waited for already
    timeout = (UpstreamTimeout,) if retries.after_timeout else ()
    return isinstance(outcome, (*_NEVER_ARRIVED, UpstreamBroken, *timeout))


def outcome_name(outcome: Outcome) -> str:
    """Return a word for an outcome, for headers, reports, logs and traces."""
    if isinstance(outcome, Reply):
        return "answered" if outcome.status < 400 else f"status_{outcome.status}"
    return next((name for kind, name in _NAMES if isinstance(outcome, kind)), "refused")


def requested_wait(headers: Headers, now: float) -> float:
    """Return the seconds that a reply asks to wait, by OpenAI's `retry-after-ms` or by Retry-After; 0 without either.

    `now` is Unix time.
    """
    exact = (header(headers, b"retry-after-ms") or b"").strip()
    if exact.isdigit():
        return int(exact) / 1000
    requested = header(headers, b"retry-after")
    return (requested is not None and seconds_to_wait(requested.decode("latin-1"), now)) or 0.0


def seconds_to_wait(retry_after: str | None, now: float) -> float | None:
    """Parse a Retry-After header into seconds from `now` (since 1970); None when it is absent or invalid."""
    if retry_after is None:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    with suppress(ValueError):
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - now)
    return None


@dataclass(frozen=True, slots=True)
class UpstreamModels:
    """An upstream and its models: names or globs, and aliases (the client's name → the upstream's).

    `fallbacks` maps names or globs of models to the `upstream/model` to try, in order, when there is no answer; the
    model `*` means the requested one. `fallback_on` are the statuses that count as no answer.
    """

    upstream: Upstream
    models: Sequence[str]
    aliases: Mapping[str, str] = field(default_factory=dict)
    retries: Retries = ONCE
    fallbacks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fallback_on: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Route:
    """The upstream of a request, the model's name there, the retries, and the fallbacks."""

    upstream: Upstream
    model: str
    retries: Retries = ONCE
    fallbacks: tuple[Route, ...] = ()
    fallback_on: frozenset[int] = frozenset()

    @property
    def is_plain(self) -> bool:
        """True if there are neither retries nor fallbacks."""
        return not (self.retries.count or self.fallbacks)

    def needs_fallback(self, outcome: Outcome) -> bool:
        """Return whether to try a fallback after this outcome."""
        if not self.fallbacks:
            return False
        return outcome.status in self.fallback_on if isinstance(outcome, Reply) else isinstance(outcome, _NO_ANSWER)

    def once(self) -> Route:
        """Return the same route for a single attempt."""
        return Route(self.upstream, self.model)


class Router:
    """Finds the upstream of a model: by alias, by exact name, by `upstream/` prefix, by glob; the first match wins."""

    def __init__(self, models: Sequence[UpstreamModels]) -> None:
        self._models = tuple(models)
        self._routes = memo(1024, 256)(self._choose)

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """All upstreams, in the order of the settings."""
        return tuple(each.upstream for each in self._models)

    def ollamas(self) -> Router | None:
        """Return a router to the upstreams that take native calls; None if there are none."""
        models = [each for each in self._models if each.upstream.is_ollama]
        names = tuple(f"{each.upstream.name}/" for each in models)

        def reachable(fallbacks: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
            return {model: [each for each in found if each.startswith(names)] for model, found in fallbacks.items()}

        return Router([replace(each, fallbacks=reachable(each.fallbacks)) for each in models]) if models else None

    @property
    def default(self) -> Route:
        """The first upstream, without fallbacks; it also serves unknown paths."""
        return Route(self._models[0].upstream, "", self._models[0].retries)

    def choose(self, model: str) -> Route:
        """Return the route of a model. Raises UnknownModel."""
        return self._routes(model)

    def _choose(self, model: str) -> Route:
        entry, upstream_model = self._match(model)
        fallbacks = self._fallbacks(entry, model, upstream_model)
        return Route(entry.upstream, upstream_model, entry.retries, fallbacks, entry.fallback_on)

    def _match(self, model: str) -> tuple[UpstreamModels, str]:
        for each in self._models:
            if model in each.aliases:
                return each, each.aliases[model]
        for each in self._models:
            if model in each.models:
                return each, model
        prefix, slash, rest = model.partition("/")
        for each in self._models:
            if slash and rest and prefix == each.upstream.name:
                return each, rest
        for each in self._models:
            if any(fnmatchcase(model, glob) for glob in each.models):
                return each, model
        raise UnknownModel(f"The model '{model}' is served by no upstream of this proxy", param="model")

    def _fallbacks(self, entry: UpstreamModels, model: str, upstream_model: str) -> tuple[Route, ...]:
        """Return the fallbacks of a model: those of its name, else of the first matching glob; each without its
        fallbacks.
        """
        given = entry.fallbacks
        fitting = [name for name in (model, upstream_model) if name in given]
        fitting += [glob for glob in given if fnmatchcase(model, glob) or fnmatchcase(upstream_model, glob)]
        return tuple(self._fallback(target, upstream_model) for target in (given[fitting[0]] if fitting else ()))

    def _fallback(self, target: str, upstream_model: str) -> Route:
        for each in self._models:
            if target.startswith(f"{each.upstream.name}/"):
                model = target.removeprefix(f"{each.upstream.name}/")
                return Route(each.upstream, upstream_model if model == "*" else model, each.retries)
        raise LookupError(f"'{target}' names no upstream")  # the settings have been validated


log = structlog.get_logger("groundwire.upstream")

_MAX_BODY = 64 * 2**10  # bytes of a reply that is discarded: errors are short
_READ_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Attempts:
    """Tries a route and its fallbacks.

    `send` makes one attempt; `failed` is called with the outcome of each unsuccessful one as soon as it is known.
    `repeatable` is False if a request that may have arrived must not be sent again.
    """

    send: Callable[[Route], Awaitable[Reply]]
    failed: Callable[[str], None]
    repeatable: bool = True

    async def answer(self, route: Route) -> tuple[Reply, tuple[Attempt, ...]]:
        """Return the first reply that counts as an answer, and the outcomes of all attempts.

        If no fallback answers, the result is that of the chosen upstream: its reply, or its RequestError.
        """
        attempts: list[Attempt] = []
        outcome = await self._outcome(route, attempts, route.needs_fallback)
        if route.needs_fallback(outcome):
            for fallback in route.fallbacks:
                alternative = await self._outcome(fallback, attempts, _is_error)
                if isinstance(alternative, Reply) and not _is_error(alternative):
                    return alternative, tuple(attempts)
        if isinstance(outcome, RequestError):
            raise outcome
        return outcome, tuple(attempts)

    async def _outcome(
        self, route: Route, attempts: list[Attempt], needs_fallback: Callable[[Outcome], bool]
    ) -> Outcome:
        """Return the outcome of one upstream, including its retries; a reply to be discarded has been read."""
        name, started, count = route.upstream.name, time.monotonic(), 0
        while True:
            outcome = await self._attempt(route)
            count += 1
            attempts.append(Attempt(name, route.model, outcome_name(outcome)))
            wait = None
            if self.repeatable or isinstance(outcome, _NEVER_ARRIVED):
                elapsed, chance = time.monotonic() - started, random.random()  # noqa: S311 - spreads load
                wait = wait_before_retry(route.retries, outcome, count, elapsed, time.time(), chance)
            if wait is None and not needs_fallback(outcome):
                return outcome
            if isinstance(outcome, Reply):
                outcome = await _read_body(outcome)
            self.failed(attempts[-1].outcome)
            log.warning(
                "attempt.failed", upstream=name, outcome=attempts[-1].outcome, again_in_s=wait and round(wait, 3)
            )
            if wait is None:
                return outcome
            await asyncio.sleep(wait)

    async def _attempt(self, route: Route) -> Outcome:
        """Return the outcome of one attempt.

        The error leaves the frame that caught it: its traceback, kept by a variable there, would keep the request.
        """
        try:
            return await self.send(route)
        except RequestError as error:
            return error


def _is_error(outcome: Outcome) -> bool:
    """Return whether a fallback failed too: the first upstream's error is then more informative."""
    return not isinstance(outcome, Reply) or outcome.status >= 400


async def _read_body(reply: Reply) -> Reply:
    """Read the body of a reply, so that its connection can be reused; a body that is too long is replaced."""
    if isinstance(reply.body, bytes):
        return reply
    body = bytearray()
    try:
        async with asyncio.timeout(_READ_TIMEOUT_S), aclosing(reply.body) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > _MAX_BODY:
                    return _generic_reply(reply)
    except (TimeoutError, RequestError):
        return _generic_reply(reply)
    return replace(reply, body=bytes(body))


def _generic_reply(reply: Reply) -> Reply:
    """Return the status and headers of a reply with a generic body."""
    headers = tuple(pair for pair in reply.headers if not pair[0].startswith(b"content-"))
    body = error_body(f"The model server answered with status {reply.status}.", "upstream_error")
    return Reply(reply.status, (*headers, (b"content-type", b"application/json")), body)
