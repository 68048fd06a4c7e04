"""Throttle attempts to authenticate, by the address that they come from and by the key that was tried."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from hashlib import blake2b
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TypeVar

from groundwire.bounded import TTLCache
from groundwire.errors import TooManyRequests

FREE_ATTEMPTS = 5
FREE_REQUESTS = 20  # of programs, which repeat a wrong key before anybody looks
MAX_WAIT_S = 60.0
_REMEMBERED_S = 900.0
_ACCEPTED_S = 86_400.0
_MAX_REMEMBERED = 10_000

T = TypeVar("T")

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

    def authenticate(self, key: str, address: str, who: Callable[[str], T | None]) -> T | None:
        """Return whose key this is by `who`, and count it where it is nobody's. Raises TooManyRequests."""
        self.check(address, key)
        found = who(key)
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
        """Count one that failed."""
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
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        mapped = parsed.ipv4_mapped
        return str(mapped) if mapped else str(ip_network((parsed, 64), strict=False))
    return str(parsed)
