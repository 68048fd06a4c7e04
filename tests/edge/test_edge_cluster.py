"""Replicas on one PostgreSQL and one Redis, under load, one of them killed: nothing is lost, and limits are shared."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from groundwire.http.keys import create_key
from groundwire.storage.limits import Limits
from tests.edge.processes import Process
from tests.edge.upstream import Pause, Received, Reply, Upstream, Wait, body_reply, chat_body
from tests.servers.databases import Database, postgresql
from tests.servers.redis_of_tests import RedisOfTests
from tests.waiting import found_within

WITHIN_S = 120.0
CLIENTS, EACH, LIMIT = 12, 6, 8
"""Clients, each with so many requests, and how many of a key may run at once: more than one replica's clients."""

RARE = "of the other key"
ANSWER = "The sky is blue on a clear day. The moon is made of green cheese."


@dataclass
class Cluster:
    """Replicas that share databases, and two keys: one for `LIMIT` requests at once, one for one a minute."""

    replicas: Sequence[Process]
    key: str
    rare_key: str
    store: Database

    def ask(self, at: int, body: Mapping[str, Any], key: str | None = None) -> httpx.Response:
        """Send a request to one replica."""
        url = f"http://127.0.0.1:{self.replicas[at].port}/v1/chat/completions"
        return httpx.post(url, json=body, headers={"authorization": f"Bearer {key or self.key}"}, timeout=WITHIN_S)

    def stored(self) -> dict[str, str]:
        """Return the status of each stored exchange by its id."""
        with psycopg.connect(self.store.url) as connection:
            return dict(connection.execute(f"SELECT id, status FROM {self.store.schema}.exchanges").fetchall())

    def counts(self) -> tuple[int, int]:
        """Return the number of stored exchanges, and the one in the roll-ups of all days, at one moment."""
        counted = f"SELECT sum(exchanges)::int FROM {self.store.schema}.rollups WHERE grain = 'all'"
        with psycopg.connect(self.store.url) as connection:
            found = connection.execute(f"SELECT count(*), ({counted}) FROM {self.store.schema}.exchanges").fetchone()
        assert found
        return found[0], found[1]


@dataclass
class Load:
    """Clients that repeat a request at the next replica when theirs is gone.

    `answers` holds the status of the report that came with each answer, and its replica, by the report's id. Only
    `deferred` promises that the report survives a replica that is killed.
    """

    cluster: Cluster
    answers: dict[str, tuple[str, int]] = field(default_factory=dict)
    has_third: threading.Event = field(default_factory=threading.Event)

    def client(self, number: int) -> None:
        """Make all requests of one client; each client begins at another replica."""
        at = number
        for request in range(EACH):
            at = self._answered(at, asked(f"{number}.{request}", ("async", "sync")[request % 2]))

    def _answered(self, at: int, body: Mapping[str, Any]) -> int:
        """Return the replica that answers, after repeating the request."""
        for at_ in range(at, at + 10_000):
            replica = at_ % len(self.cluster.replicas)
            while (reply := self._tried(replica, body)) is not None and reply.status_code == 429:
                time.sleep(0.02)
            if reply is not None:
                assert reply.status_code == 200, reply.text
                grounding = reply.json()["grounding"]
                self.answers[grounding["id"]] = grounding["status"], replica
                if len(self.answers) > CLIENTS * EACH // 3:
                    self.has_third.set()
                return replica
        raise AssertionError("no replica answers")

    def _tried(self, replica: int, body: Mapping[str, Any]) -> httpx.Response | None:
        try:
            return self.cluster.ask(replica, body)
        except httpx.TransportError:
            return None


def asked(name: str, mode: str) -> dict[str, Any]:
    context = {"role": "system", "content": f"The sky is blue on a clear day. This is case {name}."}
    return {"model": "m", "messages": [context], "grounding": {"mode": mode}}


