"""Stored data of a client belongs to its tenant: for all others it does not exist, by any path."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from groundwire.http.keys import create_key
from groundwire.storage.limits import Limits
from tests.edge.proxies import Proxy
from tests.edge.upstream import Upstream, body_reply, chat_body, error_reply
from tests.servers.databases import Database, postgresql, sqlite
from tests.servers.redis_of_tests import RedisOfTests
from tests.waiting import found_within

PATIENCE_S = 60.0
ADMIN = "an-admin-key-that-is-long"
ADMINS = {"keys": {"admin": f"sha256:{sha256(ADMIN.encode()).hexdigest()}"}}
SUBJECT = "acct-1"
GATE = {"enabled": True, "memory_gate": {"enabled": True}}
CLIENTS = ("alice", "bob", "carol")


@pytest.fixture(params=[sqlite, postgresql], ids=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty database of each kind."""
    with ExitStack() as stack:
        yield stack.enter_context(request.param(tmp_path) if request.param is sqlite else request.param())


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    """The key of each client."""
    return {name: create_key(tmp_path / "keys", name, Limits(), datetime.now(UTC))[0] for name in CLIENTS}


@pytest.fixture
def start(start_proxy: Callable[..., Proxy], keys: dict[str, str], tmp_path: Path) -> Callable[..., Proxy]:
    """Start a proxy that requires keys."""

    def starting(tenants: Any = "each", **sections: Any) -> Proxy:
        server = {"keys": str(tmp_path / "keys"), "tenants": tenants}
        return start_proxy(server=server, admin=ADMINS, **sections)

    return starting


def shown(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def ask(proxy: Proxy, key: str, system: str = "The sky is blue on a clear day.", **grounding: Any) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "system", "content": system}], "grounding": grounding}
    reply = httpx.post(f"{proxy.base_url}/chat/completions", json=body, headers=shown(key), timeout=PATIENCE_S)
    assert reply.status_code == 200, reply.text
    return {**reply.json()["grounding"], "id": reply.headers["x-grounding-id"]}


def fetch(proxy: Proxy, key: str, id_: str) -> httpx.Response:
    return httpx.get(f"{proxy.base_url}/grounding/{id_}", headers=shown(key), timeout=PATIENCE_S)


def settled(proxy: Proxy, key: str, id_: str, status: str = "complete") -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        reply = fetch(proxy, key, id_)
        return reply.json() if reply.status_code == 200 and reply.json()["status"] == status else None

    return found_within(PATIENCE_S, look)


def assert_unknown(proxy: Proxy, key: str, id_: str) -> None:
    """Assert that the reply equals the reply for an id that never existed."""
    made_up = "gw-" + "0" * 24
    stranger, unknown = fetch(proxy, key, id_), fetch(proxy, key, made_up)
    assert (stranger.status_code, unknown.status_code) == (404, 404)
    assert stranger.text.replace(id_, made_up) == unknown.text
    ignored = {"date", "content-length"}
    assert {*stranger.headers} - ignored == {*unknown.headers} - ignored


def stored_at(place: Database) -> dict[str, Any]:
    return {"store": {"url": place.url, "database_schema": place.schema, "interval": "10ms"}}


def waited_for_storing(proxy: Proxy, id_: str) -> None:
    def look() -> bool | None:
        found = httpx.get(f"{proxy.base_url}/grounding", headers=shown(ADMIN), timeout=PATIENCE_S).json()
        return True if id_ in [each["id"] for each in found.get("exchanges", ())] else None  # none without tables yet

    found_within(PATIENCE_S, look)


# --- reports ----------------------------------------------------------------------------------------------------------


def test_a_report_is_fetched_by_its_tenant_alone(start: Callable[..., Proxy], keys: dict[str, str]) -> None:
    proxy = start()
    id_ = ask(proxy, keys["alice"])["id"]
    assert fetch(proxy, keys["alice"], id_).json()["id"] == id_
    assert_unknown(proxy, keys["bob"], id_)


def test_the_same_holds_for_what_is_stored(start: Callable[..., Proxy], keys: dict[str, str], place: Database) -> None:
    first = start(**stored_at(place))
    id_ = ask(first, keys["alice"])["id"]
    waited_for_storing(first, id_)
    second = start(**stored_at(place))  # which has nothing in memory
    assert fetch(second, keys["alice"], id_).json()["id"] == id_
    for proxy in (first, second):
        assert_unknown(proxy, keys["bob"], id_)


