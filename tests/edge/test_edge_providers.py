"""Anthropic, Gemini and Bedrock through the real litellm, before a server that replays their answers.

The recordings in tests/upstream/recorded follow the providers' public documentation. Both the request that reaches the
provider and the answer as an OpenAI SDK parses it are checked here.
"""

import base64
import binascii
import hashlib
import hmac
import json
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import openai
import pytest

from tests.edge.clients import JSON_HEADERS, RawClient, post_chat, sdk
from tests.edge.upstream import Headers, Received, Reply, Stall, Step, Upstream, body_reply

RECORDED = Path(__file__).parents[1] / "upstream" / "recorded"
SAID = "Revenue was $4.2M in 2023 [1]."
MESSAGES = [
    {"role": "system", "content": 'Answer from: <doc id="1">In 2023 revenue was $4.2 million.</doc>'},
    {"role": "user", "content": "How much was revenue?"},
]
ASKED = {"messages": MESSAGES, "max_tokens": 100}
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": WEATHER}}]
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
EVENT_STREAM: Headers = (("content-type", "text/event-stream"),)
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
)
AWS_STREAM: Headers = (("content-type", "application/vnd.amazon.eventstream"),)


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider: its configuration, the requests it gets and the credentials it needs."""

    name: str
    model: str
    litellm_model: str
    path: str
    targets: tuple[str, str]
    tokens: tuple[int, int]
    key: tuple[str, str] | None
    tools: Callable[[dict[str, Any]], Any]

    def recorded(self, name: str) -> bytes:
        return (RECORDED / self.name / name).read_bytes()

    def whole(self, name: str) -> Reply:
        return body_reply(self.recorded(f"{name}.json"))

    def streaming(self, name: str, *then: Step) -> Reply:
        """The recorded stream, event by event."""
        if self.name == "bedrock":
            events = json.loads(self.recorded(f"{name}.events.json"))
            return Reply((*map(framed, events), *then), headers=AWS_STREAM, framing="chunked")
        events = self.recorded(f"{name}.sse").replace(b"\r\n", b"\n").split(b"\n\n")
        ending = b"\r\n\r\n" if self.name == "gemini" else b"\n\n"
        body = tuple(event + ending for event in events if event)
        return Reply((*body, *then), headers=EVENT_STREAM, framing="chunked")

    def errors(self) -> Iterator[tuple[int, dict[str, Any], Reply]]:
        for status, body in json.loads(self.recorded("errors.json")).items():
            kind = body.pop("x-amzn-errortype", None)
            headers = (("retry-after", "7"), *((("x-amzn-errortype", kind),) if kind else ()))
            told = body.get("error", body)
            expected = {
                "message": told["message"],
                "type": told.get("type") or told.get("status") or kind.split(":")[0],
            }
            yield int(status), expected, body_reply(json.dumps(body).encode(), status=int(status), headers=headers)


PROVIDERS = (
    Provider(
        "anthropic",
        "claude-sonnet-4-5",
        "anthropic/*",
        "",
        ("/v1/messages", "/v1/messages"),
        (57, 15),
        ("x-api-key", "sk-provider"),
        lambda body: [(tool["name"], tool["input_schema"]) for tool in body["tools"]],
    ),
    Provider(
        "gemini",
        "gemini-2.5-flash",
        "gemini/*",
        "/v1beta",
        (
            "/v1beta/models/gemini-2.5-flash:generateContent",
            "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
        ),
        (41, 16),
        ("x-goog-api-key", "sk-provider"),
        lambda body: [(each["name"], each["parameters"]) for each in body["tools"][0]["function_declarations"]],
    ),
    Provider(
        "bedrock",
        "anthropic.claude-3-5-sonnet-20240620-v1:0",
        "bedrock/converse/*",
        "",
        (
            "/model/anthropic.claude-3-5-sonnet-20240620-v1%3A0/converse",
            "/model/anthropic.claude-3-5-sonnet-20240620-v1%3A0/converse-stream",
        ),
        (57, 15),
        None,
        lambda body: [
            (tool["toolSpec"]["name"], tool["toolSpec"]["inputSchema"]["json"]) for tool in body["toolConfig"]["tools"]
        ],
    ),
)


def framed(event: dict[str, Any]) -> bytes:
    """An event in the binary framing of AWS: lengths, headers, payload, each guarded by a CRC-32."""
    kind = "exception" if "exception-type" in event else "event"
    named = {f":{kind}-type": event[f"{kind}-type"], ":content-type": "application/json", ":message-type": kind}
    headers = b"".join(
        struct.pack(">B", len(name)) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in named.items()
    )
    payload = json.dumps(event["payload"]).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack(">I", binascii.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", binascii.crc32(message))


def signed(request: Received, secret: str) -> str:
    """Return the Authorization header that Signature Version 4 requires for the request as it arrived."""
    given = request.header("authorization") or ""
    scope, names = given.split("Credential=")[1].split(",")[0], given.split("SignedHeaders=")[1].split(",")[0]
    _, day, region, service, _ = scope.split("/")
    canonical = "\n".join(
        [
            request.method,
            "/".join(quote(part, safe="-_.~") for part in request.path.split("/")),
            request.query,
            *(f"{name}:{request.header(name)}" for name in names.split(";")),
            "",
            names,
            hashlib.sha256(request.body).hexdigest(),
        ]
    )
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    place, digest = scope.partition("/")[2], hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = f"AWS4-HMAC-SHA256\n{request.header('x-amz-date')}\n{place}\n{digest}"
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    return f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={names}, Signature={signature}"


@pytest.fixture(params=PROVIDERS, ids=lambda provider: provider.name)
def provider(request: pytest.FixtureRequest) -> Provider:
    """Each provider in turn."""
    found: Provider = request.param
    return found


@pytest.fixture
def start(upstream: Upstream, start_proxy, monkeypatch: pytest.MonkeyPatch):
    """A proxy in front of a provider."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION_NAME": "eu-west-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)

    def start(provider: Provider, **options: object):
        key = {"api_key_env": "PROVIDER_KEY"} if provider.key else {}
        address = f"http://127.0.0.1:{upstream.port}{provider.path}"
        hosted = {"dialect": "litellm", "litellm_model": provider.litellm_model, "base_url": address, **key, **options}
        patient = {"grounding": {"timeout": "20s"}, "stream": {"tail_budget": "20s"}}
        return start_proxy({"PROVIDER_KEY": "sk-provider"}, upstreams={"hosted": hosted}, **patient)

    return start


