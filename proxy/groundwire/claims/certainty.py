"""Estimate the confidence of an answer in its statements: stated explicitly, or inferred from hedges and boosters."""

from __future__ import annotations

import re
from collections.abc import Collection

from groundwire.claims.phrases import BOOSTERS, CONFIDENCES, NO_HEDGES, telling_words

PLAIN = 0.9
"""The stated confidence assumed for a statement without hedge or booster."""

_STATED = re.compile(
    r"(?P<before>\d{1,3}(?:\.\d{1,3})?)[ \t]?%[ \t](?:confident|certain|sure|confidence|certainty|likely|probability)\b"
    r"|\b(?:confidence|certainty)(?:[ \t](?:level|score|rating))?[ \t*]{0,4}(?:[:=]|is|of)[ \t*]{0,4}"
    r"(?:(?P<share>\d{1,3}(?:\.\d{1,4})?)[ \t]?(?P<percent>%)?(?:/(?P<scale>100?)\b)?"
    r"|(?P<word>very high|very low|high|medium|moderate|low))",
    re.IGNORECASE,
)
_STATED_WORDS = {"very high": 0.95, "high": 0.9, "medium": 0.6, "moderate": 0.6, "low": 0.3, "very low": 0.1}
_KEYS = frozenset("confidence certainty confidence_score confidence_level confidencescore confidencelevel".split())
_MONTH = re.compile(r"\bMay\b")
_SIGNALS = telling_words(phrase for _value, table in CONFIDENCES + BOOSTERS for phrase in table)


def confidence_of(text: str, words: Collection[str], padded: str) -> float:
    """Return the confidence (0–1) of a piece: the stated one, else the lowest that a hedge implies, else a booster's.

    `words` are its words in lower case; `padded` has the same words joined by spaces, with one at each end.
    """
    if ("onfiden" in text or "ertain" in text or "%" in text) and (match := _STATED.search(text)):
        return _stated(match)
    if _SIGNALS.isdisjoint(words):
        return PLAIN
    for phrase in NO_HEDGES:
        padded = padded.replace(phrase, " ")
    if " may " in padded and _MONTH.search(text):
        padded = padded.replace(" may ", " ")
    for value, phrases in CONFIDENCES + BOOSTERS:
        if any(phrase in padded for phrase in phrases):
            return value
    return PLAIN


def is_only_confidence(text: str) -> bool:
    """Return whether the sentence states only the confidence of the answer, such as "Confidence: 80%"."""
    if len(text) > 80 or not ("onfiden" in text or "ertainty" in text):
        return False
    match = _STATED.search(text)
    return match is not None and sum(map(str.isalpha, text)) - sum(map(str.isalpha, match.group())) <= 8


def named_confidence(key: str, value: object) -> float | None:
    """Return the confidence (0–1) in a JSON field whose key names it as one, else None."""
    if key.lower() not in _KEYS or isinstance(value, bool):
        return None
    if isinstance(value, str):
        match = _STATED.search(f"confidence: {value}")
        return _stated(match) if match else None
    if isinstance(value, (int, float)) and 0 <= value <= 100:
        return float(value) if value <= 1 else value / 100
    return None


def _stated(match: re.Match[str]) -> float:
    if match["word"]:
        return _STATED_WORDS[match["word"].lower()]
    if match["before"]:
        return min(1.0, float(match["before"]) / 100)
    value = float(match["share"])
    if match["scale"]:
        return min(1.0, value / float(match["scale"]))
    return min(1.0, value / 100 if match["percent"] or value > 1 else value)
