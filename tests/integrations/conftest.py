"""The proxy in front of a model server of the tests, for the helpers of other libraries."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")

from groundwire import library
from groundwire.judge import Judge
from tests.edge.proxies import Proxy, serving
from tests.edge.upstream import (
    Received,
    Reply,
    Upstream,
    chat_body,
    chat_events,
    stream_reply,
    tool_call_events,
    tool_call_message,
)
from tests.edge.upstream import body_reply as whole_reply

SYSTEM = "Acme Corp was founded in Oslo by Ingrid Dahl in 1998. It reported revenue of $4.2 million in 2023."
TRUE, FALSE = "Acme Corp was founded in Oslo by Ingrid Dahl in 1998.", "It reported revenue of $4.9 million in 2023."
ANSWER = f"{TRUE} {FALSE}"
QUESTION = "What is known about Acme Corp?"
MESSAGES = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]


@pytest.fixture(autouse=True)
def _words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the library judge without a model."""
    monkeypatch.setattr(library, "_loaded", lambda judge: judge or Judge())


@pytest.fixture(scope="session")
def _server() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture(scope="session")
def _proxy(_server: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    sections = {"upstreams": {"up": {"base_url": _server.base_url}}, "stream": {"tail_budget": "10s"}}
    with serving(sections, tmp_path_factory.mktemp("proxy"), {}) as proxy:
        yield proxy


@pytest.fixture
def upstream(_server: Upstream) -> Upstream:
    """The model server; it answers with one true and one wrong claim, or calls a tool when it is given one."""
    _server.reset()
    _server.reply = _answered
    return _server


@pytest.fixture
def proxy(upstream: Upstream, _proxy: Proxy) -> Proxy:
    """The proxy in front of it."""
    return _proxy


def _answered(received: Received) -> Reply:
    asked = received.json()
    usage = bool((asked.get("stream_options") or {}).get("include_usage"))
    if asked.get("tools"):
        if asked.get("stream"):
            return stream_reply(tool_call_events(include_usage=usage))
        return whole_reply(chat_body("", message=tool_call_message(), finish_reason="tool_calls"))
    answer = '{"city": "Oslo"}' if asked.get("response_format") else ANSWER
    if asked.get("stream"):
        return stream_reply(chat_events(answer, include_usage=usage))
    return whole_reply(chat_body(answer))


def labels(report: object) -> list[str]:
    """The labels of the claims in a report."""
    assert isinstance(report, dict)
    return [claim["label"] for choice in report["choices"] for claim in choice["claims"]]
