"""Verdicts of other replicas, under exact keys; an invalid stored value is a miss."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from groundwire.domain import Budget, Choice, Citation, Claim, Judgement, Probability, Source, Unavailable, Verdict
from groundwire.evidence.index import Context
from groundwire.pipeline import verify
from groundwire.report import CacheUse
from groundwire.storage.cache import VerdictCache
from groundwire.storage.shared import SharedRedis, SharedValues
from tests.servers.redis_of_tests import Gate, RedisOfTests

PATIENT_S = 60.0
CITATION = Citation("m0", 3, 9, "naïve — ﬁ", 0.1 + 0.2, "exact")
VERDICT = Verdict("statement", "supported", 1 / 3, "m", "“so”", (CITATION,), ("misattributed",), 2, 1)
PROBABILITY = Probability(0.5, 0.25, 0.75, "logprobs", 0.01)
JUDGEMENT = Judgement(
    Claim("c1", "The sky\n\x00 is blue 🙂.", 0, 20, "numeric", "lead", ("1",), 0.9, None, "/a/b"),
    VERDICT,
    0.7,
    (VERDICT, replace(VERDICT, verifier="quote")),
    Budget("ambiguous", "r", 0.8, PROBABILITY, None, 1.5, None, -0.25, 1e-6, (0, 2), Unavailable("timeout", 2.0)),
)


@dataclass(frozen=True, slots=True)
class Place:
    """The shared values of one test."""

    shared: SharedRedis
    kind: str

    def values(self, ttl: float = 60.0, now: float = 1000.0) -> SharedValues[Judgement]:
        return SharedValues(self.shared, self.kind, Judgement, ttl, lambda: now)

    async def written(self) -> None:
        """Wait until all values are stored."""
        await asyncio.gather(*self.shared._tasks)


def with_place(redis: RedisOfTests, work: Any, url: str | None = None) -> Any:
    async def run() -> Any:
        place = Place(SharedRedis(url or redis.url, PATIENT_S), redis.name)
        try:
            return await work(place)
        finally:
            await place.shared.aclose()

    return asyncio.run(asyncio.wait_for(run(), 60))


def examined() -> Sequence[Judgement]:
    answer = "Revenue was $4.2M in 2023. Profit rose to $900K. He said “we are thriving here”."
    context = Context([Source("m0", "user", "In 2023 revenue was $4.2 million. Profit fell to $700K.")])
    return verify([Choice(0, answer, "stop")], context).choices[0].judgements


def test_a_judgement_comes_back_as_it_was(real_redis: RedisOfTests) -> None:
    stored = {bytes([at]): each for at, each in enumerate((JUDGEMENT, *examined()))}

    async def work(place: Place) -> None:
        place.values().keep(stored, b"owner")
        await place.written()
        found = await place.values(now=1007.5).find([*stored, b"other"])
        assert found == {key: (value, 7.5, b"owner") for key, value in stored.items()}

    with_place(real_redis, work)


GARBAGE = {
    "nothing": b"",
    "no time": b'{"claim": {}}',
    "no number for a time": b"soon {}",
    "an endless time": b"9" * 400 + b" {}",
    "no owner": b'1000000 {"claim": {"id": 1}}',
    "no JSON": b"1000000 owner {",
    "another shape": b'1000000 owner {"claim": {"id": 1}}',
    "a list": b"1000000 owner []",
    "bytes": b"\x80\x04\x95\xff 12",
    "deep": b"1000000 owner " + b"[" * 100_000,
    "an unknown label": b'1000000 owner {"claim": {"id": "c", "text": "", "start": 0, "end": 0}, "confidence": 1, '
    b'"verdict": {"verifier": "v", "label": "true", "score": 1, "method": "m", "reason": ""}}',
}


@pytest.mark.parametrize("raw", GARBAGE.values(), ids=GARBAGE)
def test_an_invalid_stored_value_is_a_miss(real_redis: RedisOfTests, raw: bytes) -> None:
    async def work(place: Place) -> None:
        values = place.values()
        values.keep({b"a": JUDGEMENT, b"b": JUDGEMENT}, b"owner")
        await place.written()
        real_redis.client.set(values._name(b"a"), raw)
        assert list(await values.find([b"a", b"b"])) == [b"b"]
        real_redis.client.delete(values._name(b"a"))
        real_redis.client.rpush(values._name(b"a"), "a list of Redis")
        assert list(await values.find([b"a", b"b"])) == [b"b"]

    with_place(real_redis, work)


def test_another_shape_is_under_other_names(real_redis: RedisOfTests) -> None:
    async def work(place: Place) -> None:
        place.values().keep({b"a": JUDGEMENT}, b"owner")
        await place.written()
        others = SharedValues(place.shared, place.kind, Probability, 60.0)
        assert await others.find([b"a"]) == {}
        (name,) = real_redis.keys()
        assert others._name(b"a") != name

    with_place(real_redis, work)


def test_values_end_with_their_time(real_redis: RedisOfTests) -> None:
    async def work(place: Place) -> None:
        place.values(ttl=60).keep({b"a": JUDGEMENT}, b"owner")
        await place.written()
        assert 0 < real_redis.client.pttl(real_redis.keys()[0]) <= 60_000
        assert await place.values(ttl=60, now=1061.0).find([b"a"]) == {}
        assert (await place.values(now=990.0).find([b"a"]))[b"a"][1] == 0.0, "clocks of replicas differ"

    with_place(real_redis, work)


def test_values_that_json_cannot_hold_are_left_out(real_redis: RedisOfTests) -> None:
    odd = replace(JUDGEMENT, claim=replace(JUDGEMENT.claim, text="\ud800"))
    large = replace(JUDGEMENT, claim=replace(JUDGEMENT.claim, text="x" * 2**17))

    async def work(place: Place) -> None:
        place.values().keep({b"odd": odd, b"large": large, b"a": JUDGEMENT}, b"owner")
        await place.written()
        assert list(await place.values().find([b"odd", b"large", b"a"])) == [b"a"]

    with_place(real_redis, work)


def judged(name: str) -> Judgement:
    return replace(JUDGEMENT, claim=replace(JUDGEMENT.claim, id=name))


class Work:
    """A judge of keys by name that records the requested ones."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self.keys = keys
        self.asked: list[bytes] = []

    async def __call__(self, positions: Sequence[int]) -> list[Judgement]:
        await asyncio.sleep(0)
        self.asked += [self.keys[position] for position in positions]
        return [judged(self.keys[position].decode()) for position in positions]


