"""Find stored exchanges: one by its id, pages by their properties and words, and similar questions.

Words have the same semantics on both databases: all occur, in any case and order. In addition to its words, every
exchange is indexed by keys of its subject, session, model and flags. So a search narrowed by one of them, and any list
narrowed by two of them, reads only matching rows.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, column, func, literal, literal_column, select, table, tuple_

from groundwire.features.consistency import EarlierAnswer
from groundwire.storage.history.database import Database
from groundwire.storage.history.exchange import Page, Query, Similar, Stored, Summary
from groundwire.storage.history.rows import key, stored_of, summary_of
from groundwire.storage.history.tables import (
    CONTENTS,
    EXCHANGE_FLAGS,
    EXCHANGES,
    FINDINGS,
    WORDS,
    answered_between,
)

SIMPLE: ColumnElement[Any] = literal_column("'simple'::regconfig")
"""PostgreSQL's configuration that only folds case."""

_WORD = re.compile(r"(?:[^\W_]|[\u0300-\u0331])+")  # FTS5 keeps combining accents within words
_INDEXED = 200_000  # characters of a text that PostgreSQL indexes; a tsvector holds 1 MB at most
_TERMS = 32  # maximum terms of one search; more would only cost time
_CANDIDATES = 200  # candidates compared in each search for similar questions
_LOOK_S = 0.25  # after which no further search begins
_LIKE = 0.3  # the least similarity reported
_MATCH = table("words", column("rowid"))  # SQLite's FTS5 table; each row belongs to an exchange

_LISTED = select(EXCHANGES, CONTENTS.c.question, CONTENTS.c.answer, CONTENTS.c.asked).join(
    CONTENTS, CONTENTS.c.seq == EXCHANGES.c.seq
)


@dataclass(frozen=True, slots=True)
class Search:
    """A search: each term is a phrase of consecutive words; all terms and all keys must occur.

    With `of_question`, terms are searched in questions only. There is at least one term or key.
    """

    terms: tuple[tuple[str, ...], ...] = ()
    keys: tuple[str, ...] = ()
    of_question: bool = False

    def as_fts5(self) -> str:
        """Return the search as an FTS5 query of SQLite, with all terms quoted."""
        columns = "question" if self.of_question else "{question answer}"
        words = (f'{columns} : "{" ".join(term)}"' for term in self.terms)
        return " AND ".join((*words, *(f'keys : "{key}"' for key in self.keys)))

    def as_tsquery(self) -> str:
        """Return the search as a query for PostgreSQL's to_tsquery; questions have weight A, answers B, keys C."""
        weights = "A" if self.of_question else "AB"
        words = (" <-> ".join(f"{word}:{weights}" for word in term) for term in self.terms)
        return " & ".join((*(f"({phrase})" for phrase in words), *(f"{key}:C" for key in self.keys)))


def search_for(text: str | None, keys: Iterable[str] = ()) -> Search | None:
    """Parse a text into a search; None when the text contains no word.

    Punctuation within a term ties its words together: 4.2 is found as it is written.
    """
    found = dict.fromkeys(tuple(_WORD.findall(term)) for term in (text or "").split())
    terms = tuple(words for words in found if words)[:_TERMS]
    return None if text and not terms else Search(terms, tuple(keys))


def narrowing(question: str, keys: Iterable[str] = ()) -> Iterator[Search]:
    """Yield searches for similar questions, the narrowest first. Long words come first, as they tend to be rare.

    Any two of the words may be new, such as another year or name, so the last searches use few words.
    """
    words = sorted(words_of(question), key=lambda word: (-len(word), word))[:8]
    wanted = (words[start : start + count] for count in (8, 5, 3, 1) for start in range(3))
    for chosen in dict.fromkeys(tuple(each) for each in wanted if each):
        yield Search(tuple((word,) for word in chosen), tuple(keys), of_question=True)


def words_of(text: str) -> frozenset[str]:
    """Return the set of words of a text, case-folded."""
    return frozenset(_WORD.findall(text.casefold()))


