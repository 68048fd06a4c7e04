"""The grounding of an exchange as its client, its log and its later readers see it."""

import asyncio
import json
import threading
from collections.abc import Coroutine, MutableMapping
from contextlib import suppress
from functools import partial
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from groundwire.dialects.checks import EvidenceCheck
from groundwire.dialects.openai import CHAT
from groundwire.errors import RequestError, UpstreamBroken
from groundwire.gateway.forward import Caller
from groundwire.telemetry import short_hash
from groundwire.verifiers.numbers import numeric
from groundwire.verifiers.numbers.candidates import Work
from groundwire.wire import Chunks
from tests.gateway.exchanges import (
    ANSWER,
    FACTS,
    Model,
    answered,
    asked,
    call,
    essence,
    events,
    grounding_in,
    house,
    streaming,
    whole,
)

QUOTED = 'She said "the walrus has never flown at all". He said "the sky is blue on a clear day".'
SECRETS = {
    "a source": "The zanzibar ledger was sealed in 1881.",
    "a claim": "The zanzibar ledger was opened in 1999.",
    "a quotation": "the okapi never slept in the harbour",
    "a key": "sk-umbrella",
    "a question": "Who keeps the pelican?",
}


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


def logged(model: Model, sent: dict[str, Any], *headers: tuple[bytes, bytes], **sections: Any) -> list[Any]:
    """Every log event of one exchange, its body read to the end."""

    async def work() -> None:
        serving = house(model, **sections)
        try:
            await answered(serving, sent, *headers)
        finally:
            await serving.close()

    with capture_logs() as logs:
        run(work())
    return list(logs)


def events_named(name: str, logs: list[MutableMapping[str, Any]]) -> list[MutableMapping[str, Any]]:
    return [entry for entry in logs if entry["event"] == name]


# --- the log ----------------------------------------------------------------------------------------------------------


def test_rejected_quotations_are_logged_once_per_answer_by_their_hashes() -> None:
    (entry,) = events_named("grounding.quotes_checked", logged(whole(QUOTED), asked()))
    assert (entry["extracted"], entry["validated"], entry["rejected"]) == (2, 1, 1)
    (claim,) = entry["claims"]
    text = 'She said "the walrus has never flown at all".'
    assert (claim["chars"], claim["sha256"]) == (len(text), short_hash(text))
    assert entry["log_level"] == "info"
    assert entry["mode"] == "substring"
    assert entry["transcript"] == {"chars": len(FACTS), "sha256": short_hash(FACTS)}
    assert "walrus" not in str(entry)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_all_quotations_rejected_is_a_failure_event(streamed: bool) -> None:
    text = 'She said "the walrus has never flown at all".'
    model = streaming(events([text])) if streamed else whole(text)
    logs = logged(model, asked(stream=streamed))
    (entry,) = events_named("grounding.quotes_checked", logs)
    assert entry["log_level"] == "warning"
    (report,) = events_named("grounding.report", logs)
    assert "quotes_all_rejected" in report["flags"]


def test_rejected_evidence_fields_are_logged_by_field() -> None:
    answer = json.dumps({"summary": "The sky is blue.", "quotes": ["the walrus has never flown", "The sky is blue"]})
    logs = logged(whole(answer), asked(grounding={"evidence_fields": ["quotes"]}))
    (entry,) = events_named("grounding.quotes_checked", logs)
    assert entry["rejected_by_field"] == {"quotes": 1}
    assert "walrus" not in str(logs)


def test_numbers_that_take_too_long_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numeric, "Work", partial(Work, max_steps=0))
    logs = logged(whole("The lease runs for 40 years. The rent is $500."), asked())
    (entry,) = events_named("grounding.numbers_not_checked", logs)
    assert (entry["log_level"], entry["work_limit"]) == ("warning", 2)


