"""Two proxies that share a Redis share verdicts and limits; without it each continues alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from groundwire.http.keys import create_key
from groundwire.storage.limits import Limits
from tests.edge.proxies import Proxy
from tests.servers.redis_of_tests import Gate, RedisOfTests

PATIENCE_S = 60.0
Start = Callable[..., Proxy]


def ask(proxy: Proxy, text: str = "The sky is blue.", key: str = "any") -> httpx.Response:
    request = {"model": "m", "messages": [{"role": "system", "content": text}]}
    shown = {"authorization": f"Bearer {key}"}
    return httpx.post(f"{proxy.base_url}/chat/completions", json=request, headers=shown, timeout=PATIENCE_S)


def degraded(proxy: Proxy) -> dict[str, str]:
    told = httpx.get(f"{proxy.url}/readyz", timeout=PATIENCE_S).json()["degraded"]
    return {each["part"]: each["reason"] for each in told}


def cached(proxy: Proxy, text: str) -> dict[str, Any]:
    used: dict[str, Any] = ask(proxy, text).json()["grounding"]["cache"]
    return used


def test_a_proxy_finds_the_verdicts_of_another_proxy(start_proxy: Start, real_redis: RedisOfTests) -> None:
    shared = {"redis_url": real_redis.url, "redis_timeout": "10s", "ttl": "60s"}
    one, other = start_proxy(cache=shared), start_proxy(cache=shared)
    text = f"The sky is blue above {real_redis.name}."
    assert cached(one, text)["hits"] == 0
    deadline = time.monotonic() + PATIENCE_S
    while (found := cached(other, text))["hits"] == 0 or found["oldest_s"] is None:
        assert time.monotonic() < deadline, "the other one judges anew"
        text += "."  # a context that is new to both, should the other have been quicker than Redis
        cached(one, text)
    assert found["misses"] == 0
    assert 0 <= found["oldest_s"] <= 60


def test_proxies_share_what_a_key_may_ask(start_proxy: Start, real_redis: RedisOfTests, tmp_path: Path) -> None:
    name = real_redis.name
    key, _ = create_key(tmp_path / "keys", name, Limits(requests_per_minute=2), datetime.now(UTC))
    sections = {
        "server": {"keys": str(tmp_path / "keys")},
        "cache": {"redis_url": real_redis.url, "redis_timeout": "10s"},
    }
    one, other = start_proxy(**sections), start_proxy(**sections)
    replies = [ask(each, key=key) for each in (one, other, one, other)]
    assert [reply.status_code for reply in replies] == [200, 200, 429, 429]
    assert [reply.headers["x-ratelimit-remaining-requests"] for reply in replies] == ["1", "0", "0", "0"]


def test_a_proxy_answers_without_redis_and_reports_it(start_proxy: Start, silent_redis: Gate, tmp_path: Path) -> None:
    key, _ = create_key(tmp_path / "keys", "app", Limits(requests_per_minute=2), datetime.now(UTC))
    proxy = start_proxy(server={"keys": str(tmp_path / "keys")}, cache={"redis_url": silent_redis.url})
    assert degraded(proxy) == {}
    replies = [ask(proxy, key=key) for _ in range(3)]
    assert [reply.status_code for reply in replies] == [200, 200, 429]
    assert replies[0].json()["grounding"]["status"] == "complete"
    assert degraded(proxy)["redis"].startswith("unavailable; verdicts and limits are those of this process, ")
