"""Authenticate clients by their API keys, and apply their rate limits; authenticate admins by their keys and sessions.

Wrong keys are throttled.
"""

from __future__ import annotations

import hmac
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from ipaddress import IPv6Address, ip_network
from types import TracebackType
from typing import TypeVar

from cachetools import TTLCache
from starlette.types import Message, Send

from groundwire.errors import NotAdmin, TooManyRequests, UnknownKey
from groundwire.http.exchange import Handler, parse_address
from groundwire.http.keys import AdminKeys, Client, Clients, bearer
from groundwire.storage.limits import LocalLimits, Turn
from groundwire.upstream.upstream import KEYS
from groundwire.wire import Call, Headers, Reply, header, without

FREE_ATTEMPTS = 5
FREE_REQUESTS = 20  # of programs, which repeat a wrong key before anybody looks
MAX_WAIT_S = 60.0
_REMEMBERED_S = 900.0
_ACCEPTED_S = 86_400.0
_MAX_REMEMBERED = 10_000

SESSION = "groundwire_session"
VISIT = "groundwire_visit"

T = TypeVar("T")

AdminHandler = Callable[[Call, Mapping[str, str], str], Awaitable[Reply]]
"""Return the reply to a call of an admin, whose name is the last argument."""

_Failures = TTLCache[str, tuple[int, float]]
"""The number of failed attempts, and the end of the wait before the next one."""


