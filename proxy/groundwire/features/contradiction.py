"""Decide whether two statements contradict each other, and in what they differ.

A contradiction is mutual: each statement excludes the other. Statements about another thing, another time or under
another condition do not contradict, nor does a newer fact. What has ended does not return by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from textwrap import shorten

from groundwire.domain import ContradictionKind
from groundwire.features.statements import (
    MADE_BY,
    MANY,
    SITUATED_IN,
    Statement,
    are_of_one_time,
    is_same,
    may_be_of_one,
    overlap,
)
from groundwire.text.quantities import Quantity
from groundwire.text.tolerance import Relation, compare
from groundwire.text.words import NAME_CONCEPTS, QUANTIFIERS, TITLES, Word, stem
from groundwire.verifiers.numbers.candidates import CHANGES
from groundwire.verifiers.vetoes import Veto, find_vetoes, may_be_one

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


def is_superseded(new: Statement, old: Statement) -> bool:
    """Return whether the new statement mentions a change or an end that the old one does not mention."""
    now = {found.group().lower() for found in _CHANGE.finditer(new.text)}
    before = {found.group().lower() for found in _CHANGE.finditer(old.text)}
    if now - before:
        return True
    has_ended = [bool(_ended(statement) or _ENDED_ACTIVITY.search(statement.text)) for statement in (new, old)]
    return has_ended == [True, False]


def _returns(new: Statement, old: Statement) -> str:
    """Return the words by which the old statement ended a thing that the new one presents as ongoing, else ""."""
    if _RESUMED.search(new.text):
        return ""
    return _activity_returns(new, old) or _medicine_returns(new, old) or _state_returns(new, old)


def _activity_returns(new: Statement, old: Statement) -> str:
    """Return the words that ended an activity which the new statement asserts, such as "stopped taking aspirin".

    The new statement must have every word of the old one, and may add words only after the verb: words before it would
    make it about somebody else.
    """
    ended = _ENDED_ACTIVITY.search(old.text)
    if ended is None or _is_for_a_while(old) or _ENDED_ACTIVITY.search(new.text):
        return ""
    if new.is_past is True or new.reading.denies or _is_before(new, old):
        return ""
    activity = stem(ended["activity"])
    verb = next((word for word in new.reading.words if _is_present(word, activity)), None)
    if verb is None:
        return ""
    circumstance = _CIRCUMSTANCE.search(old.text, ended.end())
    theirs = old.scope_within(ended.end(), circumstance.start() if circumstance else None)
    subjects = old.scope_within(0, ended.start()), new.scope_within(0, verb.start)
    is_of_same = _has_all(new, old, (*subjects[0], *theirs)) and _has_all(old, new, subjects[1])
    return ended.group() if is_of_same else ""


def _is_present(word: Word, activity: str) -> bool:
    """Return whether a word is an activity's verb in the present tense; "take", "use" and the like are
    interchangeable.
    """
    is_verb = word.stem == activity or (word.stem in _USING and activity in _USING)
    return is_verb and not word.lower.endswith(("ed", "en"))


def _medicine_returns(new: Statement, old: Statement) -> str:
    """Return the words that ended the use of a thing that, by the new statement, somebody takes."""
    ended, taken = _ENDED_USE.search(old.text), _TAKEN.search(new.text)
    if ended is None or taken is None or _is_for_a_while(old) or _is_before(new, old):
        return ""
    things = old.scope_within(0, ended.start())
    is_of_anybody = all(_is_anybody(new, place) for place in new.scope_within(0, taken.start()))
    are_taken = things and all(new.has_word(old, place) for place in things)
    return ended.group() if are_taken and is_of_anybody else ""


def _state_returns(new: Statement, old: Statement) -> str:
    """Return the words that ended a state, an office or a thing which the new statement presents as ongoing."""
    ended = _ended(old)
    if ended is None or _ended(new) or new.is_past is True or new.reading.denies or (new.dates() and not old.dates()):
        return ""
    ongoing = [place for place in new.scope if new.reading.words[place].stem in _ONGOING]
    if not ongoing:
        # "resigned as CEO": both must name the office or the membership that ended
        names_it = any(old.has_word(new, place) and not new.reading.is_name(place) for place in new.scope)
        if new.is_past is not False or (ended["whole"] and not names_it):
            return ""
    ends = [place for place in old.scope if old.reading.words[place].stem in _ENDINGS | _ONGOING]
    return ended.group() if is_same(new, old, (ongoing, ends)) else ""


def _has_all(one: Statement, other: Statement, places: Iterable[int]) -> bool:
    """Return whether a statement has the words of another one at `places`, apart from "patient" and the like."""
    return all(one.has_word(other, place) or _is_anybody(other, place) for place in places)


def _is_anybody(statement: Statement, place: int) -> bool:
    return statement.reading.words[place].stem in _ANYBODY


def _is_for_a_while(statement: Statement) -> bool:
    return statement.has_time or bool(_FOR_A_WHILE.search(statement.text) or _RECURRING.search(statement.text))


def _is_before(new: Statement, old: Statement) -> bool:
    """Return whether the new statement is dated before the old one, or only the new one is dated."""
    mine, theirs = new.dates(), old.dates()
    return bool(mine) and (not theirs or min(each.low for each in mine) < min(each.low for each in theirs))


def _ended(statement: Statement) -> re.Match[str] | None:
    """Return the match by which a statement declares a definite end, unless it is about hours or seasons."""
    if _RECURRING.search(statement.text) or statement.has_time:
        return None
    found = _ENDED.search(statement.text)
    if found and (found["state"] or "").lower() in ("until", "till") and statement.is_past is not True:
        return None
    return found


_QUALIFIED = (
    re.compile(r"\b(?:if|when|whenever|unless|provided|in case|except|otherwise|assuming)\b", re.IGNORECASE),
    re.compile(
        r"\b(?:(?<!in )(?<!since )(?-i:may)|might|could|should|would|can|possibly|perhaps|probably|planned|expected)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:according to|argues?|claims?|believes?|critics|alleged(?:ly)?|reported(?:ly)?|some say)\b", re.IGNORECASE
    ),
    re.compile(r"\b(?:more|less|fewer) (?:\w+ ){1,4}than\b", re.IGNORECASE),
)
_ONCE = re.compile(
    r"\b(?:founded|established|incorporated|born|died|invented|discovered|completed|built|released|launched|published|"
    r"premiered|signed|expires?|ends?|ended|begins?|began|starts?|started|opened|due|deadline|closes?|closed|scheduled|"
    r"took place|takes place|held|is (?:on|in)|was (?:on|in)|is|was|since)\b",
    re.IGNORECASE,
)
_INDEFINITE = re.compile(r"\b(?:an?|some|another|several|many|one of)\b", re.IGNORECASE)
_SOLE = re.compile(rf"\b(?:{SITUATED_IN}|{MADE_BY}) (?:in|by|at|near)(?: the)?$", re.IGNORECASE)
_IS = re.compile(r"\b(?:is|was)(?: called| named| currently| still| the| dr\.?| mr\.?| ms\.?| mrs\.?)*$", re.IGNORECASE)
_IS_THE = re.compile(r",? (?:is|was) (?:currently |still )?(?:the|its|our|their|his|her|\w+['’]s)\b", re.IGNORECASE)

_NONE = re.compile(
    r"\b(?:(?:has|have|shows?|reports?|offers?|includes?|contains?|takes?|there (?:is|are)|is with) no\b"
    r"(?! longer| other)|(?:does|do)(?: not|n['\u2019]t) (?:have|show|report|offer|include|contain|take|own)\b|"
    r"lacks?\b|denies\b|is without\b)"
    r"(?: (?:any|a|an)\b)?(?: (?:evidence|signs?|history) of)?",
    re.IGNORECASE,
)
_SOME = re.compile(
    r"\b(?:has|have|shows?|reports?|offers?|includes?|contains?|takes?|owns?|there (?:is|are)|complains? of|"
    r"suffers? from|(?:is|are)(?= allergic to\b))\b"
    r"(?! (?:no|not|never|been|had|to)\b)(?: (?:evidence|signs?) of)?",
    re.IGNORECASE,
)
_NO_OTHER = re.compile(r"\bno (?:other|further|additional|more)\b", re.IGNORECASE)
_VAGUE = frozenset("known current currently any apparent significant new".split())
_MAX_CLAUSE = 80

_SLIGHT, _GREAT, _OTHER_SCALE = 0.05, 0.25, 0.9
"""Differences of two numbers, as shares of the larger one, from which they are slight, great, and a slip of scale."""


@dataclass(frozen=True, slots=True)
class Opposition:
    """A difference between two statements: its kind, its gravity by itself (0 low – 3 critical), and the reason."""

    kind: ContradictionKind
    gravity: int
    reason: str


def opposition(new: Statement, old: Statement) -> Opposition | None:
    """Return how the new statement contradicts the old one, None if both can be true."""
    if any(bool(mark.search(new.text)) != bool(mark.search(old.text)) for mark in _QUALIFIED):
        return None
    if is_superseded(new, old) or not may_be_of_one(new, old):
        return None
    if ended := _returns(new, old):
        return Opposition("temporal", 2, f'An earlier answer said that this had ended: "{ended}".')
    if None not in (new.is_past, old.is_past) and new.is_past != old.is_past:
        return None
    return _numbers(new, old) or _dates(new, old) or _names(new, old) or _words(new, old) or _presence(new, old)


def _numbers(new: Statement, old: Statement) -> Opposition | None:
    """Compare two values of one attribute, unless either statement also has the other's value."""
    theirs = list(_values(old))
    for mine in _values(new):
        if any(compare(mine, each).is_match or compare(each, mine).is_match for each in theirs):
            continue
        rival = next((each for each in theirs if _differ(mine, each) and _is_of_same(new, mine, old, each)), None)
        if rival:
            return Opposition("entity", _gravity(mine, rival), _difference(mine.text, rival.text))
    return None


