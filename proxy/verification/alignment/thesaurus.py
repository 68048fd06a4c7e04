"""What general English says of two words: whether they mean the same, one says more, or each denies the other.

`thesaurus.txt` is drawn from WordNet 3.0, whose licence stands in `thesaurus.license`, by `python -m bench.thesaurus`:
a line for each stem, sorted, with three lists between tabs.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.resources import files
from sys import intern
from typing import NamedTuple

from proxy.verification.alignment.lexicon import base, forms

FILE = "thesaurus.txt"


class Entry(NamedTuple):
    """The stems related to one: those `alike` mean it or derive from it, `narrower` ones say it and more, `opposite`
    ones deny it.
    """

    alike: frozenset[str]
    narrower: frozenset[str]
    opposite: frozenset[str]


_NONE = Entry(frozenset(), frozenset(), frozenset())


@lru_cache(maxsize=8192)
def related(word: str) -> Entry:
    """What is related to the stem `word`, irregular forms included; nothing for a word that is not listed.

    "Dog" is narrower than "animal": where a source has it, a claim about an animal is stated, and not the reverse.
    """
    line = _line(base(word).encode("utf-8", "replace"))
    return Entry(*map(_stems, line.split("\t")[1:])) if line else _NONE


def _stems(listed: str) -> frozenset[str]:
    return frozenset(intern(form) for stem in listed.split() for form in (stem, *forms(stem)))


def _line(word: bytes) -> str:
    """The line of a word, by bisection; "" when there is none."""
    text, key = _text(), word + b"\t"
    low, high = 0, len(text)
    while low < high:
        start = text.rfind(b"\n", 0, (low + high) // 2) + 1
        end = text.index(b"\n", start)
        if text.startswith(key, start):
            return text[start:end].decode("ascii")
        if text[start : text.index(b"\t", start)] < word:
            low = end + 1
        else:
            high = start
    return ""


@cache
def _text() -> bytes:
    """The file, read once."""
    return files("proxy.verification.alignment").joinpath(FILE).read_bytes()
