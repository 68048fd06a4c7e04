"""Quality over time, from daily roll-ups, so independent of the number of exchanges."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, Select, func, select

from groundwire.storage.history.database import Database
from groundwire.storage.history.rows import flags_of
from groundwire.storage.history.tables import (
    COUNTERS,
    EXCHANGES,
    LABELS,
    LATENCIES_MS,
    ROLLUPS,
    SCORES,
    answered_between,
)

KEY = ("grain", "day", "model", "subject", "flag")
MAX_NEWEST = 10_000
"""Exchanges that are read one by one, for percentiles and for figures by hour."""

By = Literal["all", "model", "subject", "flag"]
Grain = Literal["all", "model", "subject", "flag", "model_flag", "subject_flag"]
ScoreName = Literal["score", "confidence", "consistency", "risk", "quality"]


class Key(NamedTuple):
    """A roll-up: its model, subject and flag ("" for all), and its day in UTC."""

    grain: Grain
    day: date
    model: str = ""
    subject: str = ""
    flag: str = ""


def day_of(at: float) -> date:
    """Return the day in UTC of a time in Unix seconds."""
    return datetime.fromtimestamp(at, UTC).date()


def contributions(exchange: Mapping[Any, Any]) -> Iterator[tuple[Key, dict[str, int]]]:
    """Yield the contribution of an exchange to each of its roll-ups."""
    counts = counts_of(exchange)
    day, model, subject = day_of(exchange["at"]), exchange["model"], exchange["subject"]
    flags = flags_of(exchange["flags"])
    yield Key("all", day), counts
    yield Key("model", day, model=model), counts
    for flag in flags:
        yield Key("flag", day, flag=flag), counts
        yield Key("model_flag", day, model=model, flag=flag), counts
    if subject:
        name = subject_key(exchange["tenant"], subject)
        yield Key("subject", day, subject=name), counts
        for flag in flags:
            yield Key("subject_flag", day, subject=name, flag=flag), counts


def subject_key(tenant: str, subject: str) -> str:
    """Return the name of a tenant's subject in roll-ups."""
    return f"{tenant}/{subject}" if tenant else subject


