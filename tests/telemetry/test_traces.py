"""OB1: spans and the evaluation result under the GenAI conventions, in memory and through a real OTLP receiver."""

import asyncio
import json
import threading
import time
from collections.abc import Coroutine, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from proxy.config import Settings
from proxy.config import Telemetry as TelemetrySettings
from proxy.server.app import build_app
from proxy.telemetry import Telemetry, build_telemetry
from proxy.wiring import build_house

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
KEY = "sk-umbrella"
ASKED = {
    "model": "m",
    "messages": [{"role": "system", "content": "The zanzibar ledger was sealed in 1881."}],
    "temperature": 0.5,
    "max_tokens": 50,
    "top_p": 0.9,
    "seed": 7,
}
ANSWER = "The zanzibar ledger was sealed in 1881. The okapi was sold in 1999."
CHAT = "/v1/chat/completions"


def body(text: str = ANSWER) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "model": "m-2024",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14},
    }


def stream(*, cut: bool = False) -> Iterator[bytes]:
    for piece in (ANSWER[:20], ANSWER[20:]):
        yield event({"delta": {"content": piece}, "finish_reason": None})
    if cut:
        raise httpx.ReadError("cut at upstream.internal")
    yield event({"delta": {}, "finish_reason": "stop"})
    yield b"data: [DONE]\n\n"


def event(choice: dict[str, Any]) -> bytes:
    said = {"id": "chatcmpl-1", "model": "m-2024", "choices": [{"index": 0, **choice}]}
    return b"data: " + json.dumps(said).encode() + b"\n\n"


class Streamed(httpx.AsyncByteStream):
    """A body in chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> Any:
        for chunk in self._chunks:
            yield chunk


class Model:
    """A model server that notes what it is asked and answers as told: well, with an error, cut, or not at all."""

    def __init__(self, ends: str = "well") -> None:
        self.ends = ends
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.ends == "unreachable":
            raise httpx.ConnectError("to upstream.internal")
        if self.ends == "error":
            return httpx.Response(429, stream=httpx.ByteStream(b'{"error":{"message":"okapi"}}'))
        if json.loads(request.content or b"{}").get("stream"):
            chunks = Streamed(stream(cut=self.ends == "cut"))
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=chunks)
        raw = json.dumps(body()).encode()
        return httpx.Response(200, headers={"content-type": "application/json"}, stream=httpx.ByteStream(raw))


def exchanged(
    telemetry: Telemetry | None,
    model: Model,
    *,
    asked: Mapping[str, Any] = ASKED,
    target: str = CHAT,
    settings: Mapping[str, Any] | None = None,
    **headers: str,
) -> httpx.Response | None:
    """One exchange through the whole house, closed afterwards; None when the reply broke off."""
    upstreams = {"up": {"base_url": "http://upstream.internal/v1"}}
    described = Settings.model_validate({"upstreams": upstreams, "stream": {"tail_budget": "20s"}, **(settings or {})})
    house = build_house(described, {}, transport=httpx.MockTransport(model), telemetry=telemetry)

    async def work() -> httpx.Response | None:
        transport = httpx.ASGITransport(build_app(described, house), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as client:
            try:
                return await client.post(
                    target, json=dict(asked), headers={"authorization": f"Bearer {KEY}", **headers}
                )
            except (AssertionError, httpx.HTTPError):
                return None
            finally:
                await asyncio.sleep(0.2 if model.ends == "cut" else 0)
                await house.close()

    return run(work())


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 30))


class Recorder:
    """Telemetry into memory."""

    def __init__(self, **options: Any) -> None:
        self._spans, self._logs = InMemorySpanExporter(), InMemoryLogRecordExporter()
        spans, logs = TracerProvider(), LoggerProvider()
        spans.add_span_processor(SimpleSpanProcessor(self._spans))
        logs.add_log_record_processor(SimpleLogRecordProcessor(self._logs))
        self.telemetry = Telemetry(spans.get_tracer("test"), logs.get_logger("test"), **options)

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        """The finished spans by their name."""
        return {span.name: span for span in self._spans.get_finished_spans()}

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
    """Telemetry into memory."""
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


def test_usage_stands_on_the_upstream_span_only(recorder: Recorder) -> None:
    exchanged(recorder.telemetry, Model())
    holders = [name for name, span in recorder.spans.items() if "gen_ai.usage.input_tokens" in attributes(span)]
    assert holders == ["chat m"]


def test_the_server_span_says_what_was_answered(recorder: Recorder) -> None:
    exchanged(recorder.telemetry, Model("error"))
    found = attributes(recorder.spans[f"POST {CHAT}"])
    assert found["http.request.method"] == "POST"
    assert found["http.route"] == CHAT
    assert found["http.response.status_code"] == 429


def test_the_upstream_is_called_within_its_own_span(recorder: Recorder) -> None:
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

SECRETS = (KEY, "zanzibar", "okapi", "ledger")


@pytest.mark.parametrize("ends", ["well", "error", "cut", "unreachable"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_no_content_and_no_key_is_recorded(recorder: Recorder, ends: str, streamed: bool) -> None:
    asked = ASKED | {"stream": streamed, "grounding": {"sources": [{"text": "zanzibar"}]}}
    exchanged(recorder.telemetry, Model(ends), asked=asked, **{"x-api-key": KEY})
    recorded = recorder.everything()
    assert recorded
    assert not [secret for secret in SECRETS if secret in recorded]


def test_content_is_recorded_when_it_is_asked_for() -> None:
    recorder = Recorder(capture_content=True)
    exchanged(recorder.telemetry, Model())
    assert "zanzibar" in str(attributes(recorder.spans["chat m"])["gen_ai.input.messages"])
    assert KEY not in recorder.everything()


def test_without_an_endpoint_nothing_is_recorded_and_the_trace_goes_on_untouched() -> None:
    model = Model()
    exchanged(build_telemetry(TelemetrySettings()), model, traceparent=CALLER, tracestate="vendor=1")
    (sent,) = model.requests
    assert (sent.headers["traceparent"], sent.headers["tracestate"]) == (CALLER, "vendor=1")


# --- a real receiver --------------------------------------------------------------------------------------------------


class Receiver(ThreadingHTTPServer):
    """An OTLP receiver that decodes what it is sent; an `outage` makes it refuse everything."""

    daemon_threads = True
    outage = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _ReceiverHandler)
        self.traces: list[Any] = []
        self.logs: list[Any] = []
        self.raw = b""

    @property
    def spans(self) -> dict[str, Any]:
        """Every span that came, by name."""
        scopes = [scope for sent in self.traces for each in sent.resource_spans for scope in each.scope_spans]
        return {span.name: span for scope in scopes for span in scope.spans}


class _ReceiverHandler(BaseHTTPRequestHandler):
    server: Receiver

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        self.server.raw += raw
        if self.path == "/v1/traces":
            self.server.traces.append(ExportTraceServiceRequest.FromString(raw))
        elif self.path == "/v1/logs":
            self.server.logs.append(ExportLogsServiceRequest.FromString(raw))
        self.send_response(503 if self.server.outage else 200)
        self.end_headers()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """The receiver, on a free port."""
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def plain(pairs: Any) -> dict[str, Any]:
    """OTLP's key-value pairs as a dictionary."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in pairs}


