"""A promised report arrives, and its webhook is called once, even if the promising process ends."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.edge.proxies import Proxy
from tests.edge.upstream import Upstream, body_reply, chat_body, chat_events, stream_reply
from tests.ports import free_port
from tests.servers.databases import Database
from tests.waiting import found_within

COMMAND = [sys.executable, "-c", "from groundwire.cli import main; main()"]
WITHIN_S = 60.0
ASKED = {
    "model": "m",
    "messages": [{"role": "system", "content": "The sky is blue on a clear day."}],
    "grounding": {"mode": "async"},
}


class Receiver:
    """A receiver of webhooks, with the calls that came."""

    def __init__(self) -> None:
        self.calls: list[tuple[Mapping[str, str], bytes]] = []
        calls = self.calls

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                calls.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Served:
    """A proxy in a separate process."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        folder.mkdir()
        (folder / "config.yaml").write_text(yaml.safe_dump(dict(config)))
        port = free_port()
        self._log = folder / "log"
        self.url = f"http://127.0.0.1:{port}"
        serve = ["serve", "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
        with self._log.open("wb") as sink:
            environ = os.environ | {"GROUNDWIRE_WEBHOOK_SECRET": "s3cret"}
            self.process = subprocess.Popen([*COMMAND, *serve], stdout=sink, stderr=sink, cwd=folder, env=environ)
        try:
            self._wait_until_up()
        except BaseException:
            self.kill()
            raise

    def _wait_until_up(self) -> None:
        def is_up() -> bool | None:
            assert self.process.poll() is None, self._log.read_text()
            try:
                return httpx.get(f"{self.url}/readyz", timeout=5).json() == {"status": "ready", "degraded": []} or None
            except httpx.TransportError:
                return None

        found_within(WITHIN_S, is_up)

    def ask(self) -> dict[str, Any]:
        """Return the report that the client gets at once."""
        answer = httpx.post(f"{self.url}/v1/chat/completions", json=ASKED, timeout=60)
        grounding: dict[str, Any] = answer.json()["grounding"]
        return grounding

    def report(self, id_: str) -> dict[str, Any]:
        """Return the final report under an id from this process; repeat the request when the database is slow."""

        def look() -> dict[str, Any] | None:
            found = httpx.get(f"{self.url}/v1/grounding/{id_}", timeout=60)
            if found.status_code == 503:  # the database took more than a second: "Please try again"
                return None
            assert found.status_code == 200, found.text
            report: dict[str, Any] = found.json()
            return report if report["status"] not in ("pending", "deferred") else None

        return found_within(WITHIN_S, look)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=60)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A webhook's receiver."""
    found = Receiver()
    yield found
    found.close()


@pytest.fixture
def serve(upstream: Upstream, tmp_path: Path, place: Database, receiver: Receiver) -> Iterator[Callable[..., Served]]:
    """Start a proxy over this database; `poll` is how often it looks for jobs."""
    upstream.reply = body_reply(chat_body("The sky is blue on a clear day. The moon is made of green cheese."))
    with ExitStack() as stack:

        def started(name: str, poll: str = "100ms") -> Served:
            jobs = {"url": place.url, "database_schema": place.schema, "poll": poll, "timeout": "2s"}
            config = {
                "upstreams": {"up": {"base_url": upstream.base_url}},
                "jobs": jobs,
                "webhook": {"url": receiver.url, "timeout": "1s"},
            }
            served = Served(tmp_path / name, config)
            stack.callback(served.kill)
            return served

        yield started


@pytest.mark.timeout(120)
def test_reports_of_a_killed_proxy_arrive_and_are_sent_once(serve: Callable[..., Served], receiver: Receiver) -> None:
    promising = serve("first", poll="3s")  # it is unlikely to look for a job before it is killed
    promised = [promising.ask() for _ in range(3)]
    assert {each["status"] for each in promised} == {"deferred"}
    promising.process.send_signal(signal.SIGKILL)
    promising.process.wait(timeout=60)
    keeping = serve("second")
    reports = [keeping.report(each["id"]) for each in promised]
    assert [(each["status"], each["score"]) for each in reports] == [("complete", 0.5)] * 3
    found_within(WITHIN_S, lambda: len(receiver.calls) >= 3 or None)
    time.sleep(1.0)
    told = {headers["webhook-id"]: json.loads(body) for headers, body in receiver.calls}
    assert len(receiver.calls) == 3
    assert told == {report["id"]: report for report in reports}


@pytest.mark.timeout(120)
def test_a_proxy_stops_soon_after_a_stop_signal(serve: Callable[..., Served]) -> None:
    served = serve("only")
    id_ = served.ask()["id"]
    assert served.report(id_)["status"] == "complete"
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait(timeout=60) in (0, -signal.SIGTERM)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("folder", [".", "missing"], ids=["up", "down"])
def test_a_report_that_would_not_survive_is_pending_with_a_warning(
    start_proxy: Callable[..., Proxy], upstream: Upstream, tmp_path: Path, folder: str, streamed: bool
) -> None:
    answer = "The sky is blue on a clear day."
    upstream.reply = stream_reply(chat_events(answer)) if streamed else body_reply(chat_body(answer))
    jobs = {"url": f"sqlite:///{tmp_path / folder}/jobs.db", "poll": "60s"}
    proxy = start_proxy(jobs=jobs, stream={"tail_budget": "10s"})
    raw = httpx.post(f"{proxy.base_url}/chat/completions", json=ASKED | {"stream": streamed}, timeout=60).text
    if streamed:
        (raw,) = (line.removeprefix("data: ") for line in raw.splitlines() if '"grounding"' in line)
    told = json.loads(raw)["grounding"]
    assert told["status"] == ("pending" if folder == "missing" else "deferred")
    assert ["is lost if this process ends" in each for each in told["warnings"]] == [True] * (folder == "missing")


def test_a_job_is_done_once_its_exchange_is_stored(
    start_proxy: Callable[..., Proxy], upstream: Upstream, tmp_path: Path
) -> None:
    upstream.reply = body_reply(chat_body("The sky is blue on a clear day."))
    file = tmp_path / "history.db"
    store = {"url": f"sqlite:///{file}", "interval": "1h"}  # only the job makes it write earlier
    proxy = start_proxy(jobs={"url": f"sqlite:///{tmp_path}/jobs.db", "poll": "100ms"}, store=store)
    id_ = httpx.post(f"{proxy.base_url}/chat/completions", json=ASKED, timeout=60).json()["grounding"]["id"]
    assert proxy.report(id_)["status"] == "complete"
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT id, status FROM exchanges").fetchall() == [(id_, "complete")]
