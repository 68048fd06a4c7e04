"""The numeric verifier: every number of a claim against what the sources state for the same thing (NU1–NU6, ST3)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from proxy.types import Citation, Claim, NumericPolicy, Policy, Verdict
from proxy.verification.alignment.lexicon import CONVERSE, REFERENTS, TITLES, concept, same_meaning
from proxy.verification.alignment.vetoes import Reading, inside, opposed
from proxy.verification.context.cells import cell_at, speaks_of_column
from proxy.verification.context.index import Context, Passage
from proxy.verification.numbers.binding import Binding, bind
from proxy.verification.numbers.derived import cues, derive, direction, elapsed, multiple
from proxy.verification.numbers.grammar import Quantity, find_quantities
from proxy.verification.numbers.tolerance import Relation, compare
from proxy.verification.numbers.units import read_unit
from proxy.verification.words import STOPWORDS, content_stems, stem, words


@dataclass(frozen=True)
class _Asked:
    """A claim with its quantities, the words of what they are about, and whether any is so large as to be scaled."""

    claim: Claim
    quantities: tuple[Quantity, ...]
    subject: frozenset[str]
    is_scaled: bool

    @property
    def is_counting(self) -> bool:
        """Whether a few of something are counted."""
        return any(_is_enumeration(each) for each in self.quantities)

    @cached_property
    def spoken(self) -> frozenset[str]:
        """The stems of all that it says and leans on."""
        return content_stems(f"{self.claim.lead} {self.claim.text}")

    @cached_property
    def first(self) -> str:
        """The stem of its first content word, which is of its subject."""
        return next((word.stem for word in words(self.claim.text) if word.is_content and not word.is_number), "")

    @cached_property
    def falls(self) -> bool:
        """Whether it speaks of decline or loss, so that it writes what is negative without a sign."""
        return direction(self.claim.text) < 0

    @cached_property
    def names(self) -> frozenset[str]:
        """The stems of the proper names of the claim: what is said of another name contradicts nothing."""
        reading = Reading(self.claim.text, self.quantities)
        return frozenset(
            word.stem
            for place, word in enumerate(reading.words)
            if reading.is_name(place) and place not in reading.measured and word.text.lower() not in TITLES
        )


@dataclass(frozen=True)
class _Read:
    """A passage that was looked at; what only few passages are asked is found out when they are.

    `coverage` is the share of the claim's words that it has, `before` the passage before it in a text that runs on.
    """

    asked: _Asked
    passage: Passage
    before: Passage | None
    coverage: float

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Its quantities, with "one" read as a count where the claim counts a few."""
        found = self.passage.quantities
        return _with_ones(self.passage.text, found) if self.asked.is_counting else found

    @cached_property
    def bindings(self) -> tuple[Binding, ...]:
        """What each of its quantities measures."""
        return bind(self.passage.text, self.passage.words, self.quantities)

    @cached_property
    def scale(self) -> float:
        """The factor that a note near it gives to its bare numbers."""
        return _header_scale(self.passage) if self.asked.is_scaled else 1.0

    @cached_property
    def is_named(self) -> bool:
        """Whether it has a name that the claim has, or the claim has none."""
        names = self.asked.names
        if not names or not names.isdisjoint(self.passage.stems):
            return True
        near = self.before.stems if self.before else frozenset()
        return not names.isdisjoint(near | content_stems(self.passage.heading))


@dataclass(frozen=True)
class _Stated:
    """A quantity of a source passage, the `place`th there, as it stands to the claimed one."""

    mine: Binding
    read: _Read
    place: int
    relation: Relation

    @property
    def passage(self) -> Passage:
        return self.read.passage

    @property
    def coverage(self) -> float:
        return self.read.coverage

    @property
    def quantity(self) -> Quantity:
        return self.read.quantities[self.place]

    @property
    def binding(self) -> Binding:
        return self.read.bindings[self.place]

    @cached_property
    def scoped(self) -> float:
        """The share of the words that say what is measured that stand with this quantity alone."""
        scope = self.mine.scope
        return len(scope & self.binding.own) / len(scope) if scope else 0.0

    @property
    def shared(self) -> bool:
        """Whether one of those words stands with it or is shared by all of the passage."""
        scope = self.mine.scope
        return bool(scope & (self.binding.own | self.binding.shared)) or (not scope and self.coverage >= 1)

    @cached_property
    def fits_period(self) -> bool | None:
        """Whether it may be of the claim's period; None: no date to compare."""
        return _fits_period(self.mine.dates, self.binding.dates) if self.mine.dates else None


