"""Requests reach the upstream as the client sent them, minus `grounding`."""

import json

import pytest

from tests.edge.clients import JSON_HEADERS, RawClient, end_to_end, fetch, post_chat
from tests.edge.upstream import Upstream, body_reply, chat_body

QUESTION = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Which colour?"}]}

ODD_BODIES = {
    "spaces": b'{ "model" : "m" ,\n\t"messages":[ ]  }\n',
    "numbers": b'{"model":"m","messages":[],"seed":123456789012345678901234567890,"temperature":1.0,"p":1e-7}',
    "escapes": b'{"model":"m","messages":[{"role":"user","content":"\\u00e9\\/\\ud83d\\ude00"}]}',
    "lone surrogate": b'{"model":"m","messages":[{"role":"user","content":"\\ud800"}]}',
    "nan": b'{"model":"m","messages":[],"temperature":NaN}',
    "twice the same key": b'{"model":"m","messages":[],"user":"a","user":"b"}',
    "grounding elsewhere": b'{"model":"m","messages":[],"user":"\\"grounding\\": 1","x":{"grounding":1}}',
}


@pytest.mark.parametrize("name", ODD_BODIES)
def test_a_body_without_grounding_arrives_byte_for_byte(upstream: Upstream, proxy, name: str) -> None:
    answer = post_chat(proxy.port, ODD_BODIES[name])
    assert (answer.status, upstream.last.body) == (200, ODD_BODIES[name])
    assert upstream.last.header("content-length") == str(len(ODD_BODIES[name]))


def exactly(body: bytes) -> object:
    """Parse JSON with its numbers as they were written and its keys in order."""
    return json.loads(body, parse_int=str, parse_float=str, object_pairs_hook=list)


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [
        (
            b'{"grounding":{"mode":"sync"},"model":"m","messages":[],"temperature":1.0,"seed":12345678901234567890123}',
            b'{"model":"m","messages":[],"temperature":1.0,"seed":12345678901234567890123}',
        ),
        (
            b'{"model":"m","grounding":{"sources":[{"text":"a } , \\" b"}]},"messages":[],"user":"\\ud83d\\ude00"}',
            b'{"model":"m","messages":[],"user":"\\ud83d\\ude00"}',
        ),
        (b'{"model":"m","messages":[] , "grounding" : {} }', b'{"model":"m","messages":[]}'),
        (
            b'{"model":"m","messages":[],"x":{"grounding":{"a":1}},"grounding":{"detail":"none"}}',
            b'{"model":"m","messages":[],"x":{"grounding":{"a":1}}}',
        ),
        (b'{"model":"m","ground\\u0069ng":{},"messages":[]}', b'{"model":"m","messages":[]}'),
        (b'{"model":"m","grounding":{},"messages":[],"grounding":{}}', b'{"model":"m","messages":[]}'),
    ],
    ids=["first", "middle", "last", "nested stays", "escaped", "twice"],
)
def test_only_the_grounding_field_is_taken_out(upstream: Upstream, proxy, sent: bytes, arrives: bytes) -> None:
    assert post_chat(proxy.port, sent).status == 200
    assert exactly(upstream.last.body) == exactly(arrives)
    assert upstream.last.header("content-length") == str(len(upstream.last.body))


def test_a_short_list_of_headers_arrives_with_nothing_added(upstream: Upstream, proxy) -> None:
    """HTTP clients add headers by themselves: accept, accept-encoding, user-agent."""
    headers = (("content-type", "application/json"), ("authorization", "Bearer sk-mine"))
    assert fetch(proxy.port, "POST", "/v1/chat/completions", headers, json.dumps(QUESTION).encode()).status == 200
    assert end_to_end(upstream.last) == sorted(headers)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings", "/v1/other"])
def test_end_to_end_headers_arrive(upstream: Upstream, proxy, path: str) -> None:
    headers = (
        ("accept", "application/json, text/event-stream;q=0.5"),
        ("accept-encoding", "identity"),
        ("accept-language", "nb"),
        ("authorization", "Bearer sk-mine"),
        ("content-type", "application/json; charset=utf-8"),
        ("openai-beta", "assistants=v2"),
        ("openai-organization", "org-1"),
        ("user-agent", "curl/8"),
        ("x-api-version", "2"),
        ("x-twice", "a"),
        ("x-twice", "b"),
    )
    body = json.dumps(QUESTION | {"input": "x"}).encode()
    assert fetch(proxy.port, "POST", path, headers, body).status == 200
    assert end_to_end(upstream.last) == sorted(headers)