class FailedAttempts:
    """Count failed attempts by address and by key: each one beyond the free ones doubles the wait for the next.

    Keys are known by their digests. One that was accepted from an address within a day does not have to wait there, so
    that nobody who guesses from behind the same reverse proxy locks it out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, free: int = FREE_ATTEMPTS) -> None:
        self._clock = clock
        self._free = free
        self._by_address: _Failures = TTLCache(_MAX_REMEMBERED, _REMEMBERED_S, clock)
        self._by_key: _Failures = TTLCache(_MAX_REMEMBERED, _REMEMBERED_S, clock)
        self._accepted: TTLCache[tuple[str, str], bool] = TTLCache(_MAX_REMEMBERED, _ACCEPTED_S, clock)

    def authenticate(self, key: str, address: str, find: Callable[[str], T | None]) -> T | None:
        """Return the owner of a key by `find`, or count a failed attempt and return None. Raises TooManyRequests."""
        self.check(address, key)
        found = find(key)
        if found is None:
            self.add(address, key)
        else:
            self._accepted[_network(address), _digest(key)] = True
        return found

    def check(self, address: str, key: str = "") -> None:
        """Raise TooManyRequests when the next attempt has to wait."""
        network, digest = _network(address), _digest(key)
        if (network, digest) in self._accepted:
            return
        _, until = self._by_address.get(network, (0, 0.0))
        _, key_until = self._by_key.get(digest, (0, 0.0))
        wait = math.ceil(max(until, key_until) - self._clock())
        if wait > 0:
            reason = "Too many wrong keys came from your address." if until >= key_until else "This key is wrong."
            message = f"{reason} Please try again in {wait} s."
            raise TooManyRequests(message, ((b"retry-after", b"%d" % wait),))

    def add(self, address: str, key: str = "") -> None:
        """Count a failed attempt."""
        self._count(self._by_address, _network(address))
        if key:
            self._count(self._by_key, _digest(key))

    def _count(self, failed: _Failures, name: str) -> None:
        count = failed.get(name, (0, 0.0))[0] + 1
        wait = min(MAX_WAIT_S, 2.0 ** min(count - self._free, 10)) if count >= self._free else 0.0
        failed[name] = (count, self._clock() + wait)

    def forget(self, address: str) -> None:
        """Forget the failures of an address."""
        self._by_address.pop(_network(address), None)


def _digest(key: str) -> str:
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest() if key else ""


def _network(address: str) -> str:
    """Return the /64 network of an IPv6 address, all of which one client may use, and any other address itself."""
    parsed = parse_address(address)
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed or address)


_NONE = "An API key of this proxy is required, sent as 'Authorization: Bearer …' or 'x-api-key: …'."
_WRONG = "Incorrect API key provided: this proxy does not know it, or it has been revoked."
_EXPIRED = "Your API key has expired."


@dataclass(frozen=True, slots=True)
class AuthenticatedRequest:
    """An authenticated request until its whole answer is sent: the client, and the headers without keys.

    Stored data of the request belongs to the `tenant`.
    """

    client: str
    tenant: str
    headers: Headers
    turn: Turn | None
    limiter: LocalLimits

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
                message = {**message, "headers": (*without(message["headers"], names), *rates)}
            await send(message)

        return sending


class Guard:
    """Authenticate requests by their keys and apply the limits of their clients. Keys are not forwarded."""

    def __init__(self, clients: Clients, limiter: LocalLimits, tenant_of: Callable[[str], str]) -> None:
        self._clients = clients
        self._limiter = limiter
        self._tenant_of = tenant_of
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
        forwarded = without(lowered, KEYS)
        return AuthenticatedRequest(client.name, self._tenant_of(client.name), forwarded, turn, self._limiter)

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


def require_admin(keys: AdminKeys, handle: AdminHandler, failed: FailedAttempts | None = None) -> Handler:
    """Require an admin key, sent as `Authorization: Bearer …`.

    Other calls are refused with NotAdmin, and after several wrong keys with TooManyRequests.
    """

    failed = failed or FailedAttempts(free=FREE_REQUESTS)

    async def handler(call: Call, params: Mapping[str, str]) -> Reply:
        key = bearer(header(call.headers, b"authorization"))
        who = failed.authenticate(key, call.address, keys.find_admin) if key else None
        if who is None:
            raise NotAdmin("An admin key is required, sent as 'Authorization: Bearer …'.")
        return await handle(call, params, who)

    return handler


class Sessions:
    """Sessions in signed cookies with a name and an expiry: stateless, so any replica can check them.

    They end at their expiry, and as soon as the key they were opened with is removed or changed.
    """

    def __init__(self, keys: AdminKeys, secret: bytes, lasts: float) -> None:
        self._keys = keys
        self._secret = secret
        self._failed = FailedAttempts()
        self.lasts = lasts

    @property
    def any_keys(self) -> bool:
        """True if there is any admin key."""
        return bool(self._keys.digests)

    def open(self, key: str, now: float, address: str = "") -> str | None:
        """Open a session for the admin whose key this is; `now` is in Unix seconds.

        Raises TooManyRequests after wrong keys.
        """
        who = self._failed.authenticate(key, address, self._keys.find_admin)
        if who is None:
            return None
        self._failed.forget(address)
        content = f"{who}:{int(now + self.lasts)}:{secrets.token_hex(8)}"
        return f"{content}:{self._signature(who, content)}"

    def admin_of(self, session: str, now: float) -> str | None:
        """Return the admin of a session, or None if it is invalid or expired."""
        content, _, signature = session.rpartition(":")
        name, ends, *_ = (*content.split(":"), "", "")
        if name not in self._keys.digests or not ends.isdigit():
            return None
        is_ours = hmac.compare_digest(signature.encode(), self._signature(name, content).encode())
        return name if is_ours and now < int(ends) else None

    def form_token(self, cookie: str) -> str:
        """Return the token that a form sent with this cookie must contain."""
        return self._sign(f"form {cookie}")

    def is_form_token(self, cookie: str, token: str) -> bool:
        """Return whether a form token was issued for this cookie."""
        return bool(cookie) and hmac.compare_digest(
            token.encode("utf-8", "surrogatepass"), self._sign(f"form {cookie}").encode()
        )

    def _signature(self, name: str, content: str) -> str:
        return self._sign(f"session {content} {self._keys.digests[name].hex()}")

    def _sign(self, content: str) -> str:
        return hmac.new(self._secret, content.encode("utf-8", "surrogatepass"), sha256).hexdigest()


def cookie(headers: Headers, name: str) -> str:
    """Return the value of a cookie as it was sent, or "" when it was not.

    Browsers send the cookie with the longest path first. Starlette's parser returns the last one of a name, and
    unquotes all values, in quadratic time unless Python has the fix of CVE-2024-7592.
    """
    sent = b"; ".join(value for found, value in headers if found == b"cookie").decode("latin-1")
    pairs = (each.strip().partition("=") for each in sent.split(";"))
    return next((value for found, _, value in pairs if found == name), "")


def set_cookie(name: str, value: str, *, secure: bool, lasts: float | None = None) -> tuple[bytes, bytes]:
    """Return the header of a cookie that scripts cannot read and other sites cannot send; `lasts` is in seconds."""
    age = "" if lasts is None else f"; Max-Age={int(lasts)}"
    header = f"{name}={value}; Path=/; HttpOnly; SameSite=Strict{age}{'; Secure' if secure else ''}"
    return b"set-cookie", header.encode("latin-1")
