"""The audit log: access to stored data, by whom and when. It contains ids and conditions, never content."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import insert, select

from groundwire.storage.history.database import Database
from groundwire.storage.history.exchange import Page
from groundwire.storage.history.tables import AUDIT

Action = Literal["read", "list", "search", "decide", "export", "forget"]


@dataclass(frozen=True, slots=True)
class Noted:
    """One entry: its time (Unix seconds), the person, the action, its object, and the subject concerned, if any."""

    at: float
    who: str
    action: Action
    what: str
    subject: str | None


class Audit:
    """The audit log in a database. Every method raises StoreUnavailable when it cannot be reached."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, who: str, action: Action, what: str = "", subject: str | None = None) -> None:
        """Record an action, durably once this returns; it must be called before the data is returned."""
        entry = {"at": time.time(), "who": who, "action": action, "what": what, "subject": subject}
        async with self._database.changing() as connection:
            await connection.execute(insert(AUDIT).values(entry))

    async def page(self, subject: str | None = None, after: int | None = None, limit: int = 100) -> Page[Noted]:
        """Return entries, newest first; with `subject`, only those about it."""
        wanted = select(AUDIT)
        if subject is not None:
            wanted = wanted.where(AUDIT.c.subject == subject)
        if after is not None:
            wanted = wanted.where(AUDIT.c.id < after)
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted.order_by(AUDIT.c.id.desc()).limit(limit + 1))).mappings().all()
        items = tuple(Noted(*(row[name] for name in Noted.__slots__)) for row in rows[:limit])
        return Page(items, rows[limit - 1]["id"] if len(rows) > limit else None)
