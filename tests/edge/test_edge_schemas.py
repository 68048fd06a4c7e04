"""Answers against the JSON schema of their request, which may be hostile, over real sockets."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.edge.clients import post_chat
from tests.edge.proxies import Proxy
from tests.edge.upstream import Upstream, body_reply, chat_body

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "system", "content": "The sky is blue on a clear day."}]}
LEVELS = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
DOUBLING = {"$ref": "#/$defs/d0", "$defs": {**LEVELS, "d60": {"type": "object"}}}


def asking(schema: Any) -> dict[str, Any]:
    return CHAT | {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}


def report(upstream: Upstream, proxy: Proxy, schema: Any, answer: str) -> dict[str, Any]:
    """Return the report on an answer, which arrives as the upstream sent it."""
    upstream.reply = body_reply(chat_body(answer))
    got = post_chat(proxy.port, asking(schema))
    assert (got.status, got.json()["choices"][0]["message"]["content"]) == (200, answer)
    found: dict[str, Any] = proxy.report(dict(got.headers)["x-grounding-id"])
    return found


def test_violations_are_listed_and_flagged(upstream: Upstream, proxy: Proxy) -> None:
    schema = {"properties": {"sky": {"enum": ["green"]}, "n": {"type": "integer"}}, "required": ["name"]}
    found = report(upstream, proxy, schema, '{"sky": "blue", "n": "x"}')
    assert "evidence_schema_violation" in found["flags"]
    assert sorted((each["field"], each["expected"]) for each in found["schema"]["violations"]) == [
        ("", "required name"),
        ("/n", "type integer"),
        ("/sky", "enum"),
    ]


@pytest.mark.parametrize(
    ("schema", "answer", "reason"),
    [
        pytest.param(DOUBLING, "{}", "takes too long", id="twice as much per level"),
        pytest.param({"pattern": r"(a+)+\1"}, '"aaaa"', "linear time", id="a pattern that backtracks"),
        pytest.param({"$ref": "http://127.0.0.1:9/x"}, "{}", "none is fetched", id="a schema of another server"),
        pytest.param({"enum": ["x" * 300_000]}, "1", "larger than", id="a large schema"),
    ],
)
def test_an_unusable_schema_is_reported_in_a_warning(
    upstream: Upstream, proxy: Proxy, schema: Any, answer: str, reason: str
) -> None:
    found = report(upstream, proxy, schema, answer)
    assert [warning for warning in found["warnings"] if warning.startswith("response_format:") and reason in warning]
    assert "evidence_schema_violation" not in found["flags"]
    assert found["status"] != "failed"


def test_others_are_answered_and_checked_while_a_hostile_schema_is_validated(upstream: Upstream, start_proxy) -> None:
    """Claims of its answer are judged too; only the schema is not checked."""
    proxy = start_proxy(grounding={"timeout": "20s"})
    answer = "The sky is blue on a clear day."
    upstream.reply = body_reply(chat_body(*[json.dumps({"sky": answer})] * 8))
    with httpx.Client(timeout=60) as client:
        hostile = client.post(f"{proxy.base_url}/chat/completions", json=asking(DOUBLING)).json()["grounding"]
        honest = client.post(f"{proxy.base_url}/chat/completions", json=asking({"required": ["sky"]})).json()
    assert [choice["verdict"] for choice in hostile["choices"]] == ["grounded"] * 8
    assert len([warning for warning in hostile["warnings"] if "takes too long" in warning]) == 8
    assert (honest["grounding"]["schema"]["violations"], honest["grounding"]["verdict"]) == ([], "grounded")
