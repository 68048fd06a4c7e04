"""Open an estimator for each operation, with its backend, time limit and meter, over one shared cache."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from groundwire.backends.estimator import Estimator, Limits, Meter
from groundwire.domain import Claim, Estimate, Probability, Source, Unavailable
from groundwire.domain import Operation as Operation
from groundwire.storage.cache import Cache, Further
from groundwire.upstream.headers import KEYS
from groundwire.wire import Headers

_AT_ONCE = 8  # calls to model servers in flight, of all operations together
_GRACE_S = 0.05  # for those who wait for another's estimate, whose own time ends with the asking
_CREDENTIALS = KEYS | {b"openai-organization", b"openai-project"}


@dataclass(frozen=True, slots=True)
class Asker:
    """The client on whose behalf a model is called: the model requested, and the client's credentials."""

    model: str = ""
    credentials: Headers = ()

    @staticmethod
    def of(model: str, headers: Headers) -> Asker:
        """Return the asker of a request; an upstream with a configured key never receives the client's."""
        return Asker(model, tuple(pair for pair in headers if pair[0] in _CREDENTIALS))


@dataclass(frozen=True, slots=True)
class Backend:
    """An estimator for one operation, and the identity of its model."""

    estimator: Estimator
    identity: str


OpenBackend = Callable[[Asker, Limits, Meter], Backend]
"""Prepare a backend for one operation. Raises UnknownModel when no upstream serves the asker's model."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An estimator for one operation, and the meter of its cost."""

    estimator: Estimator
    meter: Meter


@dataclass(frozen=True, slots=True)
class Estimators:
    """The backends by name, and the backend of each operation; a missing operation is off.

    `timeout` is the time in seconds for all estimates of one operation.
    """

    backends: Mapping[str, OpenBackend]
    operations: Mapping[Operation, str]
    cache: Cache[Estimate]
    batch_size: int
    timeout: float
    at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    def is_on(self, operation: Operation) -> bool:
        """Return whether this operation has a backend."""
        return operation in self.operations

    def open(self, operation: Operation, asker: Asker = Asker()) -> Opened:
        """An estimator whose time begins now. Raises UnknownModel, and KeyError when the operation is off."""
        limits = Limits(self.batch_size, self.at_once, asyncio.get_running_loop().time() + self.timeout)
        meter = Meter()
        backend = self.backends[self.operations[operation]](asker, limits, meter)
        return Opened(CachedEstimator(backend, self.cache, limits.until), meter)


def estimate_cache(
    max_entries: int, ttl: float, further: Further[Estimate] | None = None, max_size: int = 64 * 2**20
) -> Cache[Estimate]:
    """Build a cache of estimates; only probabilities are stored, so that failures are retried."""
    return Cache(max_entries, ttl, _is_known, _is_known, further=further, max_size=max_size)


class CachedEstimator:
    """An estimator that caches results and shares concurrent queries."""

    def __init__(self, backend: Backend, cache: Cache[Estimate], until: float) -> None:
        self._backend = backend
        self._cache = cache
        self._until = until

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        """See `Estimator`."""
        (estimate,) = await self.batch_estimate([claim], context)
        return estimate

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        """See `Estimator`."""
        digest = await asyncio.to_thread(context_digest, context)
        keys = [estimate_key(self._backend.identity, claim, digest) for claim in claims]

        async def compute(places: Sequence[int]) -> Sequence[Estimate]:
            return await self._backend.estimator.batch_estimate([claims[place] for place in places], context)

        try:
            async with asyncio.timeout_at(self._until + _GRACE_S):
                found, _ = await self._cache.get(keys, compute)
        except TimeoutError:
            return [Unavailable("timeout")] * len(claims)
        return found


def context_digest(sources: Sequence[Source]) -> str:
    """Return a digest of the sources as shown to a model."""
    shown = [(source.id, source.title, source.sha256) for source in sources]
    return blake2b(repr(shown).encode(), digest_size=16).hexdigest()


def estimate_key(identity: str, claim: Claim, context: str) -> bytes:
    """Return the exact key of an estimate: everything that its question and its model depend on."""
    return blake2b(repr((identity, claim.text, claim.lead, context)).encode(), digest_size=16).digest()


def _is_known(estimate: Estimate) -> bool:
    return isinstance(estimate, Probability)
