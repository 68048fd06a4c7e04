"""Collect the numbers of the sources that are comparable with a claimed one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from groundwire.caches import memo
from groundwire.domain import Citation, Claim
from groundwire.evidence.index import Context, Passage, cell_at, names_column
from groundwire.text.binding import Binding, Given, as_given, bind
from groundwire.text.quantities import Quantity
from groundwire.text.reading import inside, read_claim
from groundwire.text.tolerance import Relation, compare, fit_period
from groundwire.text.units import CURRENCIES
from groundwire.text.words import REFERENTS, STOPWORDS, content_stems, same_meaning, stem
from groundwire.verifiers.numbers.arithmetic import overall_direction

MAX_STEPS = 5_000
"""Maximum comparisons and computations for the numbers of one claim: about 0.07 s; ordinary claims need under 1,000."""

_CLOCK_INTERVAL = 256  # steps between two checks of the clock


class WorkLimitExceeded(Exception):
    """Raised if a claim needs more steps than allowed."""


class DeadlineExceeded(Exception):
    """Raised if a claim takes too long: a safeguard, because the step limit usually applies first."""


class Work:
    """A counter of the steps for one claim, limited to `max_steps` and to `timeout_s` seconds of `clock`."""

    def __init__(
        self, timeout_s: float = float("inf"), max_steps: int = MAX_STEPS, clock: Callable[[], float] = time.thread_time
    ) -> None:
        self.steps = 0
        self._max_steps = max_steps
        self._clock = clock
        self._deadline = clock() + timeout_s
        self._next_clock_check = 0

    def spend(self, steps: int = 1) -> None:
        """Count `steps`. Raises WorkLimitExceeded or DeadlineExceeded beyond a limit."""
        self.steps += steps
        if self.steps > self._max_steps:
            raise WorkLimitExceeded
        if self.steps >= self._next_clock_check:
            self._next_clock_check = self.steps + _CLOCK_INTERVAL
            if self._clock() > self._deadline:
                raise DeadlineExceeded


@dataclass(frozen=True, eq=False)
class Query:
    """A claim as a query for numbers: its quantities and the stems of its subject.

    `is_scaled` is set if a number is 1,000 or more, so that a source may state it at a scale. `tolerances` are those of
    the policy by kind. `work` counts the steps taken for the claim, `parsed_passages` and `columns` are caches.
    """

    claim: Claim
    quantities: tuple[Quantity, ...]
    subject: frozenset[str]
    is_scaled: bool
    context: Context
    tolerances: Mapping[str, float]
    work: Work
    parsed_passages: dict[int, ParsedPassage] = field(default_factory=dict)
    columns: dict[frozenset[str], bool] = field(default_factory=dict)

    def names_column(self, stems: frozenset[str]) -> bool:
        """Return whether the claim names a column whose name has these stems; cached."""
        known = self.columns.get(stems)
        if known is None:
            known = self.columns[stems] = names_column(stems, self.stems)
        return known

    @cached_property
    def is_counting(self) -> bool:
        """Return whether the claim counts a few things."""
        return any(is_enumeration(each) for each in self.quantities)

    @cached_property
    def cue_text(self) -> str:
        """The claim together with its lead."""
        return f"{self.claim.lead} {self.claim.text}"

    @cached_property
    def stems(self) -> frozenset[str]:
        """The content stems of the claim and its lead."""
        return content_stems(self.cue_text)

    @cached_property
    def dates(self) -> tuple[Quantity, ...]:
        """The quantities that are dates."""
        return tuple(each for each in self.quantities if each.kind == "date")

    @cached_property
    def than_sides(self) -> tuple[frozenset[str], ...]:
        """The stems before and after the last "than" of the claim; empty if there is none."""
        before, than, behind = self.claim.text.rpartition(" than ")
        return (content_stems(before), content_stems(behind)) if than else ()

    @cached_property
    def is_decline(self) -> bool:
        """Return whether the claim describes a decline or a loss, so that it writes negative values without a sign."""
        return overall_direction(self.claim.text) < 0

    @cached_property
    def names(self) -> frozenset[str]:
        """The stems of the claim's proper names. Numbers of other names do not contradict it."""
        return read_claim(self.claim.text).names(self.quantities)


