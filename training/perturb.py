"""Rules that make a supported claim wrong in one detail, or say the same in another form.

Each rule takes a claim, the evidence that supports it and a source of chance, and returns the changed claim, or None
where it does not apply. What comes out is meant for training a small encoder: a wrong claim differs from a right one
in what it says and not in how it is written, and its wrong detail is taken from the evidence where that has one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence

from training.tables import (
    COUNTS,
    DAYS,
    ENDINGS,
    HEDGES,
    JOINTS,
    LEAD_INS,
    LEFT_OUT,
    MONTHS,
    OPPOSITES,
    QUANTIFIERS,
    REWORDINGS,
    STARTERS,
)

Rule = Callable[[str, str, random.Random], str | None]


def _any(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile(r"\b(" + "|".join(words) + r")\b", re.I)


_NAME = re.compile(r"(?<![.!?:\"“]\s)(?<!^)\b[A-Z][\w'’&.-]*[\w](?:\s+(?:of\s+|the\s+|de\s+)?[A-Z][\w'’&-]*\w)*")
_CAPITALS = re.compile(r"\b[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*")
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w]|\.\d)")
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|will|would|can|could|should|has|have|had|did|does|do|may|might|must)\b(?! not|n't)", re.I
)
_NEGATED = re.compile(r"\b(is|are|was|were|will|would|can|could|should|has|have|had|did|does|do)( not|n['’]t)\b", re.I)
_QUANTIFIER = _any(QUANTIFIERS)
_HEDGE = _any(sorted(HEDGES, key=len, reverse=True))
_SAYING = re.compile(
    r"\b([A-Z][\w'’.-]+(?: [A-Z][\w'’.-]+)*) (said|says|told|claims|claimed|added|argued|announced|believes|warned)\b"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_JOINT = re.compile(
    r"\s(?:is|are|was|were|has|have|had|will|can|said|says|to|by|for|with|in|because|which|who|that|as|after|when)\s"
)
_THING = r"((?:the |a |an )?[\w'’-]+(?: [A-Z][\w'’-]+)*)"
_RELATION = r"(\w+ (?:than|by|from|over|against)|causes?|caused|beat|defeated|before|after|leads? to)"
_RELATED = re.compile(rf"\b{_THING} {_RELATION} {_THING}")
_JOINED = re.compile(r",?\s*(and|or|,|&)?\s*")
_LAST_PHRASE = re.compile(r"\s((?:in|on|at|during|since|after|before) (?:the )?[\w ,'’-]{3,40})\.$")
_LEFT_OUT = tuple(re.compile(pattern) for pattern in LEFT_OUT)
_REWORDINGS = [(re.compile(pattern), other) for pattern, other in REWORDINGS]


def wrong_number(claim: str, evidence: str, chance: random.Random) -> str | None:
    """Another number of the evidence, or a slip of a digit, in the place of one of the claim's; else a wrong count."""
    if not (found := list(_NUMBER.finditer(claim))):
        return _wrong_count(claim, chance)
    place = chance.choice(found)
    written = place.group()
    others = [each for each in _NUMBER.findall(evidence) if each not in claim and len(each) <= len(written) + 2]
    if others and chance.random() < 0.6:
        return _put(claim, place, chance.choice(others))
    return _put(claim, place, _slipped(written, chance))


def _slipped(written: str, chance: random.Random) -> str:
    at = chance.choice([at for at, each in enumerate(written) if each.isdigit()])
    other = chance.choice([each for each in "123456789" if each != written[at]])
    return written[:at] + other + written[at + 1 :]


def _wrong_count(claim: str, chance: random.Random) -> str | None:
    found = [each for each in re.finditer(r"\b[a-z]+\b", claim) if each.group() in COUNTS]
    if not found:
        return None
    place = chance.choice(found)
    return _put(claim, place, chance.choice([word for word in COUNTS if word != place.group()]))


