"""Fixtures of the edge tests: a model server that can misbehave, the real proxy in front of it, and clients of both."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import openai
import pytest

from groundwire.judge import VERIFIERS, Verifier
from tests.edge.clients import Comparison, sdk
from tests.edge.processes import Process
from tests.edge.proxies import Proxy, serving
from tests.edge.upstream import Upstream


@pytest.fixture(scope="session")
def _upstream_server() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture
def upstream(_upstream_server: Upstream) -> Upstream:
    """The model server, without a scripted reply or received requests."""
    _upstream_server.reset()
    return _upstream_server


@pytest.fixture
def second_upstream() -> Iterator[Upstream]:
    """Another model server, for routing."""
    with Upstream() as server:
        yield server


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
    """Start a separate proxy: sections of `config.yaml` by keyword, an environment and verifiers if need be."""
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
