"""Findings wait for review once; decisions are stored, never overwritten unseen, and counted."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.domain import Citation
from groundwire.errors import ReviewConflict
from groundwire.report import Consistency, Contradiction
from groundwire.storage.history.exchange import Query
from groundwire.storage.history.reviews import Accuracy, Precision, Ratio, Wanted
from tests.servers.databases import Database
from tests.storage.history.entries import NOON, entry, opened, stored

BAD = ("contradicted", "unsupported")


def test_a_flagged_claim_waits_with_all_that_a_reviewer_needs(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            told = entry("gw-1", labels=("supported", "contradicted"), subject="acme")
            await stored(history, told, told)
            (found,) = (await history.reviews.page(Wanted())).items
            assert (found.exchange, found.model, found.subject) == ("gw-1", "m-1", "acme")
            assert found.question == told.question
            assert (found.text, found.start, found.end, found.choice) == ("earned", 5, 11, 0)
            assert (found.label, found.flags, found.verifier) == (
                "contradicted",
                ("contradicted_claims",),
                "statement",
            )
            assert found.reason == "It says: earned"
            assert found.citations == (Citation("m0", 0, 4, "Acme", 1.0, "exact"),)
            assert (found.version, found.decided) == (0, None)

    asyncio.run(work())


def test_a_finding_has_its_session_its_question_and_the_confidence_stated(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            told = entry("gw-1", question="I am new. What did Acme earn?", labels=BAD, subject="acme", session="s-1")
            (choice,) = told.report.choices
            first, second = choice.judgements
            first = replace(first, claim=replace(first.claim, stated_confidence=0.55))
            report = replace(told.report, choices=(replace(choice, judgements=(first, second)),))
            await stored(history, replace(told, asked="What did Acme earn?", report=report))
            found = await history.reviews.of_exchange("gw-1")
            assert {(each.session, each.question, each.asked) for each in found} == {
                ("s-1", "I am new. What did Acme earn?", "What did Acme earn?")
            }
            assert [(each.original_confidence, each.confidence) for each in found] == [(0.55, 0.7), (1.0, 0.7)]

    asyncio.run(work())


def contradiction(claim: str) -> Contradiction:
    return Contradiction(
        0,
        claim,
        "Acme",
        "It earned $9.",
        "gw-0",
        NOON,
        "entity",
        "high",
        "This answer says $4, an earlier one said $9.",
    )


def test_a_contradiction_with_history_is_a_finding_on_its_claim_with_reason_and_evidence(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            told = entry("gw-1", labels=("supported", "contradicted", "supported"))
            claims = [each.claim.id for each in told.report.choices[0].judgements]
            consistency = Consistency(0.5, tuple(map(contradiction, claims[:2])), 2)
            flags = ("contradicted_claims", "inconsistent_with_history")
            await stored(history, replace(told, report=replace(told.report, consistency=consistency, flags=flags)))
            first, second = await history.reviews.of_exchange("gw-1")
            said = "An earlier answer contradicts it: This answer says $4, an earlier one said $9."
            assert (first.flags, first.claim, first.reason) == (("inconsistent_with_history",), claims[0], said)
            assert (first.label, first.verifier) == ("supported", "consistency")
            assert (first.citations[-1].source, first.citations[-1].text) == ("gw-0", "It earned $9.")
            assert first.citations[-1].match == "history"
            assert (second.flags, second.claim) == (flags, claims[1])
            assert second.reason == f"It says: earned {said}"
            assert second.verifier == "statement"

    asyncio.run(work())


def test_a_flag_without_a_claim_waits_too_unless_it_is_only_about_the_check(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            await stored(history, entry("gw-1", flags=("low_confidence", "answer_truncated", "verifier_degraded")))
            found = await history.reviews.of_exchange("gw-1")
            assert [(each.flags, each.claim) for each in found] == [(("low_confidence",), None)]

    asyncio.run(work())


def test_a_flag_that_sums_up_is_no_finding_if_there_are_others(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            summed = ("low_confidence", "high_risk")
            await stored(history, entry("gw-1", labels=("contradicted",), flags=("contradicted_claims", *summed)))
            await stored(history, entry("gw-2", flags=("inconsistent_with_history", *summed)))
            await stored(history, entry("gw-3", flags=summed))
            found = {
                id_: [each.flags for each in await history.reviews.of_exchange(id_)] for id_ in ("gw-1", "gw-2", "gw-3")
            }
            assert found == {
                "gw-1": [("contradicted_claims",)],
                "gw-2": [("inconsistent_with_history",)],
                "gw-3": [("low_confidence",), ("high_risk",)],
            }

    asyncio.run(work())


def test_the_queue_is_filtered_and_paged(place: Database) -> None:
    async def ids(wanted: Wanted) -> list[tuple[str, str | None]]:
        return [(each.exchange, each.label) for each in (await reviews.page(wanted)).items]

    async def work() -> None:
        nonlocal reviews
        async with opened(place) as history:
            reviews = history.reviews
            first = entry("gw-1", labels=BAD, model="small", subject="acme")
            await stored(history, first, entry("gw-2", labels=BAD, model="large"), entry("gw-3"))
            all_ = [(id_, label) for id_ in ("gw-2", "gw-1") for label in reversed(BAD)]
            assert await ids(Wanted()) == all_
            assert await ids(Wanted(flag="unsupported_claims")) == [("gw-2", "unsupported"), ("gw-1", "unsupported")]
            assert await ids(Wanted(model="small")) == all_[2:]
            assert await ids(Wanted(subject="acme", verifier="statement")) == all_[2:]
            assert await ids(Wanted(verifier="numeric")) == []
            assert await ids(Wanted(exchange="gw-2")) == all_[:2]
            assert await ids(Wanted(since=NOON, until=NOON + 10)) == all_
            assert await ids(Wanted(since=NOON + 1)) == await ids(Wanted(until=NOON)) == []
            decided = (await reviews.page(Wanted())).items[0]
            await reviews.decide(decided.id, 0, "rejected", "ann", "It does say so.")
            assert await ids(Wanted("open")) == all_[1:]
            for state in ("decided", "rejected"):
                assert await ids(Wanted(state)) == all_[:1]
            assert await ids(Wanted("confirmed")) == []
            page = await reviews.page(Wanted("any"), limit=3)
            rest = await reviews.page(Wanted("any"), page.after, limit=3)
            assert [(each.exchange, each.label) for each in (*page.items, *rest.items)] == all_
            assert rest.after is None

            of_answer = await reviews.answers(Wanted("any"), limit=1)
            older = await reviews.answers(Wanted("any"), of_answer.after, limit=1)
            assert [[(each.exchange, each.label) for each in one] for one in (*of_answer.items, *older.items)] == [
                [("gw-2", label) for label in BAD],
                [("gw-1", label) for label in BAD],
            ]
            assert older.after is None
            for wanted in (Wanted(), Wanted(model="small"), Wanted(flag="unsupported_claims"), Wanted("confirmed")):
                listed = [each for one in (await reviews.answers(wanted)).items for each in one]
                assert sorted((each.exchange, each.label) for each in listed) == sorted(await ids(wanted))

    reviews = None  # type: ignore[assignment]
    asyncio.run(work())


def test_a_decision_is_stored_with_author_and_time_and_may_be_changed(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            reviews = history.reviews
            await stored(history, entry("gw-1", labels=BAD))
            one, other = await reviews.of_exchange("gw-1")
            first = await reviews.decide(one.id, 0, "confirmed", "ann", "Wrong year.")
            assert first is not None
            assert first.version == 1
            changed = await reviews.decide(one.id, 1, "rejected", "bob", "Right after all.")
            assert changed == await reviews.get(one.id)
            made = await reviews.decisions(one.id)
            assert [(each.decision, each.who, each.note) for each in made] == [
                ("confirmed", "ann", "Wrong year."),
                ("rejected", "bob", "Right after all."),
            ]
            assert made[0].at <= made[1].at
            assert await reviews.get(other.id) == other
            assert await reviews.decide(99, 0, "confirmed", "ann") is None

    asyncio.run(work())


def test_the_second_of_two_reviewers_gets_the_decision_of_the_first(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            reviews = history.reviews
            await stored(history, entry("gw-1", labels=("contradicted",)))
            (finding,) = await reviews.of_exchange("gw-1")
            both = await asyncio.gather(
                reviews.decide(finding.id, 0, "confirmed", "ann", "Yes."),
                reviews.decide(finding.id, 0, "rejected", "bob", "No."),
                return_exceptions=True,
            )
            (conflict,) = [each for each in both if isinstance(each, ReviewConflict)]
            found = await reviews.get(finding.id)
            assert found is not None
            assert found.decided is not None
            assert (conflict.decision, conflict.who, conflict.note, conflict.at, conflict.version) == (
                found.decided.decision,
                found.decided.who,
                found.decided.note,
                found.decided.at,
                1,
            )
            assert len(await reviews.decisions(finding.id)) == 1

    asyncio.run(work())


def test_decisions_make_the_precision_of_each_flag_and_verifier(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            reviews = history.reviews
            await stored(
                history, *(entry(f"gw-{n}", labels=BAD) for n in range(4)), entry("gw-9", flags=("high_risk",))
            )
            for finding in (await reviews.page(Wanted())).items:
                right = finding.label == "contradicted" and finding.exchange != "gw-0"
                if finding.exchange != "gw-3":
                    await reviews.decide(finding.id, 0, "confirmed" if right else "rejected", "ann")
            assert await reviews.precision() == (
                Precision("contradicted_claims", "statement", 2, 1),
                Precision("unsupported_claims", "statement", 0, 3),
                Precision("high_risk", "", 0, 1),
            )
            assert await reviews.precision(since=4e9) == ()

    asyncio.run(work())


def test_every_decision_is_exported(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            reviews = history.reviews
            await stored(history, *(entry(f"gw-{n}", labels=BAD) for n in range(3)))
            decided = [
                await reviews.decide(each.id, 0, "confirmed", "ann") for each in await reviews.of_exchange("gw-1")
            ]
            exported = [each async for each in reviews.export()]
            assert exported == list(reversed(decided))
            assert len([each async for each in reviews.export(Wanted("any"))]) == 6

    asyncio.run(work())


@given(st.integers(0, 500), st.integers(0, 500))
def test_a_precision_lies_in_its_interval(confirmed: int, rejected: int) -> None:
    found = Precision("f", "v", confirmed, rejected)
    if confirmed + rejected:
        low, high = found.ratio.interval
        assert 0 <= low <= found.ratio.value + 1e-9
        assert found.ratio.value - 1e-9 <= high <= 1
        more = replace(found, confirmed=confirmed * 10, rejected=rejected * 10)
        assert more.ratio.interval[1] - more.ratio.interval[0] <= high - low


def test_any_claim_is_decided_on_once_and_later_decisions_follow_it(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            told = entry("gw-1", labels=("supported", "contradicted", "supported"), subject="acme")
            await stored(history, told)
            whole = await history.exchanges.get("gw-1")
            assert whole is not None
            reviews, claims = history.reviews, [each.claim.id for each in told.report.choices[0].judgements]
            missed = await reviews.decide_on_claim(whole, 0, claims[0], 0, "rejected", "ann", "It earned nothing.")
            assert missed is not None
            assert (missed.text, missed.start, missed.end, missed.label) == ("Acme", 0, 4, "supported")
            assert (missed.flags, missed.verifier, missed.is_wrong) == ((), "statement", True)
            assert (missed.citations[0].source, missed.subject) == ("m0", "acme")
            with pytest.raises(ReviewConflict) as conflict:
                await reviews.decide_on_claim(whole, 0, claims[0], 0, "confirmed", "ben")
            assert conflict.value.who == "ann"
            again = await reviews.decide_on_claim(whole, 0, claims[0], 1, "confirmed", "ben")
            assert again is not None
            assert (again.id, again.version, again.is_wrong) == (missed.id, 2, False)
            flagged = await reviews.decide_on_claim(whole, 0, claims[1], 0, "confirmed", "ann")
            assert flagged is not None
            assert flagged.flags == ("contradicted_claims",)
            assert await reviews.decide_on_claim(whole, 0, "c99", 0, "confirmed", "ann") is None
            assert len(await reviews.of_exchange("gw-1")) == 2

    asyncio.run(work())


def test_of_reviewers_who_decide_on_a_claim_at_once_one_is_first(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            await stored(history, entry("gw-1"))
            whole = await history.exchanges.get("gw-1")
            assert whole is not None
            results = await asyncio.gather(
                *(
                    history.reviews.decide_on_claim(whole, 0, "c0", 0, "confirmed", who)
                    for who in ("ann", "ben", "eve")
                ),
                return_exceptions=True,
            )
            assert sorted(type(each).__name__ for each in results) == ["Finding", "ReviewConflict", "ReviewConflict"]
            assert len(await history.reviews.of_exchange("gw-1")) == 1

    asyncio.run(work())


def test_recall_counts_what_was_missed_and_agreement_what_two_have_decided_on(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            reviews, labels = history.reviews, ("supported", "contradicted", "supported", "unsupported")
            await stored(history, entry("gw-1", labels=labels))
            whole = await history.exchanges.get("gw-1")
            assert whole is not None
            claims = [claim["id"] for claim in whole.report["choices"][0]["claims"]]
            assert await reviews.agreement() is None
            for claim, decision in zip(claims, ("rejected", "confirmed", "confirmed", "rejected"), strict=True):
                await reviews.decide_on_claim(whole, 0, claim, 0, decision, "ann")  # type: ignore[arg-type]
            (found,) = await reviews.accuracy()
            assert found == Accuracy("statement", flagged_wrong=1, flagged_right=1, passed_wrong=1, passed_right=1)
            assert (found.precision, found.recall) == (Ratio(1, 2), Ratio(1, 2))
            assert await reviews.accuracy(since=4e9) == ()
            await reviews.decide_on_claim(whole, 0, claims[0], 1, "rejected", "ben")
            await reviews.decide_on_claim(whole, 0, claims[1], 1, "rejected", "ben")
            await reviews.decide_on_claim(whole, 0, claims[2], 1, "rejected", "ann")  # ann changes her own mind
            assert await reviews.agreement() == Ratio(1, 2)
            assert await reviews.agreement(since=4e9) is None

    asyncio.run(work())


def test_waiting_findings_are_counted(place: Database) -> None:
    async def work() -> None:
        async with opened(place) as history:
            await stored(history, entry("gw-1", labels=BAD), entry("gw-2", labels=BAD[:1]), entry("gw-3"))
            assert await history.reviews.open() == (3, 2)
            assert await history.reviews.open(limit=2) == (2, 2)
            numbers = {each.id: each.seq for each in (await history.exchanges.page(Query())).items}
            waiting = await history.reviews.waiting(list(numbers.values()))
            assert waiting == {numbers["gw-1"]: 2, numbers["gw-2"]: 1}

    asyncio.run(work())
