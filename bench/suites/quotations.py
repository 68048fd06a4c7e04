"""Quotations with one word changed, and the same quotations in the typography that answers use."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bench.suites.case import Case

_FRAMES = ("The text says: {}.", "It states {}.", "According to the source, {}.", "{}, the document notes.")
_SOFT_HYPHEN, _HARD_HYPHEN, _NO_BREAK_SPACE = "\u00ad", "\u2011", "\u00a0"


def _hyphenated(quote: str) -> str:
    return re.sub(r"([a-z]{4})([a-z]{3})", rf"\1{_SOFT_HYPHEN}\2", quote)


def _with_ligatures(quote: str) -> str:
    return quote.replace("fi", "\ufb01").replace("fl", "\ufb02")


def _emphasised(quote: str) -> str:
    first, _, rest = quote.partition(" ")
    return f"{first} <b>{rest}</b>"


_TYPOGRAPHY: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("straight marks", lambda quote: f'"{quote}"'),
    ("curly marks and apostrophes", lambda quote: f"“{quote.replace(chr(39), '’')}”"),
    ("guillemets", lambda quote: f"«{quote}»"),
    ("low German marks", lambda quote: f"„{quote}“"),
    ("stop inside the marks", lambda quote: f'"{quote}."'),
    ("no-break spaces", lambda quote: f'"{re.sub("(?<=[0-9]) ", _NO_BREAK_SPACE, quote)}"'),
    ("other dashes", lambda quote: f'"{re.sub("[-–]", _HARD_HYPHEN, quote)}"'),
    ("decomposed letters", lambda quote: f'"{unicodedata.normalize("NFD", quote)}"'),
    ("ligatures", lambda quote: f'"{_with_ligatures(quote)}"'),
    ("soft hyphens", lambda quote: f'"{_hyphenated(quote)}"'),
    ("emphasis", lambda quote: f'"{_emphasised(quote)}"'),
    ("capital first letter", lambda quote: f'"{quote[0].swapcase()}{quote[1:]}"'),
    ("two spaces", lambda quote: f'"{quote.replace(" ", "  ", 1)}"'),
    ("line break", lambda quote: f'"{quote.replace(" ", chr(10), 4).replace(chr(10), " ", 3)}"'),
)


def cases_of(row: Mapping[str, Any], number: int) -> Iterator[Case]:
    """The cases of one row of quotations.jsonl: each edit, and the quotation in each typography that alters it."""
    quote, frame = row["quotation"], _FRAMES[number % len(_FRAMES)]
    for place, edit in enumerate(row["edits"]):
        text = frame.format(f'"{edited(quote, edit["old"], edit["new"])}"')
        yield Case(f"{row['id']}/{edit['kind']}{place}", edit["kind"], True, text, row["context"])
    for name, style in _TYPOGRAPHY:
        if name == "straight marks" or style(quote) != f'"{quote}"':
            yield Case(f"{row['id']}/{name}", name, False, frame.format(style(quote)), row["context"])
    yield Case(f"{row['id']}/block", "block quote", False, f"The text says:\n\n> {quote}.", row["context"])


def edited(quote: str, old: str, new: str) -> str:
    """The quotation with one word in place of another; none, and the word is left out."""
    changed = re.sub(rf"(?<![\w.,]){re.escape(old)}(?!\w|[.,]\d)", new, quote, count=1)
    return " ".join(changed.split())