def test_the_same_holds_for_reports_of_checks(start: Callable[..., Proxy], keys: dict[str, str]) -> None:
    proxy = start()
    body = {"answer": "The sky is blue.", "sources": [{"text": "The sky is blue."}]}
    url = f"{proxy.base_url}/grounding/verify"
    id_ = httpx.post(url, json=body, headers=shown(keys["alice"]), timeout=PATIENCE_S).json()["id"]
    assert fetch(proxy, keys["alice"], id_).status_code == 200
    assert_unknown(proxy, keys["bob"], id_)


def test_the_same_holds_for_reports_of_agents(start: Callable[..., Proxy], keys: dict[str, str]) -> None:
    proxy = start(mcp={"enabled": True})
    arguments = {"text": "The sky is blue.", "context": ["The sky is blue."]}
    call = {"method": "tools/call", "params": {"name": "verify_claims", "arguments": arguments}}
    accept = {"accept": "application/json, text/event-stream"}
    reply = httpx.post(
        f"{proxy.url}/mcp",
        json={"jsonrpc": "2.0", "id": 1} | call,
        headers=shown(keys["alice"]) | accept,
        timeout=PATIENCE_S,
    )
    id_ = reply.json()["result"]["structuredContent"]["id"]
    assert fetch(proxy, keys["alice"], id_).status_code == 200
    assert_unknown(proxy, keys["bob"], id_)


def test_the_same_holds_for_what_jobs_do(start: Callable[..., Proxy], keys: dict[str, str], place: Database) -> None:
    """Their reports are private while they wait and when they are done."""
    jobs = {"url": place.url, "database_schema": place.schema, "poll": "100ms"}
    proxy = start(jobs=jobs)
    promised = ask(proxy, keys["alice"], mode="async")
    assert promised["status"] == "deferred"
    assert_unknown(proxy, keys["bob"], promised["id"])
    assert settled(proxy, keys["alice"], promised["id"])["verdict"] == "grounded"
    assert_unknown(proxy, keys["bob"], promised["id"])


def test_the_same_holds_for_checks_that_a_job_completes(
    start: Callable[..., Proxy], keys: dict[str, str], upstream: Upstream, tmp_path: Path
) -> None:
    upstream.reply = error_reply(429, "slow down", type="rate_limit_error").with_headers(("retry-after", "3600"))
    gate = GATE | {"backend": {"type": "self"}}
    proxy = start(hallucination=gate, jobs={"url": f"sqlite:///{tmp_path / 'jobs.db'}"})
    body = {"facts": [{"text": "Lee leads.", "evidence": ["Lee leads."]}], "model": "m"}
    url = f"{proxy.base_url}/grounding/memory"
    promised = httpx.post(url, json=body, headers=shown(keys["alice"]), timeout=PATIENCE_S).json()
    assert promised["status"] == "deferred"
    assert fetch(proxy, keys["alice"], promised["id"]).json() == promised
    stranger = fetch(proxy, keys["bob"], promised["id"])
    assert (stranger.status_code, stranger.json()["error"]["param"]) == (404, "id")


# --- subjects ---------------------------------------------------------------------------------------------------------


def test_answers_are_compared_with_those_of_the_same_tenant(
    start: Callable[..., Proxy], keys: dict[str, str], place: Database, upstream: Upstream
) -> None:
    proxy = start(**stored_at(place))
    upstream.reply = body_reply(chat_body("Revenue was $4.2 million in 2023."))
    first = ask(proxy, keys["alice"], "Revenue was $4.2 million in 2023.", subject=SUBJECT)
    waited_for_storing(proxy, first["id"])
    upstream.reply = body_reply(chat_body("Revenue was $7 million in 2023."))
    mine, others = (
        ask(proxy, keys[name], "Revenue was $7 million in 2023.", subject=SUBJECT) for name in ("alice", "bob")
    )
    assert "inconsistent_with_history" in mine["flags"]
    assert "inconsistent_with_history" not in others["flags"]
    assert first["id"] not in str(others)


def test_memory_is_of_a_tenant(start: Callable[..., Proxy], keys: dict[str, str], upstream: Upstream) -> None:
    proxy = start(hallucination=GATE)
    url = f"{proxy.base_url}/grounding/memory"

    def remember(name: str, text: str) -> None:
        body = {"subject": SUBJECT, "facts": [{"text": text, "evidence": [text]}]}
        assert httpx.post(url, json=body, headers=shown(keys[name]), timeout=PATIENCE_S).json()["accepted"] == 1

    def kept(name: str) -> list[str]:
        reply = httpx.get(url, params={"subject": SUBJECT}, headers=shown(keys[name]), timeout=PATIENCE_S)
        return [fact["text"] for fact in reply.json()["facts"]]

    remember("alice", "The PIN of the account is 4711.")
    remember("bob", "Revenue was $999 million in 2023.")
    assert (kept("alice"), kept("bob"), kept("carol")) == (
        ["The PIN of the account is 4711."],
        ["Revenue was $999 million in 2023."],
        [],
    )
    upstream.reply = body_reply(chat_body("Revenue was $999 million in 2023."))
    found = {name: ask(proxy, keys[name], "Be brief.", subject=SUBJECT, memory=True) for name in ("alice", "bob")}
    assert found["bob"]["verdict"] == "grounded"
    assert found["alice"]["verdict"] != "grounded"
    assert {name: len(report["sources"]) for name, report in found.items()} == {"alice": 1, "bob": 1}


