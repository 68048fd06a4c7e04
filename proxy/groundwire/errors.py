"""The tree of all errors.

    GroundwireError
    ├── ConfigError                  the settings cannot be used
    │   └── MissingExtra                 they, or a command, need libraries that are not installed
    ├── EvidenceSchemaError          a JSON answer violates the declared shape of its evidence
    ├── EvidenceGroundingError       every quotation of an answer was rejected
    ├── Overload                     there was no capacity to verify
    ├── TryLater                     the work failed, but may succeed later
    ├── JobsUnavailable              a job could not be stored or read
    ├── StoreUnavailable             stored data cannot be read or changed now
    ├── ReviewConflict               someone else has decided on the finding
    └── RequestError                 the request cannot be answered:
        ├── BadRequest               its body does not match the API
        │   └── UnreadableBody           it is not a JSON object
        ├── BodyTooLarge             its body is over the limit
        ├── TooBusy                  there is no capacity for it now
        │   └── Leaving                  the process is shutting down
        ├── UnknownModel             no upstream serves its model
        ├── UnknownReport            no report is stored under that id
        ├── ReportUnavailable        reports cannot be read now
        ├── MemoryUnavailable        stored facts cannot be read now
        ├── UnknownReview            no finding to review has that id
        ├── NotAdmin                 it requires an admin key
        ├── UnknownKey               its client key is missing or invalid
        ├── TooManyRequests          its client has exceeded the limits of its key
        ├── UpstreamUnreachable      no connection to the model server could be established
        ├── UpstreamBusy             the limits of the model server are exhausted
        ├── UpstreamTimeout          the model server did not answer in time
        │   └── UpstreamConnectTimeout   it did not even accept a connection in time
        └── UpstreamBroken           the connection broke before the answer was complete

`str(error)` is the text for the caller and never holds a secret or an address; `operator` is the text for the log.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import ceil

from groundwire.report import Violation
from groundwire.wire import Headers


class GroundwireError(Exception):
    """Base of all errors that Groundwire raises."""

    def __init__(self, message: str, *, operator: str | None = None) -> None:
        super().__init__(message)
        self.operator = operator or message


class ConfigError(GroundwireError):
    """The settings cannot be used; `problems` has one line for each error, with its location."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class MissingExtra(ConfigError):
    """Settings or a command need extras that are not installed; each problem has the command that installs them."""


class EvidenceSchemaError(GroundwireError, ValueError):
    """A JSON answer violates the shape declared for its evidence; `violations` lists all violations."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__("; ".join(f"{v.field}: expected {v.expected}, found {v.found}" for v in violations))
        self.violations = tuple(violations)


class EvidenceGroundingError(GroundwireError, ValueError):
    """None of an answer's quotations was found in a source; `rejected` counts them."""

    def __init__(self, rejected: int) -> None:
        super().__init__(f"none of the {rejected} quotations occurs in a source")
        self.rejected = rejected


class Overload(GroundwireError):
    """Verification was skipped for lack of capacity; the answer itself is unaffected."""


class TryLater(GroundwireError):
    """The work failed but may succeed later: after at least `after` seconds, if that is known.

    `so_far` is the partial result, as JSON, to use if no retry succeeds.
    """

    def __init__(self, message: str, *, after: float | None = None, so_far: bytes | None = None) -> None:
        super().__init__(message)
        self.after = after
        self.so_far = so_far


class JobsUnavailable(GroundwireError):
    """A job could not be stored, or its state cannot be read now."""


class StoreUnavailable(GroundwireError):
    """Stored data cannot be read or changed now."""


class ReviewConflict(GroundwireError):
    """Someone else has decided on the finding: `decision` by `who` at `at` (Unix seconds), with a `note`.

    `version` is the version of the finding since then.
    """

    def __init__(self, decision: str, who: str, at: float, note: str, version: int) -> None:
        super().__init__("Someone else has decided on this meanwhile.")
        self.decision = decision
        self.who = who
        self.at = at
        self.note = note
        self.version = version


class RequestError(GroundwireError):
    """A request cannot be answered; `param` names the field at fault, if any."""

    def __init__(self, message: str, *, param: str | None = None, operator: str | None = None) -> None:
        super().__init__(message, operator=operator)
        self.param = param


class BadRequest(RequestError):
    """The body does not match the API."""


class UnreadableBody(BadRequest):
    """The body is not a JSON object."""


class BodyTooLarge(RequestError):
    """The body is over the limit of `server.max_body`."""


class TooBusy(RequestError):
    """The request exceeds the capacity of the proxy; retry after `after` seconds."""

    def __init__(self, message: str, *, after: int) -> None:
        super().__init__(message)
        self.after = after

    @property
    def headers(self) -> Headers:
        """The header with the time after which to retry."""
        return ((b"retry-after", str(self.after).encode()),)


class Leaving(TooBusy):
    """The process is shutting down and accepts no new requests; another process may."""

    @property
    def headers(self) -> Headers:
        """The headers that ask the client to retry on a new connection."""
        return (*super().headers, (b"connection", b"close"))


class UnknownModel(RequestError):
    """No upstream serves the model."""


class UnknownReport(RequestError):
    """No report is stored under that id."""


class ReportUnavailable(RequestError):
    """The existence of a report cannot be determined now."""


class MemoryUnavailable(RequestError):
    """The stored facts of a subject cannot be read now."""


class UnknownReview(RequestError):
    """No finding to review has that id."""


class NotAdmin(RequestError):
    """Access to stored data requires an admin key."""


class UnknownKey(RequestError):
    """The client key is missing or invalid."""


class TooManyRequests(RequestError):
    """A client has exceeded the limits of its key; `headers` contain the time after which to retry."""

    def __init__(self, message: str, headers: Headers) -> None:
        super().__init__(message)
        self.headers = headers


class UpstreamUnreachable(RequestError):
    """No connection to the model server could be established."""


class UpstreamBusy(RequestError):
    """The limits of the model server are exhausted; retry after `after` seconds."""

    def __init__(self, message: str, *, after: float) -> None:
        super().__init__(message)
        self.after = after

    @property
    def headers(self) -> Headers:
        """The header with the time after which to retry."""
        return ((b"retry-after", str(max(1, ceil(self.after))).encode()),)


class UpstreamTimeout(RequestError):
    """The model server did not answer in time."""


class UpstreamConnectTimeout(UpstreamTimeout):
    """The model server did not accept a connection in time, so it never saw the request."""


class UpstreamBroken(RequestError):
    """The connection to the model server broke before the answer was complete."""


def system_message(error: OSError) -> str:
    """Return the system's words for an error, without the addresses that asyncio and aiohttp add to them."""
    if error.errno and error.errno > 0:  # below 0: of a name that cannot be resolved
        return os.strerror(error.errno)
    return error.strerror or str(error)
