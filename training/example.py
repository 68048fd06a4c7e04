"""One training example, and which characters of a claim differ from another claim."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

Span = tuple[int, int]

SUPPORTED, CONTRADICTED, UNSUPPORTED, NOT_SUPPORTED = range(4)
"""Labels as the model's outputs are ordered; the last one represents either of the two before it."""

_TOKEN = re.compile(r"\w+|[^\w\s]")
_TWIN = 0.7  # how alike a wrong claim is to the right one that it differs from in a few words


@dataclass(frozen=True, slots=True)
class Example:
    """A claim with its lead and its evidence. `wrong` are the spans that make it wrong, None where nobody knows."""

    claim: str
    lead: str
    evidence: str
    label: int
    origin: str
    weight: float = 1.0
    wrong: list[Span] | None = None


def changed(before: str, after: str) -> list[Span]:
    """Return the spans of `after` in no common run of words with `before`. What was left out marks the next word."""
    one, other = list(_TOKEN.finditer(before)), list(_TOKEN.finditer(after))
    matcher = difflib.SequenceMatcher(
        None, [each.group() for each in one], [each.group() for each in other], autojunk=False
    )
    marked = [other[low : max(high, low + 1)] for kind, _, _, low, high in matcher.get_opcodes() if kind != "equal"]
    return [(tokens[0].start(), tokens[-1].end()) for tokens in marked if tokens]


def difference(right: list[str], wrong: str) -> list[Span] | None:
    """Return the spans in which a wrong claim differs from the right one most like it; None when none is like it."""
    best, likeness = "", 0.0
    for each in right:
        matcher = difflib.SequenceMatcher(None, each, wrong, autojunk=False)
        least = max(_TWIN, likeness)
        if matcher.real_quick_ratio() > least and matcher.quick_ratio() > least and matcher.ratio() > least:
            best, likeness = each, matcher.ratio()
    return changed(best, wrong) if likeness > _TWIN else None