@dataclass(frozen=True)
class ParsedPassage:
    """A passage parsed for a claim; its properties are computed when they are first used.

    `coverage` is the share of the claim's words in the passage, where words of the preceding one count half. `before`
    is the preceding passage in running text, None for a row.
    """

    query: Query
    passage: Passage
    before: Passage | None
    coverage: float

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The quantities with the unit and scale of their headings.

        In prose, "one" is a count if the claim counts a few things.
        """
        found = self.passage.quantities
        if self.is_row:
            return (
                tuple([as_given(each, given) if given else each for each, given in zip(found, self.given, strict=True)])
                if any(self.given)
                else found
            )
        return _with_ones(self.passage.text, found) if self.query.is_counting else found

    @cached_property
    def given(self) -> tuple[Given | None, ...]:
        """The unit and scale that the column or row of each quantity states.

        Of several readings, the one that the claim uses is preferred.
        """
        return tuple([self._preferred_unit(each) if each else None for each in self.passage.analysis.units])

    @cached_property
    def values(self) -> Sequence[int]:
        """The places of the dates, and of the other quantities outside the names of columns."""
        return self.passage.analysis.values if self.is_row else range(len(self.quantities))

    def is_column_named(self, place: int) -> bool:
        """Return whether the claim names the column of a quantity, or the passage is no row."""
        return not self.is_row or self.query.names_column(self.passage.analysis.columns[place])

    def column_of(self, place: int) -> frozenset[str]:
        """Return the specific stems of the name of a quantity's column; none outside of rows."""
        return self.passage.analysis.columns[place]

    @cached_property
    def bindings(self) -> tuple[Binding, ...]:
        """The words and dates that describe each quantity."""
        known = self.passage.analysis.bindings
        if self.quantities is self.passage.quantities:
            return known
        if len(known) != len(self.quantities):
            return bind(self.passage.text, self.passage.words, self.quantities)
        return tuple([each._replace(quantity=quantity) for each, quantity in zip(known, self.quantities, strict=True)])

    @property
    def is_row(self) -> bool:
        """Return whether the passage is a row of a table or a record."""
        return self.passage.is_row

    @cached_property
    def note(self) -> Given | None:
        """The unit and scale of a note near the passage, such as "in millions of euros".

        None if no number of the claim is large enough to need one.
        """
        return self.passage.note if self.query.is_scaled else None

    @property
    def scale(self) -> float:
        """The factor that a note near the passage gives to its bare numbers."""
        return self.note.scale if self.note else 1.0

    @cached_property
    def is_named(self) -> bool:
        """Return whether the passage, its predecessor or its heading has a name of the claim, or the claim has none."""
        names = self.query.names
        if not names or not names.isdisjoint(self.passage.stems):
            return True
        near = self.before.stems if self.before else frozenset()
        return not names.isdisjoint(near | content_stems(self.passage.heading))

    def _preferred_unit(self, readings: Sequence[Given]) -> Given:
        written = {(each.kind, each.unit, each.worth) for each in self.query.quantities}
        return next((each for each in readings if (each.kind, each.unit, each.worth) in written), readings[0])


