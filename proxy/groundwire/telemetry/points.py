"""Metrics as values of the OpenTelemetry SDK, which its exporter encodes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from opentelemetry.sdk.metrics import Exemplar as Told
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Histogram as Histograms
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from groundwire.telemetry.instruments import Instrument
from groundwire.telemetry.metrics import Family, Labels, Measured

_CUMULATIVE = AggregationTemporality.CUMULATIVE
_NS = 1e9


def metrics_data(
    families: Sequence[Family], resource: Resource, scope: str, version: str, started: float
) -> MetricsData:
    """Convert all metrics, counted since `started` (Unix seconds)."""
    span = int(started * _NS), time.time_ns()
    metrics = [_metric(family, *span) for family in families]
    scoped = ScopeMetrics(InstrumentationScope(scope, version), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scoped], "")])


def _metric(family: Family, start: int, now: int) -> Metric:
    instrument = family.instrument
    data: Gauge | Histograms | Sum
    if instrument.kind == "histogram":
        points = [_point(instrument, labels, measured, start, now) for labels, measured in family.histograms]
        data = Histograms(points, _CUMULATIVE)
    else:
        numbers = [
            NumberDataPoint(_attributes(instrument, labels), start, now, value) for labels, value in family.numbers
        ]
        data = Sum(numbers, _CUMULATIVE, is_monotonic=True) if instrument.kind == "counter" else Gauge(numbers)
    return Metric(instrument.name, instrument.about, instrument.unit, data)


def _point(instrument: Instrument, labels: Labels, measured: Measured, start: int, now: int) -> HistogramDataPoint:
    exemplars = [
        Told({}, each.value, int(each.at * _NS), each.span_id, each.trace_id) for _, each in measured.exemplars
    ]
    return HistogramDataPoint(
        _attributes(instrument, labels),
        start,
        now,
        sum(measured.counts),
        measured.sum,
        measured.counts,
        instrument.buckets,
        measured.least,
        measured.most,
        exemplars,
    )


def _attributes(instrument: Instrument, labels: Labels) -> dict[str, str | int]:
    """Return the labels by name; empty ones are left out, and HTTP statuses are numbers."""
    return {
        name: int(value) if name == "http.response.status_code" else value
        for name, value in zip(instrument.labels, labels, strict=True)
        if value
    }
