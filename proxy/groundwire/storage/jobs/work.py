"""The types of deferred work: its definition, its storage and its outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

_LONGEST_ASKED_S = 3600.0  # the longest wait granted to a Retry-After


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work: `run` converts a payload under an id to a result, both JSON, and is idempotent.

    It is tried `attempts` times, each at most `timeout` seconds, `at_once` of them concurrently in one process. The
    second attempt follows after `first_wait` seconds, every further one after twice as many, up to `longest_wait`. If
    `then` names a kind, the result becomes the payload of a job of that kind under the same id.
    """

    kind: str
    run: Callable[[str, bytes], Awaitable[bytes]]
    attempts: int = 8
    timeout: float = 30.0
    at_once: int = 2
    first_wait: float = 2.0
    longest_wait: float = 300.0
    then: str | None = None

    def wait_after(self, attempt: int, asked: float | None = None) -> float:
        """Return the seconds to wait after a failed attempt (1, 2, …), at least `asked`, which counts up to an hour."""
        doubled = self.first_wait * 2.0 ** (attempt - 1)
        return max(min(doubled, self.longest_wait), granted(asked))


def granted(asked: float | None) -> float:
    """Limit a requested wait to an hour; 0 for None."""
    return min(asked or 0.0, _LONGEST_ASKED_S)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state of a job: its result when it is done, the reason when it has failed."""

    state: Literal["pending", "done", "failed", "unknown"]
    result: bytes = b""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JobStore:
    """The storage of jobs.

    `url` is `sqlite:///file.db`, for one process, or `postgresql://…`, for replicas; there everything is in `schema`.
    In seconds: `keep` is the retention of finished jobs, `poll` the interval of polling the queues, `sweep` that of
    checking for dead processes and old jobs, `patience` the limit of storing a job before it counts as lost, `drain`
    the time for running jobs at shutdown. `max_payload` is in bytes.
    """

    url: str
    schema: str = "groundwire_jobs"
    keep: float = 86_400.0
    poll: float = 0.5
    sweep: float = 5.0
    patience: float = 1.0
    drain: float = 10.0
    max_payload: int = 8 * 2**20

    @property
    def is_shared(self) -> bool:
        """True if several processes may use it concurrently."""
        return not self.url.startswith("sqlite")