def _values(statement: Statement) -> Iterator[Quantity]:
    return (each for each in statement.quantities if each.kind != "date")


def _is_of_same(new: Statement, mine: Quantity, old: Statement, theirs: Quantity) -> bool:
    """Return whether two quantities have one dimension, one attribute and one time."""
    if compare(mine, theirs) is Relation.INCOMPARABLE or bool(mine.per) != bool(theirs.per):
        return False
    is_alike = mine.kind != "count" or (mine.is_bare, mine.written) == (theirs.is_bare, theirs.written)
    if not is_alike or not are_of_one_time(new, old, (mine.start, theirs.start)):
        return False
    for statement, value in ((new, mine), (old, theirs)):
        if sum(statement.in_piece(value.start, each.start) for each in _values(statement)) > 1:
            return False  # each may be selected by the other number: "six players earn over a million"
    ways = [[at for at in statement.scope if statement.reading.words[at].stem in CHANGES] for statement in (new, old)]
    return is_same(new, old, (ways[0], ways[1]), (mine.start, theirs.start))


def _differ(mine: Quantity, theirs: Quantity) -> bool:
    return compare(mine, theirs) is Relation.DIFFERENT and compare(theirs, mine) is Relation.DIFFERENT


def _gravity(mine: Quantity, theirs: Quantity) -> int:
    here, there = abs(mine.low), abs(theirs.low * (theirs.worth and 1.0))
    share = abs(here - there) / (max(here, there) or 1.0)
    return sum(share >= step for step in (_SLIGHT, _GREAT, _OTHER_SCALE))


