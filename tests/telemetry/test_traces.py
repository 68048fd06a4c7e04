"""Spans and the evaluation result under the GenAI conventions."""

import asyncio
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from groundwire.config import Settings
from groundwire.config import Telemetry as TelemetrySettings
from groundwire.container import build_container
from groundwire.http.app import build_app
from groundwire.offload import Workers
from groundwire.telemetry import Telemetry, build_telemetry, short_hash
from groundwire.telemetry.metrics import Metrics
from groundwire.telemetry.otlp import LogExport, OpenTelemetryTracer
from groundwire.telemetry.spans import CURRENT, active
from tests.telemetry.talks import ASKED, CALLER, CHAT, KEY, SECRETS, Model, exchanged, run


class Recorder:
    """Telemetry recorded in memory."""

    def __init__(self, **options: Any) -> None:
        self._spans, self._logs = InMemorySpanExporter(), InMemoryLogRecordExporter()
        spans, logs = TracerProvider(), LoggerProvider()
        spans.add_span_processor(SimpleSpanProcessor(self._spans))
        logs.add_log_record_processor(SimpleLogRecordProcessor(self._logs))
        tracer, events = OpenTelemetryTracer(spans.get_tracer("test")), LogExport(logs.get_logger("test"))
        self.telemetry = Telemetry(tracer, events=events, **options)

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        """The finished spans by their name."""
        return {span.name: span for span in self._spans.get_finished_spans()}

    def named(self, name: str) -> list[ReadableSpan]:
        """The finished spans of one name, in the order in which they ended."""
        return [span for span in self._spans.get_finished_spans() if span.name == name]

    @property
    def logs(self) -> list[Any]:
        """The log records."""
        return [each.log_record for each in self._logs.get_finished_logs()]

    def everything(self) -> str:
        """All that was recorded, as text."""
        return "".join(span.to_json() for span in self.spans.values()) + "".join(
            str(log.attributes) for log in self.logs
        )


@pytest.fixture
def recorder() -> Recorder:
    """Telemetry recorded in memory."""
    return Recorder()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


# --- spans ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_exchange_is_a_tree_of_three_spans(recorder: Recorder, streamed: bool) -> None:
    exchanged(recorder.telemetry, Model(), asked=ASKED | {"stream": streamed}, traceparent=CALLER)
    spans = recorder.spans
    assert set(spans) == {f"POST {CHAT}", "chat m", "grounding verify"}
    server = spans[f"POST {CHAT}"]
    assert [spans[name].kind for name in spans if name == "chat m"] == [SpanKind.CLIENT]
    assert server.kind is SpanKind.SERVER
    assert server.parent
    assert f"{server.parent.trace_id:032x}-{server.parent.span_id:016x}" == CALLER[3:-3]
    for name in ("chat m", "grounding verify"):
        parent = spans[name].parent
        assert parent
        assert parent.span_id == server.context.span_id


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_upstream_span_follows_the_genai_conventions(recorder: Recorder, streamed: bool) -> None:
    exchanged(recorder.telemetry, Model(), asked=ASKED | {"stream": streamed})
    found = attributes(recorder.spans["chat m"])
    assert (found.pop("gen_ai.response.time_to_first_chunk", None) is not None) is streamed
    usage = {} if streamed else {"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 5}
    assert found == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.stream": streamed,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 50,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.seed": 7,
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.model": "m-2024",
        "gen_ai.response.finish_reasons": ("stop",),
        "grounding.upstream": "up",
        "grounding.purpose": "answer",
        **usage,
    }


def test_usage_is_recorded_on_the_upstream_span_only(recorder: Recorder) -> None:
    exchanged(recorder.telemetry, Model())
    holders = [name for name, span in recorder.spans.items() if "gen_ai.usage.input_tokens" in attributes(span)]
    assert holders == ["chat m"]


_MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "model": "m-2024",
    "content": [{"type": "text", "text": "The zanzibar ledger was sealed in 1881."}],
    "stop_reason": "max_tokens",
    "usage": {"input_tokens": 2, "cache_read_input_tokens": 7, "output_tokens": 5},
}
_RESPONSE = {
    "object": "response",
    "id": "resp_1",
    "model": "m-2024",
    "status": "incomplete",
    "incomplete_details": {"reason": "max_output_tokens"},
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "The zanzibar ledger."}]}],
    "usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 7}, "output_tokens": 5},
}


