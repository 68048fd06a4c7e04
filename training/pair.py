"""One training pair, and which characters of a claim differ from another claim."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

Span = tuple[int, int]

_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Pair:
    """A claim beside its evidence. `truth` is 1 where that supports it, else 0; `origin` says where the pair is from.

    `bad` are the characters that make it wrong, half-open; None where nobody knows.
    """

    claim: str
    evidence: str
    truth: int
    origin: str
    bad: list[Span] | None = None


def changed(before: str, after: str) -> list[Span]:
    """The characters of `after` in no common run of words with `before`; what is left out marks the next word."""
    one, other = list(_TOKEN.finditer(before)), list(_TOKEN.finditer(after))
    matcher = difflib.SequenceMatcher(
        None, [each.group() for each in one], [each.group() for each in other], autojunk=False
    )
    marked = [other[low : max(high, low + 1)] for kind, _, _, low, high in matcher.get_opcodes() if kind != "equal"]
    return [(tokens[0].start(), tokens[-1].end()) for tokens in marked if tokens]
