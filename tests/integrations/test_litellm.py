"""LiteLLM: the guardrail's hooks on real responses and streams, and the logger with the real SDK."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.edge.proxies import Proxy
from tests.integrations.conftest import ANSWER, MESSAGES, labels

pytest.importorskip("litellm")

import litellm

from groundwire.integrations import grounding_of
from groundwire.integrations.litellm import GroundingGuardrail, GroundingLogger
from groundwire.report import Report

ASK: dict[str, Any] = {"model": "gpt-4o-mini", "messages": MESSAGES}
FOUND = ["supported", "contradicted"]


@pytest.fixture
def guardrail() -> GroundingGuardrail:
    return GroundingGuardrail(guardrail_name="groundwire", event_hook="post_call", default_on=True)


def test_a_response_behind_the_proxy_has_its_report(proxy: Proxy) -> None:
    ask = ASK | {"model": "openai/m", "api_base": proxy.base_url, "api_key": "k"}
    assert labels(grounding_of(litellm.completion(**ask))) == FOUND


def test_the_guardrail_adds_the_report_to_a_response(guardrail: GroundingGuardrail) -> None:
    response = litellm.completion(**ASK, mock_response=ANSWER)
    found = asyncio.run(guardrail.async_post_call_success_hook(ASK, None, response))
    assert found.choices[0].message.content == ANSWER
    assert labels(grounding_of(found)) == FOUND
    assert labels(found.model_dump()["grounding"]) == FOUND


def test_documents_of_the_request_are_evidence(guardrail: GroundingGuardrail) -> None:
    ask = {"messages": MESSAGES[1:], "documents": [{"text": MESSAGES[0]["content"], "id": "d"}]}
    response = litellm.completion(**ASK, mock_response=ANSWER)
    assert labels(grounding_of(asyncio.run(guardrail.async_post_call_success_hook(ask, None, response)))) == FOUND


def test_the_guardrail_adds_the_report_to_the_end_of_a_stream(guardrail: GroundingGuardrail) -> None:
    async def work() -> list[Any]:
        stream = await litellm.acompletion(**ASK, mock_response=ANSWER, stream=True)
        return [event async for event in guardrail.async_post_call_streaming_iterator_hook(None, stream, ASK)]

    events = asyncio.run(work())
    assert "".join(event.choices[0].delta.content or "" for event in events) == ANSWER
    assert labels(grounding_of(events[-1])) == FOUND
    assert [grounding_of(event) for event in events[:-1]] == [None] * (len(events) - 1)


def test_a_response_without_text_is_left_alone(guardrail: GroundingGuardrail) -> None:
    response = litellm.ModelResponse(choices=[{"message": {"role": "assistant", "content": None}}])
    assert grounding_of(asyncio.run(guardrail.async_post_call_success_hook(ASK, None, response))) is None


@pytest.fixture(scope="module")
def _logged() -> Iterator[list[tuple[Report, Any]]]:
    found: list[tuple[Report, Any]] = []
    litellm.success_callback, litellm._async_success_callback = [], []
    litellm.callbacks = [GroundingLogger(lambda report, call: found.append((report, call)))]
    yield found
    litellm.callbacks = []


@pytest.fixture
def reports(_logged: list[tuple[Report, Any]]) -> list[tuple[Report, Any]]:
    """The reports that a logger is called with; LiteLLM keeps the first callback of a class for good."""
    _logged.clear()
    return _logged


def test_the_logger_reports_on_every_answer(reports: list[tuple[Report, Any]]) -> None:
    async def work() -> None:
        await litellm.acompletion(**ASK, mock_response=ANSWER)
        for _ in range(200):
            if reports:
                return
            await asyncio.sleep(0.05)

    asyncio.run(work())
    (report, call), *more = reports
    assert (report.score, call["model"], more) == (0.5, "gpt-4o-mini", [])


def test_the_logger_works_for_synchronous_calls(reports: list[tuple[Report, Any]]) -> None:
    litellm.completion(**ASK, mock_response=ANSWER)
    waited = threading.Event()
    for _ in range(200):
        if reports or waited.wait(0.05):
            break
    assert [report.score for report, _ in reports] == [0.5]