def _dates(new: Statement, old: Statement) -> Opposition | None:
    """Compare two dates of a unique event, or two days in long statements that are otherwise the same."""
    dates = ([each for each in statement.quantities if each.kind == "date"] for statement in (new, old))
    for mine, theirs in product(*dates):
        if not _differ(mine, theirs) or not _happens_once(new, old, mine, theirs):
            continue
        if is_same(new, old) and overlap(new.dates(mine), old.dates(theirs)) and _rest(new, mine) == _rest(old, theirs):
            return Opposition("temporal", 1, _difference(mine.text, theirs.text))
    return None


def _happens_once(new: Statement, old: Statement, mine: Quantity, theirs: Quantity) -> bool:
    if mine.low == mine.high and theirs.low == theirs.high and min(len(new.scope), len(old.scope)) >= MANY:
        return True
    return all(_ONCE.search(statement.text) and not _INDEFINITE.search(statement.text) for statement in (new, old))


def _rest(statement: Statement, stated: Quantity) -> list[tuple[str, float, float]]:
    """Return the kinds and values of the other quantities of a statement."""
    return [(each.kind, each.low, each.high) for each in statement.quantities if each != stated]


def _names(new: Statement, old: Statement) -> Opposition | None:
    """Compare two names where only one is possible: of an office, a seat, a founder."""
    mine, theirs = _sole_name(new), _sole_name(old)
    if not mine or not theirs or _are_one(new, mine, old, theirs):
        return None
    runs = (new, mine), (old, theirs)
    if len({statement.reading.concepts[at] in NAME_CONCEPTS for statement, run in runs for at in run}) > 1:
        return None  # one is a country, in which the other may be located
    if not are_of_one_time(new, old) or not is_same(new, old, (mine, theirs)):
        return None
    return Opposition("entity", 2, _difference(f'"{_text(new, mine)}"', f'"{_text(old, theirs)}"'))


def _sole_name(statement: Statement) -> range | None:
    """Return the last name in a position where only one is possible."""
    reading = statement.reading
    for place in reversed(range(len(reading.words))):
        if not reading.words[place].is_capital or place in reading.measured or (place and not reading.is_name(place)):
            continue
        if reading.words[place].lower in TITLES:
            continue
        run = reading.name_run(place)
        start, end = reading.words[run[0]].start, reading.words[run[-1]].end
        before = statement.text[:start].rstrip()
        is_definite = run[0] > 0 and not _INDEFINITE.search(before)
        if _SOLE.search(before) or (is_definite and _IS.search(before)) or _IS_THE.match(statement.text, end):
            return run
    return None


