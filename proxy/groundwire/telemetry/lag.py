"""Measure the delay of the event loop, which adds to every request and stream."""

from __future__ import annotations

import asyncio

from groundwire.telemetry.metrics import Histogram

_EVERY_S = 0.5


class LoopLag:
    """Measure the lag of the running loop twice a second, from `start` to `stop`."""

    def __init__(self, into: Histogram) -> None:
        self._series = into.at(())
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start measuring the running loop."""
        self._wait(asyncio.get_running_loop())

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next = loop.call_at((due := loop.time() + _EVERY_S), self._woke, loop, due)

    def _woke(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._series.observe(max(0.0, loop.time() - due))
        self._wait(loop)

    def stop(self) -> None:
        """Stop measuring."""
        if self._next is not None:
            self._next.cancel()
