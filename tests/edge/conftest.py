"""Fixtures of the edge tests: a model server that can misbehave, the real proxy in front of it, and clients of both."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import uvicorn
import yaml
from clients import Comparison, sdk
from processes import Process
from upstream import Upstream

from proxy.config import load_settings
from proxy.server.app import build_app
from proxy.server.run import uvicorn_config
from proxy.verification.judge import VERIFIERS, Verifier
from proxy.wiring import build_house

SETTLES_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running proxy."""

    port: int

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """What an SDK is given."""
        return f"{self.url}/v1"

    def report(self, grounding_id: str) -> dict[str, Any]:
        """The stored report, once it is no longer pending."""
        deadline = time.monotonic() + SETTLES_WITHIN_S
        while time.monotonic() < deadline:
            response = httpx.get(f"{self.base_url}/grounding/{grounding_id}", timeout=10)
            if response.status_code == 200 and response.json()["status"] != "pending":
                report: dict[str, Any] = response.json()
                return report
            time.sleep(0.02)
        raise AssertionError(f"no report after {SETTLES_WITHIN_S} s: {response.status_code} {response.text[:500]}")

    def self_consistency(self, grounding_id: str) -> dict[str, Any]:
        """What the samples of an answer came to, once it is no longer pending."""
        deadline = time.monotonic() + SETTLES_WITHIN_S
        while time.monotonic() < deadline:
            found: dict[str, Any] = self.report(grounding_id)["self_consistency"]
            if found["status"] != "pending":
                return found
            time.sleep(0.02)
        raise AssertionError("the samples never came")


@pytest.fixture(scope="session")
def _upstream_server() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture
def upstream(_upstream_server: Upstream) -> Upstream:
    """The model server, with nothing said and nothing received yet."""
    _upstream_server.reset()
    return _upstream_server


@pytest.fixture
def second_upstream() -> Iterator[Upstream]:
    """Another model server, for routing."""
    with Upstream() as server:
        yield server


@contextlib.contextmanager
def serving(
    sections: Mapping[str, Any],
    folder: Path,
    environ: Mapping[str, str],
    verifiers: Sequence[tuple[str, Verifier]] = VERIFIERS,
) -> Iterator[Proxy]:
    """The proxy with this config, as its own users build it, on a free port in a thread."""
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(dict(sections)), encoding="utf-8")
    settings = load_settings(path, environ)
    app = build_app(settings, build_house(settings, environ, verifiers=verifiers))
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn_config(app, settings.server)
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="proxy", daemon=True)
    thread.start()
    try:
        _wait_until_started(server, thread)
        yield Proxy(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(timeout=15)
        listening.close()
        assert not thread.is_alive(), "the proxy did not stop"


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread) -> None:
    deadline = time.monotonic() + 15
    while not server.started:
        assert thread.is_alive(), "the proxy ended while starting"
        assert time.monotonic() < deadline, "the proxy did not start in 15 s"
        time.sleep(0.01)


def _config(base_url: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    return {"upstreams": {"up": {"base_url": base_url}}} | dict(overrides)


@pytest.fixture(scope="session")
def _default_proxy(_upstream_server: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    generous = {"stream": {"tail_budget": "10s"}}
    with serving(_config(_upstream_server.base_url, generous), tmp_path_factory.mktemp("proxy"), {}) as proxy:
        yield proxy


@pytest.fixture
def proxy(upstream: Upstream, _default_proxy: Proxy) -> Proxy:
    """The proxy in front of `upstream`, shared by the session; its tail budget is wide, for slow machines."""
    return _default_proxy


@pytest.fixture
def start_proxy(upstream: Upstream, tmp_path: Path) -> Iterator[Callable[..., Proxy]]:
    """Start a proxy of one's own: sections of `config.yaml` by keyword, an environment and verifiers if need be."""
    with contextlib.ExitStack() as stack:

        def start(
            environ: Mapping[str, str] | None = None,
            verifiers: Sequence[tuple[str, Verifier]] = VERIFIERS,
            **sections: Any,
        ) -> Proxy:
            folder = tmp_path / f"proxy-{time.monotonic_ns()}"
            folder.mkdir()
            return stack.enter_context(serving(_config(upstream.base_url, sections), folder, environ or {}, verifiers))

        yield start


@pytest.fixture
def start_process(upstream: Upstream, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Start `groundwire serve`: sections of `config.yaml` by keyword, and an environment if need be."""
    started: list[Process] = []

    def start(environ: Mapping[str, str] | None = None, **sections: Any) -> Process:
        process = Process(tmp_path, _config(upstream.base_url, sections), environ or {})
        started.append(process)
        process.wait_until_up()
        return process

    try:
        yield start
    finally:
        for process in started:
            process.end()


@pytest.fixture
def client(proxy: Proxy) -> Iterator[openai.OpenAI]:
    """The SDK, pointed at the proxy."""
    with sdk(proxy.base_url) as client:
        yield client


@pytest.fixture
def direct(upstream: Upstream) -> Iterator[openai.OpenAI]:
    """The SDK, pointed at the model server itself."""
    with sdk(upstream.base_url) as client:
        yield client


@pytest.fixture
def compare(upstream: Upstream, direct: openai.OpenAI, client: openai.OpenAI) -> Comparison:
    """Make one SDK call both ways and require the same outcome and the same request; see `Comparison`."""
    return Comparison(upstream, direct, client)
