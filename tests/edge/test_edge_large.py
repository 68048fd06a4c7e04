"""Bodies that are large or hostile: parsed off the event loop, bounded before their values are built, passed unread."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from groundwire.dialects import jsonbytes
from tests.edge.clients import JSON_HEADERS, fetch, post_chat
from tests.edge.proxies import Proxy
from tests.edge.upstream import Reply, Upstream, as_json, body_reply, chat_body

MEMBERS = b'"model":"m","messages":[{"role":"system","content":"Revenue was $4 million."}]'
PADDING = b'"padding":"' + b"Cocoa, coffee, tea. \\u00e9 " * 30_000 + b'"'


@pytest.fixture
def parsing_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads in which large bodies are parsed or edited."""
    names: list[str] = []

    def noting(work: Callable[..., Any]) -> Callable[..., Any]:
        def noted(body: bytes, *args: Any) -> Any:
            if not jsonbytes.is_light(body):
                names.append(threading.current_thread().name)
            return work(body, *args)

        return noted

    for name in ("parse_large", "members"):
        monkeypatch.setattr(jsonbytes, name, noting(getattr(jsonbytes, name)))
    return names


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings", "/v1/responses"])
def test_a_large_body_is_parsed_and_edited_off_the_event_loop(
    upstream: Upstream, start_proxy: Callable[..., Proxy], parsing_threads: list[str], path: str
) -> None:
    proxy = start_proxy(upstreams={"up": {"base_url": upstream.base_url, "aliases": {"m": "other"}}})
    body = b'{"grounding":{"mode":"sync"},' + MEMBERS + b"," + PADDING + b"}"
    upstream.reply = body_reply(chat_body("Revenue was $4 million."))
    answer = fetch(proxy.port, "POST", path, JSON_HEADERS, body)
    sent = b"{" + MEMBERS.replace(b'"m"', b'"other"') + b"," + PADDING + b"}"
    assert (answer.status, upstream.last.body) == (200, sent)
    assert len(parsing_threads) >= 2  # parsed, and edited in one pass
    assert all(name.startswith("groundwire-bodies") for name in parsing_threads)


def test_a_large_answer_is_parsed_and_edited_off_the_event_loop(
    upstream: Upstream, proxy: Proxy, parsing_threads: list[str]
) -> None:
    body = chat_body("Revenue was $4 million.").rstrip()[:-1] + b"," + PADDING + b"}"
    upstream.reply = body_reply(body)
    answer = post_chat(proxy.port, b"{" + MEMBERS + b"}")
    assert answer.body.startswith(body[:-1])
    assert answer.json()["grounding"]["choices"][0]["claims"][0]["label"] == "supported"
    assert parsing_threads
    assert all(name.startswith("groundwire-bodies") for name in parsing_threads)


TOO_MANY_VALUES = {
    "arrays": b'"x":[' + b",".join([b"[]"] * 300_000) + b"]",
    "members": b",".join(b'"k%d":1' % n for n in range(20_000)),
    "deep": b'"x":' + b"[" * 400_000 + b"]" * 400_000,
}


@pytest.mark.parametrize("name", TOO_MANY_VALUES)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/embeddings", "/v1/grounding/verify"])
def test_a_body_of_too_many_values_is_refused(upstream: Upstream, proxy: Proxy, path: str, name: str) -> None:
    body = b"{" + MEMBERS + b"," + TOO_MANY_VALUES[name] + b"}"
    answer = fetch(proxy.port, "POST", path, JSON_HEADERS, body)
    assert (answer.status, upstream.requests) == (413, [])
    assert "too many" in answer.body.decode() or "members" in answer.body.decode()


WRONG = {
    "sources.0": {"sources": [5] * 15_000},
    "sources.1.x0": {"sources": [{"text": "a"}, {"text": "b", **{f"x{n}": 1 for n in range(15_000)}}]},
    "k0": {f"k{n}": 1 for n in range(15_000)},
    "evidence_fields.0": {"evidence_fields": [5] * 15_000},
}


@pytest.mark.parametrize("param", WRONG)
def test_the_first_of_many_errors_is_named(upstream: Upstream, proxy: Proxy, param: str) -> None:
    answer = post_chat(proxy.port, {"model": "m", "messages": [], "grounding": WRONG[param]})
    assert (answer.status, answer.json()["error"]["param"], upstream.requests) == (400, f"grounding.{param}", [])


