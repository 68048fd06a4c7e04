"""Convert the metrics to values of OpenTelemetry's SDK, which its exporter encodes. Imported only if it sends them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from opentelemetry.sdk.metrics import Exemplar
from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.core import Metric
from prometheus_client.samples import Sample

from groundwire.telemetry.instruments import Instrument, Labels
from groundwire.telemetry.names import STATUS_CODE
from groundwire.telemetry.prometheus import Registry

_NS = 1e9


@dataclass(slots=True)
class _Series:
    """The samples of one histogram under one set of labels."""

    cumulative: list[int] = field(default_factory=lambda: [0])
    sum: float = 0.0
    exemplars: list[Exemplar] = field(default_factory=list)

    def add(self, sample: Sample) -> None:
        if sample.name.endswith("_sum"):
            self.sum = sample.value
        elif sample.name.endswith("_bucket"):
            self.cumulative.append(int(sample.value))
            if (found := sample.exemplar) is not None:
                at, trace, span = float(found.timestamp or 0), found.labels["trace_id"], found.labels["span_id"]
                self.exemplars.append(Exemplar({}, found.value, int(at * _NS), int(span, 16), int(trace, 16)))


class Converter:
    """Convert the metrics of a registry, counted since the converter was made."""

    def __init__(self, registry: Registry, resource: Resource, scope: InstrumentationScope) -> None:
        self._registry = registry
        self._resource = resource
        self._scope = scope
        self._start = time.time_ns()

    def __call__(self) -> sdk.MetricsData:
        """Return the metrics as they are now."""
        metrics = [self._metric(*found) for found in self._registry.collect_instruments()]
        scoped = sdk.ScopeMetrics(self._scope, metrics, "")
        return sdk.MetricsData([sdk.ResourceMetrics(self._resource, [scoped], "")])

    def _metric(self, instrument: Instrument, metric: Metric) -> sdk.Metric:
        now, cumulative = time.time_ns(), sdk.AggregationTemporality.CUMULATIVE
        data: sdk.Gauge | sdk.Histogram | sdk.Sum
        if instrument.kind == "histogram":
            data = sdk.Histogram(self._histograms(instrument, metric.samples, now), cumulative)
        else:
            points = [
                sdk.NumberDataPoint(
                    _attributes(instrument, _labels(instrument, sample)), self._start, now, sample.value
                )
                for sample in metric.samples
            ]
            data = sdk.Sum(points, cumulative, is_monotonic=True) if instrument.kind == "counter" else sdk.Gauge(points)
        return sdk.Metric(instrument.name, instrument.about, instrument.unit, data)

    def _histograms(self, instrument: Instrument, samples: Iterable[Sample], now: int) -> list[sdk.HistogramDataPoint]:
        found: dict[Labels, _Series] = {}
        for sample in samples:
            found.setdefault(_labels(instrument, sample), _Series()).add(sample)
        return [
            sdk.HistogramDataPoint(
                _attributes(instrument, labels),
                self._start,
                now,
                series.cumulative[-1],
                series.sum,
                [upper - lower for lower, upper in pairwise(series.cumulative)],
                instrument.buckets,
                None,  # type: ignore[arg-type]  # prometheus-client keeps no minimum; the field is optional in OTLP
                None,  # type: ignore[arg-type]  # nor a maximum
                series.exemplars,
            )
            for labels, series in found.items()
        ]


def _labels(instrument: Instrument, sample: Sample) -> Labels:
    return tuple(sample.labels[label] for label in instrument.prometheus_labels)


def _attributes(instrument: Instrument, labels: Labels) -> Mapping[str, str | int]:
    """Return the labels by name; empty ones are left out, and HTTP statuses are numbers."""
    return {
        name: int(value) if name == STATUS_CODE else value
        for name, value in zip(instrument.labels, labels, strict=True)
        if value
    }
