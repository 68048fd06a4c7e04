"""Parse dates, times of day, and durations with colons between hours, minutes and seconds.

A date is an interval of days, so that a day lies in its quarter and a quarter in its year. A day is its proleptic
Gregorian ordinal. Fiscal periods are treated as the calendar periods of the same name, because their true bounds are
rarely stated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date
from typing import NamedTuple

from groundwire.text.words import NUMERALS

NOON, DAY = 720.0, 1440.0  # minutes


class TimeReading(NamedTuple):
    """A parsed date or time of day: its end in the text, and its first and last day or its minutes since midnight.

    `other` is a second interpretation: of an ambiguous date such as "12/01/2024", 12 hours apart if the half of the day
    is not stated, or 24:00 for midnight. `unit` is "" for a date on the calendar. A date without a year has the unit
    "month-day" (`low` is 100 * month + day), "month", "quarter" or "half" (`low` is its number).
    """

    end: int
    low: float
    high: float
    other: tuple[float, float] | None = None
    unit: str = ""


def _clock(end: int, minutes: float, other: float | None) -> TimeReading:
    return TimeReading(end, minutes, minutes, None if other is None else (other, other))


def read_clock(text: str, position: int) -> TimeReading | None:
    """Parse a time of day in digits at `position`: "16:00", "4 pm", "8.30 a.m.", "10 in the morning"."""
    match = _CLOCK.match(text, position)
    if match is None:
        return None
    hour, half = int(match["hour"]), _half_of_day(match)
    hour = hour % 12 + (12 if half == "p" else 0) if half else hour
    minutes = 60.0 * hour + int(match["minute"] or match["minutes"] or 0)
    return _clock(match.end(), minutes, minutes + NOON if not half and hour < 12 else None)


def read_spoken_clock(text: str, position: int) -> TimeReading | None:
    """Parse a time of day in words at `position`: "noon", "half past three", "three o'clock".

    A bare hour needs a word such as "at" before it and the end of a phrase after it.
    """
    if named := _NAMED.match(text, position):
        at_midnight = named.group().lower() == "midnight"
        return _clock(named.end(), 0.0 if at_midnight else NOON, DAY if at_midnight else None)
    if match := _SPOKEN_CLOCK.match(text, position):
        return _spoken(match)
    hour = _SPOKEN_HOUR.match(text, position)
    if hour is None or _LEVEL.search(text, max(0, position - _LEAD), position):
        return None
    minutes = 60.0 * (_HOURS[hour["hour"].lower()] % 12)
    return _clock(hour.end("hour"), minutes, minutes + NOON)


def read_duration(text: str, position: int) -> tuple[int, float] | None:
    """Parse a duration such as "2:24:37" at `position`; return its end and its seconds, or None.

    The word before it must introduce a duration, such as "in" or "took".
    """
    match = _DURATION.match(text, position)
    if match is None or not _LASTING.search(text, max(0, position - _LEAD), position):
        return None
    return match.end(), 3600.0 * int(match["hours"]) + 60.0 * int(match["minutes"]) + float(match["seconds"])


def may_begin_clock(word: str) -> bool:
    """Return whether a time of day in words may start with this lower-case word."""
    return word in _CLOCK_STARTERS


def _half_of_day(match: re.Match[str]) -> str:
    if match["part"]:
        return "a" if match["part"] == "morning" else "p"
    if match["night"]:
        return "p" if 6 <= int(match["hour"]) < 12 else "a"
    return (match["half"] or "").lower()


def _spoken(match: re.Match[str]) -> TimeReading:
    """Convert a match such as "half past three", "a quarter to five in the afternoon" or "three o'clock"."""
    hour = _HOURS[(match["hour"] or match["full"]).lower()]
    past, to = (_MINUTES.get((match[name] or "").lower().replace("-", " "), 0.0) for name in ("minutes", "to"))
    half_day = (match["half"] or match["part"] or "").lower()
    time = 60.0 * (hour % 12) + past - to
    time += NOON if half_day[:1] in ("p", "e") or half_day.startswith("aft") else 0
    return _clock(match.end(), time % DAY, None if half_day else (time + NOON) % DAY)


_HOURS = {name: number for name, number in NUMERALS.items() if 1 <= number <= 12}
_MINUTES = {"half": 30.0, "quarter": 15.0, "a quarter": 15.0, "five": 5.0, "ten": 10.0, "twenty": 20.0}
_MINUTES |= {"twenty five": 25.0}
_CLOCK_STARTERS = frozenset(_HOURS) | {"noon", "midday", "midnight", "half", "quarter", "a", "twenty", "twenty-five"}
_LEAD = 32  # characters before a time that are searched for its meaning

_CLOCK = re.compile(
    r"(?P<hour>[01]?\d|2[0-4])(?:(?:[:.](?P<minute>[0-5]\d)(?::[0-5]\d)?)?[ \u00a0]?"
    r"(?:(?P<half>[aApP])\.?[mM]\b"
    r"|(?:o['’]clock )?(?:in the (?P<part>morning|afternoon|evening)|at (?P<night>night))\b|(?P<clock>o['’]clock)\b)"
    r"|:(?P<minutes>[0-5]\d)(?::[0-5]\d)?(?![\d:]))"
)
_NAMED = re.compile(r"(?:noon|midday|midnight)\b", re.I)
_SPOKEN_CLOCK = re.compile(
    rf"(?:(?:(?P<minutes>half|(?:a )?quarter|twenty[ -]five|twenty|ten|five)(?: minutes)? past "
    rf"|(?P<to>(?:a )?quarter|twenty[ -]five|twenty)(?: minutes)? to )(?P<hour>{'|'.join(_HOURS)})\b"
    rf"|(?P<full>{'|'.join(_HOURS)}) o['’]clock\b)"
    r"(?: in the (?P<part>morning|afternoon|evening)| at night| ?(?P<half>[ap])\.?m\b)?",
    re.I,
)
_SPOKEN_HOUR = re.compile(
    rf"(?:(?<=\bat )|(?<=\bbefore )|(?<=\buntil )|(?<=\btill ))(?P<hour>{'|'.join(_HOURS)})"
    r"(?=[.,;:!?)]|$| (?:and|or|but|on|if|because|since|tomorrow|today|tonight|sharp)\b)",
    re.I,
)
_LEVEL = re.compile(  # "stood at four" is no time of day
    r"\b(?:stood|stands?|remain(?:s|ed)?|stay(?:s|ed)?|kept|put|set|fixed|held|capped|valued|priced|estimated|unchanged|"
    r"peak(?:s|ed)?|aged?) at $",
    re.I,
)
_DURATION = re.compile(
    r"(?P<hours>\d{1,3}):(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d(?:\.\d{1,3})?)(?![\d:]| ?[aApP]\.?[mM]\b)"
)
_LASTING = re.compile(
    r"\b(?:in|of|times?|record|took|takes|needed|needs|clocked|ran|lasted|lasts|finish(?:ed|ing)?|within|duration|length)"
    r"(?: (?:is|was|a|just|only|about))?:? \(?$",
    re.I,
)


def read_date(text: str, position: int, *, at_digit: bool) -> TimeReading | None:
    """Parse the date that starts at `position`, or return None. A bare year is not parsed."""
    if at_digit and not _ANY_AT_DIGIT.match(text, position):
        return None
    for pattern, build in _AT_DIGIT if at_digit else _AT_WORD:
        if match := pattern.match(text, position):
            try:
                return build(match)
            except ValueError:  # no such day or month, e.g. 31 February
                continue
    return None


def year_span(first: int, last: int | None = None) -> tuple[float, float]:
    """Return the days from the start of year `first` to the end of year `last`, by default the same year.

    Years before our era are negative; outside the years 1–9999 the days are approximate.
    """
    last = first if last is None else last
    if first < 1 or last > 9999:
        return first * 366.0, last * 366.0 + 365.0
    return float(date(first, 1, 1).toordinal()), float(date(last, 12, 31).toordinal())


def without_year(unit: str, low: float, high: float) -> int:
    """Return the number of the `unit` (see `TimeReading`) that `low` to `high` covers; 0 if its length does not fit."""
    days = high - low
    if unit == "month-day":
        return 0 if days else _month_day(low)
    if unit == "month":
        first, last = _month_day(low) // 100, _month_day(high) // 100
        return first if first == last and days < 31 else 0
    if unit == "quarter":
        return (_month_day(low) // 100 + 2) // 3 if 88 <= days <= 92 else 0
    return (_month_day(low) // 100 + 5) // 6 if 179 <= days <= 185 else 0


def is_date_word(word: str) -> bool:
    """Return whether a date may start with this lower-case word."""
    return word[:3] in _MONTHS or word in _STARTERS or (word[0] in "qhfc" and any(map(str.isdigit, word[1:5])))


def _month_day(day: float) -> int:
    """Return 100 * month + day of an ordinal; 0 outside the calendar."""
    when = date.fromordinal(int(day)) if 1 <= day <= date.max.toordinal() else None
    return 100 * when.month + when.day if when else 0


def _full_year(written: str) -> int:
    return int(written) if len(written) > 2 else int(written) + (2000 if int(written) < 70 else 1900)


def _day(match: re.Match[str]) -> TimeReading:
    day = float(date(_full_year(match["year"]), _month(match), int(match["day"])).toordinal())
    return TimeReading(match.end(), day, day)


def _month(match: re.Match[str]) -> int:
    written = match["month"]
    return int(written) if written.isdigit() else _MONTHS[written[:3].lower()]


def _ambiguous_day(match: re.Match[str]) -> TimeReading:
    """Parse day and month in either order; where both are possible, keep both interpretations."""
    year, first, second = _full_year(match["year"]), int(match["first"]), int(match["second"])
    days = [
        float(date(year, month, day).toordinal())
        for month, day in dict.fromkeys(((first, second), (second, first)))
        if 1 <= month <= 12
    ]
    if not days:
        raise ValueError(match.group())
    return TimeReading(match.end(), days[0], days[0], (days[1], days[1]) if len(days) > 1 else None)


def _month_of_year(match: re.Match[str]) -> TimeReading:
    return _months(match, _full_year(match["year"]), _month(match), 1)


def _months(match: re.Match[str], year: int, first: int, count: int) -> TimeReading:
    after = date(year + (first + count - 1) // 12, (first + count - 1) % 12 + 1, 1)
    return TimeReading(match.end(), float(date(year, first, 1).toordinal()), float(after.toordinal() - 1))


def _day_of_month(match: re.Match[str]) -> TimeReading:
    month, day = _month(match), int(match["day"])
    date(2024, month, day)
    return TimeReading(match.end(), 100.0 * month + day, 100.0 * month + day, unit="month-day")


def _month_alone(match: re.Match[str]) -> TimeReading:
    return TimeReading(match.end(), float(_month(match)), float(_month(match)), unit="month")


def _end_of_month(match: re.Match[str]) -> TimeReading:
    """Return the last day of a month. Without a year, February ends on the 28th."""
    month = _month(match)
    year = int(match["year"]) if match["year"] else 2023
    last = (date(year + month // 12, month % 12 + 1, 1)).toordinal() - 1
    if match["year"]:
        return TimeReading(match.end(), float(last), float(last))
    written = 100.0 * month + date.fromordinal(last).day
    return TimeReading(match.end(), written, written, unit="month-day")


def _part_of_year(match: re.Match[str]) -> TimeReading:
    """Parse a quarter or a half, with or without its year."""
    length = 3 if match["part"].lower()[0] == "q" else 6
    written, is_last = match["number"].lower(), match["number"].lower() in _LAST
    number = 12 // length if is_last else int(_ORDINALS.get(written, written))
    if not 1 <= number <= 12 // length:
        raise ValueError(match.group())
    if match["year"] is None:
        if is_last:  # "last quarter" may be the previous one
            raise ValueError(match.group())
        return TimeReading(match.end(), number, number, unit="quarter" if length == 3 else "half")
    return _months(match, _full_year(match["year"]), (number - 1) * length + 1, length)


def _year(match: re.Match[str]) -> TimeReading:
    return TimeReading(match.end(), *year_span(_full_year(match["year"])))


def _years(match: re.Match[str]) -> TimeReading:
    first, written = int(match["year"]), match["last"]
    last = int(written) if len(written) == 4 else first - first % 100 + int(written)
    if not first < last <= first + 300:
        raise ValueError(match.group())
    return TimeReading(match.end(), *year_span(first, last))


def _year_of_era(match: re.Match[str]) -> TimeReading:
    return TimeReading(match.end(), *year_span(-int(match["year"]) if match["before"] else int(match["year"])))


def _decade(match: re.Match[str]) -> TimeReading:
    written = match["decade"].lower()
    first = 1900 + _DECADES[written] if written in _DECADES else int(written)
    first += 1900 if first < 100 else 0
    return TimeReading(match.end(), *year_span(first, first + (99 if first % 100 == 0 and first < 2000 else 9)))


def _century(match: re.Match[str]) -> TimeReading:
    number = int(_ORDINALS.get(match["number"].lower(), match["number"]))
    if match["era"]:
        return TimeReading(match.end(), *year_span(-100 * number, -100 * (number - 1) - 1))
    return TimeReading(match.end(), *year_span(100 * (number - 1) + 1, 100 * number))


_MONTHS = {name: number for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_ORDINALS = {
    name: str(number)
    for number, name in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
        "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth twenty-first".split(),
        1,
    )
}
_LAST = frozenset(("last", "final"))
_DECADES = {
    name: 10 * number
    for number, name in enumerate("twenties thirties forties fifties sixties seventies eighties nineties".split(), 2)
}
_STARTERS = frozenset("end fiscal fy financial q h calendar twenty".split()).union(_ORDINALS, _LAST, _DECADES)

_MONTH = (
    r"(?P<month>jan(?:uary|\.)?|feb(?:ruary|\.)?|mar(?:ch|\.)?|apr(?:il|\.)?|may|jun(?:e|\.)?|jul(?:y|\.)?|aug(?:ust|\.)?"
    r"|sept?(?:ember|\.)?|oct(?:ober|\.)?|nov(?:ember|\.)?|dec(?:ember|\.)?)(?![^\W_])"
)
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?![\d%])"
_YEAR = r"(?P<year>[12]\d{3})(?![\d,.]\d|\d)"
_SHORT_YEAR = r"(?P<year>[12]\d{3}|\d\d)(?!\w)"
_TO_LATER_DAY = (  # "8 to Friday 19 September": only the last day is followed by the month
    r"(?= ?(?:to|until|till|and|[-–]) ?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,? (?:the )?)?"
    r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
)
_FISCAL = r"(?:(?:fiscal|financial|calendar)(?: year)?|FY)"
_OF_YEAR = (
    rf"(?:(?:,? of| in|,)?[ -]?(?:the )?(?:{_FISCAL}[ -]?)?(?:year )?['’]?"
    r"(?P<year>[12]\d{3}(?!\w)|(?<=['’Yy-])\d\d(?!\w)))"
)


_BEFORE_MONTH = (
    "(?:"
    + "|".join(rf"(?<=\b{word} )" for word in "in of since until by during ended ends early late mid last".split())
    + ")"
)


def _compiled(
    *rules: tuple[str, Callable[[re.Match[str]], TimeReading]],
) -> tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], TimeReading]], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), build) for pattern, build in rules)


# Longer forms first: the first rule that matches wins.
_AT_DIGIT = _compiled(
    (r"(?P<year>[12]\d{3})([-/.])(?P<month>\d\d?)\2(?P<day>\d\d?)(?!\d)", _day),
    (r"(?P<first>\d\d?)([-/])(?P<second>\d\d?)\2(?P<year>\d{4}|\d\d)(?!\w|\2\w)", _ambiguous_day),
    (r"(?P<first>\d\d?)\.(?P<second>\d\d?)\.(?P<year>\d{4})(?!\w|\.\d)", _ambiguous_day),
    (rf"{_DAY}[ -](?:of )?{_MONTH},?[ -]{_YEAR}", _day),
    (rf"{_DAY}[ -](?:of )?{_MONTH}", _day_of_month),
    (rf"{_DAY}{_TO_LATER_DAY}[ -](?:of )?{_MONTH},?[ -]{_YEAR})", _day),
    (rf"{_DAY}{_TO_LATER_DAY}[ -](?:of )?{_MONTH})", _day_of_month),
    (r"(?P<year>[12]\d{3})[ -]?(?P<part>Q|H)(?P<number>[1-4])(?!\w)", _part_of_year),
    (rf"(?P<number>[1-4])(?P<part>Q|H)[ -]?(?:FY)?['’]?{_SHORT_YEAR}", _part_of_year),
    (r"(?P<number>[1-4])(?:st|nd|rd|th)[ -](?P<part>quarter|half)" + rf"{_OF_YEAR}?", _part_of_year),
    (r"(?P<number>\d\d?)(?:st|nd|rd|th)[ -]century(?P<era> BCE?\b)?", _century),
    (r"(?P<decade>[12]\d\d0|[2-9]0)['’]?s(?!\w)", _decade),
    (r"(?P<year>[12]\d{3})[-–—/](?P<last>[12]\d{3}|\d\d)(?![-/–]?\w)", _years),
    (r"(?P<year>\d{1,4})(?: ?(?P<before>BCE?|B\.C\.)| (?:AD|CE|A\.D\.))(?!\w)", _year_of_era),
)
_AT_WORD = _compiled(
    (rf"(?:(?<=until the )|(?<=till the )|(?<=by the ))end of {_MONTH}(?:,? {_YEAR})?", _end_of_month),
    (rf"{_MONTH} {_DAY},? {_YEAR}", _day),
    (rf"{_MONTH},?(?: of)?[ -]{_YEAR}", _month_of_year),
    (rf"{_MONTH}[-'’ ]['’]?(?P<year>\d\d)(?=['’]?(?:[,.;)\]]|$))(?<=['’]\d\d)", _month_of_year),
    (rf"{_MONTH} {_DAY}(?![.:]\d)", _day_of_month),
    (rf"{_BEFORE_MONTH}(?-i:(?=[A-Z])){_MONTH}(?!,? \d|['’])", _month_alone),
    (rf"(?P<part>Q|H)(?P<number>[1-4])(?!\w){_OF_YEAR}?", _part_of_year),
    (rf"(?P<number>first|second|third|fourth|last|final)[ -](?P<part>quarter|half){_OF_YEAR}?", _part_of_year),
    (rf"(?P<number>{'|'.join(sorted(_ORDINALS, key=len, reverse=True))})[ -]century(?P<era> BCE?\b)?", _century),
    (rf"(?P<decade>{'|'.join(_DECADES)})(?!\w)", _decade),
    (rf"{_FISCAL} ended {_MONTH} {_DAY},? {_YEAR}", _year),
    (rf"{_FISCAL}[ -]?['’]?{_SHORT_YEAR}", _year),
    (r"CY[ -]?['’]?(?P<year>[12]\d{3}|\d\d)(?!\w)", _year),
)


def _any_of(rules: Iterable[tuple[re.Pattern[str], object]]) -> re.Pattern[str]:
    """Return a pattern that matches wherever one of the rules does; it does not require equal separators."""
    plain = (re.sub(r"\(\?P<\w+>", "(?:", rule.pattern).replace(r"(?!\w|\2\w)", "") for rule, _ in rules)
    patterns = (pattern.replace(r"\2", "[-/.]") for pattern in plain)
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_ANY_AT_DIGIT = _any_of(_AT_DIGIT)
