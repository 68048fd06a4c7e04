"""A text cut at its spans is still the same text, and each segment lists its spans."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from groundwire.http.pages.chart import Series, line_chart, sparkline
from groundwire.http.pages.rendering import Span, cut

TEXTS = st.text(max_size=40)
SPANS = st.lists(st.tuples(st.integers(-5, 50), st.integers(-5, 50)), max_size=8)


@given(TEXTS, SPANS)
def test_nothing_is_lost_and_every_character_knows_its_spans(text: str, places: list[tuple[int, int]]) -> None:
    spans = [Span(start, end, number) for number, (start, end) in enumerate(places)]
    segments = cut(text, spans)
    assert "".join(segment.text for segment in segments) == text
    at = 0
    for segment in segments:
        for offset in range(at, at + len(segment.text)):
            covering = {span.about for span in spans if span.start <= offset < min(span.end, len(text))}
            assert set(segment.about) == covering
        at += len(segment.text)


@given(TEXTS, SPANS)
def test_every_span_that_covers_anything_starts_once(text: str, places: list[tuple[int, int]]) -> None:
    spans = [Span(start, end, number) for number, (start, end) in enumerate(places)]
    started = sorted(about for segment in cut(text, spans) for about in segment.starts)
    assert started == sorted(span.about for span in spans if max(0, span.start) < min(len(text), span.end))


def test_overlapping_spans_give_separate_segments() -> None:
    segments = cut("abcdef", [Span(0, 4, "x"), Span(2, 6, "y")])
    assert [(segment.text, segment.about) for segment in segments] == [
        ("ab", ("x",)),
        ("cd", ("x", "y")),
        ("ef", ("y",)),
    ]


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e6)), min_size=1, max_size=40))
def test_a_chart_stays_inside_its_picture(values: list[float | None]) -> None:
    days = [date(2026, 1, 1) + timedelta(days=at) for at in range(len(values))]
    for unit in ("%", "ms", ""):
        chart = line_chart("Something", days, [Series("it", values)], unit)
        (line,) = chart.lines
        assert len(line.dots) == sum(value is not None for value in values)
        assert all(chart.left <= dot.x <= chart.right and 0 <= dot.y <= chart.bottom for dot in line.dots)


def test_a_line_breaks_where_there_is_no_value() -> None:
    days = [date(2026, 1, day) for day in range(1, 6)]
    chart = line_chart("Scores", days, [Series("score", [0.5, 0.6, None, 0.7, 1.0])], "%")
    assert len(chart.lines[0].strokes) == 2
    assert chart.lines[0].dots[-1].label == "2026-01-05: score 100 %"


def test_a_sparkline_of_nothing_is_flat() -> None:
    assert sparkline([0.0, 0.0, 0.0]) == "1.0,20.0 48.0,20.0 95.0,20.0"
