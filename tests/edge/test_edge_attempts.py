"""Retries before the first byte, and fallbacks, over real sockets."""

import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from structlog.testing import capture_logs

from tests.edge.clients import JSON_HEADERS, RawClient, fetch, post_chat, sdk, until
from tests.edge.upstream import (
    Cut,
    Received,
    Reply,
    Stall,
    Upstream,
    body_reply,
    chat_body,
    chat_events,
    error_reply,
    stream_reply,
)

CHAT = {"model": "m", "messages": [{"role": "system", "content": "The sky is blue."}]}
QUICK = {"count": 3, "initial_backoff": "5ms", "max_backoff": "1s"}
BUSY = error_reply(503, "Come back later.", type="server_error", code="overloaded")
BLUE = body_reply(chat_body("The sky is blue."))


def failing(times: int, failure: Reply, then: Reply = BLUE) -> Callable[[Received], Reply]:
    """A model server that fails a few times, then answers."""
    left = [failure] * times

    def reply(_: Received) -> Reply:
        return left.pop() if left else then

    return reply


@contextlib.contextmanager
def nobody() -> Iterator[str]:
    """The address of a server that refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@pytest.fixture
def retrying(upstream: Upstream, start_proxy):
    """A proxy that tries its one upstream again."""
    return start_proxy(upstreams={"up": {"base_url": upstream.base_url, "retries": QUICK}})


@pytest.fixture
def with_spare(upstream: Upstream, second_upstream: Upstream, start_proxy):
    """A proxy with a model server and a spare one as its fallback, under another name of the model."""

    def start(first: str = upstream.base_url, environ: dict[str, str] | None = None, **options: Any):
        main = {"base_url": first, "models": ["m", "n"], "fallbacks": ["spare/m-small"], **options}
        spare = {"base_url": second_upstream.base_url, "models": []}
        return start_proxy(environ, upstreams={"main": main, "spare": spare})

    return start


# --- retries ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (BUSY, "status_503"),
        (error_reply(429, "Slow down.", type="requests"), "status_429"),
        (Reply(before=(Cut(),)), "broken"),
        (Reply(before=(Cut(reset=True),)), "broken"),
        (Reply(before=(b"HTTP/1.1 200 OK\r\nx: ", Cut())), "broken"),
    ],
    ids=["503", "429", "closed before the head", "reset before the head", "closed in the head"],
)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_upstream_that_fails_and_then_answers(upstream: Upstream, retrying, failure, outcome, streamed) -> None:
    answer = stream_reply(chat_events("The sky is blue.")) if streamed else BLUE
    upstream.reply = failing(2, failure, answer)
    response = post_chat(retrying.port, CHAT | {"stream": streamed})
    assert response.status == 200
    assert response.ended
    assert response.header("x-grounding-upstream") == "up"
    assert response.header("x-grounding-attempts") == f"up={outcome}, up={outcome}, up=answered"
    assert len({request.body for request in upstream.requests}) == 1
    assert len(upstream.requests) == 3
    report = retrying.report(response.header("x-grounding-id"))
    assert report["verdict"] == "grounded"
    assert [attempt["outcome"] for attempt in report["attempts"]] == [outcome, outcome, "answered"]


def test_the_client_gets_the_last_error_of_the_upstream(upstream: Upstream, retrying) -> None:
    upstream.reply = BUSY.with_headers(("x-request-id", "r-1"))
    response = post_chat(retrying.port, CHAT)
    assert (response.status, response.body) == (503, BUSY.body[0])
    assert response.header("x-request-id") == "r-1"
    assert response.header("x-grounding-attempts") == ", ".join(["up=status_503"] * 4)
    assert len(upstream.requests) == 4


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_other_refusals_pass_at_once(upstream: Upstream, retrying, status: int) -> None:
    upstream.reply = error_reply(status, "No.", type="invalid_request_error")
    response = post_chat(retrying.port, CHAT)
    assert response.status == status
    assert response.header("x-grounding-attempts") is None
    assert len(upstream.requests) == 1


def test_an_answer_at_the_first_attempt_reports_no_attempts(upstream: Upstream, retrying) -> None:
    response = post_chat(retrying.port, CHAT)
    assert "attempts" not in response.json()["grounding"]
    assert not [name for name, _ in response.headers if name in ("x-grounding-upstream", "x-grounding-attempts")]


@pytest.mark.parametrize(
    "broken",
    [
        stream_reply([*chat_events("The sky is blue.")[:2], Cut()]),
        stream_reply([Cut(reset=True)]),
        Reply((chat_body("Blue.")[:50], Cut()), framing="chunked"),
    ],
    ids=["in the stream", "before the first event", "in the body"],
)
def test_an_answer_that_breaks_off_is_never_retried(upstream: Upstream, retrying, broken: Reply) -> None:
    upstream.reply = broken
    post_chat(retrying.port, CHAT | {"stream": broken.headers != BLUE.headers})
    assert len(upstream.requests) == 1


@pytest.mark.parametrize(("after_timeout", "asked"), [(False, 1), (True, 3)])
def test_a_timed_out_completion_is_retried_only_where_configured(
    upstream: Upstream, start_proxy, after_timeout: bool, asked: int
) -> None:
    retries = QUICK | {"count": 2, "after_timeout": after_timeout}
    proxy = start_proxy(upstreams={"up": {"base_url": upstream.base_url, "timeout": "100ms", "retries": retries}})
    upstream.reply = Reply(before=(Stall(),))
    assert post_chat(proxy.port, CHAT).status == 504
    assert len(upstream.requests) == asked


def test_retry_after_is_waited_for(upstream: Upstream, retrying) -> None:
    upstream.reply = failing(1, BUSY.with_headers(("retry-after", "1")))
    with capture_logs() as logs:
        assert post_chat(retrying.port, CHAT).status == 200
    assert [int(each["again_in_s"]) for each in logs if each["event"] == "attempt.failed"] == [1]


def test_a_long_retry_after_is_the_clients_to_wait_for(upstream: Upstream, retrying) -> None:
    upstream.reply = BUSY.with_headers(("retry-after", "60"))
    response = post_chat(retrying.port, CHAT)
    assert (response.status, response.header("retry-after")) == (503, "60")
    assert len(upstream.requests) == 1


def test_a_client_that_leaves_ends_the_waiting(upstream: Upstream, start_proxy) -> None:
    patient = {"count": 1, "max_backoff": "600s", "deadline": "600s"}
    proxy = start_proxy(upstreams={"up": {"base_url": upstream.base_url, "retries": patient}})
    upstream.reply = BUSY.with_headers(("retry-after", "500"))
    with capture_logs() as logs:
        with RawClient(proxy.port) as client:
            client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT).encode())
            until(lambda: any(entry["event"] == "attempt.failed" for entry in logs))
        until(lambda: any(entry.get("status") == "client_gone" for entry in logs))
    assert len(upstream.requests) == 1


@pytest.mark.parametrize(("method", "asked"), [("GET", 2), ("POST", 1)])
def test_of_other_paths_only_what_changes_nothing_is_sent_twice(upstream: Upstream, retrying, method, asked) -> None:
    upstream.reply = failing(1, BUSY, body_reply(b"{}"))
    assert fetch(retrying.port, method, "/v1/files", JSON_HEADERS).status == (200 if asked == 2 else 503)
    assert len(upstream.requests) == asked


def test_the_sdk_sees_nothing_of_it(upstream: Upstream, retrying) -> None:
    upstream.reply = failing(1, Reply(before=(Cut(),)))
    with sdk(retrying.base_url) as client:
        assert client.chat.completions.create(**CHAT).choices[0].message.content == "The sky is blue."


# --- fallbacks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_fallback_replaces_an_unreachable_upstream(second_upstream: Upstream, with_spare, streamed) -> None:
    with nobody() as address:
        proxy = with_spare(address)
        raw = b'{"model":"m", "messages":[{"role":"system","content":"The sky is blue."}], "t": 1.0, "stream": %s}'
        response = post_chat(proxy.port, raw % (b"true" if streamed else b"false"))
    assert response.status == 200
    assert response.header("x-grounding-upstream") == "spare"
    assert response.header("x-grounding-attempts") == "main=unreachable, spare=answered"
    (request,) = second_upstream.requests
    assert request.body == (raw % (b"true" if streamed else b"false")).replace(b'"model":"m"', b'"model":"m-small"')
    assert proxy.report(response.header("x-grounding-id"))["attempts"] == [
        {"upstream": "main", "model": "m", "outcome": "unreachable"},
        {"upstream": "spare", "model": "m-small", "outcome": "answered"},
    ]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_these_statuses_are_no_answer(upstream: Upstream, second_upstream: Upstream, with_spare, status: int) -> None:
    upstream.reply = error_reply(status, "No.", type="server_error")
    response = post_chat(with_spare().port, CHAT)
    assert response.status == 200
    assert len(upstream.requests) == len(second_upstream.requests) == 1


def test_statuses_that_trigger_a_fallback_can_be_set(upstream: Upstream, second_upstream: Upstream, with_spare) -> None:
    upstream.reply = error_reply(429, "Slow down.", type="requests")
    assert post_chat(with_spare(fallback_on=[503]).port, CHAT).status == 429
    assert not second_upstream.requests


def test_no_answer_in_time_is_none(upstream: Upstream, second_upstream: Upstream, with_spare) -> None:
    upstream.reply = Reply(before=(Stall(),))
    response = post_chat(with_spare(timeout="100ms").port, CHAT)
    assert response.header("x-grounding-attempts") == "main=timeout, spare=answered"
    assert upstream.exchanges[0].left.wait(60)


def test_it_is_tried_again_before_another_is(upstream: Upstream, with_spare) -> None:
    upstream.reply = BUSY
    response = post_chat(with_spare(retries=QUICK | {"count": 1}).port, CHAT)
    assert response.header("x-grounding-attempts") == "main=status_503, main=status_503, spare=answered"


@pytest.mark.parametrize(
    "worse",
    [
        BUSY,
        error_reply(401, "No key.", type="invalid_request_error"),
        Reply(before=(Cut(),)),
        Reply((b"x" * 100_000,), status=500),
    ],
    ids=["busy too", "not for us", "broken", "a long error"],
)
def test_the_first_error_is_returned_when_no_fallback_answers(
    upstream: Upstream, second_upstream: Upstream, with_spare, worse: Reply
) -> None:
    upstream.reply = error_reply(429, "Slow down.", type="requests", code="rate").with_headers(("retry-after", "7"))
    second_upstream.reply = worse
    with sdk(with_spare().base_url) as client, pytest.raises(openai.RateLimitError, match="Slow down") as caught:
        client.chat.completions.create(**CHAT)
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.response.headers["x-grounding-upstream"] == "main"
    assert caught.value.code == "rate"
    assert len(second_upstream.requests) == 1


def test_an_unreachable_first_upstream_is_reported_when_none_answers(second_upstream: Upstream, with_spare) -> None:
    second_upstream.reply = BUSY
    with nobody() as address:
        response = post_chat(with_spare(address).port, CHAT)
    assert response.status == 502
    assert response.json()["error"]["code"] == "upstream_unreachable"
    assert "'main'" in response.json()["error"]["message"]


def test_an_error_too_large_to_store_is_reported_by_its_status(
    upstream: Upstream, second_upstream: Upstream, with_spare
) -> None:
    upstream.reply, second_upstream.reply = Reply((b"x" * 100_000,), status=503), BUSY
    response = post_chat(with_spare().port, CHAT)
    assert response.status == 503
    assert response.json()["error"]["type"] == "upstream_error"


def test_a_request_that_is_wrong_stays_with_the_first(
    upstream: Upstream, second_upstream: Upstream, with_spare
) -> None:
    upstream.reply = error_reply(400, "No such field.", type="invalid_request_error")
    assert post_chat(with_spare().port, CHAT).status == 400
    assert not second_upstream.requests


def test_the_clients_key_is_for_the_first_alone(upstream: Upstream, second_upstream: Upstream, with_spare) -> None:
    upstream.reply = BUSY
    secret = (*JSON_HEADERS, ("x-api-key", "sk-test"), ("x-kept", "1"))
    assert fetch(with_spare().port, "POST", "/v1/chat/completions", secret, json.dumps(CHAT).encode()).status == 200
    assert upstream.last.header("authorization") == "Bearer sk-test"
    assert not [name for name, value in second_upstream.last.headers if "sk-test" in value]
    assert second_upstream.last.header("x-kept") == "1"


def test_another_model_of_the_same_upstream_gets_it(upstream: Upstream, start_proxy) -> None:
    def reply(received: Received) -> Reply:
        return BLUE if received.json()["model"] == "small" else BUSY

    upstream.reply = reply
    fallbacks = {"*": ["up/medium"], "big": ["up/medium", "up/small"]}
    proxy = start_proxy(upstreams={"up": {"base_url": upstream.base_url, "fallbacks": fallbacks}})
    assert post_chat(proxy.port, CHAT | {"model": "big"}).status == 200
    assert [request.json()["model"] for request in upstream.requests] == ["big", "medium", "small"]
    assert {request.header("authorization") for request in upstream.requests} == {"Bearer sk-test"}
    assert post_chat(proxy.port, CHAT | {"model": "other"}).status == 503


def test_each_upstream_gets_what_it_understands(upstream: Upstream, second_upstream: Upstream, with_spare) -> None:
    upstream.reply = BUSY
    proxy = with_spare(forwards_documents=True)
    post_chat(proxy.port, CHAT | {"documents": ["The sky is blue."], "grounding": {"mode": "off"}})
    assert upstream.last.json() == CHAT | {"documents": ["The sky is blue."]}
    assert second_upstream.last.json() == CHAT | {"model": "m-small"}


def test_embeddings_fall_back_too(upstream: Upstream, second_upstream: Upstream, with_spare) -> None:
    upstream.reply = BUSY
    response = fetch(with_spare().port, "POST", "/v1/embeddings", JSON_HEADERS, b'{"model": "m", "input": "x"}')
    assert response.status == 200
    assert second_upstream.last.json() == {"model": "m-small", "input": "x"}