@dataclass(frozen=True, slots=True)
class _Finding:
    """What came of one quantity of the claim; None as a label: it is no claim about a source."""

    label: str | None
    method: str
    reason: str
    score: float
    citations: tuple[Citation, ...] = ()
    flag: str = ""


def verify(
    claim: Claim, context: Context, policy: Policy, clock: Callable[[], float] = time.thread_time
) -> Verdict | None:
    """The verdict on the numbers of `claim`, or None when it has none of an enabled kind.

    At most `max_source_checks` passages are read; `clock` (seconds) is asked between them, and a claim past
    `timeout_s` is not checked. It is the processor's time that counts, so that a busy machine changes no verdict.
    """
    quantities = find_quantities(claim.text)
    wanted = [quantity for quantity in quantities if is_enabled(quantity, policy.numeric)]
    if not wanted:
        return None
    deadline = clock() + policy.numeric.timeout_s
    claimed = {each.quantity: each for each in bind(claim.text, words(claim.text), quantities)}
    is_scaled = any(each.high >= 1000 or each.low <= -1000 for each in wanted if each.kind != "date")
    asked = _Asked(claim, quantities, _subject(claim, quantities), is_scaled)
    read: list[_Read] = []
    candidates = _candidates(claim, context, policy.numeric.max_source_checks)
    if not candidates:
        asked, candidates = _in_other_words(asked, context, policy.numeric.max_source_checks)
    for passage in candidates:
        if clock() > deadline:
            return _timed_out(len(wanted), policy.numeric.timeout_s)
        read.append(_read(asked, passage, context))
    findings: list[_Finding] = []
    for quantity in wanted:
        if clock() > deadline:
            return _timed_out(len(wanted), policy.numeric.timeout_s)
        findings.append(_judge(asked, claimed[quantity], read, policy.numeric))
    return _combine([finding for finding in findings if finding.label])


def _with_ones(text: str, quantities: tuple[Quantity, ...]) -> tuple[Quantity, ...]:
    """The quantities of a source with every "one tablet" in it as a count; a claim may mean one of several by it."""
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


def is_enabled(quantity: Quantity, policy: NumericPolicy) -> bool:
    """Whether the policy wants numbers of this kind checked."""
    switches = {
        "currency": policy.currency,
        "percentage": policy.percentage,
        "ratio": policy.ratio,
        "date": policy.date,
    }
    return switches.get(quantity.kind, True)


def _tolerance(kind: str, policy: NumericPolicy) -> float | None:
    return dict(policy.tolerance or ()).get(kind)


def _subject(claim: Claim, quantities: Sequence[Quantity]) -> frozenset[str]:
    """The words of the claim apart from its numbers; those it leans on when it has hardly any."""
    told = words(claim.text.partition(", according to ")[0])
    measured = inside(told, [each for each in quantities if each.kind != "date"])
    spoken = frozenset(
        word.stem for place, word in enumerate(told) if word.is_content and not word.is_number and place not in measured
    )
    spoken = (spoken - _CHANGES - REFERENTS) or spoken
    if len(spoken) >= 2:
        return spoken
    leaned_on = frozenset(each for each in content_stems(claim.lead) if not each[0].isdigit())
    return spoken | ((leaned_on - _CHANGES - _OPERATIONS) or leaned_on)


