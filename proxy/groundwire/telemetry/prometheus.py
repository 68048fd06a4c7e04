"""The store of metrics: prometheus-client's counters, gauges and histograms. Imported only if metrics are enabled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from groundwire.telemetry.instruments import Instrument, Labels, Reading

Reader = Callable[[], Iterable[Reading]]


class Registry(Collector):
    """The metrics of one process: those recorded here, and those that other components keep and `readers` return."""

    def __init__(self) -> None:
        self.readers: list[Reader] = []
        self._instruments: dict[str, Instrument] = {}
        self._recorded = CollectorRegistry()
        self._exposed = CollectorRegistry(auto_describe=False)
        self._exposed.register(self)
        ProcessCollector(registry=self._exposed)

    def counter(self, instrument: Instrument, known: Iterable[Labels] = ()) -> Counter:
        """Return a counter; `known` labels start at 0."""
        counter = Counter(*self._describe(instrument), registry=self._recorded)
        for labels in known:
            counter.labels(*labels)
        return counter

    def gauge(self, instrument: Instrument) -> Gauge:
        """Return a gauge."""
        return Gauge(*self._describe(instrument), registry=self._recorded)

    def histogram(self, instrument: Instrument) -> Histogram:
        """Return a histogram."""
        return Histogram(*self._describe(instrument), registry=self._recorded, buckets=instrument.buckets)

    def _describe(self, instrument: Instrument) -> tuple[str, str, Labels]:
        self._instruments[_family(instrument)] = instrument
        return instrument.prometheus, instrument.about, instrument.prometheus_labels

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that have values, without the times at which their series began."""
        for metric in self._recorded.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            if metric.samples:
                yield metric
        yield from self._read().values()

    def collect_instruments(self) -> Iterator[tuple[Instrument, Metric]]:
        """Yield the metrics that have values, each with its instrument."""
        for metric in self.collect():
            yield self._instruments[metric.name], metric

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics, including those of the process, in the format that `accept` requests, and its type.

        Exemplars are included in OpenMetrics only, because the plain format does not support them.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self._exposed), content_type

    def _read(self) -> dict[str, Metric]:
        families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
        for reader in tuple(self.readers):
            for instrument, labels, value in reader():
                if (name := _family(instrument)) not in families:
                    kind = CounterMetricFamily if instrument.kind == "counter" else GaugeMetricFamily
                    families[name] = kind(*self._describe(instrument)[:2], labels=instrument.prometheus_labels)
                families[name].add_metric(labels, value)
        return dict(families)


def _family(instrument: Instrument) -> str:
    """Return the name by which prometheus-client knows a metric: that of a counter has no `_total`."""
    return instrument.prometheus.removesuffix("_total")