async def fetched(cache: VerdictCache, *keys: bytes) -> tuple[list[str], CacheUse, list[bytes]]:
    work = Work(keys)
    judgements, use = await cache.get(keys, work)
    return [judgement.claim.id for judgement in judgements], use, work.asked


def test_a_replica_does_not_recompute_the_verdicts_of_another(real_redis: RedisOfTests) -> None:
    async def work(place: Place) -> None:
        one = VerdictCache(10, 60, lambda: 0.0, place.values())
        assert (await fetched(one, b"a", b"b"))[1:] == (CacheUse(0, 2, None), [b"a", b"b"])
        await place.written()
        other = VerdictCache(10, 60, lambda: 5.0, place.values(now=1010.0))
        assert await fetched(other, b"c", b"b", b"a") == (["c", "b", "a"], CacheUse(2, 1, 10.0), [b"c"])
        real_redis.client.delete(*real_redis.keys())
        assert (await fetched(other, b"a", b"b"))[1] == CacheUse(2, 0, 10.0), "it now has them itself"

    with_place(real_redis, work)


def test_a_verdict_is_no_older_for_having_gone_round(real_redis: RedisOfTests) -> None:
    async def work(place: Place) -> None:
        await fetched(VerdictCache(10, 60, lambda: 0.0, place.values()), b"a")
        await place.written()
        now = 0.0
        other = VerdictCache(10, 60, lambda: now, place.values(now=1050.0))
        assert (await fetched(other, b"a"))[1] == CacheUse(1, 0, 50.0)
        real_redis.client.delete(*real_redis.keys())
        now = 11.0
        assert (await fetched(other, b"a"))[1].hits == 0

    with_place(real_redis, work)


def test_equal_work_in_flight_asks_once(real_redis: RedisOfTests) -> None:
    async def work(place: Place) -> None:
        cache = VerdictCache(10, 60, further=place.values())
        asked = 0
        ask = place.shared.ask

        async def counted(question: Any) -> Any:
            nonlocal asked
            asked += 1
            return await ask(question)

        place.shared.ask = counted  # type: ignore[method-assign]
        every = await asyncio.gather(*(fetched(cache, b"a", b"b", b"c") for _ in range(5)))
        await place.written()
        assert [names for names, *_ in every] == [["a", "b", "c"]] * 5
        assert asked == 2, "one question for all that is wanted, and one to have it kept"

    with_place(real_redis, work)


def test_one_that_hangs_is_a_miss(gate: Gate, real_redis: RedisOfTests) -> None:
    async def work(_: Place) -> None:
        shared = SharedRedis(gate.url, 0.5)
        gate.shut()
        cache = VerdictCache(10, 60, further=SharedValues(shared, real_redis.name, Judgement, 60.0))
        assert (await fetched(cache, b"a"))[::2] == (["a"], [b"a"])
        assert (await fetched(cache, b"a", b"b"))[::2] == (["a", "b"], [b"b"])
        await shared.aclose()

    with_place(real_redis, work)
