"""The values that the history stores and returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from groundwire.domain import Choice, Intent, Source
from groundwire.report import Report

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

    `question` is the last message of the user, `asked` its interrogative sentence, `prompt` all messages.

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

    Texts are None if the store keeps no content.
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
    total_ms: float
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


@dataclass(frozen=True, slots=True)
class Query:
    """Select exchanges that meet all conditions. Every word in `text` must occur, in any order.

    Words joined by punctuation, such as 4.2, occur in that order. `since` and `until` are Unix seconds, half-open.
    Without a `tenant`, those of all tenants are selected.
    """

    subject: str | None = None
    session: str | None = None
    model: str | None = None
    flag: str | None = None
    text: str | None = None
    since: float | None = None
    until: float | None = None
    tenant: str | None = None


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
