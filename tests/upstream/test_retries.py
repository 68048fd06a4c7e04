"""Retries of an upstream: their conditions and their waits."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.config.settings import Retries
from groundwire.errors import (
    BadRequest,
    UpstreamBroken,
    UpstreamBusy,
    UpstreamConnectTimeout,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from groundwire.upstream.router import ONCE, Outcome, outcome_name, wait_before_retry
from groundwire.wire import Reply

NOW = 1_800_000_000.0
TWICE = Retries(count=2, initial_backoff=1.0, max_backoff=8.0, deadline=60.0)


def reply(status: int, *headers: tuple[str, str]) -> Reply:
    return Reply(status, tuple((name.encode(), value.encode()) for name, value in headers), b"")


def wait(outcome: Outcome, retries: Retries = TWICE, made: int = 1, elapsed: float = 0.0, chance: float = 0.5):
    return wait_before_retry(retries, outcome, made, elapsed, NOW, chance)


OUTCOMES: dict[str, tuple[Outcome, bool]] = {
    "answered": (reply(200), False),
    "bad request": (reply(400), False),
    "no key": (reply(401), False),
    "rate limited": (reply(429), True),
    "server error": (reply(500), False),
    "bad gateway": (reply(502), True),
    "unavailable": (reply(503), True),
    "gateway timeout": (reply(504), True),
    "told not to": (reply(429, ("x-should-retry", "false")), False),
    "unreachable": (UpstreamUnreachable("x"), True),
    "no connection in time": (UpstreamConnectTimeout("x"), True),
    "reset before the response": (UpstreamBroken("x"), True),
    "no answer in time, though it may be at work": (UpstreamTimeout("x"), False),
    "no room": (UpstreamBusy("x", after=1), False),
    "our own refusal": (BadRequest("x"), False),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_only_transient_outcomes_are_tried_again(name: str) -> None:
    outcome, again = OUTCOMES[name]
    assert (wait(outcome) is not None) is again
    assert wait(outcome, ONCE) is None


def test_a_completion_is_retried_after_a_timeout_only_where_enabled() -> None:
    assert wait(UpstreamTimeout("x"), Retries(count=1, after_timeout=True)) is not None


def test_waits_double_and_are_spread_between_nothing_and_all() -> None:
    retries = Retries(count=9, initial_backoff=1.0, max_backoff=5.0, deadline=60.0)
    assert [wait(reply(503), retries, made, chance=1.0) for made in (1, 2, 3, 4, 9)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert wait(reply(503), retries, made=3, chance=0.0) == 0.0


def test_attempts_are_counted() -> None:
    assert [wait(reply(503), made=made) is not None for made in (1, 2, 3)] == [True, True, False]


@pytest.mark.parametrize(
    ("header", "asked"),
    [
        (("retry-after", "3"), 3.0),
        (("retry-after", formatdate(NOW + 4, usegmt=True)), 4.0),
        (("retry-after", formatdate(NOW - 9, usegmt=True)), 0.0),
        (("retry-after", "soon"), 0.0),
        (("retry-after", "-3"), 0.0),
        (("retry-after-ms", "250"), 0.25),
    ],
    ids=["seconds", "a date", "a date that is past", "no time at all", "negative", "milliseconds"],
)
def test_a_server_is_left_alone_for_as_long_as_it_asks(header: tuple[str, str], asked: float) -> None:
    assert wait(reply(429, header), chance=0.0) == pytest.approx(asked)
    assert wait(reply(429, header), chance=1.0) == pytest.approx(asked + 1.0)


def test_a_server_that_requires_too_long_a_wait_is_not_retried() -> None:
    assert wait(reply(429, ("retry-after", "8"))) is not None
    assert wait(reply(429, ("retry-after", "9"))) is None


def test_no_attempt_starts_after_the_deadline_for_all() -> None:
    retries = Retries(count=5, initial_backoff=1.0, deadline=10.0)
    assert wait(reply(503), retries, elapsed=9.4, chance=0.5) == 0.5
    assert wait(reply(503), retries, elapsed=9.6, chance=0.5) is None
    assert wait(reply(503, ("retry-after", "4")), retries, elapsed=7.0) is None


@given(st.integers(1, 30), st.floats(0, 1), st.floats(0, 100), st.integers(0, 1000))
def test_a_wait_is_never_negative_nor_over_its_bounds(made: int, chance: float, elapsed: float, asked: int) -> None:
    retries = Retries(count=20, initial_backoff=0.5, max_backoff=8.0, deadline=30.0)
    found = wait_before_retry(retries, reply(503, ("retry-after", str(asked))), made, elapsed, NOW, chance)
    assert found is None or (asked <= found <= asked + 8.0 and elapsed + found <= 30.0)


def test_every_outcome_has_a_name() -> None:
    names = [outcome_name(outcome) for outcome, _ in OUTCOMES.values()]
    assert names[0] == "answered"
    assert names[-6:] == ["unreachable", "connect_timeout", "broken", "timeout", "busy", "refused"]
    assert names[3] == "status_429"
