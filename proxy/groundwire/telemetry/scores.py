"""Send the scores of answers to Langfuse and Phoenix, attached to the traces that the answers belong to.

Requests never wait for it: scores are kept in bounded queues, the oldest is dropped when one is full, and a thread for
each target sends them in batches. A failing target is logged once, and reported by /readyz for as long as it fails.
Scores contain no text of requests or answers. The interfaces: https://langfuse.com/docs/api,
https://arize.com/docs/phoenix/sdk-api-reference/rest-api/api-reference/traces/create-trace-annotations.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import httpx
import structlog

from groundwire.config import Scores as ScoreSettings
from groundwire.errors import ConfigError
from groundwire.report import Report

log = structlog.get_logger("groundwire.telemetry")

MAX_WAITING = 2048  # scores of answers, for each target
_BATCH = 100
_CLOSE_S = 2.0  # maximum time to send the remaining scores; a target that is down must not delay the shutdown
_TIMEOUT_S = 10.0
_NAME = "grounding"
_SAMPLED = 1  # the flag in the last byte of a traceparent

ORIGIN: ContextVar[str] = ContextVar("groundwire_score_origin", default="")
"""The trace context of the request whose answer a job verifies; empty outside of jobs."""

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Score:
    report: Report
    trace_id: str
    at: str


Send = Callable[[httpx.Client, Sequence[_Score]], None]
"""Posts the scores of some answers; raises httpx.HTTPError if they are not accepted as a whole."""


class Scores:
    """The targets in the settings. All methods return at once but `close`, which waits for two seconds at most."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._targets = targets

    def add(self, report: Report, traceparent: str) -> None:
        """Queue the scores of one answer, if its trace is recorded; a deferred report is followed by another."""
        traceparent = ORIGIN.get() or traceparent
        if report.status == "deferred" or not traceparent or not int(traceparent[-2:], 16) & _SAMPLED:
            return
        score = _Score(report, traceparent[3:35], datetime.now(UTC).isoformat())
        for target in self._targets:
            target.add(score)

    def lost(self) -> list[tuple[str, int]]:
        """Return the number of answers whose scores were dropped, by target."""
        return [(target.name, target.lost) for target in self._targets]

    def degraded(self) -> str | None:
        """Return a description of the targets that cannot be reached now; None if there are none."""
        failing = [target.name for target in self._targets if target.is_failing]
        return f"scores cannot be sent to {', '.join(failing)}" if failing else None

    def close(self) -> None:
        """Send the remaining scores and stop."""
        for target in self._targets:
            target.stopping.set()
        until = time.monotonic() + _CLOSE_S
        for target in self._targets:
            target.thread.join(max(0.0, until - time.monotonic()))


class Target:
    """A queue of scores and the thread that sends them, every `interval` seconds and once more when `stopping`."""

    def __init__(self, name: str, send: Send, interval: float) -> None:
        self.name = name
        self.lost = 0
        self.is_failing = False
        self.stopping = threading.Event()
        self._send, self._interval = send, interval
        self._waiting: deque[_Score] = deque()
        self._lock = threading.Lock()
        self.thread = threading.Thread(target=self._run, name=f"groundwire-scores-{name}", daemon=True)
        self.thread.start()

    def add(self, score: _Score) -> None:
        """Queue the scores of one answer; the oldest are dropped if the queue is full."""
        with self._lock:
            if len(self._waiting) == MAX_WAITING:
                self._waiting.popleft()
                self.lost += 1
            self._waiting.append(score)

    def _run(self) -> None:
        with httpx.Client(timeout=_TIMEOUT_S) as client:
            while not self.stopping.wait(self._interval):
                self._flush(client)
            self._flush(client)

    def _flush(self, client: httpx.Client) -> None:
        """Send batches until the queue is empty or one must be tried again later."""
        while batch := self._take():
            try:
                self._send(client, batch)
            except (httpx.HTTPError, ValueError) as error:
                if not self.is_failing:
                    status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else None
                    about = {"target": self.name, "error": type(error).__name__, "status": status}
                    log.warning("telemetry.scores_not_sent", **about)
                self.is_failing = True
                if _is_temporary(error) and not self.stopping.is_set():
                    self._put_back(batch)
                    return
                with self._lock:
                    self.lost += len(batch)
            else:
                if self.is_failing:
                    log.info("telemetry.scores_sent_again", target=self.name, lost=self.lost)
                self.is_failing = False

    def _take(self) -> list[_Score]:
        with self._lock:
            return [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]

    def _put_back(self, batch: Sequence[_Score]) -> None:
        with self._lock:
            room = MAX_WAITING - len(self._waiting)
            kept = batch[max(0, len(batch) - room) :]
            self.lost += len(batch) - len(kept)
            self._waiting.extendleft(reversed(kept))


