"""Headers that pass an upstream with header lists, over real sockets."""

import json

from tests.edge.clients import fetch
from tests.edge.upstream import Upstream, body_reply, chat_body

CHAT = json.dumps({"model": "m", "messages": []}).encode()
SENT = (
    ("content-type", "application/json"),
    ("authorization", "Bearer sk-client"),
    ("cookie", "a=b"),
    ("user-agent", "me"),
    ("x-trace-id", "1"),
    ("x-tenant", "theirs"),
    ("x-grounding-mode", "off"),
)


def test_only_listed_headers_pass_and_configured_ones_are_added(upstream: Upstream, start_proxy) -> None:
    upstream.reply = body_reply(
        chat_body("Hi."), headers=(("x-request-id", "r"), ("server", "secret/1"), ("set-cookie", "c=d"))
    )
    proxy = start_proxy(
        {"TENANT_KEY": "s3cret"},
        upstreams={
            "up": {
                "base_url": upstream.base_url,
                "request_headers": ["x-trace-*", "host", "x-grounding-mode"],
                "response_headers": ["x-request-id"],
                "headers": {"X-Tenant": "ours"},
                "headers_env": {"api-key": "TENANT_KEY"},
            }
        },
    )
    response = fetch(proxy.port, "POST", "/v1/chat/completions", SENT, CHAT)
    got = {name.lower(): value for name, value in upstream.last.headers}
    assert got.pop("host") == f"127.0.0.1:{upstream.port}"
    assert got == {
        "content-type": "application/json",
        "content-length": str(len(CHAT)),
        "x-trace-id": "1",
        "x-tenant": "ours",
        "api-key": "s3cret",
    }
    assert response.header("x-request-id") == "r"
    assert response.header("server") is None
    assert response.header("set-cookie") is None
    assert response.header("content-type") == "application/json"
    assert response.json()["choices"]
