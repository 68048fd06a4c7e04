"""The MCP server with the official client, over standard input and output and over HTTP."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import threading
from collections.abc import Awaitable, Callable, Collection, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from mcp import Client, StdioServerParameters

import groundwire
from groundwire.dialects import jsonbytes
from groundwire.dialects.checks import ClaimCheck, EvidenceCheck, TraceCheck, VerifyBody
from groundwire.dialects.jsonbytes import parse_large
from tests.edge.proxies import Proxy

T = TypeVar("T")
Work = Callable[[Client], Awaitable[T]]
Use = Callable[[Work[Any]], Any]

EVIDENCE = ["Revenue came to $5 million in 2023.", "Costs were $3 million in 2023."]


def over_stdio(work: Work[T], folder: Path) -> T:
    """Return the result of `work` with `groundwire mcp` as a separate process."""
    command = StdioServerParameters(command=str(Path(sys.executable).with_name("groundwire")), args=["mcp"], cwd=folder)
    return _with(command, work)


def _with(server: Any, work: Work[T]) -> T:
    async def session() -> T:
        async with asyncio.timeout(60), Client(server) as client:
            return await work(client)

    return asyncio.run(session())


@pytest.fixture(params=["stdio", "http"])
def use(
    request: pytest.FixtureRequest, start_proxy: Callable[..., Proxy], tmp_path: Path
) -> Callable[[Work[Any]], Any]:
    """Run work with a client of the server, over either transport."""
    if request.param == "stdio":
        return lambda work: over_stdio(work, tmp_path)
    proxy = start_proxy(mcp={"enabled": True})
    return lambda work: _with(f"{proxy.url}/mcp", work)


def test_the_first_claim_of_an_agent_is_judged_by_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWIRE_JUDGE__BY", "encoder")  # the tests switch it off
    claims = over_stdio(called("verify_claims", answer="The office opens at 9 am.", sources=EVIDENCE), tmp_path)
    assert "verifier_degraded" not in claims.structured_content["flags"]


def called(name: str, **arguments: Any) -> Work[Any]:
    async def work(client: Client) -> Any:
        return await client.call_tool(name, arguments)

    return work


def test_no_agent_waits_for_news_that_never_come(start_proxy: Callable[..., Proxy]) -> None:
    """Event streams would hold slots and delay shutdown; without sessions the server sends nothing unrequested."""
    reply = httpx.get(f"{start_proxy(mcp={'enabled': True}).url}/mcp", headers={"accept": "text/event-stream"})
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


def test_the_server_offers_three_tools_with_descriptions(use: Use) -> None:
    async def work(client: Client) -> Any:
        return await client.list_tools()

    tools = {tool.name: tool for tool in use(work).tools}
    assert tools.keys() == {"verify_claim", "verify_claims", "audit_trace"}
    assert all(tool.description and tool.annotations.read_only_hint for tool in tools.values())
    assert tools["verify_claim"].input_schema["required"] == ["claim", "sources"]
    assert tools["verify_claims"].input_schema["required"] == ["answer"]
    for name, tool in tools.items():
        assert tool.input_schema["properties"].keys() == arguments(name)
        assert {each["type"] for each in tool.input_schema["properties"]["sources"]["anyOf"]} == {"string", "array"}


def arguments(name: str) -> set[str]:
    """Return the arguments of a function of the library, without those that only Python has."""
    parameters = inspect.signature(getattr(groundwire, name)).parameters
    return parameters.keys() - {"policy", "judge", "estimator", "fail_on_all_rejected"}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("verify_claim", ClaimCheck),
        ("verify_claims", VerifyBody),
        ("audit_trace", TraceCheck),
        ("check_evidence", EvidenceCheck),
    ],
)
def test_the_endpoints_take_the_arguments_of_the_library(name: str, shape: Any) -> None:
    assert arguments(name) <= shape.model_fields.keys()


def test_an_answer_is_checked_against_messages_with_its_quotations_and_schema(use: Use) -> None:
    result = use(
        called(
            "verify_claims",
            answer='{"quotes": ["Costs were $3 million in 2023.", "Costs were $9 million."]}',
            messages=[{"role": "system", "content": EVIDENCE[1]}],
            evidence_fields=["quotes"],
            json_schema={"required": ["year"]},
        )
    )
    report = result.structured_content
    assert [source["kind"] for source in report["sources"]] == ["system"]
    assert (report["quotes"]["validated"], report["quotes"]["rejected"]) == (1, 1)
    assert [each["expected"] for each in report["schema"]["violations"]] == ["required year"]


def test_the_sources_of_every_tool_may_be_one_plain_text(use: Use) -> None:
    async def work(client: Client) -> list[dict[str, Any]]:
        results = [
            await client.call_tool("verify_claim", {"claim": "Costs were $3M in 2023.", "sources": EVIDENCE[1]}),
            await client.call_tool("verify_claims", {"answer": "Costs were $3M in 2023.", "sources": EVIDENCE[1]}),
            await client.call_tool("audit_trace", {"steps": ["Costs were $3M in 2023."], "sources": EVIDENCE[1]}),
        ]
        assert not any(result.is_error for result in results)
        return [result.structured_content for result in results]

    claim, report, audit = use(work)
    assert (claim["label"], report["verdict"], audit["sound"]) == ("supported", "grounded", True)


def test_a_claim_an_answer_and_a_trace_are_checked(use: Use) -> None:
    async def work(client: Client) -> list[dict[str, Any]]:
        results = [
            await client.call_tool("verify_claim", {"claim": "Costs were $4M in 2023.", "sources": EVIDENCE}),
            await client.call_tool("verify_claims", {"answer": "Costs were $3M. A plant opened.", "sources": EVIDENCE}),
            await client.call_tool("audit_trace", {"steps": ["Costs were $3M."], "sources": EVIDENCE, "answer": "$3M"}),
        ]
        assert not any(result.is_error for result in results)
        return [result.structured_content for result in results]

    claim, report, audit = use(work)
    assert (claim["label"], claim["budget"]["status"]) == ("contradicted", "contradicted")
    assert [each["label"] for each in report["choices"][0]["claims"]] == ["supported", "unsupported"]
    assert (audit["steps"][0]["status"], audit["post_hoc"]["status"], audit["sound"]) == ("ENTAILED", "derived", True)


def test_older_argument_names_and_sources_as_objects_are_taken(use: Use) -> None:
    named = {"text": EVIDENCE[1], "id": "costs", "title": "Costs"}

    async def work(client: Client) -> list[dict[str, Any]]:
        results = [
            await client.call_tool("verify_claim", {"claim": "Costs were $4M in 2023.", "evidence": [named]}),
            await client.call_tool("verify_claims", {"text": "Costs were $3M.", "context": [EVIDENCE[0], named]}),
            await client.call_tool("audit_trace", {"steps": ["Costs were $3M."], "context": [named], "answer": "$3M"}),
        ]
        assert not any(result.is_error for result in results)
        return [result.structured_content for result in results]

    claim, report, audit = use(work)
    assert (claim["label"], claim["citations"][0]["source"]) == ("contradicted", "costs")
    assert [(each["id"], each.get("title")) for each in report["sources"]] == [("source-1", None), ("costs", "Costs")]
    assert audit["steps"][0]["status"] == "ENTAILED"


def test_a_wrong_call_is_reported_in_a_sentence(use: Use) -> None:
    result = use(called("verify_claim", claim="", evidence=EVIDENCE))
    assert result.is_error
    assert "'claim'" in result.content[0].text


def test_it_is_not_there_unless_it_is_switched_on(proxy: Proxy) -> None:
    assert httpx.post(f"{proxy.url}/mcp", json={}).status_code == 404


def test_a_page_of_another_host_cannot_reach_it(start_proxy: Callable[..., Proxy]) -> None:
    proxy = start_proxy(mcp={"enabled": True})
    call = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"accept": "application/json, text/event-stream"}
    for name, value in (("host", "evil.example"), ("origin", "http://evil.example")):
        assert httpx.post(f"{proxy.url}/mcp", json=call, headers=headers | {name: value}).status_code in (403, 421)


CALL = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def posted(proxy: Proxy, body: bytes | Iterator[bytes]) -> httpx.Response:
    return httpx.post(f"{proxy.url}/mcp", content=body, headers=CALL, timeout=60)


def tool_call(**arguments: Any) -> bytes:
    params = {"name": "verify_claim", "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


def test_a_call_is_bounded_in_bytes_and_values(start_proxy: Callable[..., Proxy]) -> None:
    proxy = start_proxy(mcp={"enabled": True, "max_body": "1MiB"})
    large = tool_call(claim="Costs were $3M in 2023.", evidence=["x" * 2**20])
    many = tool_call(claim="Costs were $3M in 2023.", evidence=["x"] * 30_000)
    refused = [posted(proxy, large), posted(proxy, iter([large])), posted(proxy, many)]
    assert [reply.status_code for reply in refused] == [413] * 3
    assert "at most" in refused[2].json()["error"]["message"]
    wrong = posted(proxy, tool_call(claim="Costs were $3M in 2023.", evidence=[5] * 3_000))
    assert (wrong.status_code, wrong.json()["result"]["isError"]) == (200, True)
    assert len(wrong.content) < 2_000


def test_large_calls_are_read_off_the_event_loop(
    start_proxy: Callable[..., Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def noted(body: bytes, skipped: Collection[str] = ()) -> Any:
        threads.append(threading.current_thread().name)
        return parse_large(body, skipped)

    monkeypatch.setattr(jsonbytes, "parse_large", noted)
    proxy = start_proxy(mcp={"enabled": True})
    evidence = ["Costs were $3 million in 2023.", "x" * 200_000]
    reply = posted(proxy, tool_call(claim="Costs were $3M in 2023.", evidence=evidence)).json()
    assert reply["result"]["structuredContent"]["label"] == "supported"
    assert len(threads) >= 2
    assert all(name.startswith("groundwire-bodies") for name in threads)
