"""State shared by replicas in Redis: values and client limits. Answers do not depend on it."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from hashlib import blake2b
from importlib.metadata import version
from typing import Any, Generic, TypeVar

import structlog
from pydantic import TypeAdapter
from pydantic_core import to_json
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from groundwire.errors import StoreUnavailable
from groundwire.storage.limits import BUSY_S, Limits, LocalLimits, Turn, remaining

T = TypeVar("T")
V = TypeVar("V")

log = structlog.get_logger("groundwire.redis")

_CONNECTIONS = 32
_MIN_PAUSE_S = 0.5
_MAX_PAUSE_S = 30.0
_MAX_TASKS = 256  # background tasks that may wait; further ones are dropped
_CLOSE_S = 1.0  # for background tasks at shutdown
_FAILURES = (RedisError, OSError, TimeoutError)


class SharedRedis:
    """One Redis, with calls through `ask` limited to `timeout` seconds.

    `client` is only for one-time preparation, such as scripts.
    After a failure it counts as down, and calls fail at once, until it has answered a ping, which is retried in the
    background.
    """

    def __init__(self, url: str, timeout: float) -> None:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=timeout,
            retry=Retry(NoBackoff(), 1),  # an idle connection may have been closed: try a second one
            socket_timeout=None,  # `timeout` covers it, and the time for a connection as well
            socket_connect_timeout=None,
        )
        self.client: Redis = Redis.from_pool(pool)
        self._timeout = timeout
        self._tasks: set[asyncio.Task[Any]] = set()
        self._reconnecting: asyncio.Task[None] | None = None
        self._failed_calls = 0

    async def ask(self, work: Callable[[Redis], Awaitable[T]]) -> T:
        """Return the result of `work`. Raises StoreUnavailable when Redis is down or takes too long."""
        if self._reconnecting is not None:
            self._failed_calls += 1
            raise StoreUnavailable("Redis is down.")
        try:
            async with asyncio.timeout(self._timeout):
                return await work(self.client)
        except _FAILURES as error:
            self._failed(error)
            raise StoreUnavailable("Redis is down.") from error

    def in_background(self, work: Coroutine[Any, Any, object]) -> None:
        """Run `work`, which may raise StoreUnavailable, in the background; its success is not reported."""
        if self._reconnecting is not None or len(self._tasks) >= _MAX_TASKS:
            work.close()
            return
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not isinstance(error, StoreUnavailable):
            log.error("redis.failed", error=type(error).__name__)

    def _failed(self, error: BaseException) -> None:
        self._failed_calls += 1
        if self._reconnecting is None:
            log.warning("redis.down", error=type(error).__name__)
            self._reconnecting = asyncio.create_task(self._reconnect())

    async def _reconnect(self) -> None:
        pause = _MIN_PAUSE_S
        while True:
            await asyncio.sleep(pause)
            try:
                async with asyncio.timeout(self._timeout):
                    await self.client.ping()
            except _FAILURES:
                pause = min(2 * pause, _MAX_PAUSE_S)
            else:
                break
        log.info("redis.up", unanswered=self._failed_calls)
        self._reconnecting, self._failed_calls = None, 0

    def degraded(self) -> str | None:
        """Return a description of the failure, or None."""
        if self._reconnecting is None:
            return None
        return f"unavailable; verdicts and limits are those of this process, {self._failed_calls} questions unanswered"

    async def aclose(self) -> None:
        """Finish background tasks within a second, and close all connections."""
        if self._reconnecting is not None:
            self._reconnecting.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=_CLOSE_S)
        for task in set(self._tasks):
            task.cancel()
        await self.client.aclose()
        await self.client.connection_pool.disconnect()


_FORMAT = "2"  # version of the encoding; replicas of another version ignore it
_LARGEST = 64 * 2**10  # bytes of one value; a larger one is recomputed faster than fetched


class SharedValues(Generic[V]):
    """Values of one `kind`, frozen dataclasses of the type `shape`, for `ttl` seconds.

    Keys include the program's version and the schema of the type, so that replicas of two versions do not read each
    other's values. All values of a request are fetched at once.
    """

    def __init__(
        self, redis: SharedRedis, kind: str, shape: type[V], ttl: float, now: Callable[[], float] = time.time
    ) -> None:
        self._redis = redis
        self._adapter: TypeAdapter[V] = TypeAdapter(shape)
        self._ttl = ttl
        self._now = now
        schema = blake2b(to_json(self._adapter.json_schema()), digest_size=6).hexdigest()
        self._prefix = f"groundwire:{kind}:{version('groundwire')}-{schema}-{_FORMAT}:".encode()

    async def find(self, keys: Sequence[bytes]) -> Mapping[bytes, tuple[V, float, bytes]]:
        """Return the values available, each with its age in seconds and its owner; none when Redis is down."""
        names = [self._name(key) for key in keys]
        try:
            found = await self._redis.ask(lambda redis: redis.mget(names))
        except StoreUnavailable:
            return {}
        read = {key: self._read(raw) for key, raw in zip(keys, found, strict=True) if isinstance(raw, bytes)}
        return {key: value for key, value in read.items() if value is not None}

    def keep(self, values: Mapping[bytes, V], owner: bytes) -> None:
        """Store values in the background."""
        written = {
            self._name(key): raw for key, value in values.items() if (raw := self._written(value, owner)) is not None
        }

        async def put(redis: Redis) -> None:
            pipeline = redis.pipeline(transaction=False)
            for name, raw in written.items():
                pipeline.set(name, raw, px=max(1, int(self._ttl * 1000)))
            await pipeline.execute()

        if written and self._ttl > 0:
            self._redis.in_background(self._redis.ask(put))

    def _name(self, key: bytes) -> bytes:
        return self._prefix + key.hex().encode()

    def _written(self, value: V, owner: bytes) -> bytes | None:
        """Return Unix milliseconds, the owner, and the value as JSON; None if it cannot be encoded."""
        try:
            raw = b"%d %b %b" % (self._now() * 1000, owner, to_json(value))
        except ValueError:  # a lone surrogate in a text
            return None
        return raw if len(raw) <= _LARGEST else None

    def _read(self, raw: bytes) -> tuple[V, float, bytes] | None:
        at, _, rest = raw.partition(b" ")
        owner, _, value = rest.partition(b" ")
        try:
            age = max(0.0, self._now() - int(at) / 1000)
            return (self._adapter.validate_json(value), age, owner) if age < self._ttl else None
        except (ValueError, OverflowError, RecursionError):
            return None


_TAKE = """
local per_minute, concurrent, lease = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
if concurrent > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
  if redis.call('ZCARD', KEYS[2]) >= concurrent then return {'busy', '0', '0'} end