@dataclass(frozen=True)
class Candidate:
    """A quantity of a source passage, at index `place`, with its relation to the claimed one."""

    target: Binding
    parsed: ParsedPassage
    place: int
    relation: Relation

    @property
    def passage(self) -> Passage:
        """The passage that states the quantity."""
        return self.parsed.passage

    @property
    def claim(self) -> str:
        """The text of the claim."""
        return self.parsed.query.claim.text

    @property
    def is_row(self) -> bool:
        """Return whether the passage is a row of a table or a record."""
        return self.parsed.is_row

    @property
    def coverage(self) -> float:
        """The share of the claim's words in the passage."""
        return self.parsed.coverage

    @property
    def quantity(self) -> Quantity:
        """The quantity with the unit and scale of its headings."""
        return self.parsed.quantities[self.place]

    @property
    def binding(self) -> Binding:
        """The words and dates that describe the quantity."""
        return self.parsed.bindings[self.place]

    @property
    def is_column_named(self) -> bool:
        """Return whether the claim names the column of the quantity, or the quantity is in no row."""
        return self.parsed.is_column_named(self.place)

    @cached_property
    def scoped(self) -> float:
        """The share of the words describing the claimed quantity that are bound to this one alone."""
        scope = self.target.scope
        return len(scope & self.binding.own) / len(scope) if scope else 0.0

    @property
    def shared(self) -> bool:
        """Return whether a word describing the claimed quantity is bound to this one or shared by the whole passage."""
        scope = self.target.scope
        return bool(scope & (self.binding.own | self.binding.shared)) or (not scope and self.coverage >= 1)

    @cached_property
    def fits_period(self) -> bool | None:
        """Return whether the quantity may be for the claim's period; None if there is no date to compare."""
        return fit_period(self.target.dates, self.binding.dates)

    @property
    def value(self) -> str:
        """The quantity for display: with its column if it has no unit, and with its sign."""
        quantity = self.passage.quantities[self.place] if self.is_row else self.quantity
        sign = "−" if quantity.low < 0 and quantity.text[0] not in "-−–(" and "(" not in quantity.text else ""
        if quantity.is_bare and self.is_row:
            cell, given = cell_at(self.passage.text, quantity.start), self.parsed.given[self.place]
            unit = given.written if given else ""
            return cell if re.search(rf"(?<!\w){re.escape(unit)}(?!\w)", cell) else f"{cell} {unit}"
        return sign + quantity.shown

    @cached_property
    def rank(self) -> tuple[bool, float, float, int]:
        """The sort key of the quantity: the greatest is the likeliest counterpart of the claimed one."""
        return self.fits_period is not False, self.coverage + self.scoped, self.coverage, -self.passage.place

    def cite(self) -> Citation:
        """Return a citation of the passage."""
        return self.passage.cite(min(1.0, 0.5 + 0.5 * self.coverage), "numeric")


def likeliest(candidates: Iterable[Candidate]) -> Candidate:
    """Return the candidate of the highest rank."""
    return max(candidates, key=lambda each: each.rank)


def subject_of(claim: Claim, quantities: Sequence[Quantity]) -> frozenset[str]:
    """Return the stems that name the subject of a claim; with those of its lead if it has fewer than two."""
    end = claim.text.find(", according to ")
    found = [word for word in read_claim(claim.text).words if end < 0 or word.end <= end]
    measured = inside(found, [each for each in quantities if each.kind != "date"])
    stems = frozenset(
        word.stem
        for place, word in enumerate(found)
        if word.is_content and not word.is_number and place not in measured
    )
    stems = (stems - CHANGES - REFERENTS) or stems
    if len(stems) >= 2:
        return stems
    lead_stems = frozenset(each for each in content_stems(claim.lead) if not each[0].isdigit())
    return stems | ((lead_stems - CHANGES - _OPERATIONS) or lead_stems)


def parse_passage(query: Query, passage: Passage) -> ParsedPassage:
    """Return a passage parsed for a claim, from the cache if possible."""
    known = query.parsed_passages.get(passage.place)
    if known is not None:
        return known
    query.work.spend()
    before = None if passage.is_row else query.context.before(passage)  # adjacent rows describe other things
    missing = query.subject - passage.stems
    shared_before = len(missing & before.stems) if before else 0
    covered = len(query.subject) - len(missing) + 0.5 * shared_before
    parsed = ParsedPassage(query, passage, before, covered / max(1, len(query.subject)))
    return query.parsed_passages.setdefault(passage.place, parsed)


