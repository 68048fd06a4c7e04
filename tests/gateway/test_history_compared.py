"""An answer through the gateway, compared with earlier answers to the same subject."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from groundwire.dialects.openai import CHAT
from groundwire.dialects.request import Request, read_options
from groundwire.features.consistency import EarlierAnswer
from groundwire.gateway.forward import Caller
from groundwire.gateway.service import ExternalContext, ExternalContextLoader
from groundwire.gateway.session import GroundingSession
from groundwire.pipeline import AnswerSnapshot
from groundwire.report import Report
from groundwire.storage.history.database import Database
from groundwire.storage.history.exchanges import Exchanges
from tests.gateway.exchanges import (
    ExchangeRequest,
    answered,
    asked,
    choice,
    exchange,
    grounding_in,
    house,
    service,
    whole,
)
from tests.servers.databases import Database as Place
from tests.storage.history.entries import entry, opened, stored

THEN = 1_750_000_000.0
SAID = EarlierAnswer(
    "gw-then", THEN, "The Pro plan costs $20 per month. Tickets are refundable.", "What does Pro cost?"
)
CONTEXT = "The Pro plan costs $35 per month."


def report(answer: str, *earlier: EarlierAnswer, **options: Any) -> Report:
    """The report on an answer to a request about CONTEXT, with these earlier answers."""

    class EarlierOnly(ExternalContextLoader):
        async def load(self, request: Request) -> ExternalContext:
            return ExternalContext(earlier=earlier)

    async def work() -> Report:
        parts = service(now=lambda: THEN + 86_400.0, external_context=EarlierOnly(), **options)
        request = ExchangeRequest(CHAT, b"{}", {}, "m", read_options({}, {}), load=lambda: exchange(CONTEXT))
        session = GroundingSession(parts, request, "sync", Caller(), parts.reserve(0), "gw-now")
        return (await session.verify(AnswerSnapshot([choice(answer)]))).report

    return asyncio.run(work())


def test_an_answer_that_contradicts_history_is_flagged_with_both_statements() -> None:
    found = report("Tickets are not refundable.", SAID)
    assert found.consistency is not None
    (told,) = found.consistency.contradictions
    assert (told.statement, told.earlier) == ("Tickets are not refundable.", "Tickets are refundable.")
    assert (told.exchange, told.kind) == ("gw-then", "semantic")
    assert "inconsistent_with_history" in found.flags
    assert found.confidence is not None
    assert found.confidence.consistency == found.consistency.score


def test_a_contradiction_supported_by_current_sources_is_less_severe() -> None:
    found = report(CONTEXT, SAID)
    assert found.consistency is not None
    assert [each.severity for each in found.consistency.contradictions] == ["medium"]


def test_an_answer_that_agrees_with_history_is_not_flagged() -> None:
    found = report("Tickets are refundable.", SAID)
    assert found.consistency is not None
    assert (found.consistency.score, found.consistency.contradictions) == (1.0, ())
    assert "inconsistent_with_history" not in found.flags


@pytest.mark.parametrize(
    "earlier",
    [pytest.param((), id="none"), pytest.param((EarlierAnswer("gw-now", THEN, CONTEXT),), id="only this one")],
)
def test_a_report_without_history_has_no_consistency(earlier: tuple[EarlierAnswer, ...]) -> None:
    found = report(CONTEXT, *earlier)
    assert found.consistency is None
    assert found.confidence is not None
    assert found.confidence.consistency is None


def test_the_newest_answers_of_a_subject_are_compared_and_no_others(tmp_path: Path) -> None:
    async def work() -> tuple[EarlierAnswer, ...] | None:
        async with opened(Place(f"sqlite:///{tmp_path}/history.db")) as history:
            said = [entry(f"gw-{day}", at=THEN + day, answer=f"Answer {day}.", subject="acme") for day in range(4)]
            await stored(history, *said, entry("gw-other", answer="Another.", subject="beta"))
            return await ExternalContextLoader(newest=3).earlier(history.exchanges, "acme")

    assert [(each.exchange, each.answer) for each in asyncio.run(work()) or ()] == [
        ("gw-3", "Answer 3."),
        ("gw-2", "Answer 2."),
        ("gw-1", "Answer 1."),
    ]


def test_a_history_that_fails_is_no_history_without_answers() -> None:
    exchanges = Exchanges(Database("postgresql://127.0.0.1:9/nothing"))
    assert asyncio.run(ExternalContextLoader().earlier(exchanges, "acme")) is None


def test_a_report_warns_if_earlier_answers_could_not_be_read() -> None:
    async def work() -> dict[str, Any]:
        serving = house(whole("Revenue was $4.2M."), store={"url": "postgresql://127.0.0.1:9/nothing"})
        _, raw = await answered(serving, asked(grounding={"subject": "acme"}))
        await serving.close()
        return grounding_in(raw)

    found = asyncio.run(work())
    assert "consistency: earlier answers could not be read" in found["warnings"]
    assert "consistency" not in found


@pytest.mark.parametrize("enabled", [True, False])
def test_answers_are_compared_unless_that_is_switched_off(tmp_path: Path, enabled: bool) -> None:
    async def work() -> dict[str, Any]:
        store = {"url": f"sqlite:///{tmp_path}/history.db", "interval": "0s"}
        for answer in ("Tickets are refundable.", "Tickets are not refundable."):
            serving = house(whole(answer), store=store, consistency={"enabled": enabled})
            await serving.start()
            _, raw = await answered(serving, asked(grounding={"subject": "acme"}))
            await serving.close()
        return grounding_in(raw)

    found = asyncio.run(work())
    assert ("consistency" in found) is enabled
    assert ("inconsistent_with_history" in found["flags"]) is enabled
    assert not any(warning.startswith(("subject", "consistency:")) for warning in found["warnings"])


def test_without_confidence_a_report_has_none() -> None:
    async def work() -> dict[str, Any]:
        serving = house(whole("The sky is blue on a clear day."), confidence={"enabled": False})
        _, raw = await answered(serving, asked())
        await serving.close()
        return grounding_in(raw)

    found = asyncio.run(work())
    assert "confidence" not in found
    assert [claim["confidence"] for claim in found["choices"][0]["claims"]] == [None]
