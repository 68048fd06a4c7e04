"""Compare lengths of time, frequencies and limits with those that sources state or imply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import combinations
from typing import NamedTuple

from groundwire.caches import memo
from groundwire.text.binding import search_before
from groundwire.text.quantities import Quantity
from groundwire.text.tolerance import compare
from groundwire.text.units import ADVERB_NAMES, ADVERBS, DAY, NOT_NOW, PERIOD_KIND, PERIOD_NAMES, SECONDS
from groundwire.text.words import NUMERALS, content_stems
from groundwire.verifiers.numbers.arithmetic import Derivation, Mention
from groundwire.verifiers.numbers.candidates import ParsedPassage, Query


def derive_elapsed(claimed: Quantity, cue_text: str, moments: Sequence[Mention]) -> Derivation | None:
    """Derive a claimed length of time from two of `moments`, or return None.

    One of them must be near the claim's subject. The ends of a stated range ("from 9 am to 9 pm") need no cue word in
    `cue_text`, other moments need one such as "after". "More than" accepts up to 50 % more and "less than" up to 50 %
    less. At most the first `_MAX_MOMENTS` are tried.
    """
    if search_before(_FREQUENCY, cue_text, claimed.start):
        return None
    has_cue = _BETWEEN.search(cue_text) is not None
    named = _named(cue_text, moments)
    for (i, first), (j, second) in combinations(enumerate(moments[:_MAX_MOMENTS]), 2):
        is_range = first.text is second.text and is_span(first.text, first.quantity, second.quantity)
        if named and first not in named and second not in named:
            continue
        if (has_cue or is_range) and (first.is_near or second.is_near):
            for seconds in _seconds(claimed, cue_text, first, second, is_range):
                if _is_duration(claimed, seconds):
                    return Derivation(_formula(first, second), (i, j))
    return None


def is_moment(quantity: Quantity, text: str) -> bool:
    """Return whether a quantity is a moment: a date, a time of day, or "45 minutes before departure"."""
    if quantity.kind == "date":
        return quantity.unit in ("", "month-day")
    return quantity.kind == "time" or _side(quantity, text) != ""


def _seconds(claimed: Quantity, cue_text: str, first: Mention, second: Mention, is_range: bool) -> Iterator[float]:
    """Yield the possible lengths of time, in seconds, between two moments of one kind."""
    one, other = first.quantity, second.quantity
    if one.kind == other.kind == "date" and claimed.worth >= _DAY:
        yield from _between_dates(claimed, one, other, is_range)
    elif one.kind == other.kind == "time" and claimed.worth < _DAY:
        minutes = other.low - one.low
        yield abs(minutes) * 60
        yield minutes % _MINUTES_A_DAY * 60
    elif one.kind == other.kind == "quantity":
        sides = _side(one, first.text), _side(other, second.text)
        if sides[0] == sides[1] not in ("", _side(claimed, cue_text)) and one.low != other.low:
            yield abs(one.low - other.low)


def _named(cue_text: str, moments: Sequence[Mention]) -> list[Mention]:
    """Return the moments whose text is about the event from which the claim counts: "four years after her return"."""
    event = _FROM_EVENT.search(cue_text)
    stems = content_stems(cue_text[event.end() :]) if event else frozenset()
    return [each for each in moments if stems & content_stems(each.text)]


def _between_dates(claimed: Quantity, one: Quantity, other: Quantity, is_range: bool) -> Iterator[float]:
    """Yield lengths in seconds: days from the first to the last, in a range also including both, and calendar years."""
    first, last = _on_calendar(one, other), _on_calendar(other, one)
    if first is None or last is None or first == last:
        return
    days = abs(last - first)
    yield days * _DAY
    if is_range and claimed.worth < _YEAR:
        yield (days + 1) * _DAY
    if claimed.worth >= _YEAR and (one.low != one.high or other.low != other.high) and min(one.low, other.low) > 0:
        yield abs(date.fromordinal(int(last)).year - date.fromordinal(int(first)).year) * _YEAR


def _on_calendar(dated: Quantity, other: Quantity) -> float | None:
    """Return the first day of a date. A date without a year takes the year of the other one, if that has a year."""
    if not dated.unit:
        return dated.low if 1 <= dated.low <= date.max.toordinal() else None
    year = date.fromordinal(int(other.low)).year if not other.unit and other.low > 0 else _SOME_YEAR
    try:
        return float(date(year, int(dated.low) // 100, int(dated.low) % 100).toordinal())
    except ValueError:  # 29 February
        return None


def _is_duration(claimed: Quantity, seconds: float) -> bool:
    if claimed.bound == "least":
        return claimed.low <= seconds <= claimed.high * (1 + _BOUND_REACH)
    if claimed.bound == "most":
        return claimed.low * (1 - _BOUND_REACH) <= seconds <= claimed.high
    near = _APPROXIMATION * claimed.low if claimed.is_approximate else _allowed(claimed)
    return claimed.low - near <= seconds <= claimed.high + near


def _allowed(claimed: Quantity) -> float:
    """Return the tolerance in seconds.

    Days and hours are exact, weeks may deviate by a day, months and years by a day and 2 %.
    """
    if claimed.worth <= _DAY:
        return 0.01 * claimed.worth
    return _DAY + (0.02 * claimed.low if claimed.worth > 2 * 7 * _DAY else 0.0)


def is_span(text: str, first: Quantity, second: Quantity) -> bool:
    """Return whether two moments are the ends of one span: "between 02:10 and 03:45", "8 to 19 September"."""
    joint = _JOINT.fullmatch(text, first.end, second.start)
    return joint is not None and (
        joint["and"] is None or _BEFORE_AND.search(text, max(0, first.start - _LEAD), first.start) is not None
    )


def _side(quantity: Quantity, text: str) -> str:
    """Return "before", "after" or a synonym if a duration counts from an event, else an empty string."""
    if quantity.kind != "quantity" or quantity.unit != "time":
        return ""
    match = _SIDE.match(text, quantity.end)
    return match["side"].lower() if match else ""


def _formula(first: Mention, second: Mention) -> str:
    earlier, later = (first, second) if _order(first) <= _order(second) else (second, first)
    return f"from {_written(earlier)} to {_written(later)}"


def _order(moment: Mention) -> float:
    is_before = _side(moment.quantity, moment.text) in ("before", "ahead of", "prior to")
    return -moment.quantity.low if is_before else moment.quantity.low


def _written(moment: Mention) -> str:
    side = _side(moment.quantity, moment.text)
    return " ".join(f"{moment.quantity.text} {side}".split())


_DAY, _YEAR, _MINUTES_A_DAY = 86400.0, 31557600.0, 1440.0
_SOME_YEAR = 2023  # without a leap day
_MAX_MOMENTS = 12
_BOUND_REACH = 0.5  # maximum deviation from a bound such as "more than", as a share
_APPROXIMATION = 0.1
_LEAD = 24
_BETWEEN = re.compile(
    r"\b(?:after|before|later|earlier|since|between|apart|last(?:ed|s)|took|takes?|until|ahead|for|older|younger|within|"
    r"during|ago|sooner|long)\b",
    re.I,
)
_FROM_EVENT = re.compile(r"\b(?:after|before|since)\b", re.I)
_FREQUENCY = re.compile(r"\b(?:every|each) $", re.I)
_JOINT = re.compile(
    r"(?: (?:UTC|GMT|CET|EST|PST|h))?(?: ?(?:to|until|till|[-\u2013\u2014]) ?|(?P<and> and ))"
    r"(?:the |(?:about )?|[^\W\d_]+day,? )",
    re.I,
)
_BEFORE_AND = re.compile(r"\bbetween (?:the |about |[^\W\d_]+day,? )?$", re.I)
_SIDE = re.compile(r" (?P<side>before|after|ahead of|prior to)\b", re.I)


def explain_limit(claim: str, claimed: Quantity, source: str, stated: Quantity, until: Quantity | None) -> str | None:
    """Return the explanation of how a stated limit supports the claim about `claimed`, or None if it does not.

    The limit is `stated`, a bound or a range, or the span from `stated` to `until`. A number within it is supported if
    both texts affirm or both deny, a number outside if exactly one of them denies. A claimed bound is supported by the
    opposite bound of the same value if exactly one text denies. `is_case` must be true for the number.
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
    return f"{claimed.text} is {'within' if is_inside else 'outside'} {_limit(source, stated, until)}"


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


