"""Limits of an upstream over real sockets: streams hold their slots; a client without one gets a time to retry."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from structlog.testing import capture_logs

from tests.edge.clients import JSON_HEADERS, RawClient, post_chat, sdk, until
from tests.edge.upstream import Pause, Reply, Stall, Upstream, Wait, body_reply, chat_body, chat_events, stream_reply

CHAT = {"model": "m", "messages": [{"role": "system", "content": "The sky is blue."}]}
EVENTS = chat_events("The sky is blue.")


@pytest.fixture
def start(upstream: Upstream, second_upstream: Upstream, start_proxy):
    """Start a proxy whose upstream has limits, with a spare one on request."""

    def start(spare: bool = False, **limits: object):
        up = {"base_url": upstream.base_url, "limits": limits, "fallbacks": ["spare/*"] if spare else []}
        return start_proxy(upstreams={"up": up, "spare": {"base_url": second_upstream.base_url, "models": []}})

    return start


def streaming(port: int, upstream: Upstream, count: int) -> RawClient:
    """A client in the middle of a stream."""
    client = RawClient(port)
    client.__enter__()
    client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT | {"stream": True}).encode())
    upstream.wait_for_requests(count)
    client.read_head()
    client.read_until(b"data:")
    return client


def test_no_more_requests_are_in_flight_than_may_be(upstream: Upstream, start) -> None:
    proxy = start(max_concurrent=2, queue_timeout="50s")
    lock, in_flight, most = threading.Lock(), 0, 0

    def reply(_: object) -> Reply:
        nonlocal in_flight, most
        with lock:
            in_flight = sum(not exchange.done.is_set() for exchange in upstream.exchanges) + 1
            most = max(most, in_flight)
        return body_reply(chat_body("The sky is blue."))

    upstream.reply = reply
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: post_chat(proxy.port, CHAT), range(24)))
    assert {answer.status for answer in answers} == {200}
    assert len(upstream.requests) == 24
    assert most <= 2


def test_a_stream_holds_its_place_until_its_last_byte(upstream: Upstream, start) -> None:
    proxy, gate = start(max_concurrent=1, queue_timeout="50s"), threading.Event()
    upstream.reply = stream_reply([*EVENTS[:2], Wait(gate), *EVENTS[2:]])
    first = streaming(proxy.port, upstream, 1)
    with ThreadPoolExecutor(1) as pool, capture_logs() as logs:
        upstream.reply = body_reply(chat_body("Blue."))
        second = pool.submit(post_chat, proxy.port, CHAT)
        until(lambda: any(entry["event"] == "request.waits" for entry in logs))
        assert len(upstream.requests) == 1
        gate.set()
        first.read_to_end()
        assert second.result(30).status == 200
    assert first.ended
    assert upstream.exchanges[0].done.is_set()


def test_a_client_that_leaves_gives_its_place_to_the_next(upstream: Upstream, start) -> None:
    proxy = start(max_concurrent=1, queue_timeout="50s")
    upstream.reply = stream_reply([*EVENTS[:2], Stall()])
    first = streaming(proxy.port, upstream, 1)
    upstream.reply = body_reply(chat_body("Blue."))
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(post_chat, proxy.port, CHAT)
        first.leave()
        assert second.result(30).status == 200


def test_a_client_that_leaves_the_queue_causes_no_request(upstream: Upstream, start) -> None:
    proxy, gate = start(max_concurrent=1, queue_timeout="50s"), threading.Event()
    upstream.reply = stream_reply([*EVENTS[:2], Wait(gate), *EVENTS[2:]])
    first = streaming(proxy.port, upstream, 1)
    with capture_logs() as logs:
        with RawClient(proxy.port) as leaving:
            leaving.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT | {"model": "left"}).encode())
            until(lambda: any(entry["event"] == "request.waits" for entry in logs))
        until(lambda: any(entry.get("status") == "client_gone" for entry in logs))
    gate.set()
    first.read_to_end()
    upstream.reply = body_reply(chat_body("Blue."))
    assert post_chat(proxy.port, CHAT).status == 200
    assert all(request.json()["model"] == "m" for request in upstream.requests)


def test_a_client_without_a_slot_in_time_gets_retry_after(upstream: Upstream, start) -> None:
    proxy = start(max_concurrent=1, queue_timeout="20ms")
    upstream.reply = stream_reply([*EVENTS[:2], Stall()])
    first = streaming(proxy.port, upstream, 1)
    with sdk(proxy.base_url) as client, pytest.raises(openai.RateLimitError, match="'up' has no room") as caught:
        client.chat.completions.create(**CHAT)
    assert caught.value.code == "upstream_busy"
    assert caught.value.response.headers["retry-after"] == "1"
    assert len(upstream.requests) == 1
    first.leave()


def test_a_fallback_replaces_an_upstream_without_a_slot(upstream: Upstream, second_upstream: Upstream, start) -> None:
    proxy = start(spare=True, max_concurrent=1, queue=0)
    upstream.reply = stream_reply([*EVENTS[:2], Stall()])
    first = streaming(proxy.port, upstream, 1)
    response = post_chat(proxy.port, CHAT)
    assert (response.status, response.header("x-grounding-attempts")) == (200, "up=busy, spare=answered")
    assert len(second_upstream.requests) == 1
    first.leave()


def test_a_minute_has_so_many_requests(upstream: Upstream, start) -> None:
    proxy = start(per_minute=3, queue_timeout="1s")
    assert [post_chat(proxy.port, CHAT).status for _ in range(4)] == [200, 200, 200, 429]
    assert 1 <= int(post_chat(proxy.port, CHAT).header("retry-after") or 0) <= 60
    assert len(upstream.requests) == 3


def test_however_clients_leave_every_place_comes_back(upstream: Upstream, start) -> None:
    """Clients leave in the queue, before the first byte, in the stream or at its end; no slot is lost."""
    proxy = start(max_concurrent=2, queue=100, queue_timeout="50s")
    upstream.reply = stream_reply([step for event in EVENTS for step in (Pause(0.005), event)])

    def leaving(after: int) -> None:
        with RawClient(proxy.port) as client:
            client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT | {"stream": True}).encode())
            time.sleep(after % 16 / 200)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(leaving, range(64)))
    gate = threading.Event()
    upstream.reset()
    upstream.reply = stream_reply([*EVENTS[:2], Wait(gate), *EVENTS[2:]])
    both = [streaming(proxy.port, upstream, 1), streaming(proxy.port, upstream, 2)]
    gate.set()
    for client in both:
        client.read_to_end()
        assert client.ended
