"""The statement verifier: aligns a claim with the passages nearest to it, and decides by that alignment.

`align` computes features and does not judge; `decide` converts them to a verdict. Both are pure, and depend only on the
claim and the windows it is compared with, so that unrelated text changes no verdict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Literal

from groundwire.domain import Citation, Claim, Match, Source, Verdict
from groundwire.evidence.index import Context, Passage, cite
from groundwire.policy import Policy
from groundwire.text.quantities import find_quantities
from groundwire.text.reading import Reading, read_claim
from groundwire.text.words import (
    CALENDAR,
    EVALUATIVE,
    FRAME_WORDS,
    LIGHT_WORDS,
    LINKING,
    NAME_CONCEPTS,
    QUANTIFIERS,
    REFERENTS,
    TITLES,
    concept,
    opposites,
    root,
    same_meaning,
    stem,
    words,
)
from groundwire.verifiers.lexical import Features, find_denial, find_verbatim, measure_features, shipped
from groundwire.verifiers.numbers.numeric import is_enabled
from groundwire.verifiers.quotes import decides_alone
from groundwire.verifiers.selection import spell_out
from groundwire.verifiers.vetoes import Veto, find_vetoes

_MARKUP = re.compile(r"[*_`#|>]+|\[[^\[\]\n]{1,40}\](?!\()|【[^【】\n]{1,40}】|\]\([^()\s]{1,500}\)")

_COORDINATES = re.compile(r"[,;]|\b(?:and|or|while|whereas|but)\b")
_CAUSED = re.compile(r"\b(?:because of|due to|owing to|thanks to|as a result of|caused by|blamed on)\b", re.IGNORECASE)
_LABEL_NOUNS = FRAME_WORDS | REFERENTS | frozenset("step tabl figur chapter part option item sect clip".split())
_FIELD = re.compile(r"(?:^|\| )([^|:\n]{1,60}):")
_RECORD = re.compile(r"\w: [^|\n]*\|")
_IDENTIFYING = 4  # characters

_MAX_SEEDS = 12
_NAME_WEIGHT, _LIGHT_WEIGHT, _REFERENT_WEIGHT = 2.0, 0.35, 0.1
_SPREAD_COST = 0.015  # per further passage: of two equally good windows, the narrower one is the evidence
_MAX_DISTANCE = 6  # maximum distance, in words, of neighbours that count as in order
_MIN_SECOND_SHARE = 0.5  # minimum share of the claim in a second window that completes the first
_LEAD_SHARE = 0.05
_MIN_VETO_SHARE = 0.35  # a window below it is about something else, so that vetoes are ignored
_MAX_CITED = 3


_MIN_SEMANTIC, _MIN_INFERENCE = 0.45, 0.5  # minimum coverage of a long claim by one window, and by several
_MAX_GAP = 5.0  # maximum weight of a gap
_MIN_VETO_FRAME = {"strict": 0.7, "balanced": 0.75, "lenient": 0.85}
"""The minimum `frame`, by policy, of a window about the same thing as the claim, so that a veto holds."""
_SHORT, _RATHER_SHORT, _LONG = 3, 5, 6  # content words
_SHORT_MARGIN = 0.1  # additional coverage that a shorter claim needs
_MIN_WITHOUT_NAME = 0.8  # minimum coverage of a long claim of which one name may be missing
_CHANGES = same_meaning(stem("rise")) | same_meaning(stem("fall"))
_ORDINAL_ENDINGS = ("st", "nd", "rd", "th")
_MEASURED = _CHANGES | same_meaning(stem("cost"))
_PREDICATE_VERBS = LINKING | {"has", "have", "had"}
_MIN_CONTENT = 0.15  # minimum share of content other than names
_MIN_EXACT_COVERAGE, _MIN_EXACT_ORDER = 0.97, 0.9


@dataclass(frozen=True, slots=True)
class Alignment:
    """The alignment of a claim with its best evidence. Shares are 0–1 and weigh names above other words.

    `window` is the best run of consecutive passages of one source; `second` are further passages about the same thing
    or with items of a list (may be empty). `coverage` is the share of the claim's content in `window`, where the
    subject of a record counts as found. `frame` is the same without the words that a veto is about, `union` the share
    in `window` and `second` together. `order` is the share of neighbouring content words that are near each other in
    the window, in order. `predicate` is the unweighted share in the window of the words after the claim's first "is" or
    "has" (1 if it has none).

    The following count words found in either: `gap` is the weight of the longest run of content words not found,
    `content` the share of the words other than names, `cause` that of the cause that the claim gives (each 1 if the
    claim has none). `missing` are the words not found, `core_missing` is the number of those with full weight. `size`
    is the number of content words. `cited` is set if the window is in a cited source (None: none is cited), `unknown`
    are labels that resolve to no source.
    """

    size: int
    missing: tuple[str, ...]
    coverage: float = 0.0
    frame: float = 0.0
    union: float = 0.0
    order: float = 0.0
    gap: float = 0.0
    predicate: float = 1.0
    content: float = 1.0
    cause: float = 1.0
    core_missing: int = 0
    verbatim: Citation | None = None
    missing_names: tuple[str, ...] = ()
    window: tuple[Passage, ...] = ()
    second: tuple[Passage, ...] = ()
    vetoes: tuple[Veto, ...] = ()
    cited: bool | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Unit:
    """A content word of a claim: its place, its weight, and every stem that expresses it."""

    place: int
    start: int
    end: int
    text: str
    stem: str
    weight: float
    stems: frozenset[str]
    root: str
    is_name: bool


class _Units(tuple[_Unit, ...]):
    """The content words of a claim, in order. A set of them is encoded as the bits of an integer."""

    @cached_property
    def _shares(self) -> dict[int, float]:
        return {}

    @cached_property
    def total(self) -> float:
        """The weight of all units."""
        return sum(unit.weight for unit in self)

    def share(self, found: int) -> float:
        """Return the weighted share of the units in `found`."""
        share = self._shares.get(found)
        if share is None:
            weights = [unit.weight for bit, unit in enumerate(self) if found >> bit & 1]
            share = self._shares[found] = sum(weights) / self.total
        return share

    def where(self, is_wanted: Callable[[_Unit], bool]) -> int:
        """Return the units that meet a condition, as bits."""
        return sum(1 << bit for bit, unit in enumerate(self) if is_wanted(unit))

    def found_in(self, passage: Passage) -> int:
        """Return the units that a passage or its heading has, as bits: by meaning, or by the root of a derived word."""
        stems, roots, headed = passage.stems, passage.roots, passage.heading_stems
        bits, bit = 0, 1
        for unit in self:
            if unit.root in roots or not unit.stems.isdisjoint(stems) or (headed and not unit.stems.isdisjoint(headed)):
                bits |= bit
            bit <<= 1
        return bits


@dataclass(frozen=True, slots=True)
class _Window:
    """Consecutive passages of one source, with the claim's units found in them as the bits of `found`."""

    passages: tuple[Passage, ...]
    found: int
    share: float
    rank: float


