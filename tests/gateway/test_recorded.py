"""The report is stored with its answer and can be retrieved; without a store nothing changes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from groundwire.container import Container
from groundwire.errors import StoreUnavailable
from groundwire.storage.history.exchange import Query, Stored
from tests.gateway.exchanges import ANSWER, FACTS, answered, asked, events, grounding_in, house, streaming, whole


def store(folder: Path, **more: Any) -> dict[str, Any]:
    return {"url": f"sqlite:///{folder}/history.db", "interval": "0s", **more}


async def stored(serving: Container, id_: str) -> Stored:
    """Wait for the stored record of an exchange."""
    assert serving.history is not None
    for _ in range(6000):
        await serving.history.writer.flush()
        try:
            if found := await serving.history.exchanges.get(id_):
                return found
        except StoreUnavailable:
            pass
        await asyncio.sleep(0.01)
    raise AssertionError(f"{id_} was not stored")


def one_exchange(serving: Container, **request: Any) -> tuple[dict[str, Any], Stored]:
    """The grounding of an answer, and its stored record."""

    async def work() -> tuple[dict[str, Any], Stored]:
        await serving.start()
        _, raw = await answered(serving, asked(**request))
        grounding = grounding_in(raw)
        found = await stored(serving, grounding["id"])
        await serving.close()
        return grounding, found

    return asyncio.run(work())


@pytest.mark.parametrize("model", [whole(), streaming(events([ANSWER[:50], ANSWER[50:]]))], ids=["body", "stream"])
def test_an_answer_is_stored_with_its_report_question_and_sources(tmp_path: Path, model: Any) -> None:
    options = {"subject": "acme", "session": "s-1"}
    grounding, found = one_exchange(house(model, store=store(tmp_path)), grounding=options)
    assert found.report == grounding
    summary = found.summary
    assert (summary.subject, summary.session, summary.model) == ("acme", "s-1", "m-1")
    assert (summary.question, summary.answer) == ("What do you know?", ANSWER)
    assert summary.quality == pytest.approx(grounding["quality"], abs=1e-4)
    assert [choice.text for choice in found.choices] == [ANSWER]
    for source in found.sources:
        assert FACTS[source.offset : source.offset + len(source.text)] == source.text


def test_the_tokens_and_the_time_of_the_model_server_are_stored(tmp_path: Path) -> None:
    _, found = one_exchange(house(whole(), store=store(tmp_path)))
    assert (found.summary.input_tokens, found.summary.output_tokens) == (9, 5)
    assert found.summary.upstream_ms is not None
    (tmp_path / "huge").mkdir()
    model = whole(usage={"prompt_tokens": 10**30, "completion_tokens": None})
    _, found = one_exchange(house(model, store=store(tmp_path / "huge")))
    assert (found.summary.input_tokens, found.summary.output_tokens) == (2**31 - 1, None)


MESSAGE = "I am in Berlin.\n\nMy plan is Pro. How many days do I have to return it? Please be brief."


def messages(*contents: Any) -> list[dict[str, Any]]:
    """Messages of the user after a system prompt, an earlier turn between each two."""
    turns = [{"role": "system", "content": FACTS}]
    for content in contents:
        turns += [{"role": "user", "content": content}, {"role": "assistant", "content": "Hm."}]
    return turns[:-1]


@pytest.mark.parametrize(
    "content",
    [MESSAGE, [{"type": "text", "text": MESSAGE[:15]}, {"type": "text", "text": MESSAGE[17:]}]],
    ids=["text", "parts"],
)
def test_the_whole_last_message_of_the_user_is_stored_with_its_intent(tmp_path: Path, content: Any) -> None:
    _, found = one_exchange(house(whole(), store=store(tmp_path)), messages=messages("Hello there.", content))
    assert found.summary.question == MESSAGE
    assert (found.summary.asked, found.summary.intent) == ("How many days do I have to return it?", "count")
    assert [(each.role, each.text) for each in found.prompt] == [
        ("system", FACTS), ("user", "Hello there."), ("assistant", "Hm."), ("user", MESSAGE)
    ]  # fmt: skip


def test_a_long_question_is_stored_without_its_middle(tmp_path: Path) -> None:
    long = "Here is my story. " + "It goes on. " * 5000 + "Why was it cancelled?"
    _, found = one_exchange(house(whole(), store=store(tmp_path)), messages=messages(*[long] * 9))
    question = found.summary.question or ""
    assert len(question) <= 8000
    assert question.startswith("Here is my story.")
    assert question.endswith("Why was it cancelled?")
    assert found.summary.intent == "why"
    assert sum(len(each.text) for each in found.prompt) <= 64_000
    assert found.prompt[-1].text.endswith("Why was it cancelled?")


def test_without_content_neither_question_nor_prompt_is_stored(tmp_path: Path) -> None:
    _, found = one_exchange(house(whole(), store=store(tmp_path, content="hashes")), messages=messages(MESSAGE))
    assert (found.summary.question, found.summary.asked, found.prompt) == (None, None, ())
    assert found.summary.intent == "count"


def test_a_citation_points_into_the_source_that_is_stored(tmp_path: Path) -> None:
    _, found = one_exchange(house(whole(), store=store(tmp_path)))
    sources = {source.id: source for source in found.sources}
    cited = [each for claim in found.report["choices"][0]["claims"] for each in claim["citations"]]
    assert cited
    for each in cited:
        source = sources[each["source"]]
        assert source.text[each["start"] - source.offset : each["end"] - source.offset] == each["text"]


def test_a_report_is_found_in_the_store_by_a_process_that_did_not_make_it(tmp_path: Path) -> None:
    grounding, _ = one_exchange(house(whole(), store=store(tmp_path)))

    async def work() -> None:
        other = house(whole(), store=store(tmp_path))
        await other.start()
        await stored(other, grounding["id"])
        found = await other.find_report(grounding["id"])
        assert found is not None
        assert json.loads(found) == grounding
        assert await other.find_report("gw-none") is None
        await other.close()

    asyncio.run(work())


def test_a_store_that_is_down_changes_no_answer_and_is_reported(tmp_path: Path) -> None:
    nowhere = {"url": f"sqlite:///{tmp_path}/none/history.db", "interval": "0s"}

    async def work() -> None:
        serving = house(whole(), store=nowhere)
        await serving.start()
        reply, raw = await answered(serving, asked())
        assert reply.status == 200
        assert grounding_in(raw)["status"] == "complete"
        for _ in range(500):
            if serving.degraded() and "1 exchanges wait" in serving.degraded()[0][1]:
                break
            await asyncio.sleep(0.01)
        assert serving.degraded() == (("store", "unavailable; 1 exchanges wait, 0 are lost"),)
        with pytest.raises(StoreUnavailable):
            await serving.find_report("gw-other")
        assert await serving.find_report(grounding_in(raw)["id"]) is not None
        await serving.close()

    with capture_logs() as logs:
        asyncio.run(work())
    assert [each["reason"] for each in logs if each["event"] == "history.lost"] == ["the process ends"]


def test_samples_that_come_late_complete_what_is_stored(tmp_path: Path) -> None:
    async def work() -> None:
        serving = house(whole(), store=store(tmp_path), sampling={"enabled": True})
        await serving.start()
        _, raw = await answered(serving, asked(grounding={"samples": 3}))
        for _ in range(6000):
            found = await stored(serving, grounding_in(raw)["id"])
            if found.report["self_consistency"]["status"] != "pending":
                break
            await asyncio.sleep(0.01)
        assert found.report["self_consistency"]["status"] == "complete"
        assert serving.history is not None
        assert len((await serving.history.exchanges.page(Query())).items) == 1
        await serving.close()

    asyncio.run(work())


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        ({"subject": "acme"}, ["subject"]),
        ({"subject": "acme", "session": "s"}, ["subject", "session"]),
        ({"session": "s"}, ["session"]),
        ({}, []),
    ],
    ids=["subject", "both", "session", "none"],
)
def test_a_subject_or_session_without_a_store_gives_a_warning(
    tmp_path: Path, options: dict[str, str], warned: list[str]
) -> None:
    async def warnings(**sections: Any) -> list[str]:
        serving = house(whole(), **sections)
        await serving.start()
        _, raw = await answered(serving, asked(grounding=options))
        await serving.close()
        return [each.partition(":")[0] for each in grounding_in(raw)["warnings"] if "nothing is stored" in each]

    assert asyncio.run(warnings()) == warned
    assert asyncio.run(warnings(store=store(tmp_path))) == []


def test_nothing_of_a_passed_answer_is_stored(tmp_path: Path) -> None:
    async def work() -> None:
        serving = house(whole(), store=store(tmp_path), grounding={"enabled": False})
        await serving.start()
        await answered(serving, asked())
        assert serving.history is not None
        await serving.history.writer.flush()
        assert serving.history.writer.written == serving.history.writer.waiting == 0
        await serving.close()

    asyncio.run(work())
