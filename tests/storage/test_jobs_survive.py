"""No job is lost with its process, none is done twice, and one that kills its process is given up."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.servers.databases import Database, postgresql, sqlite
from tests.waiting import found_within

HERE = Path(__file__).parent
WITHIN_S = 60.0


@pytest.fixture
def shared() -> Iterator[Database]:
    """A database that replicas may share."""
    with postgresql() as found:
        yield found


class Worker:
    """A process of worker.py."""

    def __init__(self, database: Database, log: Path) -> None:
        command = [sys.executable, str(HERE / "worker.py"), database.url, database.schema, str(log)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        assert self.process.stdin
        assert self.process.stdout
        self._in, self._out = self.process.stdin, self.process.stdout
        assert self._out.readline() == "up\n"

    def _told(self, command: str) -> dict[str, Any]:
        self._in.write(command + "\n")
        self._in.flush()
        found: dict[str, Any] = json.loads(self._out.readline())
        return found

    def keep(self, *ids: str) -> None:
        """Store a job for each id."""
        for id_ in ids:
            assert self._told(f"keep {id_}") == {"kept": id_}

    def outcome(self, id_: str) -> dict[str, Any]:
        """The outcome of a job, as this process reports it."""
        return self._told(f"outcome {id_}")

    def settled(self, id_: str) -> dict[str, Any]:
        """The same, once it is done or has failed."""
        return found_within(
            WITHIN_S, lambda: said if (said := self.outcome(id_))["state"] in ("done", "failed") else None
        )

    def send(self, signal_: signal.Signals) -> None:
        """Send it a signal; after SIGKILL it is gone."""
        self.process.send_signal(signal_)
        if signal_ == signal.SIGKILL:
            self.process.wait()

    def close(self) -> None:
        """Let it end by itself if it is still running."""
        if self.process.poll() is None:
            self._in.close()
            self.process.wait(timeout=60)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[Database], Worker]]:
    """Start a worker; it ends with the test at the latest."""
    with ExitStack() as stack:

        def started(database: Database) -> Worker:
            worker = Worker(database, tmp_path / "log")
            stack.callback(worker.process.wait)
            stack.callback(worker.process.kill)
            return worker

        yield started


@pytest.fixture
def log(tmp_path: Path) -> Callable[[str], list[tuple[str, int]]]:
    """Jobs begun or ended so far: ids, each with the process that ran it."""

    def told(what: str) -> list[tuple[str, int]]:
        path = tmp_path / "log"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [(id_, int(pid)) for kind, id_, pid in lines if kind == what]

    return told


Log = Callable[[str], list[tuple[str, int]]]
Start = Callable[[Database], Worker]


def test_a_killed_process_loses_no_job_and_nothing_done_is_done_again(place: Database, start: Start, log: Log) -> None:
    ids = ["quick", *(f"slow-{number}" for number in range(5))]
    killed = start(place)
    killed.keep("quick")
    result = killed.settled("quick")
    killed.keep(*ids)
    found_within(WITHIN_S, lambda: [id_ for id_, _ in log("ends") if id_.startswith("slow")] or None)
    killed.send(signal.SIGKILL)
    assert len({id_ for id_, _ in log("ends")}) < len(ids), "the process had time to do everything"
    heir = start(place)
    said = [heir.settled(id_) for id_ in ids]
    assert [each["state"] for each in said] == ["done"] * len(ids)
    assert [json.loads(each["result"])["payload"] for each in said] == [{"of": id_} for id_ in ids]
    assert said[0] == result
    assert [id_ for id_, _ in log("begins")].count("quick") == 1


def test_a_process_finishes_its_running_jobs_before_it_ends(tmp_path: Path, start: Start, log: Log) -> None:
    ids = [f"slow-{number}" for number in range(4)]
    with sqlite(tmp_path) as database:
        worker = start(database)
        worker.keep(*ids)
        found_within(WITHIN_S, lambda: log("begins") or None)
        worker.close()
        assert worker.process.returncode == 0
        assert sorted(log("begins")) == sorted(log("ends"))
        heir = start(database)
        assert {heir.settled(id_)["state"] for id_ in ids} == {"done"}
    assert Counter(id_ for id_, _ in log("ends")) == Counter(ids)


def test_a_job_that_kills_every_process_is_given_up_but_no_other_job(tmp_path: Path, start: Start) -> None:
    with sqlite(tmp_path) as database:
        worker = start(database)
        worker.keep("slow", "deadly")
        for _ in range(3):
            worker.process.wait(WITHIN_S)
            worker = start(database)
        assert worker.settled("deadly") == {
            "state": "failed",
            "result": "",
            "reason": "the process died with it more than once",
        }
        assert worker.settled("slow")["state"] == "done"


def test_two_replicas_share_the_work_and_do_none_of_it_twice(shared: Database, start: Start, log: Log) -> None:
    replicas = [start(shared), start(shared)]
    ids = [f"slow-{number}" for number in range(8)]
    for id_ in ids:
        for replica in replicas:
            replica.keep(id_)
    said = {id_: replicas[0].settled(id_) for id_ in ids}
    assert Counter(id_ for id_, _ in log("begins")) == Counter(ids)
    assert {pid for _, pid in log("begins")} == {replica.pid for replica in replicas}
    assert said == {id_: replicas[1].outcome(id_) for id_ in ids}
    assert {id_: json.loads(each["result"])["by"] for id_, each in said.items()} == dict(log("ends"))


def test_a_replica_that_hung_and_comes_back_records_nothing(shared: Database, start: Start, log: Log) -> None:
    """Its job was taken over meanwhile, and is neither recorded a second time nor done a third."""
    hung = start(shared)
    hung.keep("long")
    found_within(WITHIN_S, lambda: log("begins") or None)
    hung.send(signal.SIGSTOP)
    other = start(shared)
    recorded = other.settled("long")
    assert json.loads(recorded["result"])["by"] == other.pid
    hung.send(signal.SIGCONT)
    time.sleep(2.0)
    assert hung.outcome("long") == other.outcome("long") == recorded
    assert log("begins") == [("long", hung.pid), ("long", other.pid)]
    assert log("ends") == [("long", other.pid)]
