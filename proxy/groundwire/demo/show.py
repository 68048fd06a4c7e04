"""Run the demonstration in the terminal."""

from __future__ import annotations

import json
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import uvicorn
from rich.console import Console
from rich.rule import Rule
from starlette.applications import Starlette

from groundwire.backends.loading import load_judge
from groundwire.config import Settings, Upstream
from groundwire.container import build_container
from groundwire.demo.model import MODEL, SCENARIOS, Scenario, build_model
from groundwire.extras import require_extras
from groundwire.http.app import build_app
from groundwire.http.run import listen
from groundwire.telemetry import configure_logs
from groundwire.terminal import view

_START_TIMEOUT_S = 20.0


def show(pace: float, *, stay: bool = False) -> int:
    """Start the demo model server and the proxy on free ports, send the scenarios and print the replies.

    With `stay`, the answers are stored for review on the proxy's pages until the process is interrupted, then deleted.
    Returns the exit status. Raises MissingExtra for `stay` without a database.
    """
    if stay:
        require_extras(("groundwire demo --stay", "history"))
    console = Console()
    key = f"demo-{secrets.token_hex(8)}"
    with TemporaryDirectory(prefix="groundwire-demo-") as folder:
        store_url = f"sqlite:///{folder}/demo.db" if stay else None
        with demo_proxy(pace, store_url=store_url, admin_key=key) as proxy_url:
            console.print("A demo model server (no model: fixed answers)", style="dim")
            console.print(f"Groundwire in front of it at {proxy_url}, and a client pointed there", style="dim")
            for number, scenario in enumerate(SCENARIOS, start=1):
                console.print()
                console.print(Rule(f"{number}. {scenario.title}", align="left"))
                console.print(f"Look for: {scenario.look_for}.\n", style="dim", markup=False)
                _ask(proxy_url, scenario, console)
            if stay:
                _stay(proxy_url.removesuffix("/v1"), key, console)
    return 0


def serve_demo(pace: float, port: int) -> int:
    """Serve the proxy in front of the demo model server on this port until the process is interrupted."""
    with demo_proxy(pace, port) as proxy_url:
        print(f"Point an SDK's base_url at {proxy_url}, and its model at {MODEL}. Press Ctrl+C to stop.", flush=True)
        _wait()
    return 0


@contextmanager
def demo_proxy(pace: float = 0.0, port: int = 0, *, store_url: str | None = None, admin_key: str = "") -> Iterator[str]:
    """Serve the proxy in front of the demo model server, and yield its base URL for SDKs; port 0 is a free one."""
    with serving(build_model(pace)) as model_url:
        settings = Settings.model_validate(
            {
                "upstreams": {"demo": Upstream(base_url=model_url)},
                "telemetry": {"log_level": "error"},
                "stream": {"tail_budget": "5s"},  # the answers arrive faster than any model's
                "store": {"url": store_url},
            }
        )
        configure_logs(settings.telemetry)
        environ = {settings.admin.key_env: admin_key} if admin_key else {}
        container = build_container(settings, environ, judge=load_judge(settings.judge.encoder))
        with serving(build_app(settings, container, environ), port) as proxy_url:
            yield proxy_url


def _wait() -> None:
    """Wait until the process is interrupted or terminated."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        threading.Event().wait()


def _stay(url: str, key: str, console: Console) -> None:
    """Print the address of the review page, and wait until interrupted."""
    console.print()
    console.print(Rule("Review the flagged answers", align="left"))
    console.print(f"Open    {url}/reviews", highlight=False)
    console.print(f"Key     {key}", highlight=False)
    console.print("Press Ctrl+C to stop; what was stored is deleted then.", style="dim")
    _wait()


def _ask(url: str, scenario: Scenario, console: Console) -> None:
    body = {"model": MODEL, "messages": scenario.messages, "stream": scenario.stream}
    with httpx.stream("POST", f"{url}/chat/completions", json=body, timeout=None, trust_env=False) as response:  # noqa: S113
        if not scenario.stream:
            completion = json.loads(response.read())
            text = completion["choices"][0]["message"]["content"] or ""
            console.print(view([text], completion.get("grounding") or {}))
            return
        grounding: dict[str, Any] = {}
        for line in response.iter_lines():
            if not line.startswith("data: {"):  # a blank line, or [DONE]
                continue
            chunk = json.loads(line.removeprefix("data: "))
            for choice in chunk["choices"]:
                console.out(choice["delta"].get("content") or "", end="", highlight=False)
            grounding = chunk.get("grounding") or grounding
    console.print("\n")
    console.print(view([], grounding))


@contextmanager
def serving(app: Starlette, port: int = 0) -> Iterator[str]:
    """Serve an application in a thread, and yield the base URL for SDKs, which ends in /v1; port 0 is a free one."""
    listening = listen("127.0.0.1", port)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, log_level="critical", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not server.started and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join(5)
        listening.close()
