"""Wrong keys are throttled by the address that they come from, and by the key."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError

from groundwire.config import Settings
from groundwire.errors import TooManyRequests
from groundwire.http.app import build_app
from groundwire.http.exchange import forwarded_address
from groundwire.http.guard import FREE_ATTEMPTS, MAX_WAIT_S, FailedAttempts
from tests.servers.review_site import fields, post

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


def test_a_key_that_was_right_lately_does_not_wait_for_those_who_guess_from_the_same_address() -> None:
    now = [0.0]
    failed = FailedAttempts(lambda: now[0])
    known = {KEY: "ann"}.get
    assert failed.authenticate(KEY, "10.0.0.1", known) == "ann"
    for number in range(FREE_ATTEMPTS):
        assert failed.authenticate(f"wrong{number}", "10.0.0.1", known) is None
    with pytest.raises(TooManyRequests):
        failed.authenticate("wrong", "10.0.0.1", known)
    assert failed.authenticate(KEY, "10.0.0.1", known) == "ann"
    now[0] += 90_000
    for number in range(FREE_ATTEMPTS):
        failed.authenticate(f"wrong{number}", "10.0.0.1", known)
    with pytest.raises(TooManyRequests):
        failed.authenticate(KEY, "10.0.0.1", known)
    assert failed.authenticate(KEY, "10.0.0.2", known) == "ann"


def test_one_wrong_key_counts_from_wherever_it_comes() -> None:
    failed = FailedAttempts(lambda: 0.0)
    known = {KEY: "ann"}.get
    for number in range(FREE_ATTEMPTS):
        assert failed.authenticate("wrong", f"10.0.0.{number}", known) is None
    with pytest.raises(TooManyRequests, match="This key is wrong"):
        failed.authenticate("wrong", "10.0.1.1", known)
    assert failed.authenticate(KEY, "10.0.1.1", known) == "ann"


TRUSTED = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("192.0.2.1", ["198.51.100.1"], "192.0.2.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["203.0.113.9, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["203.0.113.9", "198.51.100.1, 10.1.1.1"], "198.51.100.1"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("fd00::1", ["[2001:db8::1]:443"], "2001:db8::1"),
        ("::ffff:10.0.0.1", ["::ffff:198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["198.51.100.1, nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.7"], "10.0.0.7"),
        ("10.0.0.1", [""], "10.0.0.1"),
    ],
)
def test_only_trusted_proxies_report_an_address(peer: str, forwarded: list[str], address: str) -> None:
    headers = [(b"x-forwarded-for", each.encode()) for each in forwarded]
    assert forwarded_address({"client": (peer, 1), "headers": headers}, TRUSTED) == address
    assert forwarded_address({"client": (peer, 1), "headers": headers}, ()) == peer


def test_a_trusted_proxy_that_is_no_address_is_refused() -> None:
    with pytest.raises(ValidationError, match="'nginx' is no address or network"):
        Settings.model_validate({"server": {"trusted_proxies": ["nginx"]}})