def verify(claim: Claim, context: Context, policy: Policy) -> Verdict | None:
    """Return whether any source states the claim, as a verdict; None if it has no content word to check."""
    found = None if decides_alone(claim, policy) else assess(claim, context, policy)
    return None if found is None else decide(*found, policy)


def assess(claim: Claim, context: Context, policy: Policy) -> tuple[Alignment, Features] | None:
    """Return the alignment of a claim and its features for the learned model; None if it has nothing to check."""
    claim = spell_out(claim, context)
    alignment = align(claim, context, policy)
    if alignment is None:
        return None
    read = measure_features(
        claim,
        alignment.union,
        alignment.window,
        context,
        verbatim=alignment.verbatim is not None,
        by_rule=_rule_method(alignment) is not None,
    )
    return alignment, read


def align(claim: Claim, context: Context, policy: Policy) -> Alignment | None:
    """Align a claim with its best evidence; None if it has no content, or only numbers.

    The words of numbers and dates are left to the numeric verifier if the policy has it.
    """
    text = without_markup(claim.text)
    is_measured = "numeric" in policy.verifiers
    measured = [each for each in find_quantities(text) if is_enabled(each, policy.numeric)] if is_measured else []
    reading = read_claim(text).measured_by(measured)
    units = _units(reading, numbers=not is_measured)
    if not units or (measured and all(unit.weight < 1 for unit in units)):
        return None  # "It lasts 30 minutes" has only a number to check
    cited = [source for label in claim.cited if (source := context.resolve(label))]
    unknown = tuple(label for label in claim.cited if context.resolve(label) is None)
    lead = frozenset(word.stem for word in words(claim.lead) if word.carries_meaning) if claim.lead else frozenset()
    windows = _windows(units, lead, context, None)
    if cited:
        own = _windows(units, lead, context, {source.id for source in cited})
        windows = own if own and (not windows or own[0].share >= windows[0].share - 0.1) else windows
    if not windows:
        size = sum(unit.weight > _REFERENT_WEIGHT for unit in units)
        return Alignment(size, tuple(unit.text for unit in units), unknown=unknown)
    best, vetoes = _best_window(reading, units, windows, context)
    verbatim = _find_exact(find_verbatim, (claim.text, text), [best, *windows], context)
    if not (verbatim or vetoes) and (denial := _find_exact(find_denial, (claim.text, text), [best, *windows], context)):
        vetoes = (Veto("negation", -1, f'the source denies "{denial.text}"'),)
    further = _complements(reading, units, best, windows)
    union = best.found | _found_in_any(further)
    missing = [unit for bit, unit in enumerate(units) if not union >> bit & 1]
    core, implied_subject = units.where(lambda unit: unit.weight >= 1), _implied_subject(reading, units, best)
    return Alignment(
        coverage=units.share(best.found | implied_subject),
        frame=_frame(units, best, vetoes),
        union=units.share(union | implied_subject),
        order=_order(units, best, context),
        gap=_gap(units, union),
        predicate=_predicate(reading, units, best.found),
        content=_content(units, union),
        cause=_cause(reading, units, union),
        verbatim=verbatim,
        size=sum(unit.weight > _REFERENT_WEIGHT for unit in units),
        core_missing=(core & ~(union | implied_subject)).bit_count(),
        missing=tuple(unit.text for unit in missing),
        missing_names=_missing_names(units, union),
        window=best.passages,
        second=tuple(passage for window in further for passage in window.passages),
        vetoes=vetoes,
        cited=best.passages[0].source in cited if cited else None,
        unknown=unknown,
    )


