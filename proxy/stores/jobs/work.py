"""The words for deferred work: what is to be done, where it is kept, and what has become of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

_LONGEST_ASKED_S = 3600.0  # the longest wait that a Retry-After is granted


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work: `run` makes a payload under an id into a result, both JSON, and does no harm when run twice.

    It is tried `attempts` times, each at most `timeout` seconds, `at_once` of them side by side in one process. Before
    the second attempt come `first_wait` seconds, before every further one twice as many, up to `longest_wait`. If
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
        """Seconds to wait after a failed attempt (1, 2, …), and no fewer than were `asked` for, up to an hour."""
        doubled = self.first_wait * 2.0 ** (attempt - 1)
        return max(min(doubled, self.longest_wait), granted(asked))


def granted(asked: float | None) -> float:
    """Return the seconds to wait when so many are asked for: an hour at most, none when nobody asks."""
    return min(asked or 0.0, _LONGEST_ASKED_S)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What has become of a job: its result when it is done, the reason when it has failed."""

    state: Literal["pending", "done", "failed", "unknown"]
    result: bytes = b""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JobStore:
    """Where jobs are kept, and how.

    `url` is `sqlite:///file.db`, for one process, or `postgresql://…`, for replicas; there everything lies in `schema`.
    In seconds: `keep` is how long a job stays after its end, `poll` how often the queues are looked at, `sweep` how
    often jobs of dead processes and jobs that ended long ago are, `patience` how long keeping a job may take before it
    counts as lost, `drain` how long jobs in hand may go on when the process ends. `max_payload` is in bytes.
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
        """Whether several processes may use it at once."""
        return not self.url.startswith("sqlite")
