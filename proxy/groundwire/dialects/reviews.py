"""Wire formats for stored data: the review queue, decisions, trends, and lists of exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from groundwire.domain import AnswerVerdict
from groundwire.errors import BadRequest

Q = TypeVar("Q", bound="Query")

Verdict = Literal["confirmed", "rejected"]
State = Literal["open", "confirmed", "rejected", "decided", "any"]

LONGEST_NOTE = 4000  # characters


def _moment(value: Any) -> Any:
    """Read a date or time without a zone as UTC; Unix seconds are accepted too."""
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            return value
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return value


def _given(value: Any) -> Any:
    """Read an empty form field as absent."""
    return None if value == "" else value


Text = Annotated[Annotated[str, Field(max_length=500)] | None, BeforeValidator(_given)]
Moment = Annotated[AwareDatetime | None, BeforeValidator(_moment), BeforeValidator(_given)]
Limit = Annotated[int, Field(ge=1, le=200)]
After = Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(_given)]


class Query(BaseModel):
    """Base of queries; an unknown key or a value of the wrong type is rejected by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ReviewFilter(Query):
    """Select findings that meet all conditions; `since` and `until` refer to the time of the answer."""

    state: State = "open"
    flag: Text = None
    verifier: Text = None
    model: Text = None
    subject: Text = None
    exchange: Text = None
    tenant: Text = None
    since: Moment = None
    until: Moment = None


class ReviewQuery(ReviewFilter):
    """One page of findings; `after` is that of the preceding page."""

    after: After = None
    limit: Limit = 50


class ExportQuery(ReviewFilter):
    """Select the findings to export."""

    state: State = "decided"
    format: Literal["csv", "jsonl"] = "jsonl"


class DecisionIn(Query):
    """A reviewer's decision on a finding as it was at `version`."""

    decision: Verdict
    version: Annotated[int, Field(ge=0)]
    note: Annotated[str, Field(max_length=LONGEST_NOTE)] = ""


class ClaimDecisionIn(DecisionIn):
    """A reviewer's decision on any claim of an exchange: its verdict is right (confirmed) or wrong (rejected).

    `version` is 0 for a claim on which nobody has decided.
    """

    exchange: Annotated[str, Field(max_length=500)]
    claim: Annotated[str, Field(max_length=500)]
    choice: Annotated[int, Field(ge=0, le=10_000)] = 0
    version: Annotated[int, Field(ge=0)] = 0


class ExchangeQuery(Query):
    """Select stored exchanges; every word in `q` must occur in the question or the answer.

    `state` selects those with a finding that is open, or with a claim that is decided on, `verifier` those with a claim
    that it flagged. By `risk`, those that have one are listed, the highest first.
    """

    subject: Text = None
    session: Text = None
    model: Text = None
    flag: Text = None
    tenant: Text = None
    verdict: Annotated[AnswerVerdict | None, BeforeValidator(_given)] = None
    verifier: Text = None
    state: Literal["any", "open", "decided"] = "any"
    sort: Literal["newest", "risk"] = "newest"
    q: Text = None
    since: Moment = None
    until: Moment = None
    after: After = None
    limit: Limit = 50


class SimilarQuery(Query):
    """Select the questions with the most words in common with `q`, of one subject or of all."""

    q: Annotated[str, Field(min_length=1, max_length=4000)]
    subject: Text = None
    tenant: Text = None
    limit: Annotated[int, Field(ge=1, le=50)] = 10


class SubjectQuery(Query):
    """Select a subject of one tenant or, without `tenant`, the subjects of this name of all tenants."""

    tenant: Text = None


class MetricsQuery(Query):
    """Select trends by first and last day (UTC), optionally grouped by model, subject or flag."""

    from_: Annotated[date | None, BeforeValidator(_given), Field(alias="from")] = None
    to: Annotated[date | None, BeforeValidator(_given)] = None
    by: Literal["all", "model", "subject", "flag"] = "all"


class CitationOut(BaseModel):
    """A piece of evidence: a span of the source's original text, in code points."""

    source: str
    start: int
    end: int
    text: str
    score: float
    match: str


class DecisionOut(BaseModel):
    """A decision, its author and its time."""

    decision: Verdict
    who: str
    at: datetime
    note: str


class ReviewOut(BaseModel):
    """A finding: a flagged claim or, where `claim` is null, a flag on the answer as a whole.

    A claim without `flags` is one that was decided on all the same. `is_wrong` is the reviewer's opinion of the claim.
    `question` is the user's last message. `original_confidence` is the confidence that the answer expresses in the
    claim, `confidence` that of the verdict. Evidence with the match `history` is a statement of the earlier exchange
    that `source` names.
    """

    id: int
    exchange: str
    at: datetime
    model: str
    tenant: str
    subject: str | None
    session: str | None
    flags: list[str]
    version: int
    decision: DecisionOut | None
    is_wrong: bool | None
    choice: int | None
    claim: str | None
    text: str | None
    start: int | None
    end: int | None
    pointer: str | None
    label: str | None
    verifier: str | None
    method: str | None
    score: float | None
    confidence: float | None
    original_confidence: float | None
    reason: str | None
    citations: list[CitationOut]
    question: str | None


