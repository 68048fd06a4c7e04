"""Recorded exchanges are returned, once, and the final report on an exchange is the stored one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlalchemy import Engine, event

from groundwire.dialects.jsonbytes import loads
from groundwire.domain import Choice
from groundwire.storage.history.exchange import Entry, Query
from groundwire.storage.history.reviews import Wanted
from tests.servers.databases import Database
from tests.storage.history.entries import NOON, entry, opened, stored


def test_everything_that_is_recorded_of_an_exchange_comes_back(place: Database) -> None:
    told = entry("gw-1", subject="acme", session="s-1", labels=("supported", "contradicted"), quality=0.5)

    async def work() -> None:
        async with opened(place) as history:
            await stored(history, told)
            found = await history.exchanges.get("gw-1")
        assert found is not None
        assert found.report == loads(told.kept)
        assert found.choices == told.choices
        assert found.sources == told.report.sources
        summary = found.summary
        assert (summary.subject, summary.session, summary.model) == ("acme", "s-1", "m-1")
        assert (summary.question, summary.answer) == (told.question, told.choices[0].text)
        assert (summary.score, summary.confidence, summary.quality, summary.risk) == (0.5, 0.75, 0.5, None)
        assert (summary.verdict, summary.flags) == ("partially_grounded", ("contradicted_claims",))

    asyncio.run(work())


def test_an_id_that_nobody_stored_is_not_found(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            await stored(history, entry("gw-1"))
            assert await history.exchanges.get("gw-0") is None

    asyncio.run(work())


def test_all_choices_and_their_arguments_are_stored_and_found(place: Database) -> None:
    choices = (Choice(0, "One.", "stop"), Choice(1, "Two.", "tool_calls", 0.5, ('{"city": "Oslo"}',), 3))

    async def work() -> None:
        async with opened(place) as history:
            await stored(history, replace(entry("gw-1"), choices=choices))
            found = await history.exchanges.get("gw-1")
            assert found is not None
            assert found.choices == choices
            page = await history.exchanges.page(Query(text="oslo"))
            assert [each.id for each in page.items] == ["gw-1"]

    asyncio.run(work())


def test_characters_that_no_database_takes_are_replaced_in_place(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            odd = replace(
                entry("gw-1", subject="a\x00b"), choices=(Choice(0, "A\x00B \ud83d C", "stop"),), model="m\x00"
            )
            await stored(history, odd)
            found = await history.exchanges.get("gw-1")
        assert found is not None
        assert found.choices[0].text == "A\ufffdB \ufffd C"
        assert found.summary.subject == "a\ufffdb"

    asyncio.run(work())


def test_a_report_that_is_completed_later_takes_the_place_of_the_first(place: Database) -> None:
    first = entry("gw-1", at=NOON, labels=("unsupported", "not_checked"), status="deferred")
    last = entry("gw-1", at=NOON + 60, labels=("supported", "contradicted"))

    async def work() -> None:
        async with opened(place) as history:
            await stored(history, first, entry("gw-2"))
            before = await history.exchanges.get("gw-1")
            await stored(history, last)
            found = await history.exchanges.get("gw-1")
            assert before is not None
            assert found is not None
            assert found.report == loads(last.kept)
            assert (found.summary.seq, found.summary.at) == (before.summary.seq, NOON)
            page = await history.exchanges.page(Query(flag="unsupported_claims"))
            assert page.items == ()
            assert [each.flags for each in await history.reviews.of_exchange("gw-1")] == [("contradicted_claims",)]

    asyncio.run(work())


def test_a_deferred_report_that_comes_late_changes_nothing(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            await stored(history, entry("gw-1", labels=("supported",)))
            await stored(history, entry("gw-1", labels=("unsupported",), status="deferred"))
            found = await history.exchanges.get("gw-1")
        assert found is not None
        assert (found.summary.status, found.summary.verdict) == ("complete", "grounded")

    asyncio.run(work())


def test_decisions_remain_when_the_report_is_completed(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            await stored(history, entry("gw-1", labels=("contradicted", "not_checked"), status="deferred"))
            (finding,) = await history.reviews.of_exchange("gw-1")
            await history.reviews.decide(finding.id, 0, "confirmed", "ann")
            await stored(history, entry("gw-1", labels=("contradicted", "unsupported")))
            found = await history.reviews.of_exchange("gw-1")
            assert [each.decided.who if each.decided else None for each in found] == ["ann", None]
            page = await history.reviews.page(Wanted("open"))
            assert [each.label for each in page.items] == ["unsupported"]

    asyncio.run(work())


def test_claims_at_one_place_are_findings_of_their_own(place: Database) -> None:
    told = entry("gw-1", labels=("contradicted",))
    (choice,) = told.report.choices
    twice = replace(told.report, choices=(replace(choice, judgements=choice.judgements * 2),))

    async def work() -> None:
        async with opened(place) as history:
            await stored(history, replace(told, report=twice))
            assert len(await history.reviews.of_exchange("gw-1")) == 2

    asyncio.run(work())


def test_batches_of_all_sizes_share_their_statements_as_drivers_cache_these(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            for count in (1, 2):
                await stored(history, *flagged(count))
            with inserting() as known:
                await stored(history, *flagged(3))
            with inserting() as later:
                for count in (7, 20, 60):
                    await stored(history, *flagged(count))
        assert known
        assert later == known

    asyncio.run(work())


def flagged(count: int) -> list[Entry]:
    """Exchanges with several findings each, of separate models, so that roll-ups have separate rows."""
    return [
        entry(f"gw-{count}-{n}", model=f"m-{n}", labels=("contradicted", "unsupported")[: 1 + n % 2])
        for n in range(count)
    ]


@contextmanager
def inserting() -> Iterator[set[str]]:
    """Collect the texts of INSERT statements that are executed while the block runs."""
    texts: set[str] = set()

    def listen(_: Any, __: Any, statement: str, *___: Any) -> None:
        if statement.startswith("INSERT"):
            texts.add(statement)

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        yield texts
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
