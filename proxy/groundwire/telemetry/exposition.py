"""Metrics in Prometheus's formats, written by its client library, which is loaded at the first request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from groundwire.telemetry.metrics import Exemplar, Family, Measured

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric
    from prometheus_client.samples import Exemplar as Told


def written(families: Sequence[Family], accept: str) -> tuple[bytes, str]:
    """Return the metrics, including those of the process, in the format that `accept` requests, and its content type.

    Exemplars are included in OpenMetrics only, because the plain format does not support them.
    """
    from prometheus_client.exposition import choose_encoder

    encode, content_type = choose_encoder(accept)
    return encode(_registry(families)), content_type


def _registry(families: Sequence[Family]) -> CollectorRegistry:
    from prometheus_client import CollectorRegistry, ProcessCollector
    from prometheus_client.registry import Collector

    class Recorded(Collector):
        def collect(self) -> Iterable[Metric]:
            return map(_metric, families)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Recorded())
    ProcessCollector(registry=registry)
    return registry


def _metric(family: Family) -> Metric:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    instrument = family.instrument
    labels = _labels(instrument.labels)
    if instrument.kind == "histogram":
        histogram = HistogramMetricFamily(instrument.prometheus, instrument.about, labels=labels)
        for values, measured in family.histograms:
            histogram.add_metric(values, _buckets(instrument.buckets, measured), measured.sum)
        return histogram
    kind = CounterMetricFamily if instrument.kind == "counter" else GaugeMetricFamily
    numbers: CounterMetricFamily | GaugeMetricFamily = kind(instrument.prometheus, instrument.about, labels=labels)
    for values, number in family.numbers:
        numbers.add_metric(values, number)
    return numbers


@lru_cache(maxsize=256)
def _labels(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.replace(".", "_") for name in names)


def _buckets(bounds: Sequence[float], measured: Measured) -> list[tuple[str, float] | tuple[str, float, Told]]:
    """Return the upper bound, cumulative count and exemplar, if any, of each bucket."""
    found = dict(measured.exemplars)
    upper = [*(repr(float(bound)) for bound in bounds), "+Inf"]
    counted = enumerate(zip(upper, accumulate(measured.counts), strict=True))
    return [(le, count, _exemplar(found[at])) if at in found else (le, count) for at, (le, count) in counted]


def _exemplar(exemplar: Exemplar) -> Told:
    from prometheus_client.samples import Exemplar as Told

    ids = {"trace_id": f"{exemplar.trace_id:032x}", "span_id": f"{exemplar.span_id:016x}"}
    return Told(ids, exemplar.value, exemplar.at)
