"""Parse times of day in digits and in words, and durations with colons between hours, minutes and seconds."""

from __future__ import annotations

import re
from typing import NamedTuple

NOON, DAY = 720.0, 1440.0  # minutes


class ClockReading(NamedTuple):
    """A time of day: its end in the text and its minutes since midnight.

    `other` is the second possible time: 12 hours apart if the half of the day is not stated, 24:00 for midnight.
    """

    end: int
    minutes: float
    other: float | None = None


def read_clock(text: str, position: int) -> ClockReading | None:
    """Parse a time of day in digits at `position`: "16:00", "4 pm", "8.30 a.m.", "10 in the morning"."""
    match = _CLOCK.match(text, position)
    if match is None:
        return None
    hour, half = int(match["hour"]), _half_of_day(match)
    hour = hour % 12 + (12 if half == "p" else 0) if half else hour
    minutes = 60.0 * hour + int(match["minute"] or match["minutes"] or 0)
    return ClockReading(match.end(), minutes, minutes + NOON if not half and hour < 12 else None)


def read_spoken_clock(text: str, position: int) -> ClockReading | None:
    """Parse a time of day in words at `position`: "noon", "half past three", "three o'clock".

    A bare hour needs a word such as "at" before it and the end of a phrase after it.
    """
    if named := _NAMED.match(text, position):
        at_midnight = named.group().lower() == "midnight"
        return ClockReading(named.end(), 0.0 if at_midnight else NOON, DAY if at_midnight else None)
    if match := _SPOKEN_CLOCK.match(text, position):
        return _spoken(match)
    hour = _SPOKEN_HOUR.match(text, position)
    if hour is None or _LEVEL.search(text, max(0, position - _LEAD), position):
        return None
    minutes = 60.0 * (_HOURS[hour["hour"].lower()] % 12)
    return ClockReading(hour.end("hour"), minutes, minutes + NOON)


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
    return word in _STARTERS


def _half_of_day(match: re.Match[str]) -> str:
    if match["part"]:
        return "a" if match["part"] == "morning" else "p"
    if match["night"]:
        return "p" if 6 <= int(match["hour"]) < 12 else "a"
    return (match["half"] or "").lower()


def _spoken(match: re.Match[str]) -> ClockReading:
    """Convert a match such as "half past three", "a quarter to five in the afternoon" or "three o'clock"."""
    hour = _HOURS[(match["hour"] or match["full"]).lower()]
    past, to = (_MINUTES.get((match[name] or "").lower().replace("-", " "), 0.0) for name in ("minutes", "to"))
    half_day = (match["half"] or match["part"] or "").lower()
    time = 60.0 * (hour % 12) + past - to
    time += NOON if half_day[:1] in ("p", "e") or half_day.startswith("aft") else 0
    return ClockReading(match.end(), time % DAY, None if half_day else (time + NOON) % DAY)


_HOURS = {
    name: hour for hour, name in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
}
_MINUTES = {"half": 30.0, "quarter": 15.0, "a quarter": 15.0, "five": 5.0, "ten": 10.0, "twenty": 20.0}
_MINUTES |= {"twenty five": 25.0}
_STARTERS = frozenset(_HOURS) | {"noon", "midday", "midnight", "half", "quarter", "a", "twenty", "twenty-five"}
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