def test_the_log_contains_the_mode_of_the_quotation_search() -> None:
    (entry,) = events_named("grounding.quotes_checked", logged(whole(QUOTED), asked(), quotes={"mode": "fuzzy"}))
    assert entry["mode"] == "fuzzy"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("answer", "violations"),
    [
        ('{"quotes": "The walrus flew."}', 1),
        ('{"quotes": [1, null, "The walrus flew."]}', 2),
        ("The walrus flew.", 1),
        ('{"quotes": ["The sky is blue"]}', 0),
    ],
)
def test_schema_violations_are_logged_by_count_length_and_hash(answer: str, violations: int, streamed: bool) -> None:
    model = streaming(events([answer])) if streamed else whole(answer)
    logs = logged(model, asked(stream=streamed, grounding={"evidence_fields": ["quotes"]}))
    (report,) = events_named("grounding.report", logs)
    found = events_named("grounding.schema_violated", logs)
    expected = {"violations": violations, "answers": [{"chars": len(answer), "sha256": short_hash(answer)}]}
    assert [{name: entry[name] for name in ("grounding_id", "log_level", *expected)} for entry in found] == (
        [{"grounding_id": report["grounding_id"], "log_level": "warning", **expected}] if violations else []
    )
    assert "walrus" not in str(logs)


def test_a_check_of_evidence_logs_violations_too() -> None:
    async def work() -> None:
        serving = house(whole())
        try:
            check = EvidenceCheck(answer={"quotes": 7}, evidence_fields=("quotes",), sources=())
            await serving.checks.evidence(check, Caller())
        finally:
            await serving.close()

    with capture_logs() as logs:
        run(work())
    (entry,) = events_named("grounding.schema_violated", list(logs))
    answer = '{"quotes":7}'
    assert (entry["violations"], entry["answers"]) == (1, [{"chars": len(answer), "sha256": short_hash(answer)}])


def test_violations_of_a_response_format_are_logged() -> None:
    format_ = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    (entry,) = events_named("grounding.schema_violated", logged(whole("[1]"), asked(response_format=format_)))
    assert (entry["violations"], entry["answers"]) == (1, [{"chars": 3, "sha256": short_hash("[1]")}])


@pytest.mark.parametrize(
    ("answer", "sections"),
    [
        ("The sky is blue on a clear day.", {}),
        ('He said "the sky is blue on a clear day".', {}),
        (QUOTED, {"quotes": {"log_rejections": False}}),
        (QUOTED, {"grounding": {"mode": "off"}}),
    ],
    ids=["no quotation", "none rejected", "switched off", "mode off"],
)
def test_there_is_no_event_without_a_rejected_quotation(answer: str, sections: dict[str, Any]) -> None:
    assert events_named("grounding.quotes_checked", logged(whole(answer), asked(), **sections)) == []


def test_every_report_is_logged_with_its_result_and_no_text() -> None:
    (entry,) = events_named("grounding.report", logged(whole(), asked()))
    assert (entry["status"], entry["verdict"], entry["score"]) == ("complete", "partially_grounded", 0.4)
    assert entry["model"] == "m-1"
    assert "contradicted_claims" in entry["flags"]
    assert entry["total_ms"] > 0


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("ends", ["well", "broken", "refused", "unreachable"])
def test_no_log_event_holds_content_or_a_key(streamed: bool, ends: str) -> None:
    source, claim, quotation, key, question = SECRETS.values()
    answer = f"{claim} It says “{quotation}”."
    sent = asked(source + " " + question, stream=streamed, grounding={"sources": [{"text": source}]})
    chunks: list[bytes | Exception] = [*events([answer])]
    models: dict[str, Model] = {
        "well": streaming(chunks) if streamed else whole(answer),
        "broken": streaming([*chunks[:1], httpx.ReadError("x")]),
        "refused": whole(answer, status=401),
        "unreachable": unreachable,
    }

    async def work() -> None:
        serving = house(models[ends])
        with suppress(RequestError):
            await answered(serving, sent, (b"authorization", f"Bearer {key}".encode()), (b"x-api-key", key.encode()))
        await asyncio.sleep(0.1)
        await serving.close()

    with capture_logs() as logs:
        run(work())
    assert logs or ends in ("refused", "unreachable")
    assert not [secret for secret in SECRETS.values() if secret in str(logs)]


