"""Deferred work for the event loop: stored durably before it is promised, and never blocking an answer."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import structlog

from groundwire.config.settings import Jobs as JobSettings
from groundwire.errors import JobsUnavailable
from groundwire.storage.transact import Interrupted, Outcome, Transact, Work

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger("groundwire.jobs")

_PAUSE_S = 5.0  # pause after a failure of the database
_MAX_PAUSE_S = 60.0  # between two attempts to reach the database
_SWEEP_S = 5.0  # between two checks for dead processes and old jobs
_TIMEOUT_S = 1.0  # for storing a job, before it counts as lost
_START_S = 10.0  # for reaching it before the first job arrives


class Jobs:
    """The jobs of several kinds of work, one `Jobs` per process. Used from the event loop that starts it.

    Every `run` is called on that loop. A database that is down blocks nothing: `defer` then fails at once, lost jobs
    are counted in `lost`, and the connection is retried in the background. `waiting` is the number of unfinished jobs
    of each kind at the last sweep.
    """

    def __init__(
        self, settings: JobSettings, work: Sequence[Work], *, sweep: float = _SWEEP_S, timeout: float = _TIMEOUT_S
    ) -> None:
        assert settings.url is not None  # noqa: S101 - without a database there are no jobs
        self._settings = settings
        self._sweep = sweep
        self._timeout = timeout
        self._transact = Transact(settings.url, settings, work, self._run)
        self._runs = {each.kind: each for each in work}
        self._threads = concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="groundwire-jobs")
        self._maintenance = threading.Thread(target=self._maintain, name="groundwire-jobs-keeper", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tried = threading.Event()
        self._reached = threading.Event()
        self._closing = threading.Event()
        self._running: set[concurrent.futures.Future[bytes]] = set()
        self._paused_until = 0.0
        self.lost = 0
        self.waiting = dict.fromkeys((each.kind for each in work), 0)

    def begin(self, work: Sequence[Work]) -> None:
        """Run jobs with these functions from now on. The kinds, and the number of attempts, do not change."""
        self._runs = {each.kind: each for each in work}

    async def start(self) -> None:
        """Start processing jobs, including those of an earlier process. Returns also when the database is down."""
        self._loop = asyncio.get_running_loop()
        self._maintenance.start()
        await asyncio.to_thread(self._tried.wait, _START_S)

    @property
    def is_down(self) -> bool:
        """True if no job can be stored now."""
        is_paused = time.monotonic() < self._paused_until
        return not self._reached.is_set() or is_paused or self._transact.is_gone()

    async def defer(self, kind: str, id_: str, payload: bytes, tenant: str = "", after: float | None = None) -> None:
        """Store a job of a tenant, durably once this returns; an existing kind and id is left unchanged.

        The first attempt is made after `after` seconds, an hour at most. Raises JobsUnavailable, after `timeout` at
        the latest, when the job may not have been stored.
        """
        try:
            if len(payload) > self._settings.max_payload:
                raise JobsUnavailable("the job is too large to be kept")
            await self._call(self._transact.enqueue, kind, id_, payload, tenant, after)
        except JobsUnavailable as error:
            self.lost += 1
            log.warning("jobs.lost", kind=kind, id=id_, bytes=len(payload), reason=error.operator, lost=self.lost)
            raise

    async def result(self, kind: str, id_: str, tenant: str = "") -> Outcome:
        """Return the state of a tenant's job. Raises JobsUnavailable when it cannot be read now."""
        return await self._call(self._transact.outcome, kind, id_, tenant)

    async def close(self) -> None:
        """Stop accepting jobs, let running ones finish within `drain`, and leave the others to the next process."""
        self._closing.set()
        interruption = asyncio.get_running_loop().call_later(self._settings.drain, self._interrupt)
        try:
            if self._maintenance.ident is not None:
                await asyncio.to_thread(self._maintenance.join, _START_S)
            if self._reached.is_set():
                await asyncio.to_thread(self._transact.close, self._settings.drain if self._running else 0.0)
        finally:
            interruption.cancel()
            self._interrupt()
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _call(self, ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the database in a thread and wait for it at most `timeout`."""
        if self.is_down:
            raise JobsUnavailable("the jobs database cannot be reached")
        future = self._threads.submit(ask, *args, **kwargs)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._timeout)
        except Exception as error:
            self._paused_until = time.monotonic() + _PAUSE_S
            operator = f"the jobs database failed ({type(error).__name__})"
            raise JobsUnavailable("the jobs database cannot be reached", operator=operator) from error

    def _run(self, work: Work, id_: str, payload: bytes) -> bytes:
        """Run a job on the event loop, called from another thread. Raises the job's exceptions, and Interrupted."""
        loop = self._loop
        if loop is None or self._closing.is_set():
            raise Interrupted
        future = asyncio.run_coroutine_threadsafe(_bounded(self._runs.get(work.kind, work), id_, payload), loop)
        self._running.add(future)
        try:
            return future.result()
        except concurrent.futures.CancelledError as error:
            raise Interrupted from error
        finally:
            self._running.discard(future)

    def _interrupt(self) -> None:
        for future in tuple(self._running):
            future.cancel()

    # --- in a separate thread -----------------------------------------------------------------------------------------

    def _maintain(self) -> None:
        """Connect to the database, however long that takes, and then sweep it periodically."""
        pause = 1.0
        while not self._closing.is_set():
            try:
                self._transact.launch()
                self._reached.set()
                break
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                log.warning("jobs.unreachable", error=type(error).__name__, again_in_s=pause)
                self._tried.set()
                self._closing.wait(pause)
                pause = min(2 * pause, _MAX_PAUSE_S)
        self._tried.set()
        while not self._closing.wait(self._sweep):
            try:
                self._transact.sweep()
                self.waiting = self._transact.waiting()
            except Exception as error:  # noqa: BLE001 - the next sweep makes up for it
                log.warning("jobs.sweep_failed", error=type(error).__name__)


async def _bounded(work: Work, id_: str, payload: bytes) -> bytes:
    async with asyncio.timeout(work.timeout):
        return await work.run(id_, payload)
