"""Client keys: every request needs one when they are enabled; it is not forwarded, and its limits apply."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import httpx
import openai
import pytest
import structlog
from structlog.testing import LogCapture

from groundwire.http.guard import FREE_REQUESTS
from groundwire.http.keys import create_key, revoke_key
from groundwire.storage.limits import Limits
from tests.edge.clients import JSON_HEADERS, RawClient, sdk, until
from tests.edge.proxies import Proxy
from tests.edge.upstream import Stall, Upstream, body_reply, chat_body, chat_events, stream_reply

CHAT = {"model": "m", "messages": [{"role": "system", "content": "The sky is blue."}]}
ADMIN = "an-admin-key-that-is-long"
PATIENCE_S = 60.0
HEADERS = ("authorization", "x-api-key")

Keys = Callable[..., str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "client-keys"


@pytest.fixture
def new_key(file: Path) -> Keys:
    """Make a key for a named client, with limits."""

    def make(name: str = "app", limits: Limits = Limits(), lasts: float | None = None, ago: float = 0.0) -> str:  # noqa: B008
        return create_key(file, name, limits, datetime.now(UTC) - timedelta(seconds=ago), lasts)[0]

    return make


@pytest.fixture
def start(start_proxy: Callable[..., Proxy], file: Path) -> Callable[..., Proxy]:
    """Start a proxy that requires the keys of the file."""

    def starting(**sections: object) -> Proxy:
        return start_proxy(**{"server": {"keys": str(file)}, **sections})

    return starting


def ask(proxy: Proxy, key: str | None = None, header: str = "authorization", **request: object) -> httpx.Response:
    value = {} if key is None else {header: f"Bearer {key}" if header == "authorization" else key}
    return httpx.post(f"{proxy.base_url}/chat/completions", json=CHAT | request, headers=value, timeout=PATIENCE_S)


@pytest.mark.parametrize("header", ["authorization", "x-api-key", "api-key", "x-goog-api-key"])
def test_a_key_lets_in_by_every_header_that_clients_use(start, new_key: Keys, header: str) -> None:
    key = new_key()
    proxy = start()
    assert ask(proxy, key, header).json()["grounding"]["status"] == "complete"


@pytest.mark.parametrize("key", [None, "gw-made-up", ADMIN], ids=["none", "made up", "an admin's"])
def test_without_a_good_key_nobody_is_served(start, new_key: Keys, upstream: Upstream, key: str | None) -> None:
    new_key()
    proxy = start()
    reply = ask(proxy, key)
    error = reply.json()["error"]
    assert (reply.status_code, error["type"], error["code"]) == (401, "invalid_request_error", "invalid_api_key")
    assert key is None or key not in reply.text
    assert upstream.requests == []


def test_the_sdk_raises_what_it_raises_at_openai(start, new_key: Keys) -> None:
    key = new_key(limits=Limits(requests_per_minute=1))
    proxy = start()
    with sdk(proxy.base_url) as client, pytest.raises(openai.AuthenticationError) as caught:
        client.chat.completions.create(**CHAT)
    assert caught.value.code == "invalid_api_key"
    with sdk(proxy.base_url, api_key=key) as client:
        assert client.chat.completions.create(**CHAT).choices
        with pytest.raises(openai.RateLimitError) as limited:
            client.chat.completions.create(**CHAT)
    assert (limited.value.code, limited.value.type) == ("rate_limit_exceeded", "requests")
    assert 0 < int(limited.value.response.headers["retry-after"]) <= 60


def test_an_expired_key_is_refused_with_that_reason(start, new_key: Keys) -> None:
    key = new_key(lasts=60, ago=61)
    reply = ask(start(), key)
    assert (reply.status_code, reply.json()["error"]["message"]) == (401, "Your API key has expired.")


OPEN = ("/healthz", "/readyz", "/openapi.json")


@pytest.mark.parametrize("path", OPEN)
def test_probes_need_no_key(start, new_key: Keys, path: str) -> None:
    new_key()
    assert httpx.get(start().url + path).status_code == 200


GUARDED = [
    *(("POST", f"/v1/{each}") for each in ("chat/completions", "completions", "embeddings", "responses", "messages")),
    *(("GET", f"/v1/{each}") for each in ("models", "models/m", "grounding/gw-0", "anything/else?x=1")),
    *(("POST", f"/v1/grounding/{each}") for each in ("verify", "claims", "claim", "evidence", "trace", "memory")),
    *(("GET", "/v1/grounding/memory?subject=x"), ("POST", "/mcp"), ("GET", "/api/tags"), ("GET", "/api/none")),
    *(("POST", f"/api/{each}") for each in ("chat", "generate", "embed", "pull")),
]


def test_everything_else_does(start, new_key: Keys, upstream: Upstream) -> None:
    key = new_key()
    proxy = start(mcp={"enabled": True}, upstreams=ollama(upstream))
    asked = [*GUARDED, ("DELETE", "/v1/chat/completions")]
    refused = {(method, path): httpx.request(method, proxy.url + path).status_code for method, path in asked}
    assert refused == dict.fromkeys(asked, 401)
    assert upstream.requests == []
    shown = {"authorization": f"Bearer {key}"}
    with_key = {(method, path): httpx.request(method, proxy.url + path, headers=shown) for method, path in GUARDED}
    assert [call for call, reply in with_key.items() if reply.status_code == 401] == []


def ollama(upstream: Upstream) -> dict[str, object]:
    return {"up": {"base_url": upstream.base_url, "ollama": "yes"}}


def test_every_dialect_gets_key_errors_in_its_format(start, new_key: Keys, upstream: Upstream) -> None:
    key = new_key(limits=Limits(requests_per_minute=1))
    proxy = start(upstreams=ollama(upstream))
    paths = ("/v1/chat/completions", "/v1/messages", "/api/chat")
    openais, anthropics, ollamas = (httpx.post(proxy.url + path, json=CHAT).json() for path in paths)
    assert openais["error"]["code"] == "invalid_api_key"
    assert (anthropics["type"], anthropics["error"]["type"]) == ("error", "authentication_error")
    assert "API key" in ollamas["error"]
    assert ask(proxy, key).status_code == 200
    limited = httpx.post(f"{proxy.base_url}/messages", json=CHAT, headers={"x-api-key": key})
    assert (limited.status_code, limited.json()["error"]["type"]) == (429, "rate_limit_error")
    assert limited.headers["retry-after"]


def test_admin_keys_and_client_keys_are_two_kinds(start, new_key: Keys, tmp_path: Path) -> None:
    key = new_key()
    admin = {"keys": {"ann": f"sha256:{sha256(ADMIN.encode()).hexdigest()}"}}
    proxy = start(admin=admin, store={"url": f"sqlite:///{tmp_path}/history.db"})

    def reviews(shown: str) -> httpx.Response:
        return httpx.get(f"{proxy.base_url}/reviews", headers={"authorization": f"Bearer {shown}"}, timeout=PATIENCE_S)

    assert (reviews(ADMIN).status_code, ask(proxy, key).status_code) == (200, 200)
    assert (reviews(key).status_code, ask(proxy, ADMIN).status_code) == (401, 401)
    assert reviews(key).json()["error"]["code"] == "invalid_admin_key"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings", "/v1/anything"])
def test_a_key_goes_no_further(start, new_key: Keys, upstream: Upstream, path: str) -> None:
    key = new_key()
    shown = {"authorization": f"Bearer {key}", "x-api-key": key, "api-key": "sk-another", "x-custom": "stays"}
    body = CHAT | {"input": "x"}
    assert httpx.post(start().url + path, json=body, headers=shown, timeout=PATIENCE_S).status_code == 200
    received = upstream.last
    assert received.header("x-custom") == "stays"
    assert key not in repr(received)
    assert [received.header(name) for name in shown if name != "x-custom"] == [None, None, None]


def test_an_upstreams_own_key_is_sent_in_its_place(
    start_proxy: Callable[..., Proxy], file: Path, new_key: Keys, upstream: Upstream
) -> None:
    key = new_key()
    upstreams = {"up": {"base_url": upstream.base_url, "api_key_env": "UP_KEY"}}
    proxy = start_proxy({"UP_KEY": "sk-upstream"}, server={"keys": str(file)}, upstreams=upstreams)
    assert ask(proxy, key).status_code == 200
    assert upstream.last.header("authorization") == "Bearer sk-upstream"


def test_without_keys_of_ours_the_clients_key_goes_on(proxy: Proxy, upstream: Upstream) -> None:
    assert ask(proxy, "sk-of-the-client").status_code == 200
    assert upstream.last.header("authorization") == "Bearer sk-of-the-client"


def test_requests_per_minute_are_reported_and_limited(start, new_key: Keys, upstream: Upstream) -> None:
    key = new_key(limits=Limits(requests_per_minute=2))
    proxy = start()
    upstream.reply = body_reply(chat_body("Blue."), headers=(("x-ratelimit-remaining-requests", "9999"),))
    replies = [ask(proxy, key) for _ in range(3)]
    assert [reply.status_code for reply in replies] == [200, 200, 429]
    assert [reply.headers["x-ratelimit-limit-requests"] for reply in replies] == ["2"] * 3
    assert [reply.headers.get_list("x-ratelimit-remaining-requests") for reply in replies] == [["1"], ["0"], ["0"]]
    assert replies[2].headers["x-ratelimit-reset-requests"].endswith("s")
    assert len(upstream.requests) == 2


def test_a_key_without_limits_gets_no_limit_headers_of_ours(start, new_key: Keys, upstream: Upstream) -> None:
    key = new_key()
    upstream.reply = body_reply(chat_body("Blue."), headers=(("x-ratelimit-remaining-requests", "9999"),))
    assert ask(start(), key).headers.get_list("x-ratelimit-remaining-requests") == ["9999"]


@contextmanager
def streaming(proxy: Proxy, key: str) -> Iterator[RawClient]:
    """A client whose stream has begun and does not end."""
    with RawClient(proxy.port) as client:
        headers = (*JSON_HEADERS[:1], ("authorization", f"Bearer {key}"))
        client.send("POST", "/v1/chat/completions", headers, json.dumps(CHAT | {"stream": True}).encode())
        client.read_head()
        client.read_until(b"data:")
        yield client


def test_a_stream_holds_its_place_until_its_client_leaves(start, new_key: Keys, upstream: Upstream) -> None:
    key, other = new_key(limits=Limits(concurrent=1)), new_key("other", Limits(concurrent=1))
    proxy = start()
    upstream.reply = stream_reply([*chat_events("The sky is blue.")[:3], Stall()])
    with streaming(proxy, key):
        upstream.reply = body_reply(chat_body("Blue."))
        refused = ask(proxy, key)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
        assert refused.headers["retry-after"] == "1"
        assert ask(proxy, other).status_code == 200
    until(lambda: ask(proxy, key).status_code == 200, "the place is not free though the client has left")


def test_a_place_is_free_after_every_ending(start, new_key: Keys, upstream: Upstream) -> None:
    key = new_key(limits=Limits(concurrent=1))
    proxy = start()
    for request in ({}, {"stream": True}, {"grounding": {"nonsense": 1}}, {"stream": True}):
        assert ask(proxy, key, **request).status_code in (200, 400)
    upstream.reply = stream_reply(chat_events("The sky is blue.")[:3])
    ask(proxy, key, stream=True)
    until(lambda: ask(proxy, key).status_code == 200, "the place is not free")


def test_keys_are_made_and_revoked_under_way(start, new_key: Keys, file: Path) -> None:
    first = new_key("first")
    proxy = start()
    assert ask(proxy, first).status_code == 200
    second = new_key("second")
    until(lambda: ask(proxy, second).status_code == 200, "a new key is not taken up")
    revoke_key(file, "first")
    until(lambda: ask(proxy, first).status_code == 401, "a revoked key goes on")
    file.write_text("nonsense")
    until(lambda: ask(proxy, second).is_success and is_degraded(proxy), "nothing is said of a file that broke")


def is_degraded(proxy: Proxy) -> bool:
    return "keys" in [each["part"] for each in httpx.get(f"{proxy.url}/readyz").json()["degraded"]]


def test_logs_know_the_client_by_name(start, new_key: Keys) -> None:
    key = new_key("the-app")
    proxy = start()
    logged = LogCapture()
    before = structlog.get_config()["processors"]
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, logged])
    try:
        assert ask(proxy, key).status_code == 200
        assert ask(proxy).status_code == 401
        until(lambda: sum(each["event"] == "request" for each in logged.entries) == 2, "no line in the log")
    finally:
        structlog.configure(processors=before)
    told = [each.get("client") for each in logged.entries if each["event"] == "request"]
    assert told == ["the-app", None]
    assert "the-app" in [each.get("client") for each in logged.entries if each["event"] == "grounding.report"]
    assert key not in repr(logged.entries)


# --- wrong keys -------------------------------------------------------------------------------------------------------


def test_wrong_keys_are_throttled_and_a_good_one_never_is(start, new_key: Keys, upstream: Upstream) -> None:
    key = new_key()
    proxy = start()
    statuses = [ask(proxy, f"gw-wrong{number}", header).status_code for number in range(11) for header in HEADERS]
    assert statuses[:FREE_REQUESTS] == [401] * FREE_REQUESTS
    late = next(reply for number in range(10) if (reply := ask(proxy, f"gw-late{number}")).status_code != 401)
    assert (late.status_code, late.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert int(late.headers["retry-after"]) > 0
    assert upstream.requests == []
    upstream.reply = body_reply(chat_body("The sky is blue."))
    assert ask(proxy, key).status_code == 200
    assert ask(proxy).status_code == 401, "a request without any key is no guess"


def test_wrong_keys_count_by_the_address_that_a_trusted_proxy_reports(start, new_key: Keys, file: Path) -> None:
    new_key()
    proxy = start(server={"keys": str(file), "trusted_proxies": ["127.0.0.0/8"]})

    def guess(key: str, forwarded: str) -> int:
        headers = {"authorization": f"Bearer {key}", "x-forwarded-for": forwarded}
        return httpx.get(f"{proxy.base_url}/models", headers=headers, timeout=PATIENCE_S).status_code

    assert [guess(f"wrong{number}", "10.0.0.9, 10.0.0.1") for number in range(FREE_REQUESTS)] == [401] * FREE_REQUESTS
    assert 429 in [guess(f"late{number}", "10.0.0.9, 10.0.0.1, 127.0.0.2") for number in range(10)]
    assert guess("wrong", "10.0.0.1, 10.0.0.2") == 401
    assert [guess("one", f"10.0.1.{number}") for number in range(FREE_REQUESTS)] == [401] * FREE_REQUESTS
    assert 429 in [guess("one", f"10.0.2.{number}") for number in range(10)], "a key that was wrong from many addresses"
    assert guess("another", "10.0.2.1") == 401


def test_wrong_admin_keys_are_throttled_by_address(start, tmp_path: Path) -> None:
    admin = {"keys": {"ann": f"sha256:{sha256(ADMIN.encode()).hexdigest()}"}}
    store = {"url": f"sqlite:///{tmp_path}/history.db"}
    proxy = start(server={"trusted_proxies": ["127.0.0.1"]}, admin=admin, store=store)

    def reviews(key: str, address: str) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}", "x-forwarded-for": address}
        return httpx.get(f"{proxy.base_url}/reviews", headers=headers, timeout=PATIENCE_S)

    assert reviews(ADMIN, "10.0.0.1").status_code == 200
    statuses = [reviews(f"a-wrong-admin-key-{number}", "10.0.0.1").status_code for number in range(FREE_REQUESTS)]
    assert statuses == [401] * FREE_REQUESTS
    late = [reviews(f"a-late-admin-key-{number}", "10.0.0.1") for number in range(10)]
    assert [reply.headers["retry-after"] for reply in late if reply.status_code == 429]
    assert reviews(ADMIN, "10.0.0.1").status_code == 200, "a key that was right there before"
    assert reviews(ADMIN, "10.0.0.2").status_code == 200, "a right key from another address"
