"""Everything that can go wrong, as one tree.

    GroundwireError
    ├── ConfigError                  the settings cannot be used
    ├── EvidenceSchemaError          a JSON answer breaks the shape declared for its evidence
    ├── EvidenceGroundingError       every quotation of an answer was rejected
    ├── Overload                     there was no room to verify
    ├── TryLater                     it cannot be done now, but may be later
    ├── JobsUnavailable              it could not be kept to be done later
    ├── StoreUnavailable             what was stored cannot be read or changed just now
    ├── ReviewConflict               someone else has decided meanwhile
    └── RequestError                 the request cannot be answered, and whose fault it is:
        ├── BadRequest               its body is not what the API takes
        ├── BodyTooLarge             its body is over the limit
        ├── TooBusy                  there is no room for it just now
        ├── Leaving                  the process is about to stop
        ├── UnknownModel             no upstream serves its model
        ├── UnknownReport            no report is kept under that id
        ├── ReportUnavailable        whether there is a report cannot be known just now
        ├── MemoryUnavailable        which facts are kept cannot be known just now
        ├── UnknownKey               it brings no client key, or none that is good
        ├── TooManyRequests          its client has asked for more than its key may
        ├── UpstreamUnreachable      no connection to the model server came about
        ├── UpstreamBusy             its limits leave no room for one more request
        ├── UpstreamTimeout          the model server did not answer in time
        │   └── UpstreamConnectTimeout   it did not even accept a connection in time
        └── UpstreamBroken           the connection broke before the answer was whole

`str(error)` is the text for the caller and never holds a secret or an address; `operator` is the text for the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from proxy.types import Headers, Violation


class GroundwireError(Exception):
    """Any failure that Groundwire names."""

    def __init__(self, message: str, *, operator: str | None = None) -> None:
        super().__init__(message)
        self.operator = operator or message


class ConfigError(GroundwireError):
    """The settings cannot be used; `problems` has one line for each reason, with its place."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class EvidenceSchemaError(GroundwireError, ValueError):
    """A JSON answer breaks the shape declared for its evidence; `violations` has all of them."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__("; ".join(f"{v.field}: expected {v.expected}, found {v.found}" for v in violations))
        self.violations = tuple(violations)


class EvidenceGroundingError(GroundwireError, ValueError):
    """None of an answer's quotations was found in a source; `rejected` counts them."""

    def __init__(self, rejected: int) -> None:
        super().__init__(f"none of the {rejected} quotations stands in a source")
        self.rejected = rejected


class Overload(GroundwireError):
    """There was no room to verify; the answer itself is not touched by that (DQ3)."""


class TryLater(GroundwireError):
    """It cannot be done now, but may be in `after` seconds (None: whenever).

    `so_far` is the result, as JSON, that counts should it never come to more.
    """

    def __init__(self, message: str, *, after: float | None = None, so_far: bytes | None = None) -> None:
        super().__init__(message)
        self.after = after
        self.so_far = so_far


class JobsUnavailable(GroundwireError):
    """The work could not be kept to be done later, or what has become of it cannot be known just now."""


class StoreUnavailable(GroundwireError):
    """What was stored cannot be read or changed just now."""


class ReviewConflict(GroundwireError):
    """Someone else has decided on it meanwhile: `decision` of `who` at `at` (Unix seconds), which made `version`."""

    def __init__(self, decision: str, who: str, at: float, note: str, version: int) -> None:
        super().__init__("Someone else has decided on this meanwhile.")
        self.decision = decision
        self.who = who
        self.at = at
        self.note = note
        self.version = version


class RequestError(GroundwireError):
    """The request cannot be answered; `param` names the field that is to blame, if one is."""

    def __init__(self, message: str, *, param: str | None = None, operator: str | None = None) -> None:
        super().__init__(message, operator=operator)
        self.param = param


class BadRequest(RequestError):
    """The body is not what the API takes."""


class UnreadableBody(BadRequest):
    """The body is not a JSON object."""


class BodyTooLarge(RequestError):
    """The body is over the limit of `server.max_body`."""


class TooBusy(RequestError):
    """There is no room for the request just now; there may be in `after` seconds."""

    def __init__(self, message: str, *, after: int) -> None:
        super().__init__(message)
        self.after = after

    @property
    def headers(self) -> Headers:
        """What tells a client when to come again."""
        return ((b"retry-after", str(self.after).encode()),)


class Leaving(TooBusy):
    """The process is about to stop and takes no new requests; another one may."""

    @property
    def headers(self) -> Headers:
        """What tells a client to come again, and that nobody will answer on this connection."""
        return (*super().headers, (b"connection", b"close"))


class UnknownModel(RequestError):
    """No upstream serves the model."""


class UnknownReport(RequestError):
    """No report is kept under that id."""


class ReportUnavailable(RequestError):
    """Whether there is a report under that id cannot be known just now."""


class MemoryUnavailable(RequestError):
    """Which facts are kept about a subject cannot be known just now."""


class UnknownReview(RequestError):
    """Nothing is to be reviewed under that id."""


class NotAdmin(RequestError):
    """What is stored is shown to those with an admin key only."""


class UnknownKey(RequestError):
    """The request brings no client key, or none that is good."""


class TooManyRequests(RequestError):
    """A client has asked for more than its key may; `headers` tell it when it may ask again."""

    def __init__(self, message: str, headers: Headers) -> None:
        super().__init__(message)
        self.headers = headers


class UpstreamUnreachable(RequestError):
    """No connection to the model server came about."""


class UpstreamBusy(RequestError):
    """The limits that are set for the model server leave no room; there may be some in `after` seconds."""

    def __init__(self, message: str, *, after: float) -> None:
        super().__init__(message)
        self.after = after

    @property
    def headers(self) -> Headers:
        """What tells a client when to come again."""
        return ((b"retry-after", str(max(1, ceil(self.after))).encode()),)


class UpstreamTimeout(RequestError):
    """The model server did not answer in time."""


class UpstreamConnectTimeout(UpstreamTimeout):
    """The model server did not accept a connection in time, so it never saw the request."""


class UpstreamBroken(RequestError):
    """The connection to the model server broke before the answer was whole."""
