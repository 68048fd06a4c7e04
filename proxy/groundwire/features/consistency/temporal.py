"""Recognise changes over time: a newer state may replace an older one, but what has ended does not return by itself."""

from __future__ import annotations

import re

from groundwire.features.consistency.same_topic import is_same
from groundwire.features.consistency.statement_context import Said
from groundwire.text.words import stem

_CHANGE = re.compile(
    r"\b(?:now|no longer|not any ?more|any longer|new(?:ly)?|became|becomes?|become|replaced|replaces|successor|"
    r"succeeded|succeeds|appointed|took over|takes over|changed|changes|updated|revised|amended|corrected|moved|"
    r"relocated|renamed|switched|formerly|previously|former|used to|until|again|re-?opened|reopens|resumed|resumes|"
    r"restored|renewed|returned|returns|relaunched|reinstated|revived|latest|as of|effective (?:from|immediately)|"
    r"from now on|has been|have been|recently|meanwhile|since)\b",
    re.IGNORECASE,
)
_ENDED = re.compile(
    r"\b(?P<state>no longer|not any ?more|until|till|ended|used to|former(?:ly)?|ex)\b"
    r"|\b(?P<whole>closed(?: down)?|shut down|discontinued|died|is dead|dissolved|abolished|cancell?ed|expired|retired|"
    r"resigned|terminated|ceased|stepped down|left|defunct|bankrupt|demolished|withdrawn|revoked|decommissioned)\b",
    re.IGNORECASE,
)
_ENDED_ACTIVITY = re.compile(
    r"\b(?:stopped|stops|quit|quits|ceased|discontinued|finished|gave up|given up|gives up|no longer|"
    r"(?:was|were|is|been) taken off)\b"
    r"(?: (?:his|her|their|the))? (?P<activity>[^\W\d_]+)",
    re.IGNORECASE,
)
_ENDED_USE = re.compile(
    r"\b(?:was|were|has been|have been|is|are) (?:discontinued|stopped|ceased|withdrawn)\b", re.IGNORECASE
)
_TAKEN = re.compile(
    r"\b(?:takes|take|is taking|are taking|receives|is receiving|is on|is prescribed)\b(?! off)", re.IGNORECASE
)
_CIRCUMSTANCE = re.compile(
    r"\b(?:due to|owing to|because|last (?:year|month|week|spring|summer|autumn|fall|winter)|"
    r"(?:on|at) (?:\w+ )?(?:advice|request))\b",
    re.IGNORECASE,
)
_RESUMED = re.compile(
    r"\b(?:start(?:s|ed|ing)?|beg[aiu]n(?:s|ning)?|resum(?:e|es|ed|ing)|restart(?:s|ed|ing)?|again|back|once more|"
    r"re-?introduced)\b",
    re.IGNORECASE,
)
_FOR_A_WHILE = re.compile(
    r"\b(?:for (?:an?|one|two|three|\d+|some|several|a few) (?:\w+ )?(?:minutes?|hours?|days?|weeks?|months?|while|"
    r"time)|briefly|temporarily|until|during|while|whenever|when|if)\b",
    re.IGNORECASE,
)
_USING = frozenset(map(stem, "take use receive have need get".split()))
_ANYBODY = frozenset(map(stem, "patient client customer user".split()))
_RECURRING = re.compile(
    r"\b(?:on (?:sun|mon|tues|wednes|thurs|fri|satur)days?|at (?:night|noon|\d)|every|for (?:the )?(?:day|season|"
    r"winter|lunch|holidays?)|temporarily|\d ?[ap]\.?m|will|would)\b",
    re.IGNORECASE,
)
_ONGOING = frozenset(
    map(
        stem,
        "open available active alive valid run running sell sold offer operate operating exist live continue serve "
        "work working remain still sale force place effect going produce producing manufacture employed".split(),
    )
)
_ENDINGS = frozenset(
    map(
        stem,
        "closed shut down discontinued died dead dissolved abolished cancelled canceled expired retired resigned "
        "terminated ceased stepped left defunct bankrupt demolished withdrawn revoked decommissioned ended former "
        "formerly permanently".split(),
    )
)


def is_superseded(new: Said, old: Said) -> bool:
    """Return whether the new statement mentions a change or an end that the old one does not mention."""
    told = {found.group().lower() for found in _CHANGE.finditer(new.text)}
    before = {found.group().lower() for found in _CHANGE.finditer(old.text)}
    if told - before:
        return True
    has_ended = [bool(_ended(said) or _ENDED_ACTIVITY.search(said.text)) for said in (new, old)]
    return has_ended == [True, False]