@pytest.mark.parametrize(
    ("target", "asked", "answer"),
    [
        ("/v1/messages", {"messages": ASKED["messages"]}, _MESSAGE),
        ("/v1/responses", {"input": "What of the ledger?"}, _RESPONSE),
    ],
    ids=["messages", "responses"],
)
def test_other_dialects_are_recorded_in_the_same_words(
    recorder: Recorder, target: str, asked: dict[str, Any], answer: dict[str, Any]
) -> None:
    raw = json.dumps(answer).encode()

    class Telling(Model):
        def __call__(self, request: httpx.Request) -> httpx.Response:
            headers = {"content-type": "application/json"}
            return httpx.Response(200, headers=headers, stream=httpx.ByteStream(raw))

    response = exchanged(recorder.telemetry, Telling(), asked={"model": "m", **asked}, target=target)
    assert response is not None
    assert "grounding" in response.json()
    found = attributes(recorder.spans["chat m"])
    assert found["gen_ai.operation.name"] == "chat"
    assert (found["gen_ai.response.id"], found["gen_ai.response.model"]) == (answer["id"], "m-2024")
    assert found["gen_ai.response.finish_reasons"] == ("length",)
    assert (found["gen_ai.usage.input_tokens"], found["gen_ai.usage.output_tokens"]) == (9, 5)
    assert found["gen_ai.usage.cache_read.input_tokens"] == 7


def test_the_server_span_records_route_and_answered_status(recorder: Recorder) -> None:
    exchanged(recorder.telemetry, Model("error"))
    found = attributes(recorder.spans[f"POST {CHAT}"])
    assert found["http.request.method"] == "POST"
    assert found["http.route"] == CHAT
    assert found["http.response.status_code"] == 429


@pytest.mark.parametrize("streamed", [False, True])
def test_spans_name_their_session_and_their_subject_by_a_digest(recorder: Recorder, streamed: bool) -> None:
    about = {"session": "talk-7", "subject": "Mrs. Miller of Oslo"}
    exchanged(recorder.telemetry, Model(), asked=ASKED | {"grounding": about, "stream": streamed})
    for name in (f"POST {CHAT}", "chat m", "grounding verify"):
        found = attributes(recorder.spans[name])
        assert found["gen_ai.conversation.id"] == "talk-7"
        assert found["grounding.subject.hash"] == short_hash("Mrs. Miller of Oslo")
    assert "Miller" not in recorder.everything()


def test_spans_without_a_session_name_none_even_after_one_that_had_one(recorder: Recorder) -> None:
    exchanged(recorder.telemetry, Model(), **{"x-grounding-session": "talk-7"})
    exchanged(recorder.telemetry, Model())
    named = ["gen_ai.conversation.id" in attributes(span) for span in recorder.named("chat m")]
    assert named == [True, False]


def test_a_fact_for_the_memory_names_its_subject_by_a_digest(recorder: Recorder) -> None:
    facts = {"facts": [{"text": "Lee leads.", "confidence": 0.9}], "evidence": ["Lee leads."], "subject": "acme"}
    gate = {"information_budget": {"enabled": True, "memory_gate": {"enabled": True}}}
    exchanged(recorder.telemetry, Model(), asked=facts, target="/v1/grounding/memory", settings=gate)
    found = attributes(recorder.spans["POST /v1/grounding/memory"])
    assert found["grounding.subject.hash"] == short_hash("acme")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/assets/none.css"])
def test_probes_scrapes_and_assets_make_no_span(recorder: Recorder, path: str, tmp_path: Path) -> None:
    settings = Settings.model_validate({"store": {"url": f"sqlite:///{tmp_path}/history.db"}})
    recorder = Recorder(metrics=Metrics())
    house = build_container(settings, {}, transport=httpx.MockTransport(Model()), telemetry=recorder.telemetry)

    async def work() -> None:
        await house.start()
        transport = httpx.ASGITransport(build_app(settings, house, {}))
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as client:
            assert (await client.get(path, headers={"traceparent": CALLER})).status_code in (200, 404)
            assert not recorder.spans
            assert (await client.get("/v1/grounding/none")).status_code in (404, 503)
            assert list(recorder.spans) == ["GET /v1/grounding/{id}"]
        await house.close()

    run(work())
    assert recorder.telemetry.metrics is not None
    text = recorder.telemetry.metrics.registry.render("")[0].decode()
    routes = set(re.findall(r'http_server_request_duration_seconds_count\{.*http_route="([^"]+)"', text))
    assert len(routes) == 2, "they are counted all the same"


