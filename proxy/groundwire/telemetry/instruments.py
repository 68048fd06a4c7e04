"""All metrics: name, kind, unit, labels and buckets. Recording, export and the documentation follow this list.

Names, units and the buckets of `http.*` and `gen_ai.*` are those of OpenTelemetry's semantic conventions. No label ever
contains a key, a subject or a text; each has few values: routes, names in the settings, closed lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from groundwire.telemetry import names as n

Labels = tuple[str, ...]
_UNITS = {"s": "_seconds", "By": "_bytes", "1": "_ratio"}
_HTTP_S = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120)  # models take longer
_MODEL_S = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = tuple(4**power for power in range(14))
_CHECK_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_LAG_S = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
_CALL = (n.OPERATION, n.PROVIDER, n.REQUEST_MODEL, n.UPSTREAM, n.PURPOSE)


@dataclass(frozen=True, slots=True)
class Instrument:
    """One metric. `unit` is in UCUM, `buckets` are upper bounds in that unit; a `gauge` may go down."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    about: str
    labels: Labels = ()
    buckets: tuple[float, ...] = ()

    @property
    def prometheus(self) -> str:
        """The name at /metrics, formed as OpenTelemetry prescribes: dots become `_`, unit and `_total` follow."""
        plain = self.name.replace(".", "_") + _UNITS.get(self.unit, "")
        return plain + "_total" if self.kind == "counter" else plain

    @property
    def prometheus_labels(self) -> Labels:
        """The names of the labels at /metrics."""
        return tuple(label.replace(".", "_") for label in self.labels)


Reading = tuple[Instrument, Labels, float]
"""The value of a counter or gauge that another component keeps, read on demand."""


def _counter(name: str, unit: str, about: str, *labels: str) -> Instrument:
    return Instrument(name, "counter", unit, about, labels)


def _gauge(name: str, unit: str, about: str, *labels: str) -> Instrument:
    return Instrument(name, "gauge", unit, about, labels)


def _histogram(name: str, about: str, labels: Labels, buckets: tuple[float, ...], unit: str = "s") -> Instrument:
    return Instrument(name, "histogram", unit, about, labels, buckets)


