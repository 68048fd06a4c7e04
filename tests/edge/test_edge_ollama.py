"""Ollama's API through the proxy, with Ollama's client and without: the same as directly, plus a verdict."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import ollama
import pytest
from pydantic import BaseModel

from tests.edge.ollama_like import NDJSON, OllamaLike, ndjson
from tests.edge.upstream import Cut, Received, Reply, Upstream, Wait, as_json, lock_step

CONTEXT = "The sky is blue. Grass is green, and it is mown in May."
MESSAGES = [{"role": "system", "content": CONTEXT}, {"role": "user", "content": "Which colour?"}]
CHAT = {"model": "llama3.2", "messages": MESSAGES}
GENERATE = {"model": "llama3.2", "system": CONTEXT, "prompt": "Which colour?"}
ANSWER = "The sky is blue, 🟦 “as ever”. Grass is red."
ASKED = {"/api/chat": CHAT, "/api/generate": GENERATE}
PATHS = list(ASKED)


@pytest.fixture
def native(upstream: Upstream, start_proxy: Callable[..., Any]) -> Any:
    """The proxy in front of a model server that is an Ollama."""
    upstream.reply = OllamaLike(ANSWER)
    return start_proxy(
        upstreams={"up": {"base_url": upstream.base_url, "ollama": "yes"}}, stream={"tail_budget": "10s"}
    )


@pytest.fixture
def client(native: Any) -> ollama.Client:
    """Ollama's client, as its users set it up."""
    return ollama.Client(host=native.url)


@pytest.fixture
def direct(upstream: Upstream) -> ollama.Client:
    """Ollama's client without the proxy."""
    return ollama.Client(host=upstream.base_url.removesuffix("/v1"))


def post(proxy: Any, path: str, **more: Any) -> httpx.Response:
    return httpx.post(f"{proxy.url}{path}", json=ASKED[path] | more, timeout=60)


def said_to(path: str, **more: Any) -> list[bytes]:
    """The packets of the answer to a request, as the model server sends them."""
    steps = OllamaLike(ANSWER)(Received("POST", path, (), as_json(ASKED[path] | more))).body
    return [step for step in steps if isinstance(step, bytes)]


def lines(raw: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in raw.split(b"\n") if line]


def labels(grounding: dict[str, Any]) -> list[str]:
    return [claim["label"] for claim in grounding["choices"][0]["claims"]]


# --- with Ollama's own client -----------------------------------------------------------------------------------------


def test_chat_and_generate_are_what_they_are_directly(client: ollama.Client, direct: ollama.Client) -> None:
    assert client.chat(**CHAT) == direct.chat(**CHAT)
    assert client.generate(**GENERATE) == direct.generate(**GENERATE)
    assert client.chat(**CHAT).message.content == ANSWER


def test_streams_are_what_they_are_directly(client: ollama.Client, direct: ollama.Client) -> None:
    assert list(client.chat(**CHAT, stream=True)) == list(direct.chat(**CHAT, stream=True))
    assert list(client.generate(**GENERATE, stream=True)) == list(direct.generate(**GENERATE, stream=True))


def test_the_async_client_gets_the_same(native: Any, direct: ollama.Client) -> None:
    async def asked() -> tuple[Any, list[Any], Any]:
        client = ollama.AsyncClient(host=native.url)
        streamed = [chunk async for chunk in await client.chat(**CHAT, stream=True)]
        return await client.generate(**GENERATE), streamed, await client.list()

    whole, streamed, listed = asyncio.run(asked())
    assert whole == direct.generate(**GENERATE)
    assert streamed == list(direct.chat(**CHAT, stream=True))
    assert listed == direct.list()


def test_thoughts_tools_and_formats_come_through(
    upstream: Upstream, client: ollama.Client, direct: ollama.Client
) -> None:
    class Colour(BaseModel):
        colour: str

    calls = [{"function": {"name": "get_colour", "arguments": {"of": "the sky", "exact": True}}}]
    upstream.reply = OllamaLike('{"colour": "blue"}', thinking="They ask for a colour.", calls=calls)
    request = {**CHAT, "think": True, "format": Colour.model_json_schema(), "tools": [{"type": "function"}]}
    found = client.chat(**request)
    assert found == direct.chat(**request)
    assert Colour.model_validate_json(found.message.content or "").colour == "blue"
    assert found.message.thinking
    assert found.message.tool_calls
    assert list(client.chat(**request, stream=True)) == list(direct.chat(**request, stream=True))