def is_case(claim: str, claimed: Quantity) -> bool:
    """Return whether the number is a bound or describes a case: "a drone of 200 grams", "if it starts in a week"."""
    if claimed.bound:
        return True
    if claimed.kind == "currency" or claimed.kind == "count":
        return search_before(_CASE_AMOUNT, claim, claimed.start) is not None
    return claimed.kind in ("quantity", "time") and search_before(_CASE, claim, claimed.start) is not None


def _denies(text: str, limit: Quantity) -> bool:
    """Return whether a text has a negation that is not part of the limit, as in "not longer than 3 m"."""
    bound = search_before(_OF_BOUND, text, limit.start)
    around = text[: bound.start()] + text[limit.start :] if bound else text
    return _NEGATION.search(around) is not None


def _limit(source: str, stated: Quantity, until: Quantity | None = None) -> str:
    start = max(source.rfind(" ", 0, max(0, stated.start - 1)) + 1, 0)
    low = source.rfind(" ", 0, max(0, start - 1)) + 1
    return f'"{source[low : until.end if until else stated.end]}"'


_CASE = re.compile(
    r"\b(?:an?|any|every(?! $)|each(?! $)|if|when|whoever|anyone|someone)\b[^.;:]{0,60}$|"
    r"\b[^\W\d_]+s (?:of|weighing|aged) $",
    re.I,
)
_CASE_AMOUNT = re.compile(r"(?:\b(?:an?|any|every|each)(?: [^\W\d_]+){1,3}|\b[^\W\d_]+s) of [$€£]?$", re.I)
_OF_BOUND = re.compile(
    r"\b(?:not|never|cannot|n['’]t) (?:[^\W\d_]+ ){0,2}(?:[^\W\d_]+ than|over|above|below|under|beyond|exceed(?:ing)?) "
    r"[$€£]?$",
    re.I,
)
_NEGATION = re.compile(r"\b(?:not|never|no|none|nobody|nothing|neither|nor|without|cannot|exempt)\b|n['’]t\b", re.I)


