"""HI1, DE2: migrations make the tables that the code knows, also when several replicas begin at once."""

from __future__ import annotations

import asyncio

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from entries import database, entry, opened, stored
from servers.databases import Database
from sqlalchemy import Connection

from proxy.stores.history.exchange import Query
from proxy.stores.history.tables import METADATA


def differences(connection: Connection) -> list[object]:
    """What the tables lack or have too much, but for those of the index of words, which each database has its own."""

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
