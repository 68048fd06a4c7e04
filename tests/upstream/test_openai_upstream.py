"""Requests that reach an OpenAI-dialect upstream, and the names of its failures."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import pytest
import respx

from groundwire.errors import (
    BadRequest,
    RequestError,
    UpstreamBroken,
    UpstreamConnectTimeout,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from groundwire.upstream.http import HttpxClient
from groundwire.upstream.upstream import OpenAIUpstream
from groundwire.wire import Call, Headers, Reply

BASE = "http://upstream.internal:8000/v1"


def upstream(router: respx.Router, base_url: str = BASE, **options: Any) -> OpenAIUpstream:
    return OpenAIUpstream("up", base_url, HttpxClient(httpx.MockTransport(router.async_handler)), **options)


def call(target: str = "/chat/completions", *headers: tuple[bytes, bytes], body: bytes = b"{}") -> Call:
    return Call("POST", target, headers, body)


async def exchanged(serving: OpenAIUpstream, sent: Call) -> tuple[Reply, bytes]:
    reply = await serving.send(sent)
    assert not isinstance(reply.body, bytes)
    return reply, b"".join([chunk async for chunk in reply.body])


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def sent_on(serving_options: dict[str, Any], sent: Call, base_url: str = BASE) -> httpx.Request:
    """The request as the upstream got it."""
    with respx.mock(assert_all_called=False) as router:
        router.route().respond(200, json={})
        run(exchanged(upstream(router, base_url, **serving_options), sent))
        return router.calls.last.request


@pytest.mark.parametrize(
    ("base_url", "target", "raw_path"),
    [
        (BASE, "/chat/completions", b"/v1/chat/completions"),
        (BASE + "/", "/chat/completions", b"/v1/chat/completions"),
        ("http://up", "/models", b"/models"),
        ("http://up/a/b/v1", "/models", b"/a/b/v1/models"),
        (BASE, "/files?purpose=batch&after=a%2Fb&x=%20+1", b"/v1/files?purpose=batch&after=a%2Fb&x=%20+1"),
        (BASE, "/models/org%2Fname", b"/v1/models/org%2Fname"),
        (BASE, "/models/a:b@c!$&'()*+,;=~", b"/v1/models/a:b@c!$&'()*+,;=~"),
        (BASE, "/x?a[]=1&b={}", b"/v1/x?a[]=1&b={}"),
        (BASE, "/x?", b"/v1/x?"),
        (BASE, "/x?q=1?2", b"/v1/x?q=1?2"),
        (BASE, "/ü\n x", b"/v1/%C3%BC%0A%20x"),
    ],
    ids=str,
)
def test_the_target_is_reached_as_it_was_written(base_url: str, target: str, raw_path: bytes) -> None:
    assert sent_on({}, call(target), base_url).url.raw_path == raw_path


def test_only_the_configured_host_is_ever_called() -> None:
    for target in ("//evil.example/x", "/x#y", "/\\evil.example", "/@evil.example/", "/http://evil.example/"):
        url = sent_on({}, call(target)).url
        assert (url.host, url.raw_path.startswith(b"/v1/")) == ("upstream.internal", True)


@pytest.mark.parametrize(
    "target",
    [
        "/../../x",
        "/..",
        "/.",
        "/a/../../x?y=1",
        "/%2e%2e/x",
        "/.%2E/x",
        "/%252e%252e/x",
        "/..%2fx",
        "/..\\x",
        "/a%5c..%5cx",
        "/..;/x",
        "/..%3Bx=1/x",
        "/..%00/x",
        "/..%20/x",
        "/%c0%ae%c0%ae/x",
        "@evil.example/",
        "evil/x",
    ],
)
def test_no_target_leaves_the_path_of_the_base_url(target: str) -> None:
    for base_url in (BASE, "http://up", "http://up/tenant-a/v1/"):
        with pytest.raises(BadRequest):
            sent_on({}, call(target), base_url)


def test_dots_that_resolve_to_nothing_are_sent_as_they_are() -> None:
    for target in ("/a..b/c", "/.../x", "/.hidden", "/x.y?path=../../z"):
        assert sent_on({}, call(target)).url.raw_path == b"/v1" + target.encode()


def test_the_body_is_reached_byte_by_byte() -> None:
    body = b'{ "a" : NaN, "a":1 }\n\xff'
    assert sent_on({}, call(body=body)).content == body


def test_headers_arrive_with_nothing_added_but_the_host() -> None:
    sent = sent_on({}, call("/x", (b"accept", b"*/*"), (b"x-a", b"1"), (b"x-a", b"2"), body=b""))
    assert [(name.lower(), value) for name, value in sent.headers.raw if name.lower() != b"content-length"] == [
        (b"host", b"upstream.internal:8000"),
        (b"accept", b"*/*"),
        (b"x-a", b"1"),
        (b"x-a", b"2"),
    ]


def test_a_configured_key_takes_the_place_of_every_key_of_the_client() -> None:
    keys: Headers = ((b"authorization", b"Bearer client"), (b"x-api-key", b"client"), (b"api-key", b"client"))
    sent = sent_on({"key": "configured"}, call("/x", *keys))
    assert sent.headers["authorization"] == "Bearer configured"
    assert b"client" not in b"".join(value for _, value in sent.headers.raw)


def test_without_a_configured_key_the_clients_own_goes_on() -> None:
    assert sent_on({}, call("/x", (b"authorization", b"Bearer client"))).headers["authorization"] == "Bearer client"


@pytest.mark.parametrize("status", [200, 201, 204, 301, 400, 401, 404, 429, 500, 503, 529])
def test_every_status_is_the_upstreams(status: int) -> None:
    with respx.mock() as router:
        router.post(f"{BASE}/x").respond(status, headers={"retry-after": "7", "set-cookie": "a=b"}, content=b"said")
        reply, body = run(exchanged(upstream(router), call("/x")))
        assert (reply.status, body) == (status, b"said")
        assert dict(reply.headers)[b"retry-after"] == b"7"
        assert b"set-cookie" not in dict(reply.headers)
        assert len(router.calls) == 1


MEANINGS: dict[str, tuple[Callable[..., httpx.TransportError], type[RequestError]]] = {
    "refused": (httpx.ConnectError, UpstreamUnreachable),
    "connect timeout": (httpx.ConnectTimeout, UpstreamConnectTimeout),
    "read timeout": (httpx.ReadTimeout, UpstreamTimeout),
    "write timeout": (httpx.WriteTimeout, UpstreamTimeout),
    "pool timeout": (httpx.PoolTimeout, UpstreamTimeout),
    "cut": (httpx.RemoteProtocolError, UpstreamBroken),
    "read error": (httpx.ReadError, UpstreamBroken),
    "write error": (httpx.WriteError, UpstreamBroken),
    "no such protocol": (httpx.UnsupportedProtocol, UpstreamUnreachable),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_a_failure_before_the_answer_raises_its_specific_error(name: str) -> None:
    raised, meaning = MEANINGS[name]
    with respx.mock() as router:
        router.post(f"{BASE}/x").mock(side_effect=raised("[Errno 111] to upstream.internal:8000"))
        with pytest.raises(meaning) as caught:
            run(exchanged(upstream(router, key="secret"), call("/x")))
        assert type(caught.value) is meaning
        assert len(router.calls) == 1


@pytest.mark.parametrize("name", MEANINGS)
def test_the_address_is_in_the_text_for_the_operator_only(name: str) -> None:
    raised, _ = MEANINGS[name]
    with respx.mock() as router:
        router.post(f"{BASE}/x").mock(side_effect=raised("[Errno 111] to upstream.internal:8000"))
        with pytest.raises(RequestError) as caught:
            run(exchanged(upstream(router, key="secret"), call("/x")))
    assert "'up'" in str(caught.value)
    assert not [word for word in ("internal", "8000", "http", "Errno", "secret") if word in str(caught.value)]
    assert "upstream.internal:8000" in caught.value.operator
    assert "secret" not in caught.value.operator


class Breaking(httpx.AsyncByteStream):
    """A body of one chunk, then this error; it remembers that it was closed."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.closed = False

    async def __aiter__(self) -> Any:
        yield b"half"
        if self.error:
            raise self.error
        yield b"whole"

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (httpx.ReadError("x"), UpstreamBroken),
        (httpx.RemoteProtocolError("x"), UpstreamBroken),
        (httpx.ReadTimeout("x"), UpstreamTimeout),
    ],
    ids=["reset", "cut", "silence"],
)
def test_a_body_that_breaks_off_raises_after_the_received_chunks(error: Exception, meaning: type[RequestError]) -> None:
    stream, came = Breaking(error), []

    async def work() -> None:
        serving = OpenAIUpstream(
            "up", BASE, HttpxClient(httpx.MockTransport(lambda _: httpx.Response(200, stream=stream)))
        )
        reply = await serving.send(call("/x"))
        assert not isinstance(reply.body, bytes)
        async for chunk in reply.body:
            came.append(chunk)  # noqa: PERF401 - what came before the break is wanted

    with pytest.raises(meaning):
        run(work())
    assert came == [b"half"]
    assert stream.closed


def test_closing_the_chunks_closes_the_upstreams_body() -> None:
    stream = Breaking(None)

    async def work() -> None:
        serving = OpenAIUpstream(
            "up", BASE, HttpxClient(httpx.MockTransport(lambda _: httpx.Response(200, stream=stream)))
        )
        reply = await serving.send(call("/x"))
        assert not isinstance(reply.body, bytes)
        assert await anext(reply.body) == b"half"
        await reply.body.aclose()

    run(work())
    assert stream.closed