def indexed_words(text: str | None) -> str:
    """Return the words of a text, without punctuation that PostgreSQL's parser would interpret."""
    return " ".join(_WORD.findall((text or "")[:_INDEXED]))


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the similarity of two sets of words (Dice's coefficient, 0–1)."""
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 0.0


class Exchanges:
    """The exchanges in a database. Every method raises StoreUnavailable when it cannot be read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, id_: str, tenant: str | None = None) -> Stored | None:
        """Return a stored exchange, or None if no exchange has this id.

        With `tenant`, only one that belongs to the tenant.
        """
        wanted = _LISTED.add_columns(CONTENTS.c.packed).where(EXCHANGES.c.id == id_, *_of(tenant))
        rows = await self._database.fetch(wanted)
        return stored_of(rows[0]) if rows else None

    async def page(self, query: Query, after: int | None = None, limit: int = 50) -> Page[Summary]:
        """Return the exchanges of a query in its order; `after` is that of the preceding page."""
        matching = self._matching(query)
        if matching is None:
            return Page()
        wanted, order = matching
        wanted = wanted.where(*_of(query.tenant), *_reviewed(query))
        if query.by_risk:
            wanted = wanted.where(EXCHANGES.c.risk.is_not(None), *answered_between(query.since, query.until))
            if after is not None:  # less risk than the one numbered `after`, or as much and older
                risk = select(EXCHANGES.c.risk).where(EXCHANGES.c.seq == after).correlate(None).scalar_subquery()
                wanted = wanted.where(tuple_(EXCHANGES.c.risk, EXCHANGES.c.seq) < tuple_(risk, literal(after)))
            wanted = wanted.order_by(EXCHANGES.c.risk.desc(), EXCHANGES.c.seq.desc())
        else:
            if query.until is not None and order is EXCHANGES.c.seq:
                wanted = wanted.where(order.in_(_of_time(query, after, limit + 1)))
            else:
                wanted = wanted.where(*answered_between(query.since, query.until))
            if after is not None:
                wanted = wanted.where(order < after, CONTENTS.c.seq < after)  # the latter starts a merge
            wanted = wanted.order_by(order.desc())
        rows, next_ = await self._database.page(wanted, limit, "seq")
        return Page(tuple(map(summary_of, rows)), next_)

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

    def _matching(self, query: Query) -> tuple[Select[Any], Any] | None:
        """Return the statement for a query and the column to order by; None when nothing can match."""
        given = _given(query)
        if query.text or len(given) > 1:
            search = search_for(query.text, (key(name, value) for name, value in given.items()))
            return None if search is None else self._found_by(search)
        if query.flag is not None:
            flagged = _LISTED.join(EXCHANGE_FLAGS, EXCHANGE_FLAGS.c.seq == EXCHANGES.c.seq)
            return flagged.where(EXCHANGE_FLAGS.c.flag == query.flag), EXCHANGE_FLAGS.c.seq
        return _LISTED.where(*(EXCHANGES.c[name] == value for name, value in given.items())), EXCHANGES.c.seq

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


def _of(tenant: str | None) -> list[ColumnElement[bool]]:
    """Return the condition that an exchange belongs to a tenant; none for None."""
    return [] if tenant is None else [EXCHANGES.c.tenant == tenant]


def _reviewed(query: Query) -> list[ColumnElement[bool]]:
    """Return the conditions on the verdict of an exchange, and on its findings."""
    findings = {"open": FINDINGS.c.decision.is_(None), "decided": FINDINGS.c.decision.is_not(None)}
    found = [EXCHANGES.c.verdict == query.verdict] if query.verdict is not None else []
    if query.verifier is not None:
        flagged = FINDINGS.c.verifier == query.verifier, FINDINGS.c.flags != ""
        found.append(EXCHANGES.c.seq.in_(select(FINDINGS.c.seq).where(*flagged)))
    if query.state is not None:
        found.append(EXCHANGES.c.seq.in_(select(FINDINGS.c.seq).where(findings[query.state])))
    return found


def _of_time(query: Query, after: int | None, limit: int) -> Select[tuple[int]]:
    """Return the numbers of exchanges before a time, looked up by time: scanning back to it may take long.

    The order is one that no index has, which keeps databases from scanning back all the same.
    """
    found = select(EXCHANGES.c.seq).where(*(EXCHANGES.c[name] == value for name, value in _given(query).items()))
    found = found.where(*_of(query.tenant), *_reviewed(query), *answered_between(query.since, query.until))
    if after is not None:
        found = found.where(EXCHANGES.c.seq < after)
    return found.order_by((EXCHANGES.c.seq + 0).desc()).limit(limit)