def returns(new: Said, old: Said) -> str:
    """Return the words by which the old statement ended a thing that the new one presents as ongoing, else ""."""
    if _RESUMED.search(new.text):
        return ""
    return _activity_returns(new, old) or _medicine_returns(new, old) or _state_returns(new, old)


def _activity_returns(new: Said, old: Said) -> str:
    """Return the words that ended an activity which the new statement asserts, such as "stopped taking aspirin".

    The new statement must have every word of the old one, and may add words only after the verb: words before it would
    make it about somebody else.
    """
    ended = _ENDED_ACTIVITY.search(old.text)
    if ended is None or _is_for_a_while(old) or _ENDED_ACTIVITY.search(new.text):
        return ""
    if new.is_past is True or any(word.is_negator for word in new.reading.words) or _is_before(new, old):
        return ""
    verb = _activity(new, stem(ended["activity"]))
    if verb is None:
        return ""
    dropped = {place for place, word in enumerate(old.reading.words) if word.start < ended.end("activity")}
    subject = {place for place in dropped if old.reading.words[place].end <= ended.start()}
    circumstance = _CIRCUMSTANCE.search(old.text, ended.end())
    end = circumstance.start() if circumstance else len(old.text)
    dropped |= {place for place, word in enumerate(old.reading.words) if word.start >= end}
    theirs = [place for place in old.scope if place not in dropped or place in subject]
    if not all(new.tells(old, place) or _is_anybody(old, place) for place in theirs):
        return ""
    mine = [place for place in new.scope if place < verb]
    is_of_same = all(old.tells(new, place) or _is_anybody(new, place) for place in mine)
    return ended.group() if is_of_same else ""


def _medicine_returns(new: Said, old: Said) -> str:
    """Return the words that ended the use of a thing that, by the new statement, somebody takes."""
    ended, taken = _ENDED_USE.search(old.text), _TAKEN.search(new.text)
    if ended is None or taken is None or _is_for_a_while(old) or _is_before(new, old):
        return ""
    words = old.reading.words
    things = [place for place in old.scope if words[place].end <= ended.start()]
    are_taken = all(new.tells(old, place) for place in things)
    takers = [place for place in new.scope if new.reading.words[place].end <= taken.start()]
    return ended.group() if things and are_taken and all(_is_anybody(new, place) for place in takers) else ""


def _activity(said: Said, activity: str) -> int | None:
    """Return the place of an activity's verb in the present tense; "take", "use" and the like are interchangeable."""
    for place, word in enumerate(said.reading.words):
        is_same_verb = word.stem == activity or (word.stem in _USING and activity in _USING)
        if is_same_verb and not word.lower.endswith(("ed", "en")):
            return place
    return None


def _is_anybody(said: Said, place: int) -> bool:
    return said.reading.words[place].stem in _ANYBODY


def _is_for_a_while(said: Said) -> bool:
    is_timed = any(each.kind == "time" for each in said.quantities)
    return is_timed or bool(_FOR_A_WHILE.search(said.text) or _RECURRING.search(said.text))


def _is_before(new: Said, old: Said) -> bool:
    """Return whether the new statement is dated before the old one, or only the new one is dated."""
    mine, theirs = new.dates(), old.dates()
    return bool(mine) and (not theirs or min(each.low for each in mine) < min(each.low for each in theirs))


def _state_returns(new: Said, old: Said) -> str:
    ended = _ended(old)
    if ended is None or _ended(new) or new.is_past is True or any(word.is_negator for word in new.reading.words):
        return ""
    if new.dates() and not old.dates():
        return ""
    ongoing = [place for place in new.scope if new.reading.words[place].stem in _ONGOING]
    is_going_on = bool(ongoing) or new.is_past is False
    if ended["whole"] and not ongoing and not _says_who(new, old):
        return ""
    ends = [place for place in old.scope if old.reading.words[place].stem in _ENDINGS | _ONGOING]
    return ended.group() if is_going_on and is_same(new, old, (ongoing, ends)) else ""


def _says_who(new: Said, old: Said) -> bool:
    """Return whether both name the office or the membership that ended: "resigned as CEO"."""
    return any(old.tells(new, place) and not new.reading.is_name(place) for place in new.scope)


def _ended(said: Said) -> re.Match[str] | None:
    """Return the match by which a statement declares a definite end, unless it is about hours or seasons."""
    if _RECURRING.search(said.text) or any(each.kind == "time" for each in said.quantities):
        return None
    found = _ENDED.search(said.text)
    if found and found["state"] and found["state"].lower() in ("until", "till") and said.is_past is not True:
        return None
    return found
