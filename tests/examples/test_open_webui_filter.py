"""The filter for Open WebUI, loaded and called as Open WebUI 0.12 does, with events and reports of the real proxy."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import types
from pathlib import Path
from typing import Any

import httpx
import pytest

from groundwire.demo.model import MODEL, SCENARIOS
from groundwire.demo.show import demo_proxy

CODE = (Path(__file__).parents[2] / "examples" / "open_webui_filter.py").read_text(encoding="utf-8")
TICKET = SCENARIOS[2]
CLAIM = "The ticket has low priority."


@pytest.fixture(scope="module")
def proxy_url() -> Any:
    with demo_proxy() as url:
        yield url


class Host:
    """Open WebUI's part: it executes the module, sets the valves, and passes the arguments that a signature names."""

    def __init__(self, **valves: Any) -> None:
        module = types.ModuleType("function_groundwire")
        exec(CODE, module.__dict__)
        self.filter = module.Filter()
        self.filter.valves = self.filter.Valves(**valves)
        self.events: list[dict[str, Any]] = []

    async def _emit(self, event: dict[str, Any]) -> None:
        self.events.append(json.loads(json.dumps(event)))

    def call(self, kind: str, data: dict[str, Any], **more: Any) -> dict[str, Any]:
        handler = getattr(self.filter, kind)
        extra = {"__event_emitter__": self._emit, "__user__": {"id": "u"}, "__metadata__": {"chat_id": "c1"}, **more}
        given = {name: value for name, value in extra.items() if name in inspect.signature(handler).parameters}
        result: dict[str, Any] = asyncio.run(handler(**{"event" if kind == "stream" else "body": data}, **given))
        return result

    @property
    def statuses(self) -> list[str]:
        assert all(each["data"]["done"] for each in self.events if each["type"] == "status")
        return [each["data"]["description"] for each in self.events if each["type"] == "status"]

    @property
    def citations(self) -> dict[str, str]:
        found = [each["data"] for each in self.events if each["type"] == "citation"]
        return {each["source"]["name"]: each["document"][0] for each in found}


def chunks(url: str) -> list[dict[str, Any]]:
    body = {"model": MODEL, "messages": TICKET.messages, "stream": True}
    lines = httpx.post(f"{url}/chat/completions", json=body, timeout=60).text.splitlines()
    return [json.loads(line[5:]) for line in lines if line.startswith("data:") and "[DONE]" not in line]


def outlet_body(sources: list[dict[str, Any]]) -> dict[str, Any]:
    answer = {"id": "2", "role": "assistant", "content": TICKET.answer, "sources": sources}
    return {"model": "m", "messages": [{"id": "1", "role": "user", "content": "What about ticket 48213?"}, answer]}


def retrieved() -> list[dict[str, Any]]:
    text = str(TICKET.messages[-1]["content"])
    return [{"source": {"name": "ticket.json"}, "document": [text], "metadata": [{"source": "ticket.json"}]}]


def test_the_first_lines_are_its_frontmatter() -> None:
    first, *lines = CODE.split('"""')[1].splitlines()
    assert first == ""
    assert CODE.startswith('"""\n')
    assert dict(re.findall(r"^(\w+): (.+)$", "\n".join(lines), re.MULTILINE))["title"] == "Groundwire"


def test_the_report_of_a_stream_is_shown_and_no_event_changes(proxy_url: str) -> None:
    host, events = Host(), chunks(proxy_url)
    assert [host.call("stream", json.loads(json.dumps(event))) for event in events] == events
    assert host.statuses == ["Grounding: partially grounded, 2 of 4 claims are supported"]
    assert len(host.citations) == 2
    assert "priority" in host.citations[f"contradicted: {CLAIM}"]


def test_claims_are_listed_only_if_wanted_and_a_request_without_a_page_is_possible(proxy_url: str) -> None:
    host = Host(list_claims=False)
    for event in chunks(proxy_url):
        host.call("stream", event)
    assert len(host.statuses) == 1
    assert host.citations == {}
    assert Host().call("stream", chunks(proxy_url)[-1], __event_emitter__=None)["grounding"]


def test_other_models_answers_are_checked_against_the_retrieved_sources(proxy_url: str) -> None:
    body = outlet_body(retrieved())
    host = Host(check_url=proxy_url.removesuffix("/v1") + "/")
    assert host.call("outlet", json.loads(json.dumps(body))) == body
    assert host.statuses == ["Grounding: partially grounded, 2 of 4 claims are supported"]
    assert f"contradicted: {CLAIM}" in host.citations


@pytest.mark.parametrize(
    ("valves", "sources"), [({}, True), ({"check_url": "http://127.0.0.1:1"}, False)], ids=["no address", "no sources"]
)
def test_nothing_is_checked_without_an_address_or_sources(valves: dict[str, str], sources: bool) -> None:
    host = Host(**valves)
    host.call("outlet", outlet_body(retrieved() if sources else []))
    assert host.events == []


def test_a_failed_check_leaves_the_answer_alone() -> None:
    host, body = Host(check_url="http://127.0.0.1:1"), outlet_body(retrieved())
    assert host.call("outlet", body) is body
    (status,) = host.statuses
    assert status.startswith("Grounding was not checked: ")


def test_the_chat_is_the_session_only_if_wanted() -> None:
    asked = {"model": "m", "messages": []}
    assert Host().call("inlet", dict(asked)) == asked
    assert Host(send_session=True).call("inlet", dict(asked)) == {**asked, "grounding": {"session": "c1"}}
    assert Host(send_session=True).call("inlet", dict(asked), __metadata__=None) == asked