end
local full_at = now
if per_minute > 0 then
  full_at = math.max(tonumber(redis.call('GET', KEYS[1]) or '') or 0, now) + 60 / per_minute
  if full_at - now > 60.000001 then
    return {'empty', string.format('%.6f', full_at - now - 60), string.format('%.6f', full_at - now - 60 / per_minute)}
  end
  redis.call('SET', KEYS[1], string.format('%.6f', full_at), 'PX', math.ceil((full_at - now) * 1000))
end
if concurrent > 0 then
  redis.call('ZADD', KEYS[2], now + lease, ARGV[3])
  redis.call('PEXPIRE', KEYS[2], math.ceil(lease * 1000))
end
return {'granted', '0', string.format('%.6f', full_at - now)}
"""
_RENEW = """
local time = redis.call('TIME')
local lease = tonumber(ARGV[1])
for at = 2, #ARGV do redis.call('ZADD', KEYS[1], time[1] + lease, ARGV[at]) end
redis.call('PEXPIRE', KEYS[1], math.ceil(lease * 1000))
"""


class SharedLimits(LocalLimits):
    """The rate limiter of clients for all replicas, or for each alone while Redis is down. `lease` is in seconds.

    A script decides on rate and slots in one step, by the clock of Redis. No library does both: `limits`, the best
    maintained, does not cover concurrent requests, and would take two round trips. A slot is a lease that is renewed
    while its request runs, so that those of a killed replica expire within half a minute.
    """

    def __init__(self, redis: SharedRedis, prefix: str = "groundwire", lease: float = 30.0) -> None:
        super().__init__()
        self._redis = redis
        self._prefix = prefix
        self._lease = lease
        self._take = redis.client.register_script(_TAKE)
        self._renew = redis.client.register_script(_RENEW)
        self._held: defaultdict[str, set[str]] = defaultdict(set)
        self._renewing: asyncio.Task[None] | None = None

    async def take(self, name: str, limits: Limits) -> Turn:
        """Request a turn for the client of that name; raises nothing but cancellation."""
        slot = secrets.token_hex(8)
        per_minute, concurrent = limits.requests_per_minute or 0, limits.concurrent or 0
        args: list[int | float | str] = [per_minute, concurrent, slot, self._lease]
        keys = [self._key(name, "rate"), self._key(name, "running")]
        try:
            outcome, wait, reset = await self._redis.ask(lambda redis: self._take(keys=keys, args=args, client=redis))
        except StoreUnavailable:
            return await super().take(name, limits)
        except asyncio.CancelledError:
            self._free(name, slot)  # it may have been taken
            raise
        if outcome == b"busy":
            return Turn(name, limits, granted=False, wait=BUSY_S)
        turn = Turn(name, limits, outcome == b"granted", float(wait), *remaining(limits, float(reset)), lease=slot)
        if turn.granted and limits.concurrent is not None:
            self._held[name].add(slot)
            self._renewing = self._renewing or asyncio.create_task(self._keep_renewing())
        return turn

    def give_back(self, turn: Turn) -> None:
        """Return a turn when its request has ended."""
        if turn.lease is None:
            super().give_back(turn)
        elif turn.limits.concurrent is not None:
            self._held[turn.name].discard(turn.lease)
            self._free(turn.name, turn.lease)

    def _key(self, name: str, what: str) -> str:
        return f"{self._prefix}:{{{name}}}:{what}"

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(self._lease / 3)
            for name, slots in list(self._held.items()):
                if slots:
                    self._renew_slots(name, [self._lease, *slots])
                else:
                    del self._held[name]

    def _renew_slots(self, name: str, args: list[int | float | str]) -> None:
        keys = [self._key(name, "running")]
        self._redis.in_background(self._redis.ask(lambda redis: self._renew(keys=keys, args=args, client=redis)))

    def _free(self, name: str, slot: str) -> None:
        key = self._key(name, "running")
        self._redis.in_background(self._redis.ask(lambda redis: redis.zrem(key, slot)))

    async def aclose(self) -> None:
        """Stop renewing leases."""
        if self._renewing is not None:
            self._renewing.cancel()
