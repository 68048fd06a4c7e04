"""Derive numbers by operations that the surrounding words describe: a rest, a discounted price, a rate over time.

An operation is tried only if a word asks for it, because among enough numbers some pair yields any value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from groundwire.text.binding import last_end, search_before
from groundwire.text.quantities import Quantity
from groundwire.text.units import SECONDS
from groundwire.text.words import content_stems
from groundwire.verifiers.numbers.arithmetic import (
    Derivation,
    Mention,
    agrees,
    are_alike,
    as_written,
    percentage,
    point,
)


class WordProblem(NamedTuple):
    """A claimed number with its context.

    `text` is the claim with its lead, `others` are the other quantities of the claim, `texts` are those of the
    passages to search.
    """

    claimed: Quantity
    text: str
    others: Sequence[Quantity]
    texts: Sequence[str]


_Result = tuple[Quantity, str, tuple[int, ...]]
_Operation = Callable[[WordProblem, Sequence[Mention]], Iterator[_Result]]


def solve(problem: WordProblem, mentions: Sequence[Mention], tolerance: float | None) -> Derivation | None:
    """Derive the claimed number from one or two of `mentions`, or return None.

    Mentions must be in text order. Ranges are ignored, as are single values beyond the first `_MAX_MENTIONS`.
    """
    points = [each for each in mentions if each.quantity.low == each.quantity.high][:_MAX_MENTIONS]
    positions = [place for place, each in enumerate(mentions) if each.quantity.low == each.quantity.high]
    for operation in _OPERATIONS:
        for result, formula, places in operation(problem, points):
            if agrees(problem.claimed, result, tolerance):
                return Derivation(formula, tuple(positions[place] for place in places))
    return None


def _compared(problem: WordProblem, mentions: Sequence[Mention]) -> Iterator[_Result]:
    """Yield the value with which a number is compared: "64 people, 9 more than a year before" implies 55."""
    for j, more in enumerate(mentions):
        cued = _MORE_THAN.match(more.text, more.quantity.end)
        if cued and any(cue.search(cued["than"]) and cue.search(problem.text) for cue in (_EARLIER, _EXPECTED)):
            bare = more.quantity._replace(nouns=()) if more.quantity.kind == "count" else more.quantity
            if (i := _before(mentions, j, bare)) is not None:
                one, other, sign = mentions[i].quantity, more.quantity, -1 if cued["more"] else 1
                result = point(one, one.low + sign * other.low, max(one.slack, other.slack))
                yield result, f"{as_written(one)} {'+' if sign > 0 else '−'} {as_written(other)}", (i, j)


def _discounted(problem: WordProblem, mentions: Sequence[Mention]) -> Iterator[_Result]:
    """Yield prices after a stated discount in percent."""
    if not _REDUCED.search(problem.text):
        return
    for j, off in enumerate(mentions):
        share, text = _share(off.quantity), off.text
        is_off = search_before(_CUT, text, off.quantity.start) or _OFF.match(text, off.quantity.end)
        if share is None or not is_off:
            continue
        for i in (_before(mentions, j, problem.claimed), *range(j + 1, len(mentions))):
            if i is not None and are_alike(mentions[i].quantity, problem.claimed):
                price = mentions[i].quantity
                yield _scaled(price, 1 - share), f"{as_written(price)} × (1 − {as_written(off.quantity)})", (i, j)


def _halved(problem: WordProblem, mentions: Sequence[Mention]) -> Iterator[_Result]:
    """Yield half of a stated price if a clause with a half-price rule shares words with the claim."""
    if problem.claimed.kind != "currency":
        return
    stems = content_stems(problem.text)
    ruled = (_clause(text, half.start()) for text in problem.texts for half in _HALF.finditer(text))
    if not any(stems & content_stems(each) for each in ruled):
        return
    for i, price in enumerate(mentions):
        if price.quantity.kind == "currency":
            yield _scaled(price.quantity, 0.5), f"{as_written(price.quantity)} / 2", (i,)


def _rest(problem: WordProblem, mentions: Sequence[Mention]) -> Iterator[_Result]:
    """Yield the remainder of a whole, or of a hundred percent, without the stated part."""
    for i, j in _parts(mentions):
        part, whole = _in_unit(mentions[i].quantity, mentions[j].quantity), mentions[j].quantity
        if _is_about_rest(problem, mentions[i]):
            left = point(whole, whole.low - part.low, max(part.slack, whole.slack) if part.kind == "quantity" else 0.0)
            yield left, f"{as_written(whole)} − {as_written(part)}", (i, j)
            yield _of_whole(whole.low - part.low, whole), f"1 − {as_written(part)} / {as_written(whole)}", (i, j)
    for i, mention in enumerate(mentions):
        share = _share(mention.quantity)
        if share is not None and 0 < share < 1 and mention.is_near and _is_about_rest(problem, mention):
            yield (
                percentage(100 * (1 - share), 100 * _slack(mention.quantity)),
                f"100 % − {as_written(mention.quantity)}",
                (i,),
            )


def _portions(problem: WordProblem, mentions: Sequence[Mention]) -> Iterator[_Result]:
    """Yield the share of a stated part in its whole: "418 of the 523" is about four in five."""
    if problem.claimed.kind in ("percentage", "ratio") and not _is_negated(problem.text):
        for i, j in _parts(mentions):
            part, whole = _in_unit(mentions[i].quantity, mentions[j].quantity), mentions[j].quantity
            if mentions[i].is_near:
                yield _of_whole(part.low, whole), f"{as_written(part)} / {as_written(whole)}", (i, j)


def _over_time(problem: WordProblem, mentions: Sequence[Mention]) -> Iterator[_Result]:
    """Yield an amount per period multiplied by the time that the claim or the text states."""
    spans = [SECONDS[_period_name(found)] for found in _SPAN.finditer(problem.text)]
    spans += [each.low for each in problem.others if each.unit == "time"]
    stated = list(enumerate(mentions)) if _WHOLE_TIME.search(problem.text) else []
    for i, rate in enumerate(mentions):
        every = _period(rate)
        if every and rate.is_near and are_alike(rate.quantity, problem.claimed):
            for span in (*spans, *(each.quantity.low for j, each in stated if j != i and each.quantity.unit == "time")):
                if span != every:
                    times = span / every
                    counted = round(times) if abs(times - round(times)) < _CALENDAR * times else times
                    yield _scaled(rate.quantity, counted), f"{as_written(rate.quantity)} × {counted:g}", (i,)


def _for_several(problem: WordProblem, mentions: Sequence[Mention]) -> Iterator[_Result]:
    """Yield a stated price per item multiplied by a count of the claim."""
    for i, price in enumerate(mentions):
        if not price.is_near or not are_alike(price.quantity, problem.claimed) or not _is_each(price):
            continue
        for count in problem.others:
            if count.kind == "count" and count.low == count.high > 1:
                yield _scaled(price.quantity, count.low), f"{as_written(count)} × {as_written(price.quantity)}", (i,)


def _parts(mentions: Sequence[Mention]) -> Iterator[tuple[int, int]]:
    """Yield indices of adjacent parts and wholes: "two of the nine", "60 of 64 GB", "Of 240, 180", "64, 38 of them"."""
    for i, (first, second) in enumerate(pairwise(mentions)):
        one, other, text = first.quantity, second.quantity, first.text
        if second.text is not text or not (are_alike(one, other) or one.is_bare):
            continue
        if one.low <= other.low and _PART_OF.fullmatch(text, one.end, other.start):
            yield i, i + 1
        elif other.low <= one.low and "." not in text[one.end : other.start]:
            is_opened = search_before(_OF_WHOLE, text, one.start) is not None
            if is_opened or _OF_THEM.match(text, other.end):
                yield i + 1, i


def _in_unit(part: Quantity, whole: Quantity) -> Quantity:
    """Convert the part to the unit of its whole if it has none: "60 of 64 GB"."""
    return part._replace(low=part.low * whole.worth, high=part.high * whole.worth) if part.is_bare else part


def _is_about_rest(problem: WordProblem, part: Mention) -> bool:
    """Return whether the claim is about the remainder.

    It may use a word such as "others", a negation that the text lacks, or words by which the text names the rest.
    """
    if not part.is_near:
        return False
    if _OTHERS.search(problem.text) or (_is_negated(problem.text) and not _is_negated(part.text)):
        return True
    rest = _OTHERS.search(part.text, part.quantity.end)
    if rest is None:
        return False
    owner = content_stems(_clause(part.text, rest.start())) - content_stems(_clause(part.text, part.quantity.start))
    return not owner.isdisjoint(content_stems(problem.text))


def _before(mentions: Sequence[Mention], place: int, like: Quantity) -> int | None:
    """Return the index of the nearest mention before `place` with the kind and unit of `like`."""
    return next((i for i in range(place - 1, -1, -1) if are_alike(mentions[i].quantity, like)), None)


def _share(quantity: Quantity) -> float | None:
    """Return a percentage or a fraction as a number relative to 1; None for other quantities."""
    if quantity.kind == "percentage" and quantity.unit == "%":
        return quantity.low / 100
    return quantity.low if quantity.kind == "ratio" and quantity.unit == "share" else None


def _slack(share: Quantity) -> float:
    return share.slack / 100 if share.kind == "percentage" else share.slack


def _of_whole(part: float, whole: Quantity) -> Quantity:
    return percentage(100 * part / whole.low, 0.0) if whole.low else percentage(0.0, 0.0)


def _scaled(quantity: Quantity, factor: float) -> Quantity:
    return point(quantity, quantity.low * factor, quantity.slack * factor)


def _period(rate: Mention) -> float:
    """Return the period of a rate in seconds, from the words after it or the header of its column; 0 if it has none."""
    text, start = rate.text, rate.quantity.start
    column = text[text.rfind("|", 0, start) + 1 : start]
    found = _PER.match(text, rate.quantity.end) or (_PER_COLUMN.search(column) if ": " in column else None)
    return SECONDS[_period_name(found)] if found else 0.0


def _period_name(match: re.Match[str]) -> str:
    return (
        (match["period"] or match["adverb"]).lower().removesuffix("ly").replace("annual", "year").replace("dai", "day")
    )


def _is_each(price: Mention) -> bool:
    text, start = price.text, price.quantity.start
    return bool(_EACH_BEHIND.match(text, price.quantity.end) or _EACH_BEFORE.search(text, max(0, start - 60), start))


def _clause(text: str, place: int) -> str:
    low = last_end(_TURN, text, place)
    turn = _TURN.search(text, place)
    return text[low : turn.start() if turn else len(text)]


def _is_negated(text: str) -> bool:
    return _NEGATION.search(text) is not None


_MAX_MENTIONS = 16
_CALENDAR = 0.005  # relative; a year is slightly more than 52 weeks
_MORE_THAN = re.compile(
    r"(?: [^\W\d_]+)?? (?:(?P<more>more|higher|above|greater)|fewer|less|lower|below|under)(?: [^\W\d_]+)?? than "
    r"(?P<than>[^.;,]+)"
)
_EARLIER = re.compile(
    r"\b(?:earlier|before|previous(?:ly)?|prior|last (?:year|month|season|quarter)|year ago|formerly|had been|"
    r"originally)\b",
    re.I,
)
_EXPECTED = re.compile(
    r"\b(?:plan(?:ned)?|budget(?:ed)?|expected|forecast|foreseen|estimated?|scheduled|projected)\b", re.I
)
_CUT = re.compile(
    r"\b(?:cut|reduced|lowered|discounted|marked down|cheaper|trimmed|discount of|reduction of)(?: by| of)?(?: an?)? $",
    re.I,
)
_OFF = re.compile(r",? (?:off\b|discount|rebate|reduction|cheaper|less\b)", re.I)
_REDUCED = re.compile(
    r"\b(?:discount|reduc|sale\b|now\b|after\b|with\b|off\b|instead|special|offer|rebate|cheaper|cost|pay|price)", re.I
)
_HALF = re.compile(
    r"\bhalf(?:[- ](?:price|fare|rate|fee)|(?: of)? the (?:[^\W\d_]+ )?(?:price|fare|rate|fee|cost|amount)|"
    r"(?=[.,;)]|$))",
    re.I,
)
_OTHERS = re.compile(r"\b(?:others?|rest|remain(?:s|ing|der|ed)?|left|free|available|unused|spare)\b", re.I)
_NEGATION = re.compile(r"\b(?:not|never|no|none|neither|without|cannot)\b|n['’]t\b", re.I)
_PART_OF = re.compile(
    r" (?:[^\W\d_]+ )?(?:out )?of (?:the |its |their |these |those |all )?(?:total |first )?(?:[$€£])?"
)
_OF_WHOLE = re.compile(r"\b(?:out )?of (?:the |its |their |all )?(?:about )?$", re.I)
_OF_THEM = re.compile(r" of (?:them|these|those|which|whom)\b")
_SPAN = re.compile(
    r"\b(?:an?|one|per|each|every)(?: full| whole| entire)? (?P<period>day|week|month|quarter|year)\b"
    r"(?! (?:earlier|later|ago))"
    r"|\b(?P<adverb>daily|weekly|monthly|quarterly|yearly|annual(?:ly)?)\b",
    re.I,
)
_WHOLE_TIME = re.compile(r"\b(?:whole|entire|(?<!in )full|total|in all|altogether|overall|throughout)\b", re.I)
_PER = re.compile(
    r"[^.;,|\d]{0,40}?(?: per | an? | each | every |/)(?P<period>day|week|month|quarter|year)\b"
    r"|[^.;,|\d]{0,12}? (?P<adverb>daily|weekly|monthly|quarterly|yearly|annually)\b"
)
_PER_COLUMN = re.compile(
    r"(?:\bper |/ ?|\ba )(?P<period>day|week|month|quarter|year)\b"
    r"|\b(?P<adverb>daily|weekly|monthly|quarterly|yearly|annual)\b",
    re.I,
)
_EACH_BEHIND = re.compile(r" (?:each|apiece|a piece|per (?!cent)[^\W\d_]+|for (?:each|every|one))\b")
_EACH_BEFORE = re.compile(r"\b(?:each|every)\b[^.;,|]*$", re.I)
_TURN = re.compile(r"[.;,](?= )|[.;]$|\b(?:and|but|while|whereas)\b")
_OPERATIONS: tuple[_Operation, ...] = (_compared, _discounted, _halved, _rest, _portions, _over_time, _for_several)
