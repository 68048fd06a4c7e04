"""Compare the frequencies of a claim ("twice daily", "every 8 hours") with those that the sources state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from groundwire.caches import memo
from groundwire.text.quantities.rates import ADVERB_NAMES, ADVERBS, DAY, NOT_NOW, PERIOD_NAMES, SECONDS
from groundwire.text.quantities.tolerance import compare
from groundwire.text.words import content_stems
from groundwire.verifiers.numbers.candidates import Asked, Read


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


class Compared(NamedTuple):
    """A frequency of a claim, and the one that a source states for the same thing."""

    claimed: Frequency
    stated: Frequency
    read: Read

    @property
    def agrees(self) -> bool:
        """Return whether the source states the frequency of the claim."""
        return self.claimed.agrees(self.stated)


@memo(1024, 1024, long_entries=2)
def find_frequencies(text: str) -> tuple[Frequency, ...]:
    """Return the frequencies in `text`, in order and without overlaps, in linear time."""
    return tuple(_frequencies(text))


def _frequencies(text: str) -> Iterator[Frequency]:
    for found in _FREQUENCY.finditer(text):
        low, high = _times(found)
        if low > 0:
            yield Frequency(found.start(), found.end(), found.group(), low, high)


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


def compare_frequencies(asked: Asked, passages: Sequence[Read]) -> Iterator[Compared]:
    """Yield each frequency of a claim with the one that a passage states for the same thing, equal or not."""
    text = asked.claim.text
    for claimed in find_frequencies(text):
        subject = _subject(text, (claimed.start, claimed.end))
        stated = ((read, _frequency_of(asked, subject, read)) for read in passages)
        found = [Compared(claimed, each, read) for read, each in stated if each]
        if found:
            yield next((each for each in found if each.agrees), found[0])


def _frequency_of(asked: Asked, subject: frozenset[str], read: Read) -> Frequency | None:
    """Return the frequency that a passage states for a subject, or None.

    The passage must have most of the subject's words, or some of them and a measure of the claim. Of several
    frequencies, the last one is used that follows words of the subject not yet mentioned.
    """
    found, start = None, 0
    known: frozenset[str] = frozenset()
    frequencies = find_frequencies(read.passage.text)
    asked.work.spend(len(frequencies))
    for each in frequencies:
        told = read.passage.stems if len(frequencies) == 1 else content_stems(read.passage.text[start : each.end])
        if subject & told - known:
            found, known = each, known | (subject & told)
        start = each.end
    if found is None or not read.is_named or len(known) < _SOME * len(subject):
        return None
    return found if len(known) > _MOST * len(subject) or _has_amount(asked, read) else None


def _has_amount(asked: Asked, read: Read) -> bool:
    """Return whether a passage has a measure of the claim, such as its dose."""
    amounts = [each for each in asked.quantities if each.kind == "quantity" and each.unit != "time"]
    asked.work.spend(len(amounts) * len(read.quantities))
    return any(compare(mine, other).is_match for mine in amounts for other in read.quantities)


def _subject(text: str, span: tuple[int, int]) -> frozenset[str]:
    """Return the stems of a claim without its frequency and its numbers."""
    rest = text[: span[0]] + " " + text[span[1] :]
    return frozenset(each for each in content_stems(rest) if not each[0].isdigit())


_SOME, _MOST = 0.3, 0.6
_NEAR = 1.1
_NUMBERS = {"once": 1.0, "twice": 2.0, "thrice": 3.0, "other": 2.0, "second": 2.0, "third": 3.0, "fourth": 4.0}
_NUMBERS |= {
    name: float(number)
    for number, name in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), start=1)
}
_CODES = {"bid": 2.0, "tid": 3.0, "qid": 4.0, "qd": 1.0, "qhs": 1.0, "qod": 0.5}
_DIGITS = r"(?:\d{1,3}|" + "|".join(name for name in _NUMBERS if name not in ("once", "twice", "thrice")) + ")"
_FREQUENCY = re.compile(
    rf"\b(?:(?P<times>once|twice|thrice|{_DIGITS}(?= times|(?: ?[-–] ?| to | or ){_DIGITS} times))"
    rf"(?:(?: ?[-–] ?| to | or )(?P<times_to>{_DIGITS}|twice|thrice))?(?: times)?"
    rf"(?:(?: an?| per| each| every|/) ?(?P<period>{PERIOD_NAMES})\b{NOT_NOW}| (?P<by>{ADVERB_NAMES})\b)"
    rf"|(?:every|each) (?:(?P<gap>{_DIGITS})(?:(?: ?[-–] ?| to | or )(?P<gap_to>{_DIGITS}))? )?"
    rf"(?P<every>{PERIOD_NAMES})s?\b"
    rf"|(?P<adverb>{ADVERB_NAMES})(?=\s*(?:[.,;:)!?|\n]|$)"
    r"| (?:at|on|in|by|with|before|after|from|until|between|without)\b)"
    r"|(?<![\w.])(?P<code>(?-i:BID|TID|QID|QD|QHS|QOD)|[bt]\.i\.d\b|q\.i\.d\b)\b|q(?P<hours>\d{1,2})h\b)",
    re.IGNORECASE,
)
