"""Decide whether two statements are about the same thing at the same time, so that they may contradict each other.

Strict: a content word that only one of them has makes them different, apart from the words in dispute.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from groundwire.features.consistency.statement_context import Said, lacks
from groundwire.text.quantities import Quantity
from groundwire.text.tolerance import fit_period

MANY, _NEARLY_ALL = 6, 0.8
"""Two statements that share at least `MANY` words are the same if these are `_NEARLY_ALL` of each one's scope."""


def may_be_of_one(new: Said, old: Said) -> bool:
    """Return whether the backgrounds of two statements (lead and question) may be about one thing.

    Their names and the words of the questions decide. Two statements with a common name that need no lead are always
    about one thing.
    """
    if new.names & old.names and not (new.leans or old.leans):
        return True
    mine, theirs = new.background_names, old.background_names
    if mine and theirs and not mine & theirs:
        return False
    if (new.leans or old.leans) and bool(mine | new.names) != bool(theirs | old.names):
        return False
    if not (new.question and old.question):
        return True
    here, there = (set(lacks(one.reading, other.background)) for one, other in ((old, new), (new, old)))
    ours = any(place in here for place in lacks(old.background, new.background))
    yours = any(place in there for place in lacks(new.background, old.background))
    return not (ours and yours)


def are_of_one_time(new: Said, old: Said, near: tuple[int, int] | None = None) -> bool:
    """Return whether both have no date, or dates that overlap; `near` as for `is_same`."""
    here, there = near or (None, None)
    return overlap(new.dates(position=here), old.dates(position=there))


def overlap(mine: Sequence[Quantity], theirs: Sequence[Quantity]) -> bool:
    """Return whether two sets of dates overlap; two empty ones do, an empty and a non-empty one do not."""
    if not mine and not theirs:
        return True
    return fit_period(mine, theirs) is True and fit_period(theirs, mine) is True


def is_same(
    new: Said,
    old: Said,
    at_issue: tuple[Collection[int], Collection[int]] = ((), ()),
    near: tuple[int, int] | None = None,
) -> bool:
    """Return whether each statement has all words of the other's scope, except those `at_issue` (places in either).

    `near` are offsets in the two texts. With them, the scope is only the part of a sentence around each.
    """
    mine = new.scope if near is None else new.around(near[0])
    theirs = old.scope if near is None else old.around(near[1])
    mine, theirs = _without(mine, at_issue[0]), _without(theirs, at_issue[1])
    shared = [place for place in mine if old.tells(new, place)]
    told = [place for place in theirs if new.tells(old, place)]
    if len(shared) == len(mine) and len(told) == len(theirs):
        return bool(shared) or (new.leans and old.leans)
    is_long = min(len(shared), len(told)) >= MANY
    return is_long and len(shared) >= _NEARLY_ALL * len(mine) and len(told) >= _NEARLY_ALL * len(theirs)


def _without(places: Sequence[int], left_out: Collection[int]) -> tuple[int, ...]:
    return tuple(place for place in places if place not in left_out)