def counts_of(exchange: Mapping[Any, Any]) -> dict[str, int]:
    """Return the contribution of an exchange by counter; unaffected counters are left out."""
    step = bisect_left(LATENCIES_MS, exchange["total_ms"])
    counts = {
        "exchanges": 1,
        "flagged": int(bool(exchange["flags"])),
        f"verdict_{exchange['verdict']}": 1,
        "us_sum": round(exchange["total_ms"] * 1000),
        f"ms_{LATENCIES_MS[step]}" if step < len(LATENCIES_MS) else "ms_over": 1,
        **{name: exchange[name] for name in ("claims", "checked", *LABELS, "cache_hits", "cache_misses")},
    }
    if exchange["input_tokens"] is not None or exchange["output_tokens"] is not None:
        counts |= {name: exchange[name] or 0 for name in ("input_tokens", "output_tokens")} | {"tokens_count": 1}
    if exchange["upstream_ms"] is not None:
        counts |= {"upstream_us_sum": round(exchange["upstream_ms"] * 1000), "upstream_count": 1}
    for score in SCORES:
        if exchange[score] is not None:
            counts |= {f"{score}_sum": round(exchange[score] * 10_000), f"{score}_count": 1}
    return counts


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts over some exchanges; see `tables.COUNTERS`."""

    counts: Mapping[str, int]

    @property
    def exchanges(self) -> int:
        """The number of exchanges."""
        return self.counts["exchanges"]

    @property
    def flagged_share(self) -> float | None:
        """The share (0–1) of exchanges with a flag; None when there were none."""
        return self.counts["flagged"] / self.exchanges if self.exchanges else None

    @property
    def cache_hit_rate(self) -> float | None:
        """The share (0–1) of verdicts found in the cache; None when there were none."""
        looked_up = self.counts["cache_hits"] + self.counts["cache_misses"]
        return self.counts["cache_hits"] / looked_up if looked_up else None

    @property
    def mean_ms(self) -> float | None:
        """The mean duration of verification; None when there were no exchanges."""
        return self.counts["us_sum"] / self.exchanges / 1000 if self.exchanges else None

    @property
    def upstream_ms(self) -> float | None:
        """The mean duration of the model server; None when it is not known."""
        count = self.counts["upstream_count"]
        return self.counts["upstream_us_sum"] / count / 1000 if count else None

    def tokens(self, kind: Literal["input", "output"]) -> float | None:
        """Return the mean number of tokens of the exchanges of which it is known; None when there are none."""
        count = self.counts["tokens_count"]
        return self.counts[f"{kind}_tokens"] / count if count else None

    def mean(self, score: ScoreName) -> float | None:
        """Return the mean of a score (0–1) over the exchanges that have it; None when none does."""
        count = self.counts[f"{score}_count"]
        return self.counts[f"{score}_sum"] / count / 10_000 if count else None

    def latency_ms(self, share: float) -> float | None:
        """Estimate the latency of this share (0–1) of the exchanges within its step; None if above all steps."""
        needed, seen = share * self.exchanges, 0
        for lower, upper in pairwise((0, *LATENCIES_MS)):
            count = self.counts[f"ms_{upper}"]
            if count and seen + count >= needed:
                return lower + (upper - lower) * max(0.0, needed - seen) / count
            seen += count
        return None


@dataclass(frozen=True, slots=True)
class Trend:
    """The figures of one day for one key: the name of a model, a subject or a flag, or "" for all exchanges."""

    day: date
    key: str
    figures: Figures


@dataclass(frozen=True, slots=True)
class Measured:
    """Counters of one exchange; see `counts_of`."""

    at: float
    model: str
    flags: tuple[str, ...]
    counts: Mapping[str, int]


class Trends:
    """Daily figures in a database. Every method raises StoreUnavailable when it cannot be read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def daily(
        self, by: By, since: date, until: date, *, key: str | None = None, flag: str | None = None, limit: int = 10_000
    ) -> tuple[Trend, ...]:
        """Return figures per day and key, oldest first, of the days from `since` until before `until`; at most `limit`.

        With `key` only of that one, with `flag` (by model or subject) of the exchanges that carry it.
        """
        of = ROLLUPS.c[by] if by != "all" else ROLLUPS.c.model
        wanted = select(ROLLUPS).where(*_within(by, flag, since, until))
        if key is not None:
            wanted = wanted.where(of == key)
        rows = await self._database.fetch(wanted.order_by(ROLLUPS.c.day, of).limit(limit))
        return tuple(Trend(row["day"], row[of], Figures({each: row[each] for each in COUNTERS})) for row in rows)

    async def newest(self, since: float, until: float, model: str | None = None) -> tuple[Measured, ...]:
        """Return the newest exchanges between two times (Unix seconds), of one model or of all; at most MAX_NEWEST."""
        wanted = _newest(select(EXCHANGES), since, until, model)
        rows = await self._database.fetch(wanted)
        return await asyncio.to_thread(
            lambda: tuple(Measured(row["at"], row["model"], flags_of(row["flags"]), counts_of(row)) for row in rows)
        )

    async def times(
        self, since: float, until: float, model: str | None = None
    ) -> tuple[tuple[float, float | None], ...]:
        """Return the milliseconds of verification and of the model server of the newest exchanges, as `newest` does."""
        wanted = _newest(select(EXCHANGES.c.total_ms, EXCHANGES.c.upstream_ms), since, until, model)
        return tuple((row["total_ms"], row["upstream_ms"]) for row in await self._database.fetch(wanted))

    async def first(self) -> float | None:
        """Return the time of the first stored exchange (Unix seconds); None if there is none."""
        (row,) = await self._database.fetch(select(func.min(EXCHANGES.c.at).label("at")))
        first: float | None = row["at"]
        return first

    async def totals(
        self, by: By, since: date, until: date, *, flag: str | None = None, limit: int = 100
    ) -> tuple[tuple[str, Figures], ...]:
        """Return figures per key over all these days, those with the most exchanges first."""
        of = ROLLUPS.c[by] if by != "all" else ROLLUPS.c.model
        sums = [func.sum(ROLLUPS.c[counter]).label(counter) for counter in COUNTERS]
        wanted = select(of.label("key"), *sums).where(*_within(by, flag, since, until)).group_by(of)
        wanted = wanted.order_by(func.sum(ROLLUPS.c.exchanges).desc(), of).limit(limit)
        rows = await self._database.fetch(wanted)
        return tuple((row["key"], Figures({each: int(row[each]) for each in COUNTERS})) for row in rows)


def total(figures: Iterable[Figures | Measured]) -> Figures:
    """Sum the figures of several days, keys or exchanges."""
    counts: Counter[str] = Counter()
    for each in figures:
        counts.update(each.counts)
    return Figures({counter: counts[counter] for counter in COUNTERS})


def _newest(wanted: Select[Any], since: float, until: float, model: str | None) -> Select[Any]:
    wanted = wanted.where(*answered_between(since, until)).limit(MAX_NEWEST)
    if model is None:
        return wanted.order_by(EXCHANGES.c.at.desc(), EXCHANGES.c.seq.desc())
    return wanted.where(EXCHANGES.c.model == model).order_by(EXCHANGES.c.seq.desc())


def _within(by: By, flag: str | None, since: date, until: date) -> list[ColumnElement[bool]]:
    """Return the conditions on roll-ups of some days by a property, with `flag` only of exchanges that carry it."""
    grain = by if flag is None or by == "flag" else "flag" if by == "all" else f"{by}_flag"
    found = [ROLLUPS.c.grain == grain, ROLLUPS.c.day >= since, ROLLUPS.c.day < until]
    return found if flag is None else [*found, ROLLUPS.c.flag == flag]