def decide(alignment: Alignment, read: Features, policy: Policy) -> Verdict:
    """Return the verdict of an alignment: by a veto, else by the rules, unless the model is sure of the contrary."""
    model, flags = shipped(), ("unknown_citation",) if alignment.unknown else ()
    score, bar, stated = model.probability(read), model.bars[policy.name], _rule_method(alignment)
    if not alignment.window:
        nothing = "No source mentions this."
        return Verdict("statement", "unsupported", round(score, 4), "none", nothing, (), flags)
    label: Literal["supported", "contradicted", "unsupported"] = "unsupported"
    method: _Method = "none"
    if is_contradicted(alignment, policy):
        label, method, score = "contradicted", "semantic", min(score, model.contradicted)
    elif alignment.verbatim or score >= (bar.doubted if stated else bar.cleared if is_open(alignment) else math.inf):
        label, method = "supported", stated or ("inference" if alignment.second else "semantic")
    match: Match = "semantic" if method == "none" else method
    is_cited = label != "unsupported" or alignment.coverage >= _MIN_VETO_SHARE
    citations = _cite(alignment, score, match) if is_cited else ()
    reason = _reason(alignment, label, method)
    return Verdict("statement", label, round(score, 4), method, reason, citations, flags, 1, int(label == "supported"))


def is_contradicted(alignment: Alignment, policy: Policy) -> bool:
    """Return whether evidence about the same thing contradicts the claim, while no source states it word for word."""
    return bool(alignment.vetoes) and alignment.frame >= _MIN_VETO_FRAME[policy.name] and not alignment.verbatim


def is_open(alignment: Alignment) -> bool:
    """Return whether a claim that the rules do not find stated may still be supported by the model.

    It must not be short, and no name or essential part of it may be missing.
    """
    return alignment.size > _SHORT and not alignment.missing_names and not _lacks_essential_part(alignment)


_Method = Literal["exact", "semantic", "inference", "none"]


