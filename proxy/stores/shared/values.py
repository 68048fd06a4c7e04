"""Values that any replica has computed, in Redis under exact keys; what cannot be read is not there (CA1, CA2)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from importlib.metadata import version
from typing import Any, Generic, TypeVar

import orjson
from pydantic import TypeAdapter
from redis.asyncio import Redis

from proxy.errors import StoreUnavailable
from proxy.stores.shared.redis import SharedRedis

V = TypeVar("V")

_FORMAT = "2"  # how a value is written; replicas of another one do not read it

_LARGEST = 64 * 2**10  # bytes of one value; what is larger is computed sooner than it is fetched


class SharedValues(Generic[V]):
    """Values of one `kind`, frozen dataclasses of the type `shape`, for `ttl` seconds.

    They are told apart by the version that computed them and by the shape that they have, so that replicas of two
    versions do not read each other's. All that a request wants is fetched at once.
    """

    def __init__(
        self, redis: SharedRedis, kind: str, shape: type[V], ttl: float, now: Callable[[], float] = time.time
    ) -> None:
        self._redis = redis
        self._adapter: TypeAdapter[V] = TypeAdapter(shape)
        self._ttl = ttl
        self._now = now
        schema = blake2b(orjson.dumps(self._adapter.json_schema()), digest_size=6).hexdigest()
        self._prefix = f"groundwire:{kind}:{version('groundwire')}-{schema}-{_FORMAT}:".encode()

    async def find(self, keys: Sequence[bytes]) -> Mapping[bytes, tuple[V, float, bytes]]:
        """The values that there are, each with its age in seconds and its owner; none when Redis is down."""
        names = [self._name(key) for key in keys]
        try:
            found = await self._redis.ask(lambda redis: redis.mget(names))
        except StoreUnavailable:
            return {}
        read = {key: self._read(raw) for key, raw in zip(keys, found, strict=True) if isinstance(raw, bytes)}
        return {key: value for key, value in read.items() if value is not None}

    def keep(self, values: Mapping[bytes, V], owner: bytes) -> None:
        """Has values kept, beside everything else."""
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
        """Return Unix milliseconds, for whom it was computed, and the value as JSON; None for what JSON cannot hold."""
        try:
            raw = b"%d %b %b" % (self._now() * 1000, owner, orjson.dumps(value))
        except TypeError:  # a lone surrogate in a text
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
