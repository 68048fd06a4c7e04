"""Parse the divisor of a rate: a period ("per month") or a thing ("per dose")."""

from __future__ import annotations

import re
from typing import NamedTuple

from groundwire.text.words import stem

DAY = 86400.0
SECONDS = {
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": DAY,
    "night": DAY,
    "week": 7 * DAY,
    "fortnight": 14 * DAY,
    "month": 2629800.0,
    "quarter": 7889400.0,
    "year": 31557600.0,
    "annum": 31557600.0,
}
"""The length of each period, in seconds."""
ADVERBS = {
    "hourly": 3600.0,
    "daily": DAY,
    "nightly": DAY,
    "weekly": 7 * DAY,
    "monthly": 2629800.0,
    "quarterly": 7889400.0,
    "yearly": 31557600.0,
    "annually": 31557600.0,
}
"""The length, in seconds, of the period that each adverb names."""


class Rate(NamedTuple):
    """A parsed rate that ends at `end`: its period in seconds (0: none), and the stems of another divisor ("dose")."""

    per: float
    each: frozenset[str]
    end: int


def read_rate(text: str, position: int, *, counts: bool = False) -> Rate | None:
    """Parse the rate after the amount that ends at `position`, or return None.

    With `counts`, up to two words for the counted things may precede the rate ("3 tablets a day").
    """
    start = position
    if counts and (between := _COUNTED.match(text, position)):
        position = between.end()
    per, each = 0.0, frozenset[str]()
    for _ in range(_MOST_PARTS):
        if found := _PERIOD.match(text, position):
            per = ADVERBS[found["adverb"].lower()] if found["adverb"] else SECONDS[found["period"].lower()]
        elif found := _EACH.match(text, position):
            each |= frozenset(map(stem, found["each"].split()))
        else:
            break
        position = found.end()
    return Rate(per, each, position) if position > start and (per or each) else None


_MOST_PARTS = 3
PERIOD_NAMES = "|".join(SECONDS)
ADVERB_NAMES = "|".join(ADVERBS)
# no rate: "a year ago", "a month or two"
NOT_NOW = r"(?! (?:ago|earlier|before|prior|later|after|ahead|old|or (?:so|two|more)|long)\b)"
_PERIOD = re.compile(
    rf"(?: per | an? | each | every | ?/ ?)(?P<period>{PERIOD_NAMES})\b{NOT_NOW}| (?P<adverb>{ADVERB_NAMES})\b",
    re.IGNORECASE,
)
_EACH = re.compile(
    r"(?: per |/)(?!cent\b|se\b|the\b|our\b|its?\b|his\b|her\b|their\b|this\b|that\b|and\b|or\b)"
    r"(?P<each>[a-z]{3,20}(?:[ -](?!in\b|for\b|and\b|or\b|per\b|to\b|of\b|is\b|was\b|on\b|at\b|by\b|from\b|with\b)"
    r"[a-z]{2,20})?)\b"
)
_COUNTED = re.compile(
    r"(?: (?!(?:in|for|within|of|on|at|to|by|over|after|and|or|than|from|is|was|were|are|as|about|with|per|an?|each|"
    r"every|during|until|[a-z]+ed)\b)[a-z][a-z-]{1,20}){1,2}(?= (?:per|an?|each|every) | ?/)"
)