def test_a_template_can_ask_for_what_belongs_to_the_tenant(
    start: Callable[..., Proxy], keys: dict[str, str], tmp_path: Path, upstream: Upstream
) -> None:
    with sqlite3.connect(tmp_path / "facts.db") as database:
        database.execute("CREATE TABLE figures (owner TEXT, property INT, label TEXT, value REAL)")
        database.executemany("INSERT INTO figures VALUES (?, 1, 'rent', ?)", [("alice", 500.0), ("bob", 998.0)])
    sql = "SELECT label, value FROM figures WHERE property = :property AND owner = :groundwire_tenant"
    proxy = start(facts={"url": f"sqlite:///{tmp_path}/facts.db", "templates": {"figures": sql}})
    upstream.reply = body_reply(chat_body("The rent is 500."))
    for given in ({"property": 1}, {"property": 1, "groundwire_tenant": "alice"}):
        verdicts = {name: ask(proxy, keys[name], "Be brief.", facts=given)["verdict"] for name in ("alice", "bob")}
        assert verdicts["alice"] == "grounded"
        assert verdicts["bob"] != "grounded"


# --- the cache --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True], ids=["one process", "two and Redis"])
def test_verdicts_are_shared_and_their_age_is_not(
    start: Callable[..., Proxy], keys: dict[str, str], real_redis: RedisOfTests, shared: bool
) -> None:
    cache = {"redis_url": real_redis.url, "redis_timeout": "10s", "ttl": "60s"} if shared else {}
    one = start(cache=cache)
    other = start(cache=cache) if shared else one
    text = f"The sky is blue above {real_redis.name}{shared}."
    assert ask(one, keys["alice"], text)["cache"] == {"hits": 0, "misses": 1, "oldest_s": None}

    def used(name: str) -> dict[str, Any] | None:
        cache: dict[str, Any] = ask(other, keys[name], text)["cache"]
        return cache if cache["hits"] else None

    assert found_within(PATIENCE_S, lambda: used("bob"))["oldest_s"] is None
    assert found_within(PATIENCE_S, lambda: used("alice"))["oldest_s"] >= 0


# --- sharing, and admins ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tenants", "reads"),
    [
        ("each", {"alice": True, "bob": False, "carol": False}),
        ("all", {"alice": True, "bob": True, "carol": True}),
        ({"acme": ["alice", "bob"]}, {"alice": True, "bob": True, "carol": False}),
        ({"alice": ["bob"]}, {"alice": True, "bob": True, "carol": False}),
        ({"acme": ["bob", "carol"]}, {"alice": True, "bob": False, "carol": False}),
    ],
    ids=["each", "all", "a group", "a group of a key's name", "a group of others"],
)
def test_a_setting_lets_keys_share(
    start: Callable[..., Proxy], keys: dict[str, str], tenants: Any, reads: dict[str, bool]
) -> None:
    proxy = start(tenants)
    id_ = ask(proxy, keys["alice"])["id"]
    assert {name: fetch(proxy, keys[name], id_).status_code == 200 for name in CLIENTS} == reads


def test_data_older_than_tenants_is_visible_to_keys_that_share_all(
    start: Callable[..., Proxy], start_proxy: Callable[..., Proxy], keys: dict[str, str], place: Database
) -> None:
    before = start_proxy(admin=ADMINS, **stored_at(place))
    id_ = ask(before, "any")["id"]
    waited_for_storing(before, id_)
    assert fetch(start("all", **stored_at(place)), keys["bob"], id_).status_code == 200
    assert_unknown(start(**stored_at(place)), keys["bob"], id_)


