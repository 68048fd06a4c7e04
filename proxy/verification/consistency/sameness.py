"""Whether two statements speak of the same thing at the same time, so that they may contradict each other.

Nothing is taken for the same that one side tells apart: a word that only one has makes of it another thing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from proxy.verification.consistency.said import Said, lacks
from proxy.verification.numbers.grammar import Quantity
from proxy.verification.numbers.tolerance import fit_period

MANY, _NEARLY_ALL = 6, 0.8
"""How many words two long statements must share, and what share of each, to be one but for their wording."""


def may_be_of_one(new: Said, old: Said) -> bool:
    """Whether what both lean on lets them be of one thing: the names and the words of what was asked.

    Two statements with a name in common that lean on nothing need nothing else to be understood.
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
    """Whether both are of no time in particular, or of times that overlap; `near` as for `is_same`."""
    here, there = near or (None, None)
    return overlap(new.dates(position=here), old.dates(position=there))


def overlap(mine: Sequence[Quantity], theirs: Sequence[Quantity]) -> bool:
    """Whether what is of these dates may be of those: of none on either side, or of such that have days in common."""
    if not mine and not theirs:
        return True
    return fit_period(mine, theirs) is True and fit_period(theirs, mine) is True


def is_same(
    new: Said,
    old: Said,
    at_issue: tuple[Collection[int], Collection[int]] = ((), ()),
    near: tuple[int, int] | None = None,
) -> bool:
    """Whether each has every word of the other's scope, but for the words at issue (places in either).

    `near` are positions in the two texts around which the scope is taken, where a sentence says more than one thing.
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