def unreachable(_: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("[Errno 111] upstream.internal")


# --- the same verdicts whole and streamed -----------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.lists(st.integers(1, 60), max_size=30), st.booleans())
def test_an_answer_has_the_same_verdicts_whole_and_streamed(sizes: list[int], usage: bool) -> None:
    answer = ANSWER * 6 + ' She said "the walrus has never flown at all".'
    pieces, at = [], 0
    for size in sizes:
        pieces.append(answer[at : at + size])
        at += size
    chunks = events([*pieces, answer[at:]])
    if usage:
        tail = {"id": "a1", "model": "m-1", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}}
        chunks.insert(-1, b"data: " + json.dumps(tail).encode() + b"\n\n")

    async def work() -> tuple[bytes, bytes]:
        patient = {"timeout": "60s"}
        first, second = house(whole(answer), grounding=patient), house(streaming(chunks), grounding=patient)
        options = {"stream_options": {"include_usage": usage}}
        _, body = await answered(first, asked())
        _, stream = await answered(second, asked(stream=True, **options))
        await first.close()
        await second.close()
        return body, stream

    body, stream = run(work())
    assert essence(grounding_in(stream)) == essence(grounding_in(body))
    assert [event for event in chunks if event not in stream] == [chunks[-2]]  # the one that carries it


# --- late and asynchronous reports ------------------------------------------------------------------------------------


async def settled(serving: Any, id_: str) -> dict[str, Any]:
    """The stored report, once it is no longer pending."""
    async with asyncio.timeout(60):
        while True:
            report: dict[str, Any] = json.loads(serving.reports.get(id_) or b'{"status":"pending"}')
            if report["status"] != "pending":
                return report
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_async_promises_a_report_and_keeps_it(streamed: bool) -> None:
    async def work() -> None:
        serving = house(streaming(events([ANSWER])) if streamed else whole())
        _, raw = await answered(serving, asked(stream=streamed, grounding={"mode": "async"}))
        promised = grounding_in(raw)
        assert (promised["status"], promised["verdict"], promised["score"]) == ("pending", "not_checked", None)
        report = await settled(serving, promised["id"])
        assert (report["id"], report["status"], report["verdict"]) == (promised["id"], "complete", "partially_grounded")
        await serving.close()

    run(work())


def test_a_stream_is_held_no_longer_than_its_tail_budget() -> None:
    released = threading.Event()

    def slow(*_: Any) -> None:
        released.wait(60)

    async def work() -> None:
        serving = house(streaming(events([ANSWER])), verifiers=[("statement", slow)], stream={"tail_budget": "50ms"})
        _, raw = await answered(serving, asked(stream=True))
        released.set()
        assert raw.endswith(b"data: [DONE]\n\n")
        assert grounding_in(raw)["status"] == "pending"
        await serving.close()

    run(work())


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_stream_that_breaks_has_a_partial_report(mode: str) -> None:
    async def work() -> None:
        serving = house(streaming([*events([FACTS], finish=None, done=False), httpx.ReadError("x")]))
        sent = asked(stream=True, grounding={"mode": mode})
        reply = await serving.completions.complete(CHAT, call(sent))
        assert not isinstance(reply.body, bytes)
        came: list[bytes] = []
        with pytest.raises(UpstreamBroken):
            await collect(reply.body, came)
        raw = b"".join(came)
        assert b"[DONE]" not in raw
        assert b'"grounding"' not in raw
        assert b'"error"' in raw
        report = await settled(serving, dict(reply.headers)[b"x-grounding-id"].decode())
        assert report["status"] == "partial"
        assert report["coverage"]["claims_checked"] > 0
        await serving.close()

    run(work())


async def collect(chunks: Chunks, came: list[bytes]) -> None:
    """Append every chunk to `came`, including those before a broken connection."""
    async for chunk in chunks:
        came.append(chunk)  # noqa: PERF401 - see above


