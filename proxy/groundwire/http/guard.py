"""Authenticate a request by its API key and apply the client's rate limit. The key is removed before forwarding."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType

from starlette.types import Message, Send

from groundwire.errors import TooManyRequests, UnknownKey
from groundwire.http.attempts import FREE_REQUESTS, FailedAttempts
from groundwire.http.clients import Client, Clients
from groundwire.http.keys import bearer
from groundwire.storage.limits import Limiter, Turn
from groundwire.upstream.http import KEYS
from groundwire.wire import Headers

_NONE = "An API key of this proxy is required, sent as 'Authorization: Bearer …' or 'x-api-key: …'."
_WRONG = "Incorrect API key provided: this proxy does not know it, or it has been revoked."
_EXPIRED = "Your API key has expired."


Tenants = Callable[[str], str]
"""Return the tenant of a client by the client's name."""


def own_tenant(client: str) -> str:
    """Return the client's own name: each is a tenant by itself."""
    return client


@dataclass(frozen=True, slots=True)
class AuthenticatedRequest:
    """An authenticated request until its whole answer is sent: the client, and the headers without keys.

    Stored data of the request belongs to the `tenant`.
    """

    client: str
    tenant: str
    headers: Headers
    turn: Turn | None
    limiter: Limiter

    def __enter__(self) -> AuthenticatedRequest:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self.turn is not None:
            self.limiter.give_back(self.turn)

    def with_rate_headers(self, send: Send) -> Send:
        """Wrap `send` to add the client's remaining requests to the response headers."""
        rates = rate_headers(self.turn) if self.turn is not None else ()
        if not rates:
            return send
        names = {name for name, _ in rates}

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                others = (pair for pair in message["headers"] if pair[0] not in names)
                message = {**message, "headers": (*others, *rates)}
            await send(message)

        return sending


class Guard:
    """Authenticate requests by their keys and apply the limits of their clients."""

    def __init__(self, clients: Clients, limiter: Limiter, tenants: Tenants = own_tenant) -> None:
        self._clients = clients
        self._limiter = limiter
        self._tenants = tenants
        self._failed = FailedAttempts(free=FREE_REQUESTS)

    async def admit(self, headers: Iterable[tuple[bytes, bytes]], address: str = "") -> AuthenticatedRequest:
        """Authenticate a request with these headers from an address. Raises UnknownKey and TooManyRequests."""
        lowered = tuple((name.lower(), value) for name, value in headers)
        client = await self._client(tuple(pair for pair in lowered if pair[0] in KEYS), address)
        turn = None
        if client.limits.any:
            turn = await self._limiter.take(client.name, client.limits)
            if not turn.granted:
                raise _too_many(turn)
        forwarded = tuple(pair for pair in lowered if pair[0] not in KEYS)
        return AuthenticatedRequest(client.name, self._tenants(client.name), forwarded, turn, self._limiter)

    async def _client(self, keys: Headers, address: str) -> Client:
        """Return the client of the first valid key: SDKs send several headers with keys, or the same one twice.

        Requests with a valid key are never throttled: it has 256 random bits, which nobody guesses.
        """
        expired, key = False, ""
        for name, value in keys:
            key = bearer(value) or "" if name == b"authorization" else value.decode("latin-1").strip()
            client = await self._clients.find(key) if key else None
            if client is not None and not client.is_expired(datetime.now(UTC)):
                return client
            expired = expired or client is not None
        if key:
            self._failed.check(address, key)
            self._failed.add(address, key)
        raise UnknownKey(_EXPIRED if expired else _WRONG if keys else _NONE)

    def degraded(self) -> tuple[tuple[str, str], ...]:
        """Return the degraded parts, each with its reason."""
        return (("keys", self._clients.problem),) if self._clients.problem else ()


def rate_headers(turn: Turn) -> Headers:
    """Return the headers for requests per minute, in the format of OpenAI's servers."""
    if turn.remaining is None or turn.reset is None:
        return ()
    return (
        (b"x-ratelimit-limit-requests", b"%d" % (turn.limits.requests_per_minute or 0)),
        (b"x-ratelimit-remaining-requests", b"%d" % turn.remaining),
        (b"x-ratelimit-reset-requests", _span(turn.reset).encode()),
    )


def _too_many(turn: Turn) -> TooManyRequests:
    limits = turn.limits
    if turn.remaining is None:
        message = (
            f"Your key may have {limits.concurrent} requests running at once. Please try again when one has ended."
        )
    else:
        wait = _span(turn.wait)
        message = f"Your key may ask {limits.requests_per_minute} requests per minute. Please try again in {wait}."
    after = b"%d" % max(1, math.ceil(turn.wait))
    return TooManyRequests(message, ((b"retry-after", after), *rate_headers(turn)))


def _span(seconds: float) -> str:
    """Return a time in the format of OpenAI's servers: 120ms, 1.5s, 1m0s."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    if seconds < 60:
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    return f"{int(seconds // 60)}m{math.ceil(seconds % 60)}s"
