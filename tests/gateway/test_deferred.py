"""A deferred check is stored completely, finished by a job, and found by its id."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.container import Container
from groundwire.dialects.request import DIALECTS, read_request
from groundwire.domain import Choice, Source
from groundwire.gateway.reports import is_unfinished, read_job, write_job
from groundwire.pipeline import AnswerSnapshot
from groundwire.report import Attempt, Report
from tests.gateway.exchanges import (
    ANSWER,
    FACTS,
    answered,
    asked,
    body,
    essence,
    events,
    grounding_in,
    house,
    streaming,
    whole,
)

texts = st.text(st.characters(), max_size=40)


@given(
    st.builds(Choice, st.integers(0, 5), texts, st.none() | texts, st.none() | st.floats(0, 1), st.tuples(texts)),
    st.sampled_from(DIALECTS),
    st.booleans(),
    st.sampled_from([{}, {"x-grounding-detail": "none", "x-grounding-mode": "async"}]),
)
def test_a_written_job_is_read_back_unchanged(
    choice: Choice, dialect: Any, cut_short: bool, headers: dict[str, str]
) -> None:
    raw = json.dumps({"model": "m", "prompt": choice.text, "grounding": {"offset_unit": "utf16"}}).encode()
    request = read_request(dialect, raw, headers)
    heard = AnswerSnapshot((choice,), cut_short, "a1", None)
    for origin in (None, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"):
        assert read_job(write_job(request, heard, origin)) == (request, heard, origin)
    verified = replace(request, question="What colour is the sky?")
    assert read_job(write_job(verified, heard))[0] == verified


def test_a_job_of_a_later_version_is_read() -> None:
    request = read_request(DIALECTS[0], b'{"model": "m"}', {})
    attempts, given = (Attempt("up", "m", "busy"),), (Source("answer.1", "tool", "It rains.", labels=("1",)),)
    heard = AnswerSnapshot((Choice(0, "It rains."),), attempts=attempts, given=given, tokens=(1, 2))
    job = json.loads(write_job(request, heard))
    answer = job["heard"]
    for each in (job, answer, answer["choices"][0], answer["attempts"][0], answer["given"][0]):
        each["later"] = 1
    assert read_job(json.dumps(job).encode()) == (request, heard, None)


@pytest.mark.parametrize(
    ("degraded", "unfinished"),
    [
        ((("all", "overload"),), True),
        ((("all", "timeout"),), True),
        ((("budget", "rate_limited"),), True),
        ((("budget", "unavailable"),), True),
        ((("numeric", "timeout"),), False),
        ((("statement", "error"),), False),
        ((), False),
    ],
)
def test_only_what_may_come_to_more_at_another_time_is_deferred(
    degraded: tuple[tuple[str, str], ...], unfinished: bool
) -> None:
    assert is_unfinished(Report("gw-1", "partial", "not_checked", degraded=degraded)) is unfinished


# --- with jobs in a database ------------------------------------------------------------------------------------------

Model = Callable[[httpx.Request], httpx.Response]


@asynccontextmanager
async def open_house(model: Model, url: str, **sections: Any) -> AsyncIterator[Container]:
    """A container with jobs at this URL."""
    serving = house(model, jobs={"url": url, "poll": "50ms", "drain": "1s"}, **sections)
    await serving.start()
    try:
        yield serving
    finally:
        await serving.close()


async def until(found: Callable[[], Awaitable[dict[str, Any] | None]]) -> dict[str, Any]:
    for _ in range(3000):
        if (value := await found()) is not None:
            return value
        await asyncio.sleep(0.02)
    raise AssertionError("not within 60 s")


async def finished(serving: Container, id_: str) -> dict[str, Any]:
    """The stored report, once it is neither pending nor deferred."""

    async def look() -> dict[str, Any] | None:
        report: dict[str, Any] = json.loads(await serving.find_report(id_) or b"null")
        return report if report["status"] not in ("pending", "deferred") else None

    return await until(look)


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/jobs.db"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_async_examination_is_done_by_a_job_and_comes_to_the_same(streamed: bool, tmp_path: Path) -> None:
    model = streaming(events([ANSWER])) if streamed else whole()
    calls: list[httpx.Request] = []

    def receive(request: httpx.Request) -> httpx.Response:
        if request.url.host == "hook.internal":
            calls.append(request)
            return httpx.Response(200, stream=httpx.ByteStream(b""))
        return model(request)

    async def work() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        environ = {"GROUNDWIRE_WEBHOOK_SECRET": "s"}
        webhook = {"webhook": {"url": "http://hook.internal/"}}
        async with open_house(receive, url(tmp_path), environ=environ, **webhook) as serving:
            _, raw = await answered(serving, asked(stream=streamed, grounding={"mode": "async"}))
            promised = grounding_in(raw)
            report = await finished(serving, promised["id"])

            async def told() -> dict[str, Any] | None:
                return json.loads(calls[0].content) if calls else None

            return promised, report, await until(told)

    promised, report, told = asyncio.run(work())
    assert (promised["status"], promised["verdict"], promised["warnings"]) == ("deferred", "not_checked", [])
    assert report["id"] == promised["id"]
    assert told == report
    assert [call.headers["webhook-id"] for call in calls] == [promised["id"]]
    at_once = asyncio.run(answered(house(model), asked(stream=streamed)))[1]
    assert essence(report) == essence(grounding_in(at_once))


def test_a_shed_check_is_deferred_and_completed_when_there_is_room(tmp_path: Path) -> None:
    async def work() -> tuple[dict[str, Any], bytes | None, dict[str, Any]]:
        async with open_house(whole(), url(tmp_path), grounding={"queue": 1}) as serving:
            room = threading.Event()
            busy = asyncio.create_task(serving.workers.run(room.wait))
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_later(1.0, room.set)
            _, raw = await answered(serving, asked())
            told = grounding_in(raw)
            kept = await serving.find_report(told["id"])
            await busy
            return told, kept, await finished(serving, told["id"])

    told, kept, report = asyncio.run(work())
    assert told["status"] in ("deferred", "pending")
    assert kept is not None
    assert (report["status"], report["coverage"]["claims_checked"]) == ("complete", 5)
    assert report["degraded"] == []


def test_another_process_finds_the_report_too(tmp_path: Path) -> None:
    async def ask() -> str:
        async with open_house(whole(), url(tmp_path)) as serving:
            _, raw = await answered(serving, asked(grounding={"mode": "async"}))
            id_: str = grounding_in(raw)["id"]
            await finished(serving, id_)
            return id_

    async def look(id_: str) -> tuple[dict[str, Any], bytes | None]:
        async with open_house(whole(), url(tmp_path)) as serving:
            return await finished(serving, id_), await serving.find_report("gw-nobody")

    report, nobody = asyncio.run(look(asyncio.run(ask())))
    assert (report["status"], nobody) == ("complete", None)


@pytest.mark.timeout(60)
def test_a_database_that_is_down_delays_no_answer_and_loses_no_report_of_a_living_process(tmp_path: Path) -> None:
    async def work() -> tuple[dict[str, Any], dict[str, Any], tuple[tuple[str, str], ...]]:
        async with open_house(whole(), url(tmp_path / "missing")) as serving:
            for _ in range(100):  # 100 s, if each waited for the database
                _, raw = await answered(serving, asked(grounding={"mode": "async"}))
            told = grounding_in(raw)
            return told, await finished(serving, told["id"]), serving.degraded()

    told, report, degraded = asyncio.run(work())
    assert (told["status"], report["status"]) == ("pending", "complete")
    assert ["is lost if this process ends" in warning for warning in told["warnings"]] == [True]
    assert not any("is lost" in warning for warning in report["warnings"])
    assert ("jobs", "unavailable") in degraded


def test_an_answer_that_goes_on_behind_its_finish_reason_is_examined_whole(tmp_path: Path) -> None:
    late = {"id": "a1", "choices": [{"index": 0, "delta": {"content": " The sky is green."}, "finish_reason": None}]}
    first = events(["The sky is blue on a clear day."], done=False)
    chunks = [*first, b"data: " + json.dumps(late).encode() + b"\n\n", b"data: [DONE]\n\n"]

    async def work() -> dict[str, Any]:
        async with open_house(streaming(chunks), url(tmp_path)) as serving:
            _, raw = await answered(serving, asked(FACTS, stream=True, grounding={"mode": "async"}))
            return await finished(serving, grounding_in(raw)["id"])

    report = asyncio.run(work())
    assert [claim["text"] for claim in report["choices"][0]["claims"]] == [
        "The sky is blue on a clear day.",
        "The sky is green.",
    ]


def test_the_model_server_sees_nothing_of_it(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.content)
        return whole()(request)

    async def work() -> bytes:
        async with open_house(answer, url(tmp_path)) as serving:
            _, raw = await answered(serving, asked(grounding={"mode": "async"}))
            await finished(serving, grounding_in(raw)["id"])
            return raw

    raw = asyncio.run(work())
    assert len(seen) == 1
    assert b"grounding" not in seen[0]
    assert raw.startswith(body()[:-1])
