"""Search for patterns right before a place in a text, within a bounded distance.

This keeps the time for many places linear.
"""

from __future__ import annotations

import re

_REACH = 100  # characters


def search_before(pattern: re.Pattern[str], text: str, place: int, reach: int = _REACH) -> re.Match[str] | None:
    """Return the match right before `place` of a pattern that ends in `$`."""
    return pattern.search(text, max(0, place - reach), place)


def last_end(pattern: re.Pattern[str], text: str, place: int, reach: int = 4 * _REACH) -> int:
    """Return the end of the last match before `place`, or the start of the searched text if there is none."""
    low = max(0, place - reach)
    return max((found.end() for found in pattern.finditer(text, low, place)), default=low)
