"""Values computed by any replica, in Redis under exact keys; unreadable values count as missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from importlib.metadata import version
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter
from pydantic_core import to_json
from redis.asyncio import Redis

from groundwire.errors import StoreUnavailable
from groundwire.storage.shared.redis import SharedRedis

V = TypeVar("V")

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
        if written and self._ttl > 0:
            self._redis.beside(self._put(written))

    async def _put(self, written: Mapping[bytes, bytes]) -> None:
        async def put(redis: Redis) -> Any:
            pipeline = redis.pipeline(transaction=False)
            for name, raw in written.items():
                pipeline.set(name, raw, px=max(1, int(self._ttl * 1000)))
            return await pipeline.execute()

        await self._redis.ask(put)

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
