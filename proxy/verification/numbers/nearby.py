"""Patterns looked for right before a place in a text, within a bounded reach, so that many places take linear time."""

from __future__ import annotations

import re

_REACH = 100  # characters


def search_before(pattern: re.Pattern[str], text: str, place: int, reach: int = _REACH) -> re.Match[str] | None:
    """Return the match of a pattern that ends in `$` right before `place`."""
    return pattern.search(text, max(0, place - reach), place)


def last_end(pattern: re.Pattern[str], text: str, place: int, reach: int = 4 * _REACH) -> int:
    """Return where the last match before `place` ends, or where the reach begins when there is none."""
    low = max(0, place - reach)
    return max((found.end() for found in pattern.finditer(text, low, place)), default=low)
