"""Record exchanges in batches in the background. Exchanges that cannot be recorded are counted.

Each batch is one transaction, together with its roll-ups. Rows are inserted by statements of one row, executed many
times. Statements of many rows would differ with every batch size, and SQLite's driver caches the last 128 of a
connection: some 60 MB.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any

import structlog
from sqlalchemy import bindparam, delete, func, insert, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from groundwire.config.settings import Store
from groundwire.storage.history.database import Database, is_outage
from groundwire.storage.history.exchange import Entry
from groundwire.storage.history.exchanges import SIMPLE, indexed_words
from groundwire.storage.history.rows import Row, Rows, flags_of, rows_of
from groundwire.storage.history.tables import (
    CONTENTS,
    COUNTERS,
    EXCHANGE_FLAGS,
    EXCHANGES,
    FINDING_FLAGS,
    FINDINGS,
    ROLLUPS,
    WORDS,
)
from groundwire.storage.history.trends import KEY, Key, contributions

log = structlog.get_logger("groundwire.history")

TIMEOUT_S = 30.0  # for writing a batch, and for closing
_FIRST_REST_S = 0.5  # after a failure of the database; doubled up to …
_LONGEST_REST_S = 30.0
_LATELY_S = 600.0


class Writer:
    """Receives exchanges on the event loop and writes them in a background task, in the order of arrival.

    A batch is written `interval` seconds after its first exchange arrived, or once it holds `batch` exchanges: this
    bounds the loss of a killed process while the database is available. During an outage at most `queue` exchanges, of
    `queue_size` characters in total, wait. Writing a batch may take `timeout` seconds, and so may closing.
    """

    def __init__(self, database: Database, settings: Store, timeout: float = TIMEOUT_S) -> None:
        self._database = database
        self._settings = settings
        self._timeout = timeout
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
            async with asyncio.timeout(self._timeout):
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
        await asyncio.wait({self._task}, timeout=self._timeout)  # a write in progress completes
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
                if not self._migrated:
                    async with asyncio.timeout(self._timeout):
                        await self._database.migrate()
                    self._up()
                self._migrated = True
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

    async def _write_next(self) -> None:
        """Wait for exchanges and write one batch; they stay in the queue when that fails."""
        await self._came.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(0 if self.is_down else self._settings.interval):
                await self._flushing.wait()
        batch = [self._waiting[at] for at in range(min(len(self._waiting), self._settings.batch))]
        if batch:
            rows = await asyncio.to_thread(self._rows, batch)
            if rows:
                await self._write(rows)
            self._up()
            if len(rows) < len(batch):
                self._lose(len(batch) - len(rows), "not to be written down")
        done = set(map(id, batch))
        while self._waiting and id(self._waiting[0]) in done:
            self._size -= self._waiting.popleft().size
        self._settle()

    def _rows(self, batch: Sequence[Entry]) -> list[Rows]:
        """Return the rows of a batch, without exchanges that cannot be converted."""
        found: list[Rows] = []
        for entry in batch:
            try:
                found.append(rows_of(entry, self._settings.content))
            except Exception:
                log.exception("history.unreadable", grounding_id=entry.id)
        return found

    async def _write(self, rows: Sequence[Rows], *, is_retry: bool = False) -> None:
        """Write a batch; if that fails without an outage, write one by one and discard the failing ones.

        The second attempt also resolves a conflict with a replica that wrote the same exchange at the same time.
        """
        try:
            async with asyncio.timeout(self._timeout):
                await record(self._database, rows)
        except Exception as error:
            if is_outage(error):
                raise
            if is_retry:
                log.warning("history.refused", grounding_id=rows[0].id, error=type(error).__name__, cause=_cause(error))
                self._lose(1, "refused by the database")
                return
            for each in rows:
                await self._write([each], is_retry=True)
        else:
            self.written += len(rows)

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


async def record(database: Database, batch: Sequence[Rows]) -> None:
    """Store a batch atomically and idempotently, replacing exchanges but not their time.

    Raises the database's errors.
    """
    latest: dict[str, Rows] = {}
    for rows in batch:
        if rows.id not in latest or _is_news(rows.exchange, latest[rows.id].exchange):
            latest[rows.id] = rows
    async with database.writing() as connection:
        found = await connection.execute(select(EXCHANGES).where(EXCHANGES.c.id.in_(list(latest))).with_for_update())
        known = {row["id"]: row for row in found.mappings()}
        new = [rows for id_, rows in latest.items() if id_ not in known]
        changed = [
            replace(rows, exchange={**rows.exchange, "at": known[id_]["at"]})
            for id_, rows in latest.items()
            if id_ in known and _is_news(rows.exchange, known[id_])
        ]
        numbers = {rows.id: known[rows.id]["seq"] for rows in changed}
        if changed:
            await _replace(connection, changed, list(numbers.values()))
        if new:
            await connection.execute(insert(EXCHANGES), [rows.exchange for rows in new])
            of_new = EXCHANGES.c.id.in_([rows.id for rows in new])
            for row in await connection.execute(select(EXCHANGES.c.id, EXCHANGES.c.seq).where(of_new)):
                numbers[row.id] = row.seq
        await _insert_parts(
            connection, [(numbers[id_], rows) for id_, rows in latest.items() if id_ in numbers], database
        )
        exchanges = (rows.exchange for rows in (*changed, *new))
        await add_to_rollups(connection, database, exchanges, [known[rows.id] for rows in changed])


def _is_news(exchange: Mapping[Any, Any], earlier: Mapping[Any, Any]) -> bool:
    return bool(exchange["status"] != "deferred" or earlier["status"] == "deferred")


async def _replace(connection: AsyncConnection, changed: Sequence[Rows], numbers: Sequence[int]) -> None:
    """Update exchanges and delete their parts, except findings with a decision."""
    undecided = FINDINGS.c.decision.is_(None)
    await connection.execute(delete(FINDINGS).where(FINDINGS.c.seq.in_(numbers), undecided))
    for table in (CONTENTS, EXCHANGE_FLAGS):
        await connection.execute(delete(table).where(table.c.seq.in_(numbers)))
    values = [{**rows.exchange, "key": rows.id} for rows in changed]
    columns = [name for name in changed[0].exchange if name != "id"]
    change = update(EXCHANGES).where(EXCHANGES.c.id == bindparam("key"))
    await connection.execute(change.values({name: bindparam(name) for name in columns}), values)


async def _insert_parts(connection: AsyncConnection, numbered: Sequence[tuple[int, Rows]], database: Database) -> None:
    if not numbered:
        return
    await connection.execute(insert(CONTENTS), [{"seq": seq, **rows.content} for seq, rows in numbered])
    if not database.is_sqlite:
        await _index_words(connection, numbered)
    if flags := [{"seq": seq, "flag": flag} for seq, rows in numbered for flag in rows.flags]:
        await connection.execute(insert(EXCHANGE_FLAGS), flags)
    if findings := [{"seq": seq, **row} for seq, rows in numbered for row in rows.findings]:
        await _insert_findings(connection, findings, database)


async def _insert_findings(connection: AsyncConnection, findings: Sequence[Row], database: Database) -> None:
    """Insert findings with their flags, except where a finding with a decision has their place."""
    places = FINDINGS.c.seq, FINDINGS.c.place
    await connection.execute(database.insert(FINDINGS).on_conflict_do_nothing(index_elements=places), findings)
    numbers = {row["seq"] for row in findings}
    stored = await connection.execute(select(FINDINGS.c.id, FINDINGS.c.flags).where(FINDINGS.c.seq.in_(numbers)))
    flags = [{"finding": id_, "flag": flag} for id_, joined in stored for flag in flags_of(joined)]
    if flags:
        await connection.execute(database.insert(FINDING_FLAGS).on_conflict_do_nothing(), flags)


async def _index_words(connection: AsyncConnection, numbered: Sequence[tuple[int, Rows]]) -> None:
    """Index words as triggers do on SQLite: words of questions (weight A) and answers (B), and keys (C)."""
    question, answer, keys = (
        func.setweight(func.to_tsvector(SIMPLE, bindparam(name)), literal_column(weight))
        for name, weight in (("question", "'A'"), ("answer", "'B'"), ("keys", "'C'"))
    )
    vector = question.op("||")(answer).op("||")(keys)
    names = ("question", "answer", "keys")
    words = [{"seq": seq, **{name: indexed_words(rows.content[name]) for name in names}} for seq, rows in numbered]
    await connection.execute(insert(WORDS).values(seq=bindparam("seq"), vector=vector), words)


async def add_to_rollups(
    connection: AsyncConnection,
    database: Database,
    added: Iterable[Mapping[Any, Any]],
    removed: Iterable[Mapping[Any, Any]] = (),
) -> None:
    """Add the contributions of exchanges and subtract those of others; both are rows of exchanges."""
    changes: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    for key, counts in chain.from_iterable(map(contributions, added)):
        changes[key].update(counts)
    for key, counts in chain.from_iterable(map(contributions, removed)):
        changes[key].subtract(counts)
    rows = [
        {**dict(zip(KEY, key, strict=True)), **{counter: change[counter] for counter in COUNTERS}}
        for key, change in sorted(changes.items())  # in one order everywhere, so that replicas do not deadlock
        if any(change.values())
    ]
    if rows:
        add = database.insert(ROLLUPS)
        summed = {counter: ROLLUPS.c[counter] + add.excluded[counter] for counter in COUNTERS}
        await connection.execute(add.on_conflict_do_update(index_elements=list(KEY), set_=summed), rows)
