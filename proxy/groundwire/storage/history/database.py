"""Access to the history database: SQLite in WAL mode for one process, PostgreSQL for replicas."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, Executable, RowMapping, Select, event, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, InvalidatePoolError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from groundwire.errors import StoreUnavailable
from groundwire.storage.file import identity

_DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+psycopg"}
_CONNECT_S = 3
_POOL_S = 5.0  # for a connection to become free
_BUSY_MS = 5000  # for another process to finish writing to the same SQLite file
_PRAGMAS = (
    f"busy_timeout={_BUSY_MS}",
    "journal_mode=WAL",
    "synchronous=NORMAL",  # in WAL mode a crash of the machine may lose the last batches, but corrupts nothing
    "foreign_keys=ON",
    "secure_delete=ON",
)
_READ_S = 10.0  # for one query
_LAST_WORDS_S = 0.05
_MIGRATION_LOCK = 7_316_021  # any number, the same in every replica
_MIGRATIONS = Path(__file__).parent / "migrations"


class Database:
    """A database given by its URL, on PostgreSQL within `schema`. Connections are opened on first use.

    All failures of reading are raised as StoreUnavailable.
    """

    def __init__(self, url: str, schema: str = "groundwire") -> None:
        parsed = make_url(url)
        kind = parsed.get_backend_name()
        self.is_sqlite = kind == "sqlite"
        self.insert: Any = sqlite.insert if self.is_sqlite else postgresql.insert  # both support `ON CONFLICT`
        self._schema = schema
        connect: dict[str, Any] = {}
        if not self.is_sqlite:
            connect = {
                "connect_timeout": _CONNECT_S,
                "options": f"-csearch_path={schema}",
                "prepare_threshold": None,  # a generic plan is a bad one for most words
            }
        self._engine: AsyncEngine = create_async_engine(
            parsed.set(drivername=_DRIVERS[kind]),
            connect_args=connect,
            hide_parameters=True,
            pool_pre_ping=not self.is_sqlite,
            pool_size=5,
            pool_timeout=_POOL_S,
        )
        if self.is_sqlite:
            event.listen(self._engine.sync_engine, "connect", _prepare_sqlite)
            event.listen(self._engine.sync_engine, "begin", _begin_sqlite)
            if parsed.database:
                _watch_file(self._engine.sync_engine, Path(parsed.database))

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Open a connection for queries. Raises StoreUnavailable when the database fails or takes too long."""
        async with _converted_errors(), asyncio.timeout(_READ_S), self._engine.connect() as connection:
            yield connection

    async def fetch(self, query: Executable) -> Sequence[RowMapping]:
        """Return all rows of a query. Raises StoreUnavailable as `reading` does."""
        async with self.reading() as connection:
            rows: Sequence[RowMapping] = (await connection.execute(query)).mappings().all()
            return rows

    async def page(self, query: Select[Any], limit: int, key: str) -> tuple[Sequence[RowMapping], int | None]:
        """Return the first `limit` rows of a query, and the column `key` of the last one if others follow it."""
        rows = await self.fetch(query.limit(limit + 1))
        return rows[:limit], rows[limit - 1][key] if len(rows) > limit else None

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[AsyncConnection]:
        """Open an atomic transaction. Raises StoreUnavailable as `reading` does."""
        async with _converted_errors(), asyncio.timeout(_READ_S), self.writing() as connection:
            yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """Open an atomic transaction; errors are those of the database."""
        async with self._engine.connect() as connection:
            await connection.execution_options(is_writing=True)
            async with connection.begin():
                yield connection

    async def erase(self) -> None:
        """Overwrite the remains of deleted texts in a SQLite file. Raises StoreUnavailable as `reading` does.

        PostgreSQL does this by autovacuum.
        """
        if not self.is_sqlite:
            return
        async with _converted_errors():
            async with self.writing() as connection:
                await connection.exec_driver_sql("INSERT INTO words (words) VALUES ('optimize')")
            async with self._engine.connect() as connection:
                await connection.execution_options(has_no_transaction=True)
                await connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    async def migrate(self) -> None:
        """Create the tables, or bring them up to date. Replicas may do this concurrently."""
        async with self.writing() as connection:
            if not self.is_sqlite:
                await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _MIGRATION_LOCK})
                await connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"'))
            await connection.run_sync(upgrade)

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()
        if self.is_sqlite:  # aiosqlite's thread for a file that could not be opened reports to the loop once more
            await asyncio.sleep(_LAST_WORDS_S)


@asynccontextmanager
async def _converted_errors() -> AsyncIterator[None]:
    """Raise StoreUnavailable for failures; the operator's text names the kind, without content."""
    try:
        yield
    except (SQLAlchemyError, OSError, TimeoutError) as error:
        cause = getattr(error, "orig", None) or error
        raise StoreUnavailable(
            "What was stored cannot be reached just now. Please try again.",
            operator=f"the database failed ({type(error).__name__}: {type(cause).__name__})",
        ) from error


def is_outage(error: BaseException) -> bool:
    """Return whether the database as a whole fails (down, full, locked, slow), not just one statement."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    return isinstance(error, OSError) or type(getattr(error, "orig", None) or error).__name__ in _OUTAGES


_OUTAGES = (  # by their names in both drivers, and SQLAlchemy's for an exhausted pool
    "OperationalError",
    "DatabaseError",
    "TimeoutError",
    "InterfaceError",
    "DiskFull",
    "AdminShutdown",
    "ReadOnlySqlTransaction",
    "UndefinedTable",
    "DeadlockDetected",
    "SerializationFailure",
    "LockNotAvailable",
    "QueryCanceled",
    "InsufficientPrivilege",
)


def upgrade(connection: Connection, to: str = "head") -> None:
    """Migrate the tables to a revision."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS))
    command.upgrade(config, to)


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # else the driver would begin transactions implicitly
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _watch_file(engine: Engine, file: Path) -> None:
    """Reopen connections when `file` was deleted or replaced, so that nothing is written to an unlinked file."""

    def remember(_: Any, record: ConnectionPoolEntry) -> None:
        record.info["file"] = identity(file)

    def compare(_: Any, record: ConnectionPoolEntry, __: Any) -> None:
        if record.info["file"] != identity(file):
            raise InvalidatePoolError("the file is no longer the one that was opened")

    event.listen(engine, "connect", remember)
    event.listen(engine, "checkout", compare)


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    if not options.get("has_no_transaction"):
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("is_writing") else "BEGIN")