class Frequency(NamedTuple):
    """A frequency at `text[start:end]`: `low` to `high` times a day."""

    start: int
    end: int
    text: str
    low: float
    high: float

    def agrees(self, other: Frequency) -> bool:
        """Return whether both may be equal, within 10 %, so that a month may be four weeks."""
        return self.low <= other.high * _NEAR and other.low <= self.high * _NEAR


class FrequencyComparison(NamedTuple):
    """A frequency of a claim, and the one that a source states for the same thing."""

    claimed: Frequency
    stated: Frequency
    parsed: ParsedPassage
    agrees: bool


@memo(1024, 1024, long_entries=2)
def find_frequencies(text: str) -> tuple[Frequency, ...]:
    """Return the frequencies in `text`, in order and without overlaps, in linear time."""
    found = ((match, *_times(match)) for match in _FREQUENCIES.finditer(text))
    return tuple(Frequency(*match.span(), match.group(), low, high) for match, low, high in found if low > 0)


def _times(found: re.Match[str]) -> tuple[float, float]:
    """Return the least and the greatest number of times a day."""
    if adverb := found["adverb"]:
        return (DAY / ADVERBS[adverb.lower()],) * 2
    if code := found["code"]:
        return (_CODES[code.replace(".", "").lower()],) * 2
    if found["hours"]:
        return (24.0 / max(1, int(found["hours"])),) * 2
    if found["every"]:
        least, most = (_number(found[name]) for name in ("gap", "gap_to"))
        seconds = SECONDS[found["every"].lower()]
        return DAY / (seconds * (most or least or 1.0)), DAY / (seconds * (least or 1.0))
    least, most = (_number(found[name]) for name in ("times", "times_to"))
    seconds = ADVERBS[found["by"].lower()] if found["by"] else SECONDS[found["period"].lower()]
    return least * DAY / seconds, (most or least) * DAY / seconds


def _number(written: str | None) -> float:
    return 0.0 if not written else float(written) if written[0].isdigit() else _NUMBERS[written.lower()]