@pytest.mark.parametrize(
    "name",
    [
        "cookie", "forwarded", "keep-alive", "proxy-authorization", "te", "upgrade", "x-forwarded-for",
        "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "x-grounding-mode", "x-grounding-anything",
    ],
)  # fmt: skip
def test_headers_of_this_hop_stay_here(upstream: Upstream, proxy, name: str) -> None:
    value = "sync" if name == "x-grounding-mode" else "a=1"
    assert post_chat(proxy.port, QUESTION, (name, value)).status == 200
    assert name not in {key.lower() for key, _ in upstream.last.headers}


def test_headers_named_by_connection_stay_here(upstream: Upstream, proxy) -> None:
    assert post_chat(proxy.port, QUESTION, ("connection", "keep-alive, x-hop"), ("x-hop", "1")).status == 200
    assert "x-hop" not in dict(end_to_end(upstream.last))


def test_the_host_is_the_upstreams(upstream: Upstream, proxy) -> None:
    post_chat(proxy.port, QUESTION)
    assert upstream.last.header("host") == f"127.0.0.1:{upstream.port}"


@pytest.mark.parametrize(
    "target",
    [
        "/v1/chat/completions?api-version=2024-10-21&x=%20y&x=2&empty=&flag",
        "/v1/chat/completions?q=a+b%2Bc&utf=%C3%A9",
        "/v1/files/a%2Fb%20c?x=%20y&x=2",
        "/v1/other//double/?",
    ],
)
def test_path_and_query_arrive_as_they_were_written(upstream: Upstream, proxy, target: str) -> None:
    assert fetch(proxy.port, "POST", target, JSON_HEADERS, json.dumps(QUESTION).encode()).status == 200
    assert upstream.last.target.rstrip("?") == target.rstrip("?")


def test_a_body_sent_in_chunks_arrives_whole(upstream: Upstream, proxy) -> None:
    body = json.dumps(QUESTION).encode()
    with RawClient(proxy.port) as client:
        client.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n")
        client.write(b"transfer-encoding: chunked\r\n\r\n")
        for piece in (body[:7], body[7:]):
            client.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        client.write(b"0\r\n\r\n")
        client.read_head()
        client.read_to_end()
    assert (client.status, upstream.last.body) == (200, body)


def test_a_binary_body_arrives_as_it_is(upstream: Upstream, proxy) -> None:
    body = bytes(range(256)) * 64
    answer = fetch(proxy.port, "POST", "/v1/audio/transcriptions", (("content-type", "audio/wav"),), body)
    assert (answer.status, upstream.last.body) == (200, body)


def test_a_get_has_no_body(upstream: Upstream, proxy) -> None:
    assert fetch(proxy.port, "GET", "/v1/files").status == 200
    assert upstream.last.body == b""
    assert upstream.last.header("transfer-encoding") is None


def test_the_callers_trace_goes_on(upstream: Upstream, proxy) -> None:
    """The trace is the same, with or without a span of the proxy."""
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    post_chat(proxy.port, QUESTION, ("traceparent", f"00-{trace}-00f067aa0ba902b7-01"))
    assert trace in (upstream.last.header("traceparent") or "")


def test_the_upstreams_own_key_takes_the_place_of_the_clients(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(
        environ={"EDGE_UP_KEY": "sk-upstream"},
        upstreams={"up": {"base_url": upstream.base_url, "api_key_env": "EDGE_UP_KEY"}},
    )
    assert post_chat(proxy.port, QUESTION, ("x-api-key", "mine")).status == 200
    values = [value for name, value in upstream.last.headers if name.lower() == "authorization"]
    assert values == ["Bearer sk-upstream"]


DOCUMENTS = [{"id": "doc-1", "title": "Sky", "text": "The sky is blue on a clear day."}]


@pytest.mark.parametrize("understood", [False, True], ids=["not understood", "understood"])
def test_documents_go_only_where_they_are_understood(upstream: Upstream, start_proxy, understood: bool) -> None:
    proxy = start_proxy(upstreams={"up": {"base_url": upstream.base_url, "forwards_documents": understood}})
    upstream.reply = body_reply(chat_body("The sky is blue on a clear day."))
    answer = post_chat(proxy.port, QUESTION | {"documents": DOCUMENTS})
    assert upstream.last.json() == QUESTION | ({"documents": DOCUMENTS} if understood else {})
    grounding = answer.json()["grounding"]
    assert grounding["verdict"] == "grounded"
    assert [source["kind"] for source in grounding["sources"]] == ["document"]
