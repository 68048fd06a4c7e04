"""An answer as it grows: one event after the other, or a whole body as a single one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from proxy.types import Choice, Message


@dataclass(frozen=True, slots=True)
class Piece:
    """What one choice of one event adds; `arguments` are fragments of tool-call arguments by the call's index."""

    text: str = ""
    finish_reason: str | None = None
    probabilities: Sequence[float] = ()
    arguments: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One wire shape, as pure functions of decoded JSON that read what they understand and never raise.

    `operation` is its name in OpenTelemetry's GenAI conventions, `chunk` the `object` of its streamed events,
    `messages` what a request says, and `piece` what one entry of `choices` says, whole or as a delta.
    """

    operation: Literal["chat", "text_completion"]
    chunk: str
    messages: Callable[[Mapping[str, Any]], tuple[Message, ...]]
    piece: Callable[[Mapping[str, Any]], Piece]

    def whole(self, body: Mapping[str, Any]) -> Answer:
        """The answer that a body which did not stream holds."""
        answer = Answer(self, expected=1)
        answer.add(body)
        return answer


_KEPT = 4 * 2**20  # characters of an answer that are kept to be verified, over all its choices


class Answer:
    """The choices of one answer, as far as they have come. `expected` is how many were asked for.

    Of an answer of extraordinary length only the start is kept; each choice counts what is `unread` of it.
    """

    def __init__(self, dialect: Dialect, expected: int) -> None:
        self._dialect = dialect
        self._expected = expected
        self._head: dict[str, Any] = {}
        self._texts: dict[int, list[str]] = defaultdict(list)
        self._arguments: dict[int, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        self._probabilities: dict[int, list[float]] = defaultdict(list)
        self._reasons: dict[int, str | None] = {}
        self._unread: dict[int, int] = defaultdict(int)
        self.length = 0
        self.usage: Mapping[str, Any] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        """Takes in one decoded event."""
        if not self._head:
            self._head = {key: event[key] for key in ("id", "created", "model") if key in event}
        if isinstance(usage := event.get("usage"), dict):
            self.usage = usage
        for at, choice in enumerate(dicts(event.get("choices"))):
            self._add(index_of(choice, at), self._dialect.piece(choice))

    def _add(self, index: int, piece: Piece) -> None:
        self._reasons.setdefault(index, None)
        if piece.text:
            kept = piece.text[: max(0, _KEPT - self.length)]
            self._texts[index].append(kept)
            self._unread[index] += len(piece.text) - len(kept)
            self.length += len(kept)
        if piece.probabilities:
            self._probabilities[index].extend(piece.probabilities)
        if piece.finish_reason:
            self._reasons[index] = piece.finish_reason
        for call, fragment in piece.arguments.items():
            self._arguments[index][call].append(fragment)

    def choices(self, *, with_arguments: bool = False) -> tuple[Choice, ...]:
        """Every choice as far as it has come, by index."""
        return tuple(
            Choice(
                index,
                "".join(self._texts.get(index, ())),
                reason,
                _mean(self._probabilities.get(index, ())),
                self._joined_arguments(index) if with_arguments else (),
                self._unread[index],
            )
            for index, reason in sorted(self._reasons.items())
        )

    def _joined_arguments(self, index: int) -> tuple[str, ...]:
        return tuple("".join(fragments) for _, fragments in sorted(self._arguments.get(index, {}).items()))

    @property
    def id(self) -> str | None:
        """The upstream's id of the answer."""
        return _string(self._head.get("id"))

    @property
    def model(self) -> str | None:
        """The model that answered, as the upstream names it."""
        return _string(self._head.get("model"))

    @property
    def finish_reasons(self) -> tuple[str, ...]:
        """The finish reasons that have come, by choice."""
        return tuple(reason for _, reason in sorted(self._reasons.items()) if reason)

    @property
    def is_finished(self) -> bool:
        """Whether every choice that was asked for, and every other that has begun, has its finish reason."""
        return len(self.finish_reasons) >= max(self._expected, len(self._reasons))

    @property
    def is_cut_short(self) -> bool:
        """Whether nothing came, or a choice began and never ended."""
        return not self._reasons or None in self._reasons.values()

    def empty_event(self) -> dict[str, Any]:
        """An event of this answer with no choices, for a verdict to ride on."""
        return {**self._head, "object": self._dialect.chunk, "choices": []}


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a JSON array; nothing for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def index_of(value: Mapping[str, Any], default: int) -> int:
    """The `index` that an object states, else `default`."""
    index = value.get("index")
    return index if isinstance(index, int) else default


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None
