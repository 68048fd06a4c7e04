"""Query the user's database for facts: named, parameterised, read-only queries with limits on time and rows.

PostgreSQL and SQLite. Failures are returned as values: no answer waits for a database, or is doubted because of one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import structlog
from sqlalchemy import URL, RowMapping, TextClause, make_url, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from groundwire.domain import Source
from groundwire.verifiers.numbers.facts import Period, Value, facts_source

Reason = Literal[
    "missing_parameter", "bad_parameter", "timeout", "error", "bad_columns", "not_a_number", "no_row", "row_limit"
]

log = structlog.get_logger("groundwire.facts")

TENANT = "groundwire_tenant"
_CONNECT_S = 3
_LOOK_EVERY = 1000  # instructions of SQLite's virtual machine between two checks of the time
_GRACE_S = 0.5  # extra time for a server to stop a statement


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A failure of a query and its reason; with `row_limit` and `not_a_number` the other rows are still used."""

    template: str
    reason: Reason
    detail: str = ""

    def __str__(self) -> str:
        return f"facts.{self.template}: {self.reason}{f' ({self.detail})' if self.detail else ''}"


@dataclass(frozen=True, slots=True)
class Facts:
    """The result of the queries: a source for each (without text if it returned no values), failures, and unused
    parameters.
    """

    sources: tuple[Source, ...] = ()
    shortfalls: tuple[Shortfall, ...] = ()
    unknown: tuple[str, ...] = ()