def wrong_date(claim: str, evidence: str, chance: random.Random) -> str | None:
    """Another month or day of the week, of the evidence where it has one."""
    for group in (MONTHS, DAYS):
        found = [each for each in re.finditer(r"\b[A-Z][a-z]+\b", claim) if each.group() in group]
        if found:
            place = chance.choice(found)
            given = [each for each in group if each in evidence and each not in claim]
            return _put(claim, place, chance.choice(given or [each for each in group if each != place.group()]))
    return None


def wrong_name(claim: str, evidence: str, chance: random.Random) -> str | None:
    """Another name of the evidence in the place of one of the claim's."""
    dates = MONTHS + DAYS
    found = [each for each in _NAME.finditer(claim) if each.group() not in dates]
    others = [each for each in _other_names(claim, evidence) if each not in dates]
    others = [each for each in others if not any(word in claim for word in each.split())]
    return _put(claim, chance.choice(found), chance.choice(others)) if found and others else None


def _other_names(claim: str, evidence: str) -> list[str]:
    return [each for each in _NAME.findall(evidence) if each not in claim]


def swapped_names(claim: str, evidence: str, chance: random.Random) -> str | None:
    """Two names of the claim in each other's place, unless "and" joins them."""
    found = list(_CAPITALS.finditer(claim))
    if len(found) < 2:
        return None
    one, other = sorted(chance.sample(found, 2), key=lambda each: each.start())
    between = claim[one.end() : other.start()]
    if one.group() == other.group() or _JOINED.fullmatch(between) or one.group() in STARTERS:
        return None
    return claim[: one.start()] + other.group() + between + one.group() + claim[other.end() :]


def negated(claim: str, evidence: str, chance: random.Random) -> str | None:
    """A "not" taken out, or put in behind one of the first two auxiliaries."""
    if place := _NEGATED.search(claim):
        return _put(claim, place, place.group(1))
    found = list(_AUXILIARY.finditer(claim))
    if not found:
        return None
    place = chance.choice(found[:2])
    return claim[: place.end()] + chance.choice((" not", " not", " never")) + claim[place.end() :]


def opposite(claim: str, evidence: str, chance: random.Random) -> str | None:
    """The opposite of a word."""
    found = [each for each in re.finditer(r"\b[A-Za-z]+\b", claim) if each.group().lower() in OPPOSITES]
    if not found:
        return None
    place = chance.choice(found)
    return _put(claim, place, _cased(OPPOSITES[place.group().lower()], place.group()))


def other_quantifier(claim: str, evidence: str, chance: random.Random) -> str | None:
    """Some made all, often made always, and the reverse."""
    place = _QUANTIFIER.search(claim)
    return place and _put(claim, place, _cased(QUANTIFIERS[place.group().lower()], place.group()))


def hedge_dropped(claim: str, evidence: str, chance: random.Random) -> str | None:
    """What may be told as what is."""
    place = _HEDGE.search(claim)
    return place and _put(claim, place, HEDGES[place.group().lower()])


def wrong_speaker(claim: str, evidence: str, chance: random.Random) -> str | None:
    """Words put into another mouth."""
    place = _SAYING.search(claim)
    others = _other_names(claim, evidence)
    return _put(claim, place, f"{chance.choice(others)} {place.group(2)}") if place and others else None


def other_word(claim: str, evidence: str, chance: random.Random) -> str | None:
    """A word of the evidence in the place of one with the same ending."""
    found = [each for each in re.finditer(r"\b[a-z]{5,}\b", claim) if each.group() in evidence]
    chance.shuffle(found)
    for place in found[:4]:
        ending = next((end for end in ENDINGS if place.group().endswith(end)), None)
        if ending and (others := _words_ending(ending, claim, evidence)):
            return _put(claim, place, chance.choice(others))
    return None


def _words_ending(ending: str, claim: str, evidence: str) -> list[str]:
    words = set(re.findall(rf"\b[a-z]{{2,}}{ending}\b", evidence))
    return sorted(each for each in words if each not in claim and len(each) > 4)


