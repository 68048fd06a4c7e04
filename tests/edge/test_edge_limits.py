"""Requests are bounded in size, time and number; those over a limit get an error in OpenAI's format."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.edge.clients import JSON_HEADERS, RawClient, fetch, post_chat, until
from tests.edge.upstream import Pause, Reply, Stall, Upstream, Wait, body_reply, chat_body, chat_events, stream_reply

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
BODY = json.dumps(CHAT).encode()


def error_of(client: RawClient) -> dict:
    error = client.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


def answered(client: RawClient) -> RawClient:
    client.read_head()
    client.read_to_end()
    return client


@contextmanager
def held(upstream: Upstream, port: int, count: int) -> Iterator[threading.Event]:
    """Send `count` requests; the model server answers them once the event is set."""
    release = threading.Event()
    upstream.reply = Reply((chat_body("Hello."),), before=(Wait(release),))
    clients = [RawClient(port) for _ in range(count)]
    try:
        for client in clients:
            client.__enter__()
            client.send("POST", "/v1/chat/completions", JSON_HEADERS, BODY)
        upstream.wait_for_requests(count)
        yield release
        release.set()
        assert [answered(client).status for client in clients] == [200] * count
    finally:
        release.set()
        for client in clients:
            client.leave()


# --- admission --------------------------------------------------------------------------------------------------------


def test_agents_are_let_in_as_all_others_are(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(server={"max_concurrent": 1, "queue": 0, "max_body": "1KiB"}, mcp={"enabled": True})
    asked = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = (*JSON_HEADERS, ("accept", "application/json, text/event-stream"))
    with held(upstream, proxy.port, 1):
        refused = fetch(proxy.port, "POST", "/mcp", headers, json.dumps(asked).encode())
        assert (refused.status, error_of(refused)["code"]) == (503, "server_busy")
    assert fetch(proxy.port, "POST", "/mcp", headers, json.dumps(asked).encode()).status == 200
    large = fetch(proxy.port, "POST", "/mcp", headers, b" " * 2000)
    assert (large.status, error_of(large)["code"]) == (413, "request_too_large")


def test_a_request_over_capacity_and_queue_gets_retry_after(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(server={"max_concurrent": 2, "queue": 0})
    with held(upstream, proxy.port, 2):
        refused = post_chat(proxy.port, CHAT)
        assert (refused.status, refused.header("retry-after")) == (503, "5")
        assert error_of(refused)["code"] == "server_busy"
    assert post_chat(proxy.port, CHAT).status == 200


@pytest.mark.parametrize("padding", [0, 200_000], ids=["a small body", "a body larger than is read ahead"])
def test_those_in_line_are_answered_in_their_turn(upstream: Upstream, start_proxy, padding: int) -> None:
    proxy = start_proxy(server={"max_concurrent": 1, "queue": 1, "queue_timeout": "20s"})
    with held(upstream, proxy.port, 1) as release, RawClient(proxy.port) as waiting:
        waiting.send("POST", "/v1/chat/completions", JSON_HEADERS, BODY + b" " * padding)
        until(lambda: {"part": "traffic", "reason": "overload"} in degraded(proxy.port))
        assert post_chat(proxy.port, CHAT).status == 503
        release.set()
        assert answered(waiting).status == 200
    assert degraded(proxy.port) == []


def test_a_wait_in_line_ends(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(server={"max_concurrent": 1, "queue": 5, "queue_timeout": "50ms"})
    with held(upstream, proxy.port, 1):
        assert post_chat(proxy.port, CHAT).status == 503


def test_signs_of_life_are_given_when_all_is_full(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(server={"max_concurrent": 1, "queue": 0})
    with held(upstream, proxy.port, 1):
        assert fetch(proxy.port, "GET", "/healthz").status == 200
        assert fetch(proxy.port, "GET", "/readyz").status == 200


def test_the_total_size_of_pending_bodies_is_limited(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(server={"max_bodies": 3 * len(BODY) // 2, "queue": 0})
    with held(upstream, proxy.port, 1):
        assert post_chat(proxy.port, CHAT).status == 503
        assert fetch(proxy.port, "GET", "/v1/grounding/gw-none").status == 404
    assert post_chat(proxy.port, CHAT).status == 200


def test_a_rush_of_requests_is_answered_to_the_last(upstream: Upstream, start_proxy) -> None:
    """Many clients that repeat requests at once, twice the capacity: none hangs, none fails otherwise."""
    proxy = start_proxy(
        server={"max_concurrent": 20, "queue": 20, "queue_timeout": "100ms"}, grounding={"enabled": False}
    )
    upstream.reply = body_reply(chat_body("Hello."))
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(BODY)}\r\n\r\n".encode()
    statuses: list[bytes] = []

    def ask() -> None:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=60) as connection:
            stream = connection.makefile("rb")
            for _ in range(25):
                connection.sendall(head + BODY)
                statuses.append(stream.readline()[9:12])
                length = 0
                while (line := stream.readline()) != b"\r\n":
                    length = int(line[15:]) if line.startswith(b"content-length:") else length
                assert len(stream.read(length)) == length

    threads = [threading.Thread(target=ask) for _ in range(80)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(statuses) == 2000
    assert set(statuses) <= {b"200", b"503"}
    assert b"200" in statuses


def degraded(port: int) -> list[dict]:
    return fetch(port, "GET", "/readyz").json()["degraded"]


# --- heads and bodies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [1, 40], ids=["at once", "in pieces"])
@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        (b"GET /v1/models HTTP/1.1\r\nhost: x\r\nx-long: " + b"a" * 90_000 + b"\r\n\r\n", 431, "headers_too_large"),
        (b"GET /v1/models HTTP/1.1\r\nhost: x\r\n" + b"x-many: a\r\n" * 9000 + b"\r\n", 431, "headers_too_large"),
        (b"GET /v1/" + b"a" * 90_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n", 414, "url_too_long"),
        (b"nonsense\r\n\r\n", 400, "invalid_http"),
        (b"GET / HTTP/1.1\r\nhost: x\r\n: no name\r\n\r\n", 400, "invalid_http"),
    ],
    ids=["a long header", "many headers", "a long URL", "nonsense", "no name"],
)
def test_a_head_over_the_limit_is_refused(proxy, pieces: int, head: bytes, status: int, code: str) -> None:
    with RawClient(proxy.port) as client:
        step = -(-len(head) // pieces)
        for at in range(0, len(head), step):
            try:
                client.write(head[at : at + step])
            except (ConnectionResetError, BrokenPipeError):
                break
        assert answered(client).status == status
        assert error_of(client)["code"] == code
        assert client.header("connection") == "close"


def test_a_head_below_the_limit_passes_with_any_size_of_body(upstream: Upstream, proxy) -> None:
    header = ("x-long", "a" * 60_000)
    large = CHAT | {"padding": "x" * 300_000}
    assert post_chat(proxy.port, large, header).status == 200
    assert upstream.requests[-1].header("x-long") == header[1]


@pytest.mark.parametrize(
    "start",
    [
        b"POST /v1/chat/completions HTT",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{",
    ],
)
def test_a_request_that_takes_too_long_to_arrive_is_refused(start_proxy, start: bytes) -> None:
    proxy = start_proxy(server={"read_timeout": "200ms"})
    with RawClient(proxy.port) as client:
        client.write(start)
        assert answered(client).status == 408
        assert error_of(client)["code"] == "request_timeout"


def test_a_body_that_keeps_coming_may_take_long(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(server={"read_timeout": "400ms"})
    body = json.dumps(CHAT | {"padding": "x" * 700_000}).encode()
    with RawClient(proxy.port) as client:
        client.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body))
        for at in range(0, len(body), 70_000):
            client.write(body[at : at + 70_000])
            time.sleep(0.08)
        assert answered(client).status == 200


def test_a_request_has_its_whole_time_on_a_connection_that_waited_for_it(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(server={"read_timeout": "2s"})
    with RawClient(proxy.port) as client:
        client.write(b"")
        time.sleep(1.3)
        client.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(BODY))
        time.sleep(1.3)
        client.write(BODY)
        assert answered(client).status == 200


def test_blank_lines_are_bounded_as_heads_are(proxy) -> None:
    with RawClient(proxy.port) as client:
        client.write(b"\r\n" * 40_000)
        assert answered(client).status == 431


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"])
def test_an_idle_connection_is_closed(start_proxy, sent: bytes) -> None:
    proxy = start_proxy(server={"read_timeout": "200ms", "keep_alive": "0s"})
    with RawClient(proxy.port) as client:
        client.write(sent)
        if sent.strip():
            answered(client)
        assert client._socket is not None
        assert client._socket.recv(100) == b""


def test_an_answer_may_take_longer_than_a_request(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(server={"read_timeout": "100ms"})
    with held(upstream, proxy.port, 1):
        time.sleep(0.5)


def test_a_client_that_takes_nothing_counts_as_gone(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(server={"write_timeout": "300ms"})
    padding = [b"data: " + json.dumps({"padding": "x" * 100_000}).encode() + b"\n\n"] * 400
    upstream.reply = stream_reply([*padding, *chat_events("Hello."), Stall()])
    with RawClient(proxy.port) as client:
        client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT | {"stream": True}).encode())
        client.read_head()
        exchange = upstream.exchanges[0]
        until(lambda: exchange.left.is_set() or exchange.done.is_set())  # done: it could not write on


# --- memory of verification -------------------------------------------------------------------------------------------

CONTEXT = {"model": "m", "messages": [{"role": "system", "content": "The sky is blue."}]}
LONG = "The sky is blue. " * 3000


@pytest.mark.parametrize(
    ("held", "streamed"),
    [(10, False), (10, True), (20_000, False), (20_000, True)],
    ids=["request, whole", "request, streamed", "answer, whole", "answer, streamed"],
)
def test_an_exchange_over_the_verification_limit_passes_unread(
    upstream: Upstream, start_proxy, held: int, streamed: bool
) -> None:
    """Report not_checked for overload; no error, no wait, and no byte but the model server's."""
    proxy = start_proxy(grounding={"max_bytes": held})
    upstream.reply = stream_reply(chat_events(LONG)) if streamed else body_reply(chat_body(LONG))
    answer = post_chat(proxy.port, CONTEXT | {"stream": streamed})
    assert (answer.status, answer.ended) == (200, True)
    assert answer.body == b"".join(upstream.reply.body)
    report = proxy.report(answer.header("x-grounding-id"))
    assert (report["status"], report["verdict"], report["score"]) == ("skipped", "not_checked", None)
    assert report["degraded"] == [{"verifier": "all", "reason": "overload"}]
    assert report["config"]