def test_the_upstream_is_called_with_the_context_of_its_span(recorder: Recorder) -> None:
    model = Model()
    exchanged(recorder.telemetry, model, traceparent=CALLER, tracestate="vendor=1")
    (sent,) = model.requests
    context = recorder.spans["chat m"].context
    assert sent.headers["traceparent"] == f"00-{context.trace_id:032x}-{context.span_id:016x}-01"
    assert sent.headers["tracestate"] == "vendor=1"
    assert len(sent.headers.get_list("traceparent")) == 1


@pytest.mark.parametrize(
    "header", ["", "rubbish", "00-0-0-00", "ff-" + CALLER[3:], "00-" + "0" * 32 + "-" + "0" * 16 + "-01"]
)
def test_a_wrong_trace_context_starts_a_new_trace(recorder: Recorder, header: str) -> None:
    exchanged(recorder.telemetry, Model(), traceparent=header)
    assert recorder.spans[f"POST {CHAT}"].parent is None


@pytest.mark.parametrize(
    ("ends", "streamed", "error"),
    [
        ("unreachable", False, "UpstreamUnreachable"),
        ("unreachable", True, "UpstreamUnreachable"),
        ("cut", False, "UpstreamBroken"),
        ("cut", True, "UpstreamBroken"),
    ],
)
def test_a_failed_call_is_a_failed_span_with_no_address(
    recorder: Recorder, ends: str, streamed: bool, error: str
) -> None:
    exchanged(recorder.telemetry, Model(ends), asked=ASKED | {"stream": streamed})
    span = recorder.spans["chat m"]
    assert attributes(span)["error.type"] == error
    assert span.status.status_code is StatusCode.ERROR
    assert "internal" not in recorder.everything()


def test_mode_off_has_no_verification_span(recorder: Recorder) -> None:
    exchanged(recorder.telemetry, Model(), asked=ASKED | {"grounding": {"mode": "off"}})
    assert set(recorder.spans) == {f"POST {CHAT}", "chat m"}


# --- the evaluation result --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_evaluation_is_on_its_span_as_an_event_and_a_log_record(recorder: Recorder, streamed: bool) -> None:
    exchanged(recorder.telemetry, Model(), asked=ASKED | {"stream": streamed})
    span = recorder.spans["grounding verify"]
    found = attributes(span)
    id_ = found.pop("grounding.id")
    flags = found.pop("grounding.flags")
    assert found == {
        "gen_ai.evaluation.name": "grounding",
        "gen_ai.evaluation.score.value": 0.5,
        "gen_ai.evaluation.score.label": "partially_grounded",
        "gen_ai.evaluation.explanation": ", ".join(flags),
        "gen_ai.response.id": "chatcmpl-1",
        "grounding.status": "complete",
        "grounding.claims.total": 2,
        "grounding.claims.checked": 2,
    }
    whole = found | {"grounding.id": id_, "grounding.flags": flags}
    event, *stages = span.events
    assert [each.name for each in stages] == ["grounding.stage"] * len(stages)
    assert (event.name, dict(event.attributes or {})) == ("gen_ai.evaluation.result", whole)
    ((record),) = recorder.logs
    assert (record.event_name, dict(record.attributes or {})) == ("gen_ai.evaluation.result", whole)
    assert (record.trace_id, record.span_id) == (span.context.trace_id, span.context.span_id)


def test_an_evaluation_that_did_not_happen_has_no_score(recorder: Recorder) -> None:
    exchanged(recorder.telemetry, Model(), asked=ASKED | {"messages": []})
    found = attributes(recorder.spans["grounding verify"])
    assert found["gen_ai.evaluation.score.label"] == "not_checked"
    assert "gen_ai.evaluation.score.value" not in found


