"""The history as a whole: a database, those who read and change it, the writer, and the keeper of retention."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import structlog

from proxy.errors import StoreUnavailable
from proxy.stores.history.audit import Audit
from proxy.stores.history.database import Database
from proxy.stores.history.exchange import Entry
from proxy.stores.history.exchanges import Exchanges
from proxy.stores.history.retention import Keep, expire, forget
from proxy.stores.history.reviews import Reviews
from proxy.stores.history.trends import Trends
from proxy.stores.history.writer import Writer, WriterSettings

log = structlog.get_logger("groundwire.history")

_SWEEP_S = 600.0  # between two looks for what is past its time


class History:
    """What was said, in a database that may come and go. `start` and `close` belong to the loop that uses it."""

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

    def start(self) -> None:
        """Begins to write, and to delete what is past its time."""
        self.writer.start()
        self._sweeping = asyncio.create_task(self._sweep_now_and_then())

    def record(self, entry: Entry) -> None:
        """Has an exchange recorded beside everything else; it takes no time and never fails."""
        self.writer.put(entry)

    def degraded(self) -> str | None:
        """Why it works less than fully just now, if so, and how many exchanges were lost since the process began."""
        if self.writer.is_down:
            return f"unavailable; {self.writer.waiting} exchanges wait, {self.writer.lost} are lost"
        return f"{self.writer.lost} exchanges are lost" if self.writer.has_lost_lately else None

    async def forget(self, subject: str, tenant: str | None = None) -> tuple[str, ...]:
        """Deletes everything that a tenant has about a subject, or all tenants, and gives the ids of its exchanges.

        What is still to be written is included. Raises StoreUnavailable when that is not certain to have happened.
        """
        if not self.writer.is_down:
            await self.writer.flush()
        self.writer.drop(subject, tenant)
        return await forget(self._database, subject, tenant)

    async def close(self) -> None:
        """Writes what is waiting and closes the database."""
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
