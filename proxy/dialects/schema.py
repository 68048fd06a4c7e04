"""The report as a schema, for those who read the OpenAPI document; `report.render` makes what it describes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from proxy.dialects.checks import AnswerCheck
from proxy.dialects.options import Options
from proxy.types import AnswerVerdict, ClaimKind, Label, Match, SourceKind, Status

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Told(BaseModel):
    """A part of a report. Later versions may tell more."""

    model_config = ConfigDict(extra="allow")


class Citation(Told):
    """Where evidence stands: a half-open span of the source's original text."""

    source: str
    start: int
    end: int
    text: str
    score: Share
    match: Match


class Claim(Told):
    """One assertion of the answer with its verdict; `budget` is there when a model was asked about it."""

    id: str
    text: str
    start: int
    end: int
    pointer: str | None = None
    kind: ClaimKind
    label: Label
    score: Share | None
    confidence: Share | None
    verifier: str | None
    method: str
    reason: str
    skip_reason: str | None = None
    citations: list[Citation]
    budget: dict[str, Any] | None = None


class ReportChoice(Told):
    """What was found in one choice."""

    index: int
    verdict: AnswerVerdict
    score: Share | None
    claims: list[Claim] = []


class ReportSource(Told):
    """A source that was used: its kind, its place and its size, without its text."""

    id: str
    kind: SourceKind
    message_index: int | None = None
    part_index: int | None = None
    title: str | None = None
    chars: int
    sha256: str


class GroundingReport(Told):
    """All verdicts on one answer and their aggregate. A pending report holds the first lines only."""

    id: str
    version: int
    status: Status
    verdict: AnswerVerdict
    score: Share | None
    offset_unit: Literal["codepoint", "utf16"]
    flags: list[str]
    warnings: list[str]
    coverage: dict[str, float] | None = None
    confidence: dict[str, Any] | None = None
    risk: dict[str, Any] | None = None
    quality: Share | None = None
    consistency: dict[str, Any] | None = None
    sources: list[ReportSource] = []
    choices: list[ReportChoice] = []
    quotes: dict[str, Any] | None = None
    numeric: dict[str, Any] | None = None
    cache: dict[str, Any] | None = None
    timing_ms: dict[str, float] = {}
    degraded: list[dict[str, str]] = []
    config: str = ""


class VerifyBody(AnswerCheck, Options):
    """An answer to be verified, with what else `grounding` takes beside it."""


class Failure(BaseModel):
    """An error in OpenAI's shape."""

    message: str
    type: str
    param: str | None
    code: str | None


class FailureBody(BaseModel):
    """What every error is told as."""

    error: Failure