def _are_one(new: Statement, mine: range, old: Statement, theirs: range) -> bool:
    here, there = ([statement.reading.words[at].text for at in run] for statement, run in ((new, mine), (old, theirs)))
    return any(may_be_one(one, other) for one in here for other in there)


def _difference(now: str, before: str) -> str:
    return f"This answer says {now}, an earlier one said {before}."


def _text(statement: Statement, run: range) -> str:
    return statement.claim.text[statement.reading.words[run[0]].start : statement.reading.words[run[-1]].end]


def _words(new: Statement, old: Statement) -> Opposition | None:
    """Compare words that deny each other: a negation, an opposite, a quantifier, exchanged subject and object."""
    forward, backward = (
        [veto for veto in find_vetoes(one.reading, other.reading) if veto.kind != "name"]
        for one, other in ((new, old), (old, new))
    )
    mutual = {veto.kind for veto in forward} & {veto.kind for veto in backward}
    every = sorted((*forward, *backward), key=lambda veto: veto.kind != "quantifier")
    veto = next((veto for veto in every if veto.kind in mutual or veto.kind == "negation"), None)
    if veto is None or not are_of_one_time(new, old) or (veto.kind != "quantifier" and _is_of_some(new, old)):
        return None
    is_of_new = veto in forward
    if veto.kind == "negation" and (_is_of_the_rest(new, old) or _was_so_once(new, old, veto, is_of_new=is_of_new)):
        return None
    if veto.kind == "direction" and new.has_time and old.has_time:
        return None  # "opens at nine", "closes at five"
    if not is_same(new, old, ({veto.place for veto in forward}, {veto.place for veto in backward})):
        return None
    return Opposition("semantic", 1 if veto.kind == "quantifier" else 2, _sides_named(veto, is_of_new=is_of_new))


def _is_of_the_rest(new: Statement, old: Statement) -> bool:
    """Return whether either statement denies only further things: "no other pool"."""
    return any(_NO_OTHER.search(statement.text) for statement in (new, old))


def _was_so_once(new: Statement, old: Statement, veto: Veto, *, is_of_new: bool) -> bool:
    """Return whether one is in the past tense and the other has "no longer": "worked", "no longer works"."""
    word = (new if is_of_new else old).reading.words[veto.place].lower
    return word.endswith("ed") and any("no longer" in statement.text.lower() for statement in (new, old))


def _sides_named(veto: Veto, *, is_of_new: bool) -> str:
    """Return the reason of a veto, reworded from answer and source to this answer and an earlier one.

    `is_of_new` means that the new statement had the role of the answer.
    """
    answer, source = ("this answer", "an earlier one") if is_of_new else ("an earlier answer", "this one")
    reason = veto.reason.replace("the answer", answer).replace("the source", source)
    return f"{reason[0].upper()}{reason[1:]}."


def _presence(new: Statement, old: Statement) -> Opposition | None:
    """Compare a statement that there is none of a thing with one that there is some.

    "Has no allergies" denies every allergy, so the other statement may add words after its verb; words before the verb
    would make it a statement about somebody else.
    """
    for none, some in ((new, old), (old, new)):
        denied, asserted = _NONE.search(none.text), _SOME.search(some.text)
        if denied is None or asserted is None or some.reading.denies:
            continue
        if not are_of_one_time(new, old) or _is_of_some(new, old):
            continue
        owner, holder = none.scope_within(0, denied.start()), some.scope_within(0, asserted.start())
        thing = [at for at in none.scope_within(denied.end()) if none.reading.words[at].lower not in _VAGUE]
        if (
            thing
            and bool(owner) == bool(holder)
            and all(some.has_word(none, place) for place in (*owner, *thing))
            and all(none.has_word(some, place) for place in holder)
        ):
            here, there = (f'"{_clause(statement, found)}"' for statement, found in ((none, denied), (some, asserted)))
            return Opposition("semantic", 2, _difference(here, there) if none is new else _difference(there, here))
    return None


def _clause(statement: Statement, verb: re.Match[str]) -> str:
    """Return the statement from its verb on, shortened."""
    return shorten(statement.claim.text[verb.start() :].rstrip(" .!"), _MAX_CLAUSE, placeholder=" …")


def _is_of_some(new: Statement, old: Statement) -> bool:
    """Return whether either statement is only about some or a few things: both may then be true."""
    words = (*new.reading.words, *old.reading.words)
    return any(QUANTIFIERS.get(word.lower) in ("some", "few") for word in words)
