"""Wrong keys on the sign-in page are throttled by the address that they come from."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from server.pages.site_of_tests import fields, post

from proxy.config import Settings
from proxy.errors import TooManyRequests
from proxy.server.app import build_app
from proxy.server.attempts import FREE_ATTEMPTS, MAX_WAIT_S, FailedAttempts

KEY = "the-key-of-a-reviewer"
ENVIRON = {"GROUNDWIRE_ADMIN_KEY": KEY}


def waits(failed: FailedAttempts, address: str) -> int:
    """Return the seconds that an address has to wait."""
    try:
        failed.check(address)
    except TooManyRequests as error:
        return int(dict(error.headers)[b"retry-after"])
    return 0


def test_each_failure_beyond_the_free_ones_doubles_the_wait() -> None:
    now = [0.0]
    failed, told = FailedAttempts(lambda: now[0]), []
    for _ in range(FREE_ATTEMPTS + 8):
        failed.add("10.0.0.1")
        told.append(waits(failed, "10.0.0.1"))
        now[0] += told[-1]
        assert waits(failed, "10.0.0.1") == 0
    assert told == [*[0] * (FREE_ATTEMPTS - 1), 1, 2, 4, 8, 16, 32, *[MAX_WAIT_S] * 3]
    now[0] += 1000
    failed.add("10.0.0.1")
    assert waits(failed, "10.0.0.1") == 0


@pytest.mark.parametrize(
    ("address", "is_same"),
    [
        ("2001:db8::1", True),
        ("2001:db8::ffff:1", True),
        ("2001:db8:0:1::1", False),
        ("10.0.0.1", False),
        ("", False),
        ("unix", False),
    ],
)
def test_addresses_of_one_network_count_together(address: str, is_same: bool) -> None:
    failed = FailedAttempts(lambda: 0.0)
    for _ in range(FREE_ATTEMPTS):
        failed.add("2001:db8::1")
    assert (waits(failed, address) > 0) == is_same


@pytest.mark.parametrize(("one", "other"), [("::ffff:10.0.0.1", "10.0.0.1"), ("unix", "unix"), ("", "")])
def test_an_address_may_be_written_in_two_ways(one: str, other: str) -> None:
    failed = FailedAttempts(lambda: 0.0)
    for _ in range(FREE_ATTEMPTS):
        failed.add(one)
    assert waits(failed, other) > 0
    failed.forget(other)
    assert waits(failed, one) == 0


def test_wrong_keys_are_refused_and_then_throttled(tmp_path: Path) -> None:
    settings = Settings.model_validate({"store": {"url": f"sqlite:///{tmp_path}/history.db"}})
    app = build_app(settings, environ=ENVIRON)

    def browser(address: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(app, client=(address, 1)), base_url="http://site")

    async def work() -> None:
        async with browser("10.0.0.1") as guessing, browser("10.0.0.2") as reviewer:
            form = fields((await guessing.get("/sign-in")).text)
            statuses = [(await post(guessing, "/sign-in", {**form, "key": f"wrong{n}"})).status_code for n in range(5)]
            assert statuses == [403] * 5
            late = await post(guessing, "/sign-in", {**form, "key": KEY})
            assert (late.status_code, "try again" in late.text) == (429, True)
            assert int(late.headers["retry-after"]) > 0
            own = fields((await reviewer.get("/sign-in")).text)
            assert (await post(reviewer, "/sign-in", {**own, "key": KEY})).status_code == 303

    asyncio.run(work())
