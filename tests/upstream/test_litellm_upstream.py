"""A hosted model of another dialect, through the real litellm, before a server of that dialect."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, get_type_hints

import pytest
from openai.types import EmbeddingCreateParams
from openai.types.chat.completion_create_params import CompletionCreateParamsBase as ChatParams
from openai.types.completion_create_params import CompletionCreateParamsBase as CompletionParams

from groundwire.errors import BadRequest, UpstreamBroken, UpstreamTimeout, UpstreamUnreachable
from groundwire.upstream.litellm import LitellmUpstream
from groundwire.wire import Call, Reply

SAID = "The sky is blue — naïve 🙂."
ASKED = {
    "model": "claude-x",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What colour is the sky?"}],
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [{"type": "text", "text": SAID}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 5, "output_tokens": 4},
}
EVENTS = [
    {"type": "message_start", "message": MESSAGE | {"content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAID[:9]}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAID[9:]}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]


class Anthropic(ThreadingHTTPServer):
    """A server of Anthropic's messages API; `fails` is (status, type, message) when it is to refuse."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.fails: tuple[int, str, str] | None = None
        self.stalls = threading.Event()
        self.stalls.set()
        self.cuts_after: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Anthropic

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append((self.path, headers, asked))
        self.server.stalls.wait(5)
        if self.server.fails:
            status, type_, message = self.server.fails
            self._send(status, {"type": "error", "error": {"type": type_, "message": message}}, ("retry-after", "7"))
        elif asked.get("stream"):
            self._stream()
        else:
            self._send(200, MESSAGE)

    def _send(self, status: int, body: dict[str, Any], *headers: tuple[str, str]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (("content-type", "application/json"), ("content-length", str(len(raw))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in EVENTS[: self.server.cuts_after]:
            raw = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
        if self.server.cuts_after is None:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True


@pytest.fixture
def anthropic() -> Iterator[Anthropic]:
    """The server, on a free port."""
    with Anthropic() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.stalls.set()
        server.shutdown()


def upstream(url: str | None, model: str = "anthropic/*", **options: Any) -> LitellmUpstream:
    return LitellmUpstream("claude", model, key="sk-configured", base_url=url, **options)


def send(
    serving: LitellmUpstream, asked: dict[str, Any], target: str = "/chat/completions"
) -> tuple[Reply, list[bytes]]:
    """The reply, and its body in the chunks that it came in."""
    headers = ((b"authorization", b"Bearer sk-client"), (b"x-secret", b"sk-client"))

    async def work() -> tuple[Reply, list[bytes]]:
        reply = await serving.send(Call("POST", target, headers, json.dumps(asked).encode()))
        return reply, [reply.body] if isinstance(reply.body, bytes) else [chunk async for chunk in reply.body]

    return asyncio.run(work())


def test_an_answer_comes_in_openais_shape(anthropic: Anthropic) -> None:
    reply, (body,) = send(upstream(anthropic.url), ASKED)
    answer = json.loads(body)
    assert (reply.status, reply.headers) == (200, ((b"content-type", b"application/json"),))
    assert (answer["object"], answer["model"]) == ("chat.completion", "claude-x")
    (choice,) = answer["choices"]
    assert (choice["message"]["role"], choice["message"]["content"]) == ("assistant", SAID)
    assert (choice["index"], choice["finish_reason"]) == (0, "stop")
    assert (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]) == (5, 4)


def test_the_provider_gets_its_own_shape_and_the_configured_key(anthropic: Anthropic) -> None:
    send(upstream(anthropic.url), ASKED | {"temperature": 0.5, "max_tokens": 9})
    ((path, headers, asked),) = anthropic.received
    assert path == "/v1/messages"
    assert headers["x-api-key"] == "sk-configured"
    assert not [value for value in headers.values() if "sk-client" in value]
    assert (asked["model"], asked["temperature"], asked["max_tokens"]) == ("claude-x", 0.5, 9)
    assert [message["role"] for message in asked["messages"]] == ["user"]
    assert asked["system"][0]["text"] == "Be brief."


def test_a_stream_comes_as_openais_events(anthropic: Anthropic) -> None:
    reply, chunks = send(upstream(anthropic.url), ASKED | {"stream": True, "stream_options": {"include_usage": True}})
    assert (reply.status, reply.headers) == (200, ((b"content-type", b"text/event-stream; charset=utf-8"),))
    assert all(chunk.startswith(b"data: ") and chunk.endswith(b"\n\n") for chunk in chunks)
    assert chunks[-1] == b"data: [DONE]\n\n"
    events = [json.loads(chunk[6:]) for chunk in chunks[:-1]]
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    choices = [choice for event in events for choice in event["choices"]]
    assert "".join(choice["delta"].get("content") or "" for choice in choices) == SAID
    assert [choice["finish_reason"] for choice in choices if choice.get("finish_reason")] == ["stop"]
    assert [event["usage"]["completion_tokens"] for event in events if event.get("usage")] == [4]


def test_the_older_completions_work_too(anthropic: Anthropic) -> None:
    _, (body,) = send(upstream(anthropic.url), {"model": "claude-x", "prompt": "Sky?"}, "/completions?x=1")
    answer = json.loads(body)
    assert (answer["object"], answer["choices"][0]["text"]) == ("text_completion", SAID)


@pytest.mark.parametrize(
    ("model", "asked", "reached"),
    [("anthropic/*", "claude-x", "claude-x"), ("anthropic/claude-fixed", "anything", "claude-fixed")],
)
def test_the_model_is_the_clients_or_the_configured_one(
    anthropic: Anthropic, model: str, asked: str, reached: str
) -> None:
    send(upstream(anthropic.url, model), ASKED | {"model": asked})
    assert anthropic.received[0][2]["model"] == reached


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("status", "type_", "message"),
    [
        (400, "invalid_request_error", "messages: at least one is needed"),
        (401, "authentication_error", "invalid x-api-key"),
        (404, "not_found_error", "model: claude-x"),
        (413, "request_too_large", "too large"),
        (429, "rate_limit_error", "Too many"),
        (500, "api_error", "Internal"),
        (529, "overloaded_error", "Overloaded"),
    ],
)
def test_the_providers_errors_keep_their_status_and_message(
    anthropic: Anthropic, status: int, type_: str, message: str, streamed: bool
) -> None:
    anthropic.fails = (status, type_, message)
    reply, (body,) = send(upstream(anthropic.url), ASKED | {"stream": streamed})
    assert reply.status == status
    assert json.loads(body) == {"error": {"message": message, "type": type_, "param": None, "code": None}}
    assert dict(reply.headers)[b"retry-after"] == b"7"
    assert len(anthropic.received) == 1


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_provider_that_is_not_there_is_unreachable(streamed: bool) -> None:
    with pytest.raises(UpstreamUnreachable) as caught:
        send(upstream("http://127.0.0.1:9"), ASKED | {"stream": streamed})
    assert str(caught.value) == "upstream 'claude' cannot be reached"


def test_a_provider_that_is_silent_is_a_time_out(anthropic: Anthropic) -> None:
    anthropic.stalls.clear()
    with pytest.raises(UpstreamTimeout) as caught:
        send(upstream(anthropic.url, timeout=0.3), ASKED)
    assert str(caught.value) == "upstream 'claude' did not answer in time"


def test_a_stream_is_started_before_a_slow_first_chunk(anthropic: Anthropic) -> None:
    """This keeps its client alive; a failure afterwards is a stream that breaks off."""
    anthropic.stalls.clear()

    async def work() -> None:
        serving = LitellmUpstream("gemini", "gemini/*", key="k", base_url=anthropic.url, first_chunk_timeout=0.05)
        reply = await serving.send(Call("POST", "/chat/completions", (), json.dumps(ASKED | {"stream": True}).encode()))
        assert reply.status == 200
        assert not isinstance(reply.body, bytes)
        anthropic.fails = (503, "UNAVAILABLE", "Overloaded")
        anthropic.stalls.set()
        with pytest.raises(UpstreamBroken):
            await anext(reply.body)

    asyncio.run(work())


def test_a_stream_that_is_cut_is_broken_and_not_done(anthropic: Anthropic) -> None:
    anthropic.cuts_after = 3
    came: list[bytes] = []

    async def work() -> None:
        body = json.dumps(ASKED | {"stream": True}).encode()
        reply = await upstream(anthropic.url).send(Call("POST", "/chat/completions", (), body))
        assert not isinstance(reply.body, bytes)
        async for chunk in reply.body:
            came.append(chunk)  # noqa: PERF401 - what came before the break is wanted

    with pytest.raises(UpstreamBroken) as caught:
        asyncio.run(work())
    assert "127.0.0.1" not in str(caught.value)
    assert b"[DONE]" not in b"".join(came)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("provider", ["anthropic", "openai", "azure", "mistral", "groq"])
def test_nothing_is_tried_again_that_the_settings_do_not_name(
    anthropic: Anthropic, provider: str, streamed: bool
) -> None:
    """The SDK that litellm has for some providers would ask three times."""
    anthropic.fails = (503, "server_error", "Come back")
    reply, _ = send(upstream(anthropic.url, f"{provider}/*"), ASKED | {"stream": streamed})
    assert reply.status == 503
    ((_, _, asked),) = anthropic.received
    assert "max_retries" not in asked


REDIRECTING = {
    "api_base": "http://evil.example",
    "base_url": "http://evil.example",
    "custom_llm_provider": "openai",
    "api_key": "sk-client",
    "extra_headers": {"x-api-key": "sk-client"},
    "headers": {"x-api-key": "sk-client"},
    "mock_response": "made up",
    "fallbacks": ["gpt-4o"],
    "model_list": [],
    "aws_bedrock_runtime_endpoint": "http://evil.example",
    "timeout": 1e9,
    "num_retries": 9,
    "callbacks": ["x"],
    "grounding": {},
}


@pytest.mark.parametrize("name", REDIRECTING)
def test_no_field_of_a_request_steers_litellm(anthropic: Anthropic, name: str) -> None:
    """Otherwise a client could have the configured key sent to its own host."""
    with pytest.raises(BadRequest) as caught:
        send(upstream(None), ASKED | {name: REDIRECTING[name]})
    assert caught.value.param == name
    assert anthropic.received == []


@pytest.mark.parametrize(
    ("params", "target", "asked"),
    [
        (ChatParams, "/chat/completions", ASKED),
        (CompletionParams, "/completions", {"model": "claude-x", "prompt": "x"}),
        (EmbeddingCreateParams, "/embeddings", {"model": "claude-x", "input": "x"}),
    ],
    ids=["chat", "completions", "embeddings"],
)
def test_every_field_of_openais_api_is_taken(
    anthropic: Anthropic, params: Any, target: str, asked: dict[str, Any]
) -> None:
    """The provider refuses the fields that it does not know."""
    for name in get_type_hints(params).keys() - asked.keys():
        send(upstream(anthropic.url), asked | {name: None}, target)


@pytest.mark.parametrize(("method", "target"), [("GET", "/models"), ("POST", "/files"), ("GET", "/chat/completions")])
def test_a_call_that_only_openai_has_is_a_bad_request(method: str, target: str) -> None:
    with pytest.raises(BadRequest):
        asyncio.run(upstream(None).send(Call(method, target, (), b"{}")))


def test_a_request_that_litellm_cannot_read_shows_no_traceback(anthropic: Anthropic) -> None:
    reply, (body,) = send(upstream(anthropic.url), ASKED | {"messages": "no list"})
    assert reply.status >= 400
    assert not [word for word in (b"Traceback", b".py", b"sk-configured") if word in body]


def test_nothing_is_printed_or_logged(
    anthropic: Anthropic, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    send(upstream(anthropic.url), ASKED)
    anthropic.fails = (429, "rate_limit_error", "Too many")
    send(upstream(anthropic.url), ASKED)
    printed = "".join(capfd.readouterr()) + caplog.text
    assert not [secret for secret in ("sk-configured", "colour", "naïve", "Too many") if secret in printed]