def recombined(claim: str, evidence: str, chance: random.Random) -> str | None:
    """The beginning of the claim with the end of another sentence of the evidence, joined by the same word."""
    cuts = [each for each in _JOINT.finditer(claim) if 8 < each.start() < len(claim) - 12]
    if not cuts:
        return None
    cut = chance.choice(cuts)
    ends = [end for end in _ends_after(cut.group(), evidence) if end[:20] not in claim]
    return claim[: cut.end()] + chance.choice(ends) if ends else None


def _ends_after(joint: str, evidence: str) -> list[str]:
    """What follows a joint in the sentences of the evidence, where it is neither very short nor long."""
    found = [
        sentence[each.end() :]
        for sentence in _SENTENCE_END.split(evidence)
        for each in _JOINT.finditer(sentence)
        if each.group() == joint
    ]
    return [end for end in found if 12 < len(end) < 140]


def turned_round(claim: str, evidence: str, chance: random.Random) -> str | None:
    """What stands before and behind "than", "from" or "by" in each other's place, where both are short."""
    found = _RELATED.search(claim)
    if not found or found.group(1).lower() == found.group(3).lower():
        return None
    return _put(claim, found, f"{found.group(3)} {found.group(2)} {found.group(1)}")


def with_invention(claim: str, invention: str, chance: random.Random) -> str | None:
    """The claim with a clause of some other text appended."""
    cut = next((each for each in _JOINT.finditer(invention) if 15 < len(invention) - each.start() < 90), None)
    if cut is None:
        return None
    return claim.rstrip(" .!?") + chance.choice(JOINTS) + invention[cut.end() :].rstrip(" .!?") + "."


WRONG: Sequence[Rule] = (
    wrong_number,
    wrong_number,
    wrong_date,
    wrong_name,
    wrong_name,
    swapped_names,
    negated,
    opposite,
    opposite,
    other_quantifier,
    hedge_dropped,
    wrong_speaker,
    other_word,
    other_word,
    recombined,
    recombined,
    turned_round,
)
"""The rules that make a claim wrong; the commoner kinds of error stand twice."""


def shortened(claim: str, evidence: str, chance: random.Random) -> str | None:
    """The claim without a parenthesis, a relative clause or an adverb that begins it."""
    for pattern in _LEFT_OUT:
        if (place := pattern.search(claim)) and len(claim) - len(place.group()) > 30:
            rest = _put(claim, place, "").strip()
            return rest[0].upper() + rest[1:]
    return None


def reworded(claim: str, evidence: str, chance: random.Random) -> str | None:
    """The claim with up to three words exchanged for others of the same meaning."""
    changed, done = claim, 0
    for pattern, other in chance.sample(_REWORDINGS, len(_REWORDINGS)):
        if done < 3 and pattern.search(changed):
            changed, done = pattern.sub(other, changed, count=1), done + 1
    return changed if done else None


def introduced(claim: str, evidence: str, chance: random.Random) -> str | None:
    """The claim behind a lead-in."""
    return chance.choice(LEAD_INS) + _continued(claim, claim)


def moved_phrase(claim: str, evidence: str, chance: random.Random) -> str | None:
    """A phrase of time or place at the end moved to the front."""
    place = _LAST_PHRASE.search(claim)
    if place is None or claim.count(",") > 2:
        return None
    phrase = place.group(1)
    return f"{phrase[0].upper()}{phrase[1:]}, {_continued(claim[: place.start()], claim)}."


SAME: Sequence[Rule] = (shortened, reworded, reworded, introduced, moved_phrase)
"""The rules that say the same in another form."""


def _put(claim: str, place: re.Match[str], other: str) -> str:
    return claim[: place.start()] + other + claim[place.end() :]


def _cased(word: str, like: str) -> str:
    return word[0].upper() + word[1:] if like[0].isupper() else word


def _continued(text: str, claim: str) -> str:
    """A beginning of a claim as it stands within a sentence."""
    first = claim.split(" ", 1)[0]
    return text[0].lower() + text[1:] if first in STARTERS and first != "I" else text
