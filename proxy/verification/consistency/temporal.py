"""What ended does not return, and what is newer does not contradict what is older (CO1)."""

from __future__ import annotations

import re

from proxy.verification.consistency.said import Said
from proxy.verification.consistency.sameness import is_same
from proxy.verification.words import stem

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
    """Whether what is said now tells that something changed, or is of a later time, so that it may replace the old."""
    told = {found.group().lower() for found in _CHANGE.finditer(new.text)}
    before = {found.group().lower() for found in _CHANGE.finditer(old.text)}
    if told - before:
        return True
    return bool(_ended(new)) and not _ended(old)


def returns(new: Said, old: Said) -> str:
    """The words by which the old statement ended what the new one says is going on; "" where there are none."""
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
    """Whether both name the office or the membership that ended: "resigned as CEO"."""
    return any(old.tells(new, place) and not new.reading.is_name(place) for place in new.scope)


def _ended(said: Said) -> re.Match[str] | None:
    """By which words a statement says that something is over for good, unless it speaks of hours or seasons."""
    if _RECURRING.search(said.text) or any(each.kind == "time" for each in said.quantities):
        return None
    found = _ENDED.search(said.text)
    if found and found["state"] and found["state"].lower() in ("until", "till") and said.is_past is not True:
        return None
    return found
