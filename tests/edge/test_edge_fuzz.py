"""Issue 6: whatever is sent, by clients or by model servers, the proxy answers, and never fails itself."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from clients import JSON_HEADERS, RawClient, fetch, post_chat
from conftest import Proxy, serving
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case
from upstream import Reply, Upstream, body_reply, chat_events

from proxy.server.openapi import OPERATIONS, Operation

KEY = secrets.token_urlsafe(24)
ON = {"enabled": True}
VERIFIED = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/api/chat", "/api/generate")

often = settings(max_examples=40, suppress_health_check=list(HealthCheck))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "model messages prompt input stream n content role text type tools system stop options grounding documents".split()
)
bodies = st.dictionaries(
    st.sampled_from(FIELDS),
    values | st.lists(st.dictionaries(st.sampled_from(FIELDS), values, max_size=4), max_size=3),
    max_size=6,
)


def is_told(client: RawClient) -> None:
    """An error of ours is told as a JSON object, and never as a failure of the proxy."""
    assert client.ended
    assert client.status < 500 or client.status in (502, 504), client.body
    assert client.status < 400 or isinstance(client.json()["error"], (dict, str))


# --- what clients send ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", VERIFIED)
@often
@given(raw=st.binary(max_size=200) | bodies.map(lambda body: json.dumps(body).encode()))
def test_any_body_is_answered(upstream: Upstream, proxy: Proxy, path: str, raw: bytes) -> None:
    upstream.reply = body_reply(b'{"choices": []}')
    is_told(fetch(proxy.port, "POST", path, JSON_HEADERS, raw))


names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20).filter(
    lambda name: name not in ("host", "te", "expect")
)
printable = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=40)


@often
@given(
    headers=st.lists(
        st.tuples(
            names | st.sampled_from(("x-grounding-mode", "authorization", "traceparent", "connection")), printable
        ),
        max_size=5,
    )
)
def test_any_headers_are_answered(upstream: Upstream, proxy: Proxy, headers: list[tuple[str, str]]) -> None:
    upstream.reply = body_reply(b'{"choices": []}')
    given_ = [pair for pair in headers if pair[0] not in ("content-length", "transfer-encoding", "upgrade")]
    is_told(post_chat(proxy.port, {"model": "m", "messages": []}, *given_))


@often
@given(head=st.binary(max_size=80).filter(lambda head: b"\n" not in head))
def test_what_is_no_http_is_refused_and_nobody_waits(proxy: Proxy, head: bytes) -> None:
    with RawClient(proxy.port) as client:
        client.write(head + b"\r\n\r\n")
        client.read_head()
        client.read_to_end()
    assert 400 <= client.status < 500


# --- what model servers send ------------------------------------------------------------------------------------------

pieces = st.binary(max_size=60) | st.sampled_from(
    [*chat_events("Blue."), b"data: [DONE]\n\n", b"\r", b"\n\n", b"data:"]
)


@often
@given(chunks=st.lists(pieces.filter(bool), max_size=8), path=st.sampled_from(VERIFIED))
def test_any_stream_arrives_with_every_byte(upstream: Upstream, proxy: Proxy, chunks: list[bytes], path: str) -> None:
    kind = "application/x-ndjson" if path.startswith("/api/") else "text/event-stream"
    upstream.reply = Reply(tuple(chunks), headers=(("content-type", kind),), framing="chunked")
    asked = {"model": "m", "messages": [], "prompt": "", "input": "", "stream": True, "max_tokens": 9}
    answer = fetch(proxy.port, "POST", path, JSON_HEADERS, json.dumps(asked).encode())
    assert (answer.status, answer.ended) == (200, True)
    rest = iter(answer.body)
    assert all(byte in rest for byte in b"".join(chunks)), "bytes were lost or put in another order"


@often
@given(raw=st.binary(max_size=200) | bodies.map(lambda body: json.dumps(body).encode()), path=st.sampled_from(VERIFIED))
def test_any_answer_arrives(upstream: Upstream, proxy: Proxy, raw: bytes, path: str) -> None:
    upstream.reply = body_reply(raw)
    asked = {"model": "m", "messages": [], "prompt": "", "input": "", "stream": False, "max_tokens": 9}
    answer = fetch(proxy.port, "POST", path, JSON_HEADERS, json.dumps(asked).encode())
    assert (answer.status, answer.ended) == (200, True)
    rest = iter(answer.body)
    assert all(byte in rest for byte in raw)


# --- what the OpenAPI document lets one send --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own(_upstream_server: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A proxy with everything of its own switched on, over a store."""
    folder = tmp_path_factory.mktemp("fuzzed")
    config: dict[str, Any] = {
        "upstreams": {"up": {"base_url": _upstream_server.base_url}},
        "store": {"url": f"sqlite:///{folder}/history.db"},
        "hallucination": {**ON, "memory_gate": ON, "trace_auditing": ON},
    }
    with serving(config, folder, {"GROUNDWIRE_ADMIN_KEY": KEY}) as proxy:
        yield proxy


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.method} {each.path}")
def test_our_own_endpoints_answer_as_the_document_says(own: Proxy, operation: Operation) -> None:
    document = schemathesis.openapi.from_url(f"{own.url}/openapi.json")

    @settings(max_examples=15, suppress_health_check=list(HealthCheck))
    @given(case=document[operation.path][operation.method].as_strategy())
    def sent(case: Case) -> None:
        case.call_and_validate(headers={"authorization": f"Bearer {KEY}"})

    sent()
