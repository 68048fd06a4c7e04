"""Components that exist once per process and outlive a reload of the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from groundwire.backends.loading import start_judge
from groundwire.config import JudgeSettings, Settings
from groundwire.container.stores import build_history
from groundwire.judge import Judge
from groundwire.storage.jobs import Jobs
from groundwire.storage.memory import MemoryFacts, Reports
from groundwire.storage.transact import JobStore, Work
from groundwire.telemetry import Telemetry, build_telemetry


class ProcessResources:
    """Components of which two at once would be wrong. All containers of a process use the same ones:

    - `telemetry`: counters must not fall back to zero, and a second exporter would send everything twice;
    - `history`: two writers would block each other in an SQLite file;
    - jobs: the job engine runs once per process;
    - `reports` and `memory_facts`: clients fetch by id what an earlier container has stored in memory;
    - the entailment model: two of them would double the memory.

    The first container that starts also starts them, and the last one that closes also closes them.
    """

    def __init__(self, settings: Settings, environ: Mapping[str, str], telemetry: Telemetry | None = None) -> None:
        self.telemetry = telemetry or build_telemetry(settings.telemetry, environ, _named_models(settings))
        self.history = build_history(settings.store)
        self.reports = Reports(settings.grounding.keep_reports)
        self.memory_facts = MemoryFacts()
        self._jobs: Jobs | None = None
        self._start_judge = lru_cache(maxsize=1)(start_judge)
        self._users: set[int] = set()

    def judge(self, settings: JudgeSettings) -> Judge:
        """Return the judge with these settings; its model is loaded again only when they change.

        Raises ConfigError when a file is missing.
        """
        return self._start_judge(settings)

    def jobs(self, store: JobStore, work: Sequence[Work]) -> Jobs:
        """Return the job runner, created on the first call."""
        if self._jobs is None:
            self._jobs = Jobs(store, work)
        return self._jobs

    async def acquire(self, user: object) -> None:
        """Register a container, and start everything for the first one."""
        is_first = not self._users
        self._users.add(id(user))
        if not is_first:
            return
        self.telemetry.start()
        if self.history is not None:
            self.history.start()
        if self._jobs is not None:
            await self._jobs.start()

    async def release(self, user: object) -> bool:
        """Unregister a container. Once there is none, stop jobs, write pending records and return True.

        `telemetry` is left open, to be closed last.
        """
        self._users.discard(id(user))
        if self._users:
            return False
        if self._jobs is not None:
            await self._jobs.close()
        if self.history is not None:
            await self.history.close()
        return True


def _named_models(settings: Settings) -> Iterator[str]:
    """Yield the models that the settings name without a wildcard."""
    for upstream in settings.upstreams.values():
        yield from (name for name in (*upstream.models, *upstream.aliases) if "*" not in name)