def find_candidates(target: Binding, passages: Iterable[ParsedPassage]) -> Iterator[Candidate]:
    """Yield every quantity of the passages that is comparable with the claimed one.

    Cells with other values in columns that the claim does not name, and in which no row has its value, are left out,
    unless it states a range.
    """
    compared = list(_compared(target, passages))
    is_selective = target.quantity.kind != "date" and target.quantity.low == target.quantity.high
    matching = {each.column_of(place) for each, place, relation in compared if relation.is_match and each.is_row}
    for each, place, relation in compared:
        is_other = relation is Relation.DIFFERENT and is_selective and not each.is_column_named(place)
        if not is_other or each.column_of(place) in matching:
            yield Candidate(target, each, place, relation)


def _compared(target: Binding, passages: Iterable[ParsedPassage]) -> Iterator[tuple[ParsedPassage, int, Relation]]:
    """Yield the place of every comparable quantity of the passages, with its relation to the claimed one."""
    claimed, written = target.quantity, target.quantity.text.strip()
    is_date = claimed.kind == "date"
    for each in passages:
        quantities = each.quantities
        each.query.work.spend(len(quantities))
        for place in each.values:
            quantity = quantities[place]
            if (quantity.kind == "date") is not is_date and quantity.text.strip() != written:
                continue  # only "2019" may be either
            relation = _compare(claimed, quantity, each, place)
            if relation is not Relation.INCOMPARABLE:
                yield each, place, relation


def is_enumeration(quantity: Quantity) -> bool:
    """Return whether a small count, as in "three main reasons", may only count items that the answer itself lists."""
    if quantity.kind != "count" or quantity.low != quantity.high or not 0 <= quantity.low <= 12:
        return False
    return quantity.low == int(quantity.low) and not quantity.is_bare


def _compare(claimed: Quantity, stated: Quantity, parsed: ParsedPassage, place: int) -> Relation:
    if parsed.query.is_decline:  # "fell by 3%" for a growth of −3%
        is_fall = stated.high < 0 <= claimed.low and stated.kind in _SIGNED
        if is_fall or (stated.low > 0 and claimed.kind == stated.kind and _is_growth(stated, parsed)):
            stated = stated._replace(low=-stated.high, high=-stated.low)
    given = parsed.given[place] if parsed.is_row else None
    relation = _lower_for_rates(_compare_scaled(claimed, stated, parsed), claimed, stated, parsed)
    if given and not relation.is_match and claimed.scale == 1.0 and _may_repeat(claimed, stated, given):
        repeated = compare(claimed, parsed.passage.quantities[place], parsed.query.tolerances.get(claimed.kind))
        is_rounded = repeated is Relation.ROUNDED and is_enumeration(claimed)
        return repeated if repeated.is_match and not is_rounded else relation  # a cell's digits as written
    return relation


def _lower_for_rates(relation: Relation, claimed: Quantity, stated: Quantity, parsed: ParsedPassage) -> Relation:
    """Return the relation of two amounts, lowered if they are counted by different things ("per dose", "per day")."""
    if not relation.is_match or not (claimed.each or stated.each) or not (claimed.rate and stated.rate):
        return relation
    behind = content_stems(parsed.passage.text[stated.end :]), content_stems(parsed.query.claim.text[claimed.end :])
    if claimed.each & behind[0] or stated.each & behind[1]:
        return relation
    is_other = claimed.each and stated.each and not any(same_meaning(each) & stated.each for each in claimed.each)
    is_open = bool(claimed.each) != bool(stated.each) and not (claimed.per and stated.per)
    return Relation.DIFFERENT if is_other else Relation.OPEN if is_open else relation


