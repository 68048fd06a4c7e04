"""In-process metrics. Recording is a dictionary access: no lock, no library, no allocation.

Recording happens on the event loop's thread; exporters may read from any thread. Measuring with prometheus-client's and
the OpenTelemetry SDK's instruments costs 8 and 50 times as much, so those libraries are used for output only.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import get_args

from groundwire.domain import BudgetStatus, ContradictionKind, Severity
from groundwire.report import Report
from groundwire.telemetry.instruments import (
    ACTIVE_REQUESTS,
    ANSWERS,
    BUDGETS,
    BUILD,
    CACHE,
    CACHE_RATE,
    CALIBRATION,
    CLAIMS,
    CONTRADICTIONS,
    FACTS,
    FIRST_BYTE,
    FLAGS,
    JOBS_ENDED,
    LAG,
    REQUEST_DURATION,
    REVIEWED,
    SCORES,
    STAGES,
    VERIFICATION,
    CallInstruments,
    Instrument,
    call_instruments,
)
from groundwire.telemetry.names import Semconv
from groundwire.telemetry.reliability import Calibration

Labels = tuple[str, ...]
Reading = tuple[Instrument, Labels, float]
"""The value of a counter or gauge that another component keeps, read on demand."""

_MOST_MODELS = 50  # maximum number of names apart from those of the settings; clients may send any
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Exemplar:
    """One measurement and the sampled span that it was made in; `at` is in Unix seconds."""

    value: float
    trace_id: int
    span_id: int
    at: float


class Series:
    """The measurements of one histogram under one set of labels; `counts` has one more entry than there are bounds."""

    __slots__ = ("_bounds", "counts", "exemplars", "least", "most", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = self.most = 0.0
        self.least = math.inf
        self.exemplars: dict[int, Exemplar] = {}

    def observe(self, value: float, trace: tuple[int, int] | None = None) -> None:
        """Add one measurement; `trace` is its trace id and span id."""
        bucket = bisect_left(self._bounds, value)
        self.counts[bucket] += 1
        self.sum += value
        if value > self.most:
            self.most = value
        if value < self.least:
            self.least = value
        if trace is not None:
            self.exemplars[bucket] = Exemplar(value, *trace, time.time())


@dataclass(frozen=True, slots=True)
class Measured:
    """A snapshot of one histogram under one set of labels."""

    counts: tuple[int, ...]
    sum: float
    least: float
    most: float
    exemplars: tuple[tuple[int, Exemplar], ...]


@dataclass(frozen=True, slots=True)
class Family:
    """A snapshot of one instrument."""

    instrument: Instrument
    numbers: tuple[tuple[Labels, float], ...] = ()
    histograms: tuple[tuple[Labels, Measured], ...] = ()


class Counter:
    """A counter by labels, given in the order that the instrument declares; `known` labels start at 0."""

    __slots__ = ("_values", "instrument")

    def __init__(self, instrument: Instrument, known: Iterable[Labels] = ()) -> None:
        self.instrument = instrument
        self._values: dict[Labels, float] = dict.fromkeys(known, 0)

    def add(self, labels: Labels, amount: float = 1) -> None:
        """Increase the count by `amount`."""
        self._values[labels] = self._values.get(labels, 0) + amount

    def value(self, labels: Labels) -> float:
        """Return the count."""
        return self._values.get(labels, 0)

    def family(self) -> Family:
        """Return a snapshot."""
        return Family(self.instrument, numbers=tuple(self._values.items()))


class Histogram:
    """A histogram by labels, given in the order that the instrument declares."""

    __slots__ = ("_series", "instrument")

    def __init__(self, instrument: Instrument) -> None:
        self.instrument = instrument
        self._series: dict[Labels, Series] = {}

    def at(self, labels: Labels) -> Series:
        """Return the series of these labels."""
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = Series(self.instrument.buckets)
        return series

    def family(self) -> Family:
        """Return a snapshot."""
        return Family(
            self.instrument, histograms=tuple((labels, _read(each)) for labels, each in [*self._series.items()])
        )


def _read(series: Series) -> Measured:
    return Measured(tuple(series.counts), series.sum, series.least, series.most, tuple(series.exemplars.items()))


class Models:
    """Limit the model names used as labels: those of the settings, and the first fifty others that answered."""

    def __init__(self, named: Iterable[str] = (), most: int = _MOST_MODELS) -> None:
        self._known = set(named)
        self._most = len(self._known) + most

    def label(self, model: str, *, answered: bool = False) -> str:
        """Return the model's name if it may be a label, else `other`."""
        if model in self._known:
            return model
        if answered and model and len(self._known) < self._most:
            self._known.add(model)
            return model
        return OTHER


