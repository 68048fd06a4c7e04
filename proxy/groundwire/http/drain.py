"""Graceful shutdown: readiness fails first, then streams complete, then the server stops."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog
import uvicorn

from groundwire.http.connection import Connection
from groundwire.http.process_state import Standing

log = structlog.get_logger("groundwire.server")

_FLUSH_S = 1.0  # minimum time for finished answers to reach slow readers


@dataclass(frozen=True, slots=True)
class Drain:
    """The phases of shutdown, in seconds: requests are accepted for `delay`, then answers may continue for `limit`."""

    delay: float = 0.0
    limit: float = 30.0


class Server(uvicorn.Server):
    """uvicorn's server with a graceful shutdown by `drain` on the first SIGTERM or SIGINT, and an immediate one on the
    second.

    `hang_up` is called on SIGHUP.
    """

    def __init__(self, config: uvicorn.Config, standing: Standing, drain: Drain) -> None:
        super().__init__(config)
        self.drain = drain
        self.hang_up: Callable[[], None] | None = None
        self._standing = standing
        self._has_terminal = os.isatty(0)
        self._stopping: asyncio.Task[None] | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while serving. uvicorn would raise them again at the end, and exit with an error."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, self._asked_to_stop, each)
        if self.hang_up is not None:
            loop.add_signal_handler(signal.SIGHUP, self._hung_up, self.hang_up)
        try:
            yield
        finally:
            for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(each)

    def _hung_up(self, hang_up: Callable[[], None]) -> None:
        """Handle SIGHUP, unless the terminal was closed: then exit."""
        if self._has_terminal and not os.isatty(0):
            os._exit(128 + signal.SIGHUP)
        hang_up()

    def _asked_to_stop(self, asked: signal.Signals) -> None:
        if self._stopping is not None:
            log.warning("server.stopped_at_once", requests=self._standing.admission.active)
            os._exit(128 + asked)
        self._stopping = asyncio.get_running_loop().create_task(self.stop())

    async def stop(self) -> None:
        """Reject new requests, wait for the active ones, and shut the server down."""
        admission, drain = self._standing.admission, self.drain
        self._standing.is_draining = True
        log.info("server.draining", requests=admission.active, delay_s=drain.delay, limit_s=drain.limit)
        await asyncio.sleep(drain.delay)
        admission.close()
        until = asyncio.get_running_loop().time() + drain.limit
        try:
            async with asyncio.timeout_at(until):
                await admission.wait_until_idle()
        except TimeoutError:
            log.warning("server.cut_off", requests=admission.active)
            for connection in tuple(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.cut_off()
        rest = max(_FLUSH_S, until - asyncio.get_running_loop().time())
        self.config.timeout_graceful_shutdown = round(rest + 0.5)
        self.should_exit = True
