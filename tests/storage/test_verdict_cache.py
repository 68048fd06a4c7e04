"""Verdicts are cached under exact keys for a while, and equal work in flight runs once."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.domain import Citation, Claim, Judgement, Label, Verdict
from groundwire.report import CacheUse
from groundwire.storage.cache import VerdictCache, size_of


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def judged(name: str, label: Label = "supported") -> Judgement:
    return Judgement(Claim(name, name, 0, 1), Verdict("v", label, 1.0, "m", "r"), 1.0)


class Work:
    """A judge of keys by name that records its requests."""

    def __init__(self, keys: Sequence[bytes], label: Label = "supported") -> None:
        self.asked: list[list[bytes]] = []
        self.keys = keys
        self.label: Label = label

    async def __call__(self, positions: Sequence[int]) -> list[Judgement]:
        wanted = [self.keys[position] for position in positions]
        self.asked.append(wanted)
        await asyncio.sleep(0)
        return [judged(key.decode(), self.label) for key in wanted]


async def fetched(cache: VerdictCache, *keys: bytes, label: Label = "supported") -> tuple[list[str], CacheUse, Work]:
    work = Work(keys, label)
    judgements, use = await cache.get(keys, work)
    return [judgement.claim.id for judgement in judgements], use, work


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


def test_a_computed_verdict_is_not_computed_again() -> None:
    async def work() -> None:
        cache = VerdictCache(10, 60)
        assert (await fetched(cache, b"a", b"b"))[:2] == (["a", "b"], CacheUse(0, 2, None))
        names, use, done = await fetched(cache, b"b", b"c", b"a")
        assert (names, (use.hits, use.misses), done.asked) == (["b", "c", "a"], (2, 1), [[b"c"]])

    run(work())


def test_nothing_is_computed_if_all_is_known_or_nothing_is_requested() -> None:
    async def work() -> None:
        cache = VerdictCache(10, 60)
        await fetched(cache, b"a")
        assert (await fetched(cache, b"a"))[2].asked == []
        assert (await fetched(cache))[:2] == ([], CacheUse(0, 0, None))

    run(work())


class CountedKey(bytes):
    """A key that counts how often it is compared."""

    compared = 0
    __hash__ = bytes.__hash__

    def __eq__(self, other: object) -> bool:
        CountedKey.compared += 1
        return bytes.__eq__(self, other)


def test_many_keys_are_compared_about_once_each() -> None:
    keys = [CountedKey(b"%d" % number) for number in range(2000)]
    names, *_ = run(fetched(VerdictCache(10_000, 60), *keys))
    assert names == [key.decode() for key in keys]
    assert CountedKey.compared < 5 * len(keys)


@given(st.lists(st.binary(max_size=2), min_size=2, max_size=8))
def test_only_the_very_key_is_a_hit(keys: list[bytes]) -> None:
    async def work() -> None:
        cache = VerdictCache(100, 60)
        for at, key in enumerate(keys):
            _, use, _ = await fetched_raw(cache, key)
            assert use.hits == (key in keys[:at])

    async def fetched_raw(cache: VerdictCache, key: bytes) -> tuple[Any, CacheUse, None]:
        async def compute(_: Sequence[int]) -> list[Judgement]:
            return [judged(key.hex())]

        judgements, use = await cache.get([key], compute)
        assert judgements[0].claim.id == key.hex()
        return judgements, use, None

    run(work())


def test_a_verdict_is_cached_for_its_time_and_returned_with_its_age() -> None:
    async def work() -> None:
        clock = Clock()
        cache = VerdictCache(10, 60, clock)
        await fetched(cache, b"a")
        clock.now = 20
        await fetched(cache, b"b")
        clock.now = 59
        assert (await fetched(cache, b"a", b"b"))[1] == CacheUse(2, 0, 59)
        clock.now = 61
        assert (await fetched(cache, b"a", b"b"))[1] == CacheUse(1, 1, 41)

    run(work())


@pytest.mark.parametrize(("entries", "ttl"), [(0, 60.0), (10, 0.0)], ids=["no entries", "no time"])
def test_a_cache_of_nothing_keeps_nothing(entries: int, ttl: float) -> None:
    async def work() -> None:
        cache = VerdictCache(entries, ttl, Clock())
        for _ in range(2):
            names, use, done = await fetched(cache, b"a", b"a")
            assert (names, use, done.asked) == (["a", "a"], CacheUse(0, 2, None), [[b"a"]])

    run(work())


def test_the_number_of_entries_is_bounded() -> None:
    async def work() -> None:
        cache = VerdictCache(3, 60)
        for at in range(10):
            await fetched(cache, str(at).encode())
        _, use, _ = await fetched(cache, *(str(at).encode() for at in range(10)))
        assert use.hits == 3

    run(work())


def test_an_unchecked_verdict_is_returned_and_never_cached() -> None:
    async def work() -> None:
        cache = VerdictCache(10, 60)
        assert (await fetched(cache, b"a", label="not_checked"))[0] == ["a"]
        assert (await fetched(cache, b"a"))[1] == CacheUse(0, 1, None)
        assert (await fetched(cache, b"a"))[1].hits == 1

    run(work())


def test_equal_work_in_flight_runs_once() -> None:
    async def work() -> None:
        cache = VerdictCache(0, 60)  # even when nothing is cached
        every = await asyncio.gather(*(fetched(cache, b"a", b"b") for _ in range(5)))
        assert [names for names, *_ in every] == [["a", "b"]] * 5
        assert [done.asked for *_, done in every] == [[[b"a", b"b"]], [], [], [], []]

    run(work())


def test_overlapping_work_shares_what_overlaps() -> None:
    async def work() -> None:
        cache = VerdictCache(10, 60)
        (one, _, first), (two, _, second) = await asyncio.gather(
            fetched(cache, b"a", b"b"), fetched(cache, b"b", b"c", b"a")
        )
        assert (one, two) == (["a", "b"], ["b", "c", "a"])
        assert (first.asked, second.asked) == ([[b"a", b"b"]], [[b"c"]])

    run(work())


Compute = Callable[[Sequence[int]], Awaitable[Sequence[Judgement]]]


async def endless(_: Sequence[int]) -> list[Judgement]:
    await asyncio.sleep(60)
    raise AssertionError("nobody waits that long")


def test_a_follower_of_a_cancelled_leader_does_the_work_itself() -> None:
    async def work() -> None:
        cache = VerdictCache(10, 60)
        leader = asyncio.create_task(cache.get([b"a"], endless))
        await asyncio.sleep(0)
        follower = asyncio.create_task(fetched(cache, b"a"))
        await asyncio.sleep(0)
        leader.cancel()
        names, _, done = await follower
        assert (names, done.asked) == (["a"], [[b"a"]])
        assert leader.cancelled() or leader.cancelling()

    run(work())


def test_a_follower_of_a_failed_leader_does_the_work_itself() -> None:
    async def failing(_: Sequence[int]) -> list[Judgement]:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    async def work() -> None:
        cache = VerdictCache(10, 60)
        leader, follower = await asyncio.gather(
            cache.get([b"a"], failing), fetched(cache, b"a"), return_exceptions=True
        )
        assert isinstance(leader, ZeroDivisionError)
        assert not isinstance(follower, BaseException)
        assert follower[0] == ["a"]
        assert (await fetched(cache, b"a"))[1].hits == 1

    run(work())


def test_a_cancelled_follower_leaves_the_leader_alone() -> None:
    async def work() -> None:
        cache = VerdictCache(10, 60)
        leader = asyncio.create_task(fetched(cache, b"a"))
        follower = asyncio.create_task(fetched(cache, b"a"))
        await asyncio.sleep(0)
        follower.cancel()
        assert (await leader)[0] == ["a"]

    run(work())


def test_two_who_want_each_others_work_do_not_wait_for_ever() -> None:
    async def work() -> None:
        cache = VerdictCache(10, 60)
        every = await asyncio.gather(fetched(cache, b"a", b"b"), fetched(cache, b"b", b"a"), fetched(cache, b"c", b"a"))
        assert [names for names, *_ in every] == [["a", "b"], ["b", "a"], ["c", "a"]]

    run(work())


def test_nothing_stays_in_flight() -> None:
    async def work() -> None:
        cache = VerdictCache(10, 60)
        await asyncio.gather(*(fetched(cache, bytes([at % 7]), bytes([at % 3])) for at in range(50)))
        task = asyncio.create_task(cache.get([b"x"], endless))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        assert not cache._in_flight

    run(work())


def test_tenants_share_values_and_learn_the_age_of_their_own() -> None:
    clock = Clock()
    cache = VerdictCache(10, 100, clock)

    async def work() -> None:
        async def use(tenant: str, *keys: bytes) -> CacheUse:
            return (await cache.get(keys, Work(keys), tenant))[1]

        assert await use("alice", b"a") == CacheUse(0, 1, None)
        clock.now = 5
        assert await use("bob", b"b", b"a") == CacheUse(1, 1, None)
        clock.now = 9
        assert await use("alice", b"a", b"b") == CacheUse(2, 0, 9)
        assert await use("bob", b"a", b"b") == CacheUse(2, 0, 4)
        assert await use("", b"a", b"b") == CacheUse(2, 0, None)

    run(work())


# --- its contents -----------------------------------------------------------------------------------------------------


def long(name: str, chars: int) -> Judgement:
    return Judgement(Claim(name, "x" * chars, 0, 1), Verdict("v", "supported", 1.0, "m", "r"), 1.0)


async def held(cache: VerdictCache, keys: Sequence[bytes], chars: int) -> list[bytes]:
    """Store a judgement of `chars` characters under each key; return the keys known afterwards, newest first."""

    async def give(positions: Sequence[int]) -> list[Judgement]:
        return [long(keys[position].decode(), chars) for position in positions]

    known: list[bytes] = []
    for key in keys:
        await cache.get([key], give)
    for key in reversed(keys):
        _, use = await cache.get([key], partial(_none, long("x", 0)))
        known += [key] if use.hits else []
    return known


async def _none(judgement: Judgement, positions: Sequence[int]) -> list[Judgement]:
    return [replace(judgement, verdict=replace(judgement.verdict, label="not_checked")) for _ in positions]


@pytest.mark.parametrize(
    ("entries", "size", "chars", "kept"),
    [
        pytest.param(10_000, 100_000, 10_000, 8, id="bytes"),
        pytest.param(3, 2**26, 10_000, 3, id="entries"),
        pytest.param(10_000, 2**26, 70_000, 0, id="a value over 64 KiB"),
        pytest.param(10_000, 5_000, 10_000, 0, id="a value over all the room"),
        pytest.param(0, 2**26, 10, 0, id="no entries"),
    ],
)
def test_it_is_bounded_in_entries_and_in_bytes(entries: int, size: int, chars: int, kept: int) -> None:
    async def work() -> None:
        keys = [b"%d" % number for number in range(20)]
        known = await held(VerdictCache(entries, 60, max_size=size), keys, chars)
        assert known == keys[::-1][: len(known)]
        assert len(known) == kept

    run(work())


def test_the_size_of_a_value_is_about_what_it_takes() -> None:
    empty = long("a", 0)
    assert size_of(long("a", 10_000)) - size_of(empty) == 10_000
    cited = replace(empty.verdict, citations=(Citation("s", 0, 1, "x" * 5_000, 1.0, "exact"),))
    assert size_of(replace(empty, verdicts=(cited,))) - size_of(empty) > 5_000
