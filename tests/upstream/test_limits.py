"""Limits on the requests to one upstream, and the handling of requests over them."""

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.config.settings import Limits
from groundwire.errors import UpstreamBroken, UpstreamBusy
from groundwire.limits import SlidingWindow
from groundwire.upstream.upstream import LimitedUpstream
from groundwire.wire import Call, Chunks, Reply

CALL = Call("POST", "/chat/completions", (), b"{}")


class Counting:
    """An upstream that answers unless `fails` is set, and counts its requests."""

    name, provider, forwards_documents, truncation_alarm, is_ollama = "gpu", "openai", True, False, True
    has_logprobs = True

    def __init__(self) -> None:
        self.asked = 0
        self.fails: Exception | None = None
        self.streams = True
        self.closed = False

    async def send(self, call: Call) -> Reply:
        self.asked += 1
        if self.fails:
            raise self.fails
        return Reply(200, (), self._chunks() if self.streams else b"whole")

    async def _chunks(self) -> Chunks:
        yield b"one"
        yield b"two"

    async def aclose(self) -> None:
        self.closed = True


def limited(**limits: Any) -> tuple[LimitedUpstream, Counting]:
    counting = Counting()
    return LimitedUpstream(counting, Limits(**limits)), counting


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


async def rest(reply: Reply) -> list[bytes]:
    assert not isinstance(reply.body, bytes)
    return [chunk async for chunk in reply.body]


def test_a_stream_is_in_flight_until_its_last_byte() -> None:
    async def work() -> None:
        upstream, counting = limited(max_concurrent=1, queue_timeout=20.0)
        first = await upstream.send(CALL)
        second = asyncio.create_task(upstream.send(CALL))
        await asyncio.sleep(0.01)
        assert counting.asked == 1
        assert await rest(first) == [b"one", b"two"]
        assert await rest(await second) == [b"one", b"two"]
        assert counting.asked == 2

    run(work())


@pytest.mark.parametrize("how", ["closed in the middle", "closed unread", "dropped unread", "failed", "whole"])
def test_room_is_freed_however_a_request_ends(how: str) -> None:
    async def work() -> None:
        upstream, counting = limited(max_concurrent=1, queue_timeout=20.0)
        counting.streams = how != "whole"
        counting.fails = UpstreamBroken("x") if how == "failed" else None
        if how == "failed":
            with pytest.raises(UpstreamBroken):
                await upstream.send(CALL)
            counting.fails = None
        else:
            reply = await upstream.send(CALL)
            if how == "closed in the middle":
                assert await anext(reply.body) == b"one"
            if how.startswith("closed"):
                await reply.body.aclose()
            del reply
            gc.collect()
        assert (await upstream.send(CALL)).status == 200

    run(work())


def test_over_the_line_there_is_no_waiting() -> None:
    async def work() -> None:
        upstream, counting = limited(max_concurrent=1, queue=1, queue_timeout=20.0)
        first = await upstream.send(CALL)
        waiting = asyncio.create_task(upstream.send(CALL))
        await asyncio.sleep(0)
        with pytest.raises(UpstreamBusy, match="'gpu' has no room") as caught:
            await upstream.send(CALL)
        assert caught.value.after == 20.0
        await rest(first)
        await rest(await waiting)
        assert counting.asked == 2

    run(work())


def test_waiting_has_an_end() -> None:
    async def work() -> None:
        upstream, counting = limited(max_concurrent=1, queue_timeout=0.02)
        first = await upstream.send(CALL)
        with pytest.raises(UpstreamBusy):
            await upstream.send(CALL)
        await rest(first)
        assert (await upstream.send(CALL)).status == 200
        assert counting.asked == 2

    run(work())


def test_a_request_that_leaves_the_queue_makes_room_for_the_next() -> None:
    async def work() -> None:
        upstream, counting = limited(max_concurrent=1, queue=1, queue_timeout=20.0)
        first = await upstream.send(CALL)
        leaving = asyncio.create_task(upstream.send(CALL))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])
        staying = asyncio.create_task(upstream.send(CALL))
        await rest(first)
        await rest(await staying)
        assert counting.asked == 2

    run(work())


def test_never_more_than_so_many_at_once_and_all_are_served_in_turn() -> None:
    async def work() -> None:
        upstream, counting = limited(max_concurrent=3, queue=50, queue_timeout=20.0)
        most = in_flight = 0

        async def one() -> None:
            nonlocal most, in_flight
            reply = await upstream.send(CALL)
            in_flight += 1
            most = max(most, in_flight)
            await asyncio.sleep(0)
            in_flight -= 1
            await rest(reply)

        await asyncio.gather(*(one() for _ in range(50)))
        assert (most, counting.asked) == (3, 50)

    run(work())


def test_a_request_over_the_rate_gets_the_remaining_wait() -> None:
    async def work() -> None:
        upstream, counting = limited(per_minute=2, queue_timeout=5.0)
        for _ in range(2):
            await upstream.send(CALL)
        with pytest.raises(UpstreamBusy) as caught:
            await upstream.send(CALL)
        assert 30 < caught.value.after <= 60
        assert counting.asked == 2

    run(work())


@given(st.integers(1, 5), st.lists(st.floats(0, 30), max_size=40))
def test_no_minute_has_more_starts_than_it_may(per_minute: int, gaps: list[float]) -> None:
    window, now, starts = SlidingWindow(per_minute), 0.0, []
    for at, gap in enumerate(gaps):
        now += gap
        starts.append(window.reserve(now))
        if at % 7 == 6 and starts[-1] > now:
            window.cancel(starts.pop())
    starts.sort()
    assert all(later - earlier >= 59.999 for earlier, later in zip(starts, starts[per_minute:], strict=False))


def test_it_is_the_upstream_in_all_else() -> None:
    upstream, counting = limited(max_concurrent=1)
    assert (upstream.name, upstream.provider) == ("gpu", "openai")
    assert (upstream.forwards_documents, upstream.truncation_alarm, upstream.is_ollama) == (True, False, True)
    assert upstream.has_logprobs
    run(upstream.aclose())
    assert counting.closed
