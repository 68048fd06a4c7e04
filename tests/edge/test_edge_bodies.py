"""*Response, not streamed* of the wire: the upstream's body with one member more."""

import json
import zlib

import httpx
import pytest

from tests.edge.clients import JSON_HEADERS, fetch, grounding_added, post_chat
from tests.edge.upstream import Reply, Upstream, as_json, body_reply, chat_body, gzip_reply, tool_call_message

CONTEXT = "The sky is blue on a clear day. Grass is green, and it is mown in May."
CHAT = {
    "model": "gpt-4o-mini",
    "messages": [{"role": "system", "content": CONTEXT}, {"role": "user", "content": "Which colour is the sky?"}],
}
ANSWER = "The sky is blue on a clear day. Grass is mown in October."

BODIES = {
    "indented": chat_body(ANSWER),
    "compact": chat_body(ANSWER, shape="vllm"),
    "compact with a line break": chat_body(ANSWER, shape="ollama"),
    "space before the last brace": as_json(json.loads(chat_body(ANSWER)))[:-1] + b"  \n } \r\n",
    "ends in strings that look like braces": as_json(json.loads(chat_body(ANSWER)) | {"x": '}"}', "y": "\\"}),
    "escaped": json.dumps(json.loads(chat_body("Blå 🟦. " + ANSWER))).encode(),
    "lone surrogate": chat_body("Odd \\ud800 text. " + ANSWER).replace(b"\\\\ud800", b"\\ud800"),
    "numbers": chat_body(ANSWER).replace(b'"created":', b'"big":123456789012345678901,"f":1.0,"created":'),
    "two choices": chat_body(ANSWER, "Grass is green."),
    "no choices": chat_body(),
    "tool call": chat_body("", message=tool_call_message(), finish_reason="tool_calls"),
    "empty object": b"{}",
    "not a completion": b'{"object": "something.else", "choices": 3}',
    "2 MB": chat_body("The sky is blue. " * 120_000),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_one_member_is_added_and_no_other_byte_changes(upstream: Upstream, proxy, name: str) -> None:
    upstream.reply = body_reply(BODIES[name])
    answer = post_chat(proxy.port, CHAT)
    grounding = grounding_added(BODIES[name], answer.body)
    assert answer.status == 200
    assert answer.ended
    assert answer.header("content-type") == "application/json"
    assert grounding["version"] == 1


NOT_JSON_OBJECTS = {
    "malformed": b'{"id": "chatcmpl-1", "choices": [{"ind',
    "a list": b"[1, 2]",
    "a word": b'"hello"',
    "nothing": b"",
    "trailing text": chat_body(ANSWER) + b"oops",
    "not utf-8": b'{"choices": "\xff\xfe"}',
}


@pytest.mark.parametrize("name", NOT_JSON_OBJECTS)
def test_a_body_that_is_no_json_object_passes_untouched(upstream: Upstream, proxy, name: str) -> None:
    upstream.reply = body_reply(NOT_JSON_OBJECTS[name])
    answer = post_chat(proxy.port, CHAT)
    assert (answer.status, answer.body, answer.ended) == (200, NOT_JSON_OBJECTS[name], True)


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429, 500, 503])
def test_an_error_body_passes_untouched(upstream: Upstream, proxy, status: int) -> None:
    body = b'{\n  "error": {"message": "No \\u00e9", "type": "x", "param": null, "code": "c"} }\n'
    upstream.reply = body_reply(body, status=status, headers=(("retry-after", "3"), ("x-request-id", "r")))
    answer = post_chat(proxy.port, CHAT)
    assert (answer.status, answer.body, answer.header("content-type")) == (status, body, "application/json")
    assert (answer.header("retry-after"), answer.header("x-request-id")) == ("3", "r")


def test_the_upstreams_headers_arrive_and_its_hop_headers_do_not(upstream: Upstream, proxy) -> None:
    upstream.reply = body_reply(
        chat_body(ANSWER),
        headers=(
            ("x-request-id", "req_1"),
            ("openai-version", "2020-10-01"),
            ("x-ratelimit-reset-tokens", "6ms"),
            ("x-odd", "1"),
            ("x-odd", "2"),
            ("keep-alive", "timeout=5"),
            ("set-cookie", "a=b"),
            ("x-grounding-id", "of another proxy"),
        ),
    )
    answer = post_chat(proxy.port, CHAT)
    assert answer.header("x-request-id") == "req_1"
    assert answer.header("openai-version") == "2020-10-01"
    assert answer.header("x-ratelimit-reset-tokens") == "6ms"
    assert [value for name, value in answer.headers if name == "x-odd"] == ["1", "2"]
    assert answer.header("keep-alive") is None
    assert answer.header("set-cookie") is None
    assert [value for name, value in answer.headers if name == "x-grounding-id"] == [answer.json()["grounding"]["id"]]