def test_everything_else_of_the_api_passes_untouched(
    upstream: Upstream, client: ollama.Client, direct: ollama.Client, native: Any
) -> None:
    assert client.list() == direct.list()
    assert client.embed("llama3.2", "blue") == direct.embed("llama3.2", "blue")
    assert list(client.pull("llama3.2", stream=True)) == list(direct.pull("llama3.2", stream=True))
    pulled = httpx.post(f"{native.url}/api/pull?verbose=1", json={"model": "llama3.2"}, headers={"x-own": "1"})
    assert pulled.headers["content-type"] == "application/x-ndjson"
    assert (upstream.last.target, upstream.last.header("x-own")) == ("/api/pull?verbose=1", "1")
    assert [line["status"] for line in lines(pulled.content)][-1] == "success"
    assert "x-grounding-id" not in pulled.headers


def test_an_error_of_the_server_is_its_own(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match="model 'missing' not found") as caught:
        client.chat("missing", MESSAGES)
    assert caught.value.status_code == 404


def test_an_error_inside_a_stream_reaches_the_client(upstream: Upstream, client: ollama.Client) -> None:
    upstream.reply = ndjson(
        {"model": "m", "message": {"role": "assistant", "content": "The"}, "done": False}, {"error": "out of memory"}
    )
    with pytest.raises(ollama.ResponseError, match="out of memory"):
        list(client.chat(**CHAT, stream=True))


# --- the verdict ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
def test_a_whole_answer_has_its_verdict_in_body_and_headers(upstream: Upstream, native: Any, path: str) -> None:
    response = post(native, path, stream=False)
    grounding = response.json()["grounding"]
    assert labels(grounding) == ["supported", "unsupported"]
    assert response.headers["x-grounding-id"] == grounding["id"]
    assert response.headers["x-grounding-verdict"] == grounding["verdict"] == "partially_grounded"
    (said,) = said_to(path, stream=False)
    assert response.content.startswith(said[:-1])
    assert upstream.last.json() == ASKED[path] | {"stream": False}


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_is_the_default_and_has_its_verdict_on_the_done_line(
    upstream: Upstream, native: Any, path: str
) -> None:
    response = post(native, path)
    assert response.headers["content-type"] == "application/x-ndjson"
    assert "x-grounding-verdict" not in response.headers
    *before, last = response.content.splitlines(keepends=True)
    *said, end = said_to(path)
    assert before == said
    assert last.startswith(end.rstrip()[:-1])
    grounding = json.loads(last)["grounding"]
    assert labels(grounding) == ["supported", "unsupported"]
    assert response.headers["x-grounding-id"] == grounding["id"]
    assert native.report(grounding["id"])["choices"] == grounding["choices"]


@pytest.mark.parametrize("path", PATHS)
def test_every_line_goes_out_as_it_comes(upstream: Upstream, native: Any, path: str) -> None:
    steps, receipts = lock_step(said_to(path))
    upstream.reply = Reply(steps, 200, NDJSON, "chunked")
    with httpx.stream("POST", f"{native.url}{path}", json=ASKED[path], timeout=60) as response:
        for receipt, line in zip(receipts, response.iter_lines(), strict=True):
            assert json.loads(line)["model"] == "llama3.2"
            receipt.set()


def test_a_line_that_comes_in_pieces_is_put_together(upstream: Upstream, native: Any) -> None:
    whole = b"".join(said_to("/api/chat"))
    upstream.reply = Reply(tuple(whole[at : at + 7] for at in range(0, len(whole), 7)), 200, NDJSON, "chunked")
    found = lines(post(native, "/api/chat").content)
    assert "".join(line["message"]["content"] for line in found) == ANSWER
    assert labels(found[-1]["grounding"]) == ["supported", "unsupported"]


