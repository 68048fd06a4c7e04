"""The quality page: figures over time, models or periods side by side, and the opinion of reviewers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from statistics import quantiles
from typing import Any

from groundwire.features.advice import Decision, advise
from groundwire.http.pages.chart import Chart, Series, format_value, line_chart, reliability_diagram, sparkline
from groundwire.storage.history.history import History
from groundwire.storage.history.reviews import Ratio, Wanted
from groundwire.storage.history.trends import MAX_NEWEST, Figures, Measured, total
from groundwire.telemetry.reliability import Calibration

RANGES = (1, 7, 30, 90)
BEFORE = "before"
"""Compare with the period of the same length before."""

_HOUR_S = 3600.0
_DAY_S = 86_400.0
_SERVER_TIME = "Time of the model server, mean"
_TOKENS = "Tokens per answer"
_WHERE_KNOWN = (_SERVER_TIME, _TOKENS)  # charts that are left out if nothing was measured
_DECISIONS = 5000  # the newest ones, from which thresholds are advised
_SETTINGS = {
    ("unsupported_claims", "statement"): "grounding.policy",
    ("budget_gap", "statement"): "information_budget.output_verification.flag_threshold_bits",
}


@dataclass(frozen=True, slots=True)
class Percentiles:
    """The median and the 95th percentile in milliseconds of the newest exchanges; None if there are none."""

    median: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The exchanges of one model or of all over some time: their figures, in total and by hour or day."""

    name: str
    figures: Figures
    by_moment: Sequence[Figures | None]
    verified: Percentiles
    upstream: Percentiles