class CallMetrics:
    """The metrics of calls of model servers."""

    def __init__(self, instruments: CallInstruments) -> None:
        self.duration = Histogram(instruments.duration)
        self.first_chunk = Histogram(instruments.first_chunk)
        self.per_chunk = Histogram(instruments.per_chunk)
        self._histogram = Histogram(instruments.tokens[0]) if len(instruments.tokens) == 1 else None
        self._counters = tuple(map(Counter, instruments.tokens)) if self._histogram is None else ()

    def use(self, labels: Labels, tokens: tuple[int | None, int | None]) -> None:
        """Count the input and output tokens of one call; None is not counted."""
        for at, count in enumerate(tokens):
            if count is None:
                continue
            if self._histogram is not None:
                self._histogram.at((*labels, "output" if at else "input")).observe(count)
            else:
                self._counters[at].add((*labels, "unknown"), count)

    @property
    def parts(self) -> tuple[Counter | Histogram, ...]:
        """All counters and histograms of calls."""
        usage: tuple[Counter | Histogram, ...] = (self._histogram,) if self._histogram else self._counters
        return (self.duration, self.first_chunk, self.per_chunk, *usage)


class Metrics:
    """All metrics of one process. `named` are the models in the settings."""

    def __init__(self, semconv: Semconv = "1.41", named: Iterable[str] = (), version: str = "") -> None:
        self.started = time.time()
        self.models = Models(named)
        self.active = 0
        self.requests = Histogram(REQUEST_DURATION)
        self.first_byte = Histogram(FIRST_BYTE)
        self.calls = CallMetrics(call_instruments(semconv))
        self.facts = Counter(FACTS)
        self.jobs = Counter(JOBS_ENDED)
        self.lag = Histogram(LAG)
        self._answers = Counter(ANSWERS)
        self._claims = Counter(CLAIMS)
        self._flags = Counter(FLAGS)
        self._scores = Histogram(SCORES)
        self._contradictions = Counter(CONTRADICTIONS, product(get_args(ContradictionKind), get_args(Severity)))
        self._budgets = Counter(BUDGETS, zip(get_args(BudgetStatus)))
        self._reviewed = Histogram(REVIEWED)
        self._calibration = Calibration()
        self._cache = Counter(CACHE)
        self._verification = Histogram(VERIFICATION)
        self._stages = Histogram(STAGES)
        self._parts: tuple[Counter | Histogram, ...] = (
            self.requests,
            self.first_byte,
            *self.calls.parts,
            self._answers,
            self._claims,
            self._flags,
            self._scores,
            self._contradictions,
            self._budgets,
            self._reviewed,
            self._verification,
            self._stages,
            self._cache,
            self.facts,
            self.jobs,
            self.lag,
        )
        self._readers: list[Callable[[], Iterable[Reading]]] = [lambda: [(BUILD, (version,), 1)], self._own]

    def read(self, reader: Callable[[], Iterable[Reading]]) -> None:
        """Register `reader`, which returns counts that another component keeps, to be called on each export."""
        self._readers.append(reader)

    def forget(self, reader: Callable[[], Iterable[Reading]]) -> None:
        """Unregister `reader`."""
        if reader in self._readers:
            self._readers.remove(reader)

    def evaluated(self, report: Report, trace: tuple[int, int] | None = None) -> None:
        """Count one report."""
        self._answers.add((report.status, report.verdict))
        for flag in report.flags:
            self._flags.add((flag,))
        for choice in report.choices:
            for judgement in choice.judgements:
                self._claims.add((judgement.verdict.label, judgement.verdict.verifier))
                if judgement.budget is not None:
                    self._budgets.add((judgement.budget.status,))
        for kind, score in _scores(report):
            self._scores.at((kind,)).observe(score)
        for each in report.consistency.contradictions if report.consistency else ():
            self._contradictions.add((each.kind, each.severity))
        if report.cache.hits:
            self._cache.add(("hit",), report.cache.hits)
        if report.cache.misses:
            self._cache.add(("miss",), report.cache.misses)
        for stage, ms in report.timing_ms:
            if stage == "total":
                self._verification.at((report.status,)).observe(ms / 1000, trace)
            else:
                self._stages.at((stage,)).observe(ms / 1000)

    def reviewed(self, verifier: str, score: float, *, is_right: bool) -> None:
        """Count a reviewer's decision on a claim: its score, and whether its flag is right."""
        self._reviewed.at((verifier, "confirmed" if is_right else "rejected")).observe(score)
        self._calibration.add(score, int(not is_right))

    def families(self) -> list[Family]:
        """Return snapshots of all instruments that have recorded anything."""
        recorded = [part.family() for part in self._parts]
        read: dict[Instrument, list[tuple[Labels, float]]] = {}
        for reader in self._readers:
            for instrument, labels, value in reader():
                read.setdefault(instrument, []).append((labels, value))
        kept = [Family(instrument, tuple(numbers)) for instrument, numbers in read.items()]
        return [each for each in (*recorded, *kept) if each.numbers or each.histograms]

    def _own(self) -> Iterable[Reading]:
        hits, misses = self._cache.value(("hit",)), self._cache.value(("miss",))
        yield ACTIVE_REQUESTS, (), self.active
        if hits or misses:
            yield CACHE_RATE, (), hits / (hits + misses)
        if (error := self._calibration.error) is not None:
            yield CALIBRATION, (), error


def _scores(report: Report) -> Iterator[tuple[str, float]]:
    """Yield the scores of a report, by kind."""
    found = {
        "grounding": report.score,
        "confidence": report.confidence.score if report.confidence else None,
        "consistency": report.consistency.score if report.consistency else None,
        "risk": report.risk.score if report.risk else None,
        "quality": report.quality,
    }
    for kind, score in found.items():
        if score is not None:
            yield kind, score