def test_a_stream_that_dies_ends_as_broken(upstream: Upstream, native: Any) -> None:
    first = {"model": "m", "message": {"role": "assistant", "content": "The sky is blue."}, "done": False}
    upstream.reply = Reply((as_json(first) + b"\n", Cut()), 200, NDJSON, "chunked")
    said: list[bytes] = []
    request = httpx.stream("POST", f"{native.url}/api/chat", json=CHAT, timeout=60)
    with request as response, pytest.raises(httpx.RemoteProtocolError):
        said.extend(response.iter_bytes())
    one, error = lines(b"".join(said))
    assert one == first
    assert set(error) == {"error"}
    assert isinstance(error["error"], str)
    assert native.report(response.headers["x-grounding-id"])["status"] == "partial"


@pytest.mark.parametrize("carrier", ["extra_event", "comment", "none"])
def test_other_carriers(upstream: Upstream, start_proxy: Callable[..., Any], carrier: str) -> None:
    upstream.reply = OllamaLike(ANSWER)
    own = {"up": {"base_url": upstream.base_url, "ollama": "yes"}}
    proxy = start_proxy(upstreams=own, stream={"carrier": carrier, "tail_budget": "10s"})
    chunks = list(ollama.Client(host=proxy.url).chat(**CHAT, stream=True))
    assert "".join(chunk.message.content or "" for chunk in chunks) == ANSWER
    assert chunks[-1].done_reason == "stop"
    found = [line for line in lines(post(proxy, "/api/chat").content) if "grounding" in line]
    assert [line["done"] for line in found] == {"extra_event": [False], "comment": [True], "none": []}[carrier]


def test_no_line_is_sent_to_keep_a_silent_stream_alive(upstream: Upstream, start_proxy: Callable[..., Any]) -> None:
    first, *rest = said_to("/api/chat")
    go_on = threading.Event()
    upstream.reply = Reply((first, Wait(go_on), *rest), 200, NDJSON, "chunked")
    own = {"up": {"base_url": upstream.base_url, "ollama": "yes"}}
    proxy = start_proxy(upstreams=own, stream={"keepalive": "10ms", "tail_budget": "10s"})
    with httpx.stream("POST", f"{proxy.url}/api/chat", json=CHAT, timeout=60) as response:
        raw = response.iter_raw()
        said = [next(raw)]
        threading.Timer(0.2, go_on.set).start()
        said += raw
    assert all(line["model"] == "llama3.2" for line in lines(b"".join(said)))


# --- checked contents -------------------------------------------------------------------------------------------------


def test_thoughts_are_never_checked(upstream: Upstream, native: Any) -> None:
    upstream.reply = OllamaLike("The sky is blue.", thinking="Grass might be purple. The sea is on fire.")
    grounding = lines(post(native, "/api/chat", think=True).content)[-1]["grounding"]
    assert labels(grounding) == ["supported"]
    assert "purple" not in json.dumps(grounding)


def test_images_and_tokens_are_reported_as_unread(native: Any) -> None:
    pictured = [{**MESSAGES[1], "images": ["aGk=", "aGk="]}]
    warnings = post(native, "/api/chat", stream=False, messages=pictured).json()["grounding"]["warnings"]
    assert any("images: 2 without text" in warning for warning in warnings)
    warnings = post(native, "/api/generate", stream=False, images=["aGk="], context=[1, 2]).json()["grounding"][
        "warnings"
    ]
    assert any("images: 1 without text" in warning for warning in warnings)
    assert any(warning.startswith("context: ") for warning in warnings)


def test_arguments_of_tool_calls_are_checked_on_request(upstream: Upstream, native: Any) -> None:
    calls = [{"function": {"name": "note", "arguments": {"text": "Grass is red, as far as anyone knows."}}}]
    upstream.reply = OllamaLike("", calls=calls)
    for stream in (False, True):
        response = post(native, "/api/chat", stream=stream, grounding={"check_tool_calls": True})
        (claim,) = lines(response.content)[-1]["grounding"]["choices"][0]["claims"]
        assert claim["pointer"] == "/tool_calls/0/function/arguments/text"
        assert claim["label"] in ("contradicted", "unsupported")
    assert "grounding" not in upstream.last.json()


