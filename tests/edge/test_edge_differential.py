"""Send the same sixty requests to the model server and through the proxy; only documented differences are allowed.

The differences are documented in docs/transparency.md; this test reads its table of added headers.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.edge.clients import RawClient, end_to_end, events_of, fetch, grounding_added
from tests.edge.upstream import (
    DONE,
    Reply,
    Upstream,
    as_event,
    as_json,
    body_reply,
    byte_by_byte,
    chat_body,
    chat_events,
    completion_reply,
    error_reply,
    gzip_reply,
    stream_reply,
    tool_call_events,
    tool_call_message,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "transparency.md"
ADDED = frozenset(re.findall(r"^\| `([a-z-]+)` \|", DOCUMENT.read_text(), re.MULTILINE))
FRAMING = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "date"})
DROPPED = frozenset({"set-cookie", "via"})

CONTEXT = "The sky is blue on a clear day. Grass is green, and it is mown in May."
ANSWER = "The sky is blue on a clear day. Grass is mown in October."
JSON = ("content-type", "application/json")
KEY = ("authorization", "Bearer sk-test")
CHAT: dict[str, Any] = {
    "model": "gpt-4o-mini",
    "messages": [{"role": "system", "content": CONTEXT}, {"role": "user", "content": "Which colour is the sky?"}],
}


@dataclass(frozen=True)
class Case:
    """A request, and the model server's answer to it."""

    name: str
    target: str
    reply: Reply
    body: bytes = b""
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = (JSON, KEY)
    is_verified: bool = False


def chat(name: str, reply: Reply, *headers: tuple[str, str], is_verified: bool = True, **fields: Any) -> Case:
    body = json.dumps(CHAT | fields, ensure_ascii=False).encode()
    return Case(name, "/v1/chat/completions", reply, body, headers=(JSON, KEY, *headers), is_verified=is_verified)


def streamed(name: str, events: Any, **fields: Any) -> Case:
    return chat(name, stream_reply(events), stream=True, **fields)


def passed(name: str, target: str, reply: Reply, body: bytes = b"", method: str = "POST", *headers: Any) -> Case:
    return Case(name, target, reply, body, method, headers or (JSON, KEY))


WHOLE = body_reply(chat_body(ANSWER))
PARTS = [
    {
        "role": "user",
        "content": [{"type": "text", "text": CONTEXT}, {"type": "image_url", "image_url": {"url": "data:,"}}],
    }
]
TOOLS = [{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}]
MULTIPART = b'--b\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\n\r\n\x00\xff\r\n--b--\r\n'
LIMITS = (("x-ratelimit-limit-requests", "60"), ("x-ratelimit-remaining-requests", "0"), ("retry-after", "2"))
LISTED = body_reply(as_json({"object": "list", "data": [{"id": "gpt-4o-mini", "object": "model"}]}, indent=2))
FORM = ("content-type", "multipart/form-data; boundary=b")


