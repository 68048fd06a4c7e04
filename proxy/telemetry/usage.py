"""What a model server tells of the tokens of one answer, in OpenAI's words or in Anthropic's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer, None where nothing is told; `input` holds those read from and written to a cache."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_written: int | None = None
    reasoning: int | None = None

    @staticmethod
    def of(told: Mapping[str, Any]) -> Usage:
        """What the `usage` of a reply tells. Anthropic counts the tokens of its cache apart from the input."""
        apart = _count(told, "cache_read_input_tokens"), _count(told, "cache_creation_input_tokens")
        given = _first(_count(told, "prompt_tokens"), _count(told, "input_tokens"))
        asked = _details(told, "prompt_tokens_details", "input_tokens_details")
        said = _details(told, "completion_tokens_details", "output_tokens_details")
        return Usage(
            None if given is None else given + sum(each or 0 for each in apart),
            _first(_count(told, "completion_tokens"), _count(told, "output_tokens")),
            _first(_count(asked, "cached_tokens"), apart[0]),
            apart[1],
            _count(said, "reasoning_tokens"),
        )


def _count(told: Mapping[str, Any], name: str) -> int | None:
    count = told.get(name)
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


def _details(told: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((found for name in names if isinstance(found := told.get(name), Mapping)), {})
