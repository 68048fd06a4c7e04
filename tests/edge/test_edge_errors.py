"""Errors of the proxy have OpenAI's format, and the SDK raises its usual exceptions."""

import json

import httpx
import openai
import pytest

from tests.edge.clients import JSON_HEADERS, RawClient, data_of, events_of, fetch, post_chat, sdk
from tests.edge.upstream import Reply, Stall, Upstream, chat_body, chat_events, stream_reply
from tests.ports import free_port

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def error_of(answer: RawClient) -> dict:
    assert (answer.header("content-type") or "").startswith("application/json")
    error = answer.json()["error"]
    assert set(error) >= {"message", "type", "param", "code"}
    assert error["message"]
    assert error["type"]
    return error


UNREADABLE = {
    "empty": b"",
    "open": b"{",
    "comma": b'{"model": "m", }',
    "not utf-8": b"\xff\xfe",
    "list": b"[]",
    "string": b'"hi"',
    "null": b"null",
    "very deep": b"[" * 100_000,
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_body_that_is_no_json_object_gets_the_upstreams_own_answer(upstream: Upstream, proxy, name: str) -> None:
    upstream.reply = Reply((b'{"error":{"message":"No."}}',), 400).with_headers(("x-request-id", "req_7"))
    answer = post_chat(proxy.port, UNREADABLE[name])
    assert (answer.status, answer.body) == (400, b'{"error":{"message":"No."}}')
    assert (answer.header("x-request-id"), upstream.last.body) == ("req_7", UNREADABLE[name])
    report = proxy.report(answer.header("x-grounding-id") or "")
    assert (answer.header("x-grounding-status"), report["status"], report["verdict"]) == (
        "failed",
        "failed",
        "not_checked",
    )
    assert "JSON" in report["warnings"][0]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/messages", (), "failed"),
        ("/v1/responses", (), "failed"),
        ("/v1/chat/completions", (("x-grounding-mode", "off"),), "skipped"),
        ("/v1/embeddings", (), None),
        ("/v1/messages/count_tokens", (), None),
    ],
)
def test_an_unreadable_body_reaches_the_upstream_on_every_path(
    upstream: Upstream, proxy, path: str, headers: tuple, status: str | None
) -> None:
    upstream.reply = Reply((b"No.",), 400)
    answer = fetch(proxy.port, "POST", path, (*JSON_HEADERS, *headers), b"[1]")
    assert (answer.status, answer.body, answer.header("x-grounding-status")) == (400, b"No.", status)
    assert (upstream.last.path, upstream.last.body) == (path, b"[1]")