def cases() -> Iterator[Case]:
    yield chat("whole", WHOLE)
    yield chat("compact body", body_reply(chat_body(ANSWER, shape="vllm")))
    yield chat("Ollama's body", body_reply(chat_body(ANSWER, shape="ollama")))
    yield chat("two choices", body_reply(chat_body(ANSWER, "Grass is green.")), n=2)
    yield chat("log probabilities", body_reply(chat_body(ANSWER, logprobs=True)), logprobs=True, top_logprobs=2)
    yield chat("tools", body_reply(chat_body("", message=tool_call_message(), finish_reason="tool_calls")), tools=TOOLS)
    yield chat("refusal", body_reply(chat_body("", message={"content": None, "refusal": "I cannot."})))
    yield chat("cut by length", body_reply(chat_body(ANSWER, finish_reason="length")), max_tokens=5)
    yield chat("unknown fields", WHOLE, made_up={"a": [1, None]}, metadata={"k": "v"})
    yield chat("images and text", WHOLE, messages=PARTS)
    yield chat(
        "a system prompt of emoji",
        body_reply(chat_body("Blå 🟦 är himlen.")),
        messages=[{"role": "system", "content": "Blå 🟦"}],
    )
    yield chat("structured output", body_reply(chat_body('{"sky": "blue"}')), response_format={"type": "json_object"})
    yield chat("reasoning", body_reply(chat_body(ANSWER, message={"reasoning_content": "Let me see."})))
    yield chat(
        "a large body",
        body_reply(chat_body("The sky is blue. " * 6000)),
        messages=[{"role": "user", "content": CONTEXT * 2000}],
    )
    yield chat("compressed", gzip_reply(WHOLE), ("accept-encoding", "gzip"))
    yield chat("without framing", replace(WHOLE, framing="close"))
    yield chat("chunked", replace(WHOLE, framing="chunked", body=tuple(WHOLE.body)))
    yield chat(
        "headers of every kind",
        WHOLE.with_headers(
            ("x-request-id", "req-1"), ("openai-version", "2020-10-01"), ("server", "gunicorn"), ("x-custom", "kept")
        ),
        ("x-custom", "1"),
        ("openai-organization", "org-1"),
        ("user-agent", "curl/8"),
        ("accept-language", "de"),
    )
    yield chat("cookies stay on their leg", WHOLE.with_headers(("set-cookie", "a=1; Path=/")))
    yield streamed("stream", chat_events(ANSWER))
    yield streamed("stream with usage", chat_events(ANSWER, include_usage=True), stream_options={"include_usage": True})
    yield streamed("stream of two", chat_events(ANSWER, "Grass is green."), n=2)
    yield streamed("Ollama's stream", chat_events(ANSWER, shape="ollama"))
    yield streamed(
        "vLLM's stream", chat_events(ANSWER, shape="vllm", include_usage=True), stream_options={"include_usage": True}
    )
    yield streamed("stream of tool calls", tool_call_events(), tools=TOOLS)
    yield streamed("stream in single bytes", byte_by_byte(b"".join(chat_events(ANSWER))))
    yield streamed("stream with comments", [b": ping\n\n", *chat_events(ANSWER)])
    yield streamed("stream with carriage returns", [event.replace(b"\n", b"\r\n") for event in chat_events(ANSWER)])
    yield streamed("stream with ids", [b"id: 7\n" + event for event in chat_events(ANSWER)])
    yield streamed("stream of emoji", byte_by_byte(b"".join(chat_events("Blå 🟦 är himlen."))))
    yield chat(
        "stream, compressed", gzip_reply(stream_reply(chat_events(ANSWER))), ("accept-encoding", "gzip"), stream=True
    )
    yield streamed(
        "stream that tells an error", [as_event({"error": {"message": "overloaded", "type": "server_error"}}), DONE]
    )
    for status, kind in (
        (400, "invalid_request_error"),
        (401, "invalid_request_error"),
        (403, "permission"),
        (404, "not_found"),
        (409, "conflict"),
        (422, "invalid_request_error"),
        (500, "server_error"),
        (503, "overloaded"),
    ):
        yield chat(
            f"error {status}", error_reply(status, "No.", type=kind, code="some_code", param="model"), is_verified=False
        )
    yield chat("error 429", error_reply(429, "Slow down.", type="rate_limit").with_headers(*LIMITS), is_verified=False)
    yield chat(
        "an error page", Reply((b"<html>bad gateway</html>",), 502, (("content-type", "text/html"),)), is_verified=False
    )
    yield chat("no content", Reply((), 204, ()), is_verified=False)
    yield chat(
        "a redirect is not followed", Reply((), 307, (("location", "http://127.0.0.1:1/v1"),)), is_verified=False
    )
    yield Case(
        "completion",
        "/v1/completions",
        completion_reply([ANSWER], stream=False),
        json.dumps({"model": "m", "prompt": CONTEXT}).encode(),
        is_verified=True,
    )
    yield Case(
        "completion stream",
        "/v1/completions",
        completion_reply([ANSWER], stream=True),
        json.dumps({"model": "m", "prompt": CONTEXT, "stream": True}).encode(),
        is_verified=True,
    )
    yield passed(
        "embeddings",
        "/v1/embeddings",
        body_reply(as_json({"object": "list", "data": []}, indent=2)),
        b'{"model": "m", "input": ["a", "b"]}',
    )
    yield passed("models", "/v1/models", LISTED, b"", "GET", KEY)
    yield passed("one model", "/v1/models/gpt-4o-mini", body_reply(as_json({"id": "gpt-4o-mini"})), b"", "GET", KEY)
    yield passed(
        "a model with a slash", "/v1/models/meta-llama%2FLlama-3.1", body_reply(as_json({"id": "x"})), b"", "GET", KEY
    )
    yield passed("delete a model", "/v1/models/ft:gpt", body_reply(b'{"deleted": true}'), b"", "DELETE", KEY)
    yield passed("files", "/v1/files?purpose=batch&limit=2&x=%20%2B", body_reply(b'{"data": []}'), b"", "GET", KEY)
    yield passed("upload", "/v1/files", body_reply(b'{"id": "file-1"}'), MULTIPART, "POST", FORM, KEY)
    yield passed(
        "file content",
        "/v1/files/file-1/content",
        Reply((bytes(range(256)),), 200, (("content-type", "application/octet-stream"),)),
        b"",
        "GET",
        KEY,
    )
    yield passed(
        "speech",
        "/v1/audio/speech",
        Reply((b"\xff\xfb" * 500, b"end"), 200, (("content-type", "audio/mpeg"),), "chunked"),
        b'{"model": "tts-1", "input": "hi"}',
    )
    yield passed(
        "transcription", "/v1/audio/transcriptions", body_reply(b'{"text": "hi"}'), MULTIPART, "POST", FORM, KEY
    )
    yield passed("images", "/v1/images/generations", body_reply(b'{"data": [{"url": "x"}]}'), b'{"prompt": "a cat"}')
    yield passed("batches", "/v1/batches/b-1/cancel", body_reply(b'{"id": "b-1"}'))
    yield passed(
        "a stored completion", "/v1/chat/completions/chatcmpl-1", body_reply(b'{"id": "chatcmpl-1"}'), b"", "GET", KEY
    )
    yield passed(
        "a compressed request",
        "/v1/moderations",
        body_reply(b"{}"),
        gzip.compress(b'{"input": "x"}', mtime=0),
        "POST",
        JSON,
        ("content-encoding", "gzip"),
    )
    yield passed("head", "/v1/files/file-1", Reply((), 200, (("x-size", "9"),)), b"", "HEAD", KEY)
    yield passed("options", "/v1/chat/completions", Reply((), 200, (("allow", "POST"),)), b"", "OPTIONS", KEY)
    yield passed(
        "a path that nobody knows",
        "/v1/x/%7Ey/~z?q=a;b&&c",
        Reply((b"gone",), 410, (("content-type", "text/plain"),)),
        b"",
        "GET",
        KEY,
    )
    yield passed(
        "an answer with ranges",
        "/v1/files/f/content",
        Reply((b"ab",), 206, (("content-range", "bytes 0-1/9"),)),
        b"",
        "GET",
        KEY,
        ("range", "bytes=0-1"),
    )
    yield passed(
        "unchanged", "/v1/files/f", Reply((), 304, (("etag", '"1"'),)), b"", "GET", KEY, ("if-none-match", '"1"')
    )


