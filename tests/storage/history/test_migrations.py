"""Migrations make the tables that the code defines, also when several replicas start at once."""

from __future__ import annotations

import asyncio

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, insert, inspect, text

from groundwire.storage.history.database import upgrade
from groundwire.storage.history.exchange import Query
from groundwire.storage.history.rows import rows_of
from groundwire.storage.history.tables import METADATA
from tests.servers.databases import Database
from tests.storage.history.entries import database, entry, opened, stored


def differences(connection: Connection) -> list[object]:
    """List missing and surplus parts of the tables, except those of the word index, which differ by database."""

    def is_ours(_: object, name: str | None, kind: str, *__: object) -> bool:
        return not (kind == "table" and (name or "").startswith("words"))

    context = MigrationContext.configure(connection, opts={"include_object": is_ours, "compare_server_default": True})
    found: list[object] = compare_metadata(context, METADATA)
    return found


def test_the_tables_are_those_that_the_code_knows(place: Database) -> None:
    async def work() -> None:
        found = database(place)
        await found.migrate()
        await found.migrate()
        async with found.reading() as connection:
            assert await connection.run_sync(differences) == []
        await found.close()

    asyncio.run(work())


def test_replicas_that_begin_at_once_make_the_tables_once(place: Database) -> None:
    async def replica(name: str) -> list[str]:
        async with opened(place) as history:
            await stored(history, entry(name))
            return [each.id for each in (await history.exchanges.page(Query())).items]

    async def work() -> None:
        names = {f"gw-{n}" for n in range(3)}
        found = await asyncio.gather(*map(replica, names))
        assert set.union(*map(set, found)) == names

    asyncio.run(work())


def put_at_first(connection: Connection) -> None:
    """Make the tables of the first version, with an exchange in them."""
    upgrade(connection, "0001")
    rows = rows_of(entry("gw-1", labels=("contradicted",)), "full")
    of_exchange = {"seq": 1, **rows.exchange}
    for name, row in (
        ("exchanges", of_exchange),
        ("contents", {"seq": 1, **rows.content}),
        ("findings", {"id": 1, "seq": 1, **rows.findings[0]}),
    ):
        known = {column["name"] for column in inspect(connection).get_columns(name)}
        table = METADATA.tables[name]
        connection.execute(insert(table).values({key: value for key, value in row.items() if key in known}))
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT setval(pg_get_serial_sequence('exchanges', 'seq'), 1)"))


def test_a_store_of_the_first_version_gets_what_is_new_and_keeps_what_it_has(place: Database) -> None:
    async def work() -> None:
        old = database(place)
        async with old.writing() as connection:
            if not old.is_sqlite:
                await connection.exec_driver_sql(f'CREATE SCHEMA IF NOT EXISTS "{place.schema}"')
            await connection.run_sync(put_at_first)
        await old.close()
        async with opened(place) as history:
            await stored(history, entry("gw-2"))
            assert [each.id for each in (await history.exchanges.page(Query())).items] == ["gw-2", "gw-1"]
            found = await history.exchanges.get("gw-1")
            assert found is not None
            assert (found.summary.question, found.summary.asked) == ("What did Acme earn?", None)
            (finding,) = await history.reviews.of_exchange("gw-1")
            assert finding.original_confidence is None
            for tenant, ids in (("", ["gw-2", "gw-1"]), ("app", [])):  # old exchanges have no tenant
                page = await history.exchanges.page(Query(tenant=tenant))
                assert [each.id for each in page.items] == ids

    asyncio.run(work())