def _rule_method(alignment: Alignment) -> _Method | None:
    """Return the method by which the rules find the claim stated; None if they do not."""
    if alignment.verbatim:
        return "exact"
    if _lacks_essential_part(alignment):
        return None
    is_long = alignment.size >= _LONG
    may_lack_name = is_long and alignment.union >= _MIN_WITHOUT_NAME
    nothing_new = len(alignment.missing_names) <= may_lack_name and alignment.gap <= _MAX_GAP
    margin = 0.0 if is_long else _SHORT_MARGIN
    if alignment.coverage >= _MIN_EXACT_COVERAGE and alignment.order >= _MIN_EXACT_ORDER:
        return "semantic"
    if alignment.coverage >= _MIN_SEMANTIC + margin and nothing_new:
        return "semantic"
    if alignment.union >= _MIN_INFERENCE + margin and nothing_new:
        return "inference"
    return None


def _lacks_essential_part(alignment: Alignment) -> bool:
    """Return whether an essential part is missing: a word of a short claim, its predicate or cause, most content."""
    if alignment.size <= _SHORT and alignment.core_missing:
        return True
    if alignment.size <= _RATHER_SHORT and (alignment.predicate == 0 or alignment.cause == 0):
        return True
    return alignment.content < _MIN_CONTENT


def without_markup(text: str) -> str:
    """Return a claim's text with markup and citations replaced by spaces, at the same length."""
    return _MARKUP.sub(lambda match: " " * len(match.group()), text)


def _units(reading: Reading, *, numbers: bool) -> _Units:
    units: dict[str, _Unit] = {}
    attributed = _attributed_from(reading)
    for place, word in enumerate(reading.words):
        if not word.carries_meaning or word.stem in FRAME_WORDS or place in reading.measured:
            continue
        before = reading.words[place - 1] if place else word
        is_labelled = before.is_content and reading.text[before.end : word.start] == " " and before.stem not in CALENDAR
        is_named = place > 0 and (reading.is_name(place - 1) or is_labelled) and before.stem not in _LABEL_NOUNS
        if word.is_number and not numbers and len(word.text) < _IDENTIFYING and not is_named:
            continue  # the number of a step or a passage
        is_name = reading.is_name(place) and word.lower not in TITLES and word.stem not in CALENDAR
        is_name = is_name or (word.is_number and is_named)
        weight = _NAME_WEIGHT if is_name else _weight(word.stem)
        if reading.measured and word.stem in _MEASURED:
            weight = min(weight, _LIGHT_WEIGHT)  # the numeric verifier checks the change itself
        if place >= attributed:
            weight = _REFERENT_WEIGHT
        meaning = reading.concepts[place]
        if meaning not in units:
            stems = _expressions(reading, place)
            span = word.start, word.end
            units[meaning] = _Unit(place, *span, word.text, word.stem, weight, stems, root(word.stem), is_name)
    return _Units(units.values())


def _weight(stem: str) -> float:
    if stem in REFERENTS:
        return _REFERENT_WEIGHT
    return _LIGHT_WEIGHT if stem in LIGHT_WORDS else 1.0


def _attributed_from(reading: Reading) -> int:
    """Return the place of a trailing "according to …", which a source seldom contains; else the number of words."""
    for place in range(1, len(reading.words) - 1):
        if reading.words[place].text == "according" and reading.words[place + 1].text == "to":
            return place
    return len(reading.words)


def _expressions(reading: Reading, place: int) -> frozenset[str]:
    """Return the stems that express a word, after a negator also its opposites ("not effective", "ineffective").

    A name has no synonyms other than names: the Enterprise plan is not the Business plan.
    """
    stem = reading.words[place].stem
    if reading.is_name(place) and concept(stem) not in NAME_CONCEPTS:
        return frozenset((stem, concept(stem)))
    alike = same_meaning(stem)
    return alike | opposites(stem) if place in reading.negated else alike


