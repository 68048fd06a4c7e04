"""A killed process loses at most the exchanges not written yet, and the written ones are whole."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from groundwire.storage.history.exchange import Query
from groundwire.storage.history.history import History
from groundwire.storage.history.reviews import Wanted
from tests.servers.databases import Database
from tests.storage.history.entries import entry, opened, stored

HERE = Path(__file__).parent


@contextmanager
def recorder(place: Database, interval: float, count: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(HERE / "recorder.py"), place.url, place.schema, str(interval), str(count)]
    environ = {**os.environ, "PYTHONPATH": str(HERE.parents[2])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        try:
            yield process
        finally:
            process.kill()


def progress(process: subprocess.Popen[str]) -> Iterator[tuple[int, int]]:
    """Yield the counts of recorded and written exchanges that the process prints."""
    assert process.stdout
    for line in process.stdout:
        if line[0].isdigit():
            recorded, written = map(int, line.split())
            yield recorded, written


async def all_ids(history: History) -> list[str]:
    found: list[str] = []
    after = None
    while True:
        page = await history.exchanges.page(Query(), after, 200)
        found += [each.id for each in page.items]
        if (after := page.after) is None:
            return found


@pytest.mark.parametrize("goal", [50, 400], ids=["soon", "later"])
def test_a_killed_process_loses_only_what_it_had_not_written(place: Database, goal: int) -> None:
    with recorder(place, 0.02, 100_000) as process:
        said = next(written for _, written in progress(process) if written >= goal)
        process.send_signal(signal.SIGKILL)
        process.wait()

    async def work() -> None:
        async with opened(place) as history:
            await stored(history, entry("after", labels=("contradicted",)))
            found = await all_ids(history)
            assert found[0] == "after"
            assert found[1:] == [f"gw-{n}" for n in reversed(range(len(found) - 1))]
            assert said <= len(found) - 1
            flagged = await history.exchanges.page(Query(flag="contradicted_claims"), limit=len(found) + 1)
            assert [each.id for each in flagged.items] == found
            assert None not in [await history.exchanges.get(each.id) for each in flagged.items]
            assert len((await history.reviews.page(Wanted(), limit=len(found) + 1)).items) == len(found)

    asyncio.run(work())


def test_a_killed_process_loses_no_more_than_one_interval(place: Database) -> None:
    with recorder(place, 0.2, 30) as process:
        next(written for _, written in progress(process) if written == 30)
        process.send_signal(signal.SIGKILL)
        process.wait()

    async def work() -> None:
        async with opened(place) as history:
            await stored(history, entry("after"))
            assert len(await all_ids(history)) == 31

    asyncio.run(work())
