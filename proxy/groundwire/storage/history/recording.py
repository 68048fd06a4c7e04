"""Write exchanges: each batch in one transaction, together with its roll-ups.

Rows are inserted by statements of one row, executed many times. Statements of many rows would differ with every batch
size, and SQLite's driver caches the last 128 of a connection: some 60 MB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from groundwire.storage.history.database import Database, inserting
from groundwire.storage.history.rollups import KEY, Key, contributions
from groundwire.storage.history.rows import Row, Rows, flags_of
from groundwire.storage.history.search import SIMPLE, indexed_words
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

_NOT_FINAL = "deferred"


async def record(database: Database, batch: Sequence[Rows]) -> None:
    """Store a batch atomically and idempotently.

    Raises the database's errors.
    """
    latest = _latest(batch)
    async with database.writing() as connection:
        known = await _known(connection, list(latest))
        wanted = [_in_its_place(rows, known.get(id_)) for id_, rows in latest.items() if _is_news(rows, known.get(id_))]
        replaced = [known[rows.id] for rows in wanted if rows.id in known]
        numbers = {row["id"]: row["seq"] for row in replaced}
        if replaced:
            await _clear(connection, list(numbers.values()))
            await _update(connection, [rows for rows in wanted if rows.id in known])
        if new := [rows.exchange for rows in wanted if rows.id not in known]:
            await connection.execute(insert(EXCHANGES), new)
            numbers |= await _numbers(connection, [row["id"] for row in new])
        await _insert_parts(connection, [(numbers[rows.id], rows) for rows in wanted], database)
        await add_to_rollups(connection, database, (rows.exchange for rows in wanted), replaced)


def _latest(batch: Sequence[Rows]) -> dict[str, Rows]:
    """Return the latest version of each exchange of a batch."""
    latest: dict[str, Rows] = {}
    for rows in batch:
        earlier = latest.get(rows.id)
        if _is_news(rows, earlier.exchange if earlier else None):
            latest[rows.id] = rows
    return latest


def _is_news(rows: Rows, earlier: Mapping[Any, Any] | None) -> bool:
    return earlier is None or bool(rows.exchange["status"] != _NOT_FINAL or earlier["status"] == _NOT_FINAL)


def _in_its_place(rows: Rows, earlier: Mapping[Any, Any] | None) -> Rows:
    """Keep the time of the earlier rows that these replace."""
    return rows if earlier is None else replace(rows, exchange={**rows.exchange, "at": earlier["at"]})


async def _known(connection: AsyncConnection, ids: Sequence[str]) -> dict[str, Mapping[Any, Any]]:
    found = await connection.execute(select(EXCHANGES).where(EXCHANGES.c.id.in_(ids)).with_for_update())
    return {row["id"]: row for row in found.mappings()}


async def _numbers(connection: AsyncConnection, ids: Sequence[str]) -> dict[str, int]:
    found = await connection.execute(select(EXCHANGES.c.id, EXCHANGES.c.seq).where(EXCHANGES.c.id.in_(ids)))
    return {row.id: row.seq for row in found}


async def _clear(connection: AsyncConnection, numbers: Sequence[int]) -> None:
    """Delete the parts of exchanges, except findings with a decision."""
    undecided = FINDINGS.c.decision.is_(None)
    await connection.execute(delete(FINDINGS).where(FINDINGS.c.seq.in_(numbers), undecided))
    for table in (CONTENTS, EXCHANGE_FLAGS):
        await connection.execute(delete(table).where(table.c.seq.in_(numbers)))


async def _update(connection: AsyncConnection, changed: Sequence[Rows]) -> None:
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
    add = inserting(database)
    places = FINDINGS.c.seq, FINDINGS.c.place
    await connection.execute(add(FINDINGS).on_conflict_do_nothing(index_elements=places), findings)
    numbers = {row["seq"] for row in findings}
    stored = await connection.execute(select(FINDINGS.c.id, FINDINGS.c.flags).where(FINDINGS.c.seq.in_(numbers)))
    flags = [{"finding": id_, "flag": flag} for id_, joined in stored for flag in flags_of(joined)]
    if flags:
        await connection.execute(add(FINDING_FLAGS).on_conflict_do_nothing(), flags)


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
    changes: dict[Key, Counter[str]] = {}
    for sign, exchanges in ((1, added), (-1, removed)):
        for exchange in exchanges:
            for key, counts in contributions(exchange):
                change = changes.setdefault(key, Counter())
                for counter, count in counts.items():
                    change[counter] += sign * count
    rows = [
        {**dict(zip(KEY, key, strict=True)), **{counter: change[counter] for counter in COUNTERS}}
        for key, change in sorted(changes.items())  # in one order everywhere, so that replicas do not deadlock
        if any(change.values())
    ]
    if rows:
        add = inserting(database)(ROLLUPS)
        summed = {counter: ROLLUPS.c[counter] + add.excluded[counter] for counter in COUNTERS}
        await connection.execute(add.on_conflict_do_update(index_elements=list(KEY), set_=summed), rows)
