"""The metrics of one process, in prometheus-client's counters, gauges and histograms: 1 to 3 µs a measurement.

Imported only if metrics are enabled.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from groundwire.domain import BudgetStatus, ContradictionKind, Severity
from groundwire.report import Report
from groundwire.telemetry import instruments as i
from groundwire.telemetry.instruments import Instrument, Labels, Reading
from groundwire.telemetry.names import Semconv
from groundwire.telemetry.reliability import Calibration
from groundwire.telemetry.spans import NO_SPAN, Span

MAX_MODELS = 50  # names apart from those of the settings; clients may send any
OTHER = "other"
_LAG_INTERVAL_S = 0.5


class Models:
    """Limit the model names used as labels: those of the settings, and the first fifty others that answered."""

    def __init__(self, named: Iterable[str] = (), limit: int = MAX_MODELS) -> None:
        self._known = set(named)
        self._limit = len(self._known) + limit

    def label(self, model: str, *, answered: bool = False) -> str:
        """Return the model's name if it may be a label, else `other`."""
        if model in self._known:
            return model
        if answered and model and len(self._known) < self._limit:
            self._known.add(model)
            return model
        return OTHER


class CallMetrics:
    """The metrics of calls of model servers."""

    def __init__(self, registry: Registry, semconv: Semconv) -> None:
        duration, first_chunk, per_chunk, *tokens = i.call_instruments(semconv)
        self.duration = registry.histogram(duration)
        self.first_chunk = registry.histogram(first_chunk)
        self.per_chunk = registry.histogram(per_chunk)
        self._histogram = registry.histogram(tokens[0]) if len(tokens) == 1 else None
        self._counters = [registry.counter(each) for each in tokens] if len(tokens) > 1 else []

    def count_tokens(self, labels: Labels, tokens: tuple[int | None, int | None]) -> None:
        """Count the input and output tokens of one call; None is not counted."""
        for index, (kind, count) in enumerate(zip(("input", "output"), tokens, strict=True)):
            if count is None:
                continue
            if self._histogram is not None:
                self._histogram.labels(*labels, kind).observe(count)
            else:
                self._counters[index].labels(*labels, "unknown").inc(count)


class Metrics:
    """All metrics of one process. `named` are the models in the settings."""

    def __init__(self, semconv: Semconv = "1.41", named: Iterable[str] = (), version: str = "") -> None:
        registry = self.registry = Registry()
        self.models = Models(named)
        self.active = registry.gauge(i.ACTIVE_REQUESTS)
        self.requests = registry.histogram(i.REQUEST_DURATION)
        self.first_byte = registry.histogram(i.FIRST_BYTE)
        self.calls = CallMetrics(registry, semconv)
        self.facts = registry.counter(i.FACTS)
        self.jobs = registry.counter(i.JOBS_ENDED)
        self.lag = registry.histogram(i.LAG)
        self._answers = registry.counter(i.ANSWERS)
        self._claims = registry.counter(i.CLAIMS)
        self._flags = registry.counter(i.FLAGS)
        self._scores = registry.histogram(i.SCORES)
        kinds = product(get_args(ContradictionKind), get_args(Severity))
        self._contradictions = registry.counter(i.CONTRADICTIONS, kinds)
        self._budgets = registry.counter(i.BUDGETS, zip(get_args(BudgetStatus)))
        self._reviewed = registry.histogram(i.REVIEWED)
        self._verification = registry.histogram(i.VERIFICATION)
        self._stages = registry.histogram(i.STAGES)
        self._cache = registry.counter(i.CACHE)
        self._hits = self._misses = 0
        self._calibration = Calibration()
        registry.gauge(i.BUILD).labels(version).set(1)
        self.readers = registry.readers
        """Functions that return counts that other components keep; they are called from any thread."""
        self.readers.append(self._derived)

    def evaluated(self, report: Report, span: Span = NO_SPAN) -> None:
        """Count one report, verified within this span."""
        self._answers.labels(report.status, report.verdict).inc()
        for flag in report.flags:
            self._flags.labels(flag).inc()
        judgements = [judgement for choice in report.choices for judgement in choice.judgements]
        claims = collections.Counter((each.verdict.label, each.verdict.verifier) for each in judgements)
        for labels, count in claims.items():
            self._claims.labels(*labels).inc(count)
        for judgement in judgements:
            if judgement.budget is not None:
                self._budgets.labels(judgement.budget.status).inc()
        scores = {
            "grounding": report.score,
            "confidence": report.confidence.score if report.confidence else None,
            "consistency": report.consistency.score if report.consistency else None,
            "risk": report.risk.score if report.risk else None,
            "quality": report.quality,
        }
        for kind, score in scores.items():
            if score is not None:
                self._scores.labels(kind).observe(score)
        for each in report.consistency.contradictions if report.consistency else ():
            self._contradictions.labels(each.kind, each.severity).inc()
        hits, misses = report.cache.hits, report.cache.misses
        self._hits += hits
        self._misses += misses
        for outcome, count in (("hit", hits), ("miss", misses)):
            if count:
                self._cache.labels(outcome).inc(count)
        for stage, ms in report.timing_ms:
            if stage == "total":
                self._verification.labels(report.status).observe(ms / 1000, span.exemplar)
            else:
                self._stages.labels(stage).observe(ms / 1000)

    def reviewed(self, verifier: str, score: float, *, is_right: bool) -> None:
        """Count a reviewer's decision on a claim: its score, and whether its flag is right."""
        self._reviewed.labels(verifier, "confirmed" if is_right else "rejected").observe(score)
        self._calibration.add(score, int(not is_right))

    def _derived(self) -> Iterator[Reading]:
        """Yield the values that follow from others, if there are any."""
        if lookups := self._hits + self._misses:
            yield i.CACHE_RATE, (), self._hits / lookups
        if (error := self._calibration.error) is not None:
            yield i.CALIBRATION, (), error


class LoopLag:
    """Measure the delay of the running event loop twice a second, from `start` to `stop`."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start measuring the running loop."""
        self._schedule(asyncio.get_running_loop())

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next = loop.call_at((due := loop.time() + _LAG_INTERVAL_S), self._measure, loop, due)

    def _measure(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self._histogram.observe(max(0.0, loop.time() - due))
        self._schedule(loop)

    def stop(self) -> None:
        """Stop measuring."""
        if self._next is not None:
            self._next.cancel()


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