class ReviewDetail(ReviewOut):
    """A finding with every decision on it, oldest first."""

    decisions: list[DecisionOut]


class ReviewPage(BaseModel):
    """Findings, newest first; `after` leads to the next page, null when there is none."""

    reviews: list[ReviewOut]
    after: int | None


class ExchangeOut(BaseModel):
    """A stored exchange in a list. Question and answer are null if the store keeps no content."""

    id: str
    at: datetime
    tenant: str
    subject: str | None
    session: str | None
    intent: str | None
    model: str
    status: str
    verdict: str
    score: float | None
    confidence: float | None
    consistency: float | None
    risk: float | None
    quality: float | None
    flags: list[str]
    claims: int
    checked: int
    supported: int
    contradicted: int
    unsupported: int
    total_ms: float
    upstream_ms: float | None
    input_tokens: int | None
    output_tokens: int | None
    question: str | None
    answer: str | None


class ExchangePage(BaseModel):
    """Exchanges, newest first; `after` leads to the next page, null when there is none."""

    exchanges: list[ExchangeOut]
    after: int | None


class SimilarOut(ExchangeOut):
    """A stored exchange and the similarity of its question (Dice's coefficient of words, 0–1)."""

    similarity: float


class SimilarPage(BaseModel):
    """Exchanges with similar questions, the most similar first."""

    exchanges: list[SimilarOut]


class MentionOut(BaseModel):
    """One statement about an entity, with its exchange and time."""

    exchange: str
    at: datetime
    statement: str


class EntityOut(BaseModel):
    """A name and the statements about it, oldest first."""

    name: str
    mentions: list[MentionOut]


class EntityHistory(BaseModel):
    """The names in the newest answers to a subject, the most mentioned first."""

    subject: str
    entities: list[EntityOut]


class FiguresOut(BaseModel):
    """Figures over some exchanges; means and shares are 0–1, null where nothing was counted.

    `latency_ms` is the time of verification, `upstream_ms` the mean time of the model server; `tokens` are means too.
    """

    exchanges: int
    flagged_share: float | None
    verdicts: dict[str, int]
    claims: int
    checked: int
    labels: dict[str, int]
    mean: dict[str, float | None]
    latency_ms: dict[str, float | None]
    upstream_ms: float | None
    tokens: dict[str, float | None]
    cache_hit_rate: float | None


class TotalOut(FiguresOut):
    """Figures of one model, subject or flag over all days; `key` is "" for all exchanges."""

    key: str


class DayOut(TotalOut):
    """Figures of one model, subject or flag on one day (UTC)."""

    day: date


class PrecisionOut(BaseModel):
    """The precision of a flag by reviewers' decisions, with its 95 % interval; `verifier` is "" if no claim is
    concerned.
    """

    flag: str
    verifier: str
    confirmed: int
    rejected: int
    precision: float
    interval: tuple[float, float]


class RatioOut(BaseModel):
    """A share (0–1) of a number of cases, with its 95 % interval."""

    count: int
    of: int
    value: float
    interval: tuple[float, float]


class AccuracyOut(BaseModel):
    """Reviewed claims of a verifier: flagged by it or passed, and found wrong or right.

    `precision` is the share of the flagged claims that are wrong, `recall` the share of the wrong claims that were
    flagged.
    """

    verifier: str
    flagged_wrong: int
    flagged_right: int
    passed_wrong: int
    passed_right: int
    precision: RatioOut | None
    recall: RatioOut | None


class Metrics(BaseModel):
    """Quality trends, and the accuracy of flags and verifiers by the decisions of reviewers.

    `agreement` is the share of what two or more have decided on, on which all of them agree.
    """

    model_config = ConfigDict(populate_by_name=True)

    from_: Annotated[date, Field(serialization_alias="from")]
    to: date
    by: str
    totals: list[TotalOut]
    days: list[DayOut]
    precision: list[PrecisionOut]
    verifiers: list[AccuracyOut]
    agreement: RatioOut | None


class Forgotten(BaseModel):
    """The number of exchanges deleted for a subject."""

    subject: str
    deleted: int


def read_asked(shape: type[Q], given: Mapping[str, Any]) -> Q:
    """Parse query parameters or a body of this shape. Raises BadRequest, naming the invalid key."""
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_context=False)[0]
        path = ".".join(str(step) for step in first["loc"])
        if first["type"] == "extra_forbidden":
            operator = "there is an unknown key"  # the key may be any text
            raise BadRequest(f"'{path}' is not known here", param=path, operator=operator) from error
        raise BadRequest(f"'{path}': {first['msg']}", param=path) from error