def test_the_headers_repeat_the_values_of_the_report(upstream: Upstream, proxy) -> None:
    upstream.reply = body_reply(chat_body(ANSWER))
    answer = post_chat(proxy.port, CHAT)
    grounding = answer.json()["grounding"]
    assert answer.header("x-grounding-id") == grounding["id"]
    assert answer.header("x-grounding-status") == grounding["status"] == "complete"
    assert answer.header("x-grounding-verdict") == grounding["verdict"] == "partially_grounded"
    assert float(answer.header("x-grounding-score") or "nan") == pytest.approx(grounding["score"])
    assert (answer.header("x-grounding-flags") or "").split(",") == grounding["flags"]


def test_a_score_that_is_not_there_is_not_in_the_headers(upstream: Upstream, proxy) -> None:
    upstream.reply = body_reply(chat_body("Which day do you mean?"))
    answer = post_chat(proxy.port, CHAT)
    assert answer.json()["grounding"]["score"] is None
    assert not answer.header("x-grounding-score")


def test_a_summary_has_no_claims(upstream: Upstream, proxy) -> None:
    upstream.reply = body_reply(chat_body(ANSWER))
    full = post_chat(proxy.port, CHAT).json()["grounding"]
    summary = post_chat(proxy.port, CHAT | {"grounding": {"detail": "summary"}}).json()["grounding"]
    assert all("claims" not in choice for choice in summary.get("choices", ()))
    for key in ("verdict", "score", "flags", "coverage", "status"):
        assert summary[key] == full[key]


def test_detail_none_leaves_the_body_alone_and_keeps_the_report(upstream: Upstream, proxy) -> None:
    upstream.reply = body_reply(chat_body(ANSWER))
    answer = post_chat(proxy.port, CHAT | {"grounding": {"detail": "none"}})
    assert answer.body == chat_body(ANSWER)
    assert answer.header("x-grounding-verdict") == "partially_grounded"
    stored = proxy.report(answer.header("x-grounding-id"))
    assert (stored["verdict"], len(stored["choices"][0]["claims"])) == ("partially_grounded", 2)


@pytest.mark.parametrize("by", ["field", "header", "config"])
def test_mode_off_changes_no_byte(upstream: Upstream, proxy, start_proxy, by: str) -> None:
    upstream.reply = body_reply(chat_body(ANSWER))
    if by == "config":
        proxy = start_proxy(grounding={"mode": "off"})
    request = CHAT | ({"grounding": {"mode": "off"}} if by == "field" else {})
    answer = post_chat(proxy.port, request, *([("x-grounding-mode", "off")] if by == "header" else []))
    assert (answer.status, answer.body) == (200, chat_body(ANSWER))
    assert upstream.last.json() == CHAT


def test_mode_off_keeps_compressed_bytes(upstream: Upstream, proxy) -> None:
    reply = gzip_reply(body_reply(chat_body(ANSWER)))
    upstream.reply = reply
    answer = post_chat(proxy.port, CHAT | {"grounding": {"mode": "off"}}, ("accept-encoding", "gzip"))
    assert answer.header("content-encoding") == "gzip"
    assert answer.body == reply.body[0]


@pytest.mark.parametrize("by", ["field", "header", "config"])
def test_async_answers_at_once_and_keeps_the_report(upstream: Upstream, proxy, start_proxy, by: str) -> None:
    upstream.reply = body_reply(chat_body(ANSWER))
    if by == "config":
        proxy = start_proxy(grounding={"mode": "async"})
    request = CHAT | ({"grounding": {"mode": "async"}} if by == "field" else {})
    answer = post_chat(proxy.port, request, *([("x-grounding-mode", "async")] if by == "header" else []))
    grounding = grounding_added(chat_body(ANSWER), answer.body)
    assert (grounding["status"], answer.header("x-grounding-status")) == ("pending", "pending")
    assert grounding["id"] == answer.header("x-grounding-id")
    report = proxy.report(grounding["id"])
    assert (report["id"], report["status"], report["verdict"]) == (grounding["id"], "complete", "partially_grounded")


@pytest.mark.parametrize("detail", ["full", "summary", "none"])
def test_async_goes_with_every_detail(upstream: Upstream, proxy, detail: str) -> None:
    upstream.reply = body_reply(chat_body(ANSWER))
    answer = post_chat(proxy.port, CHAT | {"grounding": {"mode": "async", "detail": detail}})
    assert (answer.status, answer.header("x-grounding-status")) == (200, "pending")
    assert (answer.body == chat_body(ANSWER)) == (detail == "none")
    assert proxy.report(answer.header("x-grounding-id"))["choices"][0]["claims"]


