"""Compare a case in a claim with a limit that a source states: "a drone of 200 grams" with "at most 250 grams"."""

from __future__ import annotations

import re

from groundwire.text.binding import search_before
from groundwire.text.quantities import Quantity
from groundwire.verifiers.numbers.durations import is_stretch


def decided_case(claim: str, claimed: Quantity, source: str, stated: Quantity, until: Quantity | None) -> str | None:
    """Return the explanation of how a stated limit supports the claim about `claimed`, or None if it does not.

    The limit is `stated`, a bound or a range, or the span from `stated` to `until`. A number within it is supported if
    both texts affirm or both deny, a number outside if exactly one of them denies. A claimed bound is supported by the
    opposite bound of the same value if exactly one text denies. `may_be_case` must be true for the number.
    """
    if claimed.bound:
        is_line = claimed.low == stated.low and {claimed.bound, stated.bound} == {"least", "most"}
        is_decided = is_line and _denies(claim, claimed) != _denies(source, stated)
        return f"the limit is {_limit(source, stated)}" if is_decided else None
    limits = _ends(claimed, stated, until)
    if limits is None:
        return None
    is_inside = limits[0] <= claimed.low and claimed.high <= limits[1]
    if is_inside is not (_denies(claim, claimed) == _denies(source, stated)):
        return None
    return f"{claimed.text} lies {'within' if is_inside else 'outside'} {_limit(source, stated, until)}"


def range_end(text: str, first: Quantity, second: Quantity) -> Quantity | None:
    """Return `second` if both are times of day and the text states a span from `first` to it, else None."""
    return second if first.kind == second.kind == "time" and is_stretch(text, first, second) else None


def _ends(claimed: Quantity, stated: Quantity, until: Quantity | None) -> tuple[float, float] | None:
    """Return the ends of a limit in the unit of the claimed number; None if they are not comparable."""
    is_age = claimed.unit == "time" and claimed.written.startswith("year") and stated.kind == "count"
    if not is_age and (claimed.kind, claimed.unit) != (stated.kind, stated.unit):
        return None
    worth = claimed.worth if is_age else 1.0
    if until is not None:
        return stated.low, until.high
    if stated.bound:
        return (stated.low * worth, float("inf")) if stated.bound == "least" else (float("-inf"), stated.high * worth)
    return (stated.low, stated.high) if stated.low < stated.high and not is_age else None


def may_be_case(claim: str, claimed: Quantity) -> bool:
    """Return whether the number is a bound or describes a case: "a drone of 200 grams", "if it starts in a week"."""
    if claimed.bound:
        return True
    if claimed.kind == "currency" or claimed.kind == "count":
        return search_before(_OF_SOME, claim, claimed.start) is not None
    return claimed.kind in ("quantity", "time") and search_before(_SOME, claim, claimed.start) is not None


def _denies(text: str, limit: Quantity) -> bool:
    """Return whether a text has a negation that is not part of the limit, as in "not longer than 3 m"."""
    bound = search_before(_OF_BOUND, text, limit.start)
    around = text[: bound.start()] + text[limit.start :] if bound else text
    return _NEGATION.search(around) is not None


def _limit(source: str, stated: Quantity, until: Quantity | None = None) -> str:
    start = max(source.rfind(" ", 0, max(0, stated.start - 1)) + 1, 0)
    low = source.rfind(" ", 0, max(0, start - 1)) + 1
    return f'"{source[low : until.end if until else stated.end]}"'


_SOME = re.compile(
    r"\b(?:an?|any|every(?! $)|each(?! $)|if|when|whoever|anyone|someone)\b[^.;:]{0,60}$|"
    r"\b[^\W\d_]+s (?:of|weighing|aged) $",
    re.I,
)
_OF_SOME = re.compile(r"(?:\b(?:an?|any|every|each)(?: [^\W\d_]+){1,3}|\b[^\W\d_]+s) of [$€£]?$", re.I)
_OF_BOUND = re.compile(
    r"\b(?:not|never|cannot|n['’]t) (?:[^\W\d_]+ ){0,2}(?:[^\W\d_]+ than|over|above|below|under|beyond|exceed(?:ing)?) "
    r"[$€£]?$",
    re.I,
)
_NEGATION = re.compile(r"\b(?:not|never|no|none|nobody|nothing|neither|nor|without|cannot|exempt)\b|n['’]t\b", re.I)
