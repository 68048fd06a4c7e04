"""Output of `groundwire serve` for operators: addresses at the start, warnings about variables, levels in the log."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from tests.edge.clients import fetch, post_chat, until
from tests.edge.processes import Process
from tests.edge.upstream import Cut, Reply, Stall, Upstream, body_reply, chat_body, error_reply

CHAT = {"model": "m", "messages": [{"role": "system", "content": "The sky is blue."}]}
KEY = "an-admin-key-of-32-characters-or-so"
STORED = {"store": {"url": "sqlite:///history.db"}}


@pytest.fixture
def nobody() -> Iterator[str]:
    """The base URL of a server that refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def requests(logs: list[EventDict], count: int = 1) -> list[EventDict]:
    """Return the lines about requests once there are `count`: they are written after the reply."""
    until(lambda: len([line for line in logs if line["event"] == "request"]) >= count)
    return [line for line in logs if line["event"] == "request"]


def levels(logs: list[EventDict], count: int = 1) -> list[tuple[Any, str]]:
    return [(line["status"], line["log_level"]) for line in requests(logs, count)]


def test_the_log_has_addresses_and_warnings_at_the_start_but_no_probes(start_process: Any, upstream: Upstream) -> None:
    """The address of the pages, a warning about an unknown variable, and no line about probes, scrapes and assets."""
    process: Process = start_process({"GROUNDWIRE_ADMIN_KEY": KEY, "GROUNDWIRE_SERVER__MAX_BODDY": "1"}, **STORED)
    until(lambda: f"review and quality pages: http://127.0.0.1:{process.port}/\n" in process.said)
    assert b"Groundwire is running" in fetch(process.port, "GET", "/").body
    assert "GROUNDWIRE_SERVER__MAX_BODDY: no setting has this name (did you mean GROUNDWIRE_SERVER__MAX_BODY?)" in (
        process.said
    )
    for path in ("/healthz", "/readyz", "/metrics", "/assets/pages.css", "/assets/pages.js"):
        assert fetch(process.port, "GET", path).status == 200
    upstream.reply = body_reply(chat_body("The sky is blue."))
    assert post_chat(process.port, CHAT).status == 200

    def told() -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in process.said.splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == "request"]

    until(lambda: "/v1/chat/completions" in [line["route"] for line in told()])
    assert [(line["route"], line["level"]) for line in told()] == [("/", "info"), ("/v1/chat/completions", "info")]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_are_lines_at_debug(proxy: Any, path: str) -> None:
    with capture_logs() as logs:
        assert fetch(proxy.port, "GET", path).status == 200
        assert levels(logs) == [(200, "debug")]


def test_a_missing_asset_and_a_refused_scrape_are_lines_at_info(start_proxy: Any, tmp_path: Any) -> None:
    stored = {"store": {"url": f"sqlite:///{tmp_path}/history.db"}}
    proxy = start_proxy(**stored, admin={"keys": {"ann": f"sha256:{'0' * 64}"}}, telemetry={"metrics_access": "admin"})
    with capture_logs() as logs:
        assert fetch(proxy.port, "GET", "/assets/none.css").status == 404
        assert fetch(proxy.port, "GET", "/metrics").status == 401
        assert levels(logs, 2) == [(404, "info"), (401, "info")]


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Reply(before=(Stall(),)), 504),
        (Reply((b"{",), before=(Cut(reset=True),)), 502),
        (Reply((b"{", Cut()), framing="chunked"), 502),
        (error_reply(503, "Come back later.", type="server_error"), 503),
    ],
    ids=["silent", "cut before its head", "cut within its body", "503"],
)
def test_a_model_server_that_fails_is_a_warning(
    start_proxy: Any, upstream: Upstream, reply: Reply, status: int
) -> None:
    proxy = start_proxy(upstreams={"up": {"base_url": upstream.base_url, "timeout": "500ms"}})
    upstream.reply = reply
    with capture_logs() as logs:
        assert post_chat(proxy.port, CHAT).status == status
        assert levels(logs) == [(status, "warning")]


def test_a_stream_that_breaks_off_is_a_warning(proxy: Any, upstream: Upstream) -> None:
    upstream.reply = Reply(
        (b"data: {}\n\n", Cut()), headers=(("content-type", "text/event-stream"),), framing="chunked"
    )
    with capture_logs() as logs:
        post_chat(proxy.port, CHAT | {"stream": True})
        assert [level for _, level in levels(logs)] == ["warning"]


def test_a_model_server_that_is_down_is_a_warning(start_proxy: Any, nobody: str) -> None:
    proxy = start_proxy(upstreams={"up": {"base_url": nobody}})
    with capture_logs() as logs:
        assert post_chat(proxy.port, CHAT).status == 502
        (line,) = requests(logs)
    assert (line["log_level"], line["error"], line["upstream"]) == ("warning", "UpstreamUnreachable", "up")


def test_an_error_of_the_client_is_no_warning(proxy: Any, upstream: Upstream) -> None:
    upstream.reply = error_reply(401, "No such key.", type="invalid_request_error")
    with capture_logs() as logs:
        assert post_chat(proxy.port, CHAT).status == 401
        assert levels(logs) == [(401, "info")]