def arrived(upstream: Upstream, provider: Provider, *, streamed: bool) -> dict[str, Any]:
    """Return the one request that reached the provider; check its target and credentials."""
    (request,) = upstream.requests
    assert (request.method, request.target) == ("POST", provider.targets[streamed])
    assert "sk-test" not in str(request.headers)
    if provider.key:
        assert request.header(provider.key[0]) == provider.key[1]
        assert request.header("authorization") is None
    else:
        assert request.header("authorization") == signed(request, SECRET)
        assert "/eu-west-1/bedrock/aws4_request" in (request.header("authorization") or "")
    body: dict[str, Any] = request.json()
    return body


def test_a_whole_answer(upstream: Upstream, start, provider: Provider) -> None:
    upstream.reply = provider.whole("answer")
    with sdk(start(provider).base_url) as client:
        answer = client.chat.completions.create(model=provider.model, **ASKED)
    assert arrived(upstream, provider, streamed=False) == json.loads(provider.recorded("request.json"))
    assert answer.object == "chat.completion"
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == (SAID, "stop")
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == provider.tokens
    grounding = answer.model_extra["grounding"]
    assert (grounding["verdict"], grounding["score"]) == ("grounded", 1.0)
    assert grounding["choices"][0]["claims"][0]["citations"][0]["source"] == "m0.d1"