def compare_frequencies(query: Query, passages: Sequence[ParsedPassage]) -> Iterator[FrequencyComparison]:
    """Yield each frequency of a claim with the one that a passage states for the same thing, equal or not."""
    text = query.claim.text
    for claimed in find_frequencies(text):
        subject = _described(text, (claimed.start, claimed.end))
        stated = ((parsed, _frequency_of(query, subject, parsed)) for parsed in passages)
        found = [FrequencyComparison(claimed, each, parsed, claimed.agrees(each)) for parsed, each in stated if each]
        if found:
            yield next((each for each in found if each.agrees), found[0])


def _frequency_of(query: Query, subject: frozenset[str], parsed: ParsedPassage) -> Frequency | None:
    """Return the frequency that a passage states for a subject, or None.

    The passage must have most of the subject's words, or some of them and a measure of the claim. Of several
    frequencies, the last one is used that follows words of the subject not yet mentioned.
    """
    found, start = None, 0
    known: frozenset[str] = frozenset()
    frequencies = find_frequencies(parsed.passage.text)
    query.work.spend(len(frequencies))
    for each in frequencies:
        stems = parsed.passage.stems if len(frequencies) == 1 else content_stems(parsed.passage.text[start : each.end])
        if subject & stems - known:
            found, known = each, known | (subject & stems)
        start = each.end
    if found is None or not parsed.is_named or len(known) < _MIN_SHARE * len(subject):
        return None
    return found if len(known) > _CERTAIN_SHARE * len(subject) or _has_amount(query, parsed) else None


def _has_amount(query: Query, parsed: ParsedPassage) -> bool:
    """Return whether a passage has a measure of the claim, such as its dose."""
    amounts = [each for each in query.quantities if each.kind == "quantity" and each.unit != "time"]
    query.work.spend(len(amounts) * len(parsed.quantities))
    return any(compare(amount, other).is_match for amount in amounts for other in parsed.quantities)


def _described(text: str, span: tuple[int, int]) -> frozenset[str]:
    """Return the stems of a claim without its frequency and its numbers."""
    rest = text[: span[0]] + " " + text[span[1] :]
    return frozenset(each for each in content_stems(rest) if not each[0].isdigit())


_MIN_SHARE, _CERTAIN_SHARE = 0.3, 0.6
_NEAR = 1.1
_NUMBERS = {"once": 1.0, "twice": 2.0, "thrice": 3.0, "other": 2.0, "second": 2.0, "third": 3.0, "fourth": 4.0}
_NUMBERS |= {name: float(number) for name, number in NUMERALS.items() if 1 <= number <= 12}
_CODES = {"bid": 2.0, "tid": 3.0, "qid": 4.0, "qd": 1.0, "qhs": 1.0, "qod": 0.5}
_DIGITS = r"(?:\d{1,3}|" + "|".join(name for name in _NUMBERS if name not in ("once", "twice", "thrice")) + ")"
_FREQUENCIES = re.compile(
    rf"\b(?:(?P<times>once|twice|thrice|{_DIGITS}(?= times|(?: ?[-–] ?| to | or ){_DIGITS} times))"
    rf"(?:(?: ?[-–] ?| to | or )(?P<times_to>{_DIGITS}|twice|thrice))?(?: times)?"
    rf"(?:(?: an?| per| each| every|/) ?{PERIOD_KIND}(?P<period>{PERIOD_NAMES})\b{NOT_NOW}| (?P<by>{ADVERB_NAMES})\b)"
    rf"|(?:every|each) (?:(?P<gap>{_DIGITS})(?:(?: ?[-–] ?| to | or )(?P<gap_to>{_DIGITS}))? )?"
    rf"{PERIOD_KIND}(?P<every>{PERIOD_NAMES})s?\b"
    rf"|(?P<adverb>{ADVERB_NAMES})(?=\s*(?:[.,;:)!?|\n]|$)"
    r"| (?:at|on|in|by|with|before|after|from|until|between|without)\b)"
    r"|(?<![\w.])(?P<code>(?-i:BID|TID|QID|QD|QHS|QOD)|[bt]\.i\.d\b|q\.i\.d\b)\b|q(?P<hours>\d{1,2})h\b)",
    re.IGNORECASE,
)
