"""The geometry of charts in SVG units, as pure functions. Templates draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from groundwire.telemetry.reliability import Bin

_WIDTH, _HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 10, 12, 26
_SIDE = 280
_TICKS = 5
_STEPS = (4, 8, 20, 40)


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
    strokes: tuple[str, ...]
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A line chart; coordinates count from the upper left of a picture of this size. `moments` are days or hours."""

    title: str
    width: int
    height: int
    left: int
    right: int
    bottom: int
    lines: tuple[Line, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    moments: tuple[str, ...]
    series: tuple[Series, ...]
    unit: str

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to draw."""
        return not any(line.dots for line in self.lines)


@dataclass(frozen=True, slots=True)
class Diagram:
    """A reliability diagram: stated probability across, the share that came true up, both from 0 to 100 %."""

    size: int
    left: int
    right: int
    top: int
    bottom: int
    dots: tuple[Dot, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    bins: tuple[Bin, ...]


def reliability_diagram(bins: Sequence[Bin]) -> Diagram:
    """Return a diagram with one dot for each tenth of probability."""
    left, right, top, bottom = _LEFT, _SIDE - 2 * _RIGHT, _TOP, _SIDE - _BOTTOM

    def x(share: float) -> float:
        return round(left + (right - left) * share, 1)

    def y(share: float) -> float:
        return round(bottom - (bottom - top) * share, 1)

    def dot(each: Bin) -> Dot:
        label = f"{each.n} claims: stated {told(each.stated, '%')}, true {told(each.true, '%')}"
        return Dot(x(each.stated), y(each.true), label)

    shares = [step / (_TICKS - 1) for step in range(_TICKS)]
    across, up = ([Tick(at(share), told(share, "%")) for share in shares] for at in (x, y))
    return Diagram(_SIDE, left, right, top, bottom, tuple(map(dot, bins)), tuple(across), tuple(up), tuple(bins))


def line_chart(title: str, moments: Sequence[str], series: Sequence[Series], unit: str) -> Chart:
    """Return a chart of series over days or hours. `unit` is % (of shares 0–1), ms or empty.

    Shares run from 0 to 100 %, other values from 0 to a round number.
    """
    values = [value for each in series for value in each.values if value is not None]
    top = 1.0 if unit == "%" else _round_up(max(values, default=0.0))
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def x(at: int) -> float:
        return round(_LEFT + (right - _LEFT) * (at / (len(moments) - 1) if len(moments) > 1 else 0.5), 1)

    def y(value: float) -> float:
        return round(bottom - (bottom - _TOP) * min(value, top) / top, 1)

    def line(each: Series) -> Line:
        known = [None if value is None else (x(at), y(value)) for at, value in enumerate(each.values)]
        dots = [
            Dot(x(at), y(value), f"{moments[at]}: {each.name} {told(value, unit)}")
            for at, value in enumerate(each.values)
            if value is not None
        ]
        return Line(each.name, strokes(known), tuple(dots))

    every = max(1, -(-len(moments) // 6))
    across = [Tick(x(at), moments[at]) for at in range(0, len(moments), every)]
    up = [Tick(y(top * step / (_TICKS - 1)), told(top * step / (_TICKS - 1), unit)) for step in range(_TICKS)]
    return Chart(
        title, _WIDTH, _HEIGHT, _LEFT, right, bottom,
        tuple(map(line, series)), tuple(across), tuple(up), tuple(moments), tuple(series), unit,
    )  # fmt: skip


def sparkline(values: Sequence[float], width: int = 96, height: int = 22) -> str:
    """The points of a small line without axes, from 0 to its highest value."""
    top = max(values, default=0.0) or 1.0
    steps = max(1, len(values) - 1)
    return " ".join(
        f"{round(1 + (width - 2) * at / steps, 1)},{round(height - 2 - (height - 4) * value / top, 1)}"
        for at, value in enumerate(values)
    )


def strokes(points: Sequence[tuple[float, float] | None]) -> tuple[str, ...]:
    """The points of each unbroken stretch of two or more, as an SVG polyline takes them."""
    stretches: list[list[str]] = [[]]
    for point in points:
        if point is None:
            stretches.append([])
        else:
            stretches[-1].append(f"{point[0]},{point[1]}")
    return tuple(" ".join(each) for each in stretches if len(each) > 1)


def told(value: float | None, unit: str) -> str:
    """A value for a person, – for none."""
    if value is None:
        return "–"
    if unit == "%":
        return f"{100 * value:.0f} %"
    if unit == "ms":
        return f"{value:.3g} ms" if value < 999.5 else f"{value / 1000:.3g} s"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _round_up(value: float) -> float:
    """The next of 4, 8, 20, 40, 80, 200, …: a quarter of it is a whole number."""
    power = 1.0
    while value > _STEPS[-1] * power:
        power *= 10
    return next(step * power for step in _STEPS if step * power >= value)
