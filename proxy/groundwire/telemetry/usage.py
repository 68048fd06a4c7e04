"""Token counts of one answer, in OpenAI's terms or Anthropic's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer, None if not reported; `input` includes those read from and written to a cache."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_written: int | None = None
    reasoning: int | None = None

    @staticmethod
    def of(told: Mapping[str, Any]) -> Usage:
        """Read the `usage` of a reply. Anthropic counts cached tokens separately from the input."""
        read, written = _count(told, "cache_read_input_tokens"), _count(told, "cache_creation_input_tokens")
        given = _count(told, "prompt_tokens", "input_tokens")
        asked = _details(told, "prompt_tokens_details", "input_tokens_details")
        said = _details(told, "completion_tokens_details", "output_tokens_details")
        return Usage(
            None if given is None else given + (read or 0) + (written or 0),
            _count(told, "completion_tokens", "output_tokens"),
            _count(asked, "cached_tokens") if asked else read,
            written,
            _count(said, "reasoning_tokens") if said else None,
        )


def _count(told: Mapping[str, Any], *names: str) -> int | None:
    """Return the count under the first of these names that is present."""
    for name in names:
        count = told.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
            return count
    return None


def _details(told: Mapping[str, Any], *names: str) -> Mapping[str, Any] | None:
    for name in names:
        found = told.get(name)
        if isinstance(found, Mapping):
            return found
    return None