def test_no_keep_alive_breaks_a_line_of_what_passes_unread(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(grounding={"max_bytes": 20_000}, stream={"keepalive": "50ms"})
    *events, done = chat_events(LONG)
    upstream.reply = stream_reply([*events, b'data: {"choi', Pause(0.5), b'ces": []}\n\n', done])
    answer = post_chat(proxy.port, CONTEXT | {"stream": True})
    assert answer.body.replace(b":\n", b"").count(b'data: {"choices": []}') == 1
    assert b'data: {"choices": []}' in answer.body


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_room_is_given_back(upstream: Upstream, start_proxy, streamed: bool) -> None:
    proxy = start_proxy(grounding={"max_bytes": 3000}, stream={"tail_budget": "10s"})
    for _ in range(8):
        upstream.reply = stream_reply(chat_events("The sky is blue.")) if streamed else body_reply(chat_body("Blue."))
        answer = post_chat(proxy.port, CONTEXT | {"stream": streamed})
        assert proxy.report(answer.header("x-grounding-id"))["status"] == "complete"
        upstream.reply = body_reply(b'{"error": {}}', status=500) if not streamed else stream_reply([Stall()])
        with RawClient(proxy.port) as client:
            client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CONTEXT).encode())
            if streamed:
                client.read_head()
            else:
                assert answered(client).status == 500