def test_admins_see_all_tenants_or_one(start: Callable[..., Proxy], keys: dict[str, str], place: Database) -> None:
    proxy = start(**stored_at(place))
    ids = {name: ask(proxy, keys[name], f"The sky is blue, {name}.", subject=SUBJECT)["id"] for name in CLIENTS}
    for id_ in ids.values():
        waited_for_storing(proxy, id_)

    def listed(path: str = "/grounding", **parameters: str) -> dict[str, str]:
        reply = httpx.get(f"{proxy.base_url}{path}", params=parameters, headers=shown(ADMIN), timeout=PATIENCE_S)
        assert reply.status_code == 200, reply.text
        return {each["id"]: each["tenant"] for each in reply.json()["exchanges"]}

    assert listed(subject=SUBJECT) == {id_: name for name, id_ in ids.items()}
    for found in (
        listed(tenant="bob"),
        listed(tenant="bob", subject=SUBJECT),
        listed(tenant="bob", subject=SUBJECT, model="gpt-4o-mini-2024-07-18"),
        listed(tenant="bob", q="sky"),
        listed(tenant="bob", until="2100-01-01"),
    ):
        assert found == {ids["bob"]: "bob"}
    assert listed(tenant="nobody") == {}
    deleted = httpx.delete(
        f"{proxy.base_url}/subjects/{SUBJECT}", params={"tenant": "bob"}, headers=shown(ADMIN), timeout=PATIENCE_S
    )
    assert deleted.json()["deleted"] == 1
    assert listed() == {ids[name]: name for name in ("alice", "carol")}
    assert_unknown(proxy, keys["bob"], ids["bob"])
    rest = httpx.delete(f"{proxy.base_url}/subjects/{SUBJECT}", headers=shown(ADMIN), timeout=PATIENCE_S)
    assert (rest.json()["deleted"], listed()) == (2, {})


def test_forgetting_a_subject_forgets_what_is_remembered_of_it(
    start: Callable[..., Proxy], keys: dict[str, str], place: Database
) -> None:
    proxy = start(hallucination=GATE, **stored_at(place))
    url, text = f"{proxy.base_url}/grounding/memory", "The PIN is 4711."

    def kept(name: str) -> int:
        reply = httpx.get(url, params={"subject": SUBJECT}, headers=shown(keys[name]), timeout=PATIENCE_S)
        return len(reply.json()["facts"])

    for name in CLIENTS:
        body = {"subject": SUBJECT, "facts": [{"text": text, "evidence": [text]}]}
        httpx.post(url, json=body, headers=shown(keys[name]), timeout=PATIENCE_S)
    assert [kept(name) for name in CLIENTS] == [1, 1, 1]
    subject = f"{proxy.base_url}/subjects/{SUBJECT}"
    httpx.delete(subject, params={"tenant": "bob"}, headers=shown(ADMIN), timeout=PATIENCE_S)
    assert [kept(name) for name in CLIENTS] == [1, 0, 1]
    httpx.delete(subject, headers=shown(ADMIN), timeout=PATIENCE_S)
    assert [kept(name) for name in CLIENTS] == [0, 0, 0]


FOR_ADMINS = [
    ("GET", "/v1/grounding"),
    ("GET", "/v1/grounding/metrics"),
    ("GET", "/v1/grounding/similar?q=sky"),
    ("GET", "/v1/reviews"),
    ("GET", "/v1/reviews/1"),
    ("POST", "/v1/reviews/1"),
    ("GET", "/v1/reviews/export"),
    ("GET", "/v1/reviews/export?format=csv&state=any"),
    ("GET", "/v1/subjects/acct-1/entities"),
    ("DELETE", "/v1/subjects/acct-1"),
]
PAGES = ["/reviews", "/reviews/1", "/reviews/export", "/exchanges/{id}", "/quality"]


def test_a_clients_key_opens_nothing_that_is_for_admins(
    start: Callable[..., Proxy], keys: dict[str, str], place: Database, upstream: Upstream
) -> None:
    proxy = start(**stored_at(place))
    upstream.reply = body_reply(chat_body("Revenue was $7 million in 2023."))  # which is a finding
    id_ = ask(proxy, keys["alice"], "Revenue was $4.2 million in 2023.", subject=SUBJECT)["id"]
    waited_for_storing(proxy, id_)
    headers = shown(keys["alice"])
    with httpx.Client(base_url=proxy.url, timeout=PATIENCE_S) as client:
        for method, path in FOR_ADMINS:
            assert client.request(method, path, headers=headers).status_code == 401, path
        for path in PAGES:
            page = client.get(path.format(id=id_), headers=headers)
            assert (page.status_code, page.headers["location"].partition("?")[0]) == (303, "/sign-in"), path
        form = dict(re.findall(r'name="(\w+)"[^>]* value="([^"]*)"', client.get("/sign-in").text))
        refused = client.post("/sign-in", data={**form, "key": keys["alice"]}, headers={"origin": proxy.url})
        assert (refused.status_code, "key" in refused.text) == (403, True)
        assert client.get("/reviews").headers["location"].startswith("/sign-in")
        assert [each["exchange"] for each in client.get("/v1/reviews", headers=shown(ADMIN)).json()["reviews"]] == [id_]
