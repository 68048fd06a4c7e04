"""Client limits shared by replicas in Redis; while it is down each replica applies its limits alone.

A script decides on rate and slots in one step, by the clock of Redis. No library does both: `limits`, the best
maintained, does not cover concurrent requests, and would take two round trips. A slot is a lease that is renewed while
its request runs, so that those of a killed replica expire within half a minute.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict

from redis.asyncio import Redis

from groundwire.errors import StoreUnavailable
from groundwire.storage.limits import BUSY_S, Limiter, Limits, Turn, remaining
from groundwire.storage.shared.redis import SharedRedis

_LEASE_S = 30.0
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


class SharedLimits:
    """Turns shared by replicas; `alone` grants them while Redis is down. `lease` is in seconds."""

    def __init__(self, redis: SharedRedis, alone: Limiter, prefix: str = "groundwire", lease: float = _LEASE_S) -> None:
        self._redis = redis
        self._alone = alone
        self._prefix = prefix
        self._lease = lease
        self._take = redis.client.register_script(_TAKE)
        self._renew = redis.client.register_script(_RENEW)
        self._held: defaultdict[str, set[str]] = defaultdict(set)
        self._renewing: asyncio.Task[None] | None = None

    async def take(self, name: str, limits: Limits) -> Turn:
        """See `Limiter`."""
        slot = secrets.token_hex(8)
        asked: list[int | float | str] = [limits.requests_per_minute or 0, limits.concurrent or 0, slot, self._lease]
        keys = [self._key(name, "rate"), self._key(name, "running")]
        try:
            outcome, wait, reset = await self._redis.ask(lambda redis: self._take(keys=keys, args=asked, client=redis))
        except StoreUnavailable:
            return await self._alone.take(name, limits)
        except asyncio.CancelledError:
            self._redis.beside(self._free(name, slot))  # it may have been taken
            raise
        if outcome == b"busy":
            return Turn(name, limits, granted=False, wait=BUSY_S)
        turn = Turn(name, limits, outcome == b"granted", float(wait), *remaining(limits, float(reset)), lease=slot)
        if turn.granted and limits.concurrent is not None:
            self._hold(name, slot)
        return turn

    def give_back(self, turn: Turn) -> None:
        """See `Limiter`."""
        if turn.lease is None:
            self._alone.give_back(turn)
        elif turn.limits.concurrent is not None:
            self._held[turn.name].discard(turn.lease)
            self._redis.beside(self._free(turn.name, turn.lease))

    def _key(self, name: str, what: str) -> str:
        return f"{self._prefix}:{{{name}}}:{what}"

    def _hold(self, name: str, slot: str) -> None:
        self._held[name].add(slot)
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._keep_renewing())

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(self._lease / 3)
            for name, slots in list(self._held.items()):
                if slots:
                    self._redis.beside(self._renewed(name, [self._lease, *slots]))
                else:
                    del self._held[name]

    async def _renewed(self, name: str, told: list[int | float | str]) -> None:
        await self._redis.ask(lambda redis: self._renew(keys=[self._key(name, "running")], args=told, client=redis))

    async def _free(self, name: str, slot: str) -> None:
        async def free(redis: Redis) -> None:
            await redis.zrem(self._key(name, "running"), slot)

        await self._redis.ask(free)

    async def aclose(self) -> None:
        """Stop renewing leases."""
        if self._renewing is not None:
            self._renewing.cancel()
