"""Find stored exchanges: one by its id, pages by their properties, and similar questions."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import ColumnElement, Select, column, func, literal, literal_column, select, table, tuple_

from groundwire.features.consistency import EarlierAnswer
from groundwire.storage.history.database import Database
from groundwire.storage.history.exchange import Page, Query, Similar, Stored, Summary
from groundwire.storage.history.rows import stored_of, summary_of
from groundwire.storage.history.search import SIMPLE, Search, key, narrowing, search_for, similarity, words_of
from groundwire.storage.history.tables import (
    CONTENTS,
    EXCHANGE_FLAGS,
    EXCHANGES,
    FINDINGS,
    WORDS,
    answered_between,
)

_CANDIDATES = 200  # candidates compared in each search for similar questions
_LOOK_S = 0.25  # after which no further search begins
_LIKE = 0.3  # the least similarity reported
_MATCH = table("words", column("rowid"))  # SQLite's FTS5 table; each row belongs to an exchange

_LISTED = select(EXCHANGES, CONTENTS.c.question, CONTENTS.c.answer, CONTENTS.c.asked).join(
    CONTENTS, CONTENTS.c.seq == EXCHANGES.c.seq
)


class Exchanges:
    """The exchanges in a database. Every method raises StoreUnavailable when it cannot be read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, id_: str, tenant: str | None = None) -> Stored | None:
        """Return a stored exchange, or None if no exchange has this id.

        With `tenant`, only one that belongs to the tenant.
        """
        wanted = _LISTED.add_columns(CONTENTS.c.packed).where(EXCHANGES.c.id == id_, *_of(tenant))
        async with self._database.reading() as connection:
            row = (await connection.execute(wanted)).mappings().first()
        return stored_of(row) if row else None

    async def page(self, query: Query, after: int | None = None, limit: int = 50) -> Page[Summary]:
        """Return the exchanges of a query in its order; `after` is that of the preceding page."""
        rows, next_ = await self._rows(query, after, limit)
        return Page(tuple(summary_of(row) for row in rows), next_)

    async def earlier(self, subject: str, tenant: str | None, limit: int) -> tuple[EarlierAnswer, ...]:
        """Return the newest answers about a subject, of a tenant or of all; none where their texts are not stored."""
        page = await self.page(Query(subject=subject, tenant=tenant), limit=limit)
        return tuple(
            EarlierAnswer(each.id, each.at, each.answer, each.asked or each.question or "")
            for each in page.items
            if each.answer
        )

    async def similar(
        self, question: str, subject: str | None = None, limit: int = 10, tenant: str | None = None
    ) -> tuple[Similar, ...]:
        """Return earlier exchanges whose questions share the most words with this one, the most similar first.

        Of those that share its longest words, the newest are compared, for a quarter of a second at most. Nothing is
        found if no content is stored.
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
        """Return up to `limit` rows, and the `after` of the next page."""
        matching = self._matching(query)
        if matching is None:
            return [], None
        wanted, order = matching
        wanted = wanted.where(*_of(query.tenant), *_reviewed(query))
        if query.by_risk:
            wanted = wanted.where(EXCHANGES.c.risk.is_not(None), *answered_between(query.since, query.until))
            return await self._read(wanted.where(*_below(after)), EXCHANGES.c.risk, limit)
        if query.until is not None and order is EXCHANGES.c.seq:
            wanted = wanted.where(order.in_(_of_time(query, after, limit + 1)))
        else:
            wanted = wanted.where(*answered_between(query.since, query.until))
        if after is not None:
            wanted = wanted.where(order < after, CONTENTS.c.seq < after)  # the latter starts a merge
        return await self._read(wanted, order, limit)

    async def _read(self, wanted: Select[Any], order: Any, limit: int) -> tuple[list[Any], int | None]:
        orders = (order.desc(), EXCHANGES.c.seq.desc()) if order is EXCHANGES.c.risk else (order.desc(),)
        async with self._database.reading() as connection:
            found = await connection.execute(wanted.order_by(*orders).limit(limit + 1))
            rows = list(found.mappings())
        return rows[:limit], rows[limit - 1]["seq"] if len(rows) > limit else None

    def _matching(self, query: Query) -> tuple[Select[Any], Any] | None:
        """Return the statement for a query and the column to order by; None when nothing can match."""
        given = _given(query)
        if query.text or len(given) > 1:
            search = search_for(query.text, (key(name, value) for name, value in given.items()))
            return None if search is None else self._found_by(search)
        if query.flag is not None:
            flagged = _LISTED.join(EXCHANGE_FLAGS, EXCHANGE_FLAGS.c.seq == EXCHANGES.c.seq)
            return flagged.where(EXCHANGE_FLAGS.c.flag == query.flag), EXCHANGE_FLAGS.c.seq
        return _LISTED.where(*_named(query)), EXCHANGES.c.seq

    def _found_by(self, search: Search) -> tuple[Select[Any], Any]:
        """Return the statement for a search in the index of words."""
        if not self._database.is_sqlite:
            matches = WORDS.c.vector.op("@@")(func.to_tsquery(SIMPLE, search.as_tsquery()))
            return _LISTED.join(WORDS, WORDS.c.seq == EXCHANGES.c.seq).where(matches), WORDS.c.seq
        matches = literal_column("words").op("MATCH")(literal(search.as_fts5()))
        return _LISTED.join(_MATCH, _MATCH.c.rowid == EXCHANGES.c.seq).where(matches), _MATCH.c.rowid


def _given(query: Query) -> dict[str, str]:
    """Return the properties that a query sets."""
    named = {name: getattr(query, name) for name in ("subject", "session", "model", "flag")}
    return {name: value for name, value in named.items() if value is not None}


def _named(query: Query) -> list[ColumnElement[bool]]:
    return [EXCHANGES.c[name] == value for name, value in _given(query).items()]


def _of(tenant: str | None) -> list[ColumnElement[bool]]:
    """Return the condition that an exchange belongs to a tenant; none for None."""
    return [] if tenant is None else [EXCHANGES.c.tenant == tenant]


def _reviewed(query: Query) -> list[ColumnElement[bool]]:
    """Return the conditions on the verdict of an exchange, and on its findings."""
    findings = {
        "open": FINDINGS.c.decision.is_(None),
        "decided": FINDINGS.c.decision.is_not(None),
    }
    found = [EXCHANGES.c.verdict == query.verdict] if query.verdict is not None else []
    if query.verifier is not None:
        flagged = FINDINGS.c.verifier == query.verifier, FINDINGS.c.flags != ""
        found.append(EXCHANGES.c.seq.in_(select(FINDINGS.c.seq).where(*flagged)))
    if query.state is not None:
        found.append(EXCHANGES.c.seq.in_(select(FINDINGS.c.seq).where(findings[query.state])))
    return found


def _below(after: int | None) -> list[ColumnElement[bool]]:
    """Return the condition that an exchange has less risk than the one numbered `after`, or as much and is older."""
    if after is None:
        return []
    risk = select(EXCHANGES.c.risk).where(EXCHANGES.c.seq == after).correlate(None).scalar_subquery()
    return [tuple_(EXCHANGES.c.risk, EXCHANGES.c.seq) < tuple_(risk, literal(after))]


def _of_time(query: Query, after: int | None, limit: int) -> Select[tuple[int]]:
    """Return the numbers of exchanges before a time, looked up by time: scanning back to it may take long.

    The order is one that no index has, which keeps databases from scanning back all the same.
    """
    found = select(EXCHANGES.c.seq).where(
        *_named(query), *_of(query.tenant), *_reviewed(query), *answered_between(query.since, query.until)
    )
    if after is not None:
        found = found.where(EXCHANGES.c.seq < after)
    return found.order_by((EXCHANGES.c.seq + 0).desc()).limit(limit)
