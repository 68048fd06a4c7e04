"""The reliability diagram of a data set: the share of true statements by predicted probability."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from groundwire.telemetry.reliability import Bin

_SIDE, _EDGE = 300, 40


def reliability_svg(title: str, bins: Sequence[Bin]) -> str:
    """Return an SVG: one dot per tenth, its area the share of answers; the dashed line marks perfect calibration."""
    total = sum(each.n for each in bins) or 1
    dots = "\n".join(
        f'<circle cx="{_x(each.stated):.1f}" cy="{_y(each.true):.1f}" r="{3 + 20 * (each.n / total) ** 0.5:.1f}" '
        f'fill="#2b6cb0" fill-opacity="0.6"><title>{each.n} answers: stated {each.stated:.2f}, '
        f"true {each.true:.2f}</title></circle>"
        for each in bins
    )
    ticks = "\n".join(
        f'<text x="{_x(tick):.0f}" y="{_SIDE + _EDGE + 15}" text-anchor="middle">{tick:g}</text>'
        f'<text x="{_EDGE - 6}" y="{_y(tick) + 4:.0f}" text-anchor="end">{tick:g}</text>'
        for tick in (0, 0.5, 1)
    )
    size, middle = _SIDE + 2 * _EDGE, _EDGE + _SIDE / 2
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}">
<style>text {{ font: 12px sans-serif }}</style>
<rect width="{size}" height="{size}" fill="white"/>
<text x="{middle}" y="22" text-anchor="middle">{escape(title)}</text>
<rect x="{_EDGE}" y="{_EDGE}" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="#999"/>
<path d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}" stroke="#999" stroke-dasharray="4"/>
{ticks}
{dots}
<text x="{middle}" y="{size - 6}" text-anchor="middle">stated probability of being grounded</text>
<text transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">share that is grounded</text>
</svg>
"""


def _x(value: float) -> float:
    return _EDGE + _SIDE * value


def _y(value: float) -> float:
    return _EDGE + _SIDE * (1 - value)