@dataclass(frozen=True, slots=True)
class Period:
    """The days or hours that are shown, each with its start in Unix seconds and its label."""

    starts: tuple[float, ...]
    step: float

    @property
    def since(self) -> float:
        """The start of the first one."""
        return self.starts[0]

    @property
    def until(self) -> float:
        """The end of the last one."""
        return self.starts[-1] + self.step

    @property
    def is_hours(self) -> bool:
        """True if it is shown by hours."""
        return self.step == _HOUR_S

    @property
    def days(self) -> tuple[date, date]:
        """The first day, and the one after the last."""
        return _day(self.since), _day(self.until)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its hours or days."""
        times = (datetime.fromtimestamp(at, UTC) for at in self.starts)
        return tuple(f"{at:%H:%M}" if self.is_hours else f"{at.day} {at:%b}" for at in times)

    def before(self) -> Period:
        """Return the period of the same length before."""
        return Period(tuple(at - self.until + self.since for at in self.starts), self.step)


def period(days: int, now: float) -> Period:
    """Return the last days, today (UTC) included; of one day, the last 24 hours. `now` is in Unix seconds."""
    step = _HOUR_S if days == 1 else _DAY_S
    last = now - now % step
    count = 24 if days == 1 else days
    return Period(tuple(last - step * back for back in reversed(range(count))), step)


async def default_days(history: History, now: float) -> int:
    """Return the days to show unless others are asked for: one, by hours, while the store is younger than two days."""
    first = await history.trends.first()
    return 1 if first is None or first > now - 2 * _DAY_S else 30


async def quality_view(history: History, days: int, model: str | None, against: str, now: float) -> dict[str, Any]:
    """Return the quality of the last days for its page, of one model or of all.

    `against` is `before`, another model, or empty.
    """
    shown = period(days, now)
    group = await _group(history, shown, model)
    other = None
    if against:
        is_before = against == BEFORE
        other = await _group(history, shown.before() if is_before else shown, model if is_before else against)
    models, flags, by_flag, answers = await _tables(history, shown)
    precision = await history.reviews.precision(shown.since)
    decisions, calibrated = await _decisions(history)
    confirmed, rejected = sum(each.confirmed for each in precision), sum(each.rejected for each in precision)
    return {
        "days": days,
        "model": model,
        "against": against,
        "models": models,
        "group": group,
        "other": other,
        "compared": _compared(group, other) if other else (),
        "most": MAX_NEWEST if shown.is_hours and group.figures.exchanges >= MAX_NEWEST else None,
        "charts": _charts(shown.labels, group.by_moment),
        "flags": [
            {
                "flag": flag,
                "answers": found.exchanges,
                "share": found.exchanges / answers if answers else 0.0,
                "points": sparkline(by_flag[flag]),
                "precision": [each for each in precision if each.flag == flag],
            }
            for flag, found in flags
        ],
        "decided": Ratio(confirmed, confirmed + rejected) if confirmed + rejected else None,
        "verifiers": await history.reviews.accuracy(shown.since),
        "agreement": await history.reviews.agreement(shown.since),
        "advice": [(each, _SETTINGS.get((each.flag, each.verifier))) for each in advise(decisions)],
        "calibration": calibrated,
        "diagram": reliability_diagram(calibrated.bins),
    }


async def _group(history: History, shown: Period, model: str | None) -> Group:
    times = await history.trends.times(shown.since, shown.until, model)
    if shown.is_hours:
        newest = await history.trends.newest(shown.since, shown.until, model)
        by_moment = [_sum(newest, start, start + shown.step) for start in shown.starts]
    else:
        days = await history.trends.daily("model" if model else "all", *shown.days, key=model or None)
        on = {each.day: each.figures for each in days}
        by_moment = [on.get(_day(start)) for start in shown.starts]
    return Group(
        model or "all models",
        total(each for each in by_moment if each),
        by_moment,
        _percentiles([total_ms for total_ms, _ in times]),
        _percentiles([upstream_ms for _, upstream_ms in times if upstream_ms is not None]),
    )


def _sum(measured: Sequence[Measured], since: float, until: float) -> Figures | None:
    found = [each for each in measured if since <= each.at < until]
    return total(found) if found else None


def _percentiles(values: Sequence[float]) -> Percentiles:
    if not values:
        return Percentiles()
    cuts = quantiles(values, n=20, method="inclusive") if len(values) > 1 else [values[0]] * 19
    return Percentiles(cuts[9], cuts[18])


_Totals = tuple[tuple[str, Figures], ...]


async def _tables(history: History, shown: Period) -> tuple[_Totals, _Totals, Mapping[str, list[float]], int]:
    """Return the figures by model and by flag, the answers with each flag by day or hour, and the number of answers."""
    if not shown.is_hours:
        on = {start: at for at, start in enumerate(map(_day, shown.starts))}
        models, flags = [await history.trends.totals(by, *shown.days) for by in ("model", "flag")]
        everything = await history.trends.totals("all", *shown.days)
        by_flag = {flag: [0.0] * len(shown.starts) for flag, _ in flags}
        for each in await history.trends.daily("flag", *shown.days):
            if each.key in by_flag:
                by_flag[each.key][on[each.day]] += each.figures.exchanges
        return models, flags, by_flag, everything[0][1].exchanges if everything else 0
    newest = await history.trends.newest(shown.since, shown.until)
    of_model: dict[str, list[Measured]] = {}
    of_flag: dict[str, list[Measured]] = {}
    for one in newest:
        of_model.setdefault(one.model, []).append(one)
        for flag in one.flags:
            of_flag.setdefault(flag, []).append(one)
    by_flag = {flag: [0.0] * len(shown.starts) for flag in of_flag}
    for flag, found in of_flag.items():
        for one in found:
            by_flag[flag][int((one.at - shown.since) // shown.step)] += 1
    return _totals(of_model), _totals(of_flag), by_flag, len(newest)


def _totals(groups: Mapping[str, Sequence[Measured]]) -> _Totals:
    return tuple((name, total(groups[name])) for name in sorted(groups, key=lambda name: -len(groups[name])))


def _day(at: float) -> date:
    return datetime.fromtimestamp(at, UTC).date()


_FIGURES: tuple[tuple[str, str, Callable[[Group], float | None]], ...] = (
    ("Answers", "", lambda each: each.figures.exchanges),
    ("Grounding score", "%", lambda each: each.figures.mean("score")),
    ("Quality", "%", lambda each: each.figures.mean("quality")),
    ("Confidence", "%", lambda each: each.figures.mean("confidence")),
    ("Consistency", "%", lambda each: each.figures.mean("consistency")),
    ("Risk", "%", lambda each: each.figures.mean("risk")),
    ("Flagged answers", "%", lambda each: each.figures.flagged_share),
    ("Contradicted claims", "%", lambda each: _share(each.figures, "contradicted")),
    ("Claims not in the sources", "%", lambda each: _share(each.figures, "unsupported")),
    ("Verified in, median", "ms", lambda each: each.verified.median),
    ("Verified in, 95th percentile", "ms", lambda each: each.verified.high),
    ("Model server, median", "ms", lambda each: each.upstream.median),
    ("Model server, 95th percentile", "ms", lambda each: each.upstream.high),
    ("Input tokens", "", lambda each: each.figures.tokens("input")),
    ("Output tokens", "", lambda each: each.figures.tokens("output")),
)


def _share(figures: Figures, label: str) -> float | None:
    checked = figures.counts["checked"]
    return figures.counts[label] / checked if checked else None


def _compared(one: Group, other: Group) -> list[dict[str, str]]:
    """Return the figures of two groups that either of them has, for people."""
    values = [(name, unit, value(one), value(other)) for name, unit, value in _FIGURES]
    return [
        {
            "name": name,
            "one": format_value(here, unit),
            "other": format_value(there, unit),
            "difference": _difference(here, there, unit),
        }
        for name, unit, here, there in values
        if here is not None or there is not None
    ]


def _difference(one: float | None, other: float | None, unit: str) -> str:
    if one is None or other is None:
        return "–"
    sign = "+" if one > other else "−" if one < other else "±"
    return f"{sign}{format_value(abs(one - other), unit)}".replace("%", "points")


_CHARTS: tuple[tuple[str, str, tuple[tuple[str, Callable[[Figures], float | None]], ...]], ...] = (
    (
        "Scores",
        "%",
        (
            ("Grounding score", lambda each: each.mean("score")),
            ("Quality", lambda each: each.mean("quality")),
            ("Confidence", lambda each: each.mean("confidence")),
        ),
    ),
    (
        "Consistency and risk",
        "%",
        (
            ("Consistency with earlier answers", lambda each: each.mean("consistency")),
            ("Risk", lambda each: each.mean("risk")),
        ),
    ),
    ("Flagged answers", "%", (("Flagged", lambda each: each.flagged_share),)),
    (
        "Time to verify an answer",
        "ms",
        (("Median", lambda each: each.latency_ms(0.5)), ("95th percentile", lambda each: each.latency_ms(0.95))),
    ),
    ("Answers", "", (("Answers", lambda each: float(each.exchanges)),)),
    (_SERVER_TIME, "ms", (("Mean", lambda each: each.upstream_ms),)),
    (
        _TOKENS,
        "",
        (("Input", lambda each: each.tokens("input")), ("Output", lambda each: each.tokens("output"))),
    ),
)


def _charts(moments: Sequence[str], figures: Sequence[Figures | None]) -> list[Chart]:
    charts = []
    for title, unit, values in _CHARTS:
        series = [Series(name, [value(each) if each else None for each in figures]) for name, value in values]
        charts.append(line_chart(title, moments, series, unit))
    return [chart for chart in charts if chart.title not in _WHERE_KNOWN or not chart.is_empty]


async def _decisions(history: History) -> tuple[list[Decision], Calibration]:
    """Return the newest decisions on claims, once for each flag of a claim, and the calibration of their scores."""
    decisions, calibrated, seen = [], Calibration(), 0
    async for each in history.reviews.export(Wanted("decided")):
        seen += 1
        if each.is_wrong is not None and each.score is not None:
            calibrated.add(each.score, int(not each.is_wrong))
            decisions += [Decision(flag, each.verifier or "", each.score, each.is_wrong) for flag in each.flags]
        if seen >= _DECISIONS:
            break
    return decisions, calibrated
