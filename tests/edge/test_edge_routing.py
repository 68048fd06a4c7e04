"""The choice of the model server."""

import json
import threading
from collections.abc import Collection
from typing import Any

import pytest

from groundwire.dialects import jsonbytes
from groundwire.dialects.jsonbytes import parse_large
from tests.edge.clients import JSON_HEADERS, fetch, post_chat, sdk
from tests.edge.upstream import Upstream, as_json, body_reply, chat_body

CHAT = {"messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def two(upstream: Upstream, second_upstream: Upstream, start_proxy):
    """A proxy with two model servers behind it; the first is the default."""
    return start_proxy(
        upstreams={
            "first": {"base_url": upstream.base_url, "models": ["gpt-4o", "gpt-*"]},
            "second": {
                "base_url": second_upstream.base_url,
                "models": ["llama3.2", "qwen*"],
                "aliases": {"small": "qwen2.5:0.5b"},
            },
        }
    )


@pytest.mark.parametrize(
    ("model", "goes_to", "as_model"),
    [
        ("gpt-4o", "first", "gpt-4o"),
        ("gpt-5-mini", "first", "gpt-5-mini"),
        ("llama3.2", "second", "llama3.2"),
        ("qwen2.5:7b", "second", "qwen2.5:7b"),
        ("second/mistral", "second", "mistral"),
        ("first/llama3.2", "first", "llama3.2"),
        ("small", "second", "qwen2.5:0.5b"),
    ],
    ids=["exact", "glob", "exact on the second", "glob on the second", "prefix", "prefix wins", "alias"],
)
def test_the_model_decides(two, upstream: Upstream, second_upstream: Upstream, model, goes_to, as_model) -> None:
    assert post_chat(two.port, CHAT | {"model": model}).status == 200
    asked, other = (upstream, second_upstream) if goes_to == "first" else (second_upstream, upstream)
    assert [request.json() for request in asked.requests] == [CHAT | {"model": as_model}]
    assert not other.requests


def test_a_renamed_model_is_the_only_thing_that_changes(two, second_upstream: Upstream) -> None:
    post_chat(two.port, b'{ "model" : "small","messages":[],"seed":123456789012345678901234567890, "t":1.0 }')
    sent = second_upstream.last.body
    assert json.loads(sent, parse_int=str, parse_float=str) == {
        "model": "qwen2.5:0.5b",
        "messages": [],
        "seed": "123456789012345678901234567890",
        "t": "1.0",
    }


def test_other_paths_go_to_the_default(two, upstream: Upstream, second_upstream: Upstream) -> None:
    assert fetch(two.port, "GET", "/v1/files?x=1", JSON_HEADERS).status == 200
    assert [request.target for request in upstream.requests] == ["/v1/files?x=1"]
    assert not second_upstream.requests


def test_embeddings_and_models_are_routed_too(two, upstream: Upstream, second_upstream: Upstream) -> None:
    with sdk(two.base_url) as client:
        client.embeddings.create(model="qwen-embed", input="x")
        client.models.retrieve("llama3.2")
    assert [request.path for request in second_upstream.requests] == ["/v1/embeddings", "/v1/models/llama3.2"]
    assert not upstream.requests


def test_the_models_of_all_are_listed(two, upstream: Upstream, second_upstream: Upstream) -> None:
    def listing(*names: str):
        return body_reply(as_json({"object": "list", "data": [{"id": name, "object": "model"} for name in names]}))

    upstream.reply, second_upstream.reply = listing("gpt-4o"), listing("llama3.2", "qwen2.5:7b")
    with sdk(two.base_url) as client:
        listed = {model.id.rpartition("/")[2] for model in client.models.list()}
        assert upstream.last.header("authorization") == "Bearer sk-test"
        assert second_upstream.last.header("authorization") is None, "nothing says that the key is meant for it"
    assert listed >= {"gpt-4o", "llama3.2", "qwen2.5:7b"}


def test_one_of_two_being_down_does_not_empty_the_list(two, upstream: Upstream, second_upstream: Upstream) -> None:
    second_upstream.reply = body_reply(b"oops", status=500)
    with sdk(two.base_url) as client:
        assert "gpt-4o-mini" in {model.id.rpartition("/")[2] for model in client.models.list()}


@pytest.mark.parametrize(
    ("data", "is_left_out"),
    [(b"[" + b"{}," * 300_000 + b"{}]", False), (b'[{"id":"' + b"x" * 5_000_000 + b'"}]', True), (b"5", False)],
    ids=["too many", "too long", "no list"],
)
def test_a_list_of_models_is_bounded_and_read_off_the_event_loop(
    two, upstream: Upstream, second_upstream: Upstream, monkeypatch: pytest.MonkeyPatch, data: bytes, is_left_out: bool
) -> None:
    threads: list[str] = []

    def noted(body: bytes, skipped: Collection[str] = ()) -> dict[str, Any]:
        threads.append(threading.current_thread().name)
        return parse_large(body, skipped)

    monkeypatch.setattr(jsonbytes, "parse_large", noted)
    upstream.reply = body_reply(as_json({"object": "list", "data": [{"id": "gpt-4o", "object": "model"}]}))
    second_upstream.reply = body_reply(b'{"object":"list","data":' + data + b"}")
    answer = fetch(two.port, "GET", "/v1/models")
    assert [model["id"] for model in answer.json()["data"]] == ["gpt-4o"]
    assert len(threads) == (len(data) > 100 and not is_left_out)
    assert all(name.startswith("groundwire-bodies") for name in threads)


@pytest.mark.parametrize("prefix", ["/openai/v1", "/openai/v1/"], ids=["plain", "with a slash"])
def test_the_base_url_may_have_a_path(upstream: Upstream, start_proxy, prefix: str) -> None:
    proxy = start_proxy(upstreams={"up": {"base_url": f"http://127.0.0.1:{upstream.port}{prefix}"}})
    upstream.reply = body_reply(chat_body("Hi."))
    post_chat(proxy.port, CHAT | {"model": "m"})
    fetch(proxy.port, "GET", "/v1/files?x=1")
    assert [r.target for r in upstream.requests] == ["/openai/v1/chat/completions", "/openai/v1/files?x=1"]