def _windows(units: _Units, lead: frozenset[str], context: Context, among: Collection[str] | None) -> list[_Window]:
    """Return windows of one to three passages around the nearest ones, best first."""
    stems = {stem for unit in units if unit.weight >= 1 for stem in unit.stems} or {s for u in units for s in u.stems}
    seeds = context.nearest(stems, _MAX_SEEDS, among)
    found: dict[int, int] = {}
    ranked: dict[tuple[int, int], _Window] = {}
    for seed in seeds:
        near = context.around(seed)
        for passage in near:
            if passage.place not in found:
                found[passage.place] = units.found_in(passage)
        for window in _runs(near, seed):
            key = (window[0].place, window[-1].place)
            if key not in ranked:
                bits = 0
                for passage in window:
                    bits |= found[passage.place]
                share = units.share(bits)
                rank = share - _SPREAD_COST * (len(window) - 1)
                rank += _LEAD_SHARE * _lead_share(lead, window) if lead else 0.0
                ranked[key] = _Window(window, bits, share, rank)
    return sorted(ranked.values(), key=lambda window: (-window.rank, window.passages[0].place))


def _runs(near: Sequence[Passage], seed: Passage) -> Iterator[tuple[Passage, ...]]:
    """Yield the runs of consecutive passages of `near` that contain the seed, which do not combine rows of a table."""
    middle = seed.place - near[0].place
    low = next((at + 1 for at in reversed(range(middle)) if _are_rows(near[at], seed)), 0)
    high = next((at for at in range(middle + 1, len(near)) if _are_rows(near[at], seed)), len(near))
    for start in range(low, middle + 1):
        for end in range(middle + 1, high + 1):
            yield tuple(near[start:end])


def _are_rows(one: Passage, other: Passage) -> bool:
    """Return whether two passages are rows of one table: at least half of the column names agree, or one has none."""
    if "|" not in one.text or "|" not in other.text:
        return False
    these, those = frozenset(_FIELD.findall(one.text)), frozenset(_FIELD.findall(other.text))
    return 2 * len(these & those) >= min(len(these), len(those))


def _content(units: _Units, found: int) -> float:
    """Return the share found of the words of full weight that are no names; 1 if there are fewer than two."""
    relevant = units.where(lambda unit: unit.weight >= 1 and not unit.is_name)
    return _share_found(relevant, found) if relevant.bit_count() > 1 else 1.0


def _share_found(units: int, found: int) -> float:
    """Return the share of units, given as bits, that are found; 1 of none."""
    return (units & found).bit_count() / units.bit_count() if units else 1.0


def _cause(reading: Reading, units: _Units, found: int) -> float:
    """Return the share found of the units of full weight after "because of" or "due to" in their clause."""
    cue = _CAUSED.search(reading.text)
    if cue is None:
        return 1.0
    turn = _COORDINATES.search(reading.text, cue.end())
    end = turn.start() if turn else len(reading.text)
    return _share_found(units.where(lambda unit: cue.end() <= unit.start < end and unit.weight >= 1), found)


def _frame(units: _Units, window: _Window, vetoes: Sequence[Veto]) -> float:
    at_issue = {veto.place for veto in vetoes}
    implied = max((veto.place for veto in vetoes if veto.kind == "attribute"), default=-1)  # a record names no subject
    others = [
        (bit, unit.weight)
        for bit, unit in enumerate(units)
        if unit.place not in at_issue
        and QUANTIFIERS.get(unit.text.lower()) != "many"
        and (unit.is_name or unit.place > implied or window.found >> bit & 1)
    ]
    others = [(bit, weight) for bit, weight in others if weight >= 1] or others  # light words do not identify a subject
    if not others and implied >= 0:
        return 1.0
    total = sum(weight for _, weight in others)
    return sum(weight for bit, weight in others if window.found >> bit & 1) / total if total else 0.0


def _implied_subject(reading: Reading, units: _Units, window: _Window) -> int:
    """Return, as bits, the words for a subject that a record need not name: "the ticket" of `refundable: false`."""
    is_record = any(_RECORD.search(passage.text) for passage in window.passages)
    verb = _verb(reading) if is_record else None
    if verb is None:
        return 0
    return units.where(lambda unit: unit.place < verb and not unit.is_name)


def _verb(reading: Reading) -> int | None:
    """Return the place of the first form of "is" or "has"."""
    return next((place for place, word in enumerate(reading.words) if word.lower in _PREDICATE_VERBS), None)


def _predicate(reading: Reading, units: _Units, found: int) -> float:
    """Return the share found of the words after the first "is" or "has"; 0 if they lack an evaluation."""
    verb = _verb(reading)
    if verb is None:
        return 1.0
    predicate = units.where(lambda unit: unit.place > verb and unit.weight > _REFERENT_WEIGHT)
    if predicate & ~found & units.where(lambda unit: unit.stem in EVALUATIVE):
        return 0.0  # the evaluation is the content of such a sentence
    return _share_found(predicate, found)


