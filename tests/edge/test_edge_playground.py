"""The landing page and the playground, without a store, over real sockets."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

import httpx
import pytest

from groundwire.http.keys import create_key
from groundwire.storage.limits import Limits
from tests.edge.proxies import Proxy
from tests.edge.upstream import Reply, Upstream, Wait, body_reply, chat_body, error_reply

SOURCES = "In 2023 revenue was $4.2 million.\n---\nProfit fell to $700K."
ANSWER = "Revenue was $4.2M in 2023. Profit rose to $900K."


def send(proxy: Proxy, headers: dict[str, str] | None = None, **fields: str) -> httpx.Response:
    form = {"sources": SOURCES, "answer": ANSWER, "action": "check", **fields}
    return httpx.post(f"{proxy.url}/playground", data=form, headers=headers, timeout=60)


def test_the_landing_page_answers_without_a_store(proxy: Proxy) -> None:
    page = httpx.get(proxy.url)
    assert page.status_code == 200
    assert f'base_url="http://127.0.0.1:{proxy.port}/v1"' in unescape(page.text)
    assert "store.url" in page.text
    behind_tls = httpx.get(proxy.url, headers={"x-forwarded-proto": "https", "host": "ai.example"})
    assert 'base_url="https://ai.example/v1"' in unescape(behind_tls.text)
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_an_answer_is_checked_against_pasted_sources(proxy: Proxy) -> None:
    page = send(proxy)
    assert page.status_code == 200
    assert page.text.count('class="claim supported" href') == 1
    assert page.text.count('class="claim contradicted" href') == 1
    assert "Profit fell to $700K." in page.text
    assert "<strong>50 %</strong> <span>1 of the 2 checked claims is supported by the sources." in page.text


def test_the_report_can_be_saved_as_json(proxy: Proxy) -> None:
    saved = send(proxy, action="json")
    assert saved.headers["content-disposition"] == 'attachment; filename="grounding.json"'
    assert [claim["label"] for claim in saved.json()["choices"][0]["claims"]] == ["supported", "contradicted"]


def test_a_model_answers_a_question_and_its_answer_is_checked(proxy: Proxy, upstream: Upstream) -> None:
    upstream.reply = body_reply(chat_body(ANSWER))
    page = send(proxy, answer="", model="m", question="How did we do?", action="ask")
    assert page.status_code == 200
    assert ANSWER in unescape(page.text)
    assert 'class="claim contradicted" href' in page.text
    sent = json.loads(upstream.requests[-1].body)
    assert sent["messages"][-1] == {"role": "user", "content": "How did we do?"}
    assert '<doc id="2">Profit fell to $700K.</doc>' in sent["messages"][0]["content"]


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        (body_reply(chat_body(ANSWER)), 'class="claim contradicted" href'),
        (error_reply(401, "no such key", type="invalid_request_error"), 'role="alert">The model server'),
    ],
    ids=["an answer", "an error"],
)
def test_the_page_begins_before_its_result_is_there(proxy: Proxy, upstream: Upstream, reply: Reply, shown: str) -> None:
    answered = threading.Event()
    upstream.reply = replace(reply, before=(Wait(answered),))
    form = {"sources": SOURCES, "question": "How did we do?", "model": "m", "action": "ask"}
    with httpx.stream("POST", f"{proxy.url}/playground", data=form, timeout=60) as page:
        text = ""
        for chunk in page.iter_text():
            text += chunk
            if "Asking the model" in text and not answered.is_set():
                assert shown not in text
                answered.set()
    assert answered.is_set()
    assert page.status_code == 200
    assert shown in text
    assert text.endswith("</html>")


def test_a_model_is_queried_where_verification_is_off(start_proxy: Callable[..., Proxy], upstream: Upstream) -> None:
    upstream.reply = body_reply(chat_body(ANSWER))
    page = send(start_proxy(grounding={"mode": "off"}), answer="", model="m", question="How did we do?", action="ask")
    assert page.status_code == 200
    assert 'class="claim contradicted" href' in page.text


def test_an_error_of_the_model_server_is_shown(proxy: Proxy, upstream: Upstream) -> None:
    upstream.reply = error_reply(401, "no such <key>", type="invalid_request_error")
    page = send(proxy, answer="", model="m", question="Why?", action="ask")
    assert page.status_code >= 400
    assert "status 401" in page.text
    assert "<key>" not in page.text


def test_everything_that_was_typed_is_shown_as_text(proxy: Proxy) -> None:
    page = send(proxy, answer="<script>alert(1)</script> was here.", sources="<img src=x onerror=alert(1)>")
    assert "<script>alert" not in page.text
    assert "<img src=x" not in page.text


@pytest.mark.parametrize(
    ("fields", "headers", "status"),
    [
        ({"answer": " "}, {}, 400),
        ({"answer": "x" * 300_000}, {}, 413),
        ({}, {"sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_forms_that_are_not_processed(
    proxy: Proxy, fields: dict[str, str], headers: dict[str, str], status: int
) -> None:
    page = send(proxy, headers, **fields)
    assert page.status_code == status
    assert 'role="alert"' in page.text


def test_the_form_needs_a_key_where_keys_are_enabled(start_proxy: Callable[..., Proxy], tmp_path: Path) -> None:
    file = tmp_path / "keys"
    key, _ = create_key(file, "app", Limits(), datetime.now(UTC))
    proxy = start_proxy(server={"keys": str(file)})
    assert 'name="key"' in httpx.get(f"{proxy.url}/playground").text
    assert send(proxy).status_code == 401
    assert send(proxy, key="sk-wrong").status_code == 401
    assert send(proxy, key=key).status_code == 200
