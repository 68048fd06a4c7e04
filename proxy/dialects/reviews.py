"""The wire shapes of what is stored: the review queue, decisions, trends, and lists of exchanges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from proxy.errors import BadRequest

Q = TypeVar("Q", bound="Asked")

Verdict = Literal["confirmed", "rejected"]
State = Literal["open", "confirmed", "rejected", "decided", "any"]

LONGEST_NOTE = 4000  # characters


def _moment(value: Any) -> Any:
    """A day or a time without a zone is UTC's; Unix seconds are taken too."""
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            return value
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return value


def _given(value: Any) -> Any:
    """An empty field of a form says nothing."""
    return None if value == "" else value


Text = Annotated[Annotated[str, Field(max_length=500)] | None, BeforeValidator(_given)]
Moment = Annotated[AwareDatetime | None, BeforeValidator(_moment), BeforeValidator(_given)]
Limit = Annotated[int, Field(ge=1, le=200)]
After = Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(_given)]


class Asked(BaseModel):
    """What is asked for; an unknown key or a value of the wrong type is refused by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ReviewFilter(Asked):
    """Which findings are wanted: all conditions hold at once, `since` and `until` of when the answer was given."""

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
    """One page of findings; `after` is that of the page before."""

    after: After = None
    limit: Limit = 50


class ExportQuery(ReviewFilter):
    """The findings that go into a file."""

    state: State = "decided"
    format: Literal["csv", "jsonl"] = "jsonl"


class DecisionIn(Asked):
    """What a reviewer decides on a finding as it was at `version`."""

    decision: Verdict
    version: Annotated[int, Field(ge=0)]
    note: Annotated[str, Field(max_length=LONGEST_NOTE)] = ""


class ExchangeQuery(Asked):
    """Which stored exchanges are wanted; `q` holds words that all occur in question or answer."""

    subject: Text = None
    session: Text = None
    model: Text = None
    flag: Text = None
    tenant: Text = None
    q: Text = None
    since: Moment = None
    until: Moment = None
    after: After = None
    limit: Limit = 50


class SimilarQuery(Asked):
    """Whose questions are wanted: those that share the most words with `q`, of one subject or of all."""

    q: Annotated[str, Field(min_length=1, max_length=4000)]
    subject: Text = None
    tenant: Text = None
    limit: Annotated[int, Field(ge=1, le=50)] = 10


class SubjectQuery(Asked):
    """Whose subject is meant: that of one tenant, or, without it, those of this name of all tenants."""

    tenant: Text = None


class MetricsQuery(Asked):
    """Of which days (the first and the last, in UTC) trends are wanted, and whether apart by model, subject or flag."""

    from_: Annotated[date | None, BeforeValidator(_given), Field(alias="from")] = None
    to: Annotated[date | None, BeforeValidator(_given)] = None
    by: Literal["all", "model", "subject", "flag"] = "all"


class CitationOut(BaseModel):
    """Where evidence stands: a span of the source's original text, in code points."""

    source: str
    start: int
    end: int
    text: str
    score: float
    match: str


class DecisionOut(BaseModel):
    """What was decided, by whom and when."""

    decision: Verdict
    who: str
    at: datetime
    note: str


class ReviewOut(BaseModel):
    """A finding: a flagged claim, or, where `claim` is null, a flag on the answer as a whole.

    `question` is the user's last message. `original_confidence` is that with which the answer states the claim,
    `confidence` that in the verdict on it. Evidence with the match `history` is a statement of an earlier exchange,
    which `source` names.
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
    """A finding with every decision that was made on it, oldest first."""

    decisions: list[DecisionOut]


class ReviewPage(BaseModel):
    """Findings, newest first; `after` leads to the next page, null when there is none."""

    reviews: list[ReviewOut]
    after: int | None


class ExchangeOut(BaseModel):
    """A stored exchange as a list shows it. Question and answer are null where the store keeps no content."""

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
    question: str | None
    answer: str | None


class ExchangePage(BaseModel):
    """Exchanges, newest first; `after` leads to the next page, null when there is none."""

    exchanges: list[ExchangeOut]
    after: int | None


class SimilarOut(ExchangeOut):
    """An exchange, with the share of words (Dice's coefficient, 0–1) that its question has in common."""

    similarity: float


class SimilarPage(BaseModel):
    """Exchanges with similar questions, the most similar first."""

    exchanges: list[SimilarOut]


class MentionOut(BaseModel):
    """One statement about an entity, in the exchange and at the time that it was made."""

    exchange: str
    at: datetime
    statement: str


class EntityOut(BaseModel):
    """A name, and what was said of it, oldest first."""

    name: str
    mentions: list[MentionOut]


class EntityHistory(BaseModel):
    """The names in the newest answers to a subject, the most mentioned first."""

    subject: str
    entities: list[EntityOut]


class FiguresOut(BaseModel):
    """Figures of some exchanges; means and shares are 0–1, null where nothing was counted."""

    exchanges: int
    flagged_share: float | None
    verdicts: dict[str, int]
    claims: int
    checked: int
    labels: dict[str, int]
    mean: dict[str, float | None]
    latency_ms: dict[str, float | None]
    cache_hit_rate: float | None


class TotalOut(FiguresOut):
    """Figures of one model, subject or flag over all days; `key` is "" for all exchanges."""

    key: str


class DayOut(TotalOut):
    """The same of one day, in UTC."""

    day: date


class PrecisionOut(BaseModel):
    """How often a flag of a verifier ("" where no claim is concerned) was right, between which bounds (95 %)."""

    flag: str
    verifier: str
    confirmed: int
    rejected: int
    precision: float
    interval: tuple[float, float]


class Metrics(BaseModel):
    """Quality trends, and the live precision of flags by the decisions of reviewers."""

    model_config = ConfigDict(populate_by_name=True)

    from_: Annotated[date, Field(serialization_alias="from")]
    to: date
    by: str
    totals: list[TotalOut]
    days: list[DayOut]
    precision: list[PrecisionOut]


class Forgotten(BaseModel):
    """How many exchanges of a subject were deleted."""

    subject: str
    deleted: int


def read_asked(shape: type[Q], given: Mapping[str, Any]) -> Q:
    """Parameters or a body of this shape. Raises BadRequest, naming the key that is wrong."""
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_context=False)[0]
        path = ".".join(str(step) for step in first["loc"])
        if first["type"] == "extra_forbidden":
            told = "there is an unknown key"  # its name may be anything
            raise BadRequest(f"'{path}' is not known here", param=path, operator=told) from error
        raise BadRequest(f"'{path}': {first['msg']}", param=path) from error


def flat(parameters: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Parameters of a query or fields of a form, the last value of each."""
    return {name: values[-1] for name, values in parameters.items()}
