"""All metrics: name, kind, unit, labels and buckets. Recording, export and exposition read this list.

Names, units and the buckets of `http.*` and `gen_ai.*` are those of OpenTelemetry's semantic conventions. No label ever
contains a key, a subject or a text; each has few values: routes, names in the settings, closed lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from groundwire.telemetry.names import (
    BUDGET_STATUS,
    CLAIM_LABEL,
    CONTRADICTION_KIND,
    DECISION,
    EDITIONS,
    ERROR,
    FLAG,
    JOB,
    METHOD,
    OPERATION,
    OUTCOME,
    PART,
    PROVIDER,
    PURPOSE,
    REQUEST_MODEL,
    ROUTE,
    SCORE_KIND,
    SEVERITY,
    SIGNAL,
    STAGE,
    STATUS,
    STATUS_CODE,
    TOKEN_MODALITY,
    TOKEN_TYPE,
    UPSTREAM,
    VERDICT,
    VERIFIER,
    VERSION,
    Semconv,
)

_UNITS = {"s": "_seconds", "By": "_bytes", "1": "_ratio"}
_HTTP_S = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120)  # models take longer
_MODEL_S = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
_CHECK_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_TENTHS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_LAG_S = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5)
_CALL = (OPERATION, PROVIDER, REQUEST_MODEL, UPSTREAM, PURPOSE)


@dataclass(frozen=True, slots=True)
class Instrument:
    """One metric. `unit` is in UCUM, `buckets` are upper bounds in that unit; a `gauge` may go down."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    about: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def prometheus(self) -> str:
        """The name at /metrics, formed as OpenTelemetry prescribes: dots become `_`, unit and `_total` follow."""
        plain = self.name.replace(".", "_") + _UNITS.get(self.unit, "")
        return plain + "_total" if self.kind == "counter" else plain


REQUEST_DURATION = Instrument(
    "http.server.request.duration",
    "histogram",
    "s",
    "Time from a request to the last byte of its reply; error.type is set if it failed.",
    (METHOD, ROUTE, STATUS_CODE, ERROR),
    _HTTP_S,
)
ACTIVE_REQUESTS = Instrument(
    "http.server.active_requests", "gauge", "{request}", "Requests that are being answered just now."
)
FIRST_BYTE = Instrument(
    "grounding.upstream.time_to_first_byte",
    "histogram",
    "s",
    "Time from a call of a model server to the head of its reply.",
    (UPSTREAM, STATUS_CODE),
    _MODEL_S,
)
ANSWERS = Instrument(
    "grounding.answers",
    "counter",
    "{answer}",
    "Answers to be verified, by what came of it.",
    (STATUS, VERDICT),
)
CLAIMS = Instrument(
    "grounding.claims", "counter", "{claim}", "Claims of answers by label and verifier.", (CLAIM_LABEL, VERIFIER)
)
FLAGS = Instrument("grounding.flags", "counter", "{answer}", "Answers that carry a flag.", (FLAG,))
SCORES = Instrument(
    "grounding.scores",
    "histogram",
    "1",
    "Scores of answers by kind: grounding, confidence, consistency with earlier answers, risk, quality.",
    (SCORE_KIND,),
    _TENTHS,
)
CONTRADICTIONS = Instrument(
    "grounding.contradictions",
    "counter",
    "{contradiction}",
    "Contradictions between an answer and earlier ones of its subject, by kind and severity.",
    (CONTRADICTION_KIND, SEVERITY),
)
BUDGETS = Instrument(
    "grounding.budgets",
    "counter",
    "{claim}",
    "Claims whose information budget was measured, by its status.",
    (BUDGET_STATUS,),
)
REVIEWED = Instrument(
    "grounding.reviewed.score",
    "histogram",
    "1",
    "Scores of claims at their review in this process, by decision: confirmed means that the flag is right.",
    (VERIFIER, DECISION),
    _TENTHS,
)
CALIBRATION = Instrument(
    "grounding.calibration.error",
    "gauge",
    "1",
    "Expected calibration error of the scores of claims reviewed in this process; not reliable with few reviews.",
)
VERIFICATION = Instrument(
    "grounding.verification.duration",
    "histogram",
    "s",
    "Time from the end of an answer to its report.",
    (STATUS,),
    _CHECK_S,
)
STAGES = Instrument(
    "grounding.verification.stage.duration",
    "histogram",
    "s",
    "Time of one stage of verifying an answer: context (while the model still answers), claims, verify.",
    (STAGE,),
    _CHECK_S,
)
CACHE = Instrument(
    "grounding.cache.lookups", "counter", "{claim}", "Verdicts sought in the cache: outcome hit or miss.", (OUTCOME,)
)
CACHE_RATE = Instrument("grounding.cache.hit", "gauge", "1", "Share of verdicts found in the cache, since the start.")
FACTS = Instrument(
    "grounding.facts",
    "counter",
    "{fact}",
    "Facts at the memory gate: outcome accepted or rejected.",
    (OUTCOME,),
)
QUEUE = Instrument("grounding.queue.length", "gauge", "{check}", "Checks that run or wait for a worker.")
ROOM = Instrument("grounding.queue.capacity", "gauge", "{check}", "Checks that may run or wait before any are shed.")
SHED = Instrument("grounding.checks.shed", "counter", "{check}", "Checks that were shed under load.")
JOBS_WAITING = Instrument(
    "grounding.jobs.waiting", "gauge", "{job}", "Jobs that are kept and not done, as of a few seconds ago.", (JOB,)
)
JOBS_ENDED = Instrument(
    "grounding.jobs.attempts", "counter", "{attempt}", "Attempts at jobs: outcome done or failed.", (JOB, OUTCOME)
)
JOBS_LOST = Instrument("grounding.jobs.lost", "counter", "{job}", "Jobs that could not be kept.")
STORE_WAITING = Instrument("grounding.store.waiting", "gauge", "{exchange}", "Exchanges that wait to be recorded.")
STORE_LOST = Instrument("grounding.store.lost", "counter", "{exchange}", "Exchanges that could not be recorded.")
DEGRADED = Instrument("grounding.degraded", "gauge", "{part}", "1 for a part that works less than fully.", (PART,))
LAG = Instrument(
    "grounding.event_loop.lag", "histogram", "s", "How late the event loop wakes up, twice a second.", (), _LAG_S
)
LOST_TELEMETRY = Instrument(
    "grounding.export.failures", "counter", "{batch}", "Batches that a collector did not take.", (SIGNAL,)
)
BUILD = Instrument("grounding.build_info", "gauge", "{process}", "1, with the version that runs.", (VERSION,))

