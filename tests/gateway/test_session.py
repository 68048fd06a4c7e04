"""One exchange verified in pieces and before its end, with failures at any point."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from groundwire.domain import Choice, Claim, Exchange, Message, Part, Source, Verdict
from groundwire.evidence.index import Context
from groundwire.judge import VERIFIERS
from groundwire.pipeline import claim_key, policy_digest
from groundwire.policy import Policy, Thresholds
from groundwire.report import Report
from groundwire.scoring.aggregate import FLAGS
from tests.gateway.exchanges import (
    ANSWER,
    FACTS,
    answered,
    begin,
    choice,
    essence,
    exchange,
    grounding_in,
    house,
    labels,
    reported,
    said,
    service,
    whole,
)

ONLY_STATEMENTS = Policy(verifiers=("statement",))


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


def judged(
    parts: Any, *choices: Choice, said: Exchange | None = None, policy: Policy = Policy(), **options: Any
) -> Report:
    async def work() -> Report:
        return await reported(begin(parts, (lambda: said) if said else None, policy), *choices, **options)

    report: Report = run(work())
    return report


def test_an_answer_is_judged_against_its_request() -> None:
    report = judged(service())
    assert labels(report) == ["supported", "contradicted", "supported", "contradicted", "unsupported", "not_checked"]
    assert (report.status, report.verdict, report.score) == ("complete", "partially_grounded", 2 / 5)
    assert set(report.flags) <= set(FLAGS)
    assert [name for name, _ in report.timing_ms] == ["context", "claims", "verify", "total"]
    assert report.id.startswith("gw-")


def test_every_session_has_its_own_id() -> None:
    async def work() -> set[str]:
        parts = service()
        return {begin(parts).id for _ in range(50)}

    assert len(run(work())) == 50


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_request_that_cannot_be_read_fails_the_report_and_nothing_else() -> None:
    def load() -> Exchange:
        raise ValueError("the walrus factory")

    async def work() -> Report:
        return await reported(begin(service(), load))

    with capture_logs() as logs:
        report = run(work())
    assert (report.status, report.verdict, report.score) == ("failed", "not_checked", None)
    assert report.degraded == (("all", "error"),)
    assert report.flags == ("verifier_degraded",)
    assert "walrus" not in str(report)
    assert [entry["event"] for entry in logs] == ["verification.failed", "grounding.report"]


@pytest.mark.parametrize("broken", ["quote", "numeric", "statement"])
def test_a_verifier_that_raises_has_not_checked_and_the_others_go_on(broken: str) -> None:
    def raises(claim: Claim, context: Context, policy: Policy) -> Verdict:
        raise ZeroDivisionError("the walrus factory")

    verifiers = tuple((name, verify) for name, verify in VERIFIERS if name != broken)
    verifiers = (*verifiers, (broken, raises))
    report = judged(service(verifiers=verifiers), choice(ANSWER + " He said “the walrus has never flown at all”."))
    assert (broken, "error") in report.degraded
    assert "verifier_degraded" in report.flags
    assert "walrus factory" not in str(report)
    others = {name for name, _ in VERIFIERS} - {broken}
    heard = {verdict.verifier for each in report.choices for j in each.judgements for verdict in j.verdicts}
    assert others <= heard
    assert report.status == "partial"


def test_claims_after_the_time_limit_are_not_checked_and_the_rest_is_valid() -> None:
    now = 0.0

    def slow(claim: Claim, context: Context, policy: Policy) -> Verdict:
        nonlocal now
        now += 0.01
        return said()(claim, context, policy)  # type: ignore[return-value]

    answer = choice(" ".join(f"The walrus number {at} lives in Oslo." for at in range(60)))
    parts = service(timeout=0.105, verifiers=[("statement", slow)], clock=lambda: now)
    report = judged(parts, answer, policy=ONLY_STATEMENTS)
    assert labels(report) == ["supported"] * 11 + ["not_checked"] * 49
    late = report.choices[0].judgements[-1].verdict
    assert (late.method, late.score) == ("timeout", 0.0)
    assert (report.status, report.verdict, report.score) == ("partial", "grounded", 1.0)
    assert ("all", "timeout") in report.degraded
    assert report.coverage
    assert (report.coverage.claims_checked, report.coverage.claims_total) == (11, 60)


def test_a_context_that_is_not_read_in_time_makes_no_claim_unsupported() -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 0.2
        return now

    filler = "\n".join(f"The gardener number {at} planted roses." for at in range(2000))
    long = Exchange(sources=(Source("s", "source", f"The walrus lives in Oslo.\n{filler}\nThe seal lives in Rome."),))
    answer = choice("The walrus lives in Oslo. In Rome lives the seal. The tiger lives in Delhi.")
    with_time = judged(service(timeout=1e9, clock=clock), answer, said=long)
    assert labels(with_time) == ["supported", "supported", "unsupported"]
    without = judged(service(timeout=2.5, clock=clock), answer, said=long)
    assert labels(without) == ["supported", "not_checked", "not_checked"]
    assert without.coverage
    assert without.coverage.context_examined < 1
    assert without.status == "partial"


def test_overload_before_anything_could_be_read_skips_the_check() -> None:
    async def work() -> Report:
        parts, gate = service(queue=1), threading.Event()
        busy = asyncio.create_task(parts.workers.run(gate.wait, 60))
        await asyncio.sleep(0)
        report = await reported(begin(parts))
        gate.set()
        await busy
        return report

    report = run(work())
    assert (report.status, report.verdict, report.score) == ("skipped", "not_checked", None)
    assert report.degraded == (("all", "overload"),)
    assert report.flags == ("verifier_degraded",)


def test_a_check_skipped_for_overload_is_freed_without_the_garbage_collector() -> None:
    async def work() -> list[object]:
        parts, gate = service(queue=1), threading.Event()
        busy = asyncio.create_task(parts.workers.run(gate.wait, 60))
        await asyncio.sleep(0)
        session = begin(parts)
        assert (await reported(session)).status == "skipped"
        seen = weakref.ref(session)
        del session
        await asyncio.sleep(0)
        left = seen()
        gate.set()
        await busy
        return [left]

    gc.disable()
    try:
        assert run(work()) == [None]
    finally:
        gc.enable()


def test_overload_in_the_middle_leaves_claims_unchecked() -> None:
    """The queue fills up while the first claims are judged."""

    async def work() -> Report:
        loop, gate, filled = asyncio.get_running_loop(), threading.Event(), threading.Event()
        insisting: list[asyncio.Task[Any]] = []

        def fill() -> None:
            insisting.append(asyncio.create_task(parts.workers.insist(gate.wait, 60)))
            filled.set()

        def filling(claim: Claim, context: Context, policy: Policy) -> Verdict:
            if not filled.is_set():
                loop.call_soon_threadsafe(fill)
                filled.wait(60)
            return said()(claim, context, policy)  # type: ignore[return-value]

        parts = service(queue=1, verifiers=[("statement", filling)])
        session = begin(parts, policy=ONLY_STATEMENTS)
        await session.look_ahead([])  # until its evidence is prepared, and the queue empty again
        loop.call_later(0.5, gate.set)
        answer = choice(" ".join(f"The walrus number {at} lives in Oslo." for at in range(100)))
        report = await reported(session, answer)
        await asyncio.gather(*insisting)
        return report

    report = run(work())
    assert labels(report) == ["supported"] * 64 + ["not_checked"] * 36
    assert report.choices[0].judgements[-1].verdict.method == "overload"
    assert report.status == "partial"
    assert report.score == 1.0


def test_nothing_to_check_against_is_skipped() -> None:
    report = judged(service(), said=Exchange())
    assert (report.status, report.verdict, report.score) == ("skipped", "not_checked", None)


@pytest.mark.parametrize("cut_short", [False, True])
def test_an_answer_that_broke_off_is_partial(cut_short: bool) -> None:
    report = judged(service(), choice(ANSWER, None), cut_short=cut_short)
    assert (report.status == "partial") is cut_short


def test_an_answer_of_nothing_is_not_applicable() -> None:
    report = judged(service(), choice(""))
    assert (report.verdict, report.score, labels(report)) == ("not_applicable", None, [])


def test_cancelling_ends_what_is_queued() -> None:
    async def work() -> int:
        parts, gate = service(), threading.Event()
        busy = asyncio.create_task(parts.workers.run(gate.wait, 60))
        await asyncio.sleep(0)
        loaded = []
        session = begin(parts, lambda: loaded.append(1) or exchange())  # type: ignore[func-returns-value]
        await asyncio.sleep(0)
        session.abandon()
        for _ in range(5):
            await asyncio.sleep(0)  # a cancellation reaches the queue by way of the loop
        gate.set()
        await busy
        with pytest.raises(asyncio.CancelledError):
            await reported(session)
        return len(loaded)

    assert run(work()) == 0


# --- looking ahead ----------------------------------------------------------------------------------------------------

SENTENCES = st.lists(
    st.sampled_from(
        [
            "The sky is blue on a clear day. ",
            "Acme earned $4.2 million in 2023. ",
            "Acme earned $9 million ",
            "and the committee approved the budget. ",
            "It stands in Paris. ",
            "Dr. Lee leads the team. ",
            "He said “the committee approved the budget” again. ",
            "\n- Acme is large\n- Acme is blue\n",
            "\n| Name | Year |\n|---|---|\n| Eiffel Tower | 1889 |\n",
            "\n```\ncode = 1\n```\n",
            '{"a": "The sky is blue."',
            "Is it so? ",
            "1889",
            ".5 ",
            "not ",
        ]
    ),
    max_size=12,
).map("".join)


@settings(max_examples=60)
@given(SENTENCES, st.lists(st.floats(0, 1), max_size=4))
def test_looking_ahead_changes_no_report(answer: str, cuts: list[float]) -> None:
    async def ahead() -> tuple[Report, Report]:
        warmed, cold = service(), service()
        session = begin(warmed)
        for cut in sorted(cuts):
            await session.look_ahead([choice(answer[: int(cut * len(answer))], None)])
        reports = await reported(session, choice(answer)), await reported(begin(cold), choice(answer))
        warmed.workers.close()
        cold.workers.close()
        return reports

    warm, cold = run(ahead())
    assert essence(warm) == essence(cold)


def test_looking_ahead_leaves_little_for_the_end() -> None:
    asked: list[str] = []

    def noting(claim: Claim, context: Context, policy: Policy) -> Verdict:
        asked.append(claim.text)
        return said()(claim, context, policy)  # type: ignore[return-value]

    async def work() -> None:
        session = begin(service(verifiers=[("statement", noting)]), policy=ONLY_STATEMENTS)
        await session.look_ahead([choice(ANSWER[:200], None)])
        before = len(asked)
        assert before >= 4
        report = await reported(session)
        assert sorted(asked) == sorted(set(asked))
        assert len(asked) == sum(label == "supported" for label in labels(report))

    run(work())


def test_a_verdict_that_looking_ahead_could_not_give_is_tried_again() -> None:
    async def work() -> None:
        clock = iter([0.0] * 4 + [100.0] * 100)
        parts = service(timeout=1, verifiers=[("statement", said())], clock=lambda: next(clock, 100.0))
        session = begin(parts, policy=ONLY_STATEMENTS)
        await session.look_ahead([choice(ANSWER, None)])
        assert "not_checked" not in labels(await reported(session))[:5]

    run(work())


# --- the cache --------------------------------------------------------------------------------------------------------


def test_a_second_exchange_takes_its_verdicts_from_the_cache() -> None:
    async def work() -> tuple[Report, Report]:
        parts = service()
        return await reported(begin(parts)), await reported(begin(parts))

    first, second = run(work())
    assert (first.cache.hits, first.cache.misses) == (0, 5)
    assert (second.cache.hits, second.cache.misses) == (5, 0)
    assert second.cache.oldest_s is not None
    assert essence(first) == essence(second)


def test_two_exchanges_at_once_judge_each_claim_once() -> None:
    asked: list[str] = []

    def noting(claim: Claim, context: Context, policy: Policy) -> Verdict:
        asked.append(claim.text)
        return said()(claim, context, policy)  # type: ignore[return-value]

    async def work() -> list[Report]:
        parts = service(threads=2, verifiers=[("statement", noting)])
        return await asyncio.gather(*(reported(begin(parts, policy=ONLY_STATEMENTS)) for _ in range(3)))

    reports = run(work())
    assert len(asked) == len(set(asked)) == 5
    assert essence(reports[0]) == essence(reports[1]) == essence(reports[2])


def test_citations_from_the_cache_have_the_offsets_of_this_request() -> None:
    """The same evidence at another offset of a message is cited with that offset."""

    async def work() -> None:
        parts = service()
        for instruction in ("", "Please do answer very briefly now. ", "Use only the context below. "):
            message = instruction + FACTS
            report = await reported(begin(parts, lambda message=message: exchange(message)))
            cited = [c for each in report.choices for j in each.judgements for c in j.verdict.citations]
            assert cited
            assert [message[citation.start : citation.end] for citation in cited] == [c.text for c in cited]

    run(work())


def test_a_source_of_another_name_is_another_source() -> None:
    """The meaning of [7] depends on the labels of the sources."""

    def labelled(*names: str) -> Exchange:
        texts = ("The sky is blue.", "Grass is green.")
        found = (
            Source(f"s-{at}", "source", text, labels=(name,))
            for at, (name, text) in enumerate(zip(names, texts, strict=True))
        )
        return Exchange(sources=tuple(found))

    async def work() -> tuple[dict[str, Any], dict[str, Any]]:
        parts, answer = service(), choice("The sky is blue [7].")
        await reported(begin(parts, lambda: labelled("7", "8")), answer)
        second = await reported(begin(parts, lambda: labelled("3", "4")), answer)
        fresh = await reported(begin(service(), lambda: labelled("3", "4")), answer)
        return essence(second), essence(fresh)

    second, fresh = run(work())
    assert "unknown_citation" in fresh["flags"]
    assert second == fresh


CLAIM = Claim("c1", "The sky is blue.", 0, 16, lead="Look up.", cited=("1",))
OTHERS = {
    "text": Claim("c1", "The sky is blue!", 0, 16, lead="Look up.", cited=("1",)),
    "lead": Claim("c1", "The sky is blue.", 0, 16, lead="Look down.", cited=("1",)),
    "cited": Claim("c1", "The sky is blue.", 0, 16, lead="Look up.", cited=("2",)),
    "cited twice": Claim("c1", "The sky is blue.", 0, 16, lead="Look up.", cited=("1", "1")),
    "kind": Claim("c1", "The sky is blue.", 0, 16, kind="quote", lead="Look up.", cited=("1",)),
    "a citation in the lead": Claim("c1", "The sky is blue.", 0, 16, lead="Look up.\x1f1", cited=()),
}


@pytest.mark.parametrize("name", OTHERS)
def test_claims_that_may_be_judged_differently_have_different_keys(name: str) -> None:
    context = Context([])
    assert claim_key(OTHERS[name], context, "x") != claim_key(CLAIM, context, "x")


def test_the_position_of_a_claim_does_not_change_its_key() -> None:
    context = Context([])
    elsewhere = Claim("c9", CLAIM.text, 100, 116, lead=CLAIM.lead, cited=CLAIM.cited)
    assert claim_key(elsewhere, context, "x") == claim_key(CLAIM, context, "x")
    assert claim_key(CLAIM, context, "y") != claim_key(CLAIM, context, "x")


def test_every_setting_that_decides_has_a_digest_of_its_own() -> None:
    policies = [
        Policy(),
        Policy(name="strict"),
        Policy(verifiers=("quote",)),
        Policy(verify_hedged=True),
        Policy(thresholds=Thresholds(confidence=0.5)),
        Policy(source_weights=(("tool", 0.5),)),
    ]
    assert len({policy_digest(policy) for policy in policies}) == len(policies)
    assert policy_digest(Policy()) == policy_digest(Policy())


# --- the event loop ---------------------------------------------------------------------------------------------------


def test_nothing_that_runs_for_long_runs_on_the_event_loop() -> None:
    threads: set[str] = set()

    def noting(claim: Claim, context: Context, policy: Policy) -> Verdict:
        threads.add(threading.current_thread().name)
        return said()(claim, context, policy)  # type: ignore[return-value]

    def load() -> Exchange:
        threads.add(threading.current_thread().name)
        return exchange()

    async def work(choices: Sequence[Choice]) -> None:
        parts = service(verifiers=[("statement", noting)])
        session = begin(parts, load, ONLY_STATEMENTS)
        await session.look_ahead(choices)
        await reported(session, *choices)

    run(work([choice()]))
    assert threads
    assert all(name.startswith("groundwire-verify") for name in threads)


def test_a_bare_number_is_read_with_the_question_of_its_request() -> None:
    text = "Revenue: 2019 was $1,496.5 million and 2018 was $1,202.9 million."
    asked = "What was the percentage change in revenue from 2018 to 2019?"
    messages = (Message(0, "system", (Part(text),)), Message(1, "user", (Part(asked),)))
    assert judged(service(), choice("24.41 percent"), said=Exchange(messages=messages)).verdict == "grounded"


def test_documents_come_back_with_the_names_of_the_prompt_and_reasons_use_them() -> None:
    prompt = (
        '<document id="leaflet.md">The tablet contains zinc.</document>\n'
        '<document id="faq" url="https://x.org/faq">The product was launched in Oslo.</document>\nHow many tablets?'
    )

    async def work() -> dict[str, Any]:
        serving = house(whole("The tablet contains zinc. The product was launched in Oslo."))
        _, raw = await answered(serving, {"model": "m", "messages": [{"role": "user", "content": prompt}]})
        await serving.close()
        return grounding_in(raw)

    found = asyncio.run(work())
    names = [
        (each["id"], each.get("label"), each.get("url")) for each in found["sources"] if each["kind"] == "document"
    ]
    assert names == [("m0.d1", "leaflet.md", None), ("m0.d2", "faq", "https://x.org/faq")]
    first, second = found["choices"][0]["claims"]
    assert "leaflet.md" in first["reason"]
    assert "faq" in second["reason"]
    assert [each["citations"][0]["source"] for each in (first, second)] == ["m0.d1", "m0.d2"]
