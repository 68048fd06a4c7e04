"""Finds exchanges that are stored: one by its id, pages of them by what they have in common, and similar questions."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import ColumnElement, Select, column, func, literal, literal_column, select, table

from proxy.stores.history.database import Database
from proxy.stores.history.exchange import Page, Query, Similar, Stored, Summary
from proxy.stores.history.rows import stored_of, summary_of
from proxy.stores.history.search import SIMPLE, Search, key, narrowing, search_for, similarity, words_of
from proxy.stores.history.tables import CONTENTS, EXCHANGE_FLAGS, EXCHANGES, WORDS, answered_between

_CANDIDATES = 200  # questions that are compared, for each search that looks for similar ones
_LOOK_S = 0.25  # after which no further search is begun
_LIKE = 0.3  # the least similarity that is told
_MATCH = table("words", column("rowid"))  # SQLite's FTS5 table, of which each row is that of an exchange

_LISTED = select(EXCHANGES, CONTENTS.c.question, CONTENTS.c.answer, CONTENTS.c.asked).join(
    CONTENTS, CONTENTS.c.seq == EXCHANGES.c.seq
)


class Exchanges:
    """The exchanges in a database. Every method raises StoreUnavailable when it cannot be read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, id_: str, tenant: str | None = None) -> Stored | None:
        """Everything that is kept of an exchange, or None when there is none (any more) under this id.

        With `tenant`, only of one that is the tenant's.
        """
        wanted = _LISTED.add_columns(CONTENTS.c.packed).where(EXCHANGES.c.id == id_, *_of(tenant))
        async with self._database.reading() as connection:
            row = (await connection.execute(wanted)).mappings().first()
        return stored_of(row) if row else None

    async def page(self, query: Query, after: int | None = None, limit: int = 50) -> Page[Summary]:
        """The exchanges that a query asks for, newest first; `after` is that of the page before."""
        rows, next_ = await self._rows(query, after, limit)
        return Page(tuple(summary_of(row) for row in rows), next_)

    async def similar(
        self, question: str, subject: str | None = None, limit: int = 10, tenant: str | None = None
    ) -> tuple[Similar, ...]:
        """Earlier exchanges whose questions share the most words with this one, the most similar first.

        Of those that share its longest words, the newest are compared, for a quarter of a second at most: what is found
        by then is told. Nothing is found where no content is kept.
        """
        until = time.monotonic() + _LOOK_S
        words = words_of(question)
        found: dict[str, Similar] = {}
        async with self._database.reading() as connection:
            for search in narrowing(question, () if subject is None else (key("subject", subject),)):
                wanted, order = self._found_by(search)
                wanted = wanted.where(*_of(tenant))
                for row in (await connection.execute(wanted.order_by(order.desc()).limit(_CANDIDATES))).mappings():
                    alike = similarity(words, words_of(row["asked"] or row["question"] or ""))
                    if alike >= _LIKE:
                        found[row["id"]] = Similar(summary_of(row), alike)
                if len(found) >= limit or time.monotonic() > until:
                    break
        return tuple(sorted(found.values(), key=lambda each: (-each.similarity, -each.exchange.seq))[:limit])

    async def _rows(self, query: Query, after: int | None, limit: int) -> tuple[list[Any], int | None]:
        """Up to `limit` rows, and from where to go on."""
        matching = self._matching(query)
        if matching is None:
            return [], None
        wanted, order = matching
        wanted = wanted.where(*_of(query.tenant))
        if query.until is not None and order is EXCHANGES.c.seq:
            wanted = wanted.where(order.in_(_of_time(query, after, limit + 1)))
        else:
            wanted = wanted.where(*answered_between(query.since, query.until))
        if after is not None:
            wanted = wanted.where(order < after, CONTENTS.c.seq < after)  # the latter tells a merge where to begin
        async with self._database.reading() as connection:
            found = await connection.execute(wanted.order_by(order.desc()).limit(limit + 1))
            rows = list(found.mappings())
        return rows[:limit], rows[limit - 1]["seq"] if len(rows) > limit else None

    def _matching(self, query: Query) -> tuple[Select[Any], Any] | None:
        """What finds the exchanges of a query, with the number to order by; None when nothing can be found."""
        given = _given(query)
        if query.text or len(given) > 1:
            search = search_for(query.text, (key(name, value) for name, value in given.items()))
            return None if search is None else self._found_by(search)
        if query.flag is not None:
            flagged = _LISTED.join(EXCHANGE_FLAGS, EXCHANGE_FLAGS.c.seq == EXCHANGES.c.seq)
            return flagged.where(EXCHANGE_FLAGS.c.flag == query.flag), EXCHANGE_FLAGS.c.seq
        return _LISTED.where(*_named(query)), EXCHANGES.c.seq

    def _found_by(self, search: Search) -> tuple[Select[Any], Any]:
        """What a search finds in the index of words."""
        if not self._database.is_sqlite:
            matches = WORDS.c.vector.op("@@")(func.to_tsquery(SIMPLE, search.as_tsquery()))
            return _LISTED.join(WORDS, WORDS.c.seq == EXCHANGES.c.seq).where(matches), WORDS.c.seq
        matches = literal_column("words").op("MATCH")(literal(search.as_fts5()))
        return _LISTED.join(_MATCH, _MATCH.c.rowid == EXCHANGES.c.seq).where(matches), _MATCH.c.rowid


def _given(query: Query) -> dict[str, str]:
    """What a query names."""
    named = {name: getattr(query, name) for name in ("subject", "session", "model", "flag")}
    return {name: value for name, value in named.items() if value is not None}


def _named(query: Query) -> list[ColumnElement[bool]]:
    return [EXCHANGES.c[name] == value for name, value in _given(query).items()]


def _of(tenant: str | None) -> list[ColumnElement[bool]]:
    """Return the condition on an exchange that it is a tenant's; none at all for None."""
    return [] if tenant is None else [EXCHANGES.c.tenant == tenant]


def _of_time(query: Query, after: int | None, limit: int) -> Select[tuple[int]]:
    """The numbers of exchanges that end with some time, looked up by it: walking back to it may take as long as it is.

    That no index gives this order keeps databases from walking back all the same.
    """
    found = select(EXCHANGES.c.seq).where(
        *_named(query), *_of(query.tenant), *answered_between(query.since, query.until)
    )
    if after is not None:
        found = found.where(EXCHANGES.c.seq < after)
    return found.order_by((EXCHANGES.c.seq + 0).desc()).limit(limit)
