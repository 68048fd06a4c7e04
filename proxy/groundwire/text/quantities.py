"""Parse quantities: money, percentages, ratios, dates, times of day, counts and measures, with their precision.

In one pass, a tokenizer stops at words and digits, and small patterns anchored there parse the quantity. Every
repetition in a pattern is bounded or consumes its input, so that the time is linear in the text.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from groundwire.caches import memo, memo_of_words
from groundwire.text.times import (
    TimeReading,
    is_date_word,
    may_begin_clock,
    read_clock,
    read_date,
    read_duration,
    read_spoken_clock,
    year_span,
)
from groundwire.text.units import CENTS, CODES, CURRENCIES, SCALES, SUFFIXES, Unit, read_rate, read_unit
from groundwire.text.words import LONGEST_WORD, NUMERALS, STOPWORDS, stem

Kind = Literal["currency", "percentage", "ratio", "date", "time", "count", "quantity"]
Bound = Literal["", "least", "most"]


class Quantity(NamedTuple):
    """A quantity as written at `text[start:end]`.

    `low` and `high` are its value in the base unit (equal for a point; days for a date; minutes for a time of day), and
    `slack` is half of the last significant digit, in the base unit. `other` is a second interpretation where the text
    allows two: day and month in the other order, the other half of the day, or brackets that do not mark a negative
    amount. `bound` marks a lower ("more than") or an upper ("up to") bound.

    `unit` is a currency code ("$" if no country is named), "%", "pp" (percentage points) or "bps" (basis points, with
    the value in points), "times", "share" or ":" for a ratio, the dimension of a measure such as "length", or the unit
    of a date (see `TimeReading`). `scale` is the factor of a written scale word. `worth` and `offset` convert the unit
    to the base unit, `written` is the unit as written. `per` is the period in seconds that an amount is counted by ("a
    day"; 0: none), `each` the stems of another divisor ("per dose"), `rate` the words for both, `nouns` the stems of
    the counted things.
    """

    start: int
    end: int
    text: str
    kind: Kind
    low: float
    high: float
    slack: float = 0.0
    unit: str = ""
    other: tuple[float, float] | None = None
    bound: Bound = ""
    is_approximate: bool = False
    is_spelled: bool = False
    scale: float = 1.0
    worth: float = 1.0
    offset: float = 0.0
    written: str = ""
    per: float = 0.0
    nouns: tuple[str, ...] = ()
    each: frozenset[str] = frozenset()
    rate: str = ""

    @property
    def shown(self) -> str:
        """The quantity on one line, with its bound and its rate."""
        return _BOUNDS[self.bound] + " ".join((self.text + self.rate).split())

    @property
    def is_bare(self) -> bool:
        """Return whether the number has no unit and no noun, so that a table's header may give them."""
        return self.kind == "count" and not self.nouns and not self.is_spelled


@memo(256, 512, long_entries=2)
def find_quantities(text: str) -> tuple[Quantity, ...]:
    """Return every quantity of `text`, in order and without overlaps, in linear time.

    Invisible characters are ignored, and a line may break between a number and its unit.
    """
    plain = _LINE_BREAK.sub(" ", text)
    if not _INVISIBLE.search(plain):
        return _find(plain) if plain is text else tuple(_placed(text, each) for each in _find(plain))
    seen = [place for place, char in enumerate(plain) if not _INVISIBLE.match(char)]
    return tuple(
        _placed(text, each._replace(start=seen[each.start], end=seen[each.end - 1] + 1))
        for each in _find("".join(plain[place] for place in seen))
    )


def _placed(text: str, quantity: Quantity) -> Quantity:
    return quantity._replace(text=text[quantity.start : quantity.end])


def _find(text: str) -> tuple[Quantity, ...]:
    found: list[Quantity] = []
    position = 0
    while match := _next_token(text, position):
        kind = match.lastgroup
        if kind == "word":
            read, position = _at_word(text, match)
        elif kind == "money":
            read, position = _at_money(text, match)
        else:
            read, position = _at_digit(text, match.start())
        found.extend(_with_rate(text, each) for each in read)
    return tuple(found)


def _next_token(text: str, position: int) -> re.Match[str] | None:
    """Return the first token from `position` on that may begin a quantity."""
    for match in _TOKEN.finditer(text, position):
        kind = match.lastgroup
        if kind != "skip" and (kind != "word" or _may_begin(match.group())):
            return match
    return None


def _with_rate(text: str, quantity: Quantity) -> Quantity:
    if quantity.kind not in _COUNTED_BY:
        return quantity
    rate = read_rate(text, quantity.end, counts=quantity.kind == "count")
    return quantity._replace(per=rate.per, each=rate.each, rate=text[quantity.end : rate.end]) if rate else quantity


@memo_of_words(16384, LONGEST_WORD)
def _may_begin(word: str) -> bool:
    """Return whether a quantity can begin with this word; with most words none can."""
    lower = word.lower()
    return (
        "-" in lower
        or lower in _SPELLED
        or lower in _FRACTION_STARTS
        or may_begin_clock(lower)
        or lower in _MULTIPLIED
        or is_date_word(lower)
    )


class _Amount(NamedTuple):
    """A parsed number with its scale, before its unit is known."""

    end: int
    value: float
    slack: float
    scale: float = 1.0
    is_spelled: bool = False
    is_plain: bool = False  # an integer in digits without separators or scale: may be a year or a citation
    could_label: bool = False  # digits without thousands separators or scale: may number a section or a figure

    def times(self, factor: float) -> _Amount:
        return self._replace(value=self.value * factor, slack=self.slack * factor, scale=self.scale * factor)


def _at_word(text: str, match: re.Match[str]) -> tuple[list[Quantity], int]:
    """Parse a date, a time of day or a number in words; return the quantities and the next position.

    A prefix such as "mid-" before a date is skipped.
    """
    word = match.group().lower()
    if is_date_word(word) and (reading := read_date(text, match.start(), at_digit=False)):
        return [_date(text, match.start(), reading)], reading.end
    if clock := read_spoken_clock(text, match.start()):
        return _one(_date(text, match.start(), clock, "time"))
    if (half := _HALF_UNIT.match(text, match.start())) and (unit := read_unit(text, half.start("unit"))):
        return _half_of_unit(text, half, unit.unit)
    if word in _MULTIPLIED:
        return _multiplied(text, match)
    if fraction := _FRACTION.match(text, match.start()):
        return [_fraction(text, fraction)], fraction.end()
    if word in _SPELLED or word in _ARTICLES:
        amount = _spelled(text, match.start())
        if amount is not None:
            return _measured(text, match.start(), amount)
    prefix = _PREFIX.match(text, match.start())
    return [], prefix.end() if prefix else match.end()


def _half_of_unit(text: str, match: re.Match[str], unit: Unit) -> tuple[list[Quantity], int]:
    """Parse "half an hour", "an hour and a half" or "three quarters of a mile".

    "An hour" alone is parsed only after a word of duration such as "takes".
    """
    share = _SHARES_OF_UNIT[(match["share"] or "").lower().replace("-", " ").split(" ")[0]]
    if match["more"]:
        share += 0.5
    elif not match["share"] and not (unit.dimension == "time" and _leads(text, match.start(), _HOW_LONG)):
        return [], match.start("unit")
    amount = _Amount(match.end(), share * unit.factor, 0.05 * unit.factor, is_spelled=True)
    found = _quantity(text, match.start(), match.end(), "quantity", [amount], 1.0, unit=unit.dimension)
    return _one(found._replace(written=match["unit"], worth=unit.factor))


def _multiplied(text: str, match: re.Match[str]) -> tuple[list[Quantity], int]:
    """Parse "doubled" or "twice as big" as a ratio of about two, but not "doubled down"."""
    is_twice = match.group().lower() == "twice"
    if not _AS_MUCH.match(text, match.end()) if is_twice else _NO_MULTIPLE.match(text, match.end()):
        return [], match.end()  # "twice a day"
    factor = _MULTIPLIED[match.group().lower()]
    amount = _Amount(match.end(), factor, 0.1 * factor, is_spelled=True)
    return _one(_quantity(text, match.start(), match.end(), "ratio", [amount], 1.0, unit="times"))


def _at_money(text: str, match: re.Match[str]) -> tuple[list[Quantity], int]:
    """Parse a currency sign or code and the amount after it."""
    opening = _AMOUNT_AHEAD.match(text, match.end())
    amount = _digits(text, opening.end(), is_money=True) if opening else None
    if opening is None or amount is None:
        return [], match.end()
    start = match.start()
    code = CURRENCIES[match["money"].lower().rstrip(".")]
    amounts = _with_range_end(text, amount, start, is_money=True)
    sign = -1.0 if opening["sign"] or _is_negative(text, start) else 1.0
    end = amounts[-1].end
    trailing = _TRAILING_CODE.match(text, end)
    if trailing and code == "$":
        code, end = CURRENCIES[trailing["code"].lower()], trailing.end()
    if _WORD_CHARACTER.match(text, end):
        return [], end
    quantity = _quantity(text, start, end, "currency", amounts, sign, unit=code)
    if opening["bracket"] and text[end : end + 1] == ")":
        low, high = quantity.low, quantity.high
        quantity = quantity._replace(low=-high, high=-low, other=(low, high), end=end + 1, text=text[start : end + 1])
    return [quantity], quantity.end


def _at_digit(text: str, start: int) -> tuple[list[Quantity], int]:
    """Parse a date, a time of day, a ratio, or a number with its unit, that starts with a digit."""
    before = text[start - 1 : start] if start else ""
    if (cell := _WHOLE_CELL.match(text, start)) and before not in _IDENTIFIER_MARKS:
        return _in_cell(text, start, cell)
    if reading := read_date(text, start, at_digit=True):
        is_timed = text[reading.end : reading.end + 1] == "T" and text[reading.end + 1 : reading.end + 2].isdigit()
        return [_date(text, start, reading)], reading.end + is_timed
    if duration := read_duration(text, start):
        return _one(_duration(text, start, *duration))
    if (clock := read_clock(text, start)) and not _leads(text, start, _RATIO_CUES):
        return _one(_date(text, start, clock, "time"))
    if ratio := _RATIO.match(text, start):
        return [_ratio(text, ratio)], ratio.end()
    fraction = _DIGIT_FRACTION.match(text, start)
    if fraction and (part := int(fraction["above"]) / int(fraction["below"])) < 1:
        value = float(fraction["whole"] or 0) + part
        return _measured(text, start, _Amount(fraction.end(), value, 0.01 * value))
    amount = _digits(text, start)
    if amount is None or before in _IDENTIFIER_MARKS:
        return [], _IDENTIFIER.match(text, start).end()  # type: ignore[union-attr]  # a digit always matches
    return _measured(text, start, amount)


def _in_cell(text: str, start: int, match: re.Match[str]) -> tuple[list[Quantity], int]:
    """Parse the number that ends a cell or the name of a column, as most numbers of tables do: no unit can follow."""
    amount = _digits(text, start)
    if amount is None or amount.end != match.end():
        return [], _IDENTIFIER.match(text, start).end()  # type: ignore[union-attr]  # a digit always matches
    return _counted(text, start, [amount], -1.0 if _is_negative(text, start) else 1.0)


def _measured(text: str, start: int, amount: _Amount) -> tuple[list[Quantity], int]:
    """Parse the unit after an amount, which determines the kind of the quantity."""
    amounts = _with_range_end(text, amount, start)
    end = amounts[-1].end
    sign = -1.0 if not amount.is_spelled and _is_negative(text, start) else 1.0
    if percent := _PERCENT.match(text, end):
        unit = _unit_of_share(percent["unit"].lower())
        amounts = [each.times(0.01) for each in amounts] if unit == "bps" else amounts
        read = _quantity(text, start, percent.end(), "percentage", amounts, sign, unit=unit)
        return _one(read._replace(worth=0.01) if unit == "bps" else read)
    if (money := _MONEY_BEHIND.match(text, end)) and (code := _money(money["name"], amounts[-1])):
        cents = _CENTS_BEHIND.match(text, money.end())  # "31 euro cents"
        is_cents = cents or money["name"].lower() in CENTS
        amounts = [each.times(0.01) for each in amounts] if is_cents else amounts
        return _one(_quantity(text, start, (cents or money).end(), "currency", amounts, sign, unit=code))
    if times := _TIMES.match(text, end):
        return _one(_quantity(text, start, times.end(), "ratio", amounts, sign, unit="times"))
    if (part := _IN_WHOLE.match(text, end)) and (whole := _whole(text, part)) and amount.value <= whole.value:
        share = _Amount(whole.end, amount.value / whole.value, 0.005)
        return _one(_quantity(text, start, whole.end, "ratio", [share], 1.0, unit="share"))
    if _JOINED.match(text, end):
        return [], _IDENTIFIER.match(text, end).end()  # type: ignore[union-attr]  # may be empty
    is_year = amount.is_plain and 1900 <= amount.value <= 2100
    unit_read = (
        None
        if is_year and (_YEAR_NOUN.match(text, end) or _leads(text, start, _YEAR_PREPOSITIONS))
        else read_unit(text, end + 1 if text[end : end + 1] in _UNIT_GAPS else end)
    )
    if unit_read:
        unit_name = text[end : unit_read.end].strip(" -\u00a0")
        if not (amount.is_spelled and amount.value == 1 and unit_read.unit.dimension != "time"):
            worth = unit_read.unit
            measured = [
                _Amount(each.end, each.value * worth.factor + worth.offset, each.slack * worth.factor)
                for each in ([each._replace(value=sign * each.value) for each in amounts] if worth.offset else amounts)
            ]
            sign = 1.0 if worth.offset else sign
            found = _quantity(text, start, unit_read.end, "quantity", measured, sign, unit=worth.dimension)
            found = found._replace(written=unit_name, scale=amounts[-1].scale, worth=worth.factor, offset=worth.offset)
            return _one(_compound(text, found) if len(amounts) == 1 and not worth.offset else found)
    if _WORD_CHARACTER.match(text, end):
        return [], _IDENTIFIER.match(text, end).end()  # type: ignore[union-attr]  # may be empty
    if amount.is_spelled and amount.value == 1:
        return [], end  # "one" is a pronoun more often than a count
    return _counted(text, start, amounts, sign)


def _unit_of_share(written: str) -> str:
    """Return "bps" for basis points, "pp" for percentage points, otherwise "%"."""
    if written.startswith(("bp", "basis")):
        return "bps"
    return "pp" if written.startswith("pp") or "point" in written else "%"


def _compound(text: str, first: Quantity) -> Quantity:
    """Extend a quantity by smaller units: "3 hours 20 minutes", "5 ft 10 in", "2 years and six months"."""
    while (joint := _AND_SMALLER.match(text, first.end)) is not None:
        position = joint.end()
        amount = _digits(text, position) if text[position].isdigit() else _spelled(text, position)
        gap = amount.end + 1 if amount and text[amount.end : amount.end + 1] in _UNIT_GAPS else amount and amount.end
        unit = read_unit(text, gap) if gap else None
        if amount is None or unit is None or unit.unit.dimension != first.unit or unit.unit.factor >= first.worth:
            break
        added = amount.value * unit.unit.factor
        if added >= first.worth:
            break
        first = first._replace(
            end=unit.end,
            text=text[first.start : unit.end],
            low=first.low + added,
            high=first.high + added,
            slack=amount.slack * unit.unit.factor,
            worth=unit.unit.factor,
            written=text[gap : unit.end],
        )
    return first


def _counted(text: str, start: int, amounts: list[_Amount], sign: float) -> tuple[list[Quantity], int]:
    """Parse a number without a unit: a label, a year, a citation, a ratio after a word such as "ratio", or a count."""
    amount, end = amounts[0], amounts[-1].end
    if amount.could_label and len(amounts) == 1 and _leads(text, start, _LABELS):
        return [], _MORE_LABELS.match(text, end).end()  # type: ignore[union-attr]  # may be empty
    if amount.is_plain and len(amounts) == 1 and sign > 0 and _is_year(text, start, end, amount.value):
        return _one(Quantity(start, end, text[start:end], "date", *year_span(int(amount.value)), unit=""))
    if _is_citation(text, start, end, amount):
        return [], end
    if _leads(text, start, _RATIO_CUES):
        return _one(_quantity(text, start, end, "ratio", amounts, sign))
    return _one(_quantity(text, start, end, "count", amounts, sign)._replace(nouns=_nouns(text, end)))


def _one(quantity: Quantity) -> tuple[list[Quantity], int]:
    return [quantity], quantity.end


def _quantity(
    text: str, start: int, end: int, kind: Kind, amounts: list[_Amount], sign: float, unit: str = ""
) -> Quantity:
    """Build a quantity from one amount or the two ends of a range, with its sign, its bound and its approximation."""
    low, high = sorted((sign * amounts[0].value, sign * amounts[-1].value))
    slack = max(each.slack for each in amounts)
    bound, is_approximate = _qualified(text, start, end)
    other = None
    if text[start - 1 : start] == "(" and text[end : end + 1] == ")" and start and sign > 0 and kind != "ratio":
        if _is_cell(text, start - 1, end + 1):
            low, high, other = -high, -low, (low, high)
        elif kind == "currency" or "," in text[start:end]:
            other = (-high, -low)
    plus = text[end : end + 1] == "+" and not text[end + 1 : end + 2].isalnum()
    bound = "least" if plus else bound
    found = Quantity(start, end, text[start:end], kind, low, high, slack, unit, other, bound, is_approximate)
    return found._replace(is_spelled=amounts[0].is_spelled, scale=amounts[-1].scale)


def _digits(text: str, start: int, *, is_money: bool = False) -> _Amount | None:
    """Parse the number in digits at `start` with its scale word or suffix; None for a version or an identifier."""
    match = _NUMBER.match(text, start)
    parsed = _parse(match.group()) if match else None
    if match is None or parsed is None:
        return None
    value, decimals, integer = parsed
    end = match.end()
    if half_more := _VULGAR.get(text[end : end + 1]):
        value, decimals, end, integer = value + half_more, 1, end + 1, ""
    scale, end_of_scale = _scale(text, end, is_money)
    if text[start - 1 : start] == "(" and text[end : end + 1] == ")" and (outside := _SCALE_WORD.match(text, end + 1)):
        scale = SCALES[outside["scale"].lower()]  # "(1.6) billion"
    slack = 0.5 * 10.0**-decimals
    if scale == 1.0 and not decimals and integer:
        slack = _integer_slack(integer)
    elif scale > 1.0:
        slack = min(slack, 0.15 * abs(value) or slack)  # "1 million" is not 1.4 million
    if power := _POWER_OF_TEN.match(text, end):
        exponent = int(power["exponent"].replace("\u2212", "-"))
        scale, end_of_scale = 10.0**exponent, power.end()
    is_plain = scale == 1.0 and match.group().isdigit()
    could_label = scale == 1.0 and "," not in match.group()
    return _Amount(end_of_scale, value * scale, slack * scale, scale, is_plain=is_plain, could_label=could_label)


def _scale(text: str, end: int, is_money: bool) -> tuple[float, int]:
    """Return the factor of the scale words after a number ("3.2 million", "5 lakh crore", "$4bn"), and their end."""
    factor = 1.0
    while word := _SCALE_WORD.match(text, end):
        factor, end = factor * SCALES[word["scale"].lower()], word.end()
    if factor == 1.0 and (suffix := (_MONEY_SUFFIX if is_money else _SCALE_SUFFIX).match(text, end)):
        return SUFFIXES[suffix["suffix"].lower()], suffix.end()
    return factor, end


def _parse(written: str) -> tuple[float, int, str] | None:
    """Return the value, the number of decimals and, for an integer, its digits; None if the separators are invalid.

    If both separators occur, the last one is the decimal separator. A single kind separates thousands if all its groups
    have three digits (or are Indian) and it is a comma or occurs more than once. "1.234" is read as in English.
    """
    if len(written) > 40:
        return None
    plain = _SPACES.sub("", written).replace("'", "").replace("’", "")
    dots, commas = plain.count("."), plain.count(",")
    if dots and commas:
        decimal = "." if plain.rfind(".") > plain.rfind(",") else ","
        if plain.count(decimal) > 1:
            return None
    elif commas == 1:
        decimal = "." if _GROUPED.fullmatch(plain) else ","
    else:
        decimal = "." if dots <= 1 else ","
    grouping = "," if decimal == "." else "."
    whole, _, fraction = plain.partition(decimal)
    if grouping in whole and not _GROUPED.fullmatch(whole.replace(grouping, ",")):
        return None
    if grouping in fraction or decimal in fraction:
        return None
    digits = whole.replace(grouping, "")
    return float(f"{digits or 0}.{fraction or 0}"), len(fraction), "" if fraction else digits


def _integer_slack(digits: str) -> float:
    """Return half of the last significant digit of an integer: only three or more trailing zeros count as rounding.

    With a single leading digit ("4,000") the first zero is significant, too.
    """
    significant = digits.lstrip("0").rstrip("0")
    zeros = len(digits) - len(digits.rstrip("0"))
    if zeros < 3 or not significant:
        return 0.5
    return 0.5 * 10.0 ** (zeros if len(significant) > 1 else zeros - 1)


def _spelled(text: str, start: int) -> _Amount | None:
    """Parse a number in words at `start`: "twenty-one", "two and a half million", "a dozen", "one hundred and five"."""
    total = current = 0.0
    end, seen, scale = start, False, 1.0
    position = start
    while (match := _LETTERS.match(text, position)) and end - start < 120:
        word = match["word"].lower()
        follows_tens = 20 <= current % 100 < 100 and current % 10 == 0 and _SPELLED.get(word, 10.0) < 10
        if seen and match["spaced"] and not follows_tens:
            break  # "one hundred - two hundred"; only "twenty - five" is one number
        if word in _SPELLED:
            value = _SPELLED[word]
            if seen and current % 100 and not follows_tens:
                break  # "two three": two numbers
            if seen and current and current % 100 == 0 and value >= 100:
                break
            current, seen = current + value, True
        elif word in _SPELLED_SCALES and (seen or word != "dozen" or start != position):
            factor = _SPELLED_SCALES[word]
            scale *= factor if factor >= 1000 else 1.0
            current = (current or 1.0) * factor
            if factor >= 1000:
                total, current = total + current, 0.0
            seen = True
        elif word in _ARTICLES and position == start and _SCALE_BEHIND.match(text, match.end()):
            position = match.end()
            continue
        elif word == "and" and seen and (rest := _AND_A_HALF.match(text, match.start("word"))):
            current, end = current + 0.5, rest.end()
            position = end
            continue
        elif word == "and" and seen and (total or current >= 100) and _SPELLED_BEHIND.match(text, match.end()):
            position = match.end()
            continue
        else:
            break
        position = end = match.end()
    if not seen:
        return None
    value = total + current
    slack = min(0.5 * scale, 0.15 * value) if scale > 1 else 0.5
    return _Amount(end, value, slack, scale, is_spelled=True)


def _with_range_end(text: str, first: _Amount, start: int, *, is_money: bool = False) -> list[_Amount]:
    """Return the amount alone, or both ends of a range such as "3–5", "3 to 5 million", "between 3 and 5"."""
    second = _range_end(text, first, start, is_money)
    if second is None:
        return [first]
    return [first.times(second.scale) if first.scale == 1.0 else first, second]


def _range_end(text: str, first: _Amount, start: int, is_money: bool) -> _Amount | None:
    joint = _RANGE.match(text, first.end)
    if joint is None:
        return None
    word = joint["word"].strip().lower()
    if word == "and" and not _leads(text, start, _BETWEEN):
        return None
    if word == "to" and _leads(text, start, _FROM):
        return None  # "from 3 to 5" is a change and no range
    position = joint.end()
    at_digit = text[position : position + 1].isdigit()
    second = _digits(text, position, is_money=is_money) if at_digit else _spelled(text, position)
    if second is None or (_WORD_CHARACTER.match(text, second.end) and not read_unit(text, second.end)):
        return None
    scaled = first.value * (second.scale if first.scale == 1.0 else 1.0)
    if first.is_plain and second.is_plain and 1900 <= first.value <= 2100 and 1900 <= second.value <= 2100:
        return None  # two separate years
    is_date = at_digit and read_date(text, position, at_digit=True) is not None
    return second if second.value > scaled and not is_date else None


def _is_negative(text: str, start: int) -> bool:
    """Return whether a minus sign precedes `start` that is neither a hyphen nor a range's dash."""
    if text[start - 1 : start] not in _MINUS or not start:
        return False
    before = text[start - 2 : start - 1] if start > 1 else ""
    return not (before.isalnum() or (before in _CLOSERS and before))


def _is_cell(text: str, start: int, end: int) -> bool:
    """Return whether the span fills a table cell, except for a currency sign, so that its brackets mark a negative."""
    before, after = text[max(0, start - 4) : start].rstrip(" $€£"), text[end : end + 3].lstrip(" %")
    is_open = not before or before[-1] in "|\t\n:,"
    return (
        is_open
        and (not after or after[0] in "|\t\n;,.")
        and ("|" in after or "\t" in before + after or text.rfind("|", max(0, start - 80), start) >= 0)
    )


def _is_citation(text: str, start: int, end: int, amount: _Amount) -> bool:
    """Return whether a small integer alone in brackets marks a citation or a list item."""
    in_brackets = text[start - 1 : start] == "(" and text[end : end + 1] == ")" and start > 0
    return amount.is_plain and in_brackets and amount.value < 100 and not _is_cell(text, start - 1, end + 1)


def _is_year(text: str, start: int, end: int, value: float) -> bool:
    """Return whether a plain four-digit integer is a year, by its size and the words before and after it."""
    if end - start != 4 or not 1000 <= value <= 2100:
        return False
    if text[start - 1 : start] in ("(", "\u2013", "\u2014", "-") and start and value >= 1500:
        return True
    cued = _leads(text, start, _YEAR_CUES)
    if value < 1900:
        return cued
    return cued or not _COUNTED_NOUN.match(text, end)


def _qualified(text: str, start: int, end: int) -> tuple[Bound, bool]:
    """Return the bound of a quantity and whether it is approximate, by the words around it."""
    phrases = _lead_in(text, start)
    is_approximate = not _ABOUT.isdisjoint(phrases)
    if negated := _NOT_BEYOND.search(text, max(0, start - 40), start):
        return ("most" if negated["above"] else "least"), is_approximate
    if not _AT_MOST.isdisjoint(phrases) or _OR_LESS.match(text, end):
        return "most", is_approximate
    if not _AT_LEAST.isdisjoint(phrases) or _OR_MORE.match(text, end):
        return "least", is_approximate
    return "", is_approximate


def _leads(text: str, start: int, phrases: frozenset[str]) -> bool:
    """Return whether one of `phrases` directly precedes `start`."""
    return not phrases.isdisjoint(_lead_in(text, start))


@memo(8, 4096, long_entries=8)  # each rule that tries to parse a place calls it
def _lead_in(text: str, start: int) -> tuple[str, ...]:
    """Return the last one, two and three words before `start` in lower case, without articles and signs."""
    last = text[max(0, start - 32) : start].lower().rstrip("$€£ -").translate(_SIGNS_BETWEEN).split()[-4:]
    if last and last[-1] in ("a", "an", "the"):
        last.pop()
    return tuple(" ".join(last[-count:]).rstrip(".") for count in (1, 2, 3))


def _nouns(text: str, end: int) -> tuple[str, ...]:
    """Return the stems of up to three words after a count that may name the counted things."""
    match = _NOUNS.match(text, end)
    stems = []
    for word in match.group().replace("-", " ").split() if match else ():
        if word.lower() in STOPWORDS or word.lower() in _NOT_NOUNS:
            break
        stems.append(stem(word))
    return tuple(stems)


def _date(text: str, start: int, read: TimeReading, kind: Kind = "date") -> Quantity:
    return Quantity(start, read.end, text[start : read.end], kind, read.low, read.high, 0.0, read.unit, read.other)


def _duration(text: str, start: int, end: int, seconds: float) -> Quantity:
    found = _quantity(text, start, end, "quantity", [_Amount(end, seconds, 0.5)], 1.0, unit="time")
    return found._replace(written="seconds")


def _ratio(text: str, match: re.Match[str]) -> Quantity:
    """Convert "3:1" to the quotient of its sides."""
    first, second = float(match["first"]), float(match["second"])
    value = first / second
    return Quantity(match.start(), match.end(), match.group(), "ratio", value, value, 0.005 * value, ":")


def _fraction(text: str, match: re.Match[str]) -> Quantity:
    """Convert a share in words: "two-thirds", "a quarter of", "half of"."""
    count = 1.0 if match["count"] is None else _SPELLED.get(match["count"].lower(), 1.0)
    value = count / _PARTS[(match["part"] or match["half"] or match["by"] or "half").lower().rstrip("s")]
    amount = _Amount(match.end(), value, 0.01, is_spelled=True)
    return _quantity(text, *match.span(), "ratio", [amount], 1.0, unit="share")


def _whole(text: str, match: re.Match[str]) -> _Amount | None:
    """Parse the whole in "2 in 5" or "two out of five"; a year after "in" is none."""
    position = match.end()
    whole = _digits(text, position) if text[position : position + 1].isdigit() else _spelled(text, position)
    if whole is None or whole.value <= 0 or _PERCENT.match(text, whole.end) or _WORD_CHARACTER.match(text, whole.end):
        return None
    if match["out"] is None and (whole.value not in _SMALL_WHOLES or read_unit(text, whole.end + 1)):
        return None
    return whole


def _money(name: str, amount: _Amount) -> str | None:
    """Return the currency that a word or code after an amount names; "pounds" are money only after a scale word."""
    if name.lower() in ("pound", "pounds") and amount.scale == 1.0:
        return None
    code = CURRENCIES.get(name.lower())
    return code if code is None or len(name) > 3 or not name.islower() or name in ("yen", "won") else None


_SPELLED = {name: float(number) for name, number in NUMERALS.items()}
_SPELLED_SCALES = {"hundred": 1e2, "dozen": 12.0, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_SPELLED_SCALES |= {"lakh": 1e5, "crore": 1e7}
_ARTICLES = frozenset(("a", "an"))
_FRACTION_STARTS = _ARTICLES | {"half", "quarter"}
_PARTS = {"half": 2.0, "halve": 2.0, "third": 3.0, "quarter": 4.0, "fourth": 4.0, "fifth": 5.0, "sixth": 6.0}
_PARTS |= {"eighth": 8.0, "tenth": 10.0}
_VULGAR = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3}
_SMALL_WHOLES = frozenset(map(float, (*range(2, 11), 12, 20, 50, 100, 1000, 10_000, 100_000, 1_000_000)))
_MINUS = ("-", "\u2212", "\u2013")
_CLOSERS = ")]%\"'”’"
_IDENTIFIER_MARKS = frozenset("#@_/\\^§&")
_UNIT_GAPS = (" ", "-", "\u00a0", "\u202f", "\u2009")
_BOUNDS: dict[Bound, str] = {"": "", "least": "at least ", "most": "at most "}
_COUNTED_BY = ("currency", "quantity", "count", "percentage")
_NOT_NOUNS = frozenset("compared versus vs respectively million billion thousand".split()) | frozenset(_SPELLED)

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_LINE_BREAK = re.compile(r"(?<=[\d$€£])\n(?=[a-z%\d])")
_TOKEN = re.compile(
    r"(?P<skip>https?://\S+|www\.\S+|\d{1,4}(?::\d{1,4}){3,200}"
    r"|\[\^?\d{1,3}(?:[,;\u2013 -]{1,2}\d{1,3}){0,20}\]|【[^】\n]{0,60}】"
    r"|^[ \t]*\d{1,3}[.)](?=\s)|(?<!\d)\+\d{1,3}[ -]\(?\d{2,4}\)?[ -]\d{3,4}[ -]?\d{2,4}(?!\d)"
    r"|\(\d{3}\) ?\d{3}[-.]\d{4}\b|\b\d{3}[-. ]\d{3}[-.]\d{4}\b)"
    r"|(?P<money>(?:U\.S\.|US|CA|C|AU|A|NZ|HK|S|R)?[$]|[€£¥₹₩₽₺₪]|Rs\.?(?=[ \u00a0]?\d)"
    rf"|(?:{'|'.join(CODES)}|RMB)(?=[ \u00a0]?[-\u2212(]?\d))"
    r"|(?P<word>[^\W\d_]\w*(?:[-.]\d\w*)*)|(?P<number>\.\d|\d|[½¼¾])",
    re.MULTILINE,
)
_NUMBER = re.compile(
    r"\d{1,3}(?:[\u00a0\u202f\u2009]\d{3}){1,6}(?!\d)(?:[.,]\d{1,6}(?!\d))?|\d{1,3}(?: \d{3}){1,4},\d{1,2}(?!\d)"
    r"|\d{1,3}(?: \d{3}){2,4}(?![\d ,.]\d|\d)|\d{4,}(?=,\d{4})|\d+(?:[.,'’]\d+)*|\.\d+"  # "2023,5000000" is two numbers
)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3}){1,8}|\d{1,2}(?:,\d{2}){1,6},\d{3}")
_SPACES = re.compile(r"[ \u00a0\u202f\u2009]")
_SCALE_WORD = re.compile(rf"[ \u00a0-]?(?P<scale>{'|'.join(sorted(SCALES, key=len, reverse=True))})(?![^\W_])", re.I)
_SCALE_SUFFIX = re.compile(r"(?P<suffix>MM|[kKMB])(?![^\W_])")  # "5m" and "5t" are metres and tonnes
_MONEY_SUFFIX = re.compile(r" ?(?P<suffix>MM|mm|[kKmMbBtT])(?![^\W_])")
_POWER_OF_TEN = re.compile(r"(?: ?[×x*] ?10\^?|[eE])(?P<exponent>[-\u2212+]?\d{1,2})(?!\w)")
_PERCENT = re.compile(
    r"[ \u00a0\u202f-]?(?P<unit>%-points?|% points?|%|percentage[ -]points?|percentage|percent|per cent|pct|"
    r"ppts?|pps?|bps?|basis[ -]points?)(?![^\W_])",
    re.I,
)
_MONEY_BEHIND = re.compile(
    r"[ \u00a0-]?(?:US |U\.S\. |American )?(?P<name>[€£¥₹₩₽₺₪¢]|[$](?!\d)|[^\W\d_]{3,8}(?![^\W_]))"
)
_WHOLE_CELL = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?=: | ?(?:\||$))")
_TRAILING_CODE = re.compile(rf" ?(?P<code>{'|'.join(CODES)})\b")
_TIMES = re.compile(
    r"[xX×](?![^\W_]|\d)|[ -]?fold\b|(?<=\d\.\d) times\b|(?<=\d\.\d\d) times\b"
    r"| times (?=(?:as|more|greater|the|larger|faster|lower|less|higher|bigger|that|its|their|what|those)\b)"
)
_IN_WHOLE = re.compile(r" (?:(?P<out>out of)|in|(?P<per>per)) (?:every )?(?=[^\W_])")
_RANGE = re.compile(r"(?:[ \u00a0]?(?P<word>[-\u2013\u2014~]| to |(?: and | or )))[$€£]?[ ]?(?=[\w.])", re.I)
_AMOUNT_AHEAD = re.compile(r"\s{0,3}(?P<sign>[-\u2212])?(?P<bracket>\()?\s{0,2}(?=\.?\d)")
_RATIO = re.compile(r"(?P<first>\d{1,6}(?:\.\d{1,4})?)(?: : |:)(?P<second>\d{0,5}[1-9]\d{0,2}(?:\.\d{1,4})?)(?![\d:])")
_DIGIT_FRACTION = re.compile(r"(?:(?P<whole>\d{1,3}) )?(?P<above>\d{1,2})/(?P<below>[234568]|10|16)(?![\d/]|\.\d)")
_FRACTION = re.compile(
    r"(?:(?:(?P<count>one|two|three|four|five|seven|nine)[- ](?P<part>thirds?|quarters?|fourths?|fifths?|sixths?|"
    r"eighths?|tenths?|half)(?= of\b(?! (?:19|20)\d\d|fiscal)|[^\w ]| the\b|$)|"
    r"an? (?P<half>third|quarter|fifth|tenth|half) (?:of(?= (?:all|the|"
    r"its|their|those|our|his|her|[^\W\d_]+s)\b)|(?=less\b|more\b|fewer\b|"
    r"lower\b|higher\b)))|half (?:of|the)(?= [^\W\d_]+)"
    r"|(?<=\bby )(?:an? )?(?P<by>half|(?<=a )(?:third|quarter|fifth|tenth))\b(?! past\b))",
    re.I,
)
_PREFIX = re.compile(r"(?:mid|early|late|pre|post|non|sub|under|over)-(?=\d)", re.I)
_CENTS_BEHIND = re.compile(r"[ -]cents?\b", re.IGNORECASE)
_LETTERS = re.compile(r"(?:[ -]|(?P<spaced> - ?|- ))?(?P<word>[^\W\d_]{1,12})(?![\w])")
_AND_SMALLER = re.compile(
    r"(?:,? and |, | |)(?=\d|[a-z]{3,6}(?:-[a-z]{3,5})? (?:minute|second|month|week|day|hour|inch|ounce))"
)
_HALF_UNIT = re.compile(
    r"(?:(?P<share>half|three[ -]quarters of|a quarter of) )?an? (?P<unit>hour|minute|day|week|month|year|decade|"
    r"century|mile|kilometre|kilometer|metre|meter|litre|liter|pound|kilo|tonne|ton|pint|acre|cup|teaspoon|tablespoon)\b"
    r"(?P<more> and a half\b)?",
    re.I,
)
_SHARES_OF_UNIT = {"half": 0.5, "a": 0.25, "three": 0.75, "": 1.0}
_HOW_LONG = frozenset("takes took take lasts lasted last about around roughly nearly almost after within".split())
_MULTIPLIED = {"doubled": 2.0, "tripled": 3.0, "trebled": 3.0, "quadrupled": 4.0, "halved": 0.5, "twice": 2.0}
_MULTIPLIED |= {"twofold": 2.0, "threefold": 3.0, "fourfold": 4.0, "fivefold": 5.0, "tenfold": 10.0}
_AS_MUCH = re.compile(
    r" as (?:[a-z]+ as|much|many|long|big|large|high|fast|likely|often|far|heavy|old|tall|wide|deep|strong|expensive)\b"
)
_NO_MULTIPLE = re.compile(r" (?:down|up|over|as|back|tomato|lemon|grape|cherr)")
_AND_A_HALF = re.compile(r"and an? half\b", re.I)
_SPELLED_BEHIND = re.compile(rf" (?:{'|'.join(_SPELLED)})\b", re.I)
_SCALE_BEHIND = re.compile(r" (?:hundred|dozen|thousand|million|billion|trillion|lakh|crore)\b", re.I)
_IDENTIFIER = re.compile(r"[\w.,'’-]*\w|")
_WORD_CHARACTER = re.compile(r"\w")
_JOINED = re.compile(r"-(?:[A-Z]\b|\d)|\([a-z]\)|[/\\]\d")
_COUNTED_NOUN = re.compile(
    r" (?:[^\W\d_]+ )?(?:people|men|women|children|staff|[a-z]{3,}(?<!ss)(?<!us)(?<!is)s)\b(?! (?:was|were|is|are))"
)
_YEAR_NOUN = re.compile(r"[ -](?:fiscal |financial )?years?\b|[ -]month", re.I)
_OR_MORE = re.compile(r" or (?:more|greater|higher|older|above|over)\b")
_OR_LESS = re.compile(r" or (?:less|fewer|lower|younger|below|under)\b")
_NOT_BEYOND = re.compile(
    r"\b(?:not|never|cannot|n['’]t) (?:\w+ ){0,2}(?:(?P<above>more than|exceed(?:ing)?|over|above|beyond|"
    r"(?:longer|older|later|heavier|taller|deeper|wider|thicker|larger|higher) than)|less than|"
    r"fewer than|below|under|(?:shorter|younger|earlier|lighter|smaller|lower) than) [$€£]?$",
    re.I,
)
_BETWEEN, _FROM = frozenset(("between",)), frozenset(("from",))
_ABOUT = frozenset(
    "about|approximately|approx|around|roughly|nearly|almost|some|circa|close to|estimated|near|~|≈|c|ca".split("|")
)
_AT_LEAST = frozenset(
    "over|more than|greater than|at least|above|exceed|exceeds|exceeded|exceeding|no less than|no fewer than|"
    "minimum of|upwards of|not less than|in excess of|longer than|older than|heavier than|taller than|deeper than|"
    "wider than|thicker than|no shorter than|no younger than|no earlier than|>|≥|>=".split("|")
)
_AT_MOST = frozenset(
    "up to|at most|less than|fewer than|under|below|no more than|not more than|maximum of|as much as|as many as|within|"
    "shorter than|younger than|no longer than|no older than|no later than|no heavier than|no taller than|<|≤|<=".split(
        "|"
    )
)
_RATIO_CUES = frozenset(
    f"{name}{link}"
    for name in "ratio multiple dscr ltv beta odds coverage".split()
    for link in ("", " of", " was", " is", " at", " were", " stands at", " stood at")
)
_YEAR_CUES = frozenset(
    "in since by until till during circa year years before after from of and to through early late mid summer spring "
    "autumn fall winter ended ending born died dated c |".split()
)
_YEAR_PREPOSITIONS = frozenset(("in", "since", "until", "during"))
_SIGNS_BETWEEN = str.maketrans(':([*"', "     ")
_MORE_LABELS = re.compile(r"(?:(?:, ?and |, ?or |, ?| and | or | to | & |[-–])\d{1,4}(?![\w%]|[.,]\d)){0,20}")
_LABELS = frozenset(
    "ticket invoice incident case id section sec figure fig table step chapter page pages article item note rfc iso "
    "ias ifrs asc asu sfas gaap phase type part room highway route flight class version appendix exhibit clause "
    "paragraph question option rule line no nos number document doc passage source reference act psalm vol volume "
    "issue python windows boeing airbus apollo iphone level category stage grade scope unit building tier series "
    "season episode channel form suite apt zip code box bullet point schedule passages pages sections figures tables "
    "steps chapters articles items notes clauses parts sources documents references boxes lines "
    "paragraphs # № §".split()
)
_NOUNS = re.compile(r"(?:[ \u00a0-][^\W\d_]{1,30}){1,3}")
