"""Calls of worker threads per answer: one prepares the evidence, one judges the answer and renders its report."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from groundwire.dialects.request import Request
from groundwire.offload import Workers
from tests.gateway.exchanges import ANSWER, Model, answered, asked, events, grounding_in, house, streaming, whole

LONG = " ".join(f"The walrus number {at} lives in Oslo." for at in range(60))
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}


@pytest.fixture
def hops(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that worker threads are called with."""
    found: list[str] = []
    insist = Workers.insist

    async def counted(workers: Workers, job: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        found.append(job.__name__)
        return await insist(workers, job, *args, **kwargs)

    monkeypatch.setattr(Workers, "insist", counted)
    return found


def report(model: Model, *sent: dict[str, Any]) -> dict[str, Any]:
    """Return the last report on an answer of `model` to these requests, one after the other."""

    async def work() -> dict[str, Any]:
        serving = house(model, grounding={"timeout": "60s"})
        for each in sent:
            _, raw = await answered(serving, each)
        await serving.close()
        return grounding_in(raw)

    return asyncio.run(work())


@pytest.mark.parametrize("answer", [ANSWER, LONG], ids=["6 claims", "60 claims"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_answer_takes_two_calls_of_a_worker(answer: str, streamed: bool, hops: list[str]) -> None:
    model = streaming([b"".join(events([answer]))]) if streamed else whole(answer)
    assert report(model, asked(stream=streamed))["status"] == "complete"
    assert len(hops) == 2


@pytest.mark.parametrize(
    "options", [{"response_format": SCHEMA}, {"grounding": {"evidence_fields": ["quotes"]}}], ids=["schema", "quotes"]
)
def test_an_answer_in_json_takes_two_calls(options: dict[str, Any], hops: list[str]) -> None:
    found = report(whole('{"quotes": ["The sky is blue on a clear day."]}'), asked(**options))
    assert found["status"] == "complete"
    assert len(hops) == 2


def test_an_answer_whose_verdicts_are_cached_takes_two_calls(hops: list[str]) -> None:
    assert report(whole(), asked(), asked())["cache"]["hits"] == 5
    assert len(hops) == 4


def test_a_growing_answer_takes_one_call_for_each_look_ahead(hops: list[str]) -> None:
    """A look ahead happens after 300 characters and whenever the answer has grown by as many, or by an eighth."""
    pieces = [LONG[at : at + 40] for at in range(0, len(LONG), 40)]
    report(streaming(events(pieces)), asked(stream=True))
    assert len(hops) - 2 <= len(LONG) / 300


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_body_that_goes_out_is_built_once(streamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer and its repetitions are requested with the same bytes."""
    built: list[bytes] = []
    outgoing = Request.outgoing

    def counted(request: Request, *args: Any) -> bytes:
        built.append(outgoing(request, *args))
        return built[-1]

    monkeypatch.setattr(Request, "outgoing", counted)
    model = streaming(events([ANSWER])) if streamed else whole()
    report(model, asked(stream=streamed, grounding={"corrective_retry": True, "samples": 3}))
    [body] = built
    assert b"grounding" not in body