@pytest.mark.parametrize(
    "model", [{}, {"model": None}, {"model": 7}, {"model": ""}], ids=["no", "null", "number", "empty"]
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings"])
def test_a_request_without_a_model_goes_to_the_default_upstream(
    upstream: Upstream, second_upstream: Upstream, start_proxy, path: str, model: dict
) -> None:
    proxy = start_proxy(upstreams={"a": {"base_url": upstream.base_url}, "b": {"base_url": second_upstream.base_url}})
    upstream.reply = Reply((b'{"choices":[{"message":{"content":"Blue."}}]}',))
    body = json.dumps({"messages": CHAT["messages"], "input": "x"} | model).encode()
    answer = fetch(proxy.port, "POST", path, JSON_HEADERS, body)
    assert (answer.status, upstream.last.body, second_upstream.requests) == (200, body, [])
    assert ("grounding" in answer.json()) == (path == "/v1/chat/completions")


WRONG_GROUNDING = {
    "grounding": 7,
    "grounding.modee": {"modee": "off"},
    "grounding.mode": {"mode": "sometimes"},
    "grounding.detail": {"detail": True},
    "grounding.sources": {"sources": 5},
    "grounding.sources.0.text": {"sources": [{"id": "a"}]},
    "grounding.sources.1.txt": {"sources": [{"text": "a"}, {"text": "b", "txt": "c"}]},
    "grounding.verifiers": {"verifiers": "quote"},
    "grounding.evidence_fields": {"evidence_fields": {"a": 1}},
    "grounding.subject": {"subject": ["a"]},
    "grounding.check_tool_calls": {"check_tool_calls": "perhaps"},
}


@pytest.mark.parametrize("param", WRONG_GROUNDING)
def test_a_wrong_grounding_field_is_named(upstream: Upstream, client: openai.OpenAI, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**CHAT, extra_body={"grounding": WRONG_GROUNDING[param]})
    assert (caught.value.param or "").startswith(param)
    assert param.rpartition(".")[2] in caught.value.message
    assert not upstream.requests


def test_a_wrong_header_twin_is_named(upstream: Upstream, proxy) -> None:
    answer = post_chat(proxy.port, CHAT, ("x-grounding-mode", "sometimes"))
    assert answer.status == 400
    assert error_of(answer)["param"] == "x-grounding-mode"
    assert not upstream.requests


def test_a_verifier_that_is_not_there_is_named(upstream: Upstream, proxy) -> None:
    answer = post_chat(proxy.port, CHAT | {"grounding": {"verifiers": ["quote", "crystal_ball"]}})
    assert answer.status == 400
    assert error_of(answer)["param"].startswith("grounding.verifiers")


def test_an_unknown_model_is_not_found(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(upstreams={"up": {"base_url": upstream.base_url, "models": ["gpt-*"]}})
    with sdk(proxy.base_url) as client, pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(**(CHAT | {"model": "llama-9"}))
    assert (caught.value.code, caught.value.type) == ("model_not_found", "invalid_request_error")
    assert "llama-9" in caught.value.message
    assert not upstream.requests


@pytest.fixture
def nobody() -> str:
    """Return an address where nothing listens."""
    return f"http://127.0.0.1:{free_port()}/v1"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_upstream_that_is_not_there_is_a_server_error(start_proxy, nobody: str, streamed: bool) -> None:
    proxy = start_proxy(upstreams={"up": {"base_url": nobody}})
    with sdk(proxy.base_url) as client, pytest.raises(openai.InternalServerError) as caught:
        client.chat.completions.create(**CHAT, stream=streamed)
    assert caught.value.status_code in (502, 503)
    assert nobody.split("//")[1].split("/")[0] not in caught.value.message, "an address is the operator's business"


def test_other_paths_fail_the_same_way(start_proxy, nobody: str) -> None:
    proxy = start_proxy(upstreams={"up": {"base_url": nobody}})
    for method, target in (("GET", "/v1/models/m"), ("POST", "/v1/other"), ("POST", "/v1/embeddings")):
        answer = fetch(
            proxy.port, method, target, JSON_HEADERS, b'{"model":"m","input":"x"}' if method == "POST" else b""
        )
        assert answer.status in (502, 503)
        error_of(answer)


@pytest.mark.parametrize(
    "reply",
    [Reply((b"{}",), before=(Stall(),)), Reply((chat_body("Blue.")[:50], Stall()), framing="chunked")],
    ids=["before the head", "in the body"],
)
def test_an_upstream_that_stalls_is_a_time_out(upstream: Upstream, start_proxy, reply: Reply) -> None:
    proxy = start_proxy(upstreams={"up": {"base_url": upstream.base_url, "timeout": "500ms"}})
    upstream.reply = reply
    answer = post_chat(proxy.port, CHAT)
    assert answer.status == 504
    error_of(answer)
    assert upstream.exchanges[0].left.wait(60)


def test_a_stream_that_stalls_ends_as_dead(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(upstreams={"up": {"base_url": upstream.base_url, "timeout": "500ms"}})
    events = chat_events("The sky is blue.")
    upstream.reply = stream_reply([*events[:3], Stall()])
    messages = [{"role": "system", "content": "The sky is blue on a clear day."}]
    answer = post_chat(proxy.port, CHAT | {"messages": messages, "stream": True})
    assert answer.body.startswith(b"".join(events[:3]))
    assert not answer.ended
    assert b"[DONE]" not in answer.body
    assert "error" in json.loads(data_of(events_of(answer.body)[-1]))
    assert proxy.report(answer.header("x-grounding-id"))["status"] == "partial"


@pytest.mark.parametrize("target", ["/v1/chat/completions", "/v1/other"])
@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "in chunks"])
def test_a_body_over_the_limit_is_refused(upstream: Upstream, start_proxy, chunked: bool, target: str) -> None:
    proxy = start_proxy(server={"max_body": "64KiB"})
    body = json.dumps(CHAT | {"user": "x" * 100_000}).encode()
    with RawClient(proxy.port) as client:
        if chunked:
            client.write(f"POST {target} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n".encode())
            client.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        else:
            client.send("POST", target, JSON_HEADERS, body)
        client.read_head()
        client.read_to_end()
    assert client.status == 413
    error_of(client)
    assert not any(len(request.body) > 64 * 1024 for request in upstream.requests)


def test_a_body_under_the_limit_is_not_refused(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(server={"max_body": "64KiB"})
    assert post_chat(proxy.port, CHAT | {"user": "x" * 60_000}).status == 200


@pytest.mark.parametrize(
    ("method", "target"),
    [("POST", "/healthz"), ("DELETE", "/v1/grounding/x")],
)
def test_a_wrong_method_on_a_path_of_ours_is_not_allowed(upstream: Upstream, proxy, method: str, target: str) -> None:
    answer = fetch(proxy.port, method, target, JSON_HEADERS)
    assert answer.status == 405
    error_of(answer)
    assert not upstream.requests


def test_another_method_on_an_upstream_path_is_passed_on(upstream: Upstream, proxy) -> None:
    """OpenAI lists stored completions at GET /v1/chat/completions: the proxy must not refuse it."""
    assert fetch(proxy.port, "GET", "/v1/chat/completions?limit=2").status == 200
    assert [(seen.method, seen.target) for seen in upstream.requests] == [("GET", "/v1/chat/completions?limit=2")]


@pytest.mark.parametrize("target", ["/nowhere", "/v2/chat/completions", "/v1x"])
def test_an_unknown_path_is_not_found(upstream: Upstream, proxy, target: str) -> None:
    answer = fetch(proxy.port, "GET", target)
    assert answer.status == 404
    error_of(answer)
    assert not upstream.requests


def test_health_calls_no_model(upstream: Upstream, proxy) -> None:
    assert httpx.get(f"{proxy.url}/healthz").status_code == 200
    assert httpx.get(f"{proxy.url}/readyz").status_code == 200
    assert not upstream.requests


def test_the_length_of_what_is_not_modified_is_not_waited_for(upstream: Upstream, proxy) -> None:
    upstream.reply = Reply((), 304, (("etag", '"1"'), ("content-length", "1234")), "close")
    with RawClient(proxy.port) as client:
        for _ in range(2):  # on one connection
            client.send("GET", "/v1/files/f", JSON_HEADERS)
            client.read_head()
            assert (client.status, client.header("etag")) == (304, '"1"')
