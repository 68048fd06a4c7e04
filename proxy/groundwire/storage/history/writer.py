"""Record exchanges in batches in the background. Exchanges that cannot be recorded are counted."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog

from groundwire.storage.history.database import Database, is_outage
from groundwire.storage.history.exchange import Content, Entry
from groundwire.storage.history.recording import record
from groundwire.storage.history.rows import Rows, rows_of

log = structlog.get_logger("groundwire.history")

_FIRST_REST_S = 0.5  # after a failure of the database; doubled up to …
_LONGEST_REST_S = 30.0
_LATELY_S = 600.0


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """The parameters of recording.

    A batch is written `interval` seconds after its first exchange arrived, or once it holds `batch` exchanges: this
    bounds the loss of a killed process while the database is available. During an outage at most `queue` exchanges, of
    `queue_size` characters in total, wait. Writing a batch may take `timeout` seconds, and so may closing.
    """

    content: Content = "full"
    interval: float = 0.5
    batch: int = 200
    queue: int = 10_000
    queue_size: int = 64 * 2**20
    timeout: float = 30.0


class Writer:
    """Receives exchanges on the event loop and writes them in a background task, in the order of arrival."""

    def __init__(self, database: Database, settings: WriterSettings) -> None:
        self._database = database
        self._settings = settings
        self._waiting: deque[Entry] = deque()
        self._size = 0
        self._came = asyncio.Event()
        self._flushing = asyncio.Event()
        self._removed = asyncio.Event()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._migrated = False
        self._has_told = False
        self.is_down = False
        self.lost = 0
        self._lost_at = -_LATELY_S
        self.written = 0

    def start(self) -> None:
        """Start writing; the tables are created first, as soon as the database can be reached."""
        self._task = asyncio.create_task(self._run())

    def put(self, entry: Entry) -> None:
        """Queue an exchange. When the queue is full, it is lost and counted in `lost`."""
        settings = self._settings
        if len(self._waiting) >= settings.queue or self._size + entry.size > settings.queue_size:
            self._lose(1, "no room")
            return
        self._waiting.append(entry)
        self._size += entry.size
        self._came.set()
        if len(self._waiting) >= settings.batch:
            self._flushing.set()

    @property
    def waiting(self) -> int:
        """The number of exchanges still to be written."""
        return len(self._waiting)

    @property
    def has_lost_lately(self) -> bool:
        """True if an exchange was lost within the last ten minutes."""
        return time.monotonic() - self._lost_at < _LATELY_S

    async def flush(self) -> bool:
        """Wait until all earlier exchanges are written, `timeout` seconds at most; False when that was not enough."""
        last = self._waiting[-1] if self._waiting else None
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.timeout):
                while self._is_waiting(last):
                    self._flushing.set()
                    await self._removed.wait()
        return not self._is_waiting(last)

    def _is_waiting(self, entry: Entry | None) -> bool:
        return any(each is entry for each in self._waiting)

    def drop(self, subject: str, tenant: str | None = None) -> None:
        """Discard pending exchanges about a subject of a tenant, or of all tenants."""
        kept = [each for each in self._waiting if each.subject != subject or tenant not in (None, each.tenant)]
        self._waiting = deque(kept)
        self._size = sum(entry.size for entry in kept)
        self._settle()

    async def close(self) -> None:
        """Write pending exchanges as far as the database and `timeout` allow; the rest is lost."""
        if self._task is None:
            return
        if not self.is_down:
            await self.flush()
        for event in (self._closing, self._came, self._flushing):
            event.set()
        await asyncio.wait({self._task}, timeout=self._settings.timeout)  # a write in progress completes
        self._task.cancel()
        if self._waiting:
            self._lose(len(self._waiting), "the process ends")

    def _lose(self, count: int, reason: str) -> None:
        self.lost += count
        self._lost_at = time.monotonic()
        if not self._has_told or self.lost % 1000 < count:  # at the first loss, then once per thousand
            log.warning("history.lost", count=count, reason=reason, lost=self.lost)
        self._has_told = True

    async def _run(self) -> None:
        rest = _FIRST_REST_S
        while not self._closing.is_set():
            try:
                await self._migrate()
                await self._write_next()
                rest = _FIRST_REST_S
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                if not self.is_down:
                    log.warning("history.down", error=type(error).__name__, cause=_cause(error), waiting=self.waiting)
                self.is_down = True
                self._migrated = False  # the database may come back without tables
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), rest)
                rest = min(2 * rest, _LONGEST_REST_S)

    async def _migrate(self) -> None:
        if not self._migrated:
            async with asyncio.timeout(self._settings.timeout):
                await self._database.migrate()
            self._up()
        self._migrated = True

    async def _write_next(self) -> None:
        """Wait for exchanges and write one batch; they stay in the queue when that fails."""
        await self._came.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(0 if self.is_down else self._settings.interval):
                await self._flushing.wait()
        batch = [self._waiting[at] for at in range(min(len(self._waiting), self._settings.batch))]
        if batch:
            rows = await asyncio.to_thread(self._rows, batch)
            await self._write(rows)
            self._up()
            if len(rows) < len(batch):
                self._lose(len(batch) - len(rows), "not to be written down")
        self._forget(batch)

    def _rows(self, batch: Sequence[Entry]) -> list[Rows]:
        """Return the rows of a batch, without exchanges that cannot be converted."""
        found: list[Rows] = []
        for entry in batch:
            try:
                found.append(rows_of(entry, self._settings.content))
            except Exception:
                log.exception("history.unreadable", grounding_id=entry.id)
        return found

    async def _write(self, rows: Sequence[Rows]) -> None:
        """Write a batch; if that fails without an outage, write one by one and discard the failing ones.

        The second attempt also resolves a conflict with a replica that wrote the same exchange at the same time.
        """
        if not rows:
            return
        try:
            await self._record(rows)
        except Exception as error:
            if is_outage(error):
                raise
            for each in rows:
                await self._write_one(each)
        else:
            self.written += len(rows)

    async def _write_one(self, rows: Rows) -> None:
        try:
            await self._record([rows])
        except Exception as error:
            if is_outage(error):
                raise
            log.warning("history.refused", grounding_id=rows.id, error=type(error).__name__, cause=_cause(error))
            self._lose(1, "refused by the database")
        else:
            self.written += 1

    async def _record(self, rows: Sequence[Rows]) -> None:
        async with asyncio.timeout(self._settings.timeout):
            await record(self._database, rows)

    def _forget(self, batch: Sequence[Entry]) -> None:
        """Remove a finished batch from the queue."""
        done = set(map(id, batch))
        while self._waiting and id(self._waiting[0]) in done:
            self._size -= self._waiting.popleft().size
        self._settle()

    def _settle(self) -> None:
        """Reset the events when there is less than a batch, or nothing, to write."""
        if len(self._waiting) < self._settings.batch:
            self._flushing.clear()
        if not self._waiting:
            self._came.clear()
        self._removed.set()
        self._removed = asyncio.Event()

    def _up(self) -> None:
        if self.is_down:
            log.info("history.up", waiting=self.waiting, lost=self.lost)
        self.is_down = False
        self._has_told = False


def _cause(error: BaseException) -> str:
    return type(getattr(error, "orig", None) or error).__name__
