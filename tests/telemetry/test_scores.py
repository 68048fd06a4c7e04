"""Scores that Langfuse and Phoenix receive over HTTP, and targets that fail without harm."""

from __future__ import annotations

import json
import threading
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from structlog.testing import capture_logs

from groundwire.config import Scores as ScoreSettings
from groundwire.config import Telemetry as TelemetrySettings
from groundwire.errors import ConfigError
from groundwire.report import Report
from groundwire.telemetry import build_telemetry, scores
from groundwire.telemetry.scores import ORIGIN, Scores, build_scores
from tests.telemetry.talks import ANSWER, ASKED, CALLER, SECRETS, Model, exchanged

PUBLIC, SECRET, KEY = "pk-lf-okapi", "sk-lf-zanzibar", "phoenix-ledger"
ENVIRON = {"LANGFUSE_PUBLIC_KEY": PUBLIC, "LANGFUSE_SECRET_KEY": SECRET, "PHOENIX_API_KEY": KEY}
TRACE = CALLER[3:35]
ARRIVES_WITHIN_S = 60.0


class Backend(ThreadingHTTPServer):
    """Langfuse and Phoenix: records requests, and answers with `status`, or by `refuses_lists` as older servers do."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 202
        self.refuses_lists = False
        self.received: list[tuple[str, Mapping[str, str], Any]] = []
        self.accepted: list[Any] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Backend

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append((self.path, headers, body))
        self.server.may_answer.wait(60)
        status = 400 if self.server.refuses_lists and isinstance(body, list) else self.server.status
        if status < 300:
            self.server.accepted += body if isinstance(body, list) else [body]
        self.send_response(status)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


@pytest.fixture
def backend() -> Iterator[Backend]:
    with Backend() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.may_answer.set()
        server.shutdown()


def langfuse(backend: Backend, interval: float = 0.01) -> Scores:
    found = build_scores(ScoreSettings(langfuse_url=backend.url, interval=interval), ENVIRON)
    assert found
    return found


def until(condition: Any) -> None:
    deadline = time.monotonic() + ARRIVES_WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def report(number: int = 0, **more: Any) -> Report:
    return Report(f"gw-{number}", "complete", "grounded", **{"score": 1.0, **more})


def answered(backend: Backend, *, asked: Mapping[str, Any] = ASKED, **sent: Any) -> Any:
    settings = TelemetrySettings.model_validate({"scores": {"interval": "1h", **sent}})
    telemetry = build_telemetry(settings, ENVIRON)
    return exchanged(telemetry, Model(), asked=asked, traceparent=CALLER)


# --- what arrives -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_langfuse_receives_verdict_and_score_of_an_answer_by_its_trace(backend: Backend, streamed: bool) -> None:
    answered(backend, asked=ASKED | {"stream": streamed}, langfuse_url=f"{backend.url}/")
    ((path, headers, body),) = backend.received
    assert path == "/api/public/scores"
    assert headers["authorization"] == f"Basic {b64encode(f'{PUBLIC}:{SECRET}'.encode()).decode()}"
    verdict, score = body
    assert {each["traceId"] for each in body} == {TRACE}
    assert (verdict["name"], verdict["dataType"]) == ("grounding_verdict", "CATEGORICAL")
    assert verdict["value"] == "partially_grounded"
    assert (score["name"], score["dataType"], score["value"]) == ("grounding", "NUMERIC", 0.5)
    assert "unsupported_claims" in score["comment"]
    assert verdict["id"] == f"{score['metadata']['grounding_id']}-verdict"
    assert score["id"] == f"{score['metadata']['grounding_id']}-score"


def test_phoenix_receives_an_annotation_of_the_trace(backend: Backend) -> None:
    response = answered(backend, phoenix_url=backend.url)
    ((path, headers, body),) = backend.received
    assert path == "/v1/trace_annotations"
    assert headers["authorization"] == f"Bearer {KEY}"
    (annotation,) = body["data"]
    assert annotation["trace_id"] == TRACE
    assert annotation["identifier"] == response.headers["x-grounding-id"]
    assert (annotation["name"], annotation["annotator_kind"]) == ("grounding", "CODE")
    assert annotation["result"]["label"] == "partially_grounded"
    assert annotation["result"]["score"] == 0.5


def test_both_receive_scores_and_no_text_of_request_or_answer(backend: Backend) -> None:
    answered(backend, phoenix_url=backend.url, langfuse_url=backend.url)
    assert sorted(path for path, _, _ in backend.received) == ["/api/public/scores", "/v1/trace_annotations"]
    sent = json.dumps([body for _, _, body in backend.received])
    assert not [secret for secret in SECRETS if secret in sent]
    assert not [word for word in ANSWER.split() if len(word) > 4 and word in sent]


def test_nothing_is_sent_without_a_target_or_a_recorded_trace(backend: Backend) -> None:
    assert build_telemetry(TelemetrySettings(), ENVIRON).scores is None
    telemetry = build_telemetry(TelemetrySettings(scores=ScoreSettings(langfuse_url=backend.url)), ENVIRON)
    exchanged(telemetry, Model())
    found = langfuse(backend)
    found.add(report(), f"{CALLER[:-1]}0")  # not sampled
    found.add(Report("gw-1", "deferred", "not_checked"), CALLER)
    found.close()
    assert backend.received == []


def test_an_answer_without_a_score_has_a_verdict_only(backend: Backend) -> None:
    found = langfuse(backend)
    found.add(Report("gw-1", "skipped", "not_checked"), CALLER)
    found.close()
    ((_, _, (verdict,)),) = backend.received
    assert (verdict["value"], verdict["metadata"]) == ("not_checked", {"grounding_id": "gw-1", "status": "skipped"})
    assert "comment" not in verdict


def test_a_job_scores_the_trace_of_its_request(backend: Backend) -> None:
    telemetry = build_telemetry(TelemetrySettings(scores=ScoreSettings(langfuse_url=backend.url)), ENVIRON)
    token = ORIGIN.set("")
    try:
        with telemetry.job("examination", "gw-0"):
            telemetry.link_origin(CALLER)
            with telemetry.verification("gw-0") as span:
                telemetry.evaluated(span, report(), None)
    finally:
        ORIGIN.reset(token)
    telemetry.close()
    assert {each["traceId"] for each in backend.accepted} == {TRACE}


def test_an_older_langfuse_receives_scores_one_by_one(backend: Backend) -> None:
    backend.refuses_lists = True
    found = langfuse(backend)
    for number in range(2):
        found.add(report(number), CALLER)
        until(lambda count=number: len(backend.accepted) == 2 * (count + 1))
    found.close()
    assert [type(body) for _, _, body in backend.received] == [list, dict, dict, dict, dict]
    assert found.lost() == [("langfuse", 0)]


# --- targets that fail ------------------------------------------------------------------------------------------------


def test_scores_wait_for_a_target_that_is_down_and_its_failure_is_logged_once(backend: Backend) -> None:
    backend.status = 503
    with capture_logs() as logs:
        found = langfuse(backend)
        for number in range(3):
            found.add(report(number), CALLER)
        until(lambda: len(backend.received) > 2)
        assert found.degraded() == "scores cannot be sent to langfuse"
        backend.status = 202
        until(lambda: len(backend.accepted) == 6)
        until(lambda: found.degraded() is None)
        found.close()
    assert [each["event"] for each in logs] == ["telemetry.scores_not_sent", "telemetry.scores_sent_again"]
    assert logs[0] == {"event": "telemetry.scores_not_sent", "log_level": "warning", "target": "langfuse"} | {
        "error": "HTTPStatusError",
        "status": 503,
    }
    assert [each["id"] for each in backend.accepted[::2]] == ["gw-0-verdict", "gw-1-verdict", "gw-2-verdict"]
    assert found.lost() == [("langfuse", 0)]


@pytest.mark.parametrize("status", [401, 207], ids=["wrong key", "rejected in part"])
def test_scores_that_are_refused_are_counted_and_not_repeated(backend: Backend, status: int) -> None:
    backend.status = status
    found = langfuse(backend)
    found.add(report(), CALLER)
    until(lambda: found.lost() == [("langfuse", 1)])
    found.close()
    assert len(backend.received) == 1


def test_a_full_queue_drops_the_oldest_and_never_waits(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "MAX_WAITING", 3)
    found = langfuse(backend, interval=3600)
    for number in range(5):
        found.add(report(number), CALLER)
    assert found.lost() == [("langfuse", 2)]
    found.close()
    assert [each["metadata"]["grounding_id"] for each in backend.accepted[::2]] == ["gw-2", "gw-3", "gw-4"]


def test_scores_that_wait_too_long_for_a_target_give_way_to_newer_scores(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scores, "MAX_WAITING", 3)
    backend.status = 503
    backend.may_answer.clear()
    found = langfuse(backend)
    found.add(report(0), CALLER)
    until(lambda: len(backend.received) == 1)
    for number in range(1, 4):
        found.add(report(number), CALLER)
    backend.may_answer.set()
    until(lambda: found.lost() == [("langfuse", 1)])
    backend.status = 202
    until(lambda: len(backend.accepted) == 6)
    found.close()
    assert [each["metadata"]["grounding_id"] for each in backend.accepted[::2]] == ["gw-1", "gw-2", "gw-3"]


def test_an_answer_does_not_wait_for_a_target_that_hangs(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "_CLOSE_S", 0.01)
    backend.may_answer.clear()
    response = answered(backend, langfuse_url=backend.url, interval="10ms")
    assert response.json()["grounding"]["verdict"] == "partially_grounded"
    assert backend.accepted == []


def test_lost_scores_are_a_metric_and_a_failing_target_is_reported(backend: Backend) -> None:
    backend.status = 401
    settings = TelemetrySettings(scores=ScoreSettings(langfuse_url=backend.url, interval=0.01))
    telemetry = build_telemetry(settings, ENVIRON)
    assert telemetry.metrics
    assert telemetry.scores
    telemetry.scores.add(report(), CALLER)
    until(lambda: telemetry.scores and telemetry.scores.lost()[0][1])
    shown = telemetry.metrics.registry.render("text/plain")[0].decode()
    assert 'grounding_scores_lost_total{grounding_target="langfuse"} 1.0' in shown
    assert telemetry.degraded() == "scores cannot be sent to langfuse"
    telemetry.close()


# --- settings and secrets ---------------------------------------------------------------------------------------------


def test_langfuse_without_its_keys_is_an_error_of_the_settings() -> None:
    with pytest.raises(ConfigError) as raised:
        build_scores(ScoreSettings(langfuse_url="https://cloud.langfuse.com"), {"LANGFUSE_PUBLIC_KEY": PUBLIC})
    assert list(raised.value.problems) == ["telemetry.scores.langfuse_url: the variable LANGFUSE_SECRET_KEY is not set"]


def test_phoenix_needs_no_key(backend: Backend) -> None:
    found = build_scores(ScoreSettings(phoenix_url=backend.url, interval=0.01), {})
    assert found
    found.add(report(), CALLER)
    found.close()
    ((_, headers, _),) = backend.received
    assert "authorization" not in headers


@pytest.mark.parametrize("status", [401, 500, 202])
def test_keys_are_never_logged(backend: Backend, status: int, caplog: pytest.LogCaptureFixture) -> None:
    backend.status = status
    with caplog.at_level("DEBUG"), capture_logs() as logs:
        answered(backend, phoenix_url=backend.url, langfuse_url=backend.url)
    said = caplog.text + json.dumps(logs, default=str)
    assert backend.received
    assert not [key for key in (PUBLIC, SECRET, KEY, b64encode(f"{PUBLIC}:{SECRET}".encode()).decode()) if key in said]


def test_a_wrong_address_is_an_error_of_the_settings() -> None:
    for name in ("langfuse_url", "phoenix_url"):
        with pytest.raises(ValueError, match=f"{name} must begin with http"):
            ScoreSettings.model_validate({name: "cloud.langfuse.com"})
