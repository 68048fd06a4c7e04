"""GW6: a client that goes away cancels the upstream call within a second."""

import json
import time

import pytest
from clients import JSON_HEADERS, RawClient, post_chat, sdk
from upstream import Pause, Reply, Stall, Step, Upstream, chat_body, chat_events, delta_events, stream_reply

CHAT = {"model": "m", "messages": [{"role": "system", "content": "The sky is blue."}]}
WITHIN_S = 1.0

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


def test_a_gone_client_leaves_the_proxy_serving(upstream: Upstream, proxy) -> None:
    for stage in STALLED.values():
        upstream.reply = stage
        with RawClient(proxy.port) as client:
            client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT | {"stream": True}).encode())
            time.sleep(0.05)
    upstream.reset()
    assert post_chat(proxy.port, CHAT).status == 200


def test_a_slow_reader_slows_the_upstream_down(upstream: Upstream, proxy) -> None:
    """RE2: a stream that nobody reads is not gathered in memory."""
    event = delta_events([(0, {"content": "", "padding": "x" * 100_000}, None)])[0]
    upstream.reply = stream_reply([event] * 600)
    with RawClient(proxy.port) as client:
        client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT | {"stream": True}).encode())
        client.read_head()
        assert not upstream.exchanges[0].done.wait(1.5), "60 MB were taken for a client that reads nothing"
        client.read_to_end()
    assert client.ended
    assert upstream.exchanges[0].done.is_set()