def _gap(units: _Units, found: int) -> float:
    """Return the weight of the longest run of units that are not found, which suggests an invented phrase."""
    longest = run = 0.0
    for bit, unit in enumerate(units):
        run = 0.0 if found >> bit & 1 else run + unit.weight
        longest = max(longest, run)
    return longest


def _missing_names(units: _Units, found: int) -> tuple[str, ...]:
    """Return the names of which no part is found: "Smith" matches "John Smith", but "Windows" not "Windows 10"."""
    missing: list[str] = []
    for _, group in groupby(enumerate(units), key=_name_run):
        run = list(group)
        if run[0][1].is_name and not any(found >> bit & 1 for bit, _ in run):
            missing.append(" ".join(unit.text for _, unit in run))
    return tuple(missing)


def _name_run(numbered: tuple[int, _Unit]) -> tuple[bool, int, bool]:
    """Return a key that the parts of one name share; the number of a name ("Windows 10") must be found separately."""
    index, unit = numbered
    return unit.is_name, unit.place - index if unit.is_name else 0, unit.text[0].isdigit()


def _lead_share(lead: frozenset[str], window: Sequence[Passage]) -> float:
    if not lead:
        return 0.0
    return sum(any(stem in passage.stems for passage in window) for stem in lead) / len(lead)


def _best_window(
    claim: Reading, units: _Units, windows: Sequence[_Window], context: Context
) -> tuple[_Window, tuple[Veto, ...]]:
    """Return the best window with its vetoes, or one as good that has the words at issue and no veto.

    Any source can support a claim, but one that does not mention the words at issue does not outweigh a veto.
    """
    best = windows[0]
    vetoes = _vetoes(claim, units, best, context)
    wanted, taken = _at_issue(units, vetoes), {passage.place for passage in best.passages}
    for other in windows[1:] if vetoes else ():
        is_as_good = other.share >= best.share and other.found & wanted == wanted
        is_apart = taken.isdisjoint(passage.place for passage in other.passages)
        if is_as_good and is_apart and not _vetoes(claim, units, other, context):
            return other, ()
    return best, vetoes


def _at_issue(units: _Units, vetoes: Sequence[Veto]) -> int:
    """Return the units that vetoes are about, as bits."""
    places = {veto.place for veto in vetoes}
    return units.where(lambda unit: unit.place in places)


def _vetoes(claim: Reading, units: _Units, window: _Window, context: Context) -> tuple[Veto, ...]:
    """Return the vetoes of a window, or those of one of its passages if another one hides them."""
    if window.share < _MIN_VETO_SHARE:
        return ()
    vetoes = find_vetoes(claim, context.reading(window.passages))
    return vetoes or (tuple(_hidden_vetoes(claim, units, window)) if len(window.passages) > 1 else ())


def _hidden_vetoes(claim: Reading, units: _Units, window: _Window) -> Iterator[Veto]:
    """Yield the vetoes of single passages whose word at issue another passage uses of something else.

    "The company lowered its guidance. Cocoa prices remain elevated." does not support that it raised its guidance.
    """
    found = [units.found_in(passage) for passage in window.passages]
    core = units.where(lambda unit: unit.weight >= 1)
    for passage, bits in zip(window.passages, found, strict=True):
        if units.share(bits) < _MIN_VETO_SHARE:
            continue
        vetoes = find_vetoes(claim, passage.reading)
        issue = _at_issue(units, vetoes)
        having = [bits for bits in found if bits & issue]
        if having and not any(each & core & ~issue for each in having):
            yield from vetoes


def _complements(reading: Reading, units: _Units, best: _Window, windows: Sequence[_Window]) -> tuple[_Window, ...]:
    """Return the windows that complete the best one: one about the same thing, and one for each item of a list."""
    second = _second(best, windows)
    if second and best.found | second.found == (1 << len(units)) - 1:
        return (second,)
    items = _items(reading, units, best.found, windows)
    completed = best.found | _found_in_any(items)
    if second and (completed | second.found) != completed:
        items = (second, *(item for item in items if item is not second))
    return tuple(dict.fromkeys(items))


