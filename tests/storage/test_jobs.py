"""Jobs are stored, retried and reported; a database that is down blocks nothing."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from groundwire.config.settings import Jobs as JobSettings
from groundwire.errors import JobsUnavailable, TryLater
from groundwire.storage.jobs import Jobs
from groundwire.storage.transact import Outcome, Work
from tests.servers.databases import SERVER, Database, postgresql, sqlite

SECRET = "the patient is Mrs. Miller"
WITHIN_S = 60.0


@asynccontextmanager
async def working(
    settings: JobSettings, run: Callable[[str, bytes], Awaitable[bytes]], sweep: float = 0.1, **options: float
) -> AsyncIterator[Jobs]:
    """Jobs of one kind, started."""
    work = Work("test", run, **{"initial_backoff": 0.05, **options})  # type: ignore[arg-type]
    jobs = Jobs(settings, [work], sweep=sweep)
    await jobs.start()
    try:
        yield jobs
    finally:
        await jobs.close()


def store(database: Database, **options: float) -> JobSettings:
    given = {"poll": 0.05, "drain": 1.0, **options}
    return JobSettings.model_validate({"url": database.url, "database_schema": database.schema, **given})


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not await condition():
        assert time.monotonic() < deadline, f"not within {WITHIN_S} s"
        await asyncio.sleep(0.05)


async def is_up(jobs: Jobs) -> bool:
    return not jobs.is_down


async def settled(jobs: Jobs, *ids: str) -> list[Outcome]:
    """Return the outcomes of these jobs once all are done or failed."""
    found: list[Outcome] = []

    async def look() -> bool:
        found[:] = [await jobs.result("test", id_) for id_ in ids]
        return all(each.state in ("done", "failed") for each in found)

    await until(look)
    return found


class Tasks:
    """Jobs that behave as their ids name; `attempts` has the id of each attempt, in the order of their starts."""

    def __init__(self) -> None:
        self.attempts: list[str] = []

    async def run(self, id_: str, payload: bytes) -> bytes:
        self.attempts.append(id_)
        if id_ == "poisoned":
            raise ValueError(SECRET)
        if id_ == "hanging":
            await asyncio.sleep(60)
        if id_ == "told when" and self.attempts.count(id_) == 1:
            raise TryLater("too many requests", after=0.5)
        if id_ == "never whole":
            raise TryLater("only half of it", so_far=b'"half"')
        return payload


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_jobs_come_to_what_they_come_to_and_none_waits_for_another(kind: str, tmp_path: Path) -> None:
    """One scenario, as a start takes a second: the poisoned and the hanging come first and block nothing."""
    tasks = Tasks()

    async def work(database: Database) -> dict[str, Outcome]:
        ids = ["poisoned", "hanging", "told when", "never whole", "easy"]
        options = {"attempts": 3, "timeout": 0.5, "at_once": 1, "max_backoff": 0.1}
        async with working(store(database), tasks.run, **options) as jobs:
            for id_ in ids:
                await jobs.defer("test", id_, f'{{"of": "{id_}", "odd": "\\u0000\\ud800"}}'.encode())
            await jobs.defer("test", "easy", b'"another payload"')
            found = dict(zip(ids, await settled(jobs, *ids), strict=True))
            await jobs.defer("test", "easy", b'"another payload"')
            return found | {"easy": (await settled(jobs, "easy"))[0], "unheard of": await jobs.result("test", "other")}

    with capture_logs() as logs, sqlite(tmp_path) if kind == "sqlite" else postgresql() as database:
        found = asyncio.run(work(database))

    assert found == {
        "easy": Outcome("done", b'{"of": "easy", "odd": "\\u0000\\ud800"}'),
        "told when": Outcome("done", b'{"of": "told when", "odd": "\\u0000\\ud800"}'),
        "never whole": Outcome("done", b'"half"'),
        "poisoned": Outcome("failed", reason="ValueError"),
        "hanging": Outcome("failed", reason="TimeoutError"),
        "unheard of": Outcome("unknown"),
    }
    assert Counter(tasks.attempts) == {"poisoned": 3, "hanging": 3, "told when": 2, "never whole": 3, "easy": 1}
    easy, first = tasks.attempts.index("easy"), tasks.attempts.index("hanging")
    assert easy < tasks.attempts.index("hanging", first + 1)
    assert SECRET not in str([{**event, "exc_info": None} for event in logs])  # logged without its text


def stored_delays(database: Database) -> dict[str, float]:
    """Return the hours from the storing of each delayed attempt to its earliest start, to a tenth."""
    columns = "workflow_uuid, (delay_until_epoch_ms - created_at) / 3600000.0"
    query = f"SELECT {columns} FROM {{}}workflow_status WHERE status = 'DELAYED'"
    if database.url.startswith("sqlite"):
        with closing(sqlite3.connect(database.url.removeprefix("sqlite:///"))) as connection:
            rows = connection.execute(query.format("")).fetchall()
    else:
        with psycopg.connect(database.url) as server:
            rows = server.execute(query.format(f'"{database.schema}".').encode()).fetchall()
    return {name: round(float(hours), 1) for name, hours in rows}


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_attempt_comes_after_the_requested_wait(kind: str, tmp_path: Path) -> None:
    waits = {"nobody asked": None, "no wait": 0.0, "half an hour": 1800.0, "an hour at most": 1e9, "told when": 0.0}
    delayed = {
        "test/half an hour/1": pytest.approx(0.5, abs=0.1),
        "test/an hour at most/1": pytest.approx(1.0, abs=0.15),
        "test/told when/2": pytest.approx(0.5, abs=0.1),
    }

    async def run(id_: str, payload: bytes) -> bytes:
        if id_ == "told when":
            raise TryLater("too many requests", after=1800.0)
        return payload

    async def work(database: Database) -> dict[str, str]:
        async def all_delayed() -> bool:
            return stored_delays(database).keys() == delayed.keys()

        async with working(store(database), run, max_backoff=0.1) as jobs:
            for id_, after in waits.items():
                await jobs.defer("test", id_, b"1", after=after)
            await settled(jobs, "nobody asked", "no wait")
            await until(all_delayed)
            return {id_: (await jobs.result("test", id_)).state for id_ in waits}

    with sqlite(tmp_path) if kind == "sqlite" else postgresql() as database:
        found = asyncio.run(work(database))
        delays = stored_delays(database)
    assert found == dict(zip(waits, ["done", "done", "pending", "pending", "pending"], strict=True))
    assert delays == delayed


async def echo(id_: str, payload: bytes) -> bytes:
    return payload


def test_a_stored_job_is_json_text_and_is_deleted_after_its_time(tmp_path: Path) -> None:
    def rows(path: Path) -> list[str]:
        with closing(sqlite3.connect(path)) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return [str(row) for table in tables for row in connection.execute(f'SELECT * FROM "{table}"')]

    async def work(database: Database) -> tuple[list[str], list[str]]:
        async with working(store(database, keep=1.5), echo) as jobs:
            await jobs.defer("test", "a", f'"{SECRET}"'.encode())
            await settled(jobs, "a")
            kept = rows(tmp_path / "jobs.db")

            async def gone() -> bool:
                return (await jobs.result("test", "a")).state == "unknown"

            await until(gone)
            return kept, rows(tmp_path / "jobs.db")

    with sqlite(tmp_path) as database:
        kept, later = asyncio.run(work(database))
    assert sum(SECRET in row for row in kept) == 2  # the payload, and the equal result
    assert not any("pickle" in row for row in kept)
    assert not any(SECRET in row for row in later)


def test_a_job_that_is_too_large_is_refused_and_counted(tmp_path: Path) -> None:
    async def work(database: Database) -> tuple[int, bool]:
        async with working(store(database, max_payload=10), echo) as jobs:
            with pytest.raises(JobsUnavailable, match="too large"):
                await jobs.defer("test", "a", b'"0123456789"')
            await jobs.defer("test", "b", b'"01234567"')
            return jobs.lost, jobs.is_down

    with sqlite(tmp_path) as database:
        assert asyncio.run(work(database)) == (1, False)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("url", ["sqlite:///{}/missing/jobs.db", "postgresql://127.0.0.1:9/test"])
def test_a_database_that_cannot_be_reached_refuses_jobs_at_once(url: str, tmp_path: Path) -> None:
    async def work() -> tuple[int, bool]:
        async with working(JobSettings(url=url.format(tmp_path)), echo, sweep=5.0) as jobs:
            for number in range(200):  # 200 s, if each waited for the database
                with pytest.raises(JobsUnavailable):
                    await jobs.defer("test", str(number), b"{}")
            with pytest.raises(JobsUnavailable):
                await jobs.result("test", "1")
            return jobs.lost, jobs.is_down

    assert asyncio.run(work()) == (200, True)


def test_a_database_that_comes_up_later_is_used_from_then_on(tmp_path: Path) -> None:
    async def work() -> Outcome:
        async with working(JobSettings(url=f"sqlite:///{tmp_path}/later/jobs.db", poll=0.05), echo, sweep=5.0) as jobs:
            assert jobs.is_down
            (tmp_path / "later").mkdir()
            await until(lambda: is_up(jobs))
            await jobs.defer("test", "a", b'"at last"')
            return (await settled(jobs, "a"))[0]

    assert asyncio.run(work()) == Outcome("done", b'"at last"')


class Wire:
    """A breakable proxy to the PostgreSQL server."""

    def __init__(self) -> None:
        info = psycopg.conninfo.conninfo_to_dict(SERVER)
        self._server = (str(info.get("host", "127.0.0.1")), int(info.get("port", 5432)))
        self._open: set[asyncio.StreamWriter] = set()
        self.is_cut = False

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection."""
        if self.is_cut:
            writer.close()
            return
        theirs, ours = await asyncio.open_connection(*self._server)
        self._open |= {writer, ours}
        await asyncio.gather(self._pass(reader, ours), self._pass(theirs, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
        except ConnectionError:
            pass
        writer.close()

    def cut(self) -> None:
        """Break all present and future connections."""
        self.is_cut = True
        for writer in self._open:
            writer.transport.abort()


def test_nothing_is_promised_on_a_file_that_was_deleted(tmp_path: Path) -> None:
    def delete() -> None:
        for file in tmp_path.glob("jobs.db*"):
            file.unlink()

    async def work(database: Database) -> None:
        async with working(store(database), Tasks().run) as jobs:
            await until(lambda: is_up(jobs))
            await jobs.defer("test", "before", b"1")
            await settled(jobs, "before")
            delete()
            assert jobs.is_down
            with pytest.raises(JobsUnavailable):
                await jobs.defer("test", "after", b"1")
            assert jobs.lost == 1

    with sqlite(tmp_path) as database:
        asyncio.run(work(database))


@pytest.mark.timeout(60)
def test_a_database_that_goes_away_loses_what_comes_meanwhile_and_nothing_else() -> None:
    async def slow(id_: str, payload: bytes) -> bytes:
        await asyncio.sleep(0.5)
        return payload

    async def work(database: Database) -> None:
        wire = Wire()
        server = await asyncio.start_server(wire, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        url = database.url.replace("127.0.0.1:5432", f"127.0.0.1:{port}")
        async with working(JobSettings(url=url, database_schema=database.schema, poll=0.05), slow, sweep=5.0) as jobs:
            await jobs.defer("test", "before", b'"before"')
            await asyncio.sleep(0.4)
            wire.cut()
            for number in range(200):  # one wait of at most `timeout`, a second, and then none
                with pytest.raises(JobsUnavailable):
                    await jobs.defer("test", str(number), b"{}")
            assert jobs.is_down
            assert jobs.lost == 200
            wire.is_cut = False
            await until(lambda: is_up(jobs))
            await jobs.defer("test", "after", b'"after"')
            assert await settled(jobs, "before", "after") == [
                Outcome("done", b'"before"'),
                Outcome("done", b'"after"'),
            ]
            wire.cut()
        server.close()

    with postgresql() as database:
        if "127.0.0.1:5432" not in database.url:
            pytest.skip("the server is not where a wire to it could be cut")
        asyncio.run(work(database))


@pytest.mark.parametrize(
    ("attempt", "asked", "wait"),
    [
        (1, None, 2.0),
        (2, None, 4.0),
        (5, None, 32.0),
        (6, None, 60.0),
        (99, None, 60.0),
        (1, 30.0, 30.0),
        (6, 30.0, 60.0),
        (1, 1e9, 3600.0),
    ],
)
def test_waits_double_up_to_a_limit_and_last_as_requested(attempt: int, asked: float | None, wait: float) -> None:
    assert Work("test", echo, initial_backoff=2.0, max_backoff=60.0).wait_after(attempt, asked) == wait


@given(st.integers(1, 1000), st.floats(0, 1e6) | st.none())
def test_no_wait_is_longer_than_an_hour(attempt: int, asked: float | None) -> None:
    assert 0 < Work("test", echo).wait_after(attempt, asked) <= 3600.0
