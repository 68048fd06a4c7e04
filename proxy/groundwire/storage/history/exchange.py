"""The values that the history stores and returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from groundwire.domain import Choice, Intent, Source
from groundwire.report import TOOL_CALL, Report

T = TypeVar("T")

Content = Literal["full", "hashes"]

HISTORY = "history"
"""The match of evidence that is a statement of an earlier answer; its source is the exchange."""

_OVERHEAD = 2000  # characters that an entry takes in addition to its texts


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a request; a long text is truncated."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One exchange with its report. `at` is in Unix seconds; `kept` is the report in its wire form, as JSON.

    `question` is the last message of the user, `asked` its interrogative sentence, `prompt` all messages. The model
    server counts the tokens, and took `upstream_ms`; None: unknown.

    An entry replaces an earlier one with the same id, keeping its time, unless it is deferred and the earlier one is
    not.
    """

    at: float
    report: Report
    kept: bytes
    model: str
    question: str = ""
    choices: tuple[Choice, ...] = ()
    subject: str | None = None
    session: str | None = None
    intent: Intent | None = None
    asked: str = ""
    prompt: tuple[PromptMessage, ...] = ()
    tenant: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    upstream_ms: float | None = None

    @property
    def id(self) -> str:
        """The id of the report, which also identifies the exchange."""
        return self.report.id

    @property
    def size(self) -> int:
        """The approximate size in characters."""
        answers = sum(len(choice.text) + sum(map(len, choice.arguments)) for choice in self.choices)
        sources = sum(len(source.text) for source in self.report.sources)
        prompt = sum(len(message.text) for message in self.prompt)
        return _OVERHEAD + len(self.kept) + len(self.question) + len(self.asked) + answers + sources + prompt


@dataclass(frozen=True, slots=True)
class Summary:
    """An exchange in a list: `question` is the user's last message, `asked` its interrogative sentence.

    `claims` counts all claims, `checked` those with a verdict. Texts are None if the store keeps no content.
    """

    seq: int
    id: str
    at: float
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
    flags: tuple[str, ...]
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
    asked: str | None
    tenant: str


@dataclass(frozen=True, slots=True)
class Stored:
    """An exchange with all its stored parts: `report` in its wire form, answers by choice, and sources.

    The text of a source is the passage that was verified, `offset` code points into its original, to which citations
    refer. If the store keeps no content, texts are empty, and claims and sources have their length and digest.
    """

    summary: Summary
    report: Mapping[str, Any]
    choices: tuple[Choice, ...]
    sources: tuple[Source, ...]
    prompt: tuple[PromptMessage, ...] = ()

    def texts(self, choice: int) -> tuple[str, ...]:
        """Return the texts of a choice: its answer, and the arguments of its tool calls."""
        return next(((each.text, *each.arguments) for each in self.choices if each.index == choice), ("",))

    def place(self, choice: int, claim: Mapping[str, Any]) -> tuple[int, int, int]:
        """Return the index of a claim's text in `texts`, and its span there in code points."""
        texts = self.texts(choice)
        call = TOOL_CALL.match(claim.get("pointer") or "")
        at = min(int(call[1]) + 1 if call else 0, len(texts) - 1)
        start, end = claim["start"], claim["end"]
        if self.report.get("offset_unit") == "utf16" and texts[at]:
            units = texts[at].encode("utf-16-le", "surrogatepass")
            start, end = (len(units[: 2 * edge].decode("utf-16-le", "replace")) for edge in (start, end))
        return at, start, end


Reviewed = Literal["open", "decided"]
"""The state of review of an exchange: a finding of it is open, or a claim of it is decided on."""


@dataclass(frozen=True, slots=True)
class Query:
    """Select exchanges that meet all conditions. Every word in `text` must occur, in any order.

    Words joined by punctuation, such as 4.2, occur in that order. `since` and `until` are Unix seconds, half-open.
    Without a `tenant`, those of all tenants are selected. `verifier` selects those with a claim that it flagged.
    `by_risk` lists those that have a risk, the highest first.
    """

    subject: str | None = None
    session: str | None = None
    model: str | None = None
    flag: str | None = None
    text: str | None = None
    since: float | None = None
    until: float | None = None
    tenant: str | None = None
    verdict: str | None = None
    verifier: str | None = None
    state: Reviewed | None = None
    by_risk: bool = False


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Items, newest first, and the `after` for the next page (None: there is none)."""

    items: Sequence[T] = field(default_factory=tuple)
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Similar:
    """An earlier exchange with a similar question, and the similarity (0–1)."""

    exchange: Summary
    similarity: float
