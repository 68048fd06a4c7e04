"""Trends are read from roll-ups, and these equal a recount of the exchanges, in any order of arrival."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select

from groundwire.storage.history.exchange import Entry
from groundwire.storage.history.rows import rows_of
from groundwire.storage.history.tables import COUNTERS, EXCHANGES, ROLLUPS
from groundwire.storage.history.trends import KEY, Figures, Trends, contributions, total
from groundwire.storage.history.writer import record
from tests.servers.databases import Database
from tests.storage.history.entries import DAY, NOON, database, entry, opened, stored

JANUARY_1 = date(2026, 1, 1)
FEBRUARY = date(2026, 2, 1)

entries = st.builds(
    lambda number, day, model, subject, labels, ms, quality, status: entry(
        f"gw-{number}",
        at=NOON + day * DAY,
        model=model,
        subject=subject,
        labels=labels,
        quality=quality,
        status=status,
        timing_ms=(("total", ms),),
    ),
    st.integers(0, 5),
    st.integers(0, 2),
    st.sampled_from(["small", "large"]),
    st.sampled_from([None, "acme", "other"]),
    st.lists(st.sampled_from(["supported", "contradicted", "unsupported", "not_checked"]), max_size=4),
    st.floats(0, 5000),
    st.none() | st.floats(0, 1),
    st.sampled_from(["complete", "deferred"]),
)


async def recount(place: Database) -> tuple[dict[Any, dict[str, int]], dict[Any, dict[str, int]]]:
    """The stored roll-ups, and those counted from the exchanges."""
    found = database(place)
    async with found.reading() as connection:
        kept = (await connection.execute(select(ROLLUPS))).mappings().all()
        exchanges = (await connection.execute(select(EXCHANGES))).mappings().all()
    await found.close()
    counted: dict[Any, Counter[str]] = {}
    for exchange in exchanges:
        for key, counts in contributions(exchange):
            counted.setdefault(key, Counter()).update(counts)
    rolled_up = {tuple(row[name] for name in KEY): {counter: row[counter] for counter in COUNTERS} for row in kept}
    return (
        {key: counts for key, counts in rolled_up.items() if any(counts.values())},
        {tuple(key): {counter: counts[counter] for counter in COUNTERS} for key, counts in counted.items()},
    )


@given(batches=st.lists(st.lists(entries, max_size=6), max_size=4))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rollups_are_a_recount_whatever_is_recorded_again_or_anew(
    module_place: Database, batches: Sequence[Sequence[Entry]]
) -> None:
    async def work() -> None:
        found = database(module_place)
        await found.migrate()
        async with found.writing() as connection:
            await connection.execute(delete(EXCHANGES))
            await connection.execute(delete(ROLLUPS))
        for batch in batches:
            rows = [rows_of(each, "full") for each in batch]
            await record(found, rows)
            await record(found, rows)
        await found.close()
        rolled_up, counted = await recount(module_place)
        assert rolled_up == counted

    asyncio.run(work())


@pytest.fixture
def trends(place: Database) -> Database:
    """Two days of two models, one of which goes wrong on the second day."""
    told = [
        entry("gw-1", model="small", subject="acme", timing_ms=(("total", 4.0),)),
        entry("gw-2", model="large", labels=("supported", "contradicted"), timing_ms=(("total", 40.0),)),
        entry("gw-3", at=NOON + DAY, model="small", subject="acme", labels=("contradicted", "unsupported")),
        entry("gw-4", at=NOON + DAY, model="small", labels=(), timing_ms=(("total", 9000.0),)),
    ]

    async def fill() -> None:
        async with opened(place) as history:
            await stored(history, *told)

    asyncio.run(fill())
    return place


def read(place: Database, work: Any) -> Any:
    async def reading() -> Any:
        found = database(place)
        try:
            return await work(Trends(found))
        finally:
            await found.close()

    return asyncio.run(reading())


def test_days_are_listed_by_model_subject_and_flag(trends: Database) -> None:
    async def work(found: Trends) -> None:
        by_model = await found.daily("model", JANUARY_1, FEBRUARY)
        assert [(each.day.day, each.key, each.figures.exchanges) for each in by_model] == [
            (1, "large", 1),
            (1, "small", 1),
            (2, "small", 2),
        ]
        assert [each.figures.mean("score") for each in by_model] == [0.5, 1.0, 0.0]
        by_flag = await found.daily("flag", JANUARY_1, FEBRUARY)
        assert [(each.day.day, each.key) for each in by_flag] == [
            (1, "contradicted_claims"),
            (2, "contradicted_claims"),
            (2, "unsupported_claims"),
        ]
        (first, second) = await found.daily("subject", JANUARY_1, FEBRUARY, key="acme")
        assert (first.figures.flagged_share, second.figures.flagged_share) == (0.0, 1.0)
        every = await found.daily("all", JANUARY_1, JANUARY_1 + timedelta(days=1))
        assert [(each.key, each.figures.exchanges) for each in every] == [("", 2)]

    read(trends, work)


def test_models_are_listed_by_a_flag_that_their_answers_carry(trends: Database) -> None:
    async def work(found: Trends) -> None:
        by_model = await found.daily("model", JANUARY_1, FEBRUARY, flag="contradicted_claims")
        assert [(each.day.day, each.key) for each in by_model] == [(1, "large"), (2, "small")]
        totals = await found.totals("subject", JANUARY_1, FEBRUARY, flag="unsupported_claims")
        assert [(key, figures.exchanges) for key, figures in totals] == [("acme", 1)]

    read(trends, work)


def test_totals_add_days_up_the_busiest_first(trends: Database) -> None:
    async def work(found: Trends) -> None:
        totals = await found.totals("model", JANUARY_1, FEBRUARY)
        assert [(key, figures.exchanges) for key, figures in totals] == [("small", 3), ("large", 1)]
        small = totals[0][1]
        days = await found.daily("model", JANUARY_1, FEBRUARY, key="small")
        assert total([each.figures for each in days]) == small
        assert small.latency_ms(0.5) == 17.5
        assert small.latency_ms(0.3) == pytest.approx(4.5)
        assert small.latency_ms(0.99) is None
        assert small.cache_hit_rate == pytest.approx(1 / 3)
        assert small.mean("quality") is None

    read(trends, work)


def test_figures_without_counts_are_none() -> None:
    nothing = Figures(dict.fromkeys(COUNTERS, 0))
    assert nothing.flagged_share is nothing.cache_hit_rate is nothing.mean_ms is nothing.latency_ms(0.5) is None
    assert nothing.mean("score") is None


def test_the_newest_exchanges_are_read_one_by_one(trends: Database) -> None:
    async def work(found: Trends) -> None:
        assert await found.first() == NOON
        newest = await found.newest(NOON, NOON + 2 * DAY)
        assert [each.model for each in newest] == ["small", "small", "large", "small"]
        days = await found.daily("all", JANUARY_1, FEBRUARY)
        assert total(newest) == total(each.figures for each in days)
        assert await found.times(NOON, NOON + DAY, "large") == ((40.0, None),)
        assert await found.times(NOON + 2 * DAY, NOON + 3 * DAY) == ()

    read(trends, work)
