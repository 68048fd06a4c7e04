"""How late the event loop wakes up: what every stream and every request has to wait beyond its own time."""

from __future__ import annotations

import asyncio

from proxy.telemetry.metrics import Histogram

_EVERY_S = 0.5


class LoopLag:
    """Measures the lag of the running loop twice a second, from `start` to `stop`."""

    def __init__(self, into: Histogram) -> None:
        self._series = into.at(())
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begins to measure the loop that runs."""
        self._wait(asyncio.get_running_loop())

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next = loop.call_at((due := loop.time() + _EVERY_S), self._woke, loop, due)

    def _woke(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._series.observe(max(0.0, loop.time() - due))
        self._wait(loop)

    def stop(self) -> None:
        """Measures no more."""
        if self._next is not None:
            self._next.cancel()
