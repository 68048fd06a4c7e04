"""A client that goes away cancels the upstream call."""

import json
import re
import socket
import time

import pytest

from tests.edge.clients import JSON_HEADERS, RawClient, fetch, post_chat, sdk, until
from tests.edge.upstream import (
    Pause,
    Reply,
    Stall,
    Step,
    Upstream,
    body_reply,
    chat_body,
    chat_events,
    delta_events,
    stream_reply,
)

CHAT = {"model": "m", "messages": [{"role": "system", "content": "The sky is blue."}]}
WITHIN_S = 60.0

STALLED: dict[str, Reply] = {
    "before the head": Reply((chat_body("Blue."),), before=(Stall(),)),
    "in the body": Reply((chat_body("Blue.")[:100], Stall()), framing="chunked"),
    "before the first event": stream_reply([Stall()]),
    "in the stream": stream_reply([*chat_events("The sky is blue.")[:3], Stall()]),
    "before the end": stream_reply([*chat_events("The sky is blue.")[:-1], Stall()]),
}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/other"], ids=["chat", "passed through"])
@pytest.mark.parametrize("stage", STALLED)
def test_a_gone_client_cancels_the_upstream(upstream: Upstream, proxy, stage: str, path: str) -> None:
    upstream.reply = STALLED[stage]
    with RawClient(proxy.port) as client:
        client.send("POST", path, JSON_HEADERS, json.dumps(CHAT | {"stream": "stream" in stage}).encode())
        upstream.wait_for_requests(1)
        if stage == "in the stream":
            client.read_head()
            client.read_until(b"data:")
        time.sleep(0.1)
        assert not upstream.exchanges[0].left.is_set()
    assert upstream.exchanges[0].left.wait(WITHIN_S)


def test_a_stream_that_flows_is_cancelled_too(upstream: Upstream, proxy) -> None:
    events = chat_events("blue " * 2000)
    endless: tuple[Step, ...] = tuple(step for event in events for step in (event, Pause(0.01)))
    upstream.reply = stream_reply(endless)
    with sdk(proxy.base_url) as client:
        stream = client.chat.completions.create(**CHAT, stream=True)
        for _, _chunk in zip(range(5), stream, strict=False):
            pass
        stream.close()
    assert upstream.exchanges[0].left.wait(WITHIN_S)


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/responses", "/v1/models/m", "/v1/models"])
def test_a_gone_client_cancels_any_kind_of_request(upstream: Upstream, proxy, path: str) -> None:
    upstream.reply = Reply((chat_body("Blue."),), before=(Stall(),))
    with RawClient(proxy.port) as client:
        method = "GET" if "models" in path else "POST"
        client.send(method, path, JSON_HEADERS, json.dumps(CHAT | {"input": "x"}).encode() if method == "POST" else b"")
        upstream.wait_for_requests(1)
    assert upstream.exchanges[0].left.wait(WITHIN_S)


def test_a_client_that_closes_its_half_counts_as_gone(upstream: Upstream, proxy) -> None:
    """nginx does the same: such a client looks like one that has closed both."""
    upstream.reply = STALLED["before the first event"]
    with RawClient(proxy.port) as client:
        client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT | {"stream": True}).encode())
        upstream.wait_for_requests(1)
        assert client._socket is not None
        client._socket.shutdown(socket.SHUT_WR)
        assert upstream.exchanges[0].left.wait(WITHIN_S)


@pytest.mark.parametrize("ahead", [1, 3])
def test_a_gone_client_that_sent_requests_ahead_cancels_the_one_at_work(upstream: Upstream, proxy, ahead: int) -> None:
    upstream.reply = STALLED["before the head"]
    with RawClient(proxy.port) as client:
        for _ in range(1 + ahead):
            client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT).encode())
        upstream.wait_for_requests(1)
    assert upstream.exchanges[0].left.wait(WITHIN_S)
    assert len(upstream.exchanges) == 1


def test_requests_sent_ahead_are_answered_in_order(upstream: Upstream, proxy) -> None:
    upstream.reply = lambda received: body_reply(chat_body(received.json()["messages"][1]["content"]))
    with RawClient(proxy.port) as client:
        for said in ("first.", "second.", "third."):
            asked = CHAT | {"messages": [*CHAT["messages"], {"role": "user", "content": said}]}
            client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(asked).encode())
        client.read_head()
        while b"third." not in client.body:
            client.ended = False  # of the first; the others follow
            client.read_some()
        said = re.findall(rb"(first|second|third)\.", client.body)
    assert list(dict.fromkeys(said)) == [b"first", b"second", b"third"]


def test_a_gone_client_gives_its_place_in_line_away(upstream: Upstream, start_proxy) -> None:
    proxy = start_proxy(server={"max_concurrent": 1, "queue": 5, "queue_timeout": "10m"})
    upstream.reply = STALLED["before the head"]
    with RawClient(proxy.port) as at_work:
        at_work.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT).encode())
        upstream.wait_for_requests(1)
        with RawClient(proxy.port) as in_line:
            in_line.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT).encode())
            until(lambda: b"overload" in fetch(proxy.port, "GET", "/readyz").body)
        until(lambda: b"overload" not in fetch(proxy.port, "GET", "/readyz").body)
    upstream.reset()
    assert post_chat(proxy.port, CHAT).status == 200
    assert len(upstream.exchanges) == 1


def test_a_gone_client_leaves_the_proxy_serving(upstream: Upstream, proxy) -> None:
    for stage in STALLED.values():
        upstream.reply = stage
        with RawClient(proxy.port) as client:
            client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT | {"stream": True}).encode())
            time.sleep(0.05)
    upstream.reset()
    assert post_chat(proxy.port, CHAT).status == 200


def test_a_slow_reader_slows_the_upstream_down(upstream: Upstream, proxy) -> None:
    """A stream that nobody reads is not collected in memory."""
    event = delta_events([(0, {"content": "", "padding": "x" * 100_000}, None)])[0]
    upstream.reply = stream_reply([event] * 600)
    with RawClient(proxy.port) as client:
        client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT | {"stream": True}).encode())
        client.read_head()
        assert not upstream.exchanges[0].done.wait(1.5), "60 MB were taken for a client that reads nothing"
        client.read_to_end()
    assert client.ended
    assert upstream.exchanges[0].done.is_set()