def test_an_exchange_arrives_at_an_otlp_receiver(receiver: Receiver) -> None:
    telemetry = {"otlp_endpoint": f"http://127.0.0.1:{receiver.server_port}/", "service_name": "my-proxy"}
    response = exchanged(None, Model(), settings={"telemetry": telemetry}, traceparent=CALLER)
    assert response
    grounding = response.json()["grounding"]
    spans = receiver.spans
    server, upstream, verify = (spans[name] for name in (f"POST {CHAT}", "chat m", "grounding verify"))
    assert {span.trace_id.hex() for span in spans.values()} == {CALLER[3:35]}
    assert server.parent_span_id.hex() == CALLER[36:52]
    assert upstream.parent_span_id == verify.parent_span_id == server.span_id
    assert plain(upstream.attributes)["gen_ai.usage.input_tokens"] == 9
    evaluation = plain(verify.attributes)
    assert evaluation["grounding.id"] == grounding["id"]
    assert evaluation["gen_ai.evaluation.score.value"] == grounding["score"] == 0.5
    assert verify.events[0].name == "gen_ai.evaluation.result"
    resource = receiver.traces[0].resource_spans[0].resource
    assert plain(resource.attributes)["service.name"] == "my-proxy"
    ((record),) = [
        r for sent in receiver.logs for each in sent.resource_logs for s in each.scope_logs for r in s.log_records
    ]
    assert record.event_name == "gen_ai.evaluation.result"
    assert (record.trace_id, record.span_id) == (verify.trace_id, verify.span_id)
    assert plain(record.attributes)["gen_ai.evaluation.score.label"] == grounding["verdict"]
    assert not [secret for secret in SECRETS if secret.encode() in receiver.raw]


def test_a_receiver_that_is_down_harms_no_answer() -> None:
    """Nor does it hold up the end."""
    telemetry = {"otlp_endpoint": "http://127.0.0.1:9"}
    started = time.monotonic()
    response = exchanged(None, Model(), settings={"telemetry": telemetry})
    assert time.monotonic() - started < 4
    assert response
    assert response.json()["grounding"]["status"] == "complete"
