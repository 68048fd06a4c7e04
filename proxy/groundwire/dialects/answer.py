"""Accumulate an answer in any dialect, from stream events or from one whole body."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from groundwire.dialects.dialect import Body, ChoiceDelta, Dialect, member
from groundwire.domain import Choice, Part, Source, SourceKind

_KEPT = 2**19  # characters of answer text kept for verification, and as many of arguments: about 128k tokens
_GIVEN = 4 * 2**20  # characters of tool output kept
MAX_CHOICES = 512  # maximum number of choices kept; OpenAI's models return 128 at most


class Answer:
    """The choices of one answer received so far. `expected` is the number of choices requested.

    Only the start of a very long answer is kept; `unread` of each choice is the number of characters dropped. Choices
    beyond `MAX_CHOICES` are dropped and counted in `unread` of the first.
    """

    def __init__(self, dialect: Dialect, expected: int) -> None:
        self._dialect = dialect
        self._expected = expected
        self._head: dict[str, Any] = {}
        self._texts: dict[int, list[str]] = defaultdict(list)
        self._arguments: dict[int, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        self._probabilities: dict[int, tuple[float, int]] = {}  # sum and count
        self._argument_length = 0
        self._reasons: dict[int, str | None] = {}
        self._unread: dict[int, int] = defaultdict(int)
        self._given: list[Part] = []
        self._given_length = 0
        self._reason: str | None = None
        self.length = 0
        self.usage: Mapping[str, Any] = {}

    @classmethod
    def whole(cls, dialect: Dialect, body: Body) -> Answer:
        """Build the answer from a whole body, not streamed."""
        answer = cls(dialect, expected=1)
        answer.add(body)
        return answer

    def add(self, event: Body) -> None:
        """Add one decoded event."""
        parsed = self._dialect.parse_event(event)
        if parsed.head and not self._head:
            self._head = {key: parsed.head[key] for key in ("id", "created", "model") if key in parsed.head}
        if parsed.usage is not None:
            self.usage = {**self.usage, **parsed.usage}
        for index, piece in parsed.pieces:
            self._add(index, piece)
        for part in parsed.given:
            self._take(part)
        self._reason = parsed.finish_reason or self._reason

    def _add(self, index: int, piece: ChoiceDelta) -> None:
        if index not in self._reasons and len(self._reasons) >= MAX_CHOICES:
            self._unread[next(iter(self._reasons))] += len(piece.text)
            return
        self._reasons.setdefault(index, None)
        if piece.repeats and (index in self._texts or index in self._arguments):
            return
        if piece.text:
            self.length += self._keep(index, self._texts[index], piece.text, _KEPT - self.length)
        if piece.probabilities:
            total, count = self._probabilities.get(index, (0.0, 0))
            self._probabilities[index] = (total + sum(piece.probabilities), count + len(piece.probabilities))
        if piece.finish_reason:
            self._reasons[index] = piece.finish_reason
        for call, fragment in piece.arguments.items():
            room = _KEPT - self._argument_length
            self._argument_length += self._keep(index, self._arguments[index][call], fragment, room)

    def _take(self, part: Part) -> None:
        """Keep a part of tool output, unless the total then exceeds `_GIVEN` characters."""
        if self._given_length + len(part.text) <= _GIVEN:
            self._given_length += len(part.text)
            self._given.append(part)

    def _keep(self, index: int, fragments: list[str], more: str, room: int) -> int:
        """Append as much of `more` as `room` allows and return the length appended."""
        kept = more[: max(0, room)]
        if kept:
            fragments.append(kept)
        self._unread[index] += len(more) - len(kept)
        return len(kept)

    def choices(self, *, with_arguments: bool = False) -> tuple[Choice, ...]:
        """Return the choices received so far, in order, with the arguments of tool calls only on request."""
        found = [
            Choice(
                index,
                "".join(self._texts.get(index, ())),
                reason or self._reason,
                _mean(*self._probabilities.get(index, (0.0, 0))),
                self._joined_arguments(index) if with_arguments else (),
                self._unread[index],
            )
            for index, reason in sorted(self._reasons.items())
        ]
        return tuple(self._dialect.choices(found))

    def _joined_arguments(self, index: int) -> tuple[str, ...]:
        return tuple("".join(fragments) for _, fragments in sorted(self._arguments.get(index, {}).items()))

    @property
    def id(self) -> str | None:
        """The id that the upstream gave the answer."""
        return _string(self._head.get("id"))

    @property
    def model(self) -> str | None:
        """The name that the upstream gives the answering model."""
        return _string(self._head.get("model"))

    @property
    def prompt_tokens(self) -> int | None:
        """The number of prompt tokens that the upstream reports, including cached ones."""
        read, cached = self.usage.get("prompt_tokens"), member(self.usage, "prompt_tokens_details").get("cached_tokens")
        if type(read) is not int:
            return None
        return read + cached if type(cached) is int and cached > read else read

    @property
    def given(self) -> tuple[Source, ...]:
        """The output of tools that ran at the model server, as sources; the request does not contain it."""
        return tuple(_source(number, part) for number, part in enumerate(self._given, start=1))

    @property
    def finish_reasons(self) -> tuple[str, ...]:
        """The finish reasons received so far, in the order of the choices; choices without one are left out."""
        found = tuple(reason for _, reason in sorted(self._reasons.items()) if reason)
        return found or ((self._reason,) if self._reason else ())

    @property
    def is_finished(self) -> bool:
        """True when every choice, requested or received, has its finish reason."""
        return self._reason is not None or len(self.finish_reasons) >= max(self._expected, len(self._reasons))

    @property
    def is_cut_short(self) -> bool:
        """True when nothing was received, or a choice received has no finish reason yet."""
        return self._reason is None and (not self._reasons or None in self._reasons.values())

    @property
    def own_event(self) -> Body:
        """An event without content, to which the verdict on this answer can be added."""
        return self._dialect.own_event(self._head)


def _source(number: int, part: Part) -> Source:
    labels = tuple(filter(None, (part.id, part.title)))
    kind: SourceKind = "document" if part.kind == "document" else "tool"
    label = next(iter(labels), None)
    return Source(
        part.id or f"answer.{number}", kind, part.text, title=part.title, labels=labels, label=label, url=part.url
    )


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None
