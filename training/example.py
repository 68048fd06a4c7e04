"""One training example, and which characters of a claim differ from another claim."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
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


def twin(right: Sequence[str], wrong: str) -> str | None:
    """Return the right claim that is most like a wrong one; None when none is like it."""
    best, likeness = None, _TWIN
    for each in right:
        matcher = difflib.SequenceMatcher(None, each, wrong, autojunk=False)
        if matcher.real_quick_ratio() > likeness and matcher.quick_ratio() > likeness and matcher.ratio() > likeness:
            best, likeness = each, matcher.ratio()
    return best


def difference(right: Sequence[str], wrong: str) -> list[Span] | None:
    """Return the spans in which a wrong claim differs from the right one most like it; None when none is like it."""
    best = twin(right, wrong)
    return None if best is None else changed(best, wrong)
