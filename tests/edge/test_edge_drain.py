"""A process with a stop signal lets streams finish, and ends with 0; after a second signal it stops at once."""

import json
import os
import pty
import signal
import threading
from pathlib import Path

from tests.edge.clients import JSON_HEADERS, RawClient, fetch, post_chat, until
from tests.edge.processes import COMMAND, Process
from tests.edge.upstream import Reply, Stall, Upstream, Wait, body_reply, chat_body, chat_events, stream_reply
from tests.ports import free_port

CHAT = {"model": "m", "messages": [{"role": "system", "content": "The sky is blue."}]}
STREAM = json.dumps(CHAT | {"stream": True}).encode()


def halted(upstream: Upstream) -> threading.Event:
    """Let the model server answer in streams that stop in the middle until the event is set."""
    go_on = threading.Event()
    events = chat_events("The sky is blue.")
    upstream.reply = stream_reply([*events[:3], Wait(go_on), *events[3:]])
    return go_on


def streaming(client: RawClient) -> None:
    client.send("POST", "/v1/chat/completions", JSON_HEADERS, STREAM)
    client.read_head()
    client.read_until(b"data:")


def test_streams_come_to_their_end(upstream: Upstream, start_process) -> None:
    process: Process = start_process(store={"url": "sqlite:///history.db"})
    go_on = halted(upstream)
    with RawClient(process.port) as client, RawClient(process.port) as idle:
        idle.send("GET", "/healthz")
        idle.read_head()
        streaming(client)
        process.signal(signal.SIGTERM)
        until(lambda: fetch(process.port, "GET", "/readyz").status == 503)
        assert fetch(process.port, "GET", "/readyz").json()["status"] == "draining"
        assert fetch(process.port, "GET", "/healthz").status == 200
        refused = post_chat(process.port, CHAT)
        assert (refused.status, refused.header("retry-after"), refused.header("connection")) == (503, "1", "close")
        assert refused.json()["error"]["code"] == "server_leaving"
        assert process.is_running
        go_on.set()
        client.read_to_end()
        assert client.ended
        assert b'"grounding"' in client.body
        assert client.body.endswith(b"data: [DONE]\n\n")
    assert process.wait() == 0
    assert process.stored() == 1, "what was to be written is written"


def test_requests_are_taken_while_load_balancers_take_notice(upstream: Upstream, start_process) -> None:
    process: Process = start_process(server={"drain_delay": "20s"})
    process.signal(signal.SIGTERM)
    until(lambda: fetch(process.port, "GET", "/readyz").status == 503)
    upstream.reply = body_reply(chat_body("The sky is blue."))
    assert post_chat(process.port, CHAT).status == 200
    assert process.is_running


def test_requests_that_exceed_the_drain_limit_are_cut_off(upstream: Upstream, start_process) -> None:
    process: Process = start_process(server={"drain": "300ms"})
    halted(upstream)
    with RawClient(process.port) as client, RawClient(process.port) as waiting:
        streaming(client)
        upstream.reply = Reply((chat_body("Blue."),), before=(Stall(),))
        waiting.send("POST", "/v1/chat/completions", JSON_HEADERS, json.dumps(CHAT).encode())
        upstream.wait_for_requests(2)
        process.signal(signal.SIGTERM)
        client.read_to_end()
        assert not client.ended, "a stream that was cut off must not look whole"
        waiting.read_head()
        waiting.read_to_end()
        assert waiting.status == 503
        assert waiting.json()["error"]["code"] == "server_leaving"
    assert process.wait() == 0
    assert all(exchange.left.wait(60) for exchange in upstream.exchanges)


def test_a_second_signal_stops_the_process_at_once(upstream: Upstream, start_process) -> None:
    process: Process = start_process()
    halted(upstream)
    with RawClient(process.port) as client:
        streaming(client)
        process.signal(signal.SIGTERM)
        until(lambda: fetch(process.port, "GET", "/readyz").status == 503)
        process.signal(signal.SIGINT)
        assert process.wait() == 128 + signal.SIGINT


def test_an_idle_process_stops_with_nothing_to_wait_for(start_process) -> None:
    process: Process = start_process()
    with RawClient(process.port) as idle:
        idle.send("GET", "/healthz")
        idle.read_head()
        process.signal(signal.SIGINT)
        assert process.wait() == 0


def test_it_ends_with_its_terminal(tmp_path: Path) -> None:
    """SIGHUP reloads the settings, unless the terminal is gone."""
    port = free_port()
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(COMMAND[0], [*COMMAND, "serve", "--port", str(port)])
    try:
        until(lambda: answers(port))
        os.kill(pid, signal.SIGHUP)
        until(lambda: b"config.loaded" in os.read(terminal, 1 << 16))
        os.close(terminal)
        until(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise


def answers(port: int) -> bool:
    try:
        return fetch(port, "GET", "/healthz").status == 200
    except OSError:
        return False
