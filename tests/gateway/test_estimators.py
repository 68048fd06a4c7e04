"""Estimators opened for an operation, over one cache, with identical queries sent once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from groundwire.backends.model_client import Limits, Meter
from groundwire.config import Settings
from groundwire.domain import Claim, Estimate, Source, Unavailable
from groundwire.features.probe import exactly
from groundwire.gateway.forward import Caller
from groundwire.gateway.models import Backend, Estimators, context_digest, estimate_cache, estimate_key

CONTEXT = (Source("s1", "source", "The board met in Oslo."),)
CLAIMS = [Claim(f"c{n}", f"The board met {n} times.", 0, 22) for n in range(3)]


SURE = exactly(0.9)


@dataclass
class Recorder:
    """A backend that records its queries and answers after a delay."""

    estimate: Estimate = SURE
    delay: float = 0.0
    asked: list[str] = field(default_factory=list)

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        (found,) = await self.batch_estimate([claim], context)
        return found

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        self.asked += [claim.text for claim in claims]
        await asyncio.sleep(self.delay)
        return [self.estimate] * len(claims)


def estimators(
    backends: Mapping[str, Recorder], operations: Mapping[Any, str], *, ttl: float = 60.0, timeout: float = 5.0
) -> Estimators:
    def opening(name: str, each: Recorder) -> Callable[[Caller, Limits, Meter], Backend]:
        return lambda asker, limits, meter: Backend(each, f"{name}/{asker.model}")

    opens = {name: opening(name, each) for name, each in backends.items()}
    return Estimators(opens, operations, estimate_cache(100, ttl), 8, timeout)


def ask(parts: Estimators, *batches: Sequence[Claim], asker: Caller = Caller("m"), at_once: bool = False) -> list[Any]:
    async def work() -> list[Any]:
        opened = [parts.open("memory_gate", asker).batch_estimate(each, CONTEXT) for each in batches]
        return await asyncio.gather(*opened) if at_once else [await each for each in opened]

    return asyncio.run(work())


def test_a_query_that_was_answered_is_not_repeated() -> None:
    recorder = Recorder()
    found = ask(estimators({"x": recorder}, {"memory_gate": "x"}), CLAIMS[:2], CLAIMS)
    assert found == [[SURE] * 2, [SURE] * 3]
    assert recorder.asked == [claim.text for claim in CLAIMS]


def test_a_query_in_flight_is_awaited_and_not_repeated() -> None:
    recorder = Recorder(delay=0.05)
    ask(estimators({"x": recorder}, {"memory_gate": "x"}), CLAIMS, CLAIMS, CLAIMS[:1], at_once=True)
    assert sorted(recorder.asked) == sorted(claim.text for claim in CLAIMS)


def test_a_query_that_failed_is_retried() -> None:
    recorder = Recorder(Unavailable("error"))
    ask(estimators({"x": recorder}, {"memory_gate": "x"}), CLAIMS[:1], CLAIMS[:1])
    assert len(recorder.asked) == 2


def test_cached_estimates_expire_after_the_configured_time() -> None:
    recorder = Recorder()
    ask(estimators({"x": recorder}, {"memory_gate": "x"}, ttl=0.0), CLAIMS[:1], CLAIMS[:1])
    assert len(recorder.asked) == 2


def test_the_time_of_an_operation_bounds_waiting_for_others_too() -> None:
    recorder = Recorder(delay=30)
    found = ask(estimators({"x": recorder}, {"memory_gate": "x"}, timeout=0.1), CLAIMS, CLAIMS, at_once=True)
    assert found == [[Unavailable("timeout")] * 3] * 2


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(("y", CLAIMS[0], CONTEXT), id="another backend"),
        pytest.param(("x", replace(CLAIMS[0], text="Else."), CONTEXT), id="another claim"),
        pytest.param(("x", replace(CLAIMS[0], lead="Before."), CONTEXT), id="another lead"),
        pytest.param(("x", CLAIMS[0], (replace(CONTEXT[0], text="Else."),)), id="another context"),
        pytest.param(("x", CLAIMS[0], (replace(CONTEXT[0], title="T"),)), id="another title"),
    ],
)
def test_keys_are_exact(other: tuple[str, Claim, Sequence[Source]]) -> None:
    mine = estimate_key("x", CLAIMS[0], context_digest(CONTEXT))
    assert estimate_key(other[0], other[1], context_digest(other[2])) != mine
    assert estimate_key("x", replace(CLAIMS[0], id="c9", start=5, end=9), context_digest(CONTEXT)) == mine


def test_credentials_are_all_that_goes_along() -> None:
    headers = ((b"authorization", b"Bearer x"), (b"cookie", b"y"), (b"idempotency-key", b"z"), (b"x-api-key", b"k"))
    assert Caller.of("m", headers).credentials == (headers[0], headers[3])


# --- settings ---------------------------------------------------------------------------------------------------------


def operations(**information_budget: Any) -> Mapping[Any, str]:
    return Settings.model_validate({"information_budget": information_budget}).information_budget.operations


ALL = {name: {"enabled": True} for name in ("memory_gate", "output_verification", "trace_auditing")}


@pytest.mark.parametrize(
    ("settings", "on"),
    [
        pytest.param({}, {}, id="off"),
        pytest.param({"enabled": True}, {}, id="nothing is on by itself"),
        pytest.param(ALL, {}, id="off as a whole"),
        pytest.param({"enabled": True, "memory_gate": {"enabled": True}}, {"memory_gate": "local"}, id="one"),
        pytest.param(
            {"enabled": True, **ALL, "backend": {"type": "haiku", "default": "local"}},
            dict.fromkeys(ALL, "haiku"),
            id="one backend for all",
        ),
        pytest.param(
            {
                "enabled": True,
                **ALL,
                "backend": {"type": "configurable", "default": "haiku"},
                "memory_gate": {"enabled": True, "backend": "self"},
            },
            {"memory_gate": "self", "output_verification": "haiku", "trace_auditing": "haiku"},
            id="each its own",
        ),
    ],
)
def test_each_operation_is_on_by_itself_with_its_backend(settings: dict[str, Any], on: dict[str, str]) -> None:
    assert operations(**settings) == on


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"backend": {"type": "self"}, "memory_gate": {"backend": "local"}}, "configurable"),
        ({"enabled": True, **ALL, "backend": {"type": "external"}}, "external_url must be given"),
        ({"backend": {"external_url": "service:80"}}, "http://"),
        ({"backend": {"type": "oracle"}}, "self"),
        ({"output_verification": {"flag_threshold_bits": -1}}, "greater than or equal to 0"),
        ({"timeout": "0s"}, "greater than 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        operations(**settings)