OURS = (
    REQUEST_DURATION,
    ACTIVE_REQUESTS,
    FIRST_BYTE,
    ANSWERS,
    CLAIMS,
    FLAGS,
    SCORES,
    CONTRADICTIONS,
    BUDGETS,
    REVIEWED,
    CALIBRATION,
    VERIFICATION,
    STAGES,
    CACHE,
    CACHE_RATE,
    FACTS,
    QUEUE,
    ROOM,
    SHED,
    JOBS_WAITING,
    JOBS_ENDED,
    JOBS_LOST,
    STORE_WAITING,
    STORE_LOST,
    DEGRADED,
    LAG,
    LOST_TELEMETRY,
    BUILD,
)


@dataclass(frozen=True, slots=True)
class CallInstruments:
    """The metrics of calls of model servers in one edition of the GenAI conventions."""

    duration: Instrument
    first_chunk: Instrument
    per_chunk: Instrument
    tokens: tuple[Instrument, ...]

    @property
    def every(self) -> tuple[Instrument, ...]:
        """All instruments of calls."""
        return (self.duration, self.first_chunk, self.per_chunk, *self.tokens)


def call_instruments(semconv: Semconv) -> CallInstruments:
    """Return the metrics of calls in one edition. `tokens` is one histogram, or counters for input and output."""
    names = EDITIONS[semconv]
    usage = "Tokens used, as model servers count them."
    if names.counts_tokens:
        labels = (*_CALL, TOKEN_MODALITY)
        tokens = tuple(
            Instrument(name, "counter", "{token}", usage, labels) for name in (names.input_tokens, names.output_tokens)
        )
    else:
        tokens = (Instrument(names.input_tokens, "histogram", "{token}", usage, (*_CALL, TOKEN_TYPE), _TOKENS),)
    return CallInstruments(
        Instrument(
            names.duration,
            "histogram",
            "s",
            "Time from a call of a model server to the last byte of its answer.",
            (*_CALL, ERROR),
            _MODEL_S,
        ),
        Instrument(
            names.first_chunk,
            "histogram",
            "s",
            "Time from a call to the first chunk of a streamed answer.",
            _CALL,
            _MODEL_S,
        ),
        Instrument(names.per_chunk, "histogram", "s", "Time between two chunks of a streamed answer.", _CALL, _MODEL_S),
        tokens,
    )
