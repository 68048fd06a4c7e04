"""The adapter for DBOS Transact, which stores and dispatches jobs in SQLite or PostgreSQL. Called from threads only.

Every attempt at a job is a separate workflow which, when it fails, enqueues the next one with a delay: a waiting job
occupies no thread and no slot in its queue, unlike one asleep within a long workflow. Payloads and results are stored
as JSON text, nothing is pickled. There is one DBOS instance per process.
"""

from __future__ import annotations

import logging
import math
import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import structlog

from groundwire.config.settings import Jobs as JobSettings
from groundwire.errors import GroundwireError, TryLater
from groundwire.storage.file import Identity, identity

if TYPE_CHECKING:
    from dbos import DBOSClient, EnqueueOptions, WorkflowStatus


_MAX_RETRY_AFTER_S = 3600.0  # the longest wait granted to a Retry-After


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work: `run` converts a payload under an id to a result, both JSON, and is idempotent.

    It is tried `attempts` times, each at most `timeout` seconds, `at_once` of them concurrently in one process. The
    second attempt follows after `initial_backoff` seconds, every further one after twice as many, up to `max_backoff`.
    If `then` names a kind, the result becomes the payload of a job of that kind under the same id.
    """

    kind: str
    run: Callable[[str, bytes], Awaitable[bytes]]
    attempts: int = 8
    timeout: float = 30.0
    at_once: int = 2
    initial_backoff: float = 2.0
    max_backoff: float = 300.0
    then: str | None = None

    def wait_after(self, attempt: int, at_least: float | None = None) -> float:
        """Return the seconds to wait after a failed attempt (1, 2, …): `at_least`, an hour at most, or more."""
        doubled = self.initial_backoff * 2.0 ** (attempt - 1)
        return max(min(doubled, self.max_backoff), granted(at_least))


def granted(at_least: float | None) -> float:
    """Limit a requested wait to an hour; 0 for None."""
    return min(at_least or 0.0, _MAX_RETRY_AFTER_S)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state of a job: its result when it is done, the reason when it has failed."""

    state: Literal["pending", "done", "failed", "unknown"]
    result: bytes = b""
    reason: str = ""


log = structlog.get_logger("groundwire.jobs")

_APPLICATION = "groundwire"
_VERSION = "1"  # of the storage format: releases with the same version process each other's jobs
_DEATHS = 2  # processes that died with one job running alone; then it is given up
_LEASE = 1.5  # times the longest attempt: a process with a running job for longer counts as dead
_FORGET_EVERY_S = 60.0
_FORGET_BATCH = 500
_ON_RECORD_S = 5.0
_CONNECT_S = "3"
_MOST_COUNTED = 10_000
_DEADLY = "the process died with it more than once"
_ACTIVE = ("DELAYED", "ENQUEUED", "PENDING")
_ENDED = ("SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")

Run = Callable[[Work, str, bytes], bytes]


class Interrupted(BaseException):
    """The process ends before the job. DBOS records exceptions as outcomes, but not this one, so the job stays
    pending.
    """


