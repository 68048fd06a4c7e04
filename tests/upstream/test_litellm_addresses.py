"""No request makes litellm call a host that the settings do not name: media, models, tools, and texts of errors."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from groundwire.config import Settings
from groundwire.errors import BadRequest, UpstreamUnreachable
from groundwire.upstream.litellm import LitellmUpstream, MediaHosts, read_host, remote_media
from groundwire.wire import Call, Reply

URL = "http://evil.example/i.png"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="
)
INLINE = "data:image/png;base64," + base64.b64encode(PIXEL).decode()


class Recording(ThreadingHTTPServer):
    """A server that records requests and answers all alike: an image to GET, an answer in Anthropic's shape to POST."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Recorder)
        self.received: list[tuple[str, str, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Recorder(BaseHTTPRequestHandler):
    server: Recording

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._answer("image/png", PIXEL)

    def do_POST(self) -> None:
        answer = {"id": "m", "type": "message", "role": "assistant", "model": "x", "stop_reason": "end_turn"}
        rest = {"content": [{"type": "text", "text": "Hi."}], "usage": {"input_tokens": 1, "output_tokens": 1}}
        self._answer("application/json", json.dumps(answer | rest).encode())

    def _answer(self, kind: str, body: bytes) -> None:
        came = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.received.append((self.command, self.path, came))
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[Recording]:
    with Recording() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that were looked up; none is found."""
    names: list[str] = []

    def look_up(host: Any, *_: object, **__: object) -> Any:
        names.append(str(host))
        raise socket.gaierror(-2, "not found")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return names


def send(upstream: LitellmUpstream, body: dict[str, Any], target: str = "/chat/completions") -> Reply:
    return asyncio.run(upstream.send(Call("POST", target, (), json.dumps({"model": "x"} | body).encode())))


def asking(*parts: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": [{"type": "text", "text": "Look: http://evil.example"}, *parts]}]}


PARTS: dict[str, tuple[Any, str]] = {
    "image": ({"type": "image_url", "image_url": {"url": URL}}, "image_url.url"),
    "image as a string": ({"type": "image_url", "image_url": URL}, "image_url"),
    "image of the Responses API": ({"type": "input_image", "image_url": URL}, "image_url"),
    "image of the Messages API": ({"type": "image", "source": {"type": "url", "url": URL}}, "source.url"),
    "document": ({"type": "document", "source": {"type": "url", "url": URL}}, "source.url"),
    "document that holds an image": (
        {
            "type": "document",
            "source": {"type": "content", "content": [{"type": "image", "source": {"type": "url", "url": URL}}]},
        },
        "source.content[0].source.url",
    ),
    "file by id": ({"type": "file", "file": {"file_id": URL}}, "file.file_id"),
    "file by data": ({"type": "file", "file": {"file_data": URL}}, "file.file_data"),
    "file of the Responses API": ({"type": "input_file", "file_url": URL}, "file_url"),
    "video": ({"type": "video_url", "video_url": {"url": URL}}, "video_url.url"),
    "audio": ({"type": "input_audio", "input_audio": {"data": URL, "format": "wav"}}, "input_audio.data"),
    "audio by URL": ({"type": "audio_url", "audio_url": {"url": URL}}, "audio_url.url"),
    "in the result of a tool": (
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image_url", "image_url": {"url": URL}}]},
        "content[0].image_url.url",
    ),
    "of a kind that nobody knows": ({"type": "hologram", "hologram": {"from": [URL]}}, "hologram.from[0]"),
    "beside a text": ({"type": "text", "text": "x", "image_url": {"url": URL}}, "image_url.url"),
}
ADDRESSES = [
    "https://evil.example/i.png",
    "HTTP://EVIL.EXAMPLE/i.png",
    "  http://evil.example/i.png",
    "\thttp://evil.example",
    "http://127.0.0.1:9/i.png",
    "http://[::1]/i.png",
    "http://2130706433/",
    "http:evil.example",
    "//evil.example/i.png",
    "\\\\evil.example\\share",
    "file:///etc/hostname",
    "gs://bucket/object.pdf",
    "s3://bucket/object.pdf",
    "ftp://evil.example/x",
    "data:image/png;x=http://evil.example/,AAAA",
    "http://allowed.example@evil.example/",
]


@pytest.mark.parametrize("name", PARTS)
def test_the_address_in_a_content_part_is_not_fetched(name: str, looked_up: list[str]) -> None:
    part, path = PARTS[name]
    for provider in ("gemini/*", "anthropic/*", "bedrock/converse/*", "openai/*"):
        with pytest.raises(BadRequest) as caught:
            send(LitellmUpstream("hosted", provider, key="k"), asking(part))
        assert caught.value.param == f"messages[0].content[1].{path}"
        assert "evil.example" not in str(caught.value)
    assert looked_up == []


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("role", ["user", "tool", "assistant", "system"])
def test_no_spelling_of_an_address_passes(address: str, role: str) -> None:
    body = asking({"type": "image_url", "image_url": {"url": address}}, role=role)
    assert [path for path, _ in remote_media(body)] == ["messages[0].content[1].image_url.url"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(asking(), id="an address in a text"),
        pytest.param(asking({"type": "image_url", "image_url": {"url": INLINE}}), id="an image in the request"),
        pytest.param(asking({"type": "image_url", "image_url": {"url": "/9j/4AAQSkZJRg=="}}), id="bare base64"),
        pytest.param(asking({"type": "file", "file": {"file_id": "file-abc123"}}), id="a file of the provider"),
        pytest.param(asking({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}), id="audio"),
        pytest.param(
            asking({"type": "document", "source": {"type": "text", "data": "See http://evil.example"}}), id="document"
        ),
        pytest.param(
            asking({"type": "search_result", "source": URL, "title": URL, "content": [{"type": "text", "text": URL}]}),
            id="the place of a search result",
        ),
        pytest.param({"messages": [{"role": "tool", "content": URL, "tool_call_id": "t"}]}, id="a tool's result"),
        pytest.param(
            {
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [{"function": {"name": "f", "arguments": f'{{"url": "{URL}"}}'}}],
                    }
                ]
            },
            id="arguments of a tool call",
        ),
        pytest.param(
            {"messages": [{"role": "assistant", "content": "x", "annotations": [{"url_citation": {"url": URL}}]}]},
            id="a citation",
        ),
        pytest.param({"input": ["http://evil.example is a site"]}, id="a text to embed"),
        pytest.param({"prompt": URL}, id="a prompt"),
    ],
)
def test_text_and_data_pass(body: dict[str, Any]) -> None:
    assert [*remote_media(body)] == []


@pytest.mark.parametrize("given", ["gs://bucket/i.png", "s3://bucket/i.png", {"image": URL}])
def test_an_address_to_be_embedded_is_not_fetched(given: Any, looked_up: list[str]) -> None:
    with pytest.raises(BadRequest) as caught:
        send(LitellmUpstream("hosted", "vertex_ai/*", key="k"), {"input": [given]}, "/embeddings")
    assert (caught.value.param or "").startswith("input[0]")
    assert looked_up == []


def test_a_host_that_the_settings_allow_is_fetched_from(server: Recording) -> None:
    """The host may be private; only this port is allowed."""
    allowed = MediaHosts(frozenset({read_host(server.url)}))
    upstream = LitellmUpstream("hosted", "anthropic/*", key="k", base_url=server.url, media_hosts=allowed)
    part = {"type": "image_url", "image_url": {"url": f"{server.url}/i.png"}}
    assert send(upstream, asking(part)).status == 200
    (_, path, _), (method, _, asked) = server.received
    assert (path, method) == ("/i.png", "POST")
    assert json.loads(asked)["messages"][0]["content"][1]["source"]["data"] == base64.b64encode(PIXEL).decode()
    other = {"type": "image_url", "image_url": {"url": f"http://127.0.0.1:{server.server_port + 1}/i.png"}}
    with pytest.raises(BadRequest):
        send(upstream, asking(other))


@pytest.mark.parametrize(
    ("allowed", "url", "passes"),
    [
        ("images.example", "https://images.example/i.png", True),
        ("images.example", "https://IMAGES.example:443/i.png", True),
        ("images.example", "https://images.example./i.png", True),
        ("images.example", "http://images.example/i.png", False),
        ("images.example", "https://images.example:8443/i.png", False),
        ("images.example", "https://evil.example/?images.example", False),
        ("images.example", "https://images.example@evil.example/", False),
        ("images.example", "https://images.example\\@evil.example/", False),
        ("images.example", "https://images.example.evil.example/", False),
        ("images.example:8443", "https://images.example:8443/i.png", True),
        ("http://images.example", "http://images.example/i.png", True),
        ("gs://bucket", "gs://bucket/i.png", True),
        ("gs://bucket", "gs://other/i.png", False),
    ],
)
def test_an_allowed_host_is_a_scheme_a_name_and_a_port(allowed: str, url: str, passes: bool) -> None:
    hosts = MediaHosts(frozenset({read_host(allowed)}))
    body = asking({"type": "image_url", "image_url": {"url": url}})
    if passes:
        hosts.check(body, "hosted")
    else:
        with pytest.raises(BadRequest):
            hosts.check(body, "hosted")


@pytest.mark.parametrize(
    "model",
    [
        "http://evil.example/x",
        "https:evil.example",
        "HTTP://evil.example",
        "//evil.example/x",
        "evil.example/x",
        "evil.example:8080/x",
        "127.0.0.1:9/x",
        "localhost/x",
        "[::1]/x",
        "\\\\evil.example\\x",
        "../../x",
        "a/../../x",
        "..",
        "a/%2e%2e/x",
        "x?key=1",
        "x#y",
        "x y",
        "x\r\nhost: evil.example",
        "arn:aws:bedrock:evil.example/:1:inference-profile/anthropic.claude-3-5-sonnet-20240620-v1:0",
        "converse/arn:aws:bedrock:evil.example:1:inference-profile/anthropic.claude-3",
    ],
)
@pytest.mark.parametrize("provider", ["huggingface/*", "oobabooga/*", "bedrock/*", "openai/*"])
def test_a_model_that_is_an_address_is_refused(provider: str, model: str, looked_up: list[str]) -> None:
    for target, body in (("/chat/completions", asking()), ("/embeddings", {"input": "x"})):
        with pytest.raises(BadRequest) as caught:
            send(LitellmUpstream("hosted", provider, key="k"), {"model": model} | body, target)
        assert caught.value.param == "model"
    assert looked_up == []


@pytest.mark.parametrize(
    "model",
    [
        "gpt-4o",
        "claude-3-5-sonnet@20240620",
        "us.anthropic.claude-3-5-sonnet-20240620-v1:0",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-3-5-sonnet-20240620-v1:0",
        "@cf/meta/llama-2-7b-chat-int8",
        "meta-llama/Llama-3.1-8B-Instruct",
        "llama3.1:8b",
        "accounts/fireworks/models/llama-v3p1-8b",
        "ft:gpt-4o-mini-2024-07-18:acme::abc123",
    ],
)
def test_names_of_models_pass(server: Recording, model: str) -> None:
    reply = send(
        LitellmUpstream("hosted", "anthropic/*", key="k", base_url=server.url),
        {"model": model, "messages": [{"role": "user", "content": "x"}]},
    )
    assert reply.status == 200
    assert json.loads(server.received[0][2])["model"] == model


def test_any_model_name_passes_where_the_settings_fix_the_model(server: Recording) -> None:
    """A client's name for the model is never sent on, so it may be anything."""
    fixed = LitellmUpstream("hosted", "anthropic/claude-x", key="k", base_url=server.url)
    assert send(fixed, {"model": "http://evil.example/", "messages": [{"role": "user", "content": "x"}]}).status == 200


def test_no_prompt_template_is_fetched_for_a_model(looked_up: list[str]) -> None:
    """litellm would run the one that a repository of that name holds."""
    body = {"model": "evil/repository", "messages": [{"role": "user", "content": "x"}]}
    with pytest.raises(UpstreamUnreachable):
        send(LitellmUpstream("hosted", "replicate/*", key="k"), body)
    assert "api.replicate.com" in looked_up
    assert "huggingface.co" not in looked_up


@pytest.mark.parametrize("server_url", ["http://evil.example/mcp", "litellm_proxy", "litellm_proxy/mcp/x"])
def test_tools_that_are_servers_are_refused(server_url: str, looked_up: list[str]) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}, {"type": "mcp", "server_url": server_url}]
    with pytest.raises(BadRequest) as caught:
        send(LitellmUpstream("hosted", "openai/*", key="k"), asking() | {"tools": tools})
    assert caught.value.param == "tools[1].type"
    assert looked_up == []