def test_a_streamed_answer(upstream: Upstream, start, provider: Provider) -> None:
    upstream.reply = provider.streaming("answer")
    with sdk(start(provider).base_url) as client:
        chunks = list(client.chat.completions.create(model=provider.model, **ASKED, **STREAMED))
    body = arrived(upstream, provider, streamed=True)
    assert {key: value for key, value in body.items() if key != "stream"} == json.loads(
        provider.recorded("request.json")
    )
    texts = [choice.delta.content for chunk in chunks for choice in chunk.choices if choice.delta.content]
    assert texts == ["Revenue was ", "$4.2M in ", "2023 [1]."]
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason] == ["stop"]
    assert [chunk.usage is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == provider.tokens
    assert chunks[-1].choices == []
    assert chunks[-1].model_extra["grounding"]["verdict"] == "grounded"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_tool_call(upstream: Upstream, start, provider: Provider, streamed: bool) -> None:
    upstream.reply = provider.streaming("tool") if streamed else provider.whole("tool")
    with sdk(start(provider).base_url) as client:
        if streamed:
            with client.chat.completions.stream(model=provider.model, tools=TOOLS, **ASKED) as stream:
                answer = stream.get_final_completion()
        else:
            answer = client.chat.completions.create(model=provider.model, tools=TOOLS, **ASKED)
    assert provider.tools(arrived(upstream, provider, streamed=streamed)) == [("get_weather", WEATHER)]
    (choice,) = answer.choices
    (call,) = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls"
    assert call.id
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "Paris", "unit": "celsius"}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_delay_of_google_is_sent_as_retry_after(upstream: Upstream, start, streamed: bool) -> None:
    gemini = PROVIDERS[1]
    upstream.reply = body_reply(json.dumps(json.loads(gemini.recorded("errors.json"))["429"]).encode(), status=429)
    with sdk(start(gemini).base_url) as client, pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(model=gemini.model, **ASKED, stream=streamed)
    assert caught.value.response.headers["retry-after"] == "30"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_errors_have_the_providers_status_and_words(
    upstream: Upstream, start, provider: Provider, streamed: bool
) -> None:
    with sdk(start(provider).base_url) as client:
        for status, told, reply in provider.errors():
            upstream.reset()
            upstream.reply = reply
            with pytest.raises(openai.APIStatusError) as caught:
                client.chat.completions.create(model=provider.model, **ASKED, stream=streamed)
            assert caught.value.status_code == status
            assert caught.value.body == {**told, "param": None, "code": None}
            assert caught.value.response.headers["retry-after"] == "7"
            assert len(upstream.requests) == 1


def test_a_stream_that_fails_in_the_middle_is_not_passed_off_as_whole(upstream: Upstream, start) -> None:
    for provider, name in ((PROVIDERS[0], "overloaded"), (PROVIDERS[2], "throttled")):
        upstream.reset()
        upstream.reply = provider.streaming(name)
        proxy = start(provider)
        with RawClient(proxy.port) as client:
            body = json.dumps({"model": provider.model, **ASKED, "stream": True}).encode()
            client.send("POST", "/v1/chat/completions", JSON_HEADERS, body)
            client.read_head()
            client.read_to_end()
        assert client.status == 200
        assert b"Revenue was " in client.body
        assert b"[DONE]" not in client.body
        assert proxy.report(client.header("x-grounding-id") or "")["status"] == "partial"


@pytest.mark.parametrize("stage", ["before the answer", "before the first event", "in the stream"])
def test_a_client_that_leaves_ends_the_call_of_the_provider(
    upstream: Upstream, start, provider: Provider, stage: str
) -> None:
    started = provider.streaming("answer")
    upstream.reply = {
        "before the answer": Reply(before=(Stall(),)),
        "before the first event": Reply((Stall(),), headers=started.headers, framing="chunked"),
        "in the stream": Reply((*started.body[:4], Stall()), headers=started.headers, framing="chunked")
        if provider.name != "gemini"
        else Reply((*started.body[:1], Stall()), headers=started.headers, framing="chunked"),
    }[stage]
    proxy = start(provider)
    with RawClient(proxy.port) as client:
        body = json.dumps({"model": provider.model, **ASKED, "stream": True}).encode()
        client.send("POST", "/v1/chat/completions", JSON_HEADERS, body)
        upstream.wait_for_requests(1, timeout=20)
        if stage == "in the stream":
            client.read_head()
            client.read_until(b"Revenue was ")
        assert not upstream.exchanges[0].left.is_set()
    assert upstream.exchanges[0].left.wait(60)


