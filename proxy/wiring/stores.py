"""Builds what is kept, in memory, in Redis or in databases. A library is loaded only for those who name its store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.config import Settings
from proxy.config.stores import Cache as CacheSettings
from proxy.config.stores import Facts, Store
from proxy.errors import ConfigError
from proxy.gateway.estimators import estimate_cache
from proxy.stores.cache import Cache
from proxy.stores.limits import Limiter, LocalLimits
from proxy.stores.verdicts import VerdictCache
from proxy.types import Estimate, Judgement, Probability

if TYPE_CHECKING:
    from proxy.evidence.facts import FactsDatabase
    from proxy.stores.history.history import History
    from proxy.stores.shared.redis import SharedRedis


def connect_redis(cache: CacheSettings) -> SharedRedis | None:
    """What replicas share, where a Redis is named."""
    if cache.redis_url is None:
        return None
    from proxy.stores.shared.redis import SharedRedis

    try:
        return SharedRedis(cache.redis_url, cache.redis_timeout)
    except ValueError as error:
        raise ConfigError(["cache.redis_url: it is not a URL of a Redis"]) from error


def build_verdict_cache(settings: Settings, shared: SharedRedis | None) -> VerdictCache:
    """Where verdicts are kept, in this process and, where there is one, in the Redis."""
    entries, ttl = settings.cache.max_entries, settings.cache.ttl
    if shared is None:
        return VerdictCache(entries, ttl)
    from proxy.stores.shared.values import SharedValues

    return VerdictCache(entries, ttl, further=SharedValues(shared, "verdict", Judgement, ttl))


def build_estimate_cache(settings: Settings, shared: SharedRedis | None) -> Cache[Estimate]:
    """Where a model's estimates are kept, likewise."""
    entries, ttl = settings.cache.max_entries, settings.hallucination.cache_ttl
    if shared is None:
        return estimate_cache(entries, ttl)
    from proxy.stores.shared.values import SharedValues

    return estimate_cache(entries, ttl, SharedValues[Estimate](shared, "estimate", Probability, ttl))


def build_limiter(shared: SharedRedis | None) -> Limiter:
    """Who gives turns to clients: this process alone, or all replicas together."""
    if shared is None:
        return LocalLimits()
    from proxy.stores.shared.limits import SharedLimits

    return SharedLimits(shared, LocalLimits())


def build_history(store: Store) -> History | None:
    """What was said, in a database, where one is named."""
    if store.url is None:
        return None
    from proxy.stores.history.database import Database
    from proxy.stores.history.history import History
    from proxy.stores.history.retention import Keep
    from proxy.stores.history.writer import WriterSettings

    writing = WriterSettings(store.content, store.interval, store.batch, store.queue, store.queue_size)
    keep = Keep(store.keep, store.keep_count, store.keep_audit)
    return History(Database(store.url, store.database_schema), writing, keep)


def build_facts(facts: Facts) -> FactsDatabase | None:
    """The database that is asked for values, where there is one."""
    if facts.url is None:
        return None
    from proxy.evidence.facts import FactsDatabase, Template

    templates = [Template(name, sql) for name, sql in facts.templates.items()]
    return FactsDatabase(facts.url, templates, facts.timeout, facts.max_rows)