CASES = {case.name: case for case in cases()}


def test_there_are_sixty_of_them() -> None:
    assert len(CASES) == len(list(cases())) >= 60
    assert {"x-grounding-id", "x-grounding-verdict"} <= ADDED


@pytest.mark.parametrize("name", CASES)
def test_only_what_is_documented_differs(upstream: Upstream, proxy: Any, name: str) -> None:
    case = CASES[name]
    upstream.reply = case.reply
    direct, through = (ask(port, case) for port in (upstream.port, proxy.port))
    assert through.status == direct.status
    assert through.ended
    is_annotated = case.is_verified and through.body != direct.body
    check_headers(case, direct, through, is_annotated=is_annotated)
    check_body(case, direct, through)
    sent, forwarded = upstream.requests
    assert (forwarded.method, forwarded.target, forwarded.body) == (sent.method, sent.target, sent.body)
    assert end_to_end(forwarded) == end_to_end(sent)


def test_fields_and_headers_for_the_proxy_are_not_forwarded(upstream: Upstream, proxy: Any) -> None:
    """The other documented difference: `grounding` and `documents` are removed, and our headers do not pass."""
    upstream.reply = WHOLE
    body = json.dumps(CHAT).encode()
    ours = body[:-1] + b', "grounding": {"detail": "summary"}, "documents": ["The sky is blue."]}'
    fetch(upstream.port, "POST", "/v1/chat/completions", (JSON, KEY), body)
    fetch(proxy.port, "POST", "/v1/chat/completions", (JSON, KEY, ("x-grounding-mode", "sync")), ours)
    sent, forwarded = upstream.requests
    assert forwarded.json() == sent.json()
    assert end_to_end(forwarded) == end_to_end(sent)


def ask(port: int, case: Case) -> RawClient:
    if case.method != "HEAD":
        return fetch(port, case.method, case.target, case.headers, case.body)
    with RawClient(port) as client:
        client.send(case.method, case.target, case.headers)
        client.read_head()
        client.ended = True
    return client


def check_headers(case: Case, direct: RawClient, through: RawClient, *, is_annotated: bool) -> None:
    aside = FRAMING | (frozenset({"content-encoding"}) if is_annotated else frozenset())
    expected = [(name, value) for name, value in direct.headers if name not in aside | DROPPED]
    found = [(name, value) for name, value in through.headers if name not in aside]
    added = [pair for pair in found if pair not in expected]
    assert [pair for pair in found if pair not in added] == expected
    assert {name for name, _ in added} <= ADDED
    assert case.is_verified or not added


def check_body(case: Case, direct: RawClient, through: RawClient) -> None:
    whole = plain(direct)
    if not case.is_verified or through.body in (direct.body, whole):
        assert through.body in (direct.body, whole)
        assert not case.is_verified or through.header("x-grounding-id")
        return
    if not (direct.header("content-type") or "").startswith("text/event-stream"):
        assert grounding_added(whole, through.body)["version"] == 1
        return
    before, after = events_of(whole), events_of(through.body)
    if len(after) > len(before):  # no event could carry it
        own = after.pop(-2)
        assert json.loads(own.removeprefix(b"data: "))["choices"] == []
        assert after == before
        return
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert len(changed) == 1
    assert grounding_added(*changed[0])["version"] == 1


def plain(client: RawClient) -> bytes:
    is_packed = client.header("content-encoding") == "gzip" and client.body
    return gzip.decompress(client.body) if is_packed else client.body
