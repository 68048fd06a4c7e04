"""Fuzz tests: the proxy answers any input from clients or model servers and never fails itself."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from schemathesis import Case
from schemathesis.checks import CheckFunction
from schemathesis.specs.openapi.checks import positive_data_acceptance

from groundwire.http.openapi import OPERATIONS, Operation
from groundwire.upstream.upstream import has_dot_segment
from tests.edge.clients import JSON_HEADERS, RawClient, fetch, post_chat, until
from tests.edge.proxies import Proxy, serving
from tests.edge.upstream import Reply, Upstream, body_reply, chat_events

KEY = secrets.token_urlsafe(24)
ON = {"enabled": True}
VERIFIED = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/api/chat", "/api/generate")

often = settings(max_examples=40, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def own(_upstream_server: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A proxy with all optional features enabled and a store whose tables have been created in the background."""
    folder = tmp_path_factory.mktemp("fuzzed")
    config: dict[str, Any] = {
        "upstreams": {"up": {"base_url": _upstream_server.base_url, "ollama": "yes"}},
        "store": {"url": f"sqlite:///{folder}/history.db"},
        "information_budget": {**ON, "memory_gate": ON, "trace_auditing": ON},
    }
    with serving(config, folder, {"GROUNDWIRE_ADMIN_KEY": KEY}) as proxy:
        admin = (("authorization", f"Bearer {KEY}"),)
        until(lambda: fetch(proxy.port, "GET", "/v1/grounding/none", admin).status != 503, "the store never opened")
        yield proxy


# --- requests of clients ----------------------------------------------------------------------------------------------

FIELDS = "model messages prompt input stream n content role text type tools system stop options grounding".split()
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
inner_objects = st.lists(st.dictionaries(st.sampled_from(FIELDS), values, max_size=4), max_size=3)
objects = st.dictionaries(st.sampled_from(FIELDS), values | inner_objects, max_size=6)
bodies = st.binary(max_size=200) | objects.map(lambda body: json.dumps(body).encode())
names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20) | st.sampled_from(
    ("x-grounding-mode", "authorization", "traceparent", "connection", "accept-encoding", "content-type")
)
framing = ("host", "te", "expect", "content-length", "transfer-encoding", "upgrade")
printable = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=40)
headers = st.lists(st.tuples(names.filter(lambda name: name not in framing), printable), max_size=5)


def is_told(client: RawClient) -> None:
    """Assert that an error is reported in JSON and is no failure of the proxy."""
    assert client.ended
    assert client.status < 500 or client.status in (502, 504), client.body
    assert client.status < 400 or isinstance(client.json()["error"], dict | str)


@pytest.mark.parametrize("path", VERIFIED)
@often
@given(raw=bodies)
def test_any_body_is_answered(upstream: Upstream, own: Proxy, path: str, raw: bytes) -> None:
    upstream.reply = body_reply(b'{"choices": []}')
    is_told(fetch(own.port, "POST", path, JSON_HEADERS, raw))


@often
@given(pairs=headers)
def test_any_headers_are_answered(upstream: Upstream, own: Proxy, pairs: list[tuple[str, str]]) -> None:
    upstream.reply = body_reply(b'{"choices": []}')
    is_told(post_chat(own.port, {"model": "m", "messages": []}, *pairs))


@often
@given(head=st.binary(max_size=80).filter(lambda head: b"\n" not in head))
def test_a_request_that_is_not_http_is_refused_at_once(own: Proxy, head: bytes) -> None:
    with RawClient(own.port) as client:
        client.write(b"(" + head + b"\r\n\r\n")
        client.read_head()
        client.read_to_end()
    assert 400 <= client.status < 500
    is_told(client)


# --- answers of model servers -----------------------------------------------------------------------------------------

pieces = st.binary(min_size=1, max_size=60) | st.sampled_from(
    [*chat_events("Blue."), b"data: [DONE]\n\n", b"\r", b"\n\n", b"data:", b'{"done": true}\n']
)
ASKED = {"model": "m", "messages": [], "prompt": "", "input": "", "max_tokens": 9}


def holds(body: bytes, sent: bytes) -> bool:
    """Return whether a body contains all sent bytes in order; others may have been added."""
    rest = iter(body)
    return all(byte in rest for byte in sent)


@pytest.mark.parametrize("path", VERIFIED)
@often
@given(chunks=st.lists(pieces, max_size=8))
def test_any_stream_arrives_with_every_byte(upstream: Upstream, own: Proxy, path: str, chunks: list[bytes]) -> None:
    kind = "application/x-ndjson" if path.startswith("/api/") else "text/event-stream"
    upstream.reply = Reply(tuple(chunks), headers=(("content-type", kind),), framing="chunked")
    answer = fetch(own.port, "POST", path, JSON_HEADERS, json.dumps(ASKED | {"stream": True}).encode())
    assert (answer.status, answer.ended) == (200, True)
    assert holds(answer.body, b"".join(chunks))


@pytest.mark.parametrize("path", VERIFIED)
@often
@given(raw=bodies)
def test_any_answer_arrives_with_every_byte(upstream: Upstream, own: Proxy, path: str, raw: bytes) -> None:
    upstream.reply = body_reply(raw)
    answer = fetch(own.port, "POST", path, JSON_HEADERS, json.dumps(ASKED | {"stream": False}).encode())
    assert (answer.status, answer.ended) == (200, True)
    assert holds(answer.body, raw)


# --- requests that the OpenAPI document allows ------------------------------------------------------------------------

BEYOND_A_SCHEMA: dict[str, list[CheckFunction]] = {
    "/v1/grounding/evidence": [positive_data_acceptance],  # a text must be JSON
    "/v1/grounding/metrics": [positive_data_acceptance],  # one day must be before another
    "/v1/grounding/verify": [positive_data_acceptance],  # samples and retries need a model and messages
}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
def test_endpoints_of_the_proxy_follow_the_openapi_document(own: Proxy, operation: Operation) -> None:
    document = schemathesis.openapi.from_url(f"{own.url}/openapi.json")
    aside = BEYOND_A_SCHEMA.get(operation.path, [])

    @settings(max_examples=15, suppress_health_check=list(HealthCheck))
    @given(case=document[operation.path][operation.method].as_strategy())
    def sent(case: Case) -> None:
        assume(not has_dot_segment(case.formatted_path))  # refused for any path; no schema excludes it
        case.call_and_validate(headers={"authorization": f"Bearer {KEY}"}, excluded_checks=aside)

    sent()