def _compare_scaled(claimed: Quantity, stated: Quantity, parsed: ParsedPassage) -> Relation:
    """Compare at the scale of a note. Without one, equal digits of a row match at the claim's scale."""
    tolerance = parsed.query.tolerances.get(claimed.kind)
    is_unscaled = stated.scale == 1.0 and (stated.is_bare or stated.kind == "currency")
    scale = parsed.scale if is_unscaled else 1.0
    stated = in_money(stated, parsed) if claimed.kind == "currency" else stated
    relation = compare(claimed, stated, tolerance, scale)
    if relation is Relation.INCOMPARABLE:
        return relation if scale == 1.0 or claimed.scale != 1.0 else compare(claimed, stated, tolerance)
    if relation is Relation.DIFFERENT and scale == 1.0 and parsed.is_row and claimed.scale != 1.0 and is_unscaled:
        same_digits = compare(claimed, stated, tolerance, claimed.scale).is_match
        relation = Relation.UNSCALED if same_digits else relation
    if stated.is_bare and not claimed.is_bare and relation is Relation.ROUNDED and not parsed.is_row:
        relation = Relation.INCOMPARABLE  # a bare number in prose is about something else
    if parsed.is_row and relation is Relation.ROUNDED and is_enumeration(claimed):
        relation = Relation.INCOMPARABLE  # counts are not rounded
    if scale != 1.0 and claimed.scale == 1.0 and not relation.is_match:
        relation = compare(claimed, stated, tolerance)
    return relation


def in_money(bare: Quantity, parsed: ParsedPassage) -> Quantity:
    """Return a bare number of a row in the currency of a note, or else in the only currency of its source."""
    if not bare.is_bare or bare.scale != 1.0 or not (parsed.is_row or parsed.note):
        return bare
    if parsed.note and parsed.note.kind == "currency":
        return bare._replace(kind="currency", unit=parsed.note.unit)
    written = _currencies_of(parsed.passage.source.text)
    return bare._replace(kind="currency", unit=next(iter(written))) if len(written) == 1 and parsed.is_row else bare


@memo(64, 2048, long_entries=64)
def _currencies_of(text: str) -> frozenset[str]:
    return frozenset(CURRENCIES[sign.lower()] for sign in _MONEY_SIGN.findall(text))


def _may_repeat(claimed: Quantity, stated: Quantity, given: Given) -> bool:
    """Return whether a claim may repeat the digits of a cell without the unit or monetary scale of its names."""
    return claimed.kind == "count" or (claimed.kind == "currency" == stated.kind and given.scale != 1.0)


def _is_growth(stated: Quantity, parsed: ParsedPassage) -> bool:
    """Return whether a cell states a growth, which is a decline only with a minus sign."""
    if not parsed.is_row or stated.kind not in _SIGNED:
        return False
    return not _GROWTH.isdisjoint(content_stems(cell_at(parsed.passage.text, stated.start)))


def _with_ones(text: str, quantities: tuple[Quantity, ...]) -> tuple[Quantity, ...]:
    """Return the quantities of a passage with every "one tablet" added as a count.

    This is not done for claims, in which it may mean one of several.
    """
    if "one" not in text and "One" not in text and "single" not in text:
        return quantities
    taken = [(each.start, each.end) for each in quantities]
    ones = [
        Quantity(one.start(), one.end("one"), one["one"], "count", 1.0, 1.0, 0.5, is_spelled=True, nouns=(noun,))
        for one in _ONE.finditer(text)
        if (noun := stem(one["noun"])) not in STOPWORDS | _NOT_COUNTED
        and not any(low < one.end() and one.start() < high for low, high in taken)
    ]
    return tuple(sorted((*quantities, *ones), key=lambda each: each.start)) if ones else quantities


CHANGES = same_meaning(stem("rise")) | same_meaning(stem("fall"))  # these do not describe a subject
_ONE = re.compile(r"(?<![\w'-])(?P<one>one|a single) (?P<noun>[^\W\d_]{3,20})(?![\w'-])", re.IGNORECASE)
_NOT_COUNTED = frozenset("day morn even night time side hand th way point part person reason exampl kind".split())
_SIGNED = ("percentage", "currency", "count")
_GROWTH = same_meaning(stem("rise")) | {stem("change")}
_OPERATIONS = frozenset(map(stem, "change percentage percent difference ratio average sum between year".split()))
_MONEY_SIGN = re.compile(r"US\$|[$€£¥₹₩]|\b(?:USD|EUR|GBP|JPY|CHF|CNY|RMB|SEK|NOK|DKK|INR)\b")
