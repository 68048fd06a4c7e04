"""The transport against a real, misbehaving server: every failure has its right name."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import aiohttp
import httpx
import pytest

from groundwire.errors import UpstreamBroken, UpstreamTimeout, UpstreamUnreachable
from groundwire.upstream.http import AiohttpClient, to_httpx
from groundwire.upstream.upstream import OpenAIUpstream
from groundwire.wire import Call, Reply

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


class Server:
    """A server on a free port that reads one request head and body, then calls `behave`."""

    def __init__(self, behave: Behaviour) -> None:
        self._behave = behave
        self.requests: list[bytes] = []
        self.left = asyncio.Event()

    async def __aenter__(self) -> "Server":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0)
                self.requests.append(head + await reader.readexactly(length))
                await self._behave(reader, writer)
                if writer.is_closing():
                    break
        self.left.set()
        writer.close()


def answers(*pieces: bytes | float, close: bool = False) -> Behaviour:
    """Return a behaviour that writes bytes and sleeps for numbers."""

    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            if isinstance(piece, bytes):
                writer.write(piece)
                await writer.drain()
            else:
                await asyncio.sleep(piece)
        if close:
            writer.close()

    return behave


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


async def exchanged(
    url: str, target: str = "/x", *headers: tuple[bytes, bytes], body: bytes = b""
) -> tuple[Reply, bytes]:
    upstream = OpenAIUpstream("up", url, AiohttpClient(), timeout=0.3, connect_timeout=0.3)
    try:
        reply = await upstream.send(Call("POST", target, headers, body))
        assert not isinstance(reply.body, bytes)
        return reply, b"".join([chunk async for chunk in reply.body])
    finally:
        await upstream.aclose()


def test_a_refused_connection_is_no_timeout() -> None:
    async def work() -> None:
        async with Server(answers()) as server:
            url = server.url
        with pytest.raises(UpstreamUnreachable) as caught:
            await exchanged(url)
        assert "127.0.0.1" not in str(caught.value)
        assert "127.0.0.1" in caught.value.operator

    run(work())


def test_a_host_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(UpstreamUnreachable):
        run(exchanged("http://no-such-host.invalid/v1"))


def test_a_connection_that_nobody_accepts_times_out() -> None:
    """A listening socket whose backlog is full: the handshake never ends, and the system waits for two minutes."""
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        address = listening.getsockname()
        filling = [socket.socket() for _ in range(4)]
        for each in filling:
            each.setblocking(False)
            each.connect_ex(address)
        try:
            with pytest.raises(UpstreamTimeout, match="accept a connection"):
                run(exchanged(f"http://127.0.0.1:{address[1]}/v1"))
        finally:
            for each in filling:
                each.close()


@pytest.mark.parametrize(
    ("pieces", "close", "meaning"),
    [
        pytest.param((2.0,), False, UpstreamTimeout, id="silence before the head"),
        pytest.param((b"HTTP/1.1 200", 2.0), False, UpstreamTimeout, id="silence within the head"),
        pytest.param(
            (OK + b"Content-Length: 9\r\n\r\nhalf", 2.0), False, UpstreamTimeout, id="silence within the body"
        ),
        pytest.param((), True, UpstreamBroken, id="cut before the head"),
        pytest.param((b"HTTP/1.1 200",), True, UpstreamBroken, id="cut within the head"),
        pytest.param((OK + b"Content-Length: 9\r\n\r\nhalf",), True, UpstreamBroken, id="cut within the body"),
        pytest.param((OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",), True, UpstreamBroken, id="cut chunks"),
        pytest.param((b"SSH-2.0-OpenSSH\r\n\r\n",), True, UpstreamBroken, id="no HTTP at all"),
        pytest.param((OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",), True, UpstreamBroken, id="no chunk size"),
    ],
)
def test_each_failure_raises_its_specific_error(pieces: tuple[Any, ...], close: bool, meaning: type[Exception]) -> None:
    async def work() -> None:
        async with Server(answers(*pieces, close=close)) as server:
            with pytest.raises(meaning) as caught:
                await exchanged(server.url)
            assert type(caught.value) is meaning
            assert "127.0.0.1" not in str(caught.value)

    run(work())


def test_a_body_that_ends_with_its_connection_is_whole() -> None:
    async def work() -> None:
        async with Server(answers(OK + b"\r\nall of it", close=True)) as server:
            assert (await exchanged(server.url))[1] == b"all of it"

    run(work())


def test_target_headers_and_body_arrive_as_sent() -> None:
    async def work() -> None:
        async with Server(answers(OK + b"Content-Length: 0\r\n\r\n")) as server:
            await exchanged(server.url, "/a%2Fb?q=%20&r=a+b&s={}", (b"x-a", b"1"), (b"x-a", b"2"), body=b"\x00\xff")
            head, _, body = server.requests[0].partition(b"\r\n\r\n")
            line, *headers = head.split(b"\r\n")
            assert line == b"POST /v1/a%2Fb?q=%20&r=a+b&s={} HTTP/1.1"
            assert sorted(name.lower() for name in headers if not name.lower().startswith(b"host:")) == [
                b"content-length: 2",
                b"x-a: 1",
                b"x-a: 2",
            ]
            assert body == b"\x00\xff"

    run(work())


def test_bodies_keep_their_coding_and_redirects_are_answers() -> None:
    zipped = gzip.compress(b"text")
    head = b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Encoding: gzip\r\n"

    async def work() -> None:
        async with Server(answers(head + b"Content-Length: %d\r\n\r\n" % len(zipped) + zipped)) as server:
            reply, body = await exchanged(server.url)
            assert (reply.status, body) == (302, zipped)
            assert dict(reply.headers)[b"content-encoding"] == b"gzip"

    run(work())


@pytest.mark.parametrize("chunks_read", [0, 1])
def test_a_reply_that_is_closed_before_its_end_ends_the_call(chunks_read: int) -> None:
    endless = (OK + b"Transfer-Encoding: chunked\r\n\r\n", *[b"1\r\nx\r\n", 0.01] * 1000)

    async def work() -> None:
        async with Server(answers(*endless)) as server:
            upstream = OpenAIUpstream("up", server.url, AiohttpClient())
            reply = await upstream.send(Call("POST", "/x", (), b""))
            assert not isinstance(reply.body, bytes)
            for _ in range(chunks_read):
                assert await anext(reply.body)
            await reply.body.aclose()
            await asyncio.wait_for(server.left.wait(), 60)
            await upstream.aclose()

    run(work())


def test_connections_are_used_again() -> None:
    async def work() -> None:
        async with Server(answers(OK + b"Content-Length: 2\r\n\r\nok")) as server:
            upstream = OpenAIUpstream("up", server.url, AiohttpClient())
            for _ in range(5):
                reply = await upstream.send(Call("GET", "/x", (), b""))
                assert not isinstance(reply.body, bytes)
                assert b"".join([chunk async for chunk in reply.body]) == b"ok"
                assert not server.left.is_set()
            assert len(server.requests) == 5
            await upstream.aclose()

    run(work())


def test_a_request_is_sent_on_a_new_connection_when_a_pooled_one_was_closed() -> None:
    once = answers(OK + b"Content-Length: 2\r\n\r\nok", 0.05, close=True)

    async def work() -> None:
        async with Server(once) as server:
            upstream = OpenAIUpstream("up", server.url, AiohttpClient())
            for _ in range(3):
                reply = await upstream.send(Call("GET", "/x", (), b""))
                assert not isinstance(reply.body, bytes)
                assert b"".join([chunk async for chunk in reply.body]) == b"ok"
                await asyncio.wait_for(server.left.wait(), 60)
                server.left.clear()
            assert len(server.requests) == 3
            await upstream.aclose()

    run(work())


def test_interim_answers_are_not_the_answer() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"

    async def work() -> None:
        async with Server(answers(interim + OK + b"Content-Length: 2\r\n\r\nok")) as server:
            reply, body = await exchanged(server.url)
            assert (reply.status, body) == (200, b"ok")

    run(work())


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_answers_without_a_body_end_with_their_head(status: bytes) -> None:
    async def work() -> None:
        async with Server(answers(b"HTTP/1.1 " + status + b"\r\n\r\n")) as server:
            reply, body = await exchanged(server.url)
            assert (reply.status, body) == (int(status[:3]), b"")

    run(work())


def test_the_answer_to_head_has_no_body() -> None:
    async def work() -> None:
        async with Server(answers(OK + b"Content-Length: 9\r\n\r\n")) as server:
            upstream = OpenAIUpstream("up", server.url, AiohttpClient())
            reply = await upstream.send(Call("HEAD", "/x", (), b""))
            assert not isinstance(reply.body, bytes)
            assert [chunk async for chunk in reply.body] == []
            assert (b"content-length", b"9") in reply.headers
            await upstream.aclose()

    run(work())


def test_a_connection_that_was_answered_before_it_had_the_request_is_not_used_again() -> None:
    """Bytes that the server left unread would be taken for the next request."""
    bodies: list[int] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        bodies.append(0)
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(1)
        writer.close()

    async def work() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        upstream = OpenAIUpstream("up", url, AiohttpClient())
        for _ in range(2):
            reply = await upstream.send(Call("POST", "/x", (), b"x" * 2**25))
            assert reply.status == 413
            assert not isinstance(reply.body, bytes)
            assert [chunk async for chunk in reply.body] == []
        assert len(bodies) == 2
        await upstream.aclose()
        server.close()

    run(work())


@pytest.mark.parametrize("value", [b"a\r\nx-b: 1", b"a\nb", b"a\0b"])
def test_a_header_that_would_be_two_is_not_sent(value: bytes) -> None:
    async def work() -> None:
        async with Server(answers(OK + b"Content-Length: 0\r\n\r\n")) as server:
            with pytest.raises(UpstreamBroken):
                await exchanged(server.url, "/x", (b"x-a", value))
            assert server.requests == []

    run(work())


def test_every_error_of_aiohttp_has_a_meaning() -> None:
    """An exception that aiohttp adds is at least a broken connection; the known ones are distinguished."""
    raised = [
        each for each in vars(aiohttp).values() if isinstance(each, type) and issubclass(each, aiohttp.ClientError)
    ]
    assert len(raised) > 10
    for kind in raised:
        error = type(kind.__name__, (kind,), {"__init__": lambda self: None, "__str__": lambda self: "x"})()
        assert isinstance(to_httpx(error), httpx.TransportError), kind