class FactsDatabase:
    """Queries to one database. Connections are opened on first use; `close` closes them all.

    `templates` are SQL by name; `:name` in it is a parameter. Each returns a row for each value, with columns `label`
    and `value` and optionally `unit` and `period`; or a row for each period, with `label`, `start` and `end`.
    """

    def __init__(self, url: str, templates: Mapping[str, str], timeout_s: float = 2.0, max_rows: int = 500) -> None:
        parsed = make_url(url)
        self._is_sqlite = parsed.get_backend_name() == "sqlite"
        self._file = Path(parsed.database or "") if self._is_sqlite else None
        self._queries = {name: text(sql) for name, sql in templates.items()}
        self._timeout_s, self._max_rows = timeout_s, max_rows
        self._engine = create_async_engine(
            _read_only_sqlite(parsed) if self._is_sqlite else parsed.set(drivername="postgresql+psycopg"),
            connect_args={} if self._is_sqlite else _read_only_session(timeout_s),
            hide_parameters=True,
            pool_pre_ping=not self._is_sqlite,
        )

    async def ask(self, parameters: Mapping[str, object], tenant: str = "") -> Facts:
        """Run one query for each template whose parameters are all given, concurrently.

        A template with only some parameters given is reported as lacking the others. In a template,
        `:groundwire_tenant` is the tenant's name, which no request can set. Raises nothing but cancellation.
        """
        given = {**parameters, TENANT: tenant}
        found = await asyncio.gather(
            *(self._ask(name, query, given) for name, query in self._queries.items() if _is_meant(query, parameters))
        )
        sources = tuple(source for name, values, shortfalls in found for source in _sources(name, values, shortfalls))
        taken = {each for query in self._queries.values() for each in _parameters(query)} - {TENANT}
        return Facts(
            sources,
            tuple(each for _, _, shortfalls in found for each in shortfalls),
            tuple(each for each in parameters if each not in taken),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()

    async def _ask(
        self, name: str, query: TextClause, parameters: Mapping[str, object]
    ) -> tuple[str, list[Value | Period], list[Shortfall]]:
        wanted = _parameters(query)
        if missing := [each for each in wanted if each not in parameters]:
            return name, [], [Shortfall(name, "missing_parameter", ", ".join(missing))]
        if bad := [each for each in wanted if not isinstance(parameters[each], str | int | float | None)]:
            return name, [], [Shortfall(name, "bad_parameter", ", ".join(bad))]
        try:
            async with asyncio.timeout(self._timeout_s + _GRACE_S):
                rows = await self._rows(query, {each: parameters[each] for each in wanted})
        except (SQLAlchemyError, OSError, TimeoutError, OverflowError) as error:
            return name, [], [self._failed(name, error)]
        return name, *_read(name, rows[: self._max_rows], len(rows) > self._max_rows)

    async def _rows(self, query: TextClause, parameters: Mapping[str, object]) -> Sequence[RowMapping]:
        """Return the rows, at most one more than the limit."""
        if self._file and not await asyncio.to_thread(self._file.is_file):
            raise FileNotFoundError(self._file)
        timeout_s = self._timeout_s if self._is_sqlite else None
        async with self._engine.connect() as connection, _sqlite_limit(connection, timeout_s):
            result = await connection.stream(query, parameters)
            return await result.mappings().fetchmany(self._max_rows + 1)

    def _failed(self, name: str, error: Exception) -> Shortfall:
        cause = getattr(error, "orig", None) or error
        is_late = (
            isinstance(error, TimeoutError) or type(cause).__name__ == "QueryCanceled" or "interrupted" in str(cause)
        )
        log.warning("facts.failed", template=name, error=type(cause).__name__, is_late=is_late)
        return Shortfall(name, "timeout" if is_late else "error", "" if is_late else type(cause).__name__)


@asynccontextmanager
async def _sqlite_limit(connection: AsyncConnection, timeout_s: float | None) -> AsyncIterator[None]:
    """Limit the time of the statements of a SQLite connection, which has no built-in limit; None for no limit."""
    if timeout_s is None:
        yield
        return

    async def watch(is_over: Callable[[], int] | None) -> None:
        driver = (await connection.get_raw_connection()).driver_connection
        if driver is not None:
            await driver.set_progress_handler(is_over, _LOOK_EVERY)

    deadline = time.monotonic() + timeout_s
    await watch(lambda: int(time.monotonic() > deadline))
    try:
        yield
    finally:
        with suppress(SQLAlchemyError):
            await watch(None)


def _read_only_sqlite(url: URL) -> URL:
    """Return a URL that opens the file read-only and never creates it."""
    file = f"file:{quote(url.database or '')}"
    return url.set(drivername="sqlite+aiosqlite", database=file, query={"mode": "ro", "uri": "true"})


def _read_only_session(timeout_s: float) -> dict[str, Any]:
    """Return the session settings for PostgreSQL: read-only transactions with a statement time-out."""
    limit = max(1, round(timeout_s * 1000))
    options = f"-c default_transaction_read_only=on -c statement_timeout={limit} -c lock_timeout={limit}"
    return {"connect_timeout": _CONNECT_S, "options": options}


def _parameters(query: TextClause) -> list[str]:
    return sorted(query.compile().params)


def _is_meant(query: TextClause, parameters: Mapping[str, object]) -> bool:
    """Return whether a request with these parameters refers to this query: one of its parameters is given, or it has
    none.
    """
    wanted = [each for each in _parameters(query) if each != TENANT]
    return not wanted or any(each in parameters for each in wanted)


def _sources(name: str, values: Sequence[Value | Period], shortfalls: Sequence[Shortfall]) -> tuple[Source, ...]:
    """Return the result of a query as a source; rows beyond the limit are represented by another one, without text."""
    is_cut = any(each.reason == "row_limit" for each in shortfalls)
    return (facts_source(name, values), *((facts_source(f"{name}.rest", ()),) if is_cut else ()))


def _read(name: str, rows: Sequence[RowMapping], is_cut: bool) -> tuple[list[Value | Period], list[Shortfall]]:
    """Return the values of rows, and the parts that could not be read."""
    if not rows:
        return [], [Shortfall(name, "no_row")]
    shortfalls = [Shortfall(name, "row_limit", f"only {len(rows)} rows were read")] if is_cut else []
    columns = set(rows[0])
    if {"label", "start", "end"} <= columns:
        return [period for row in rows if (period := _row_period(row))], shortfalls
    if not {"label", "value"} <= columns:
        return [], [*shortfalls, Shortfall(name, "bad_columns", ", ".join(map(str, rows[0])))]
    values: list[Value | Period] = []
    odd = 0
    for row in rows:
        if row["label"] is None:
            continue
        written = None if row["value"] is None else _written(row["value"])
        odd += written is None and row["value"] is not None
        values.append(Value(str(row["label"]), written, str(row.get("unit") or ""), _period(row.get("period"))))
    return values, [*shortfalls, *([Shortfall(name, "not_a_number", f"{odd} rows")] if odd else [])]


def _row_period(row: RowMapping) -> Period | None:
    label, start, end = (row[name] for name in ("label", "start", "end"))
    return None if None in (label, start, end) else Period(str(label), _period(start), _period(end))


def _written(value: object) -> str | None:
    """Format a number or a date as text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, date):
        return value.isoformat()[:10]
    try:
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return f"{number:f}" if number.is_finite() else None


def _period(value: object) -> str:
    return "" if value is None else value.isoformat()[:10] if isinstance(value, date) else str(value)
