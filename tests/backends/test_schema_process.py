"""The process that validates answers against the schemas of clients: its limits, and its end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from groundwire.backends.schema_process import MAX_ANSWER_CHARS, MAX_SCHEMA_BYTES, SchemaProcess
from groundwire.verifiers.schema import SchemaResult
from tests.waiting import found_within

LONG = 30.0  # seconds; for a machine that is slow to start processes
NAMED = {"required": ["name"]}


def doubling(levels: int) -> dict[str, Any]:
    """Return a schema whose every level refers to the next one twice, so 2 to the power of `levels` steps."""
    levels_of = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**levels_of, f"d{levels}": {"type": "object"}}}


HOSTILE = {
    "twice as much per level": (doubling(60), "{}"),
    "every item with every value": (
        {"items": {"enum": [{"x": [n]} for n in range(10_000)]}},
        "[" + ",".join(['{"x": [9999]}'] * 20_000) + "]",
    ),
    "a large answer in a thousand rules": (
        {"allOf": [{"required": [f"z{n}"]} for n in range(5000)]},
        '{"a": [' + ",".join(['"xxxxxxxxxx"'] * 50_000) + "]}",
    ),
    "patterns of a megabyte each": (
        {"anyOf": [{"pattern": rf"^[\p{{L}}\d]{{1,20{n % 10}}}x{n}$"} for n in range(2000)]},
        '"' + "a" * 100 + '"',
    ),
}


def using(work: Callable[[SchemaProcess], Awaitable[Any]], **options: Any) -> Any:
    async def run() -> Any:
        process = SchemaProcess(**options)
        try:
            return await work(process)
        finally:
            await process.aclose()

    return asyncio.run(run())


def test_answers_are_validated_in_their_order() -> None:
    texts = ['{"name": 1}', '{"no": 1}', "no JSON"]
    found = using(lambda process: process.validate(texts, NAMED, LONG))
    assert [result.outcome for result in found] == ["valid", "invalid", "invalid"]
    assert [each.expected for each in found[1].violations] == ["required name"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_schema_that_asks_for_too_much_is_given_up(name: str) -> None:
    """The next one is validated as if nothing had happened."""
    schema, text = HOSTILE[name]

    async def work(process: SchemaProcess) -> list[SchemaResult]:
        hostile = await process.validate([text], schema, LONG)
        return hostile + await process.validate(["{}"], NAMED, LONG)

    hostile, next_ = using(work, cpu_seconds=0.2)
    if hostile.outcome == "not_checked":
        assert hostile.reason == "validating the answer against the JSON schema takes too long"
    else:  # it was found to be invalid, and only the list of reasons took too long
        assert (hostile.outcome, hostile.violations[0].expected) == ("invalid", "the JSON schema")
    assert next_.outcome == "invalid"


def test_all_choices_of_an_answer_together_take_no_longer_than_one() -> None:
    found = using(lambda process: process.validate(["{}"] * 100, doubling(60), LONG), cpu_seconds=0.1)
    assert [result.outcome for result in found] == ["not_checked"] * 100


def test_a_request_that_waits_too_long_is_refused_and_kills_nothing() -> None:
    async def work(process: SchemaProcess) -> tuple[SchemaResult, SchemaResult]:
        hostile = asyncio.create_task(process.validate(["{}"], doubling(60), LONG))
        await asyncio.sleep(0.05)
        (other,) = await process.validate(["{}"], NAMED, 0.05)
        (first,) = await hostile
        return first, other

    first, other = using(work, cpu_seconds=1.0)
    assert other.reason == "there was no time to validate the answer against the JSON schema"
    assert first.reason == "validating the answer against the JSON schema takes too long"


def test_a_request_that_is_given_up_ends_the_process() -> None:
    async def work(process: SchemaProcess) -> int:
        await process.validate(["{}"], {}, LONG)
        assert process._process is not None
        pid = process._process.pid
        asked = asyncio.create_task(process.validate(["{}"], doubling(60), LONG))
        await asyncio.sleep(0.1)
        asked.cancel()
        await asyncio.wait({asked})
        return pid

    assert not is_running(using(work, cpu_seconds=60.0))


def test_a_process_that_was_killed_is_started_again() -> None:
    async def work(process: SchemaProcess) -> list[SchemaResult]:
        await process.validate(["{}"], NAMED, LONG)
        assert process._process is not None
        os.kill(process._process.pid, signal.SIGKILL)
        await process._process.wait()
        return await process.validate(["{}"], NAMED, LONG)

    assert [result.outcome for result in using(work)] == ["invalid"]


def test_closing_ends_the_process() -> None:
    async def work(process: SchemaProcess) -> int:
        await process.validate(["{}"], NAMED, LONG)
        assert process._process is not None
        return process._process.pid

    assert not is_running(using(work))


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_the_process_is_given_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-planted")

    async def work(process: SchemaProcess) -> bytes:
        await process.validate(["{}"], NAMED, LONG)
        assert process._process is not None
        return await asyncio.to_thread(Path(f"/proc/{process._process.pid}/environ").read_bytes)

    assert b"sk-planted" not in using(work)


@pytest.mark.parametrize(
    ("schema", "text", "reason"),
    [
        pytest.param({"enum": ["x" * MAX_SCHEMA_BYTES]}, "1", "larger than 256 KiB", id="schema"),
        pytest.param({}, '"' + "x" * MAX_ANSWER_CHARS + '"', "too long to be validated", id="answer"),
    ],
)
def test_a_schema_or_answer_that_is_too_large_is_not_checked(schema: dict[str, Any], text: str, reason: str) -> None:
    (result,) = using(lambda process: process.validate([text], schema, LONG))
    assert result.outcome == "not_checked"
    assert reason in result.reason


def test_without_a_process_nothing_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/no/such/python")
    (result,) = using(lambda process: process.validate(["{}"], NAMED, LONG))
    assert result.reason == "the process that validates JSON schemas cannot be started"


def is_running(pid: int) -> bool:
    """Return whether a process lives; wait a moment for one that is ending."""

    def gone() -> bool | None:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return None

    try:
        return not found_within(5, gone)
    except AssertionError:
        return True
