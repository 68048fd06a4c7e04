"""Check whether a matching number of a source applies to the claim's subject, or another number does."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from groundwire.text.binding import main_dates, search_before
from groundwire.text.tolerance import fit_period
from groundwire.text.words import (
    CONVERSE,
    are_opposed,
    concept,
    content_stems,
    same_meaning,
    stem,
)
from groundwire.verifiers.numbers.arithmetic import direction_of
from groundwire.verifiers.numbers.candidates import CHANGES, Candidate, is_enumeration, likeliest


class Objection(NamedTuple):
    """A reason why a matching number does not support the claim.

    `differs` completes "The source states the number, but …"; `instead`, if set, is the value that the source states
    for the claim's subject.
    """

    differs: str
    instead: Candidate | None = None


def find_objection(match: Candidate, candidates: Sequence[Candidate]) -> Objection | None:
    """Return the strongest objection to a matching number, given all stated ones; None if there is none."""
    if match.claim.strip(" \n|.") in match.passage.source.text[match.passage.start : match.passage.end]:
        return None
    if match.coverage >= 0.5 and (reason := _opposite(match)):
        return Objection(reason)
    match.parsed.query.work.spend(len(candidates))
    rivals = [each for each in candidates if _is_comparable(match, each)]
    return _for_other_period(match, rivals) or _find_better(match, rivals)


def _opposite(match: Candidate) -> str:
    """Return a reason if a word bound to the stated number negates one bound to the claimed number, else ""."""
    if match.is_row:
        return ""
    claimed, stated = (binding.own - CHANGES - _SIDES for binding in (match.target, match.binding))
    for word in sorted(claimed - stated):
        for other in sorted(stated - claimed):
            if (are_opposed(word, other) and word not in CONVERSE) or {word, other} in _OPPOSITES:
                return f'with "{_written((other,), match)}"'
    return ""


def _is_comparable(match: Candidate, other: Candidate) -> bool:
    """Return whether another number has the kind and unit of the matching one, so that it may be the true one."""
    here, there, claimed = match.quantity, other.quantity, match.target.quantity
    if other.relation.is_match or here.low == there.low:
        return False
    is_below = match.is_row and other.is_row and _column(match) == _column(other) != (frozenset(), ())
    if not other.is_column_named and not is_below:
        return False
    if here.kind == "date" or there.kind == "date":
        lengths = here.high - here.low, there.high - there.low
        return here.kind == there.kind and here.unit == there.unit and max(lengths) <= 2 * min(lengths) + 1
    if here.kind == "quantity" and here.unit == "time" and here.worth != there.worth:
        return False  # "three weeks" and "14 years" rarely describe one thing
    is_few = is_enumeration(claimed)
    if claimed.kind == "count" and claimed.nouns and (is_few or not is_below) and not _counts(other, claimed.nouns):
        return False
    if here.kind == there.kind:
        return here.unit == there.unit or here.kind == "currency"
    return here.is_bare and match.is_row and other.is_row and there.kind in ("currency", "percentage")


def _column(cell: Candidate) -> tuple[frozenset[str], tuple[float, ...]]:
    """Return what names the column of a number in a row: words, and the bounds of a date."""
    dates = cell.binding.dates[:1] if cell.binding.has_own_dates else ()
    return cell.binding.own, tuple(bound for each in dates for bound in (each.low, each.high))


def _counts(candidate: Candidate, nouns: Sequence[str]) -> bool:
    """Return whether another number counts the same things as the claim, by the words bound to it."""
    binding, alike = candidate.binding, frozenset[str]().union(*map(same_meaning, nouns))
    return not all(map(alike.isdisjoint, (binding.own, binding.shared, candidate.quantity.nouns)))


def _for_other_period(match: Candidate, rivals: Sequence[Candidate]) -> Objection | None:
    """Return an objection if the number is for another period than the claim, by its column or by the dates near it."""
    if match.fits_period is not False:
        return None
    fitting = [each for each in rivals if each.fits_period and _is_near(each, match)]
    if fitting:
        return Objection("", likeliest(fitting))
    text = match.passage.text
    dates = main_dates(text, [each for each in match.parsed.quantities if each.kind == "date"])
    is_dated = match.is_row or (match.binding.has_own_dates and fit_period(match.target.dates, dates) is False)
    return Objection(f"for {match.binding.dates[0].text}") if is_dated else None


def _is_near(other: Candidate, match: Candidate) -> bool:
    """Return whether another number is about the same thing: in the same passage, or in one that covers as much."""
    if other.passage is match.passage:
        return True
    return other.coverage >= match.coverage and (other.scoped > 0 or other.coverage >= 0.5)


def _find_better(match: Candidate, rivals: Sequence[Candidate]) -> Objection | None:
    if match.is_row and is_enumeration(match.target.quantity):
        return None
    of_period = (each for each in rivals if each.fits_period is not False)
    better = [each for each in of_period if _is_main(each, match) or _fits_words_better(each, match)]
    return Objection("", likeliest(better)) if better else None


def _written(stems: Collection[str], match: Candidate) -> str:
    """Return the first two words of a passage with these stems, as written."""
    written = dict.fromkeys(word.text for word in match.passage.words if word.stem in stems)
    return " ".join(list(written)[:2] or sorted(stems)[:2])


def _is_main(other: Candidate, match: Candidate) -> bool:
    """Return whether the matching number is only the reference value for the other one, but not in the claim."""
    if other.passage is not match.passage or match.is_row or match.quantity.kind == "time":
        return False
    text, claim = match.passage.text, match.claim
    aside = search_before(_PART, text, match.quantity.start) or search_before(REFERENCE, text, match.quantity.start)
    between = slice(min(match.quantity.end, other.quantity.end), max(match.quantity.start, other.quantity.start))
    if not aside or ";" in text[between] or search_before(REFERENCE, text, other.quantity.start):
        return False
    if search_before(REFERENCE, claim, match.target.quantity.start) or (match.fits_period and not other.fits_period):
        return False
    return not (_claim_concepts(match) & _concepts_of(match.binding.own)) - _concepts_of(other.binding.subject)


def _fits_words_better(other: Candidate, match: Candidate) -> bool:
    """Return whether the words around the other number fit the claim better than those around the matching one.

    They must have all words of the claim that the matching number's have, and more. Also, the matching number's must
    have a word that the claim lacks, or the other number's none.
    """
    ignored = frozenset() if _differ_by_direction(other, match) else CHANGES
    if match.quantity.kind == "currency":
        ignored |= _PAYING
    wanted = _claim_concepts(match, ignored)
    here, there = (_concepts_around(each, ignored) for each in (match, other))
    more, missing = (wanted & there) - here, (wanted & here) - there
    are_rows = other.is_row and match.is_row
    if are_rows and other.passage is not match.passage and _is_labelled(other, match):
        return True
    if not more:
        return False
    if other.passage is match.passage and other.binding.has_subject:
        missing -= _concepts_of(match.binding.shared, ignored)  # not repeated: "customers 12 years, technology 7"
    is_adjacent = other.passage is match.passage or are_rows
    if missing:
        return False
    if not is_adjacent and not _is_in_closer_sentence(other, match, more):
        return False
    return bool(here - wanted - there) or not there - wanted - here


def _is_labelled(other: Candidate, match: Candidate) -> bool:
    """Return whether the claim has the exact label of the other row ("sample B"), and not that of the matching one."""
    claim = match.claim
    here, there = (_LABEL.match(each.passage.text) for each in (match, other))
    if not here or not there or other.binding.own != match.binding.own:
        return False
    if there["label"].isdigit() or _is_part(there["label"], here["label"]):
        return False
    return not _mentions(claim, here["label"]) and _mentions(claim, there["label"])


def _is_part(label: str, other: str) -> bool:
    stems = content_stems(label)
    return bool(stems) and stems <= content_stems(other)


def _mentions(claim: str, label: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(label)}(?!\w)", claim) is not None


def _differ_by_direction(other: Candidate, match: Candidate) -> bool:
    """Return whether words of rise or fall may distinguish two numbers: "grew 16% and contributed 38%"."""
    claim, claimed = match.claim, match.target.quantity
    is_adjacent = other.passage is match.passage and not match.is_row
    return is_adjacent and direction_of(claim, claimed.start, claimed.end) != 0


def _is_in_closer_sentence(other: Candidate, match: Candidate, more: frozenset[str]) -> bool:
    """Return whether another sentence is closer to the claim, by a name or by far more of its words."""
    if other.scoped <= match.scoped or (match.fits_period and not other.fits_period):
        return False
    if other.scoped == 1 and more & _concepts_of(match.parsed.query.names):
        return True
    return other.coverage >= max(0.6, match.coverage + (0.7 if match.quantity.kind == "date" else 0.3))


def _claim_concepts(match: Candidate, ignored: frozenset[str] = CHANGES) -> frozenset[str]:
    """Return the concepts by which the claim describes its number."""
    subject = match.parsed.query.subject | (match.target.subject & CHANGES)
    return _concepts_of((match.target.subject & subject) or subject, ignored)


def _concepts_around(candidate: Candidate, ignored: frozenset[str] = CHANGES) -> frozenset[str]:
    """Return the concepts of the words that describe a stated number."""
    binding = candidate.binding
    around = binding.own | binding.shared if candidate.is_row else binding.subject
    if candidate.parsed.before and _PRONOUN.match(candidate.passage.text):
        around |= candidate.parsed.before.stems
    return _concepts_of(around, ignored)


def _concepts_of(stems: frozenset[str], ignored: frozenset[str] = CHANGES) -> frozenset[str]:
    return frozenset([concept(each) for each in stems - ignored])


_PRONOUN = re.compile(r"(?:it|its|they|their|he|his|she|her|this|that|these|those|the same)\b", re.IGNORECASE)
_LABEL = re.compile(r"(?:[^|:]{1,40}: )?(?P<label>\w[^|(]{0,60}?)(?: ?\([^|]*)?\s*\|")
_PART = re.compile(r"\b(?:of (?:which|whom|these|those)|including|among (?:them|these)) (?:about |some )?[$€£]?$", re.I)
_OPPOSITES = ({"incom", "los"}, {"surplu", "deficit"}, {"asset", "liability"}, {"inflow", "outflow"})
_PAYING = frozenset(stem(word) for word in "cost costs price pay pays paid spend spends spent charge charged".split())
_SIDES = frozenset((stem("before"), stem("after")))
REFERENCE = re.compile(
    r"\b(?:compared (?:with|to)|versus|vs\.?|against|from|than|after|instead of|in contrast to) "
    r"(?:a |an |the |about |around |roughly |nearly |only |just |some )?[$€£]?$",
    re.IGNORECASE,
)