def test_a_schema_in_format_is_held_against_the_answer(upstream: Upstream, native: Any) -> None:
    upstream.reply = OllamaLike('{"colour": 3}')
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
    grounding = post(native, "/api/generate", stream=False, format=schema).json()["grounding"]
    assert "evidence_schema_violation" in grounding["flags"]
    assert grounding["schema"]["violations"][0]["field"] == "/colour"


def test_an_answer_cut_by_its_length_is_flagged(upstream: Upstream, native: Any) -> None:
    upstream.reply = OllamaLike("The sky is blue.", done_reason="length")
    assert "answer_truncated" in lines(post(native, "/api/chat").content)[-1]["grounding"]["flags"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_prompt_that_ollama_cut_is_flagged(native: Any, path: str, stream: bool) -> None:
    long = f"{CONTEXT} " * 1000
    given = (
        {"messages": [{"role": "system", "content": long}, MESSAGES[1]]} if path == "/api/chat" else {"system": long}
    )
    grounding = lines(post(native, path, stream=stream, **given).content)[-1]["grounding"]
    assert "context_truncated" in grounding["flags"]
    assert grounding["prompt"]["reported_tokens"] == 2050
    whole = post(native, path, stream=stream, **given, options={"num_ctx": 32768})
    assert "context_truncated" not in lines(whole.content)[-1]["grounding"]["flags"]


# --- errors of the proxy, and routing ---------------------------------------------------------------------------------


def test_errors_of_the_proxy_have_ollamas_shape(native: Any, start_proxy: Callable[..., Any]) -> None:
    response = httpx.post(f"{native.url}/api/chat", content=b'{"model":"m","grounding":7}')
    assert response.status_code == 400
    assert set(response.json()) == {"error"}
    nobody = start_proxy(upstreams={"up": {"base_url": "http://127.0.0.1:9/v1", "ollama": "yes"}})
    with pytest.raises(ollama.ResponseError) as caught:
        ollama.Client(host=nobody.url).list()
    assert caught.value.status_code == 502


def test_a_model_is_found_among_the_ollamas_alone(
    upstream: Upstream, second_upstream: Upstream, start_proxy: Callable[..., Any]
) -> None:
    second_upstream.reply = OllamaLike(ANSWER)
    proxy = start_proxy(
        upstreams={
            "hosted": {"base_url": upstream.base_url, "models": ["*"]},
            "local": {"base_url": second_upstream.base_url, "ollama": "yes", "aliases": {"small": "llama3.2:1b"}},
        }
    )
    client = ollama.Client(host=proxy.url)
    client.chat("small", MESSAGES)
    assert second_upstream.last.json()["model"] == "llama3.2:1b"
    client.chat("local/gemma3", MESSAGES)
    assert second_upstream.last.json()["model"] == "gemma3"
    client.list()
    assert second_upstream.last.path == "/api/tags"
    assert upstream.requests == []


def test_without_an_ollama_there_is_no_such_api(proxy: Any, upstream: Upstream) -> None:
    assert httpx.post(f"{proxy.url}/api/chat", json=CHAT).status_code == 404
    assert upstream.requests == []


def test_mode_off_leaves_every_byte(upstream: Upstream, native: Any) -> None:
    response = httpx.post(f"{native.url}/api/chat", json=CHAT, headers={"x-grounding-mode": "off"})
    assert response.headers["x-grounding-status"] == "skipped"
    assert response.content == b"".join(
        step for step in OllamaLike(ANSWER)(upstream.last).body if isinstance(step, bytes)
    )


def test_samples_are_taken_by_the_same_api(upstream: Upstream, native: Any) -> None:
    response = post(native, "/api/chat", stream=False, grounding={"samples": 3}, options={"seed": 1})
    found = native.report(response.headers["x-grounding-id"])
    assert found["self_consistency"]["samples"] == 3
    upstream.wait_for_requests(4)
    asked = [each.json() for each in upstream.requests if each.path == "/api/chat"]
    assert sorted(each["options"].get("temperature", -1) for each in asked) == [-1, 0.0, 0.1, 0.2]
    assert all(each["stream"] is False for each in asked)
