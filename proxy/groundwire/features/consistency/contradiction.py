"""Decide whether two statements contradict each other, and in what they differ.

A contradiction is mutual: each statement excludes the other. Statements about another thing, another time or under
another condition do not contradict, nor does a newer fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from textwrap import shorten

from groundwire.domain import ContradictionKind
from groundwire.features.consistency.same_topic import MANY, are_of_one_time, is_same, may_be_of_one, overlap
from groundwire.features.consistency.statement_context import Said
from groundwire.features.consistency.temporal import is_superseded, returns
from groundwire.text.quantities import Quantity
from groundwire.text.tolerance import Relation, compare
from groundwire.text.words import NAME_CONCEPTS, QUANTIFIERS, TITLES
from groundwire.verifiers.numbers.candidates import CHANGES
from groundwire.verifiers.vetoes import Veto, find_vetoes, may_be_one

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
_SOLE = re.compile(
    r"\b(?:born|based|headquartered|located|situated|founded|established|invented|written|directed|composed|painted|"
    r"designed|discovered|owned|headed|led|chaired|run|edited|manufactured|buried) (?:in|by|at|near)(?: the)?$",
    re.IGNORECASE,
)
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


def opposition(new: Said, old: Said) -> Opposition | None:
    """Return how the new statement contradicts the old one, None if both can be true."""
    if any(bool(mark.search(new.text)) != bool(mark.search(old.text)) for mark in _QUALIFIED):
        return None
    if is_superseded(new, old) or not may_be_of_one(new, old):
        return None
    if ended := returns(new, old):
        return Opposition("temporal", 2, f'An earlier answer said that this had ended: "{ended}".')
    if None not in (new.is_past, old.is_past) and new.is_past != old.is_past:
        return None
    return _numbers(new, old) or _dates(new, old) or _names(new, old) or _words(new, old) or _presence(new, old)


def _numbers(new: Said, old: Said) -> Opposition | None:
    """Compare two values of one attribute, unless either statement also has the other's value."""
    theirs = list(_values(old))
    for mine in _values(new):
        if any(compare(mine, each).is_match or compare(each, mine).is_match for each in theirs):
            continue
        rival = next((each for each in theirs if _differ(mine, each) and _is_of_same(new, mine, old, each)), None)
        if rival:
            return Opposition("entity", _gravity(mine, rival), _told(mine.text, rival.text))
    return None


def _values(said: Said) -> Iterator[Quantity]:
    return (each for each in said.quantities if each.kind != "date")


def _is_of_same(new: Said, mine: Quantity, old: Said, theirs: Quantity) -> bool:
    """Return whether two quantities have one dimension, one attribute and one time."""
    pair = ((new, mine), (old, theirs))
    if compare(mine, theirs) is Relation.APART or bool(mine.per) != bool(theirs.per):
        return False
    is_countable = (mine.is_bare, mine.written) == (theirs.is_bare, theirs.written) or mine.kind != "count"
    if not is_countable or not are_of_one_time(new, old, (mine.start, theirs.start)):
        return False
    if any(len([each for each in _values(said) if said.in_piece(at.start, each.start)]) > 1 for said, at in pair):
        return False  # each may be selected by the other number: "six players earn over a million"
    ways = [[at for at in said.scope if said.reading.words[at].stem in CHANGES] for said in (new, old)]
    return is_same(new, old, (ways[0], ways[1]), (mine.start, theirs.start))


def _differ(mine: Quantity, theirs: Quantity) -> bool:
    return compare(mine, theirs) is Relation.DIFFERENT and compare(theirs, mine) is Relation.DIFFERENT


def _gravity(mine: Quantity, theirs: Quantity) -> int:
    here, there = abs(mine.low), abs(theirs.low * (theirs.worth and 1.0))
    share = abs(here - there) / (max(here, there) or 1.0)
    return sum(share >= step for step in (_SLIGHT, _GREAT, _OTHER_SCALE))


def _dates(new: Said, old: Said) -> Opposition | None:
    """Compare two dates of a unique event, or two days in long statements that are otherwise the same."""
    for mine, theirs in product(*([each for each in said.quantities if each.kind == "date"] for said in (new, old))):
        if not _differ(mine, theirs) or not _happens_once(new, old, mine, theirs):
            continue
        if is_same(new, old) and overlap(new.dates(mine), old.dates(theirs)) and _rest(new, mine) == _rest(old, theirs):
            return Opposition("temporal", 1, _told(mine.text, theirs.text))
    return None


def _happens_once(new: Said, old: Said, mine: Quantity, theirs: Quantity) -> bool:
    if mine.low == mine.high and theirs.low == theirs.high and min(len(new.scope), len(old.scope)) >= MANY:
        return True
    return all(_ONCE.search(said.text) and not _INDEFINITE.search(said.text) for said in (new, old))


def _rest(said: Said, stated: Quantity) -> list[tuple[str, float, float]]:
    """Return the kinds and values of the other quantities of a statement."""
    return [(each.kind, each.low, each.high) for each in said.quantities if each != stated]


def _names(new: Said, old: Said) -> Opposition | None:
    """Compare two names where only one is possible: of an office, a seat, a founder."""
    mine, theirs = _sole_name(new), _sole_name(old)
    if not mine or not theirs or _are_one(new, mine, old, theirs):
        return None
    if (
        len({said.reading.concepts[at] in NAME_CONCEPTS for said, run in ((new, mine), (old, theirs)) for at in run})
        > 1
    ):
        return None  # one is a country, in which the other may be located
    if not are_of_one_time(new, old) or not is_same(new, old, (mine, theirs)):
        return None
    return Opposition("entity", 2, _told(f'"{_text(new, mine)}"', f'"{_text(old, theirs)}"'))