class Transact:
    """Jobs in a database: SQLite for one process, PostgreSQL for replicas.

    `run` does one attempt, in a thread; it raises TryLater, Interrupted, or anything else.
    """

    def __init__(self, url: str, settings: JobSettings, work: Sequence[Work], run: Run) -> None:
        self._database_url = url
        self._settings = settings
        self._is_shared = not url.startswith("sqlite")
        self._work = {each.kind: each for each in work}
        self._run = run
        self._executor = uuid4().hex if self._is_shared else "local"
        self._lease = _LEASE * max(each.timeout for each in work)
        self._seen: dict[tuple[str, int], float] = {}
        self._forgets_at = 0.0
        self._suspects = threading.Lock()
        self._suspect = ""
        self._closing = threading.Event()
        self._client: DBOSClient | None = None
        self._file: Path | None = None
        self._launched_on: Identity | None = None

    def launch(self) -> None:
        """Open the database and start processing its jobs. Raises when it cannot be reached."""
        from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer

        _listen_to_dbos()
        url, serializer = self._url(), DBOSPortableJSONSerializer()
        try:
            DBOS(
                config={
                    "name": _APPLICATION,
                    "system_database_url": url,
                    "dbos_system_schema": self._settings.database_schema,
                    "serializer": serializer,
                    "application_version": _VERSION,
                    "executor_id": self._executor,
                    "log_level": "WARNING",
                    "sys_db_pool_size": 4,
                    "db_engine_kwargs": {"hide_parameters": True, **self._pool()},
                    "use_listen_notify": False,
                }
            )
            for work in self._work.values():
                DBOS.workflow(name=work.kind)(self._workflow(work))
            DBOS.launch()
            for work in self._work.values():
                DBOS.register_queue(
                    work.kind,
                    worker_concurrency=work.at_once,
                    polling_interval_sec=self._settings.poll,
                    on_conflict="always_update",
                )
        except BaseException:
            DBOS.destroy(destroy_registry=True)
            raise
        self._launched_on = identity(self._file) if self._file else None
        self._client = DBOSClient(
            system_database_url=url,
            dbos_system_schema=self._settings.database_schema,
            serializer=serializer,
            system_database_pool_size=2,
            application_name=_APPLICATION,
            lazy=True,
            retry_connection_errors=False,
        )

    def is_gone(self) -> bool:
        """Return whether the open SQLite file was deleted or replaced, so that writes to it are lost."""
        return self._client is not None and self._file is not None and identity(self._file) != self._launched_on

    def enqueue(self, kind: str, id_: str, payload: bytes, tenant: str = "", after: float | None = None) -> None:
        """Store a job of a tenant, unless one exists under this kind and id. Raises when the database fails.

        All its attempts, and the job that follows it, belong to the tenant. The first attempt is made after `after`
        seconds, an hour at most.
        """
        options = _options(kind, id_, 1)
        options["authenticated_user"] = tenant
        if wait := granted(after):
            options["delay_seconds"] = wait * random.uniform(1.0, 1.1)  # noqa: S311 - so that not all come at once
        self._opened().enqueue(options, id_, payload.decode(), 1)

    def outcome(self, kind: str, id_: str, tenant: str | None = None) -> Outcome:
        """Return the state of a job; with `tenant`, only of one that belongs to it. Raises when the database fails."""
        names = [_name(kind, id_, attempt) for attempt in range(1, self._work[kind].attempts + 1)]
        found = self._opened().list_workflows(workflow_ids=names, load_input=False)
        return _outcome([each for each in found if tenant in (None, each.authenticated_user or "")])

    def sweep(self) -> None:
        """Take over the jobs of dead processes, and periodically delete old finished jobs."""
        if self._is_shared:
            self._recover()
        if time.monotonic() >= self._forgets_at:
            self._forgets_at = time.monotonic() + min(_FORGET_EVERY_S, self._settings.keep / 4)
            self._forget()

    def waiting(self) -> dict[str, int]:
        """Return the number of unfinished jobs of each kind, up to ten thousand. Raises when the database fails."""
        active = self._opened().list_workflows(
            status=list(_ACTIVE), limit=_MOST_COUNTED, load_input=False, load_output=False
        )
        return {**dict.fromkeys(self._work, 0), **Counter(each.name for each in active)}

    def close(self, drain: float) -> None:
        """Stop accepting jobs and wait up to `drain` seconds for running ones."""
        from dbos import DBOS

        self._closing.set()
        DBOS.destroy(destroy_registry=True, workflow_completion_timeout_sec=math.ceil(drain))
        self._opened().destroy()

    def _opened(self) -> DBOSClient:
        assert self._client is not None  # noqa: S101 - launch() comes first
        return self._client

    def _pool(self) -> dict[str, Any]:
        """Return a connection pool that fails for good at shutdown.

        DBOS retries errors of the driver without end, and a thread that does so would outlive the process.
        """
        from sqlalchemy import PoolProxiedConnection, QueuePool

        closing = self._closing

        class Pool(QueuePool):
            def connect(self) -> PoolProxiedConnection:
                try:
                    return super().connect()
                except Exception as error:
                    if closing.is_set():
                        raise ConnectionError("the process is closing") from error
                    raise

        return {"poolclass": Pool} if self._is_shared else {}

    def _url(self) -> str:
        from sqlalchemy import make_url

        url = make_url(self._database_url)
        if self._is_shared:
            if "connect_timeout" not in url.query:
                url = url.update_query_dict({"connect_timeout": _CONNECT_S})
        elif url.database:
            self._file = Path(url.database)
            with closing(sqlite3.connect(url.database)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
        return url.render_as_string(hide_password=False)

    def _workflow(self, work: Work) -> Callable[[str, str, int], dict[str, str]]:
        def attempt(id_: str, payload: str, number: int) -> dict[str, str]:
            return self._attempt(work, id_, payload, number)

        return attempt

    def _attempt(self, work: Work, id_: str, payload: str, number: int) -> dict[str, str]:
        """Make one attempt at a job, repeated when a process died in it; its return value is stored.

        Such jobs run one after the other: this identifies the job that crashes processes among those that ran with it.
        """
        if self._begins():
            return self._try(work, id_, payload, number)
        with self._alone(_name(work.kind, id_, number)):
            if not any(self._begins() for _ in range(_DEATHS)):
                log.warning("jobs.given_up", kind=work.kind, id=id_, attempts=number, reason=_DEADLY)
                return {"failed": _DEADLY}
            return self._try(work, id_, payload, number)

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Let one suspect run at a time, the next one after the outcome of the preceding one is recorded."""
        with self._suspects:
            ends = time.monotonic() + _ON_RECORD_S
            while self._suspect and self._is_pending(self._suspect) and time.monotonic() < ends:
                time.sleep(0.02)
            self._suspect = name
            yield

    def _is_pending(self, name: str) -> bool:
        found = self._opened().list_workflows(workflow_ids=[name], load_input=False, load_output=False)
        return any(each.status == "PENDING" for each in found)

    def _begins(self) -> bool:
        """Store a durable mark; False if a process that died had stored it before."""
        from dbos import DBOS

        mark = uuid4().hex
        return DBOS.run_step({"name": "begins"}, lambda: mark) == mark

    def _try(self, work: Work, id_: str, payload: str, number: int) -> dict[str, str]:
        """Run a job: return `done` with its result, `failed` with the reason, or nothing if another attempt follows."""
        from dbos import DBOS

        try:
            if number > 1 and self.outcome(work.kind, id_).state == "done":  # by a process that was taken for dead
                return {}
            result = self._run(work, id_, payload.encode()).decode()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
            ours = isinstance(error, GroundwireError)
            reason, failure = (str(error), None) if ours else (type(error).__name__, error)
            at_least, so_far = (error.after, error.so_far) if isinstance(error, TryLater) else (None, None)
        else:
            return self._done(work, id_, result)
        if number >= work.attempts:
            log.warning("jobs.given_up", kind=work.kind, id=id_, attempts=number, reason=reason, exc_info=failure)
            return {"failed": reason} if so_far is None else self._done(work, id_, so_far.decode())
        wait = work.wait_after(number, at_least) * random.uniform(1.0, 1.1)  # noqa: S311 - so that not all come at once
        log.info(
            "jobs.again", kind=work.kind, id=id_, attempt=number, in_s=round(wait, 1), reason=reason, exc_info=failure
        )
        options = _options(work.kind, id_, number + 1)
        options["delay_seconds"] = wait
        DBOS.enqueue_workflow_with_options(options, id_, payload, number + 1)
        return {}

    def _done(self, work: Work, id_: str, result: str) -> dict[str, str]:
        from dbos import DBOS

        if work.then is not None:
            DBOS.enqueue_workflow_with_options(_options(work.then, id_, 1), id_, result, 1)
        return {"done": result}

    def _recover(self) -> None:
        """Redistribute jobs that a process has had running for longer than any attempt may take.

        The local clock counts, from when this process first saw the job there. A process that is alive may go on, but
        its result is not recorded.
        """
        now = time.monotonic()
        pending = self._opened().list_workflows(
            status="PENDING", name=list(self._work), app_version=_VERSION, load_input=False, load_output=False
        )
        others = [each for each in pending if each.executor_id != self._executor]
        keys = {(each.workflow_id, each.dequeued_at or 0): each.executor_id for each in others}
        self._seen = {key: self._seen.get(key, now) for key in keys}
        dead = {keys[key] for key, since in self._seen.items() if now - since > self._lease}
        if dead:
            log.warning("jobs.taken_over", executors=len(dead))
        for work in self._work.values():
            if names := [each.workflow_id for each in others if each.executor_id in dead and each.name == work.kind]:
                self._opened().resume_workflows(names, queue_name=work.kind)

    def _forget(self) -> None:
        client = self._opened()
        before = (datetime.now(UTC) - timedelta(seconds=self._settings.keep)).isoformat()
        while old := client.list_workflows(
            status=list(_ENDED), completed_before=before, limit=_FORGET_BATCH, load_input=False, load_output=False
        ):
            client.delete_workflows([each.workflow_id for each in old])


def _name(kind: str, id_: str, attempt: int) -> str:
    return f"{kind}/{id_}/{attempt}"


def _options(kind: str, id_: str, attempt: int) -> EnqueueOptions:
    return {"workflow_name": kind, "queue_name": kind, "workflow_id": _name(kind, id_, attempt)}


def _outcome(attempts: Sequence[WorkflowStatus]) -> Outcome:
    """Combine the states of all attempts at a job."""
    if not attempts:
        return Outcome("unknown")
    outputs = [(each.output or {}, each.completed_at or 0) for each in attempts]
    if done := [(at, output["done"]) for output, at in outputs if "done" in output]:
        return Outcome("done", min(done)[1].encode())
    if any(each.status in _ACTIVE for each in attempts):
        return Outcome("pending")
    reasons = [output["failed"] for output, _ in outputs if "failed" in output]
    return Outcome("failed", reason=reasons[0] if reasons else "it was cancelled")


class _Relay(logging.Handler):
    """Log DBOS's warnings as events: their first line, which identifies jobs by id and contains no payload."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage().partition("\n")[0][:200]
        log.warning(
            "jobs.dbos", level=record.levelname.lower(), place=f"{record.filename}:{record.lineno}", detail=message
        )


def _listen_to_dbos() -> None:
    logger = logging.getLogger("dbos")
    if not logger.handlers:  # else DBOS would write to standard error in another format
        logger.addHandler(_Relay())
        logger.propagate = False