@pytest.fixture(params=[2, 4])
def cluster(
    request: pytest.FixtureRequest, upstream: Upstream, real_redis: RedisOfTests, tmp_path: Path
) -> Iterator[Cluster]:
    """Two and four replicas, started at once."""
    with ExitStack() as stack:
        store, jobs = stack.enter_context(postgresql()), stack.enter_context(postgresql())
        keys, now = tmp_path / "keys", datetime.now(UTC)
        key, _ = create_key(keys, real_redis.name, Limits(concurrent=LIMIT), now)
        rare_key, _ = create_key(keys, f"{real_redis.name}-rare", Limits(requests_per_minute=1), now)
        config = {
            "upstreams": {"up": {"base_url": upstream.base_url}},
            "server": {"keys": str(keys)},
            "grounding": {"timeout": "30s"},
            "store": {"url": store.url, "database_schema": store.schema},
            "jobs": {"url": jobs.url, "database_schema": jobs.schema, "poll": "100ms", "timeout": "4s"},
            "cache": {"redis_url": real_redis.url, "redis_timeout": "10s"},
        }
        replicas = []
        for number in range(request.param):
            folder = tmp_path / f"replica-{number}"
            folder.mkdir()
            replicas.append(Process(folder, config, {}))
            stack.callback(replicas[-1].end)
        for replica in replicas:
            replica.wait_until_ready()
        yield Cluster(replicas, key, rare_key, store)


@pytest.mark.timeout(600)
def test_replicas_share_limits_and_lose_nothing_with_one_killed(cluster: Cluster, upstream: Upstream) -> None:
    all_at_once(cluster, upstream)
    most = under_way(upstream)
    load, killed = Load(cluster), cluster.replicas[0]
    with ThreadPoolExecutor(CLIENTS) as pool:
        clients = [pool.submit(load.client, number) for number in range(CLIENTS)]
        assert load.has_third.wait(WITHIN_S)
        rare = [cluster.ask(0, asked(RARE, "off"), cluster.rare_key)]
        killed.signal(signal.SIGKILL)
        rare += [cluster.ask(at, asked(RARE, "off"), cluster.rare_key) for at in range(1, len(cluster.replicas))]
        for client in clients:
            client.result(WITHIN_S)
    assert [reply.status_code for reply in rare] == [200] + [429] * (len(cluster.replicas) - 1)
    assert most() <= LIMIT
    assert len(load.answers) == CLIENTS * EACH
    assert {replica for _, replica in load.answers.values()} == set(range(len(cluster.replicas)))
    promised = {id_ for id_, (status, replica) in load.answers.items() if status == "deferred" or replica != 0}
    found_within(WITHIN_S, lambda: promised <= finished(cluster) or None)
    stored, counted = cluster.counts()
    assert stored == counted, "each is stored once"


def answered(asking: Sequence[Future[Any]], least: int) -> list[Future[Any]] | None:
    """Return the requests that have been answered, or None while these are fewer than `least`."""
    done = [each for each in asking if each.done()]
    return done if len(done) >= least else None


def all_at_once(cluster: Cluster, upstream: Upstream) -> None:
    """Require that of the requests of all clients at once, at all replicas, as many as the limit run."""
    go_on = threading.Event()
    upstream.reply = Reply((chat_body(ANSWER),), before=(Wait(go_on),))
    with ThreadPoolExecutor(CLIENTS) as pool:
        count = len(cluster.replicas)
        asking = [pool.submit(cluster.ask, number % count, asked(f"{number}", "off")) for number in range(CLIENTS)]
        upstream.wait_for_requests(LIMIT)
        refused = found_within(WITHIN_S, lambda: answered(asking, CLIENTS - LIMIT))
        go_on.set()
        statuses = sorted(each.result().status_code for each in asking)
    assert all(each.result().status_code == 429 for each in refused)
    assert statuses == [200] * LIMIT + [429] * (CLIENTS - LIMIT)


def under_way(upstream: Upstream) -> Callable[[], int]:
    """Have the model server take its time; the result returns how many requests of the first key it had at once."""
    counts = [0]
    upstream.exchanges.clear()

    def answer(received: Received) -> Reply:
        running = [each.received for each in upstream.exchanges if not (each.done.is_set() or each.left.is_set())]
        counts.append(sum(RARE.encode() not in each.body for each in (*running, received)))
        return Reply(body_reply(chat_body(ANSWER)).body, before=(Pause(0.05),))

    upstream.reply = answer
    return lambda: max(counts)


def finished(cluster: Cluster) -> set[str]:
    """Return the ids of the exchanges that are stored with a complete report."""
    return {id_ for id_, status in cluster.stored().items() if status == "complete"}