def _sole_name(said: Said) -> range | None:
    """Return the last name in a position where only one is possible."""
    reading = said.reading
    for place in reversed(range(len(reading.words))):
        if not reading.words[place].is_capital or place in reading.measured or (place and not reading.is_name(place)):
            continue
        if reading.words[place].lower in TITLES:
            continue
        run = reading.name_run(place)
        start, end = reading.words[run[0]].start, reading.words[run[-1]].end
        before = said.text[:start].rstrip()
        is_definite = run[0] > 0 and not _INDEFINITE.search(before)
        if _SOLE.search(before) or (is_definite and _IS.search(before)) or _IS_THE.match(said.text, end):
            return run
    return None


def _are_one(new: Said, mine: range, old: Said, theirs: range) -> bool:
    here, there = ([said.reading.words[at].text for at in run] for said, run in ((new, mine), (old, theirs)))
    return any(may_be_one(one, other) for one in here for other in there)


def _told(now: str, before: str) -> str:
    return f"This answer says {now}, an earlier one said {before}."


def _text(said: Said, run: range) -> str:
    return said.claim.text[said.reading.words[run[0]].start : said.reading.words[run[-1]].end]


def _words(new: Said, old: Said) -> Opposition | None:
    """Compare words that deny each other: a negation, an opposite, a quantifier, exchanged subject and object."""
    said, heard = (
        [veto for veto in find_vetoes(one.reading, other.reading) if veto.kind != "name"]
        for one, other in ((new, old), (old, new))
    )
    mutual = {veto.kind for veto in said} & {veto.kind for veto in heard}
    every = sorted((*said, *heard), key=lambda veto: veto.kind != "quantifier")
    told = next((veto for veto in every if veto.kind in mutual or veto.kind == "negation"), None)
    if told is None or not are_of_one_time(new, old) or (told.kind != "quantifier" and _is_of_some(new, old)):
        return None
    if told.kind == "negation" and (_is_of_the_rest(new, old) or _was_so_once(new, old, told, is_of_new=told in said)):
        return None
    if told.kind == "direction" and _are_two_times_of_day(new, old):
        return None
    if not is_same(new, old, ({veto.place for veto in said}, {veto.place for veto in heard})):
        return None
    return Opposition("semantic", 1 if told.kind == "quantifier" else 2, _sides_named(told, is_of_new=told in said))


def _is_of_the_rest(new: Said, old: Said) -> bool:
    """Return whether either denies only a further one: "no other pool"."""
    return any(_NO_OTHER.search(said.text) for said in (new, old))


def _was_so_once(new: Said, old: Said, told: Veto, *, is_of_new: bool) -> bool:
    """Return whether one is in the past tense and the other has "no longer": "worked", "no longer works"."""
    words = (new if is_of_new else old).reading.words
    return words[told.place].lower.endswith("ed") and any("no longer" in said.text.lower() for said in (new, old))


def _sides_named(veto: Veto, *, is_of_new: bool) -> str:
    """Return the reason of a veto, reworded from answer and source to this answer and an earlier one.

    `is_of_new` means that the new statement had the role of the answer.
    """
    answer, source = ("this answer", "an earlier one") if is_of_new else ("an earlier answer", "this one")
    reason = veto.reason.replace("the answer", answer).replace("the source", source)
    return f"{reason[0].upper()}{reason[1:]}."


def _presence(new: Said, old: Said) -> Opposition | None:
    """Compare a statement that there is none of a thing with one that there is some.

    "Has no allergies" denies every allergy, so the other statement may add words after its verb; words before the verb
    would make it a statement about somebody else.
    """
    for none, some in ((new, old), (old, new)):
        denied, asserted = _NONE.search(none.text), _SOME.search(some.text)
        if denied is None or asserted is None or any(word.is_negator for word in some.reading.words):
            continue
        if not are_of_one_time(new, old) or _is_of_some(new, old):
            continue
        owner, thing = _divided(none, denied)
        holder, _ = _divided(some, asserted)
        if (
            thing
            and all(some.tells(none, place) for place in (*owner, *thing))
            and all(none.tells(some, place) for place in holder)
            and bool(owner) == bool(holder)
        ):
            here, there = (f'"{_clause(said, found)}"' for said, found in ((none, denied), (some, asserted)))
            return Opposition("semantic", 2, _told(here, there) if none is new else _told(there, here))
    return None


def _divided(said: Said, verb: re.Match[str]) -> tuple[list[int], list[int]]:
    """Return the places of the content words before and after a verb."""
    words = said.reading.words
    return (
        [place for place in said.scope if words[place].end <= verb.start()],
        [place for place in said.scope if words[place].start >= verb.end() and words[place].lower not in _VAGUE],
    )


def _clause(said: Said, verb: re.Match[str]) -> str:
    """Return the statement from its verb on, shortened."""
    return shorten(said.claim.text[verb.start() :].rstrip(" .!"), _MAX_CLAUSE, placeholder=" …")


def _is_of_some(new: Said, old: Said) -> bool:
    """Return whether either is only about some or a few: both may then be true."""
    return any(QUANTIFIERS.get(word.lower) in ("some", "few") for said in (new, old) for word in said.reading.words)


def _are_two_times_of_day(new: Said, old: Said) -> bool:
    """Return whether each contains a time of day: it opens at nine and closes at five."""
    return all(any(each.kind == "time" for each in said.quantities) for said in (new, old))
