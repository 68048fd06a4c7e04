"""Retry decisions, as pure functions: clock, randomness and outcomes are arguments."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from groundwire.errors import (
    RequestError,
    UpstreamBroken,
    UpstreamBusy,
    UpstreamConnectTimeout,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from groundwire.upstream.headers import header
from groundwire.wire import Headers, Reply

Outcome = Reply | RequestError
"""The outcome of one attempt: a reply, whatever its status, or an error."""

_NO_ANSWER = (UpstreamUnreachable, UpstreamTimeout, UpstreamBroken, UpstreamBusy)
_NEVER_ARRIVED = (UpstreamUnreachable, UpstreamConnectTimeout)
_NAMES: tuple[tuple[type[RequestError], str], ...] = (
    (UpstreamUnreachable, "unreachable"),
    (UpstreamConnectTimeout, "connect_timeout"),
    (UpstreamTimeout, "timeout"),
    (UpstreamBroken, "broken"),
    (UpstreamBusy, "busy"),
)


@dataclass(frozen=True, slots=True)
class Retries:
    """The retry policy of an upstream before the first byte of an answer. Times are in seconds.

    `statuses` are those of replies that are retried. No attempt begins later than `deadline` after the first. With
    `after_timeout`, a request that arrived but timed out is retried too, although the completion may be in progress and
    be billed twice.
    """

    count: int = 0
    statuses: frozenset[int] = frozenset({429, 502, 503, 504})
    initial_backoff: float = 0.5
    max_backoff: float = 8.0
    deadline: float = 30.0
    after_timeout: bool = False

    def wait(self, outcome: Outcome, attempts: int, elapsed: float, now: float, chance: float) -> float | None:
        """Return the seconds until the next attempt, after so many attempts in `elapsed` seconds; None for no further
        one.

        The wait is a random share (`chance`, 0–1) of one that doubles each time, added to the server's Retry-After. If
        that exceeds `max_backoff`, there is no further attempt, because an earlier one would be in vain. `now` is Unix
        time.
        """
        if attempts > self.count or not self._is_retryable(outcome):
            return None
        requested = requested_wait(outcome.headers, now) if isinstance(outcome, Reply) else 0.0
        wait = requested + chance * min(self.max_backoff, self.initial_backoff * 2.0 ** (attempts - 1))
        return None if requested > self.max_backoff or elapsed + wait > self.deadline else wait

    def _is_retryable(self, outcome: Outcome) -> bool:
        if isinstance(outcome, Reply):
            return outcome.status in self.statuses and header(outcome.headers, b"x-should-retry") != b"false"
        if isinstance(outcome, UpstreamBusy):
            return False  # the queue has been waited for already
        return isinstance(outcome, (*_NEVER_ARRIVED, UpstreamBroken)) or (
            self.after_timeout and isinstance(outcome, UpstreamTimeout)
        )


ONCE = Retries()
"""No retries."""


def never_arrived(outcome: Outcome) -> bool:
    """Return whether the upstream certainly did not receive the request."""
    return isinstance(outcome, _NEVER_ARRIVED)


def is_no_answer(outcome: Outcome, statuses: frozenset[int]) -> bool:
    """Return whether an upstream gave no answer: an error, or a reply with one of these statuses."""
    return outcome.status in statuses if isinstance(outcome, Reply) else isinstance(outcome, _NO_ANSWER)


def outcome_name(outcome: Outcome) -> str:
    """Return a word for an outcome, for headers, reports, logs and traces."""
    if isinstance(outcome, Reply):
        return "answered" if outcome.status < 400 else f"status_{outcome.status}"
    return next((name for kind, name in _NAMES if isinstance(outcome, kind)), "refused")


def requested_wait(headers: Headers, now: float) -> float:
    """Return the seconds that a reply asks to wait, by OpenAI's `retry-after-ms` or by Retry-After; 0 without either.

    `now` is Unix time.
    """
    exact = (header(headers, b"retry-after-ms") or b"").strip()
    if exact.isdigit():
        return int(exact) / 1000
    requested = header(headers, b"retry-after")
    return (requested is not None and seconds_to_wait(requested.decode("latin-1"), now)) or 0.0


def seconds_to_wait(retry_after: str | None, now: float) -> float | None:
    """Parse a Retry-After header into seconds from `now` (since 1970); None when it is absent or invalid."""
    if retry_after is None:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    with suppress(ValueError):
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - now)
    return None
