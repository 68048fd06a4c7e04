"""The history: a database with its readers, the writer, and the task that enforces retention."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import structlog

from groundwire.errors import StoreUnavailable
from groundwire.storage.history.audit import Audit
from groundwire.storage.history.database import Database
from groundwire.storage.history.exchange import Entry
from groundwire.storage.history.exchanges import Exchanges
from groundwire.storage.history.retention import Keep, expire, forget
from groundwire.storage.history.reviews import Reviews
from groundwire.storage.history.trends import Trends
from groundwire.storage.history.writer import Writer, WriterSettings

log = structlog.get_logger("groundwire.history")

_SWEEP_S = 600.0  # between two checks of retention


class History:
    """Exchanges in a database, which may be temporarily unavailable. `start` and `close` must run on the same loop."""

    def __init__(self, database: Database, writing: WriterSettings, keep: Keep, sweep: float = _SWEEP_S) -> None:
        self._database = database
        self._keep = keep
        self._sweep = sweep
        self._sweeping: asyncio.Task[None] | None = None
        self.writer = Writer(database, writing)
        self.exchanges = Exchanges(database)
        self.reviews = Reviews(database)
        self.trends = Trends(database)
        self.audit = Audit(database)

    async def check(self) -> None:
        """Query the database for nothing. Raises StoreUnavailable when it does not answer."""
        async with self._database.reading() as connection:
            await connection.exec_driver_sql("SELECT 1")

    def start(self) -> None:
        """Start writing, and deleting expired data."""
        self.writer.start()
        self._sweeping = asyncio.create_task(self._sweep_now_and_then())

    def record(self, entry: Entry) -> None:
        """Queue an exchange for recording in the background; never fails."""
        self.writer.put(entry)

    async def flush(self) -> bool:
        """Write pending exchanges now; False when the database does not take them."""
        return not self.writer.is_down and await self.writer.flush()

    def degraded(self) -> str | None:
        """Return the reason for a degraded state, if any, and the number of exchanges lost since the start."""
        if self.writer.is_down:
            return f"unavailable; {self.writer.waiting} exchanges wait, {self.writer.lost} are lost"
        return f"{self.writer.lost} exchanges are lost" if self.writer.has_lost_lately else None

    async def forget(self, subject: str, tenant: str | None = None) -> tuple[str, ...]:
        """Delete all data of a tenant, or of all tenants, about a subject, and return the ids of its exchanges.

        Pending exchanges are included. Raises StoreUnavailable when complete deletion is not certain.
        """
        await self.flush()
        self.writer.drop(subject, tenant)
        return await forget(self._database, subject, tenant)

    async def close(self) -> None:
        """Write pending exchanges and close the database."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeping
        await self.writer.close()
        await self._database.close()

    async def _sweep_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._sweep)
            try:
                deleted = await expire(self._database, self._keep, time.time())
            except StoreUnavailable as error:
                log.warning("history.sweep_failed", reason=error.operator)
            else:
                log.info("history.swept", deleted=deleted)
