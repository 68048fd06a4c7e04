"""`groundwire serve` in a separate process: its answers and exit, and a log without secrets."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from tests.edge.clients import post_chat
from tests.edge.upstream import Upstream, body_reply, chat_body, chat_events, error_reply, stream_reply
from tests.ports import free_port

COMMAND = [sys.executable, "-c", "from groundwire.cli import main; main()"]
SECRETS = ("sk-client-6f1d", "sk-upstream-77ab", "magpies nest in the old mill", "walrus factory", "cobalt teapot")


@pytest.fixture
def running(upstream: Upstream, tmp_path: Path) -> Iterator[tuple[int, Path, subprocess.Popen[bytes]]]:
    """Yield port, log file and process of a proxy started as a user would start it."""
    config = {"upstreams": {"up": {"base_url": upstream.base_url, "api_key_env": "EDGE_UP_KEY"}}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    port = free_port()
    log = tmp_path / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--config", str(tmp_path / "config.yaml"), "--host", "127.0.0.1", "--port", str(port)],
            stdout=sink,
            stderr=sink,
            cwd=tmp_path,
            env=os.environ | {"EDGE_UP_KEY": SECRETS[1]},
        )
    try:
        _wait_until_up(port, process, log)
        yield port, log, process
    finally:
        process.kill()
        process.wait(timeout=60)


def _wait_until_up(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            if httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"not up after 100 s: {log.read_text()}")


def test_a_served_proxy_answers_keeps_its_secrets_and_stops(running, upstream: Upstream) -> None:
    port, log, process = running
    answer = f"We learn that {SECRETS[3]} ran until 1951. He said “the {SECRETS[4]} was never really there at all”."
    request = {"model": "m", "messages": [{"role": "system", "content": f"Every spring {SECRETS[2]}."}]}
    secret = ("authorization", f"Bearer {SECRETS[0]}")
    upstream.reply = body_reply(chat_body(answer))
    assert post_chat(port, request, secret).json()["grounding"]["verdict"] == "ungrounded"
    upstream.reply = stream_reply(chat_events(answer))
    assert b'"grounding"' in post_chat(port, request | {"stream": True}, secret).body
    upstream.reply = error_reply(401, f"Incorrect API key: {SECRETS[1]}", type="invalid_request_error")
    assert post_chat(port, request, secret).status == 401
    assert post_chat(port, b'{"model": "walrus factory', secret).status == 401, "the upstream's own answer"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0
    logged = log.read_text()
    assert not [secret for secret in SECRETS if secret in logged]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("server:\n  port: 8080\n  prot: 1\n", ("prot", ":3")),
        (
            "upstreams:\n  up:\n    base_url: http://127.0.0.1:1/v1\nstream:\n  tail_budget: soon\n",
            ("tail_budget", ":5"),
        ),
        ("server: [\n", ("config.yaml",)),
    ],
    ids=["unknown key", "wrong value", "no YAML"],
)
def test_a_wrong_config_is_refused_with_key_and_line(tmp_path: Path, text: str, says: tuple[str, ...]) -> None:
    (tmp_path / "config.yaml").write_text(text)
    done = subprocess.run(
        [*COMMAND, "serve", "--config", "config.yaml", "--port", "0"], cwd=tmp_path, capture_output=True, timeout=120
    )
    said = (done.stdout + done.stderr).decode()
    assert done.returncode != 0
    assert all(word in said for word in says), said
    assert "Traceback" not in said