# --- what is never recorded -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", ["well", "error", "cut", "unreachable"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_no_content_and_no_key_is_recorded(recorder: Recorder, ends: str, streamed: bool) -> None:
    asked = ASKED | {"stream": streamed, "grounding": {"sources": [{"text": "zanzibar"}]}}
    exchanged(recorder.telemetry, Model(ends), asked=asked, **{"x-api-key": KEY})
    recorded = recorder.everything()
    assert recorded
    assert not [secret for secret in SECRETS if secret in recorded]


def test_content_is_recorded_when_its_capture_is_enabled() -> None:
    recorder = Recorder(capture_content=True)
    exchanged(recorder.telemetry, Model())
    assert "zanzibar" in str(attributes(recorder.spans["chat m"])["gen_ai.input.messages"])
    assert KEY not in recorder.everything()


def test_without_an_endpoint_nothing_is_recorded_and_the_trace_goes_on_untouched() -> None:
    model = Model()
    exchanged(build_telemetry(TelemetrySettings()), model, traceparent=CALLER, tracestate="vendor=1")
    (sent,) = model.requests
    assert (sent.headers["traceparent"], sent.headers["tracestate"]) == (CALLER, "vendor=1")


def test_work_in_a_worker_belongs_to_the_trace_of_its_request(recorder: Recorder) -> None:
    workers = Workers(1, 10)

    async def work() -> tuple[str, str]:
        with active(recorder.telemetry.tracer.start("x", "internal", {})) as span:
            found = await workers.run(lambda: CURRENT.get().span_id)
        return found, span.span_id

    found, meant = run(work())
    workers.close()
    assert found == meant != ""


def test_a_span_may_be_ended_by_another_task(recorder: Recorder) -> None:
    """An example is a stream that its client leaves: the server closes the generator."""

    async def stream() -> AsyncGenerator[int, None]:
        with active(recorder.telemetry.tracer.start("x", "internal", {})):
            yield 1

    async def work() -> None:
        chunks = stream()
        await asyncio.ensure_future(anext(chunks))
        await asyncio.create_task(chunks.aclose())
        assert CURRENT.get().traceparent == ""

    run(work())
    assert list(recorder.spans) == ["x"]


def test_nothing_heavy_is_imported_where_nothing_is_sent() -> None:
    code = """
        import sys
        from groundwire.config import Settings
        from groundwire.http.app import build_app
        build_app(Settings(), environ={})
        heavy = ("opentelemetry.sdk", "opentelemetry.exporter", "google.protobuf")
        print([name for name in list(sys.modules) if name.startswith(heavy)])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, timeout=120, text=True)
    assert done.stdout.strip() == "[]", done.stderr


class Flaky(Model):
    """A model server that has no time for the first call."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.requests:
            return super().__call__(request)
        self.requests.append(request)
        return httpx.Response(503, stream=httpx.ByteStream(b"{}"))


def test_every_attempt_has_a_separate_span_and_sends_its_context(recorder: Recorder) -> None:
    model = Flaky()
    retries = {"count": 1, "initial_backoff": "0ms"}
    settings = {"upstreams": {"up": {"base_url": "http://upstream.internal/v1", "retries": retries}}}
    exchanged(recorder.telemetry, model, settings=settings)
    first, second = recorder.named("chat m")
    assert attributes(first)["error.type"] == "503"
    assert first.status.status_code is StatusCode.ERROR
    assert "error.type" not in attributes(second)
    assert attributes(second)["gen_ai.usage.input_tokens"] == 9
    assert "gen_ai.usage.input_tokens" not in attributes(first)
    assert [int(sent.headers["traceparent"][36:52], 16) for sent in model.requests] == [
        first.context.span_id,
        second.context.span_id,
    ]


def test_a_request_whose_reply_broke_off_has_an_error_type(recorder: Recorder) -> None:
    exchanged(recorder.telemetry, Model("cut"), asked=ASKED | {"stream": True})
    server = recorder.spans[f"POST {CHAT}"]
    assert attributes(server)["error.type"] == "broken_off"
    assert attributes(recorder.spans["chat m"])["error.type"] == "UpstreamBroken"
