"""Retention: delete expired and surplus exchanges, and all data about a forgotten subject.

Roll-ups of models and flags stay, since they identify no person; those of subjects are deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import ColumnElement, Select, delete, or_, select, update

from groundwire.storage.history.database import Database
from groundwire.storage.history.rollups import day_of, subject_key
from groundwire.storage.history.tables import AUDIT, EXCHANGES, ROLLUPS

_AT_ONCE = 500  # exchanges deleted in one transaction, so that others can write in between


@dataclass(frozen=True, slots=True)
class Keep:
    """The age (seconds) and the number of exchanges to keep, and the age of the audit log."""

    age: float = 30 * 86_400.0
    count: int = 1_000_000
    audit: float = 365 * 86_400.0


async def expire(database: Database, keep: Keep, now: float) -> int:
    """Delete expired and surplus data and return the number of exchanges. Raises StoreUnavailable."""
    cut = max(0.0, now - keep.age)
    deleted = await _delete(database, select(EXCHANGES.c.seq).where(EXCHANGES.c.at < cut).order_by(EXCHANGES.c.at))
    async with database.reading() as connection:
        surplus = select(EXCHANGES.c.seq).order_by(EXCHANGES.c.seq.desc()).offset(keep.count).limit(1)
        last = (await connection.execute(surplus)).scalar()
    if last is not None:
        deleted += await _delete(database, select(EXCHANGES.c.seq).where(EXCHANGES.c.seq <= last))
    async with database.changing() as connection:
        await connection.execute(delete(ROLLUPS).where(ROLLUPS.c.subject != "", ROLLUPS.c.day < day_of(cut)))
        await connection.execute(delete(AUDIT).where(AUDIT.c.at < now - keep.audit))
    return deleted


async def forget(database: Database, subject: str, tenant: str | None = None) -> tuple[str, ...]:
    """Delete all data of a tenant, or of all tenants, about a subject, and return the ids of its exchanges.

    The audit log keeps the entries about it, under a digest instead of its name. Raises StoreUnavailable.
    """
    wanted = [EXCHANGES.c.subject == subject, *([] if tenant is None else [EXCHANGES.c.tenant == tenant])]
    async with database.reading() as connection:
        ids = tuple((await connection.execute(select(EXCHANGES.c.id).where(*wanted))).scalars())
    await _delete(database, select(EXCHANGES.c.seq).where(*wanted))
    digest = "sha256:" + sha256(subject.encode()).hexdigest()[:12]
    async with database.changing() as connection:
        await connection.execute(delete(ROLLUPS).where(_figures_of(subject, tenant)))
        await connection.execute(update(AUDIT).where(AUDIT.c.subject == subject).values(subject=digest))
    await database.erase()
    return ids


def _figures_of(subject: str, tenant: str | None) -> ColumnElement[bool]:
    """Return the condition on roll-ups of a tenant's subject, or of the subject of that name of every tenant."""
    if tenant is not None:
        return ROLLUPS.c.subject == subject_key(tenant, subject)
    return or_(ROLLUPS.c.subject == subject, ROLLUPS.c.subject.endswith(f"/{subject}", autoescape=True))


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
