"""A report on cached verdicts equals one on new verdicts, byte by byte, except for its id, times and cache use."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from groundwire.dialects.openai import CHAT
from groundwire.dialects.request import read_request
from groundwire.domain import Choice
from groundwire.gateway.service import EvidenceCache, GroundingService
from groundwire.gateway.session import GroundingSession
from groundwire.pipeline import AnswerSnapshot
from groundwire.policy import NumericPolicy, Policy
from tests.gateway.exchanges import ANSWER, FACTS, asked, service

PATIENT = Policy(numeric=NumericPolicy(timeout_s=60.0))
TABLE = "| Year | Revenue |\n| --- | --- |\n| 2022 | $3.9 million |\n| 2023 | $4.2 million |"
QUOTED = (
    'It says "the committee approved the budget without changes" [1]. Revenue was $4.2 million in 2023 [2]. 😀 Odd.'
)
JSON = '{"revenue": "$4.2 million in 2023", "tower": {"city": "Paris", "year": 1899}}'
SOURCES = [FACTS, {"id": "t", "title": "Figures 😀", "text": TABLE, "url": "https://example.com/t"}]


async def wire(parts: GroundingService, answers: tuple[str, ...], tenant: str = "", **more: Any) -> dict[str, Any]:
    """The report on these choices, as sent."""
    request = read_request(CHAT, json.dumps(asked(**more)).encode(), {}, tenant)
    choices = [Choice(index, text, "stop") for index, text in enumerate(answers)]
    annotation = await GroundingSession.begin(parts, request, "sync").verify(AnswerSnapshot(choices))
    report: dict[str, Any] = json.loads(annotation.whole)
    return report


def bare(report: dict[str, Any]) -> bytes:
    """The bytes of a report without the fields that differ between runs."""
    kept = {name: value for name, value in report.items() if name not in ("id", "timing_ms", "cache")}
    return json.dumps(kept).encode()


@pytest.mark.parametrize("answers", [(ANSWER,), (QUOTED,), (JSON,), (ANSWER, QUOTED), (ANSWER, ANSWER), ("",)])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"temperature": 0.7},
        {"grounding": {"sources": SOURCES, "offset_unit": "utf16"}},
        {"grounding": {"evidence_fields": ["revenue"], "verifiers": ["quote", "statement"]}},
    ],
)
def test_a_cached_report_is_the_first_one_again(answers: tuple[str, ...], more: dict[str, Any]) -> None:
    async def work() -> None:
        parts = service(policy=PATIENT)
        without = service(policy=PATIENT, entries=0, evidence=EvidenceCache(0))
        first, again = [await wire(parts, answers, **more) for _ in range(2)]
        anew = await wire(without, answers, **more)
        assert bare(first) == bare(again) == bare(anew)
        found = sum(first["cache"][name] for name in ("hits", "misses"))
        assert (again["cache"]["hits"], again["cache"]["misses"]) == (found, 0)
        assert (again["cache"]["oldest_s"] is None) == (found == 0)

    asyncio.run(work())


def test_another_tenant_gets_the_same_report_without_the_age_of_its_verdicts() -> None:
    async def work() -> None:
        parts = service(policy=PATIENT)
        mine, theirs = [await wire(parts, (ANSWER,), tenant) for tenant in ("me", "them")]
        assert bare(mine) == bare(theirs)
        assert theirs["cache"]["hits"] == mine["cache"]["misses"] > 0
        assert theirs["cache"]["oldest_s"] is None

    asyncio.run(work())


def test_the_confidence_in_a_cached_verdict_is_that_of_its_own_answer() -> None:
    async def work() -> None:
        for order in ((0.0, 1.5), (1.5, 0.0)):
            parts = service(policy=PATIENT)
            cached = [bare(await wire(parts, (ANSWER,), temperature=each)) for each in order]
            anew = [bare(await wire(service(policy=PATIENT), (ANSWER,), temperature=each)) for each in order]
            assert cached == anew
            assert cached[0] != cached[1]

    asyncio.run(work())
