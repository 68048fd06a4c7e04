"""Faults between the proxy and a model server, as client, server and report see them.

Tested elsewhere: streams and bodies that die (test_edge_streams), time-outs and limits (test_edge_errors), clients that
leave (test_edge_cancellation), answers without a body and redirects (test_edge_differential).
"""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.edge.clients import RawClient, grounding_added, post_chat
from tests.edge.upstream import (
    DONE,
    Cut,
    Reply,
    Stall,
    Upstream,
    Wait,
    as_event,
    body_reply,
    chat_body,
    chat_events,
    error_reply,
    stream_reply,
)

CONTEXT = "The sky is blue on a clear day. Grass is green."
ANSWER = "The sky is blue on a clear day. Grass is red."
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "system", "content": CONTEXT}]}
STREAM = CHAT | {"stream": True}


def told(client: RawClient) -> dict[str, Any]:
    """Return the error sent to a client, which is in OpenAI's format."""
    error: dict[str, Any] = client.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    return error


# --- no connection ----------------------------------------------------------------------------------------------------


@contextmanager
def answering(greet: Callable[[socket.socket], object]) -> Iterator[int]:
    """A port where every connection is greeted, and closed."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    connection.settimeout(5)
                    greet(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def plain() -> AbstractContextManager[int]:
    """A port that serves HTTP without TLS."""
    return answering(lambda connection: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"))


def behind_tls(folder: Path) -> AbstractContextManager[int]:
    """A port that uses TLS with an untrusted certificate."""
    key, certificate = folder / "key.pem", folder / "cert.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost".split()
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return answering(lambda connection: context.wrap_socket(connection, server_side=True).close())


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "fault", ["a name that is nobody's", "TLS asked of a plain server", "a certificate of its own"]
)
def test_an_upstream_that_cannot_be_reached_is_a_bad_gateway(
    upstream: Upstream, start_proxy: Any, tmp_path: Path, fault: str, streamed: bool
) -> None:
    with ExitStack() as stack:
        url = {
            "a name that is nobody's": lambda: "http://model.invalid/v1",
            "TLS asked of a plain server": lambda: f"https://localhost:{stack.enter_context(plain())}/v1",
            "a certificate of its own": lambda: f"https://localhost:{stack.enter_context(behind_tls(tmp_path))}/v1",
        }[fault]()
        proxy = start_proxy(upstreams={"up": {"base_url": url}})
        answer = post_chat(proxy.port, CHAT | {"stream": streamed})
        assert (answer.status, answer.ended) == (502, True)
        assert url.split("/")[2] not in told(answer)["message"], "an address is the operator's business"
        assert answer.header("x-grounding-id") is None
    assert not upstream.requests


# --- malformed answers ------------------------------------------------------------------------------------------------


def test_a_body_shorter_than_its_length_is_no_answer(upstream: Upstream, proxy: Any) -> None:
    body = chat_body(ANSWER)
    announced = (("content-type", "application/json"), ("content-length", str(len(body))))
    upstream.reply = Reply((body[:-20], Cut()), headers=announced, framing="close")
    answer = post_chat(proxy.port, CHAT)
    assert (answer.status, told(answer)["type"]) == (502, "upstream_error")


def test_bytes_behind_a_body_reach_no_other_client(upstream: Upstream, proxy: Any) -> None:
    """A server that writes more than it announced: the rest must not pass for the answer to the next request."""
    body, rest = chat_body(ANSWER), b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong"
    announced = (("content-type", "application/json"), ("content-length", str(len(body))))
    upstream.reply = Reply((body + rest,), headers=announced, framing="close")
    first = post_chat(proxy.port, CHAT)
    upstream.reply = body_reply(chat_body("Grass is green."))
    second = post_chat(proxy.port, CHAT)
    assert first.status in (200, 502)
    assert (second.status, second.json()["choices"][0]["message"]["content"]) == (200, "Grass is green.")


def test_a_body_that_contradicts_its_encoding_passes_unread(upstream: Upstream, proxy: Any) -> None:
    upstream.reply = body_reply(chat_body(ANSWER), headers=(("content-encoding", "gzip"),))
    answer = post_chat(proxy.port, CHAT, ("accept-encoding", "gzip"))
    assert (answer.status, answer.body) == (200, chat_body(ANSWER))
    assert (answer.header("x-grounding-status"), answer.header("x-grounding-verdict")) == ("failed", "not_checked")


def test_early_hints_are_not_taken_for_the_answer(upstream: Upstream, proxy: Any) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    upstream.reply = Reply((chat_body(ANSWER),), before=(hints,))
    answer = post_chat(proxy.port, CHAT)
    assert (answer.status, answer.json()["grounding"]["status"]) == (200, "complete")


def test_a_client_that_expects_100_continue_gets_its_answer(upstream: Upstream, proxy: Any) -> None:
    body = json.dumps(CHAT).encode()
    with RawClient(proxy.port) as client:
        client.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n")
        client.write(b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body))
        client.read_head()
        assert client.status == 100
        client.write(body)
        client.read_head()
        client.read_to_end()
    assert client.status == 200
    assert upstream.last.header("expect") is None


# --- malformed streams ------------------------------------------------------------------------------------------------


ODD: dict[str, list[bytes]] = {
    "an event that is no JSON": [b"data: {not json\n\n"],
    "an event that is a list": [b"data: [1, 2]\n\n"],
    "an event without data": [b"event: ping\nid: 1\n\n"],
    "a field that nobody knows": [b"colour: blue\n\n"],
    "a line that is no field": [b"hello\n\n"],
    "several lines of data": [b'data: {"object": "x",\ndata: "choices": []}\n\n'],
    "bytes that are no text": [b"data: \xff\xfe\xfd\n\n"],
    "choices that are none": [as_event({"choices": [None, 7, {"index": 0, "delta": 3}]})],
    "a mark of byte order": [b"\xef\xbb\xbf"],
}


@pytest.mark.parametrize("name", ODD)
def test_an_event_that_cannot_be_read_passes_and_the_others_are_verified(
    upstream: Upstream, proxy: Any, name: str
) -> None:
    events = chat_events(ANSWER)
    odd = ODD[name]
    sent = [*odd, *events] if name == "a mark of byte order" else [*events[:3], *odd, *events[3:]]
    upstream.reply = stream_reply(sent)
    answer = post_chat(proxy.port, STREAM)
    assert answer.ended
    grounding = grounding_added(b"".join(sent), answer.body)
    labels = [claim["label"] for claim in grounding["choices"][0]["claims"]]
    assert labels[0] == "supported"
    assert labels[1] != "supported"


def test_a_stream_that_ends_without_saying_so_is_not_called_whole(upstream: Upstream, proxy: Any) -> None:
    """All framing is right, but neither a finish reason nor [DONE] came: the report must not call it complete."""
    upstream.reply = stream_reply(chat_events(ANSWER)[:-3])
    answer = post_chat(proxy.port, STREAM)
    assert answer.ended
    assert b"[DONE]" not in answer.body
    assert proxy.report(answer.header("x-grounding-id"))["status"] == "partial"


def test_an_event_over_the_limit_breaks_the_stream_off(upstream: Upstream, start_proxy: Any) -> None:
    proxy = start_proxy(stream={"max_event": "64KiB"})
    upstream.reply = stream_reply([*chat_events(ANSWER)[:4], *([b"data: " + b"x" * 50_000] * 4), DONE])
    answer = post_chat(proxy.port, STREAM)
    assert not answer.ended
    assert b"".join(chat_events(ANSWER)[:4]) in answer.body
    assert b'"error"' in answer.body
    assert b"[DONE]" not in answer.body
    assert proxy.report(answer.header("x-grounding-id"))["status"] == "partial"
    assert upstream.exchanges[0].done.is_set() or upstream.exchanges[0].left.wait(60)


@pytest.mark.parametrize("status", [429, 503])
def test_the_retry_headers_of_an_upstream_arrive_unchanged(upstream: Upstream, proxy: Any, status: int) -> None:
    said = (("retry-after", "7"), ("retry-after-ms", "6500"), ("x-ratelimit-remaining-requests", "0"))
    upstream.reply = error_reply(status, "Slow down.", type="rate_limit").with_headers(*said)
    answer = post_chat(proxy.port, STREAM)
    assert (answer.status, answer.json()["error"]["message"]) == (status, "Slow down.")
    assert [(name, answer.header(name)) for name, _ in said] == list(said)
    assert len(upstream.requests) == 1


# --- under load -------------------------------------------------------------------------------------------------------


def test_an_upstream_that_restarts_under_load_is_found_again(upstream: Upstream, start_proxy: Any) -> None:
    """Every request of that time is answered or refused, none hangs, and afterwards all is as before."""
    first = Upstream()
    first.__enter__()
    proxy = start_proxy(upstreams={"up": {"base_url": first.base_url}})
    assert post_chat(proxy.port, CHAT).status == 200
    first.reply = Reply((chat_body(ANSWER),), before=(Stall(),))
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(post_chat, proxy.port, CHAT) for _ in range(8)]
        first.wait_for_requests(9)
        first.__exit__()
        assert {each.result().status for each in asked} == {502}
        assert {each.status for each in pool.map(lambda _: post_chat(proxy.port, CHAT), range(8))} == {502}
    again = Upstream()
    again.listen_on = first.port
    with again:
        assert [post_chat(proxy.port, CHAT).status for _ in range(3)] == [200, 200, 200]


def test_a_thousand_idle_connections_cost_nobody_an_answer(upstream: Upstream, proxy: Any) -> None:
    with ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(socket.create_connection(("127.0.0.1", proxy.port), timeout=60))
        answers = [post_chat(proxy.port, CHAT) for _ in range(5)]
    assert [answer.status for answer in answers] == [200] * 5
    assert post_chat(proxy.port, CHAT).status == 200


def test_requests_in_line_are_all_answered_or_refused(upstream: Upstream, start_proxy: Any) -> None:
    """Of requests over the limit, some wait, some get a 503, none is forgotten, and no connection hangs."""
    proxy = start_proxy(server={"max_concurrent": 4, "queue": 50, "queue_timeout": "60s"})
    gate = threading.Event()
    upstream.reply = Reply((chat_body(ANSWER),), before=(Wait(gate),))
    with ThreadPoolExecutor(100) as pool:
        asked = [pool.submit(post_chat, proxy.port, CHAT) for _ in range(100)]
        refused = list(islice(as_completed(asked, timeout=60), 46))
        assert {(each.result().status, bool(each.result().header("retry-after"))) for each in refused} == {(503, True)}
        gate.set()
        assert Counter(each.result(timeout=60).status for each in asked) == {200: 54, 503: 46}


def test_headers_alone_are_no_reason_to_fail(upstream: Upstream, proxy: Any) -> None:
    upstream.reply = body_reply(chat_body(ANSWER), headers=(("x-odd", "caf\xe9"), ("x-empty", "")))
    answer = post_chat(proxy.port, CHAT, ("x-odd", "caf\xe9".encode().decode("latin-1")))
    assert answer.status == 200
    assert answer.header("x-odd") == "caf\xe9"
    assert upstream.last.header("x-odd") == "caf\xe9".encode().decode("latin-1")