def test_a_client_that_leaves_ends_its_check() -> None:
    async def work() -> None:
        serving = house(streaming(events([ANSWER] * 50)))
        reply = await serving.completions.complete(CHAT, call(asked(stream=True)))
        assert not isinstance(reply.body, bytes)
        assert await anext(reply.body)
        await reply.body.aclose()
        await asyncio.sleep(0.1)
        assert serving.reports.get(dict(reply.headers)[b"x-grounding-id"].decode()) is None
        assert not serving.workers.is_full
        await serving.close()

    run(work())


@pytest.mark.parametrize(
    ("model", "status", "verdict"),
    [
        pytest.param(whole(status=500), None, None, id="an error"),
        pytest.param(lambda _: plain(b"not json"), b"failed", b"not_checked", id="no JSON"),
        pytest.param(lambda _: plain(b"[1]"), b"failed", b"not_checked", id="no object"),
        pytest.param(lambda _: plain(b"{}", b"br"), b"failed", b"not_checked", id="an unknown coding"),
        pytest.param(lambda _: plain(b"junk", b"gzip"), b"failed", b"not_checked", id="a broken coding"),
    ],
)
def test_an_unreadable_body_passes_unchanged_and_is_not_reported_as_clean(
    model: Model, status: bytes | None, verdict: bytes | None
) -> None:
    async def work() -> None:
        serving = house(model)
        reply, raw = await answered(serving, asked())
        headers = dict(reply.headers)
        assert (headers.get(b"x-grounding-status"), headers.get(b"x-grounding-verdict")) == (status, verdict)
        assert b'"grounding"' not in raw
        await serving.close()

    run(work())


def plain(raw: bytes, coding: bytes | None = None) -> httpx.Response:
    headers = [(b"content-type", b"application/json")] + ([(b"content-encoding", coding)] if coding else [])
    return httpx.Response(200, headers=headers, stream=httpx.ByteStream(raw))


def test_a_body_over_the_limit_passes_whole_and_unread() -> None:
    async def work() -> None:
        serving = house(whole("The sky is blue. " * 200), server={"max_body": "1KiB"})
        reply, raw = await answered(serving, asked())
        assert json.loads(raw)["choices"][0]["message"]["content"] == "The sky is blue. " * 200
        assert dict(reply.headers)[b"x-grounding-status"] == b"failed"
        await serving.close()

    run(work())


def test_the_headers_sum_the_report_up() -> None:
    async def work() -> None:
        serving = house(whole())
        reply, raw = await answered(serving, asked())
        report, headers = grounding_in(raw), dict(reply.headers)
        assert headers[b"x-grounding-id"].decode() == report["id"]
        assert headers[b"x-grounding-status"] == b"complete"
        assert headers[b"x-grounding-verdict"] == b"partially_grounded"
        assert headers[b"x-grounding-score"] == b"0.4000"
        assert headers[b"x-grounding-flags"].decode().split(",") == report["flags"]
        await serving.close()

    run(work())


def test_a_request_can_select_fewer_verifiers_and_never_more() -> None:
    async def verifiers(enabled: list[str], wanted: list[str]) -> set[str]:
        serving = house(whole(QUOTED + ANSWER), grounding={"verifiers": enabled})
        _, raw = await answered(serving, asked(grounding={"verifiers": wanted}))
        await serving.close()
        return {claim["verifier"] for claim in grounding_in(raw)["choices"][0]["claims"] if claim["verifier"]}

    async def work() -> None:
        assert await verifiers(["quote", "numeric", "statement"], ["quote"]) == {"quote"}
        assert await verifiers(["quote"], ["quote", "statement"]) == {"quote"}
        assert await verifiers(["quote"], []) == set()

    run(work())


def test_an_option_without_effect_gives_a_warning() -> None:
    async def work() -> None:
        serving = house(whole())
        _, raw = await answered(serving, asked(grounding={"subject": "s", "session": "t"}))
        told = [warning.partition(":")[0] for warning in grounding_in(raw)["warnings"] if ":" in warning]
        assert told == ["subject", "session"]
        await serving.close()

    run(work())