@pytest.mark.parametrize(
    ("param", "value"),
    [("grounding", {"sources": [{"text": f"Revenue was {n}."} for n in range(15_000)]}), ("documents", ["a"] * 30_000)],
)
def test_evidence_of_too_many_values_is_refused(upstream: Upstream, proxy: Proxy, param: str, value: Any) -> None:
    answer = post_chat(proxy.port, {"model": "m", "messages": [], param: value})
    assert (answer.status, answer.json()["error"]["param"], upstream.requests) == (400, param, [])


def test_token_ids_for_an_embedding_pass_in_any_number(upstream: Upstream, proxy: Proxy) -> None:
    upstream.reply = body_reply(b"{}")
    body = json.dumps({"input": [[1000] * 8_000] * 60, "model": "m"}).encode()
    answer = fetch(proxy.port, "POST", "/v1/embeddings", JSON_HEADERS, body)
    assert (answer.status, upstream.last.body) == (200, body)


UNREADABLE_ANSWERS = {
    "a bomb": (gzip.compress(b'{"x":"' + b"a" * 40_000_000 + b'"}', 1), "gzip", "expands"),
    "another coding": (b'{"a":1}', "br", "content-encoding"),
    "not its coding": (b'{"a":1}', "gzip", "content-encoding"),
    "no JSON": (b"{", "identity", "no JSON object"),
    "too many values": (as_json({"x": [[]] * 300_000}), "identity", "too many"),
}


@pytest.mark.parametrize("name", UNREADABLE_ANSWERS)
def test_an_unreadable_answer_passes_and_its_report_gives_the_reason(
    upstream: Upstream, proxy: Proxy, name: str
) -> None:
    body, coding, reason = UNREADABLE_ANSWERS[name]
    upstream.reply = body_reply(body).with_headers(("content-encoding", coding))
    answer = post_chat(proxy.port, b"{" + MEMBERS + b"}")
    assert (answer.status, answer.body, answer.header("content-encoding")) == (200, body, coding)
    report = proxy.report(answer.header("x-grounding-id") or "")
    assert (answer.header("x-grounding-status"), report["status"]) == ("failed", "failed")
    assert reason in report["warnings"][0]


LONG_ANSWERS = {
    "prose": "Revenue was $4 million." + " " * 2**19 + "Revenue was $9 million.",
    "JSON": '{"quotes": ["Revenue was $4 million."],' + " " * 2**19 + '"text": "Revenue was $9 million."}',
}


@pytest.mark.parametrize("kind", LONG_ANSWERS)
def test_an_answer_that_is_too_long_to_store_is_reported_as_read_in_part(
    upstream: Upstream, proxy: Proxy, kind: str
) -> None:
    body = chat_body(LONG_ANSWERS[kind])
    upstream.reply = body_reply(body)
    schema = {"type": "object", "required": ["text"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    asked = {"response_format": form, "grounding": {"evidence_fields": ["quotes"]}} if kind == "JSON" else {}
    answer = post_chat(proxy.port, json.loads(b"{" + MEMBERS + b"}") | asked)
    assert answer.body.startswith(body.rstrip()[:-1])
    report = answer.json()["grounding"]
    assert (report["status"], "answer_truncated" in report["flags"]) == ("partial", True)
    assert report["coverage"]["answer_examined"] < 1
    assert "evidence_schema_violation" not in report["flags"]
    if kind == "JSON":
        assert any("too long to be validated" in warning for warning in report["warnings"])
        assert any("too long to be searched" in warning for warning in report["warnings"])


def test_a_compressed_stream_that_expands_a_lot_passes_in_pieces(upstream: Upstream, proxy: Proxy) -> None:
    events = b'data: {"choices":[]}\n\n' * 100_000
    packed = gzip.compress(events)
    upstream.reply = Reply((packed,), headers=(("content-type", "text/event-stream"), ("content-encoding", "gzip")))
    answer = post_chat(proxy.port, b'{"stream":true,' + MEMBERS + b"}")
    assert answer.body.count(b'data: {"choices":[]}\n\n') == 100_000
    assert answer.header("content-encoding") is None
