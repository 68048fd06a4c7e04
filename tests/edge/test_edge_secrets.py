"""`groundwire serve` in a separate process, traffic of every kind, and a search of all its output.

Each secret and each text occurs only where it belongs: a key at its upstream, the words of an exchange at the model
server, at the client, in jobs and among shared verdicts.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import token_hex
from typing import Any

import httpx
import pytest
import yaml
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.errors import ConfigError
from groundwire.http.keys import create_key
from groundwire.storage.limits import Limits
from tests.edge.clients import RawClient, until
from tests.edge.upstream import (
    Cut,
    Pause,
    Received,
    Reply,
    Stall,
    Upstream,
    body_reply,
    chat_body,
    chat_events,
    error_reply,
    stream_reply,
)
from tests.ports import free_port
from tests.servers.redis_of_tests import RedisOfTests

COMMAND = [sys.executable, "-c", "from groundwire.cli import main; main()"]
PATIENCE_S = 60.0
KEPT_SECRETS = (
    *("client key", "wrong key", "admin key", "session secret", "upstream key", "upstream header", "redis password"),
    *("database password", "webhook secret", "cookie", "provider key", "proxy password", "query"),
)
TEXTS = ("prompt", "source", "answer", "argument", "bad json", "bad value", "user")


class Sink:
    """A server that stores all that is posted to it, traces, logs and webhooks alike, as text."""

    def __init__(self) -> None:
        self.received: list[tuple[str, bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
                outer.received.append((self.path, str(self.headers).encode() + body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def at(self, path: str) -> bytes:
        """Return everything posted to one path."""
        return b"\n".join(body for found, body in self.received if found == path)

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()


@dataclass(slots=True)
class Stage:
    """A running proxy, the planted values, and the places where they may leak."""

    planted: dict[str, str]
    folder: Path
    port: int
    upstream: Upstream
    sink: Sink
    redis: RedisOfTests
    process: subprocess.Popen[bytes]
    told: list[bytes] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def ask(self, path: str = "/v1/chat/completions", key: str = "client key", **request: Any) -> httpx.Response:
        headers = {
            "authorization": f"Bearer {self.planted[key]}",
            "cookie": f"session={self.planted['cookie']}",
            "x-goog-api-key": self.planted["provider key"],
            "proxy-authorization": f"Basic {self.planted['proxy password']}",
        }
        body = {"model": "m", "user": self.planted["user"], "messages": self.messages} | request
        url = f"http://127.0.0.1:{self.port}{path}?key={self.planted['query']}"
        return httpx.post(url, json=body, headers=headers, timeout=PATIENCE_S)

    def ask_amiss(self, content: bytes, **options: Any) -> None:
        """Send a faulty request and expect an error."""
        headers = {"authorization": f"Bearer {self.planted['client key']}", "content-type": "application/json"}
        url = f"http://127.0.0.1:{self.port}/v1/chat/completions"
        reply = httpx.post(url, content=content, headers=headers, timeout=PATIENCE_S, **options)
        assert reply.status_code in (400, 413)

    @property
    def messages(self) -> list[dict[str, str]]:
        return [
            {"role": "system", "content": f"Every spring {self.planted['source']} returns."},
            {"role": "user", "content": f"What of {self.planted['prompt']}?"},
        ]

    def get(self, path: str, key: str = "client key") -> httpx.Response:
        shown = {"authorization": f"Bearer {self.planted[key]}"}
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", headers=shown, timeout=PATIENCE_S)


@pytest.fixture
def stage(upstream: Upstream, real_redis: RedisOfTests, tmp_path: Path) -> Iterator[Stage]:
    planted = {name: f"{name.replace(' ', '-')}-{token_hex(12)}" for name in (*KEPT_SECRETS, *TEXTS)}
    key, _ = create_key(tmp_path / "keys", real_redis.name, Limits(100, 100), datetime.now(UTC))
    planted["client key"] = key
    sink = Sink()
    config = {
        "server": {"keys": "keys", "max_body": "64KiB"},
        "upstreams": {
            "up": {"base_url": upstream.base_url, "api_key_env": "UP_KEY", "headers_env": {"x-tenant": "UP_HEADER"}},
            "down": {"base_url": "http://127.0.0.1:1/v1", "models": ["gone"], "api_key_env": "UP_KEY"},
        },
        "store": {"url": "sqlite:///history.db", "content": "hashes", "interval": "10ms"},
        "jobs": {"url": "sqlite:///jobs.db", "poll": "50ms"},
        "webhook": {"url": f"{sink.url}/hook"},
        "facts": {"templates": {"figures": "SELECT label, value FROM figures WHERE id = :id"}, "timeout": "100ms"},
        "cache": {"ttl": "60s", "redis_timeout": "10s"},
        "telemetry": {"otlp_endpoint": sink.url, "log_level": "debug"},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    port = free_port()
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--port", str(port)],
            stdout=log,
            stderr=log,
            cwd=tmp_path,
            env=environ(planted, real_redis),
        )
    found = Stage(planted, tmp_path, port, upstream, sink, real_redis, process)
    try:
        until(lambda: is_up(found), "the proxy does not start")
        yield found
    finally:
        process.kill()
        process.wait(timeout=60)
        sink.close()


def environ(planted: Mapping[str, str], redis: RedisOfTests) -> dict[str, str]:
    return os.environ | {
        "UP_KEY": planted["upstream key"],
        "UP_HEADER": planted["upstream header"],
        "GROUNDWIRE_ADMIN_KEY": planted["admin key"],
        "GROUNDWIRE_ADMIN_SESSION_SECRET": planted["session secret"],
        "GROUNDWIRE_WEBHOOK_SECRET": planted["webhook secret"],
        "GROUNDWIRE_FACTS__URL": f"postgresql://someone:{planted['database password']}@127.0.0.1:1/none",
        # a Redis that needs no password takes any
        "GROUNDWIRE_CACHE__REDIS_URL": redis.url.replace("://", f"://default:{planted['redis password']}@"),
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "OTEL_BLRP_SCHEDULE_DELAY": "100",
    }


def is_up(stage: Stage) -> bool:
    assert stage.process.poll() is None, stage.log.read_text()
    try:
        return httpx.get(f"http://127.0.0.1:{stage.port}/healthz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def answered_well(stage: Stage) -> None:
    """Send requests that are answered as they should be."""
    said = stage.planted["answer"]
    answer = f"We learn that {said} ran until 1951. “It was never {said} at all in that town”, he said."
    stage.upstream.reply = body_reply(chat_body(answer))
    reply = stage.ask(grounding={"subject": "acme", "facts": {"id": 1}})
    assert reply.json()["grounding"]["status"] in ("complete", "deferred", "partial")
    assert stage.get(f"/v1/grounding/{reply.headers['x-grounding-id']}").status_code == 200
    later = stage.ask(grounding={"mode": "async"})
    until(lambda: later.headers["x-grounding-id"].encode() in stage.sink.at("/hook"), "no webhook")
    stage.upstream.reply = stream_reply(chat_events(answer))
    assert b'"grounding"' in stage.ask(stream=True).content
    assert stage.ask("/v1/other").status_code == 200
    until(lambda: stage.get("/v1/grounding?subject=acme", "admin key").json()["exchanges"], "nothing is stored")


def failed(stage: Stage) -> None:
    """Cause failures at the client, at the upstream and between them."""
    stage.told += [stage.ask(key=key).content for key in ("wrong key", "admin key", "upstream key")]
    stage.told += [stage.get("/v1/reviews", key).content for key in ("client key", "wrong key")]
    stage.upstream.reply = error_reply(400, "not JSON", type="invalid_request_error")  # it gets unreadable requests
    stage.ask_amiss(b'{"model": "' + stage.planted["bad json"].encode())
    stage.ask_amiss(json.dumps({"model": "m", "messages": stage.messages, "padding": "x" * 70_000}).encode())
    for odd in ({"mode": stage.planted["bad value"]}, {stage.planted["bad value"]: 1}, {"sources": [{"text": 1}]}):
        stage.ask_amiss(json.dumps({"model": "m", "messages": stage.messages, "grounding": odd}).encode())
    stage.told.append(stage.ask(model="gone").content)
    events = chat_events(stage.planted["answer"])
    for reply in (
        body_reply(b'{"error": {"message": "at fault: ' + stage.planted["upstream key"].encode() + b'"}}', status=500),
        body_reply(b"not JSON: " + stage.planted["answer"].encode()),
        Reply((chat_body(stage.planted["answer"])[:80], Cut(reset=True)), framing="chunked"),
        Reply((Cut(),)),
        body_reply(chat_body("Blue."), headers=((f"no header {stage.planted['answer']}", stage.planted["answer"]),)),
        stream_reply([*events[:3], Cut()]),
        stream_reply([b"data: {" + stage.planted["answer"].encode() + b"\n\n", *events[1:]]),
    ):
        stage.upstream.reply = reply
        try:
            stage.ask(stream=reply.framing == "chunked")
        except httpx.TransportError:
            pass
    stage.upstream.reply = stream_reply([*events[:3], Pause(0.1), Stall()])
    with RawClient(stage.port) as client:
        shown = ("authorization", f"Bearer {stage.planted['client key']}")
        body = json.dumps({"model": "m", "stream": True, "messages": stage.messages}).encode()
        client.send("POST", "/v1/chat/completions", (shown, ("content-type", "application/json")), body)
        client.read_head()
    for path in ("/readyz", "/healthz", "/metrics", "/openapi.json", "/"):
        stage.told.append(stage.get(path).content)


def test_nothing_comes_out_where_it_does_not_belong(stage: Stage) -> None:
    answered_well(stage)
    failed(stage)
    shared = list(stage.redis.client.scan_iter("groundwire:*"))
    assert any(stage.redis.name.encode() in key for key in shared)
    in_redis = b"\n".join(key + _value(stage.redis, key) for key in shared)
    until(lambda: b"groundwire" in stage.sink.at("/v1/traces"), "no trace has arrived")
    shown = subprocess.run(
        [*COMMAND, "config"],
        cwd=stage.folder,
        capture_output=True,
        timeout=PATIENCE_S,
        env=environ(stage.planted, stage.redis),
    )
    assert shown.returncode == 0
    stage.process.terminate()
    stage.process.wait(timeout=PATIENCE_S)
    sinks = {
        "log": stage.log.read_bytes(),
        "replies": b"\n".join(stage.told),
        "config": shown.stdout + shown.stderr,
        "history": _files(stage.folder, "history.db"),
        **{path: stage.sink.at(path) for path in {path for path, _ in stage.sink.received} - {"/hook"}},
    }
    told_more = {
        "jobs": _files(stage.folder, "jobs.db"),
        "webhook": stage.sink.at("/hook"),
        "redis": in_redis,
        "keys": (stage.folder / "keys").read_bytes(),
    }
    assert b"grounding.client" in sinks["/v1/traces"]
    assert stage.redis.name.encode() in sinks["/v1/traces"], "the client is known by name"
    assert {name for name, found in (sinks | told_more).items() if not found} == set()
    out = [(name, where) for where, found in (sinks | told_more).items() for name in _found(stage, KEPT_SECRETS, found)]
    out += [(name, where) for where, found in sinks.items() for name in _found(stage, TEXTS, found)]
    assert sorted(out) == []
    assert _at_the_upstream(stage) == {"upstream key", "upstream header", "query"}


def _found(stage: Stage, names: tuple[str, ...], found: bytes) -> list[str]:
    """Return the planted values that occur in there, unchanged or in base64."""
    values = {name: stage.planted[name].encode() for name in names}
    return [name for name, value in values.items() if value in found or base64.b64encode(value).rstrip(b"=") in found]


def _at_the_upstream(stage: Stage) -> set[str]:
    def line(received: Received) -> bytes:
        return repr((received.target, received.headers)).encode()

    return set(_found(stage, KEPT_SECRETS, b"\n".join(line(each) for each in stage.upstream.requests)))


def _files(folder: Path, name: str) -> bytes:
    return b"".join(each.read_bytes() for each in folder.glob(f"{name}*"))


def _value(redis: RedisOfTests, key: bytes) -> bytes:
    kind = redis.client.type(key)
    value = redis.client.get(key) if kind == b"string" else redis.client.zrange(key, 0, -1)
    return repr(value).encode()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GROUNDWIRE_CACHE__REDIS_URL", "redis://:{}@127.0.0.1:notaport/0"),
        ("GROUNDWIRE_CACHE__REDIS_URL", "https://:{}@127.0.0.1"),
        ("GROUNDWIRE_STORE__URL", "postgresql://u:{}@127.0.0.1:notaport/db"),
        ("GROUNDWIRE_STORE__URL", "mysql://u:{}@127.0.0.1/db"),
        ("GROUNDWIRE_JOBS__URL", "postgresql://u:{}/x@127.0.0.1/db"),
        ("GROUNDWIRE_UPSTREAMS__UP__BASE_URL", "http://u:{}@127.0.0.1/v1"),
        ("GROUNDWIRE_WEBHOOK__URL", "ftp://u:{}@127.0.0.1"),
        ("GROUNDWIRE_ADMIN__KEYS", '{{"ann": "{}"}}'),
        ("GROUNDWIRE_SERVER__PORT", "{}"),
    ],
)
def test_an_invalid_setting_is_reported_without_its_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    secret = f"s3cret-{token_hex(12)}"
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["config"], env={variable: value.format(secret)})
    assert isinstance(done.exception, ConfigError), "which the command tells in a line, without a traceback"
    assert secret not in done.output + str(done.exception)
