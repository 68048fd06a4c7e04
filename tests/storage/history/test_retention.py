"""Exchanges are deleted by age, by count and on request; content is not stored where disabled; reading is noted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from sqlalchemy import RowMapping, func, select

from groundwire.config.settings import Store
from groundwire.domain import Choice
from groundwire.storage.history.exchange import PromptMessage, Query
from groundwire.storage.history.history import History, expire
from groundwire.storage.history.reviews import Wanted
from groundwire.storage.history.tables import AUDIT, METADATA
from tests.servers.databases import Database, sqlite
from tests.storage.history.entries import DAY, NOON, database, entry, opened, stored

SUBJECT = "mrs-miller"
SECRETS = ("Oppenheimer", "Nagasaki", "Feynman", "Tritium", "Dosimeter")


async def ids(history: History, text: str | None = None) -> list[str]:
    return [each.id for each in (await history.exchanges.page(Query(text=text))).items]


async def counts(place: Database) -> dict[str, int]:
    """Count the rows of each table."""
    found = database(place)
    async with found.reading() as connection:
        rows = {name: await connection.scalar(select(func.count()).select_from(table))
                for name, table in METADATA.tables.items()}  # fmt: skip
    await found.close()
    return rows


async def audited(place: Database) -> Sequence[RowMapping]:
    """The entries of the audit log, in the order in which they were written."""
    found = database(place)
    rows = await found.fetch(select(AUDIT).order_by(AUDIT.c.id))
    await found.close()
    return rows


def test_an_expired_exchange_is_deleted_with_all_that_belongs_to_it(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            for n in range(4):
                told = entry(f"gw-{n}", at=NOON + n * DAY, labels=("contradicted",), subject="acme")
                await stored(history, told)
            (finding,) = await history.reviews.of_exchange("gw-0")
            await history.reviews.decide(finding.id, 0, "confirmed", "ann")
            assert await expire(database(place), Store(keep=1.5 * DAY), NOON + 3 * DAY) == 2
            assert await ids(history) == ["gw-3", "gw-2"]
            assert await ids(history, "acme") == ["gw-3", "gw-2"]
            rows = await counts(place)
            assert {name: rows[name] for name in ("contents", "exchange_flags", "findings", "finding_flags")} == {
                "contents": 2,
                "exchange_flags": 2,
                "findings": 2,
                "finding_flags": 2,
            }
            assert rows["decisions"] == 0
            span = date(2026, 1, 1), date(2026, 2, 1)
            assert [each.day.day for each in await history.trends.daily("subject", *span)] == [3, 4]
            assert [each.day.day for each in await history.trends.daily("model", *span)] == [1, 2, 3, 4]

    asyncio.run(work())


def test_the_oldest_go_when_there_are_too_many(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            await stored(history, *(entry(f"gw-{n}") for n in range(7)))
            assert await expire(database(place), Store(keep=1e10, keep_count=3), NOON) == 4
            assert await ids(history) == ["gw-6", "gw-5", "gw-4"]
            assert await expire(database(place), Store(keep=1e10, keep_count=3), NOON) == 0

    asyncio.run(work())


def test_a_history_looks_by_itself_for_what_is_past_its_time(tmp_path: Path) -> None:
    async def work(place: Database) -> None:
        async with opened(place) as history:
            await stored(history, entry("old", at=time.time() - 100), entry("new", at=time.time()))
        history = History(database(place), Store(keep=50), sweep=0.01)
        history.start()
        for _ in range(1000):
            if await ids(history) == ["new"]:
                break
            await asyncio.sleep(0.01)
        assert await ids(history) == ["new"]
        await history.close()

    with sqlite(tmp_path) as place:
        asyncio.run(work(place))


def test_a_forgotten_subject_leaves_nothing_but_a_digest(place: Database) -> None:
    async def work() -> None:
        async with opened(place, interval=60.0) as history:
            told = [entry(f"gw-{n}", subject=SUBJECT, labels=("contradicted",)) for n in range(3)]
            await stored(history, *told, entry("other", subject="other", labels=("contradicted",)))
            await history.note("ann", "read", "gw-1", SUBJECT)
            history.record(entry("late", subject=SUBJECT))
            assert set(await history.forget(SUBJECT)) == {"gw-0", "gw-1", "gw-2", "late"}
            assert await ids(history) == ["other"]
            assert [each.exchange for each in (await history.reviews.page(Wanted())).items] == ["other"]
            span = date(2026, 1, 1), date(2026, 2, 1)
            assert [each.key for each in await history.trends.daily("subject", *span)] == ["other"]
            assert [each.figures.exchanges for each in await history.trends.daily("all", *span)] == [5]
            (noted,) = await audited(place)
            assert noted["subject"] == "sha256:153732f4cea8"
            assert await history.forget("nobody") == ()

    asyncio.run(work())


def test_a_forgotten_subject_is_gone_from_the_file(tmp_path: Path) -> None:
    async def work(place: Database) -> None:
        async with opened(place) as history:
            question = f"{SECRETS[0]} asks {SECRETS[1]}?"
            await stored(history, entry("gw-1", subject=SUBJECT, question=question, answer=" ".join(SECRETS)))
            await history.forget(SUBJECT)

    with sqlite(tmp_path) as place:
        asyncio.run(work(place))
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir()).lower()
    assert [word for word in (*SECRETS, SUBJECT) if word.lower().encode() in raw] == []


def test_without_content_no_word_of_it_reaches_the_database(tmp_path: Path) -> None:
    """Neither in clear text nor compressed; lengths, digests and figures are there."""
    answer = f"{SECRETS[0]} visited {SECRETS[1]}."

    async def work(place: Database) -> None:
        async with opened(place, content="hashes") as history:
            told = entry("gw-1", question=f"Did {SECRETS[2]} see it?", answer=answer, labels=("contradicted",) * 3)
            source = replace(told.report.sources[0], text=SECRETS[3], title=SECRETS[4], labels=(SECRETS[4],))
            prompt = (PromptMessage("user", SECRETS[3]),)
            told = replace(told, report=replace(told.report, sources=(source,)), asked=SECRETS[3], prompt=prompt)
            await stored(history, told)
            found = await history.exchanges.get("gw-1")
            assert found is not None
            assert [word for word in SECRETS if word in str(found)] == []
            assert (found.choices, found.summary.question, found.summary.answer) == ((), None, None)
            claims = found.report["choices"][0]["claims"]
            assert (claims[0]["label"], claims[0]["chars"]) == ("contradicted", len(SECRETS[0]))
            assert len(claims[0]["sha256"]) == 64
            assert found.report["score"] == told.report.score
            findings = (await history.reviews.page(Wanted())).items
            assert [word for word in SECRETS if word in str(findings)] == []
            assert [each.start for each in findings] == [answer.index(word) for word in answer.split()][::-1]
            assert await ids(history, SECRETS[0]) == []
            assert await history.exchanges.similar(f"Did {SECRETS[2]} see it?") == ()

    with sqlite(tmp_path) as place:
        asyncio.run(work(place))
    raw = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert [word for word in SECRETS if word.encode() in raw] == []


def test_the_audit_log_holds_who_did_what_until_it_expires(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            await stored(history, entry("gw-1"))
            await history.note("ann", "read", "gw-1", "acme")
            await history.note("bob", "export", "gw-1,gw-2")
            await history.note("ann", "search", "subject=acme", "acme")
            assert [(each["who"], each["action"], each["what"], each["subject"]) for each in await audited(place)] == [
                ("ann", "read", "gw-1", "acme"),
                ("bob", "export", "gw-1,gw-2", None),
                ("ann", "search", "subject=acme", "acme"),
            ]
            await expire(database(place), Store(keep_audit=10), time.time() + 20)
            assert await audited(place) == []

    asyncio.run(work())


def test_an_answer_without_claims_or_sources_is_stored_without_content_too(tmp_path: Path) -> None:
    async def work(place: Database) -> None:
        async with opened(place, content="hashes") as history:
            told = entry("gw-1", labels=(), status="failed", sources=(), confidence=None)
            await stored(history, replace(told, choices=(Choice(0, ""),), kept=b'{"id": "gw-1", "status": "failed"}'))
            found = await history.exchanges.get("gw-1")
        assert found is not None
        assert found.report["status"] == "failed"

    with sqlite(tmp_path) as place:
        asyncio.run(work(place))


def test_a_subject_is_forgotten_for_one_tenant_or_for_all(place: Database) -> None:
    """Names that end alike are other subjects, also where names of tenants precede them in the figures."""
    said = [("gw-1", "app", "acme"), ("gw-2", "web", "acme"), ("gw-3", "app", "big_acme"), ("gw-4", "", "acme")]

    async def figures(history: History) -> list[str]:
        span = date(2026, 1, 1), date(2026, 2, 1)
        return sorted(key for key, _ in await history.trends.totals("subject", *span))

    async def work() -> None:
        async with opened(place) as history:
            for id_, tenant, subject in said:
                await stored(history, replace(entry(id_, subject=subject), tenant=tenant))
            assert await figures(history) == ["acme", "app/acme", "app/big_acme", "web/acme"]
            assert await history.forget("acme", "web") == ("gw-2",)
            assert await figures(history) == ["acme", "app/acme", "app/big_acme"]
            history.record(replace(entry("gw-5", subject="acme"), tenant="app"))
            history.writer.drop("acme", "web")
            assert history.writer.waiting == 1
            assert set(await history.forget("acme")) == {"gw-1", "gw-4", "gw-5"}
            assert await figures(history) == ["app/big_acme"]
            assert await ids(history) == ["gw-3"]

    asyncio.run(work())
