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
Send = Callable[[httpx.Client, Sequence[JSON]], None]


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
            target.stop()
        until = time.monotonic() + _CLOSE_S
        for target in self._targets:
            target.join(max(0.0, until - time.monotonic()))


@dataclass(frozen=True, slots=True)
class _Score:
    report: Report
    trace_id: str
    at: str


class Target:
    """A queue of scores and the thread that sends them, every `interval` seconds.

    `write` converts the scores of one answer; `send` posts a batch and raises httpx.HTTPError if it is not accepted.
    """

    def __init__(self, name: str, write: Callable[[_Score], list[JSON]], send: Send, interval: float) -> None:
        self.name = name
        self.lost = 0
        self.is_failing = False
        self._write, self._send, self._interval = write, send, interval
        self._waiting: deque[_Score] = deque()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"groundwire-scores-{name}", daemon=True)
        self._thread.start()

    def add(self, score: _Score) -> None:
        """Queue the scores of one answer; the oldest are dropped if the queue is full."""
        with self._lock:
            if len(self._waiting) == MAX_WAITING:
                self._waiting.popleft()
                self.lost += 1
            self._waiting.append(score)

    def stop(self) -> None:
        """Let the thread send the remaining scores and end."""
        self._stop.set()

    def join(self, seconds: float) -> None:
        """Wait for the thread, for so many seconds at most."""
        self._thread.join(seconds)

    def _run(self) -> None:
        with httpx.Client(timeout=_TIMEOUT_S) as client:
            while not self._stop.wait(self._interval):
                self._flush(client)
            self._flush(client)

    def _flush(self, client: httpx.Client) -> None:
        """Send batches until the queue is empty or one must be tried again later."""
        while batch := self._take():
            try:
                self._send(client, [each for score in batch for each in self._write(score)])
            except (httpx.HTTPError, ValueError) as error:
                self._failed(error)
                if _is_temporary(error) and not self._stop.is_set():
                    self._put_back(batch)
                    return
                self._drop(len(batch))
            else:
                self._succeeded()

    def _take(self) -> list[_Score]:
        with self._lock:
            return [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]

    def _put_back(self, batch: Sequence[_Score]) -> None:
        with self._lock:
            room = MAX_WAITING - len(self._waiting)
            kept = batch[len(batch) - room :] if room < len(batch) else batch
            self.lost += len(batch) - len(kept)
            self._waiting.extendleft(reversed(kept))

    def _drop(self, count: int) -> None:
        with self._lock:
            self.lost += count

    def _failed(self, error: Exception) -> None:
        if not self.is_failing:
            self.is_failing = True
            status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else None
            log.warning("telemetry.scores_not_sent", target=self.name, error=type(error).__name__, status=status)

    def _succeeded(self) -> None:
        if self.is_failing:
            self.is_failing = False
            log.info("telemetry.scores_sent_again", target=self.name, lost=self.lost)


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
        send = LangfuseSender(settings.langfuse_url, httpx.BasicAuth(public, secret))
        targets.append(Target("langfuse", langfuse_scores, send, settings.interval))
    if settings.phoenix_url is not None:
        send_annotations = phoenix_sender(settings.phoenix_url, environ.get(settings.phoenix_key_env, ""))
        targets.append(Target("phoenix", phoenix_annotations, send_annotations, settings.interval))
    return Scores(targets) if targets else None


# --- Langfuse ---------------------------------------------------------------------------------------------------------


class LangfuseSender:
    """Post scores to `/api/public/scores`: as a list, or one by one to a server that knows no lists."""

    def __init__(self, url: str, auth: httpx.BasicAuth) -> None:
        self._url, self._auth = f"{url.rstrip('/')}/api/public/scores", auth
        self._takes_lists = True

    def __call__(self, client: httpx.Client, batch: Sequence[JSON]) -> None:
        """Post a batch. Raises httpx.HTTPError if it is not accepted as a whole."""
        if self._takes_lists:
            response = self._post(client, list(batch))
            if response.status_code != httpx.codes.BAD_REQUEST:
                response.raise_for_status()
                if response.status_code == httpx.codes.MULTI_STATUS:  # some were rejected
                    raise httpx.HTTPStatusError("rejected", request=response.request, response=response)
                return
        for each in batch:
            self._post(client, each).raise_for_status()
            self._takes_lists = False

    def _post(self, client: httpx.Client, body: Any) -> httpx.Response:
        return client.post(self._url, json=body, auth=self._auth)


def langfuse_scores(score: _Score) -> list[JSON]:
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


# --- Phoenix ----------------------------------------------------------------------------------------------------------


def phoenix_sender(url: str, key: str) -> Send:
    """Return a function that posts annotations to `/v1/trace_annotations`, where they wait for their traces."""
    url = f"{url.rstrip('/')}/v1/trace_annotations"
    headers = {"authorization": f"Bearer {key}"} if key else {}

    def send(client: httpx.Client, batch: Sequence[JSON]) -> None:
        client.post(url, json={"data": list(batch)}, headers=headers).raise_for_status()

    return send


def phoenix_annotations(score: _Score) -> list[JSON]:
    """Return the annotation of an answer's trace; repeated with the same identifier, it is updated."""
    report = score.report
    result = {"label": report.verdict, "score": report.score, "explanation": ", ".join(report.flags) or None}
    return [
        {
            "name": _NAME,
            "annotator_kind": "CODE",
            "trace_id": score.trace_id,
            "identifier": report.id,
            "result": {name: value for name, value in result.items() if value is not None},
            "metadata": {"status": report.status},
        }
    ]
