"""Reports are posted to the configured address only, signed, and tried again later when they are not accepted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.errors import TryLater
from groundwire.upstream.http import HttpxClient
from groundwire.upstream.router import seconds_to_wait
from groundwire.upstream.webhook import Webhook, signature, signing_key

URL = "https://example.com/hook?of=ours"
GUIDE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
REPORT = '{"id":"gw-1","status":"complete","warnings":["ü\U0001f600"]}'.encode()


def documented() -> Callable[..., bool]:
    """Return the function that the documents recommend to receivers."""
    (snippet,) = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(snippet, names)
    verify: Callable[..., bool] = names["verify"]
    return verify


def post(
    answer: Callable[[httpx.Request], httpx.Response], secret: str = "s3cret"
) -> tuple[bytes, list[httpx.Request]]:
    """Return the result of posting a report, and the requests sent."""
    sent: list[httpx.Request] = []

    def receive(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return answer(request)

    return asyncio.run(Webhook(URL, secret, HttpxClient(httpx.MockTransport(receive))).post("gw-1", REPORT)), sent


def replying(status: int, **headers: str) -> Callable[[httpx.Request], httpx.Response]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: httpx.Response(status, headers=named, stream=httpx.ByteStream(b"{}"))


@pytest.mark.parametrize("secret", ["s3cret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
def test_a_call_holds_the_report_and_a_signature_that_the_documented_check_accepts(secret: str) -> None:
    _, (request,) = post(replying(204), secret)
    assert (request.method, str(request.url), request.content) == ("POST", URL, REPORT)
    assert request.headers["webhook-id"] == "gw-1"
    assert documented()(request.headers, request.content, secret)


def test_the_documented_check_refuses_other_bodies_other_secrets_and_old_calls() -> None:
    _, (request,) = post(replying(200))
    verify, headers = documented(), dict(request.headers)
    assert not verify(headers, REPORT + b" ", "s3cret")
    assert not verify(headers, REPORT, "another")
    assert not verify(headers | {"webhook-id": "gw-2"}, REPORT, "s3cret")
    old = str(int(headers["webhook-timestamp"]) - 301)
    resigned = signature(b"s3cret", "gw-1", old, REPORT)
    assert not verify(headers | {"webhook-timestamp": old, "webhook-signature": resigned}, REPORT, "s3cret")


def test_a_signature_is_the_one_of_the_standard() -> None:
    """The example of the reference libraries of Standard Webhooks."""
    key = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 410, 429, 500, 503])
def test_a_refused_report_is_to_be_tried_again_and_no_redirect_is_followed(status: int) -> None:
    followed: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        followed.append(str(request.url))
        return replying(status, location="http://169.254.169.254/")(request)

    with pytest.raises(TryLater, match=f"answered {status}"):
        post(answer)
    assert followed == [URL]


def test_the_retry_after_of_a_receiver_is_respected() -> None:
    with pytest.raises(TryLater) as caught:
        post(replying(429, retry_after="17"))
    assert caught.value.after == 17.0


@pytest.mark.parametrize("error", [httpx.ConnectError, httpx.ReadTimeout, httpx.RemoteProtocolError])
def test_an_unreachable_receiver_is_tried_again_and_its_address_is_not_shown(
    error: type[httpx.TransportError],
) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise error(f"cannot reach {request.url}")

    with pytest.raises(TryLater, match=error.__name__) as caught:
        post(fail)
    assert "example.com" not in str(caught.value)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("120", 120.0),
        ("0", 0.0),
        (formatdate(1_000_090, usegmt=True), 90.0),
        (formatdate(999_000, usegmt=True), 0.0),
        ("soon", None),
        ("-5", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header: str | None, seconds: float | None) -> None:
    assert seconds_to_wait(header, now=1_000_000.0) == seconds


@given(st.text())
def test_no_retry_after_breaks_anything(header: str) -> None:
    found = seconds_to_wait(header, now=0.0)
    assert found is None or found >= 0
