"""Build the stores: in memory, in Redis or in databases.

Each client library is imported only if its store is configured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from groundwire.config.stores import Cache as CacheSettings
from groundwire.config.stores import Facts, Store
from groundwire.domain import Estimate, Judgement, Probability
from groundwire.errors import ConfigError
from groundwire.gateway.models import estimate_cache
from groundwire.storage.cache import Cache, VerdictCache
from groundwire.storage.limits import LocalLimits

if TYPE_CHECKING:
    from groundwire.backends.facts import FactsDatabase
    from groundwire.storage.history.history import History
    from groundwire.storage.shared import SharedRedis, SharedValues

V = TypeVar("V")


def connect_redis(cache: CacheSettings) -> SharedRedis | None:
    """Build the client of the Redis that replicas share, if configured. Raises ConfigError for an invalid URL."""
    if cache.redis_url is None:
        return None
    from groundwire.storage.shared import SharedRedis

    try:
        return SharedRedis(cache.redis_url, cache.redis_timeout)
    except ValueError as error:
        raise ConfigError(["cache.redis_url: it is not a URL of a Redis"]) from error


def build_verdict_cache(cache: CacheSettings, shared: SharedRedis | None) -> VerdictCache:
    """Build the cache of verdicts, in this process and, if available, in Redis."""
    further = _shared_values(shared, "verdict", Judgement, cache.ttl)
    return VerdictCache(cache.max_entries, cache.ttl, further=further, max_size=cache.max_size)


def build_estimate_cache(cache: CacheSettings, ttl: float, shared: SharedRedis | None) -> Cache[Estimate]:
    """Build the cache of model estimates, in this process and, if available, in Redis."""
    further = _shared_values(shared, "estimate", Probability, ttl)
    return estimate_cache(cache.max_entries, ttl, cast("SharedValues[Estimate] | None", further), cache.max_size)


def _shared_values(shared: SharedRedis | None, kind: str, shape: type[V], ttl: float) -> SharedValues[V] | None:
    if shared is None:
        return None
    from groundwire.storage.shared import SharedValues

    return SharedValues(shared, kind, shape, ttl)


def build_limiter(shared: SharedRedis | None) -> LocalLimits:
    """Build the rate limiter of clients: for this process, or shared by all replicas."""
    if shared is None:
        return LocalLimits()
    from groundwire.storage.shared import SharedLimits

    return SharedLimits(shared)


def build_history(store: Store) -> History | None:
    """Open the database of exchanges, if configured."""
    if store.url is None:
        return None
    from groundwire.storage.history.database import Database
    from groundwire.storage.history.history import History
    from groundwire.storage.history.retention import Keep
    from groundwire.storage.history.writer import WriterSettings

    writing = WriterSettings(store.content, store.interval, store.batch, store.queue, store.queue_size)
    keep = Keep(store.keep, store.keep_count, store.keep_audit)
    return History(Database(store.url, store.database_schema), writing, keep)


def build_facts(facts: Facts) -> FactsDatabase | None:
    """Open the database of facts, if configured."""
    if facts.url is None:
        return None
    from groundwire.backends.facts import FactsDatabase

    return FactsDatabase(facts.url, facts.templates, facts.timeout, facts.max_rows)
