"""Reloading settings: valid ones apply to new requests, invalid ones never; requests in flight are not affected."""

import json
import signal
import threading
from typing import Any

import pytest

from tests.edge.clients import JSON_HEADERS, RawClient, fetch, post_chat, until
from tests.edge.processes import Process
from tests.edge.upstream import Upstream, Wait, body_reply, chat_body, chat_events, stream_reply

CHAT = {"model": "m", "messages": [{"role": "system", "content": "The sky is blue. Grass is green."}]}
ANSWER = "The sky is blue."


def ask(port: int) -> dict[str, Any]:
    grounding: dict[str, Any] = post_chat(port, CHAT).json()["grounding"]
    return grounding


def degraded(process: Process) -> list[dict[str, str]]:
    found: list[dict[str, str]] = fetch(process.port, "GET", "/readyz").json()["degraded"]
    return found


def events(process: Process, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in process.said.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == name]


def test_settings_follow_one_another(upstream: Upstream, second_upstream: Upstream, start_process) -> None:
    """A running stream continues at its upstream; earlier reports are found afterwards."""
    sections = {"store": {"url": "sqlite:///history.db"}}
    process: Process = start_process(**sections)
    upstream.reply = body_reply(chat_body(ANSWER))
    before = ask(process.port)
    go_on = threading.Event()
    told = chat_events(ANSWER)
    upstream.reply = stream_reply([*told[:2], Wait(go_on), *told[2:]])
    with RawClient(process.port) as client:
        client.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT | {"stream": True}).encode())
        client.read_head()
        client.read_until(b"data:")
        moved = {"up": {"base_url": second_upstream.base_url}}
        process.configure({"upstreams": moved, **sections, "server": {"max_concurrent": 2}})
        process.signal(signal.SIGHUP)
        until(lambda: events(process, "config.loaded") != [])
        second_upstream.reply = body_reply(chat_body(ANSWER))
        after = ask(process.port)
        assert len(second_upstream.exchanges) == 1
        go_on.set()
        client.read_to_end()
        assert client.ended
        assert b'"grounding"' in client.body
    assert after["config"] == before["config"], "nothing that decides verdicts has changed"
    assert fetch(process.port, "GET", f"/v1/grounding/{before['id']}").status == 200
    loaded = events(process, "config.loaded")[0]
    assert set(loaded["changed"]) == {"server", "upstreams"}
    process.configure({"upstreams": moved, **sections, "grounding": {"policy": "strict"}})
    process.signal(signal.SIGHUP)
    until(lambda: len(events(process, "config.loaded")) == 2)
    assert ask(process.port)["config"] not in ("", before["config"])
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    assert process.stored() == 4, "the history is written by one writer throughout"
    assert events(process, "app.close_failed") == []


def test_invalid_settings_change_nothing_and_are_reported(upstream: Upstream, start_process) -> None:
    process: Process = start_process()
    upstream.reply = body_reply(chat_body(ANSWER))
    valid = process.config.read_text()
    for wrong in ("server:\n  prot: 1\n", "upstreams: {up: {base_url: 'http://127.0.0.1:1/v1', api_key_env: NOWHERE}}"):
        process.configure(wrong)
        process.signal(signal.SIGHUP)
        until(lambda: degraded(process) == [{"part": "config", "reason": "invalid"}])
        assert ask(process.port)["verdict"] == "grounded"
        process.configure(valid)
        process.signal(signal.SIGHUP)
        until(lambda: degraded(process) == [])
    first, second = events(process, "config.invalid")
    assert "config.yaml:2: server.prot" in first["problems"][0]
    assert "NOWHERE" in second["problems"][0]


def test_settings_that_need_a_restart_are_reported(upstream: Upstream, start_process) -> None:
    process: Process = start_process()
    upstream.reply = body_reply(chat_body(ANSWER))
    up = {"up": {"base_url": upstream.base_url}}
    late = {"server": {"max_head": "1KiB"}, "store": {"url": "sqlite:///history.db"}, "stream": {"carrier": "comment"}}
    process.configure({"upstreams": up, **late})
    process.signal(signal.SIGHUP)
    until(lambda: events(process, "config.loaded") != [])
    assert set(events(process, "config.needs_restart")[0]["keys"]) == {"server.max_head", "store"}
    assert events(process, "config.loaded")[0]["changed"] == ["stream"]
    assert ask(process.port)["verdict"] == "grounded"


def test_a_watched_file_counts_when_it_changes(upstream: Upstream, second_upstream: Upstream, start_process) -> None:
    process: Process = start_process(server={"watch": True})
    process.configure({"upstreams": {"up": {"base_url": second_upstream.base_url}}, "server": {"watch": True}})
    until(lambda: events(process, "config.loaded") != [])
    second_upstream.reply = body_reply(chat_body(ANSWER))
    assert ask(process.port)["verdict"] == "grounded"
    assert len(second_upstream.exchanges) == 1


def test_reports_and_facts_in_memory_outlive_a_reload(upstream: Upstream, start_process) -> None:
    """Clients find their earlier reports and facts; none of them is on disk."""
    memory = {"enabled": True, "memory_gate": {"enabled": True}}
    process: Process = start_process(information_budget=memory)
    upstream.reply = body_reply(chat_body(ANSWER))
    before = ask(process.port)
    fact = {"subject": "s", "facts": [{"text": ANSWER, "evidence": [{"text": "The sky is blue."}]}]}
    assert fetch(process.port, "POST", "/v1/grounding/memory", JSON_HEADERS, json.dumps(fact).encode()).status == 200
    process.configure({"upstreams": {"up": {"base_url": upstream.base_url}}, "information_budget": memory, "mcp": {}})
    process.signal(signal.SIGHUP)
    until(lambda: events(process, "config.loaded") != [])
    assert fetch(process.port, "GET", f"/v1/grounding/{before['id']}").status == 200
    assert ANSWER.encode() in fetch(process.port, "GET", "/v1/grounding/memory?subject=s").body


def test_fifty_reloads_leave_nothing_behind(upstream: Upstream, start_process) -> None:
    """The containers of earlier settings are closed: files, threads and memory do not grow."""
    process: Process = start_process(store={"url": "sqlite:///history.db"})
    upstream.reply = body_reply(chat_body(ANSWER))

    def reload(times: int) -> tuple[int, int, int]:
        for _ in range(times):
            count = len(events(process, "config.loaded"))
            assert ask(process.port)["verdict"] == "grounded"
            process.signal(signal.SIGHUP)
            until(lambda count=count: len(events(process, "config.loaded")) > count)  # type: ignore[misc]
        return process.usage()

    files, threads, memory = reload(10)
    files_after, threads_after, memory_after = reload(50)
    assert files_after <= files + 3
    assert threads_after <= threads + 3
    assert memory_after < memory + 20 * 2**20


def test_agents_find_their_server_again(start_process) -> None:
    """The MCP server belongs to the application, and is started and stopped with it."""
    pytest.importorskip("mcp")
    process: Process = start_process(mcp={"enabled": True})
    for count in (1, 2):
        process.signal(signal.SIGHUP)
        until(lambda count=count: len(events(process, "config.loaded")) == count)  # type: ignore[misc]
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode()
        accept = ("accept", "application/json, text/event-stream")
        assert fetch(process.port, "POST", "/mcp", (*JSON_HEADERS, accept), call).status == 200
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    assert events(process, "app.close_failed") == []