def _is_temporary(error: Exception) -> bool:
    """Return whether the same batch may be accepted later."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code >= 500 or error.response.status_code in (408, 429)
    return isinstance(error, httpx.TransportError)


def build_scores(settings: ScoreSettings, environ: Mapping[str, str]) -> Scores | None:
    """Build the targets that the settings name, None if there are none. Raises ConfigError if a key is missing."""
    targets = []
    if settings.langfuse_url is not None:
        names = (settings.langfuse_public_key_env, settings.langfuse_secret_key_env)
        if missing := [name for name in names if not environ.get(name)]:
            raise ConfigError([f"telemetry.scores.langfuse_url: the variable {name} is not set" for name in missing])
        public, secret = (environ[name] for name in names)
        send: Send = LangfuseSender(settings.langfuse_url, httpx.BasicAuth(public, secret))
        targets.append(Target("langfuse", send, settings.interval))
    if settings.phoenix_url is not None:
        key = environ.get(settings.phoenix_key_env, "")
        send = partial(_send_annotations, f"{settings.phoenix_url.rstrip('/')}/v1/trace_annotations", key)
        targets.append(Target("phoenix", send, settings.interval))
    return Scores(targets) if targets else None


class LangfuseSender:
    """Post scores to `/api/public/scores`: as a list, or one by one to a server that knows no lists."""

    def __init__(self, url: str, auth: httpx.BasicAuth) -> None:
        self._url, self._auth = f"{url.rstrip('/')}/api/public/scores", auth
        self._takes_lists = True

    def __call__(self, client: httpx.Client, batch: Sequence[_Score]) -> None:
        """Post the verdicts and scores of some answers. Raises httpx.HTTPError if they are not accepted as a whole."""
        scores = [each for score in batch for each in _langfuse_scores(score)]
        if self._takes_lists:
            response = client.post(self._url, json=scores, auth=self._auth)
            if response.status_code != httpx.codes.BAD_REQUEST:
                response.raise_for_status()
                if response.status_code == httpx.codes.MULTI_STATUS:  # some were rejected
                    raise httpx.HTTPStatusError("rejected", request=response.request, response=response)
                return
        for each in scores:
            client.post(self._url, json=each, auth=self._auth).raise_for_status()
            self._takes_lists = False


def _langfuse_scores(score: _Score) -> list[JSON]:
    """Return the verdict of an answer, and its score if it has one."""
    report = score.report
    about: JSON = {
        "traceId": score.trace_id,
        "timestamp": score.at,
        "metadata": {"grounding_id": report.id, "status": report.status},
    }
    if report.flags:
        about["comment"] = ", ".join(report.flags)
    verdict = {"id": f"{report.id}-verdict", "name": f"{_NAME}_verdict", "value": report.verdict}
    found: list[JSON] = [{**verdict, "dataType": "CATEGORICAL", **about}]
    if report.score is not None:
        numeric = {"id": f"{report.id}-score", "name": _NAME, "value": report.score}
        found.append({**numeric, "dataType": "NUMERIC", **about})
    return found


def _send_annotations(url: str, key: str, client: httpx.Client, batch: Sequence[_Score]) -> None:
    """Post annotations to Phoenix, where they wait for their traces; repeated with one identifier, they are updated."""
    annotations = []
    for score in batch:
        report = score.report
        result = {"label": report.verdict, "score": report.score, "explanation": ", ".join(report.flags) or None}
        annotations.append(
            {
                "name": _NAME,
                "annotator_kind": "CODE",
                "trace_id": score.trace_id,
                "identifier": report.id,
                "result": {name: value for name, value in result.items() if value is not None},
                "metadata": {"status": report.status},
            }
        )
    headers = {"authorization": f"Bearer {key}"} if key else {}
    client.post(url, json={"data": annotations}, headers=headers).raise_for_status()