@pytest.mark.parametrize("metadata", ["text", [1], 1, True])
def test_metadata_that_is_no_object_is_refused(metadata: Any) -> None:
    with pytest.raises(BadRequest) as caught:
        send(LitellmUpstream("hosted", "openai/*", key="k"), asking() | {"metadata": metadata})
    assert caught.value.param == "metadata"


@pytest.mark.parametrize(
    "metadata",
    [
        {"model_info": "x"},
        {"api_base": "http://evil.example", "langfuse_host": "http://evil.example", "user_api_key": "x"},
        {"model_info": {"id": 1}, "requester_metadata": [1], "hidden_params": "x"},
    ],
)
def test_metadata_steers_nothing_in_litellm(server: Recording, metadata: Any) -> None:
    body = asking() | {"metadata": metadata | {"user_id": "user-1"}}
    assert send(LitellmUpstream("hosted", "anthropic/*", key="k", base_url=server.url), body).status == 200
    ((_, _, asked),) = server.received
    assert json.loads(asked)["metadata"] == {"user_id": "user-1"}


def test_errors_name_no_address(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """The settings allow this host; the address that it resolves to is still not shown."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("10.1.2.3", 443))])
    allowed = MediaHosts(frozenset({read_host("https://internal.example:444")}))
    for provider in ("gemini/*", "bedrock/converse/*", "bedrock/invoke/*"):
        upstream = LitellmUpstream("hosted", provider, key="k", timeout=1.0, media_hosts=allowed)
        part = {"type": "image_url", "image_url": {"url": "https://internal.example:444/i.png"}}
        try:
            reply = send(upstream, {"model": "anthropic.claude-3-sonnet-20240229-v1:0"} | asking(part))
            told = reply.body if isinstance(reply.body, bytes) else b""
        except Exception as error:
            told = str(error).encode()
        assert told
        assert b"10.1.2.3" not in told
    assert "internal.example" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("section", "complaint"),
    [
        ({"dialect": "litellm", "litellm_model": "*"}, "name the provider"),
        ({"dialect": "litellm", "litellm_model": "open*/x"}, "name the provider"),
        ({"base_url": "http://x", "allowed_media_hosts": ["a.example"]}, "cannot be set for dialect openai"),
        ({"dialect": "litellm", "litellm_model": "a/*", "allowed_media_hosts": ["*.example"]}, "allowed_media_hosts"),
        ({"dialect": "litellm", "litellm_model": "a/*", "allowed_media_hosts": ["a.example/x"]}, "allowed_media_hosts"),
    ],
)
def test_settings_that_would_leave_it_to_clients_are_refused(section: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Settings.model_validate({"upstreams": {"hosted": section}})
