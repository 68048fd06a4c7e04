"""Recording never blocks anything; losses are counted, and recording goes on after an outage."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url
from structlog.testing import capture_logs

from groundwire.domain import Choice
from groundwire.errors import StoreUnavailable
from groundwire.storage.history.exchange import Query
from groundwire.storage.history.history import History
from tests.servers.databases import SERVER, Database, postgresql, sqlite
from tests.storage.history.entries import entry, opened, stored

WITHIN_S = 60.0
SECRET = "the patient is Mrs. Miller"


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {WITHIN_S} s"
        await asyncio.sleep(0.02)


async def ids(history: History) -> list[str]:
    return [each.id for each in (await history.exchanges.page(Query())).items]


def test_many_exchanges_are_written_in_the_order_in_which_they_came(place: Database) -> None:
    async def work() -> None:
        async with opened(place, batch=7) as history:
            await stored(history, *(entry(f"gw-{n}") for n in range(30)))
            assert await ids(history) == [f"gw-{n}" for n in reversed(range(30))]
            assert history.writer.written == 30
            assert history.degraded() is None

    asyncio.run(work())


def test_an_exchange_is_written_after_the_interval_without_a_flush(tmp_path: Path) -> None:
    async def work(place: Database) -> None:
        async with opened(place, interval=0.05) as history:
            history.record(entry("gw-1"))
            await until(lambda: history.writer.written == 1)
            history.record(entry("gw-2"))
            await until(lambda: history.writer.written == 2)

    with sqlite(tmp_path) as place:
        asyncio.run(work(place))


def test_queued_exchanges_are_written_before_the_history_closes(place: Database) -> None:
    async def work() -> None:
        async with opened(place, interval=60.0) as history:
            history.record(entry("gw-1"))
        async with opened(place) as history:
            await history.writer.flush()
            await until(lambda: not history.writer.is_down)
            assert await ids(history) == ["gw-1"]

    asyncio.run(work())


def test_a_full_queue_loses_what_comes_and_counts_it(tmp_path: Path) -> None:
    async def work(place: Database) -> None:
        async with opened(place, interval=60.0, batch=100, queue=5) as history:
            for n in range(12):
                history.record(entry(f"gw-{n}"))
            assert (history.writer.waiting, history.writer.lost) == (5, 7)
            assert history.degraded() == "7 exchanges are lost"
            await history.writer.flush()
            assert await ids(history) == [f"gw-{n}" for n in reversed(range(5))]

    with sqlite(tmp_path) as place, capture_logs() as logs:
        asyncio.run(work(place))
    assert [each["count"] for each in logs if each["event"] == "history.lost"] == [1]


def test_a_queue_is_bounded_by_its_text_too(tmp_path: Path) -> None:
    async def work(place: Database) -> None:
        async with opened(place, interval=60.0, queue_size=100_000) as history:
            for n in range(4):
                history.record(entry(f"gw-{n}", question="x" * 40_000))
            assert (history.writer.waiting, history.writer.lost) == (2, 2)

    with sqlite(tmp_path) as place:
        asyncio.run(work(place))


@pytest.mark.timeout(60)
def test_recording_takes_no_time_whatever_the_database_does(tmp_path: Path) -> None:
    """The worst database is one that accepts connections and never answers."""

    async def work(url: str) -> None:
        async with opened(Database(url), queue=100_000, timeout=0.2) as history:
            told = entry("gw-1")
            for _ in range(1000):  # 200 s, if each waited for the database
                history.record(told)
            await until(lambda: history.writer.is_down)

    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        asyncio.run(work(f"postgresql://127.0.0.1:{silent.getsockname()[1]}/test"))


def test_exchanges_wait_for_a_database_that_comes_up_later(tmp_path: Path) -> None:
    folder = tmp_path / "not yet"

    async def work() -> None:
        async with opened(Database(f"sqlite:///{folder}/history.db")) as history:
            history.record(entry("gw-1"))
            await until(lambda: history.writer.is_down)
            assert history.degraded() == "unavailable; 1 exchanges wait, 0 are lost"
            with pytest.raises(StoreUnavailable):
                await history.exchanges.get("gw-1")
            folder.mkdir()
            await until(lambda: not history.writer.waiting)
            assert history.degraded() is None
            assert await ids(history) == ["gw-1"]

    asyncio.run(work())


def test_recording_goes_on_after_the_server_has_cut_all_connections() -> None:
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"

    async def work(place: Database) -> None:
        named = Database(f"{place.url}?application_name={place.schema}", place.schema)
        async with opened(named) as history:
            await stored(history, entry("gw-1"))
            with psycopg.connect(SERVER, autocommit=True) as admin:
                assert admin.execute(cut, (place.schema,)).fetchall()
            await stored(history, entry("gw-2"))
            assert await ids(history) == ["gw-2", "gw-1"]

    with postgresql() as place:
        asyncio.run(work(place))


def test_recording_goes_on_after_the_disk_was_full(tmp_path: Path) -> None:
    """A limit on the size of files simulates the disk."""
    big = os.urandom(30_000).hex()

    async def work(place: Database) -> None:
        async with opened(place, batch=1, queue=10) as history:
            await stored(history, entry("gw-0"))
            with files_limited_to(1_000_000):
                for n in range(1, 30):
                    history.record(entry(f"gw-{n}", question=big))
                    await asyncio.sleep(0.01)
                await until(lambda: history.writer.is_down and history.writer.lost > 0)
                assert "unavailable" in (history.degraded() or "")
                assert "gw-0" in await ids(history)
            await until(lambda: not history.writer.waiting)
            assert not history.writer.is_down
            lost = history.writer.lost
            history.record(entry("gw-after"))
            await until(lambda: not history.writer.waiting)
            found = await ids(history)
            assert found[0] == "gw-after"
            assert len(found) == 31 - lost

    with sqlite(tmp_path) as place:
        asyncio.run(work(place))


@pytest.mark.parametrize("goes", ["the file", "its folder"])
def test_nothing_is_written_to_a_file_that_was_deleted(goes: str, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()

    async def work(place: Database) -> None:
        async with opened(place) as history:
            await stored(history, entry("gw-before"))
            if goes == "its folder":
                shutil.rmtree(folder)
            else:
                for each in folder.iterdir():
                    each.unlink()
            history.record(entry("gw-after"))
            await until(lambda: history.writer.is_down)
            assert history.degraded() == "unavailable; 1 exchanges wait, 0 are lost"
            folder.mkdir(exist_ok=True)
            await until(lambda: not history.writer.is_down and not history.writer.waiting)
            assert await ids(history) == ["gw-after"]

    with sqlite(folder) as place:
        asyncio.run(work(place))
        assert (folder / "jobs.db").exists()


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """Limit every file that this process writes to `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_one_exchange_that_the_database_refuses_takes_no_other_with_it(place: Database) -> None:
    """A number that no integer column holds represents any refused value."""
    odd = entry("gw-odd")
    odd = replace(odd, report=replace(odd.report, cache=replace(odd.report.cache, hits=2**70)))

    async def work() -> None:
        async with opened(place, interval=60.0) as history:
            for told in (entry("gw-1"), odd, entry("gw-2")):
                history.record(told)
            await history.writer.flush()
            assert await ids(history) == ["gw-2", "gw-1"]
            assert (history.writer.lost, history.writer.is_down) == (1, False)

    asyncio.run(work())


def test_one_exchange_that_cannot_be_made_rows_takes_no_other_with_it(tmp_path: Path) -> None:
    async def work(place: Database) -> None:
        async with opened(place) as history:
            for told in (entry("gw-1"), replace(entry("gw-odd"), kept=b"no JSON"), entry("gw-2")):
                history.record(told)
            await history.writer.flush()
            assert await ids(history) == ["gw-2", "gw-1"]
            assert history.writer.lost == 1

    with sqlite(tmp_path) as place:
        asyncio.run(work(place))


def test_no_log_line_holds_a_text_or_a_password(tmp_path: Path) -> None:
    async def work(place: Database) -> None:
        async with opened(place) as history:
            odd = replace(entry("gw-1", question=SECRET), choices=(Choice(0, SECRET),))
            history.record(replace(odd, report=replace(odd.report, cache=replace(odd.report.cache, hits=2**70))))
            await history.writer.flush()
        unreachable = make_url("postgresql://me:hunter2@127.0.0.1:1/none").render_as_string(hide_password=False)
        async with opened(Database(unreachable)) as history:
            history.record(odd)
            await until(lambda: history.writer.is_down)

    with sqlite(tmp_path) as place, capture_logs() as logs:
        asyncio.run(work(place))
    assert {"history.refused", "history.down", "history.lost"} <= {each["event"] for each in logs}
    assert SECRET not in str(logs)
    assert "hunter2" not in str(logs)


def test_a_flush_ends_while_others_keep_recording(tmp_path: Path) -> None:
    async def keep_recording(history: History) -> None:
        for n in range(1_000_000):
            history.record(entry(f"gw-later-{n}"))
            await asyncio.sleep(0)

    async def work(place: Database) -> None:
        async with opened(place, interval=60.0, queue=300) as history:
            history.record(entry("gw-1"))
            recording = asyncio.create_task(keep_recording(history))
            assert await history.flush()
            recording.cancel()
            assert await history.exchanges.get("gw-1")
            assert history.writer.waiting

    with sqlite(tmp_path) as place:
        asyncio.run(work(place))


def test_replicas_that_write_one_exchange_at_once_keep_its_final_report() -> None:
    async def work(place: Database) -> None:
        async with opened(place) as one, opened(place) as other:
            assert await one.flush()
            assert await other.flush()
            names = [f"gw-{n}" for n in range(30)]
            for name in names:
                one.record(entry(name, status="deferred"))
                other.record(entry(name))
                assert await asyncio.gather(one.flush(), other.flush()) == [True, True]
            found = (await one.exchanges.page(Query(), limit=100)).items
            assert {each.id: each.status for each in found} == dict.fromkeys(names, "complete")
            assert (one.writer.lost, other.writer.lost) == (0, 0)

    with postgresql() as place:
        asyncio.run(work(place))
