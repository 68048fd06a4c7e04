"""Telemetry that a real collector receives over HTTP, and a failing collector that does no harm."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from groundwire.config import Telemetry as TelemetrySettings
from groundwire.errors import TryLater
from groundwire.gateway.reports import traced
from groundwire.telemetry import build_telemetry
from groundwire.upstream.http import HttpxClient
from groundwire.upstream.webhook import Webhook
from tests.telemetry.receiver import Receiver, number, plain, receiving
from tests.telemetry.talks import ANSWER, ASKED, CALLER, CHAT, KEY, SECRETS, Model, body, exchanged, run, serving

EVALUATION = "gen_ai.evaluation.result"
STATED = "The board of Acme, after long talks with the unions, sold the plant in March."
OPEN = "The board of Acme sold the plant."
PROBED = {
    "information_budget": {
        "enabled": True,
        "timeout": "20s",
        "backend": {"type": "self"},
        "output_verification": {"enabled": True, "probability_min": 0.0, "probability_max": 1.0},
    }
}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """The collector, on a free port."""
    with receiving() as server:
        yield server


def sent_to(receiver: Receiver, **more: Any) -> dict[str, Any]:
    """Return the settings that send everything to the collector."""
    return {"otlp_endpoint": f"{receiver.url}/", "service_name": "my-proxy", **more}


# --- what arrives -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_exchange_arrives_as_a_tree_of_spans(receiver: Receiver, streamed: bool) -> None:
    exchanged(
        None,
        Model(),
        asked=ASKED | {"stream": streamed},
        settings={"telemetry": sent_to(receiver, resource={"deployment.environment.name": "test"})},
        traceparent=CALLER,
    )
    server, upstream, verify = (receiver.span(name) for name in (f"POST {CHAT}", "chat m", "grounding verify"))
    assert {span.trace_id.hex() for span in receiver.spans} == {CALLER[3:35]}
    assert server.parent_span_id.hex() == CALLER[36:52]
    assert upstream.parent_span_id == verify.parent_span_id == server.span_id
    assert [Span.SpanKind.Name(span.kind) for span in (server, upstream, verify)] == [
        "SPAN_KIND_SERVER",
        "SPAN_KIND_CLIENT",
        "SPAN_KIND_INTERNAL",
    ]
    assert plain(server.attributes)["http.route"] == CHAT
    assert plain(server.attributes)["http.response.status_code"] == 200
    assert plain(upstream.attributes)["gen_ai.response.model"] == "m-2024"
    assert receiver.resource["service.name"] == "my-proxy"
    assert receiver.resource["deployment.environment.name"] == "test"
    assert receiver.resource["service.version"]
    assert not [secret for secret in SECRETS if secret.encode() in receiver.raw]


def test_the_evaluation_arrives_on_its_span_and_as_an_event_of_the_log(receiver: Receiver) -> None:
    response = exchanged(None, Model(), settings={"telemetry": sent_to(receiver)})
    assert response
    grounding = response.json()["grounding"]
    verify = receiver.span("grounding verify")
    found = plain(verify.attributes)
    assert found["grounding.id"] == grounding["id"]
    assert found["gen_ai.evaluation.score.value"] == grounding["score"] == 0.5
    evaluation, *stages = verify.events
    assert evaluation.name == EVALUATION
    assert [plain(stage.attributes)["grounding.stage"] for stage in stages] == ["context", "claims", "verify"]
    (record,) = [each for each in receiver.records if each.event_name == EVALUATION]
    assert (record.trace_id, record.span_id) == (verify.trace_id, verify.span_id)
    assert plain(record.attributes)["gen_ai.evaluation.score.label"] == grounding["verdict"]


class Prober(Model):
    """A model server that answers questions about a claim with a certain YES, at a separate price."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if b"JSON array of sources" not in request.content:
            return httpx.Response(200, stream=httpx.ByteStream(json.dumps(body(OPEN)).encode()))
        token = {"token": "YES", "logprob": -0.01, "top_logprobs": [{"token": "YES", "logprob": -0.01}]}
        choice = {"index": 0, "message": {"role": "assistant", "content": "YES"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 70, "completion_tokens": 1}
        told = body() | {"choices": [choice | {"logprobs": {"content": [token]}}], "usage": usage}
        return httpx.Response(200, stream=httpx.ByteStream(json.dumps(told).encode()))


def test_a_probe_is_a_separate_call_in_the_verification_with_its_own_tokens(receiver: Receiver) -> None:
    model = Prober()
    asked = {"model": "m", "messages": [{"role": "system", "content": STATED}]}
    exchanged(None, model, asked=asked, settings={"telemetry": sent_to(receiver), **PROBED}, traceparent=CALLER)
    verify = receiver.span("grounding verify")
    calls = [(span, plain(span.attributes)) for span in receiver.spans if span.name == "chat m"]
    probes = [(span, told) for span, told in calls if told["grounding.purpose"] == "probe"]
    ((_, answer),) = [(span, told) for span, told in calls if told["grounding.purpose"] == "answer"]
    assert probes
    assert len(calls) == len(model.requests)
    assert {span.parent_span_id for span, _ in probes} == {verify.span_id}
    assert {told["gen_ai.usage.input_tokens"] for _, told in probes} == {70}
    assert answer["gen_ai.usage.input_tokens"] == 9
    assert "gen_ai.usage.input_tokens" not in plain(verify.attributes)
    sent = {request.headers["traceparent"] for request in model.requests}
    assert sent == {f"00-{span.trace_id.hex()}-{span.span_id.hex()}-01" for span, _ in calls}


def test_metrics_arrive_with_their_labels_and_an_exemplar_of_the_trace(receiver: Receiver) -> None:
    exchanged(None, Model(), settings={"telemetry": sent_to(receiver)}, traceparent=CALLER)
    (point,) = receiver.metrics["http.server.request.duration"].histogram.data_points
    assert plain(point.attributes) == {
        "http.request.method": "POST",
        "http.route": CHAT,
        "http.response.status_code": 200,
    }
    assert (point.count, sum(point.bucket_counts)) == (1, 1)
    (exemplar,) = point.exemplars
    assert exemplar.trace_id.hex() == CALLER[3:35]
    assert exemplar.span_id == receiver.span(f"POST {CHAT}").span_id
    usage = receiver.metrics["gen_ai.client.token.usage"].histogram.data_points
    assert {plain(each.attributes)["gen_ai.token.type"]: each.sum for each in usage} == {"input": 9, "output": 5}
    assert all(list(each.explicit_bounds)[:3] == [1, 4, 16] for each in usage)
    assert all(list(each.bucket_counts)[:4] == [0, 0, 1, 0] for each in usage)
    assert not any(each.HasField("min") or each.HasField("max") for each in usage)
    claims = receiver.metrics["grounding.claims"].sum
    assert claims.is_monotonic
    assert sum(number(point) for point in claims.data_points) == 2


def test_the_next_edition_of_the_conventions_names_metrics_anew(receiver: Receiver) -> None:
    exchanged(None, Model(), settings={"telemetry": sent_to(receiver, genai_semconv="next")})
    (point,) = receiver.metrics["gen_ai.client.inference.usage.input_tokens"].sum.data_points
    assert (plain(point.attributes)["gen_ai.token.modality"], number(point)) == ("unknown", 9)
    assert receiver.metrics["gen_ai.client.inference.duration"].histogram.data_points
    assert not [
        name for name in receiver.metrics if name.startswith(("gen_ai.client.operation", "gen_ai.client.token"))
    ]


LOGGED = """
import sys, structlog
from tests.telemetry.talks import CALLER, Model, exchanged
from groundwire.config import Telemetry
from groundwire.telemetry import build_telemetry, configure_logs
settings = Telemetry(otlp_endpoint=sys.argv[1])
telemetry = build_telemetry(settings, {})
configure_logs(settings, telemetry)
structlog.get_logger("test").warning("before.any", words=["a"])
exchanged(telemetry, Model(), traceparent=CALLER)
"""


def test_the_lines_of_the_log_arrive_with_the_trace_of_their_request(receiver: Receiver) -> None:
    """Run in a separate process: loggers keep their first configuration."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", LOGGED, receiver.url]
    done = subprocess.run(command, env=environ, capture_output=True, timeout=120, text=True)
    assert done.returncode == 0, done.stderr
    found = {record.body.string_value: record for record in receiver.records if record.body.string_value}
    assert found["before.any"].severity_text == "warning"
    assert plain(found["before.any"].attributes) == {"words": '["a"]'}
    assert found["before.any"].trace_id == b""
    server = receiver.span(f"POST {CHAT}")
    told = plain(found["request"].attributes)
    assert (found["request"].trace_id, found["request"].span_id) == (server.trace_id, server.span_id)
    assert (told["upstream"], told["model"], told["status"], told["input_tokens"]) == ("up", "m", 200, 9)
    assert told["grounding_id"].startswith("gw-")
    assert found["grounding.report"].span_id == receiver.span("grounding verify").span_id
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {line.get("trace_id") for line in lines if line["event"] != "before.any"} == {CALLER[3:35]}


def test_a_job_is_a_trace_of_its_own_linked_to_that_of_the_request(receiver: Receiver) -> None:
    telemetry = build_telemetry(TelemetrySettings.model_validate(sent_to(receiver)), {})
    posted: list[httpx.Request] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        posted.append(request)
        return httpx.Response(503)

    posting = Webhook("http://hook/", "secret", HttpxClient(httpx.MockTransport(refuse)), telemetry=telemetry)

    async def work(id_: str, payload: bytes) -> bytes:
        telemetry.link_origin(payload.decode())
        with pytest.raises(TryLater):
            await posting.post(id_, payload)
        return b""

    run(traced(telemetry, "examination", work)("gw-1", CALLER.encode()))
    telemetry.close()
    job, webhook = receiver.span("job examination"), receiver.span("POST webhook")
    ((link,)) = job.links
    assert f"{link.trace_id.hex()}-{link.span_id.hex()}" == CALLER[3:52]
    assert job.trace_id.hex() != CALLER[3:35]
    assert plain(job.attributes) == {"grounding.job.kind": "examination", "grounding.id": "gw-1"}
    assert webhook.parent_span_id == job.span_id
    assert plain(webhook.attributes)["error.type"] == "503"
    assert webhook.span_id.hex() in posted[0].headers["traceparent"]
    (ended,) = receiver.metrics["grounding.jobs.attempts"].sum.data_points
    assert plain(ended.attributes) == {"grounding.job.kind": "examination", "grounding.outcome": "done"}


def test_an_examination_left_for_later_is_linked_to_the_request_that_left_it(
    receiver: Receiver, tmp_path: Path
) -> None:
    sections = {
        "telemetry": sent_to(receiver),
        "jobs": {"url": f"sqlite:///{tmp_path}/jobs.db", "poll": "50ms", "drain": "0s"},
    }

    async def work() -> None:
        async with serving(Model(), **sections) as client:
            asked = ASKED | {"grounding": {"mode": "async"}}
            reply = await client.post(CHAT, json=asked, headers={"traceparent": CALLER})
            where = f"/v1/grounding/{reply.headers['x-grounding-id']}"
            while (await client.get(where)).json()["status"] != "complete":  # noqa: ASYNC110 - a job ends it
                await asyncio.sleep(0.05)

    run(work())
    job, verify = receiver.span("job examination"), receiver.span("grounding verify")
    ((link,)) = job.links
    assert link.trace_id.hex() == CALLER[3:35]
    assert link.span_id == receiver.span(f"POST {CHAT}").span_id
    assert verify.parent_span_id == job.span_id


# --- what may be sent -------------------------------------------------------------------------------------------------


def test_no_content_is_sent_unless_that_is_switched_on(receiver: Receiver) -> None:
    asked = ASKED | {"grounding": {"sources": [{"text": "The okapi ledger."}]}}
    exchanged(None, Model(), asked=asked, settings={"telemetry": sent_to(receiver)})
    assert receiver.spans
    assert receiver.records
    assert not [secret for secret in SECRETS if secret.encode() in receiver.raw]


def test_prompts_answers_claims_and_evidence_are_sent_where_that_is_switched_on(receiver: Receiver) -> None:
    exchanged(None, Model(), settings={"telemetry": sent_to(receiver, capture_content=True)})
    upstream, verify = (plain(receiver.span(name).attributes) for name in ("chat m", "grounding verify"))
    ((said,)) = json.loads(upstream["gen_ai.input.messages"])
    assert said == {"role": "system", "parts": [{"type": "text", "content": ASKED["messages"][0]["content"]}]}  # type: ignore[index]
    ((answer,)) = json.loads(upstream["gen_ai.output.messages"])
    assert answer["parts"] == [{"type": "text", "content": ANSWER}]
    assert [claim["label"] for claim in json.loads(verify["grounding.claims"])] == ["supported", "unsupported"]
    assert "zanzibar" in verify["grounding.sources"]
    assert KEY.encode() not in receiver.raw


def test_captured_content_is_bounded_in_length(receiver: Receiver) -> None:
    asked = ASKED | {"model": "m" * 1000, "messages": [{"role": "user", "content": "word " * 50_000}]}
    exchanged(None, Model(), asked=asked, settings={"telemetry": sent_to(receiver, capture_content=True)})
    (call,) = [span for span in receiver.spans if span.name.startswith("chat m")]
    assert len(call.name) < 200
    assert len(plain(call.attributes)["gen_ai.input.messages"]) == 2**16


@pytest.mark.parametrize(
    ("ratio", "caller", "recorded"),
    [
        pytest.param(1.0, None, True, id="all"),
        pytest.param(0.0, None, False, id="none"),
        pytest.param(0.0, CALLER, True, id="the caller decides for it"),
        pytest.param(1.0, CALLER[:-2] + "00", False, id="the caller decides against it"),
    ],
)
def test_a_share_of_the_traces_is_recorded(
    receiver: Receiver, ratio: float, caller: str | None, recorded: bool
) -> None:
    model = Model()
    headers = {"traceparent": caller} if caller else {}
    exchanged(None, model, settings={"telemetry": sent_to(receiver, sample_ratio=ratio)}, **headers)
    assert bool(receiver.spans) is recorded
    flags = int(model.requests[0].headers["traceparent"][-2:], 16)
    assert bool(flags & 1) is recorded
    assert "http.server.request.duration" in receiver.metrics


def test_only_the_signals_that_are_wanted_are_sent(receiver: Receiver) -> None:
    exchanged(None, Model(), settings={"telemetry": sent_to(receiver, otlp_signals=["traces"])})
    assert receiver.spans
    assert not receiver.records
    assert not receiver.metrics


def test_the_standard_variables_name_the_collector_its_key_and_the_service(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20collector-key")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "named-by-environment")
    telemetry = build_telemetry(TelemetrySettings())
    exchanged(telemetry, Model())
    assert receiver.resource["service.name"] == "named-by-environment"
    assert {each["authorization"] for each in receiver.headers} == {"Bearer collector-key"}
    disabled = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_SDK_DISABLED": "true"}
    assert build_telemetry(TelemetrySettings(), disabled).collector is None


def test_baggage_passes_untouched(receiver: Receiver) -> None:
    model = Model()
    exchanged(None, model, settings={"telemetry": sent_to(receiver)}, baggage="tenant=7", traceparent=CALLER)
    assert model.requests[0].headers["baggage"] == "tenant=7"


# --- a collector that fails -------------------------------------------------------------------------------------------


def test_a_refusing_collector_is_logged_once_and_degraded_until_it_accepts(receiver: Receiver) -> None:
    receiver.status = 400  # which is not tried again
    settings = sent_to(receiver, metrics_interval="50ms", otlp_signals=["metrics"])

    async def shown(client: httpx.AsyncClient, *, degraded: bool) -> Any:
        while True:
            found = (await client.get("/readyz")).json()["degraded"]
            if bool(found) is degraded:
                return found
            await asyncio.sleep(0.02)

    async def work() -> Any:
        async with serving(Model(), telemetry=settings) as client:
            degraded = await shown(client, degraded=True)
            assert (await client.post(CHAT, json=ASKED)).json()["grounding"]["status"] == "complete"
            receiver.status = 200
            assert await shown(client, degraded=False) == []
            return degraded

    with structlog.testing.capture_logs() as lines:
        degraded = run(work())
    assert degraded == [{"part": "telemetry", "reason": "metrics cannot be sent"}]
    told = [line["event"] for line in lines if line["event"].startswith("telemetry.")]
    assert told == ["telemetry.not_sent", "telemetry.sent_again"]
    failures = receiver.metrics["grounding.export.failures"].sum.data_points
    assert sum(number(point) for point in failures) >= 1


@pytest.mark.timeout(90)
@pytest.mark.parametrize("fault", ["down", "hanging", "refusing"])
def test_a_collector_that_fails_harms_no_answer_and_holds_up_no_end(
    receiver: Receiver, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = sent_to(receiver)
    if fault == "down":
        telemetry["otlp_endpoint"] = "http://127.0.0.1:9"
    if fault == "hanging":
        receiver.may_answer.clear()
    receiver.status = 500
    with caplog.at_level(logging.WARNING, "opentelemetry"):
        response = exchanged(None, Model(), settings={"telemetry": telemetry})
    assert response
    assert response.json()["grounding"]["status"] == "complete"
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry.exporter")]


def test_the_queue_of_unsent_spans_is_bounded(receiver: Receiver) -> None:
    """A queue of two thousand spans fills up while the collector hangs, and the oldest are dropped."""
    telemetry = build_telemetry(TelemetrySettings.model_validate(sent_to(receiver, otlp_signals=["traces"])), {})
    receiver.may_answer.clear()
    for count in range(10_000):
        telemetry.tracer.start(f"n{count}", "internal", {}).end()
    assert receiver.asked.wait(60)
    receiver.may_answer.set()
    telemetry.close()
    assert 0 < len(receiver.spans) < 10_000


def test_a_process_ends_in_time_while_its_collector_hangs(receiver: Receiver, tmp_path: Path) -> None:
    receiver.may_answer.clear()
    config = tmp_path / "config.yaml"
    config.write_text(
        f"server: {{port: 0}}\nupstreams: {{up: {{base_url: 'http://127.0.0.1:9/v1'}}}}\n"
        f"telemetry: {{otlp_endpoint: '{receiver.url}', metrics_interval: 100ms}}\n"
    )
    command = [str(Path(sys.executable).with_name("groundwire")), "serve", "--config", str(config)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ) as process:
        try:
            assert receiver.asked.wait(60), "nothing was sent"
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            assert process.returncode in (0, -signal.SIGTERM)
        finally:
            process.kill()
