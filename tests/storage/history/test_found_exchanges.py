"""Exchanges are found by subject, session, model, flag, time and text, page by page, and by similar questions."""

from __future__ import annotations

import asyncio

import pytest

from groundwire.report import Risk
from groundwire.storage.history.exchange import Query
from tests.servers.databases import Database
from tests.storage.history.entries import NOON, entry, opened, reading, stored

QUESTION = "Which invoices of Müller GmbH were paid in Q3 2024?"
ANSWER = "The total was $4.2 million; see invoice no. 17-B, paid to O'Neill. Cafe\u0301 culture isn't mentioned."


def risk(score: float) -> Risk:
    return Risk(score, "high", ("made up",))


TOLD = (
    entry("gw-1", at=NOON, subject="acme", session="s-1", model="small", labels=("supported",)),
    entry("gw-2", at=NOON + 10, subject="acme", session="s-2", model="large", labels=("contradicted",), risk=risk(0.9)),
    entry("gw-3", at=NOON + 20, subject="other", session="s-1", model="large", labels=("unsupported",), risk=risk(0.4)),
    entry(
        "gw-4",
        at=NOON + 30,
        model="small",
        labels=("unsupported", "contradicted"),
        question="Who leads Oslo?",
        risk=risk(0.4),
    ),
)


@pytest.fixture(scope="module")
def filled(module_place: Database) -> Database:
    """A database with a few exchanges in it, which tests only read."""

    async def fill() -> None:
        async with opened(module_place) as history:
            await stored(history, *TOLD, entry("gw-5", question=QUESTION, answer=ANSWER, model="third", at=NOON + 99))

    asyncio.run(fill())
    return module_place


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (Query(until=NOON + 40), ["gw-4", "gw-3", "gw-2", "gw-1"]),
        (Query(subject="acme"), ["gw-2", "gw-1"]),
        (Query(subject="nobody"), []),
        (Query(session="s-1"), ["gw-3", "gw-1"]),
        (Query(subject="acme", session="s-1"), ["gw-1"]),
        (Query(model="large"), ["gw-3", "gw-2"]),
        (Query(flag="contradicted_claims"), ["gw-4", "gw-2"]),
        (Query(flag="contradicted_claims", model="small"), ["gw-4"]),
        (Query(flag="no_such_flag"), []),
        (Query(since=NOON + 10, until=NOON + 30), ["gw-3", "gw-2"]),
        (Query(text="acme earn"), ["gw-3", "gw-2", "gw-1"]),
        (Query(text="oslo"), ["gw-4"]),
        (Query(text="acme", subject="acme"), ["gw-2", "gw-1"]),
        (Query(text="acme", session="s-1", flag="unsupported_claims"), ["gw-3"]),
        (Query(text="oslo", flag="contradicted_claims", model="small", since=NOON), ["gw-4"]),
        (Query(verdict="grounded", until=NOON + 40), ["gw-1"]),
        (Query(verdict="grounded", model="large"), []),
        (Query(verdict="partially_grounded", text="acme", subject="acme"), ["gw-2"]),
        (Query(verifier="statement"), ["gw-4", "gw-3", "gw-2"]),
        (Query(verifier="statement", model="small", flag="contradicted_claims"), ["gw-4"]),
        (Query(verifier="numeric"), []),
        (Query(state="open", session="s-1"), ["gw-3"]),
        (Query(state="open", until=NOON + 15), ["gw-2"]),
        (Query(state="decided"), []),
        (Query(by_risk=True), ["gw-2", "gw-4", "gw-3"]),
        (Query(by_risk=True, model="large"), ["gw-2", "gw-3"]),
        (Query(by_risk=True, model="large", text="acme"), ["gw-2", "gw-3"]),
        (Query(by_risk=True, state="open", flag="unsupported_claims"), ["gw-4", "gw-3"]),
    ],
    ids=str,
)
def test_all_conditions_of_a_query_hold(filled: Database, query: Query, found: list[str]) -> None:
    async def work() -> None:
        async with reading(filled) as exchanges:
            page = await exchanges.page(query)
            assert [each.id for each in page.items] == found
            whole = [await exchanges.get(each.id) for each in page.items]
            assert [each and each.summary for each in whole] == list(page.items)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("invoices paid", True),
        ("PAID Invoices", True),
        ("müller", True),
        ("muller", False),
        ("MÜLLER", True),
        ("4.2", True),
        ("2.4", False),
        ("$4.2", True),
        ("17-B", True),
        ("o'neill", True),
        ("cafe\u0301", True),
        ("invoices unpaid", False),
        ("invo", False),
        ('paid" OR "nothing', False),
        ("paid NOT million", False),
        ("question : paid", False),
        ("paid*", True),
        ("NEAR(paid million)", False),
        ("paid & !million | (", True),
        ("paid'; DROP TABLE exchanges; --", False),
        ("… — !", False),
        ("", True),
    ],
)
def test_all_words_of_a_text_occur_and_nothing_in_it_is_a_command(filled: Database, text: str, is_found: bool) -> None:
    async def work() -> None:
        async with reading(filled) as exchanges:
            page = await exchanges.page(Query(text=text, model="third"))
            assert [each.id for each in page.items] == ["gw-5"] * is_found

    asyncio.run(work())


@pytest.mark.parametrize(
    "query",
    [Query(), Query(text="acme"), Query(flag="contradicted_claims"), Query(subject="a"), Query(verifier="statement")],
)
def test_pages_hold_everything_once_though_more_comes_in_between(place: Database, query: Query) -> None:
    async def work() -> None:
        async with opened(place) as history:
            old = [entry(f"gw-{n}", subject="a", labels=("contradicted",)) for n in range(23)]
            await stored(history, *old)
            seen: list[str] = []
            after = None
            for turn in range(100):
                page = await history.exchanges.page(query, after, limit=5)
                seen += [each.id for each in page.items]
                after = page.after
                if after is None:
                    break
                await stored(history, entry(f"new-{turn}", subject="a", labels=("contradicted",)))
            assert seen == [f"gw-{n}" for n in reversed(range(23))]

    asyncio.run(work())


def test_similar_questions_are_found_the_most_similar_first(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            questions = {
                "same": "What was the revenue of Acme in 2023?",
                "near": "What was Acme's revenue in 2022, by quarter?",
                "far": "Who leads the research team in Oslo?",
            }
            entries = [entry(id_, question=asked, subject="acme") for id_, asked in questions.items()]
            await stored(history, *entries, entry("other", question=questions["same"], subject="other"))
            found = await history.exchanges.similar("what was the revenue of ACME in 2023", "acme")
            assert [each.exchange.id for each in found] == ["same", "near"]
            assert found[0].similarity == 1.0
            everywhere = await history.exchanges.similar(questions["same"])
            assert [each.exchange.id for each in everywhere] == ["other", "same", "near"]
            assert await history.exchanges.similar("?!") == ()

    asyncio.run(work())


def test_pages_by_risk_hold_everything_once_the_riskiest_first(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            risks = [0.5, 0.9, None, 0.5, 0.1, 0.5, None, 0.7]
            risky = [entry(f"gw-{n}", risk=each and risk(each)) for n, each in enumerate(risks)]
            await stored(history, *risky)
            seen: list[str] = []
            after = None
            for _ in risks:
                page = await history.exchanges.page(Query(by_risk=True), after, limit=2)
                seen += [each.id for each in page.items]
                if (after := page.after) is None:
                    break
            assert seen == ["gw-1", "gw-7", "gw-5", "gw-3", "gw-0", "gw-4"]

    asyncio.run(work())