def test_a_stream_that_is_refused_is_tried_again(upstream: Upstream, start, provider: Provider) -> None:
    """This holds although litellm calls some providers only for the first chunk."""
    refused = [next(reply for status, _, reply in provider.errors() if status == 429)]
    refused = [refused[0].with_headers(("retry-after", "0"))]
    upstream.reply = lambda _: refused.pop() if refused else provider.streaming("answer")
    proxy = start(provider, retries={"count": 1, "initial_backoff": "5ms"})
    with sdk(proxy.base_url) as client:
        chunks = list(client.chat.completions.create(model=provider.model, **ASKED, stream=True))
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == SAID
    assert len(upstream.requests) == 2


def test_configured_headers_reach_the_provider_and_no_other_host_is_resolved(
    upstream: Upstream, start, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: set[str] = set()
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *rest, **named: (asked_for.add(host), resolve(host, *rest, **named))[1]
    )
    upstream.reply = PROVIDERS[0].whole("answer")
    proxy = start(PROVIDERS[0], headers={"anthropic-beta": "context-1m-2025-08-07", "x-tenant": "ours"})
    with sdk(proxy.base_url) as client:
        client.chat.completions.create(model=PROVIDERS[0].model, **ASKED)
    assert upstream.last.header("anthropic-beta") == "context-1m-2025-08-07"
    assert upstream.last.header("x-tenant") == "ours"
    assert asked_for <= {"127.0.0.1", b"127.0.0.1"}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_url_in_a_message_is_fetched_only_from_allowed_hosts(
    upstream: Upstream, second_upstream: Upstream, start, provider: Provider, streamed: bool
) -> None:
    second_upstream.reply = body_reply(PIXEL, headers=(("content-type", "image/png"),))
    host = f"http://127.0.0.1:{second_upstream.port}"
    image = {"type": "image_url", "image_url": {"url": f"{host}/i.png"}}
    asked = {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}]}
    upstream.reply = provider.streaming("answer") if streamed else provider.whole("answer")
    with sdk(start(provider).base_url) as client, pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=provider.model, stream=streamed, **asked)
    assert caught.value.param == "messages[0].content[1].image_url.url"
    assert (upstream.requests, second_upstream.requests) == ([], [])
    with sdk(start(provider, allowed_media_hosts=[host]).base_url) as client:
        answer = client.chat.completions.create(model=provider.model, stream=streamed, **asked)
        if streamed:
            assert [*answer]
    assert [request.path for request in second_upstream.requests] == ["/i.png"]
    assert base64.b64encode(PIXEL) in upstream.last.body


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"metadata": "text"}, "metadata"),
        ({"metadata": [1], "stream": True}, "metadata"),
        ({"tools": [{"type": "mcp", "server_label": "x", "server_url": "https://mcp.example"}]}, "tools[0].type"),
        ({"tools": [*TOOLS, {"type": "mcp", "server_label": "x"}], "metadata": 5}, "tools[1].type"),
    ],
)
def test_metadata_that_is_no_object_and_mcp_tools_are_refused_by_name(
    upstream: Upstream, start, provider: Provider, asked: dict[str, Any], param: str
) -> None:
    reply = post_chat(start(provider).port, {"model": provider.model, **ASKED, **asked})
    assert (reply.status, reply.json()["error"]["param"], upstream.requests) == (400, param, [])


def test_an_address_as_a_model_is_refused(upstream: Upstream, second_upstream: Upstream, start) -> None:
    model = f"http://127.0.0.1:{second_upstream.port}/v1"
    with sdk(start(PROVIDERS[0]).base_url) as client, pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model, **ASKED)
    assert caught.value.param == "model"
    assert (upstream.requests, second_upstream.requests) == ([], [])
