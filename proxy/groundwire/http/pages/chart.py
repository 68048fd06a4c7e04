"""The geometry of charts in SVG units, as pure functions. Templates draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from groundwire.telemetry.reliability import Bin

_STEPS = 4  # of an axis
_TOPS = (4, 8, 20, 40)


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one quantity, one for each day or hour; None if missing."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Dot:
    """One value: its position and its label."""

    x: float
    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    """A series as strokes, broken where there are no values, with its values as dots."""

    name: str
    strokes: Sequence[str]
    dots: Sequence[Dot]


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A line chart; coordinates count from the upper left of a picture of this size. `moments` are days or hours."""

    width: ClassVar = 640
    height: ClassVar = 220
    left: ClassVar = 56
    right: ClassVar = width - 10
    top: ClassVar = 12
    bottom: ClassVar = height - 26

    title: str
    moments: Sequence[str]
    series: Sequence[Series]
    unit: str
    lines: Sequence[Line]
    across: Sequence[Tick]
    up: Sequence[Tick]

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to draw."""
        return not any(line.dots for line in self.lines)


@dataclass(frozen=True, slots=True)
class Diagram:
    """A reliability diagram: stated probability across, the share that came true up, both from 0 to 100 %."""

    size: ClassVar = 280
    left: ClassVar = Chart.left
    right: ClassVar = size - 20
    top: ClassVar = Chart.top
    bottom: ClassVar = size - 26

    bins: Sequence[Bin]
    dots: Sequence[Dot]
    across: Sequence[Tick]
    up: Sequence[Tick]


def reliability_diagram(bins: Sequence[Bin]) -> Diagram:
    """Return a diagram with one dot for each tenth of probability."""

    def x(share: float) -> float:
        return round(Diagram.left + (Diagram.right - Diagram.left) * share, 1)

    def y(share: float) -> float:
        return round(Diagram.bottom - (Diagram.bottom - Diagram.top) * share, 1)

    dots = [
        Dot(
            x(each.stated),
            y(each.true),
            f"{each.n} claims: stated {format_value(each.stated, '%')}, true {format_value(each.true, '%')}",
        )
        for each in bins
    ]
    shares = [step / _STEPS for step in range(_STEPS + 1)]
    across, up = ([Tick(at(share), format_value(share, "%")) for share in shares] for at in (x, y))
    return Diagram(bins, dots, across, up)


def line_chart(title: str, moments: Sequence[str], series: Sequence[Series], unit: str) -> Chart:
    """Return a chart of series over days or hours. `unit` is % (of shares 0–1), ms or empty.

    Shares run from 0 to 100 %, other values from 0 to a round number.
    """
    values = [value for each in series for value in each.values if value is not None]
    top = 1.0 if unit == "%" else _round_up(max(values, default=0.0))

    def x(at: int) -> float:
        share = at / (len(moments) - 1) if len(moments) > 1 else 0.5
        return round(Chart.left + (Chart.right - Chart.left) * share, 1)

    def y(value: float) -> float:
        return round(Chart.bottom - (Chart.bottom - Chart.top) * min(value, top) / top, 1)

    def line(each: Series) -> Line:
        known = [None if value is None else (x(at), y(value)) for at, value in enumerate(each.values)]
        dots = [
            Dot(x(at), y(value), f"{moments[at]}: {each.name} {format_value(value, unit)}")
            for at, value in enumerate(each.values)
            if value is not None
        ]
        return Line(each.name, _strokes(known), dots)

    every = max(1, -(-len(moments) // 6))
    across = [Tick(x(at), moments[at]) for at in range(0, len(moments), every)]
    up = [Tick(y(top * step / _STEPS), format_value(top * step / _STEPS, unit)) for step in range(_STEPS + 1)]
    return Chart(title, moments, series, unit, [line(each) for each in series], across, up)


def sparkline(values: Sequence[float], width: int = 96, height: int = 22) -> str:
    """Return the points of a small line without axes, from 0 to its highest value."""
    top = max(values, default=0.0) or 1.0
    steps = max(1, len(values) - 1)
    return " ".join(
        f"{round(1 + (width - 2) * at / steps, 1)},{round(height - 2 - (height - 4) * value / top, 1)}"
        for at, value in enumerate(values)
    )


def _strokes(points: Sequence[tuple[float, float] | None]) -> list[str]:
    """Return the points of each unbroken stretch of two or more, as an SVG polyline takes them."""
    stretches: list[list[str]] = [[]]
    for point in points:
        if point is None:
            stretches.append([])
        else:
            stretches[-1].append(f"{point[0]},{point[1]}")
    return [" ".join(each) for each in stretches if len(each) > 1]


def format_value(value: float | None, unit: str) -> str:
    """Format a value for a person, – for none."""
    if value is None:
        return "–"
    if unit == "%":
        return f"{100 * value:.0f} %"
    if unit == "ms":
        return f"{value:.3g} ms" if value < 999.5 else f"{value / 1000:.3g} s"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _round_up(value: float) -> float:
    """Return the next of 4, 8, 20, 40, 80, 200, …: a quarter of it is a whole number."""
    power = 1.0
    while value > _TOPS[-1] * power:
        power *= 10
    return next(step * power for step in _TOPS if step * power >= value)
