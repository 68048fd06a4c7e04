"""The quality page: how scores, flags and latency go over time, models side by side, and how often flags are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from groundwire.features.advice import Advice, Decision, advise
from groundwire.http.audited_history import AuditedHistory
from groundwire.http.pages.chart import Chart, Diagram, Series, line_chart, reliability_diagram, sparkline
from groundwire.http.reviews import day_start
from groundwire.storage.history.reviews import Precision, Wanted
from groundwire.storage.history.trends import Figures, Trend, total
from groundwire.telemetry.reliability import Calibration, calibration

RANGES = (7, 30, 90)
_DECISIONS = 5000  # the newest ones, from which thresholds are advised
_POLICY = "grounding.policy"
_SETTINGS = {
    ("unsupported_claims", "statement"): _POLICY,
    ("budget_gap", "statement"): "hallucination.output_verification.flag_threshold_bits",
}


@dataclass(frozen=True, slots=True)
class FlagRow:
    """A flag over some days: how many answers carry it, which share of all that is, and how often it was right."""

    flag: str
    answers: int
    share: float
    points: str
    precision: tuple[Precision, ...]


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model over some days."""

    model: str
    figures: Figures


@dataclass(frozen=True, slots=True)
class QualityView:
    """The content of the quality page: the last `days` days, of one model or of all."""

    days: int
    model: str | None
    models: tuple[ModelRow, ...]
    figures: Figures
    charts: tuple[Chart, ...]
    flags: tuple[FlagRow, ...]
    decided: Precision | None
    advice: tuple[tuple[Advice, str | None], ...]
    calibration: Calibration
    diagram: Diagram


async def quality_view(desk: AuditedHistory, days: int, model: str | None, now: float) -> QualityView:
    """The quality of the last days, today (UTC) included; `now` is in Unix seconds."""
    end = datetime.fromtimestamp(now, UTC).date() + timedelta(days=1)
    since = end - timedelta(days=days)
    trend = await (desk.daily("model", since, end, key=model) if model else desk.daily("all", since, end))
    models = await desk.totals("model", since, end)
    flags = await desk.totals("flag", since, end)
    by_flag = await desk.daily("flag", since, end)
    everything = await desk.totals("all", since, end)
    precision = await desk.precision(day_start(since))
    calendar = tuple(since + timedelta(days=at) for at in range(days))
    answers = everything[0][1].exchanges if everything else 0
    decisions = await _decided(desk)
    calibrated = calibration((each.score, int(not each.is_right)) for each in decisions)
    return QualityView(
        days,
        model,
        tuple(ModelRow(name, figures) for name, figures in models),
        total([each.figures for each in trend]),
        _charts(calendar, trend),
        tuple(_flag_row(flag, found, answers, calendar, by_flag, precision) for flag, found in flags),
        _together(precision),
        tuple((each, _SETTINGS.get((each.flag, each.verifier))) for each in advise(_by_flag(decisions))),
        calibrated,
        reliability_diagram(calibrated.bins),
    )


def _charts(days: Sequence[date], trend: Sequence[Trend]) -> tuple[Chart, ...]:
    on = {each.day: each.figures for each in trend}
    figures = [on.get(day) for day in days]

    def of(name: str, value: Callable[[Figures], float | None]) -> Series:
        return Series(name, [value(each) if each else None for each in figures])

    return (
        line_chart(
            "Scores",
            days,
            [
                of("Grounding score", lambda each: each.mean("score")),
                of("Quality", lambda each: each.mean("quality")),
                of("Confidence", lambda each: each.mean("confidence")),
            ],
            "%",
        ),
        line_chart(
            "Consistency and risk",
            days,
            [
                of("Consistency with earlier answers", lambda each: each.mean("consistency")),
                of("Risk", lambda each: each.mean("risk")),
            ],
            "%",
        ),
        line_chart("Flagged answers", days, [of("Flagged", lambda each: each.flagged_share)], "%"),
        line_chart(
            "Time to verify an answer",
            days,
            [of("Median", lambda each: each.latency_ms(0.5)), of("95 of 100", lambda each: each.latency_ms(0.95))],
            "ms",
        ),
        line_chart("Answers", days, [of("Answers", lambda each: float(each.exchanges))], ""),
    )


def _flag_row(
    flag: str,
    figures: Figures,
    answers: int,
    days: Sequence[date],
    trend: Sequence[Trend],
    precision: Sequence[Precision],
) -> FlagRow:
    on = {each.day: float(each.figures.exchanges) for each in trend if each.key == flag}
    points = sparkline([on.get(day, 0.0) for day in days])
    share = figures.exchanges / answers if answers else 0.0
    return FlagRow(flag, figures.exchanges, share, points, tuple(each for each in precision if each.flag == flag))


def _together(precision: Sequence[Precision]) -> Precision | None:
    """All decisions on flags as one figure."""
    confirmed, rejected = sum(each.confirmed for each in precision), sum(each.rejected for each in precision)
    return Precision("", "", confirmed, rejected) if confirmed + rejected else None


@dataclass(frozen=True, slots=True)
class _Decided:
    """A claim with a reviewer's decision; `score` (0–1) is the predicted probability of support."""

    flags: tuple[str, ...]
    verifier: str
    score: float
    is_right: bool


async def _decided(desk: AuditedHistory) -> list[_Decided]:
    """The newest decisions on claims."""
    found: list[_Decided] = []
    seen = 0
    async for each in desk.history.reviews.export(Wanted("decided")):
        seen += 1
        if each.decided and each.score is not None:
            is_right = each.decided.decision == "confirmed"
            found.append(_Decided(each.flags, each.verifier or "", each.score, is_right))
        if seen >= _DECISIONS:
            break
    return found


def _by_flag(decisions: Sequence[_Decided]) -> Iterator[Decision]:
    """The decisions once for each flag that their claim carries."""
    for each in decisions:
        for flag in each.flags:
            yield Decision(flag, each.verifier, each.score, each.is_right)