def _candidates(claim: Claim, context: Context, limit: int) -> list[Passage]:
    """The passages nearest to the claim's words, the last third of them those nearest to its numbers alone."""
    stems = content_stems(f"{claim.lead} {claim.text}")
    by_words = context.nearest(stems, limit)
    by_numbers = context.nearest([stem for stem in stems if stem[:1].isdigit()], limit)
    kept = list(by_words[: limit - min(len(by_numbers), limit // 3)])
    kept += [passage for passage in by_numbers if passage not in kept][: limit - len(kept)]
    kept += [passage for passage in by_words if passage not in kept][: limit - len(kept)]
    return kept


def _in_other_words(asked: _Asked, context: Context, limit: int) -> tuple[_Asked, list[Passage]]:
    """The question in the words that the sources have for it, where they have none of its own, and where they do."""
    synonyms = frozenset().union(*map(same_meaning, asked.subject))
    found = list(context.nearest(synonyms, limit))
    told = synonyms & frozenset().union(*(passage.stems for passage in found))
    return (replace(asked, subject=told) if told else asked), found


def _read(asked: _Asked, passage: Passage, context: Context) -> _Read:
    before = None
    if not _is_table_row(passage):  # the rows around a row name other things
        before = next((each for each in context.around(passage, 1, 0) if each is not passage), None)
    missing = asked.subject - passage.stems
    beside = len(missing & before.stems) if before else 0
    covered = len(asked.subject) - len(missing) + 0.5 * beside
    return _Read(asked, passage, before, covered / max(1, len(asked.subject)))


def _judge(asked: _Asked, mine: Binding, read: Sequence[_Read], policy: NumericPolicy) -> _Finding:
    """One quantity: stated, stated of something else, derived, contradicted or absent.

    A date beside other quantities of the claim only says of which period they are.
    """
    claim, quantity, subject = asked.claim, mine.quantity, asked.subject
    selects_period = quantity.kind == "date" and len(asked.quantities) > 1
    tolerance = _tolerance(quantity.kind, policy)
    ranked = sorted(read, key=lambda each: -_promise(each, mine))
    if settled := _settled(claim, mine, subject, ranked[:_FIRST_LOOK], ranked[_FIRST_LOOK:], tolerance, selects_period):
        return settled
    stated = list(_all_stated(mine, read, tolerance))
    matching = [each for each in stated if each.relation.is_match]
    if other := _of_something_opposite(mine, claim, matching):
        return other
    differing = [each for each in stated if _contests(each, mine)]
    if matching:
        return _of_matching(mine, subject, matching, () if selects_period else differing)
    if quantity.kind == "date" and (dated := _of_dates(quantity, stated)):
        return dated
    if _is_enumeration(quantity) and not any(_is_about_it(each) for each in differing):
        return _Finding(None, "", "", 0.0)
    if verbatim := _verbatim(mine, read) or _both_ends(quantity, stated, tolerance):
        return verbatim
    if quantity.kind != "date" and (derived := _derived(claim, mine, subject, read, tolerance)):
        return derived
    if followed := _elapsed(asked, mine, ranked) or _multiple(mine, differing):
        return followed
    spoken = cues(claim.text) if not _TO_LEVEL.search(claim.text, max(0, quantity.start - 6), quantity.start) else set()
    comparable = [
        each for each in differing if each.relation is Relation.DIFFERENT and spoken <= cues(each.passage.text)
    ]
    return _of_no_match(mine, stated, comparable)


def _all_stated(mine: Binding, read: Sequence[_Read], tolerance: float | None) -> Iterator[_Stated]:
    """Every quantity of the passages that can be held against the claimed one."""
    for each in read:
        for place, quantity in enumerate(each.quantities):
            relation = _compare(mine.quantity, quantity, each, tolerance)
            if relation is not Relation.APART:
                yield _Stated(mine, each, place, relation)


def _compare(claimed: Quantity, stated: Quantity, read: _Read, tolerance: float | None) -> Relation:
    if stated.high < 0 <= claimed.low and stated.kind in _SIGNED and read.asked.falls:
        stated = replace(stated, low=-stated.high, high=-stated.low)  # "fell by 3%" for a growth of −3%
    elif stated.low > 0 and _is_growth(stated, read) and claimed.kind == stated.kind and read.asked.falls:
        stated = replace(stated, low=-stated.high, high=-stated.low)
    scale = read.scale if stated.scale == 1.0 and (stated.is_bare or stated.kind == "currency") else 1.0
    relation = compare(claimed, stated, tolerance, scale)
    is_cell = stated.scale == 1.0 and _is_table_row(read.passage)
    if relation is Relation.DIFFERENT and scale == 1.0 and is_cell:
        same_digits = compare(claimed, stated, tolerance, claimed.scale).is_match
        relation = Relation.OPEN if same_digits else relation  # the table does not tell its scale
    if stated.is_bare and not claimed.is_bare and relation is Relation.ROUNDED and not is_cell:
        relation = Relation.APART  # digits without a unit in prose are those of something else
    if is_cell and relation is Relation.ROUNDED and _is_enumeration(claimed):
        relation = Relation.APART  # what is counted is not rounded
    if scale != 1.0 and claimed.scale == 1.0 and not relation.is_match:
        relation = compare(claimed, stated, tolerance)  # the claim repeats the figure of a cell as it stands there
    return relation


def _fits_period(mine: Sequence[Quantity], theirs: Sequence[Quantity]) -> bool | None:
    """Whether two amounts may be of one period; None when either has no date."""
    if not mine or not theirs:
        return None
    return any(compare(one, other) is not Relation.DIFFERENT for one in mine for other in theirs)


def _contests(stated: _Stated, mine: Binding) -> bool:
    """Whether a different value is of the same dimension, so that it may be the true one."""
    claimed, other = mine.quantity, stated.quantity
    if stated.relation is not Relation.DIFFERENT and not _differs_but_for_bounds(stated):
        return False
    is_cell = _is_table_row(stated.passage)
    if is_cell and not speaks_of_column(stated.passage.text, other.start, stated.read.asked.spoken):
        return False
    if other.is_bare and claimed.kind == "quantity" and claimed.unit == "time" and not _names_time(stated):
        return False  # how long something takes is no bare number
    if claimed.kind == "date":
        lengths = claimed.high - claimed.low, other.high - other.low
        are_days = (
            not max(lengths)
            and "month-day" in (claimed.unit, other.unit)
            and {claimed.unit, other.unit} <= {"", "month-day"}
        )
        return are_days or (claimed.unit == other.unit and max(lengths) <= 2 * min(lengths) + 1)
    if claimed.kind != other.kind:
        return other.is_bare and not claimed.nouns and is_cell
    if other.is_bare and not 1e-4 < abs(claimed.low / (other.low * stated.read.scale or 1.0)) < 1e4:
        return False  # too far apart to be one thing, even with a slip of the scale
    if claimed.kind == "quantity" and (
        claimed.unit != other.unit or (claimed.unit == "time" and claimed.worth != other.worth)
    ):
        return False  # "three weeks" and "41 years" are hardly of one thing
    if claimed.kind == "count" and other.is_bare and is_cell:
        return claimed.is_bare or _is_counted_by(stated, claimed.nouns)
    if claimed.is_bare and other.nouns:
        return _counts_what_is_asked(stated)
    if claimed.kind == "count":
        return claimed.nouns[:1] == other.nouns[:1] and claimed.is_bare == other.is_bare
    return True


def _differs_but_for_bounds(stated: _Stated) -> bool:
    """Whether only "up to" or "more than" keeps the two values from excluding each other."""
    claimed, other = stated.mine.quantity, stated.quantity
    if stated.relation is not Relation.OPEN or not (claimed.bound or other.bound):
        return False
    return compare(replace(claimed, bound=""), replace(other, bound="")) is Relation.DIFFERENT


def _is_counted_by(stated: _Stated, nouns: Sequence[str]) -> bool:
    """Whether a cell's column, or its row where the column has no name of words, counts what is counted."""
    names = {concept(each) for each in stated.binding.own or stated.binding.shared}
    return not nouns or concept(nouns[0]) in names


def _names_time(stated: _Stated) -> bool:
    return any(read_unit(each, 0) is not None for each in cell_at(stated.passage.text, stated.quantity.start).split())


def _is_growth(stated: Quantity, read: _Read) -> bool:
    """Whether a cell tells a growth, so that it is a decline only with a minus sign."""
    if not _is_table_row(read.passage) or stated.kind not in _SIGNED:
        return False
    return not _GROWTH.isdisjoint(content_stems(cell_at(read.passage.text, stated.start)))


def _is_about_it(stated: _Stated) -> bool:
    """Whether the passage speaks of what the claim speaks of, near enough to contradict it."""
    return stated.coverage >= 0.5 and stated.shared and stated.fits_period is not False and stated.read.is_named


def _counts_what_is_asked(stated: _Stated) -> bool:
    """Whether what the source counts is what the claim puts a bare number to: "its population is 60,000"."""
    claimed, other = stated.mine.quantity, stated.quantity
    asked = {concept(each) for each in stated.mine.scope}
    return claimed.is_bare and bool(other.nouns) and concept(other.nouns[0]) in asked


def _rank(stated: _Stated) -> tuple[bool, float, float, int]:
    return stated.fits_period is not False, stated.coverage + stated.scoped, stated.coverage, -stated.passage.place


def _promise(read: _Read, mine: Binding) -> float:
    """The most that a quantity of the passage can rank by, known before any is read (see `_rank`)."""
    return read.coverage + (len(mine.scope & read.passage.stems) / len(mine.scope) if mine.scope else 0.0)


def _settled(
    claim: Claim,
    mine: Binding,
    subject: frozenset[str],
    likely: Sequence[_Read],
    others: Sequence[_Read],
    tolerance: float | None,
    selects_period: bool,
) -> _Finding | None:
    """The match in the likeliest passages, when nothing that the others may state could outdo or outrank it."""
    stated = list(_all_stated(mine, likely, tolerance))
    differing = [] if selects_period else [each for each in stated if _contests(each, mine)]
    matching = [each for each in stated if each.relation.is_match]
    if any(_is_set_apart(each, claim) or _opposite(mine, each) for each in matching):
        return None
    sound = _undone_by_none(matching, differing, mine, subject)
    best = max(sound, key=_rank, default=None)
    if best is None or not best.coverage or best.fits_period is False:
        return None
    for each in others:
        if each.coverage > best.coverage or _promise(each, mine) >= best.coverage + best.scoped:
            return None
    return _matched(mine.quantity, best)


def _of_matching(
    mine: Binding, subject: frozenset[str], matching: Sequence[_Stated], differing: Sequence[_Stated]
) -> _Finding:
    """The number stands in a source: supported, unless every such place is outdone by one about the claim."""
    sound = _undone_by_none(matching, differing, mine, subject)
    if not sound:
        rivals = (other for each in matching for other in differing if _outdoes(other, each, mine, subject))
        best, found = max(rivals, key=_rank), max(matching, key=_rank)
        reason = f"{mine.quantity.text} stands in the source for something else; here it says {_value(best)}."
        cited = (_cite(best), _cite(found)) if found.passage is not best.passage else (_cite(best),)
        return _Finding("contradicted", "misattributed", reason, 0.1, cited, "misattributed")
    best = max(sound, key=_rank)
    if subject and best.coverage == 0 and best.scoped == 0 and not _is_distinctive(mine.quantity):
        return _absent(mine.quantity, "stands in the sources only beside other things")
    return _matched(mine.quantity, best)


def _of_something_opposite(mine: Binding, claim: Claim, matching: Sequence[_Stated]) -> _Finding | None:
    """The number stands only where the source sets it apart, or says the opposite of it: a loss, not a profit."""
    if not matching or not all(_is_set_apart(each, claim) or _opposite(mine, each) for each in matching):
        return None
    best = max(matching, key=_rank)
    if best.coverage < 0.5:
        return None
    said = _opposite(mine, best)
    reason = f"{mine.quantity.text} stands in the source for " + (f'"{said}".' if said else "what it sets apart.")
    return _Finding("contradicted", "misattributed", reason, 0.1, (_cite(best),), "misattributed")


def _is_set_apart(stated: _Stated, claim: Claim) -> bool:
    before = _APART_FROM.search(stated.passage.text, max(0, stated.quantity.start - 20), stated.quantity.start)
    return before is not None and not _APART_FROM.search(claim.text + " ")


def _opposite(mine: Binding, stated: _Stated) -> str:
    """The word beside the stated number that denies one beside the claimed one, as a stem; "" when there is none."""
    theirs = stated.binding.own
    if _is_table_row(stated.passage):
        return ""
    return next(
        (
            other
            for word in sorted(mine.own - theirs - _CHANGES)
            for other in sorted(theirs - mine.own - _CHANGES)
            if opposed(word, other) and word not in CONVERSE
        ),
        "",
    )


def _undone_by_none(
    matching: Sequence[_Stated], differing: Sequence[_Stated], mine: Binding, subject: frozenset[str]
) -> list[_Stated]:
    return [each for each in matching if not any(_outdoes(other, each, mine, subject) for other in differing)]


def _matched(claimed: Quantity, best: _Stated) -> _Finding:
    said = "as stated" if best.relation is Relation.EXACT else f"{best.relation.value} from {_value(best)}"
    score = 0.8 + 0.2 * min(1.0, best.coverage)
    return _Finding("supported", best.relation.value, f"{claimed.text}: {said}.", score, (_cite(best),))


def _outdoes(other: _Stated, match: _Stated, mine: Binding, subject: frozenset[str]) -> bool:
    """Whether a different value is bound to what the claim measures and the matching one is bound to something else."""
    if match.fits_period is False and other.coverage >= match.coverage - 0.2 and other.fits_period:
        return other.scoped > 0 or other.coverage >= 0.5
    if other.passage is not match.passage and other.coverage <= match.coverage:
        return False
    if other.fits_period is False or "respectiv" in other.passage.stems:
        return False
    theirs, found = other.binding, match.binding
    if other.passage is match.passage:
        is_list = not (
            theirs.has_subject or found.has_subject
        )  # one subject for all: only what follows tells them apart
        common = theirs.shared if is_list else frozenset()
        first, alone = other.read.asked.first, theirs.own - found.own
        if theirs.has_subject and first in alone and not found.own - theirs.own <= subject:
            return True  # the subject of the other verb: "while placebo reduced it by 0.3"
        return _names_better(mine.scope, theirs.own - common, found.own - common)
    if _is_table_row(other.passage) and _is_table_row(match.passage):
        return other.coverage > match.coverage and _names_better(subject, theirs.shared, found.shared)
    missing = (mine.scope & other.passage.stems) - match.passage.stems
    leaned_on = match.read.before.stems if match.read.before else frozenset()
    if other.scoped == 1 > match.scoped and (missing & other.read.asked.names) - leaned_on:
        return True  # all of it is said of the very name, of which the matching passage says nothing
    return bool(missing) and other.scoped > match.scoped and other.coverage >= max(0.6, match.coverage + 0.3)


def _names_better(wanted: frozenset[str], these: frozenset[str], those: frozenset[str]) -> bool:
    """Whether `these` words name all of the wanted that `those` name and more, while `those` name something else."""
    return wanted & these > wanted & those and not those <= wanted | these


def _of_dates(claimed: Quantity, stated: Sequence[_Stated]) -> _Finding | None:
    """A day whose day and year stand apart in the sources; a quarter without a year that the sources leave open."""
    near = [each for each in stated if each.relation is Relation.OPEN]
    days = [each for each in near if each.quantity.unit]
    years = [each for each in near if not each.quantity.unit]
    if days and years and not claimed.unit:
        best = max(days, key=_rank)
        return _Finding(
            "supported", "exact", f"{claimed.text}: as stated.", 0.8, (_cite(best), _cite(max(years, key=_rank)))
        )
    is_relative = claimed.unit in ("quarter", "half") or (claimed.unit and near)
    rivals = any(each.relation is Relation.DIFFERENT and each.quantity.unit == claimed.unit for each in stated)
    return _Finding(None, "", "", 0.0) if is_relative and not rivals else None


def _of_no_match(mine: Binding, stated: Sequence[_Stated], differing: Sequence[_Stated]) -> _Finding:
    quantity = mine.quantity
    about = [each for each in differing if _is_about_it(each)]
    near = [each for each in stated if each.relation is Relation.OPEN and each.coverage >= 0.4]
    if about and not near:
        best = max(about, key=_rank)
        reason = f"{quantity.text} differs from {_value(best)}, which the source states."
        return _Finding("contradicted", "mismatch", reason, 0.05, (_cite(best),), "numeric_mismatch")
    if near:
        best = max(near, key=_rank)
        reason = f"The source leaves {quantity.text} open: it says {_value(best)}."
        return _Finding("unsupported", "mismatch", reason, 0.3, (_cite(best),), "numeric_mismatch")
    return _absent(quantity, "was found in no source")


def _absent(quantity: Quantity, why: str) -> _Finding:
    return _Finding("unsupported", "absent", f"{quantity.text} {why}.", 0.2, (), "numeric_mismatch")


def _is_enumeration(quantity: Quantity) -> bool:
    """Whether a small bare count, as in "three main reasons", may only count what the answer itself lists."""
    is_small = quantity.low == quantity.high and quantity.low in range(13)
    return quantity.kind == "count" and is_small and not quantity.is_bare


def _verbatim(mine: Binding, read: Sequence[_Read]) -> _Finding | None:
    """The same digits in a passage about the claim where the grammar read no quantity, such as an item number."""
    written = [word.stem for word in words(mine.quantity.text) if word.is_number]
    for each in read:
        if each.coverage >= 0.3 and written:
            spans = [(found.start, found.end) for found in each.passage.quantities]
            loose = {
                word.stem
                for word in each.passage.words
                if word.is_number and not any(low <= word.start < high for low, high in spans)
            }
            if loose.issuperset(written):
                cited = (each.passage.cite(each.coverage, "numeric"),)
                return _Finding("supported", "exact", f"{mine.quantity.text}: as stated.", 0.8, cited)
    return None


def _both_ends(claimed: Quantity, stated: Sequence[_Stated], tolerance: float | None) -> _Finding | None:
    """A range whose ends are stated one by one."""
    if claimed.low == claimed.high or claimed.kind == "date":
        return None
    found = []
    for end in (replace(claimed, high=claimed.low), replace(claimed, low=claimed.high)):
        at = [each for each in stated if compare(end, each.quantity, tolerance).is_match]
        if not at:
            return None
        found.append(_cite(max(at, key=_rank)))
    return _Finding("supported", "exact", f"{claimed.text}: as stated.", 0.8, tuple(dict.fromkeys(found)))


def _derived(
    claim: Claim, mine: Binding, subject: frozenset[str], read: Sequence[_Read], tolerance: float | None
) -> _Finding | None:
    """The number computed from the numbers of the best passage, then of the best few together."""
    ranked = sorted((each for each in read if _may_be_derived_from(each)), key=lambda each: -each.coverage)
    ranked = [each for each in ranked if subject & each.passage.stems]
    years = [each for each in find_quantities(claim.text) if each.kind == "date"]
    groups = [[each] for each in ranked[:3]] + ([ranked[:4]] if len(ranked) > 1 else [])
    for group in groups:
        operands = [
            (_scaled(found.quantity, each, mine.quantity), each)
            for each in group
            for found in each.bindings
            if found.quantity.kind not in ("date", "time")
            and (_is_table_row(each.passage) or subject & found.subject or not found.own)
            and (len(years) < 2 or _fits_period(years, found.dates) is not False)
        ]
        derivation = derive(mine.quantity, f"{claim.lead} {claim.text}", [each for each, _ in operands], tolerance)
        if derivation:
            used = list(dict.fromkeys(operands[place][1].passage for place in derivation.operands))
            cited = tuple(passage.cite(0.8, "numeric") for passage in used)
            reason = f"{mine.quantity.text} follows from the source: {derivation.formula}."
            return _Finding("supported", "derived", reason, 0.8, cited)
    return None


def _may_be_derived_from(read: _Read) -> bool:
    """Whether a passage has enough of the claim; a row need only be that of one of the names in it."""
    return read.coverage >= (0.2 if _is_table_row(read.passage) and read.is_named else 0.3)


def _elapsed(asked: _Asked, mine: Binding, ranked: Sequence[_Read]) -> _Finding | None:
    """A time between two of the dates that the likeliest passages state for what the claim speaks of."""
    dated = [
        (each.quantities[place], each.passage)
        for each in ranked[:_FIRST_LOOK]
        if each.coverage >= 0.3
        for place, quantity in enumerate(each.quantities)
        if quantity.kind == "date" and not quantity.unit and _is_of_column(each, quantity)
    ]
    if found := elapsed(mine.quantity, asked.claim.text, [date for date, _ in dated]):
        cited = tuple(dict.fromkeys(dated[place][1].cite(0.8, "numeric") for place in found.operands))
        reason = f"{mine.quantity.text} follows from the source: {found.formula}."
        return _Finding("supported", "derived", reason, 0.8, cited)
    return None


def _is_of_column(read: _Read, quantity: Quantity) -> bool:
    text = read.passage.text
    if not _is_table_row(read.passage):
        return True
    is_value = ": " in text[text.rfind("|", 0, quantity.start) + 1 : quantity.start]
    return is_value and speaks_of_column(text, quantity.start, read.asked.spoken)


def _multiple(mine: Binding, differing: Sequence[_Stated]) -> _Finding | None:
    """The number that a source gives as a multiple or a part of another: "22 million, twice the estimate"."""
    for each in differing:
        found = multiple(mine.quantity, each.quantity, each.passage.text)
        if found and mine.scope & content_stems(each.passage.text[each.quantity.end :]):
            reason = f"{mine.quantity.text} follows from the source: {found}."
            return _Finding("supported", "derived", reason, 0.8, (_cite(each),))
    return None


def _scaled(stated: Quantity, read: _Read, claimed: Quantity) -> Quantity:
    """A cell's number at the scale of its table; as it stands when the claim repeats such figures without a scale."""
    if claimed.scale == 1.0 or stated.scale != 1.0 or not (stated.is_bare or stated.kind == "currency"):
        return stated
    scale = read.scale
    return replace(stated, low=stated.low * scale, high=stated.high * scale, slack=stated.slack * scale, scale=scale)


def _is_distinctive(quantity: Quantity) -> bool:
    """Whether a number has digits enough that it hardly stands somewhere by chance."""
    return sum(map(str.isdigit, quantity.text)) >= 3


def _is_table_row(passage: Passage) -> bool:
    return "|" in passage.text or "\t" in passage.text


def _header_scale(passage: Passage) -> float:
    """The factor that a note near a table gives to its bare numbers ("in millions", "$000s"), else 1."""
    if not (_is_table_row(passage) or len(passage.quantities) > 2):
        return 1.0
    nearest = _SCALE_NOTE.search(passage.text) or _SCALE_ASIDE.search(passage.text)
    if nearest is None:
        notes = _SCALE_NOTE.finditer(passage.source.text, max(0, passage.start - 4000), passage.end + 4000)
        nearest = min(notes, key=lambda note: abs(note.start() - passage.start), default=None)
    return _NOTED[nearest.lastgroup or ""] if nearest else 1.0


def _value(stated: _Stated) -> str:
    quantity = stated.quantity
    sign = "−" if quantity.low < 0 and quantity.text[0] not in "-−–(" and "(" not in quantity.text else ""
    if quantity.is_bare and _is_table_row(stated.passage):
        return cell_at(stated.passage.text, quantity.start)
    return sign + " ".join(quantity.text.split())


def _cite(stated: _Stated) -> Citation:
    return stated.passage.cite(min(1.0, 0.5 + 0.5 * stated.coverage), "numeric")


def _timed_out(extracted: int, limit: float) -> Verdict:
    reason = f"The numbers were not checked within {limit:g} s."
    return Verdict("numeric", "not_checked", 0.0, "timeout", reason, extracted=extracted)


def _combine(findings: Sequence[_Finding]) -> Verdict | None:
    """The worst finding speaks for the claim; all their evidence is kept."""
    if not findings:
        return None
    order = ("contradicted", "unsupported", "supported")
    worst = min(findings, key=lambda finding: (order.index(finding.label or "supported"), finding.score))
    alike = [finding for finding in findings if finding.label == worst.label]
    citations = tuple(dict.fromkeys(citation for finding in alike for citation in finding.citations))
    flags = tuple(dict.fromkeys(finding.flag for finding in findings if finding.flag))
    return Verdict(
        "numeric",
        worst.label,  # type: ignore[arg-type]
        round(worst.score, 4),
        worst.method,
        " ".join(dict.fromkeys(finding.reason for finding in alike)),
        citations,
        flags,
        extracted=len(findings),
        validated=sum(finding.label == "supported" for finding in findings),
    )


_ONE = re.compile(r"(?<![\w'-])(?P<one>one|a single) (?P<noun>[^\W\d_]{3,20})(?![\w'-])", re.IGNORECASE)
_NOT_COUNTED = frozenset("day morn even night time side hand th way point part person reason exampl kind".split())
_FIRST_LOOK = 2  # passages; most claims find all their numbers in one
_APART_FROM = re.compile(r"\b(?:instead of|rather than|unlike|not) (?:in |on |at )?$", re.IGNORECASE)
_SIGNED = ("percentage", "currency", "count")
_GROWTH = same_meaning(stem("rise")) | {stem("change")}
_CHANGES = same_meaning(stem("rise")) | same_meaning(stem("fall"))  # which way a thing went is not what it is
_OPERATIONS = frozenset(map(stem, "change percentage percent difference ratio average sum between year".split()))
_TO_LEVEL = re.compile(r"\bto [$€£]?$")
_NOTED = {"thousands": 1e3, "millions": 1e6, "billions": 1e9}
_SCALE_NOTE = re.compile(
    r"(?P<thousands>\bthousands\b|[’'‘]000[’']?s?\b|[$€£]000s?\b|[$€£]k\b)"
    r"|(?P<millions>\bmillions\b|[$€£] ?(?:mm?|mn|million)\b)|(?P<billions>\bbillions\b|[$€£] ?(?:billion|bn)\b)",
    re.IGNORECASE,
)
_SCALE_ASIDE = re.compile(  # what a table's head says of all its numbers stands in brackets behind the row's label
    r"\((?:[^()|\d]{0,60}[^()|\d\w])?(?:(?P<thousands>thousand|k)|(?P<millions>million|mio|mln|mn|mm|m)|(?P<billions>billion|bn))"
    r"(?: [^()|]{0,40})?\)",
    re.IGNORECASE,
)