def test_async_and_sync_come_to_the_same(upstream: Upstream, proxy) -> None:
    upstream.reply = body_reply(chat_body(ANSWER))
    now = post_chat(proxy.port, CHAT).json()["grounding"]
    later = proxy.report(post_chat(proxy.port, CHAT, ("x-grounding-mode", "async")).header("x-grounding-id"))
    changing = {"id", "timing_ms", "cache"}
    assert {k: v for k, v in now.items() if k not in changing} == {k: v for k, v in later.items() if k not in changing}


def test_the_other_header_twin(upstream: Upstream, proxy) -> None:
    upstream.reply = body_reply(chat_body(ANSWER))
    answer = post_chat(proxy.port, CHAT, ("x-grounding-detail", "none"))
    assert answer.body == chat_body(ANSWER)
    assert answer.header("x-grounding-verdict") == "partially_grounded"


def test_the_body_wins_over_the_header(upstream: Upstream, proxy) -> None:
    upstream.reply = body_reply(chat_body(ANSWER))
    answer = post_chat(proxy.port, CHAT | {"grounding": {"mode": "sync"}}, ("x-grounding-mode", "off"))
    assert answer.json()["grounding"]["status"] == "complete"


def test_the_stored_report_is_the_one_sent(upstream: Upstream, proxy) -> None:
    upstream.reply = body_reply(chat_body(ANSWER))
    grounding = post_chat(proxy.port, CHAT).json()["grounding"]
    assert proxy.report(grounding["id"]) == grounding


def test_an_unknown_report_is_not_found(proxy) -> None:
    response = httpx.get(f"{proxy.base_url}/grounding/no-such-report")
    assert response.status_code == 404
    assert set(response.json()["error"]) >= {"message", "type", "param", "code"}


@pytest.mark.parametrize("accept", ["gzip", None], ids=["asked for", "not asked for"])
def test_a_compressed_body_is_annotated(upstream: Upstream, proxy, accept: str | None) -> None:
    upstream.reply = gzip_reply(body_reply(chat_body(ANSWER)))
    answer = post_chat(proxy.port, CHAT, *([("accept-encoding", accept)] if accept else []))
    packed = answer.header("content-encoding") == "gzip"
    assert answer.ended
    assert packed or answer.header("content-encoding") is None
    body = zlib.decompress(answer.body, wbits=31) if packed else answer.body
    assert grounding_added(chat_body(ANSWER), body)["status"] == "complete"


@pytest.mark.parametrize("encoding", ["br", "x-unknown"])
def test_a_body_in_an_unknown_encoding_passes_untouched(upstream: Upstream, proxy, encoding: str) -> None:
    opaque = b"\x8b\x02\x80opaque\x03"
    upstream.reply = body_reply(opaque, headers=(("content-encoding", encoding),))
    answer = post_chat(proxy.port, CHAT, ("accept-encoding", encoding))
    assert (answer.status, answer.body, answer.header("content-encoding")) == (200, opaque, encoding)


def test_a_broken_gzip_body_does_not_hang(upstream: Upstream, proxy) -> None:
    reply = gzip_reply(body_reply(chat_body(ANSWER)))
    upstream.reply = body_reply(reply.body[0][:40], headers=(("content-encoding", "gzip"),))
    answer = post_chat(proxy.port, CHAT, ("accept-encoding", "gzip"))
    assert answer.status in (200, 502)
    assert b'"choices"' not in answer.body


def test_a_body_without_length_is_annotated(upstream: Upstream, proxy) -> None:
    body = chat_body(ANSWER)
    for framing in ("chunked", "close"):
        upstream.reply = Reply((body[:100], body[100:]), framing=framing)
        assert grounding_added(body, post_chat(proxy.port, CHAT).body)["verdict"] == "partially_grounded"


@pytest.mark.parametrize("target", ["/v1/embeddings", "/v1/models/llama3.2", "/v1/other"])
def test_a_body_without_an_answer_is_byte_equal(upstream: Upstream, proxy, target: str) -> None:
    method = "GET" if "models" in target else "POST"
    body = b"" if method == "GET" else json.dumps({"model": "m", "input": "x"}).encode()
    through = fetch(proxy.port, method, target, JSON_HEADERS, body)
    direct = fetch(upstream.port, method, target, JSON_HEADERS, body)
    if target == "/v1/other":  # an echo, which also shows the host
        assert through.json()["body"] == direct.json()["body"]
    else:
        assert through.body == direct.body
