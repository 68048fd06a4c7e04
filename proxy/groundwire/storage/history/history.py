"""The history: a database with its readers and its writer, the audit log, and the task that enforces retention."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from hashlib import sha256
from typing import Literal

import structlog
from sqlalchemy import Select, delete, insert, or_, select, update

from groundwire.config.settings import Store
from groundwire.errors import StoreUnavailable
from groundwire.storage.history.database import Database
from groundwire.storage.history.exchange import Entry
from groundwire.storage.history.exchanges import Exchanges
from groundwire.storage.history.reviews import Reviews
from groundwire.storage.history.tables import AUDIT, EXCHANGES, ROLLUPS
from groundwire.storage.history.trends import Trends, day_of, subject_key
from groundwire.storage.history.writer import TIMEOUT_S, Writer

log = structlog.get_logger("groundwire.history")

_SWEEP_S = 600.0  # between two checks of retention
_AT_ONCE = 500  # exchanges deleted in one transaction, so that others can write in between

Action = Literal["read", "list", "search", "decide", "export", "forget"]


class History:
    """Exchanges in a database, which may be temporarily unavailable. `start` and `close` must run on the same loop."""

    def __init__(
        self, database: Database, settings: Store, sweep: float = _SWEEP_S, timeout: float = TIMEOUT_S
    ) -> None:
        self._database = database
        self._settings = settings
        self._sweep = sweep
        self._sweeping: asyncio.Task[None] | None = None
        self.writer = Writer(database, settings, timeout)
        self.exchanges = Exchanges(database)
        self.reviews = Reviews(database)
        self.trends = Trends(database)

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

    async def note(self, who: str, action: Action, what: str = "", subject: str | None = None) -> None:
        """Record an action of an admin in the audit log, durably once this returns; data is returned after that.

        Raises StoreUnavailable when the database cannot be reached.
        """
        entry = {"at": time.time(), "who": who, "action": action, "what": what, "subject": subject}
        async with self._database.changing() as connection:
            await connection.execute(insert(AUDIT).values(entry))

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
                deleted = await expire(self._database, self._settings, time.time())
            except StoreUnavailable as error:
                log.warning("history.sweep_failed", reason=error.operator)
            else:
                log.info("history.swept", deleted=deleted)


async def expire(database: Database, settings: Store, now: float) -> int:
    """Delete expired and surplus data and return the number of exchanges. Raises StoreUnavailable."""
    cut = max(0.0, now - settings.keep)
    deleted = await _delete(database, select(EXCHANGES.c.seq).where(EXCHANGES.c.at < cut).order_by(EXCHANGES.c.at))
    newest = select(EXCHANGES.c.seq).order_by(EXCHANGES.c.seq.desc())
    for row in await database.fetch(newest.offset(settings.keep_count).limit(1)):
        deleted += await _delete(database, select(EXCHANGES.c.seq).where(EXCHANGES.c.seq <= row["seq"]))
    async with database.changing() as connection:
        await connection.execute(delete(ROLLUPS).where(ROLLUPS.c.subject != "", ROLLUPS.c.day < day_of(cut)))
        await connection.execute(delete(AUDIT).where(AUDIT.c.at < now - settings.keep_audit))
    return deleted


async def forget(database: Database, subject: str, tenant: str | None = None) -> tuple[str, ...]:
    """Delete all data of a tenant, or of all tenants, about a subject, and return the ids of its exchanges.

    The audit log keeps the entries about it, under a digest instead of its name. Roll-ups of models and flags stay,
    since they identify no person; those of subjects are deleted. Raises StoreUnavailable.
    """
    wanted = [EXCHANGES.c.subject == subject]
    figures = or_(ROLLUPS.c.subject == subject, ROLLUPS.c.subject.endswith(f"/{subject}", autoescape=True))
    if tenant is not None:
        wanted.append(EXCHANGES.c.tenant == tenant)
        figures = ROLLUPS.c.subject == subject_key(tenant, subject)
    ids = tuple(row["id"] for row in await database.fetch(select(EXCHANGES.c.id).where(*wanted)))
    await _delete(database, select(EXCHANGES.c.seq).where(*wanted))
    digest = "sha256:" + sha256(subject.encode()).hexdigest()[:12]
    async with database.changing() as connection:
        await connection.execute(delete(ROLLUPS).where(figures))
        await connection.execute(update(AUDIT).where(AUDIT.c.subject == subject).values(subject=digest))
    await database.erase()
    return ids


async def _delete(database: Database, wanted: Select[tuple[int]]) -> int:
    """Delete exchanges and all their parts, in batches."""
    deleted = 0
    while True:
        async with database.changing() as connection:
            numbers = (await connection.execute(wanted.limit(_AT_ONCE))).scalars().all()
            if not numbers:
                return deleted
            await connection.execute(delete(EXCHANGES).where(EXCHANGES.c.seq.in_(numbers)))
        deleted += len(numbers)