def _found_in_any(windows: Sequence[_Window]) -> int:
    found = 0
    for window in windows:
        found |= window.found
    return found


def _second(best: _Window, windows: Sequence[_Window]) -> _Window | None:
    """Return the window that adds most to the best one, among those that cover a good part of the claim themselves."""
    taken = {passage.place for passage in best.passages}
    others = (
        window
        for window in windows
        if window.share >= _MIN_SECOND_SHARE
        and not _are_rows(window.passages[0], best.passages[0])
        and window.found & ~best.found
        and taken.isdisjoint(passage.place for passage in window.passages)
    )
    return max(others, key=lambda window: (window.found & ~best.found).bit_count(), default=None)


def _items(reading: Reading, units: _Units, found: int, windows: Sequence[_Window]) -> tuple[_Window, ...]:
    """Return windows for the items of a coordination that the best one lacks, each with another word of the claim."""
    core, chosen = units.where(lambda unit: unit.weight >= 1), list[_Window]()
    for item in _coordinated(reading, units):
        if item & found == item:
            continue
        rest = core & ~item
        if window := next((each for each in windows if each.found & item == item and each.found & rest), None):
            chosen.append(window)
    return tuple(chosen)


def _coordinated(reading: Reading, units: _Units) -> Iterator[int]:
    """Yield the runs of units between commas and conjunctions, as bits: "A", "B" and "C" of "A, B and C"."""
    run = 0
    for bit, unit in enumerate(units):
        before = reading.text[units[bit - 1].end if bit else 0 : unit.start]
        if run and _COORDINATES.search(before):
            yield run
            run = 0
        run |= 1 << bit
    if run:
        yield run


def _order(units: _Units, window: _Window, context: Context) -> float:
    """Return the share of neighbouring units of the claim that are near each other in the window, in the same order."""
    if len(units) < 2:
        return float(window.found != 0)
    places = context.reading(window.passages).places
    occurrences = [[p for c in sorted(set(map(concept, unit.stems))) for p in places.get(c, ())] for unit in units]
    near = sum(
        any(0 < second - first <= _MAX_DISTANCE for first in one[:8] for second in other[:8])
        for one, other in pairwise(occurrences)
    )
    return near / (len(units) - 1)


_Find = Callable[[str, Source, Context], tuple[int, int] | None]


def _find_exact(find: _Find, texts: Sequence[str], windows: Sequence[_Window], context: Context) -> Citation | None:
    """Return a citation of the claim, with or without its markup, from the first source in which `find` finds it."""
    for source in {window.passages[0].source.id: window.passages[0].source for window in windows}.values():
        for text in dict.fromkeys(texts):
            if found := find(text, source, context):
                return cite(source, *found, 1.0, "exact")
    return None


def _cite(alignment: Alignment, score: float, match: Match) -> tuple[Citation, ...]:
    """Return citations of the best passages of an alignment, or for an exact match of the verbatim text."""
    if match == "exact" and alignment.verbatim:
        return (replace(alignment.verbatim, score=round(score, 4)),)
    second = alignment.second if match == "inference" else ()
    return tuple(passage.cite(score, match) for passage in (*alignment.window, *second)[:_MAX_CITED])


def _reason(alignment: Alignment, label: str, method: _Method) -> str:
    source, verbatim = alignment.window[0].source, alignment.verbatim
    title = verbatim.source if method == "exact" and verbatim and verbatim.source != source.id else source.name
    elsewhere = " (not in the source cited)" if alignment.cited is False else ""
    if label == "contradicted":
        veto = alignment.vetoes[0].reason
        return f"{veto[0].upper()}{veto[1:]}, in {title}{elsewhere}."
    listed = ", ".join(f'"{word}"' for word in alignment.missing[:5] if word not in _ORDINAL_ENDINGS)
    if label == "unsupported":
        if not listed:
            return f"Its words appear in the sources, but no passage has them together{elsewhere}."
        return f"Not stated in the closest passage of {title}: {listed}."
    how = {
        "exact": f"{title} states it word for word",
        "semantic": f"{title} supports it",
        "inference": "Two passages support it together",
    }[method]
    return f"{how}{elsewhere}.{f' Not stated there: {listed}.' if listed and method != 'exact' else ''}"