REQUEST_DURATION = _histogram(
    "http.server.request.duration",
    "Time from a request to the last byte of its reply; error.type is set if it failed.",
    (n.METHOD, n.ROUTE, n.STATUS_CODE, n.ERROR),
    _HTTP_S,
)
ACTIVE_REQUESTS = _gauge("http.server.active_requests", "{request}", "Requests in progress.")
FIRST_BYTE = _histogram(
    "grounding.upstream.time_to_first_byte",
    "Time from a call of a model server to the head of its reply.",
    (n.UPSTREAM, n.STATUS_CODE),
    _MODEL_S,
)
ANSWERS = _counter(
    "grounding.answers", "{answer}", "Answers by the status and verdict of their verification.", n.STATUS, n.VERDICT
)
CLAIMS = _counter("grounding.claims", "{claim}", "Claims of answers by label and verifier.", n.CLAIM_LABEL, n.VERIFIER)
FLAGS = _counter("grounding.flags", "{answer}", "Answers with a flag.", n.FLAG)
SCORES = _histogram(
    "grounding.scores",
    "Scores of answers by kind: grounding, confidence, consistency with earlier answers, risk, quality.",
    (n.SCORE_KIND,),
    _TENTHS,
    "1",
)
CONTRADICTIONS = _counter(
    "grounding.contradictions",
    "{contradiction}",
    "Contradictions between an answer and earlier ones of its subject, by kind and severity.",
    n.CONTRADICTION_KIND,
    n.SEVERITY,
)
BUDGETS = _counter(
    "grounding.budgets", "{claim}", "Claims whose information budget was measured, by its status.", n.BUDGET_STATUS
)
REVIEWED = _histogram(
    "grounding.reviewed.score",
    "Scores of claims reviewed in this process, by decision: confirmed means that the flag is right.",
    (n.VERIFIER, n.DECISION),
    _TENTHS,
    "1",
)
CALIBRATION = _gauge(
    "grounding.calibration.error",
    "1",
    "Expected calibration error of the scores of claims reviewed in this process; not reliable with few reviews.",
)
VERIFICATION = _histogram(
    "grounding.verification.duration", "Time from the end of an answer to its report.", (n.STATUS,), _CHECK_S
)
STAGES = _histogram(
    "grounding.verification.stage.duration",
    "Time of one stage of verifying an answer: context (while the model still answers), claims, verify.",
    (n.STAGE,),
    _CHECK_S,
)
CACHE = _counter(
    "grounding.cache.lookups", "{claim}", "Lookups of verdicts in the cache: outcome hit or miss.", n.OUTCOME
)
CACHE_RATE = _gauge("grounding.cache.hit", "1", "Share of verdicts found in the cache since the start.")
FACTS = _counter("grounding.facts", "{fact}", "Facts at the memory gate: outcome accepted or rejected.", n.OUTCOME)
QUEUE = _gauge("grounding.queue.length", "{check}", "Checks that are running or waiting for a worker.")
ROOM = _gauge("grounding.queue.capacity", "{check}", "Checks that may run or wait before further ones are shed.")
SHED = _counter("grounding.checks.shed", "{check}", "Checks that were shed under load.")
JOBS_WAITING = _gauge(
    "grounding.jobs.waiting", "{job}", "Stored jobs that are not done, as of a few seconds ago.", n.JOB
)
JOBS_ENDED = _counter(
    "grounding.jobs.attempts", "{attempt}", "Attempts at jobs: outcome done or failed.", n.JOB, n.OUTCOME
)
JOBS_LOST = _counter("grounding.jobs.lost", "{job}", "Jobs that could not be stored.")
STORE_WAITING = _gauge("grounding.store.waiting", "{exchange}", "Exchanges waiting to be recorded.")
STORE_LOST = _counter("grounding.store.lost", "{exchange}", "Exchanges that could not be recorded.")
DEGRADED = _gauge("grounding.degraded", "{part}", "1 for each part that is degraded.", n.PART)
LAG = _histogram("grounding.event_loop.lag", "Delay of the event loop, measured twice a second.", (), _LAG_S)
LOST_TELEMETRY = _counter(
    "grounding.export.failures", "{batch}", "Batches that the collector did not accept.", n.SIGNAL
)
SCORES_LOST = _counter("grounding.scores.lost", "{answer}", "Answers whose scores could not be sent.", n.TARGET)
BUILD = _gauge("grounding.build_info", "{process}", "1, with the version of Groundwire.", n.VERSION)


def call_instruments(semconv: n.Semconv) -> tuple[Instrument, ...]:
    """Return the metrics of calls of model servers in one edition of the GenAI conventions.

    They are the duration, the times to the first chunk and between chunks, and the tokens: one histogram, or counters
    for input and output.
    """
    names = n.EDITIONS[semconv]
    usage = "Tokens used, as model servers count them."
    counted = (names.input_tokens, names.output_tokens) if names.counts_tokens else ()
    counters = tuple(_counter(name, "{token}", usage, *_CALL, n.TOKEN_MODALITY) for name in counted)
    histogram = _histogram(names.input_tokens, usage, (*_CALL, n.TOKEN_TYPE), _TOKENS, "{token}")
    ended = "Time from a call of a model server to the last byte of its answer."
    began = "Time from a call to the first chunk of a streamed answer."
    between = "Time between two chunks of a streamed answer."
    return (
        _histogram(names.duration, ended, (*_CALL, n.ERROR), _MODEL_S),
        _histogram(names.first_chunk, began, _CALL, _MODEL_S),
        _histogram(names.per_chunk, between, _CALL, _MODEL_S),
        *(counters or (histogram,)),
    )
