"""Expand initialisms of a claim ("NOI") that the sources spell out and never use."""

from __future__ import annotations

import re
from dataclasses import replace

from groundwire.domain import Claim
from groundwire.evidence.index import Context
from groundwire.text.words import STOPWORDS

_INITIALISM = re.compile(r"(?<![\w&$€£.-])(?<!\d )[A-Z](?:&?[A-Z]){1,6}(?![\w&])")
_MOST = 4
_LINKS = r"(?:(?:and|&|of|the|for|on|in|to) ){0,2}"
_SHORT = 2
_LONG = 5  # letters, from which on a spelled-out form may contain commas and any function words


def spell_out(claim: Claim, context: Context) -> Claim:
    """Return the claim with each initialism replaced by its spelled-out form, if the sources contain exactly one."""
    found = dict.fromkeys(match.group() for match in _INITIALISM.finditer(claim.text))
    spelled = {each: words for each in list(found)[:_MOST] if (words := context.spelled_out(each, _find))}
    if not spelled:
        return claim
    return replace(claim, text=_INITIALISM.sub(lambda match: spelled.get(match.group(), match.group()), claim.text))


def _find(initialism: str, text: str) -> set[str] | None:
    """Return the phrases of a text that spell out an initialism, in lower case; None if the text uses it."""
    if re.search(rf"(?<!\w){re.escape(initialism)}(?!\w)", text):
        return None
    letters = initialism.replace("&", "")
    found = {match.group().lower() for match in re.finditer(_pattern(initialism), text)}
    return {phrase for phrase in found if len(letters) >= _LONG or _is_phrase(phrase, len(letters))}


def _pattern(initialism: str) -> str:
    letters = initialism.replace("&", "")
    gap = rf"(?:, |[ -]){_LINKS}" if len(letters) >= _LONG else rf"[ -]{_LINKS}"
    is_cased = len(initialism) == _SHORT  # two lower-case words match by chance too often
    spelled = ""
    for place, letter in enumerate(initialism):
        if letter != "&":
            joint = " (?:and|&) " if initialism[place - 1] == "&" else gap
            first = letter if is_cased else f"[{letter}{letter.lower()}]"
            spelled += f"{joint if spelled else ''}{first}[^\\W\\d_]{{1,30}}"
    return rf"\b{spelled}\b"


def _is_phrase(phrase: str, size: int) -> bool:
    """Return whether enough words of a phrase are content words.

    One per letter is required; one less from four letters on, and one less if the phrase contains "on".
    """
    told = [word for word in re.split(r"[ -]", phrase) if word != "on"]
    return sum(word not in STOPWORDS for word in told) >= size - (size > _SHORT + 1) - (len(told) < len(phrase.split()))
