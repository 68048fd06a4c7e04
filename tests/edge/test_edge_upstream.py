"""The tests' model server behaves as the other edge tests assume."""

import httpx
import openai
import pytest

from tests.edge.clients import RawClient, data_of, events_of, fetch, post_chat
from tests.edge.upstream import (
    Cut,
    Pause,
    Reply,
    Stall,
    Upstream,
    Wait,
    byte_by_byte,
    chat_body,
    chat_events,
    error_reply,
    gzip_reply,
    lock_step,
    stream_reply,
    tool_call_events,
)

QUESTION = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Which colour?"}]}
SHAPES = ("openai", "ollama", "vllm")


@pytest.mark.parametrize("shape", SHAPES)
def test_the_sdk_reads_the_same_answer_whole_and_streamed(upstream: Upstream, direct: openai.OpenAI, shape) -> None:
    upstream.reply = Reply((chat_body("Blue, 🟦 as a rule.", shape=shape),))
    whole = direct.chat.completions.create(**QUESTION).choices[0].message.content
    upstream.reply = stream_reply(chat_events("Blue, 🟦 as a rule.", shape=shape, include_usage=True))
    chunks = list(direct.chat.completions.create(**QUESTION, stream=True))
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert whole == streamed == "Blue, 🟦 as a rule."
    assert chunks[-1].usage is not None


def test_choices_take_turns_and_end_apart() -> None:
    events = [data_of(event) for event in chat_events("One.", "Two and a half.")]
    ends = [i for i, event in enumerate(events) if b'"finish_reason":"stop"' in event]
    assert len(ends) == 2
    assert any(b'"index":1' in event for event in events[ends[0] + 1 : ends[1]])


def test_tool_calls_come_in_pieces(upstream: Upstream, direct: openai.OpenAI) -> None:
    upstream.reply = stream_reply(tool_call_events())
    calls = [
        call
        for chunk in direct.chat.completions.create(**QUESTION, stream=True)
        for call in chunk.choices[0].delta.tool_calls or ()
    ]
    assert "".join(call.function.arguments for call in calls) == '{"city": "Oslo", "unit": "°C"}'
    assert len(calls) > 2


def test_bytes_are_written_one_by_one(upstream: Upstream) -> None:
    upstream.reply = Reply(byte_by_byte("é🟦".encode()), framing="chunked")
    with RawClient(upstream.port) as client:
        client.send("GET", "/v1/anything")
        client.read_head()
        client.read_to_end()
    assert (client.body, client.ended) == ("é🟦".encode(), True)


def test_lock_step_waits_for_the_receipt(upstream: Upstream) -> None:
    steps, receipts = lock_step([b"one", b"two"])
    upstream.reply = Reply(steps, framing="chunked")
    with RawClient(upstream.port) as client:
        client.send("GET", "/v1/anything")
        client.read_head()
        client.read_until(b"one")
        assert client.body == b"one"
        receipts[0].set()
        client.read_until(b"two")
        receipts[1].set()
        client.read_to_end()
    assert client.ended


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_a_cut_body_does_not_end(upstream: Upstream, reset: bool) -> None:
    upstream.reply = Reply((b"data: 1\n\n", Pause(0.05), Cut(reset)), framing="chunked")
    client = fetch(upstream.port, "GET", "/v1/anything")
    assert (client.body, client.ended) == (b"data: 1\n\n", False)


def test_a_client_that_leaves_is_noticed(upstream: Upstream) -> None:
    upstream.reply = Reply((b"data: 1\n\n", Stall()), framing="chunked")
    with RawClient(upstream.port) as client:
        client.send("GET", "/v1/anything")
        client.read_head()
        client.read_until(b"1")
        assert not upstream.exchanges[0].left.is_set()
    assert upstream.exchanges[0].left.wait(60)
    assert not upstream.exchanges[0].done.is_set()


def test_a_slow_head_keeps_the_client_waiting(upstream: Upstream) -> None:
    upstream.reply = Reply((b"{}",), before=(Pause(1.0),))
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{upstream.base_url}/anything", timeout=0.1)


@pytest.mark.parametrize("streamed", [False, True], ids=["body", "stream"])
def test_gzip_is_gzip(upstream: Upstream, streamed: bool) -> None:
    plain = chat_events("Blue.") if streamed else (chat_body("Blue."),)
    upstream.reply = gzip_reply(Reply(plain, framing="chunked" if streamed else "length"))
    response = httpx.get(f"{upstream.base_url}/anything")
    assert response.headers["content-encoding"] == "gzip"
    assert response.content == b"".join(plain)


def test_errors_arrive_as_the_sdk_expects_them(upstream: Upstream, direct: openai.OpenAI) -> None:
    upstream.reply = error_reply(429, "Slow down.", type="requests", code="rate_limit_exceeded").with_headers(
        ("retry-after", "7")
    )
    with pytest.raises(openai.RateLimitError) as caught:
        direct.chat.completions.create(**QUESTION)
    assert (caught.value.code, caught.value.response.headers["retry-after"]) == ("rate_limit_exceeded", "7")


def test_everything_else_is_echoed_as_it_came(upstream: Upstream) -> None:
    echoed = fetch(upstream.port, "PUT", "/v1/a%2Fb?x=%20y&x=2", [("X-Odd", "1")], b"\x00\xff").json()
    assert (echoed["path"], echoed["query"], echoed["body"]) == ("/v1/a%2Fb", "x=%20y&x=2", "AP8=")
    assert ["X-Odd", "1"] in echoed["headers"]


def test_requests_are_recorded_as_they_arrived(upstream: Upstream) -> None:
    post_chat(upstream.port, b'{"model": "m",  "messages": []}')
    assert upstream.last.body == b'{"model": "m",  "messages": []}'
    assert upstream.last.header("Authorization") == "Bearer sk-test"


def test_events_keep_their_bytes() -> None:
    body = b": hi\n\ndata: 1\ndata:2\n\ndata: 3\r\n\r\ndata: un"
    assert b"".join(events_of(body)) == body
    assert [data_of(event) for event in events_of(body)] == [b"", b"1\n2", b"3", b"un"]


def test_waiting_steps_hold_the_head_too(upstream: Upstream) -> None:
    import threading

    gate = threading.Event()
    upstream.reply = Reply((b"{}",), before=(Wait(gate),))
    threading.Timer(0.2, gate.set).start()
    assert fetch(upstream.port, "GET", "/v1/anything").body == b"{}"
    assert gate.is_set()
