"""Throttle attempts to authenticate, by the address that they come from."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network

from cachetools import TTLCache

from proxy.errors import TooManyRequests

FREE_ATTEMPTS = 5
MAX_WAIT_S = 60.0
_REMEMBERED_S = 900.0
_MAX_ADDRESSES = 10_000


class FailedAttempts:
    """Count failed attempts by address: each one beyond the free ones doubles the wait for the next."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: TTLCache[str, tuple[int, float]] = TTLCache(_MAX_ADDRESSES, _REMEMBERED_S, clock)

    def check(self, address: str) -> None:
        """Raise TooManyRequests when an address has to wait."""
        _, until = self._failed.get(_network(address), (0, 0.0))
        wait = math.ceil(until - self._clock())
        if wait > 0:
            message = f"Too many wrong keys came from your address. Please try again in {wait} s."
            raise TooManyRequests(message, ((b"retry-after", b"%d" % wait),))

    def add(self, address: str) -> None:
        """Count one that failed."""
        network = _network(address)
        count = self._failed.get(network, (0, 0.0))[0] + 1
        wait = min(MAX_WAIT_S, 2.0 ** min(count - FREE_ATTEMPTS, 10)) if count >= FREE_ATTEMPTS else 0.0
        self._failed[network] = (count, self._clock() + wait)

    def forget(self, address: str) -> None:
        """Forget the failures of an address."""
        self._failed.pop(_network(address), None)


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
