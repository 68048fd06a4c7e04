"""Ambiguous requests: each is read once, in one way, or refused."""

import contextlib
import json
import re
import socket

import pytest

from tests.edge.clients import JSON_HEADERS, PATIENCE_S, RawClient, fetch, post_chat
from tests.edge.proxies import Proxy
from tests.edge.upstream import Pause, Reply, Upstream, body_reply, chat_body

MESSAGES = [{"role": "system", "content": "Revenue was $4 million."}, {"role": "user", "content": "Revenue?"}]
CHAT = json.dumps({"model": "m", "messages": MESSAGES}).encode()
SMUGGLED = b"GET /v1/smuggled HTTP/1.1\r\nhost: x\r\n\r\n"
JAVA = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAAB\r\n"


def conversation(proxy: Proxy, *pieces: bytes) -> bytes:
    """Send these pieces in turn; return everything that the proxy answers until it closes the connection."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
        received = b""
        while data := connection.recv(1 << 16):
            received += data
    return received


def statuses(received: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]


LAST = b"GET /v1/last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


# --- offers to switch protocols ---------------------------------------------------------------------------------------


def head(body: bytes, offer: bytes, target: bytes = b"/v1/other", framing: bytes | None = None) -> bytes:
    framing = b"content-length: %d\r\n" % len(body) if framing is None else framing
    return b"POST " + target + b" HTTP/1.1\r\nhost: x\r\n" + offer + framing + b"\r\n"


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket", b"foo/1", b"TLS/1.0, HTTP/1.1"])
@pytest.mark.parametrize("split", ["together", "apart", "in the head", "byte by byte"])
def test_a_body_sent_with_an_offer_to_upgrade_is_a_body(
    upstream: Upstream, proxy: Proxy, protocol: bytes, split: str
) -> None:
    upstream.reply = body_reply(chat_body("Hello."))
    start = head(SMUGGLED, b"connection: Upgrade\r\nupgrade: " + protocol + b"\r\n")
    whole = start + SMUGGLED + LAST
    pieces = {
        "together": [whole],
        "apart": [start, SMUGGLED, LAST],
        "in the head": [whole[:30], whole[30 : len(start) + 5], whole[len(start) + 5 :]],
        "byte by byte": [whole[at : at + 1] for at in range(len(whole))],
    }[split]
    assert statuses(conversation(proxy, *pieces)) == [200, 200]
    assert [(each.target, each.body) for each in upstream.requests] == [("/v1/other", SMUGGLED), ("/v1/last", b"")]


def test_a_body_in_chunks_sent_with_an_offer_to_upgrade_is_a_body(upstream: Upstream, proxy: Proxy) -> None:
    upstream.reply = body_reply(chat_body("Hello."))
    chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED)
    start = head(b"", JAVA, framing=b"transfer-encoding: chunked\r\n")
    assert statuses(conversation(proxy, start + chunks + LAST)) == [200, 200]
    assert [each.body for each in upstream.requests] == [SMUGGLED, b""]


def test_requests_with_offers_sent_ahead_are_all_answered(upstream: Upstream, proxy: Proxy) -> None:
    upstream.reply = body_reply(chat_body("Hello."))
    ahead = b"".join(head(b"%d" % at, JAVA, b"/v1/n%d" % at) + b"%d" % at for at in range(10))
    assert statuses(conversation(proxy, ahead + LAST)) == [200] * 11
    expected = [(f"/v1/n{at}", str(at).encode()) for at in range(10)]
    assert [(each.target, each.body) for each in upstream.requests[:-1]] == expected


def test_the_default_upgrade_offer_of_java_is_answered_and_verified(upstream: Upstream, proxy: Proxy) -> None:
    upstream.reply = body_reply(chat_body("Hello."))
    with RawClient(proxy.port) as client:
        client.write(head(CHAT, JAVA, b"/v1/chat/completions") + CHAT)
        client.read_head()
        client.read_to_end()
    assert (client.status, client.header("x-grounding-status")) == (200, "complete")
    assert upstream.last.body == CHAT
    assert not {"upgrade", "http2-settings"} & {name.lower() for name, _ in upstream.last.headers}


def test_an_offer_without_a_body_is_ignored(upstream: Upstream, proxy: Proxy) -> None:
    offer = b"connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: eA==\r\n"
    get = b"GET /v1/realtime?model=m HTTP/1.1\r\nhost: x\r\n" + offer + b"\r\n"
    assert statuses(conversation(proxy, get + LAST)) == [200, 200]
    assert [each.target for each in upstream.requests] == ["/v1/realtime?model=m", "/v1/last"]


def test_a_head_over_the_limit_is_refused_with_an_offer_too(upstream: Upstream, proxy: Proxy) -> None:
    received = conversation(proxy, head(b"", JAVA + b"x-long: %b\r\n" % (b"a" * 70_000)))
    assert statuses(received) == [431]
    assert not upstream.requests


# --- chunks and their trailers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [False, True])
def test_trailers_never_become_headers(upstream: Upstream, proxy: Proxy, split: bool) -> None:
    upstream.reply = body_reply(chat_body("Hello."))
    start = head(b"", b"", framing=b"transfer-encoding: chunked\r\n") + b"2\r\n{}\r\n0\r\n"
    trailers = b"x-evil: 1\r\nauthorization: Bearer evil\r\nhost: evil\r\nexpect: 100-continue\r\n\r\n"
    pieces = [start, trailers, LAST] if split else [start + trailers + LAST]
    assert statuses(conversation(proxy, *pieces)) == [200, 200]
    for received in upstream.requests:
        assert not {"x-evil", "authorization", "expect"} & {name.lower() for name, _ in received.headers}
    assert upstream.requests[0].body == b"{}"


def test_trailers_are_bounded_as_heads_are(upstream: Upstream, proxy: Proxy) -> None:
    start = head(b"", b"", framing=b"transfer-encoding: chunked\r\n") + b"2\r\n{}\r\n0\r\n"
    with contextlib.suppress(ConnectionError):  # it closes the connection before all of them were sent
        received = conversation(proxy, start, *[b"x-a: %b\r\n" % (b"a" * 30_000)] * 30, b"\r\n" + LAST)
        assert statuses(received) == [431]
    assert not upstream.requests


# --- the host ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hosts",
    [
        b"",
        b"host: a\r\nhost: b\r\n",
        b"host: a\r\nhost: a\r\n",
        b"host:\r\n",
        b"host: a, b\r\n",
        b"host: a b\r\n",
        b'host: evil.example"><script>\r\n',
        b"host: a/b\r\n",
        b"host: user@a\r\n",
        b"host: a:b\r\n",
        b"host: [::1\r\n",
        b"host: a?b\r\n",
    ],
)
def test_a_request_names_one_host(upstream: Upstream, proxy: Proxy, hosts: bytes) -> None:
    assert statuses(conversation(proxy, b"GET /v1/x HTTP/1.1\r\n" + hosts + b"connection: close\r\n\r\n")) == [400]
    assert not upstream.requests


@pytest.mark.parametrize("host", [b"a", b"a.example:8080", b"127.0.0.1", b"[::1]:80", b"a:", b"a_b-c.internal"])
def test_any_one_host_will_do(upstream: Upstream, proxy: Proxy, host: bytes) -> None:
    asked = b"GET /v1/x HTTP/1.1\r\nhost: " + host + b"\r\nconnection: close\r\n\r\n"
    assert statuses(conversation(proxy, asked)) == [200]


def test_http_1_0_needs_no_host_and_0_9_is_refused(proxy: Proxy) -> None:
    assert statuses(conversation(proxy, b"GET /v1/x HTTP/1.0\r\n\r\n")) == [200]
    assert statuses(conversation(proxy, b"GET /v1/x\r\n\r\n")) == [400]


# --- methods ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["/v1/x", "/v1/chat/completions", "/healthz", "/v1/grounding/x", "/"])
def test_trace_is_not_allowed(upstream: Upstream, proxy: Proxy, target: str) -> None:
    answer = fetch(proxy.port, "TRACE", target)
    assert (answer.status, answer.json()["error"]["code"]) == (405, "method_not_allowed")
    assert "TRACE" not in (answer.header("allow") or "TRACE")
    assert not upstream.requests


@pytest.mark.parametrize("target", [b"127.0.0.1:80", b"/v1/x"])
def test_connect_is_not_allowed(upstream: Upstream, proxy: Proxy, target: bytes) -> None:
    received = conversation(proxy, b"CONNECT " + target + b" HTTP/1.1\r\nhost: x\r\n\r\n")
    assert statuses(received) == [405]
    assert b'"code":"method_not_allowed"' in received
    assert not upstream.requests


# --- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT"])
@pytest.mark.parametrize(
    "target",
    [
        "/v1/../admin/x",
        "/v1/a/../../admin",
        "/v1/..",
        "/v1/%2e%2e/admin",
        "/v1/%2E./admin",
        "/v1/..%2fadmin",
        "/v1/..\\admin",
        "/v1/%5c..%5cadmin",
        "/v1/%252e%252e/admin",
        "/v1/..;/admin",
        "/v1/..;x=1/admin",
        "/v1/..%3fx/admin",
        "/v1/..%00/admin",
        "/v1/%c0%ae%c0%ae/admin",
        "/v1/./chat/completions",
        "/v1/models/../../x",
        "/v1/models/%2e%2e%2f%2e%2e%2fx",
        "/%76%31/../x",
        "/api/../v1/x",
        "/../v1/x",
    ],
)
def test_no_path_leaves_the_upstreams(upstream: Upstream, proxy: Proxy, method: str, target: str) -> None:
    answer = fetch(proxy.port, method, target, JSON_HEADERS, b"{}" if method in ("POST", "PUT") else b"")
    assert (answer.status, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    assert not upstream.requests


@pytest.mark.parametrize("target", ["/v1/x?path=../../y", "/v1/a..b/...", "/v1/.hidden/x.y", "/v1/x%2F.y?..=%2e%2e"])
def test_dots_that_resolve_to_nothing_pass(upstream: Upstream, proxy: Proxy, target: str) -> None:
    assert fetch(proxy.port, "GET", target).status == 200
    assert upstream.last.target == target


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [
        ("/%76%31/files", "/v1/files"),
        ("/v%31/files/%61%2Fb", "/v1/files/a%2Fb"),
        ("/v1/files/%7Ea%20b", "/v1/files/%7Ea%20b"),
    ],
)
def test_a_path_is_forwarded_as_it_is_routed(upstream: Upstream, proxy: Proxy, sent: str, arrives: str) -> None:
    assert fetch(proxy.port, "GET", sent).status == 200
    assert upstream.last.target == arrives


def test_a_path_of_ours_is_ours_however_its_letters_are_written(upstream: Upstream, proxy: Proxy) -> None:
    upstream.reply = body_reply(chat_body("Hello."))
    answer = fetch(proxy.port, "POST", "/v1/chat/%63ompletions", JSON_HEADERS, CHAT)
    assert answer.header("x-grounding-status") == "complete"
    assert upstream.last.target == "/v1/chat/completions"
    assert fetch(proxy.port, "GET", "/v1/%67rounding/gw-none").json()["error"]["code"] == "report_not_found"


def test_an_encoded_slash_divides_nothing(upstream: Upstream, proxy: Proxy) -> None:
    upstream.reply = body_reply(chat_body("Hello."))
    answer = fetch(proxy.port, "POST", "/v1/chat%2Fcompletions", JSON_HEADERS, CHAT)
    assert answer.header("x-grounding-status") is None
    assert upstream.last.target == "/v1/chat%2Fcompletions"
    assert fetch(proxy.port, "GET", "/v1%2Fmodels").status == 404


@pytest.mark.parametrize("target", ["/v1", "/v1?x=1", "/v1/models/", "/healthz/", "/openapi.json/"])
def test_no_redirect_names_the_host_of_a_request(upstream: Upstream, proxy: Proxy, target: str) -> None:
    with RawClient(proxy.port) as client:
        client.write(f"GET {target} HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n".encode())
        client.read_head()
    assert client.status in (200, 404)
    assert client.header("location") is None


# --- interim answers of an upstream -----------------------------------------------------------------------------------


INTERIM = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"


@pytest.mark.parametrize("count", [1, 20])
def test_interim_answers_are_not_the_answer(upstream: Upstream, proxy: Proxy, count: int) -> None:
    upstream.reply = Reply((chat_body("Hello."),), before=(INTERIM * count,))
    answer = post_chat(proxy.port, CHAT)
    assert (answer.status, answer.json()["choices"][0]["message"]["content"]) == (200, "Hello.")


def test_interim_answers_without_end_are_no_answer(upstream: Upstream, proxy: Proxy) -> None:
    upstream.reply = Reply((chat_body("Hello."),), before=(INTERIM * 500,))
    answer = post_chat(proxy.port, CHAT)
    assert (answer.status, answer.json()["error"]["code"]) == (502, "upstream_broken")


def test_interim_answers_do_not_extend_the_time_limit(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(upstreams={"up": {"base_url": upstream.base_url, "timeout": "500ms"}})
    upstream.reply = Reply((chat_body("Hello."),), before=(INTERIM, Pause(0.2)) * 50)
    answer = post_chat(proxy.port, CHAT)
    assert (answer.status, answer.json()["error"]["code"]) == (504, "upstream_timeout")


@pytest.mark.parametrize("target", ["/v1/chat/completions", "/v1/files"])
def test_a_switch_of_protocols_that_was_not_requested_is_no_answer(
    upstream: Upstream, proxy: Proxy, target: str
) -> None:
    switch = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nhello"
    upstream.reply = Reply((chat_body("Hello."),), before=(switch,))
    answer = fetch(proxy.port, "POST", target, JSON_HEADERS, CHAT)
    assert (answer.status, answer.json()["error"]["code"]) == (502, "upstream_broken")
