"""Statements: aligns a claim with the passages nearest to it, and decides from that alignment.

`align` computes features and judges nothing; `decide` turns them into a verdict. Both are pure, and neither looks at
anything but the claim and the windows it is compared with, so text that is beside the point changes no verdict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import groupby, pairwise
from typing import Literal

from proxy.types import Citation, Claim, Match, Policy, Source, Verdict
from proxy.verification.alignment.features import Features, features
from proxy.verification.alignment.initialisms import spell_out
from proxy.verification.alignment.model import shipped
from proxy.verification.alignment.vetoes import Veto, find_vetoes
from proxy.verification.context.index import Context, Passage
from proxy.verification.context.index import cite as cite_span
from proxy.verification.numbers.grammar import find_quantities
from proxy.verification.text.lexicon import (
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
)
from proxy.verification.text.reading import Reading, read_claim
from proxy.verification.verifiers.numeric import is_enabled
from proxy.verification.verifiers.quote import decides_alone
from proxy.verification.verifiers.verbatim import find_denial, find_verbatim
from proxy.verification.words import stem, words

_MARKUP = re.compile(r"[*_`#|>]+|\[[^\[\]\n]{1,40}\](?!\()|【[^【】\n]{1,40}】|\]\([^()\s]{1,500}\)")

_COORDINATES = re.compile(r"[,;]|\b(?:and|or|while|whereas|but)\b")
_CAUSED = re.compile(r"\b(?:because of|due to|owing to|thanks to|as a result of|caused by|blamed on)\b", re.IGNORECASE)
_PARTS = FRAME_WORDS | REFERENTS | frozenset("step tabl figur chapter part option item sect clip".split())
_FIELD = re.compile(r"(?:^|\| )([^|:\n]{1,60}):")
_RECORD = re.compile(r"\w: [^|\n]*\|")
_IDENTIFYING = 4  # characters

_SEEDS = 12
_NAME_WEIGHT, _LIGHT_WEIGHT, _REFERENT_WEIGHT = 2.0, 0.35, 0.1
_SPREAD_COST = 0.015  # per further passage: of two windows that say as much, the narrower one is the evidence
_NEAR = 6  # words between two neighbours of the claim that still count as standing in order
_SIDE_SHARE = 0.5  # of the claim, that a second window must have by itself before it may complete the first
_LEAD_SHARE = 0.05
_VETO_SHARE = 0.35  # below it a window speaks of something else, and vetoes mean nothing
_CITED = 3


_SEMANTIC, _INFERENCE = 0.45, 0.5  # coverage of a long claim by one window, or by several, that states it
_GAP = 5.0  # the heaviest gap that is passed over
_VETOED_FROM = {"strict": 0.7, "balanced": 0.75, "lenient": 0.85}
"""The coverage, by policy, from which a window speaks of the same thing as the claim, so that a veto holds."""
_SHORT, _RATHER_SHORT, _LONG = 3, 5, 6  # content words
_SHORTER = 0.1  # what a claim that is not long must have more of, because each word says more of it
_SPARED = 0.8  # in a long claim with so much found, one name may be written otherwise
_CHANGES = same_meaning(stem("rise")) | same_meaning(stem("fall"))
_ORDINAL_ENDINGS = ("st", "nd", "rd", "th")
_MEASURED = _CHANGES | same_meaning(stem("cost"))
_SAYING_OF = LINKING | {"has", "have", "had"}
_LEAST_CONTENT = 0.15  # names alone do not make an assertion
_EXACT_COVERAGE, _EXACT_ORDER = 0.97, 0.9


@dataclass(frozen=True, slots=True)
class Alignment:
    """How a claim stands to its best evidence; every share is 0–1 and weighs names above other words.

    `coverage` is the share of the claim's content in `window` (consecutive passages of one source; the subject of a
    record goes without saying), `frame` the share in it without the words that a veto is about, `union` the share in
    that and in further windows about the same thing or with items of a list (`second`, may be empty). `order` is the
    share of neighbouring content words that stand near each other in the window, `gap` the weight of the longest run of
    content words that stand in no window, `predicate` the share, each word counting alike, of what stands behind the
    claim's first "is" or "has" (1 when it has none). `content` is the share of what is no name, `cause` that of what
    the claim gives as a cause, wherever they are found (each 1 when the claim has none). `size` counts the content
    words, `missing` are those that stand in no window at all, `core_missing` how many of them have full weight. `lead`
    is the share of the lead's content. `cited` is whether the window lies in a cited source (None: none is cited),
    `unknown` are labels that resolve to no source.
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
    lead: float = 0.0
    cited: bool | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Unit:
    """One content word of a claim: where it stands, its weight, and every stem that would do for it."""

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
    """The content words of a claim, in order. Those that are found in a text are bits of an integer."""

    @cached_property
    def _shares(self) -> dict[int, float]:
        return {}

    @cached_property
    def total(self) -> float:
        """The weight of all of them."""
        return sum(unit.weight for unit in self)

    def share(self, found: int) -> float:
        """The weighted share of the units in `found`."""
        share = self._shares.get(found)
        if share is None:
            weights = [unit.weight for bit, unit in enumerate(self) if found >> bit & 1]
            share = self._shares[found] = sum(weights) / self.total
        return share

    def found_in(self, passage: Passage) -> int:
        """Which units a passage or its heading has: by meaning, or by the root of a derived word."""
        stems, roots, headed = passage.stems, passage.roots, passage.heading_stems
        bits, bit = 0, 1
        for unit in self:
            if unit.root in roots or not unit.stems.isdisjoint(stems) or (headed and not unit.stems.isdisjoint(headed)):
                bits |= bit
            bit <<= 1
        return bits


@dataclass(frozen=True, slots=True)
class _Window:
    """Consecutive passages of one source with the claim's units found in them, as bits of `found`."""

    passages: tuple[Passage, ...]
    found: int
    share: float
    rank: float


def verify(claim: Claim, context: Context, policy: Policy) -> Verdict | None:
    """Whether any source states the claim; None when the claim has no content word that a source could state."""
    found = None if decides_alone(claim, policy) else assess(claim, context, policy)
    return None if found is None else decide(*found, policy)


def assess(claim: Claim, context: Context, policy: Policy) -> tuple[Alignment, Features] | None:
    """The claim beside its best evidence, and what the learned model reads of the two; None as for `verify`."""
    claim = spell_out(claim, context)
    alignment = align(claim, context, policy)
    if alignment is None:
        return None
    read = features(
        claim,
        alignment.union,
        alignment.window,
        context,
        verbatim=alignment.verbatim is not None,
        by_rule=_stated(alignment) is not None,
    )
    return alignment, read


def align(claim: Claim, context: Context, policy: Policy) -> Alignment | None:
    """The claim beside its best evidence; None when it has no content of its own, or none but numbers.

    The words of numbers and dates are left to the numeric verifier when the policy has it.
    """
    text = without_markup(claim.text)
    is_measured = "numeric" in policy.verifiers
    measured = [each for each in find_quantities(text) if is_enabled(each, policy.numeric)] if is_measured else []
    reading = read_claim(text).measured_by(measured)
    units = _units(reading, numbers=not is_measured)
    if not units or (measured and all(unit.weight < 1 for unit in units)):
        return None  # "It lasts 30 minutes" says nothing but its number
    cited, unknown = _cited_sources(claim, context)
    lead = frozenset(word.stem for word in words(claim.lead) if word.carries_meaning) if claim.lead else frozenset()
    windows = _windows(units, lead, context, None)
    if cited:
        own = _windows(units, lead, context, {source.id for source in cited})
        windows = own if own and (not windows or own[0].share >= windows[0].share - 0.1) else windows
    if not windows:
        size = sum(unit.weight > _REFERENT_WEIGHT for unit in units)
        return Alignment(size, tuple(unit.text for unit in units), unknown=unknown)
    best, vetoes = _least_vetoed(reading, units, windows, context)
    verbatim = _exactly(find_verbatim, (claim.text, text), [best, *windows], context)
    if not (verbatim or vetoes) and (denial := _exactly(find_denial, (claim.text, text), [best, *windows], context)):
        vetoes = (Veto("negation", -1, f'the source denies "{denial.text}"'),)
    further = _further(reading, units, best, windows)
    union = best.found | _all_found(further)
    missing = [unit for bit, unit in enumerate(units) if not union >> bit & 1]
    unsaid = _unsaid(reading, units, best)
    return Alignment(
        coverage=units.share(best.found | unsaid),
        frame=_frame(units, best, vetoes),
        union=units.share(union | unsaid),
        order=_order(units, best, context),
        gap=_gap(units, union),
        predicate=_predicate(reading, units, best.found),
        content=_content(units, union),
        cause=_cause(reading, units, union),
        verbatim=verbatim,
        size=sum(unit.weight > _REFERENT_WEIGHT for unit in units),
        core_missing=_core_missing(units, union | unsaid),
        missing=tuple(unit.text for unit in missing),
        missing_names=_missing_names(units, union),
        window=best.passages,
        second=tuple(passage for window in further for passage in window.passages),
        vetoes=vetoes,
        lead=_lead_share(lead, best.passages),
        cited=best.passages[0].source in cited if cited else None,
        unknown=unknown,
    )


def decide(alignment: Alignment, read: Features, policy: Policy) -> Verdict:
    """The verdict that an alignment amounts to: by a veto, else by the rules, unless the model is sure otherwise."""
    model = shipped()
    flags = ("unknown_citation",) if alignment.unknown else ()
    score, bar, stated = model.probability(read), model.bars[policy.name], _stated(alignment)
    if not alignment.window:
        nothing = "No source says anything of the kind."
        return Verdict("statement", "unsupported", round(score, 4), "none", nothing, (), flags)
    label: Literal["supported", "contradicted", "unsupported"] = "unsupported"
    method: _Method = "none"
    if is_contradicted(alignment, policy):
        label, method, score = "contradicted", "semantic", min(score, model.contradicted)
    elif alignment.verbatim or score >= (bar.doubted if stated else bar.cleared if is_open(alignment) else math.inf):
        label, method = "supported", stated or ("inference" if alignment.second else "semantic")
    match: Match = "semantic" if method == "none" else method
    citations = cite(alignment, score, match) if label != "unsupported" or alignment.coverage >= _VETO_SHARE else ()
    reason = _reason(alignment, label, method)
    return Verdict("statement", label, round(score, 4), method, reason, citations, flags, 1, int(label == "supported"))


def is_contradicted(alignment: Alignment, policy: Policy) -> bool:
    """Whether evidence about the same thing says otherwise while no source says the very words."""
    return bool(alignment.vetoes) and alignment.frame >= _VETOED_FROM[policy.name] and not alignment.verbatim


def is_open(alignment: Alignment) -> bool:
    """Whether a claim that the rules do not find stated may still be: nothing that makes the claim is missing."""
    return alignment.size > _SHORT and not alignment.missing_names and not _lacks_its_point(alignment)


_Method = Literal["exact", "semantic", "inference", "none"]


def _stated(alignment: Alignment) -> _Method | None:
    """How the evidence states the claim by the rules; None when it does not."""
    if alignment.verbatim:
        return "exact"
    if _lacks_its_point(alignment):
        return None
    is_long = alignment.size >= _LONG
    nothing_new = len(alignment.missing_names) <= (is_long and alignment.union >= _SPARED) and alignment.gap <= _GAP
    asked = 0.0 if is_long else _SHORTER
    if alignment.coverage >= _EXACT_COVERAGE and alignment.order >= _EXACT_ORDER:
        return "semantic"
    if alignment.coverage >= _SEMANTIC + asked and nothing_new:
        return "semantic"
    if alignment.union >= _INFERENCE + asked and nothing_new:
        return "inference"
    return None


def _lacks_its_point(alignment: Alignment) -> bool:
    """Whether what makes it this claim is missing: a word of a short one, what is said of its subject, its cause."""
    if alignment.size <= _SHORT and alignment.core_missing:
        return True
    if alignment.size <= _RATHER_SHORT and (alignment.predicate == 0 or alignment.cause == 0):
        return True
    return alignment.content < _LEAST_CONTENT


def without_markup(text: str) -> str:
    """A claim's text with its markup and citations blanked out to the same length."""
    return _MARKUP.sub(lambda match: " " * len(match.group()), text)


def _units(reading: Reading, *, numbers: bool) -> _Units:
    units: dict[str, _Unit] = {}
    attributed = _attributed_from(reading)
    for place, word in enumerate(reading.words):
        if not word.carries_meaning or word.stem in FRAME_WORDS or place in reading.measured:
            continue
        before = reading.words[place - 1] if place else word
        is_labelled = before.is_content and reading.text[before.end : word.start] == " " and before.stem not in CALENDAR
        is_named = place > 0 and (reading.is_name(place - 1) or is_labelled) and before.stem not in _PARTS
        if word.is_number and not numbers and len(word.text) < _IDENTIFYING and not is_named:
            continue  # the number of a step or a passage
        is_name = reading.is_name(place) and word.lower not in TITLES and word.stem not in CALENDAR
        is_name = is_name or (word.is_number and is_named)
        weight = _NAME_WEIGHT if is_name else _weight(word.stem)
        if reading.measured and word.stem in _MEASURED:
            weight = min(weight, _LIGHT_WEIGHT)  # the numbers tell it, or another verifier asks them
        if place >= attributed:
            weight = _REFERENT_WEIGHT
        meaning = reading.concepts[place]
        if meaning not in units:
            stems = _acceptable(reading, place)
            span = word.start, word.end
            units[meaning] = _Unit(place, *span, word.text, word.stem, weight, stems, root(word.stem), is_name)
    return _Units(units.values())


def _weight(stem: str) -> float:
    if stem in REFERENTS:
        return _REFERENT_WEIGHT
    return _LIGHT_WEIGHT if stem in LIGHT_WORDS else 1.0


def _attributed_from(reading: Reading) -> int:
    """Where a trailing "according to …" begins: a source seldom says of itself who speaks."""
    for place in range(1, len(reading.words) - 1):
        if reading.words[place].text == "according" and reading.words[place + 1].text == "to":
            return place
    return len(reading.words)


def _acceptable(reading: Reading, place: int) -> frozenset[str]:
    """The stems that state a word; behind a negator its opposites do too ("not effective", "ineffective").

    A name has no synonyms but those of names: the Enterprise plan is not the Business plan.
    """
    stem = reading.words[place].stem
    if reading.is_name(place) and concept(stem) not in NAME_CONCEPTS:
        return frozenset((stem, concept(stem)))
    alike = same_meaning(stem)
    return alike | opposites(stem) if place in reading.negated else alike


def _cited_sources(claim: Claim, context: Context) -> tuple[list[Source], tuple[str, ...]]:
    resolved = [(label, context.resolve(label)) for label in claim.cited]
    sources = [source for _, source in resolved if source is not None]
    return sources, tuple(label for label, source in resolved if source is None)


def _windows(units: _Units, lead: frozenset[str], context: Context, among: Collection[str] | None) -> list[_Window]:
    """Windows of one to three passages around the nearest ones, best first."""
    stems = {stem for unit in units if unit.weight >= 1 for stem in unit.stems} or {s for u in units for s in u.stems}
    seeds = context.nearest(stems, _SEEDS, among)
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
    """The runs of consecutive passages of `near` that hold the seed; the rows of a table speak of different things."""
    middle = seed.place - near[0].place
    low = next((at + 1 for at in reversed(range(middle)) if _are_rows(near[at], seed)), 0)
    high = next((at for at in range(middle + 1, len(near)) if _are_rows(near[at], seed)), len(near))
    for start in range(low, middle + 1):
        for end in range(middle + 1, high + 1):
            yield tuple(near[start:end])


def _are_rows(one: Passage, other: Passage) -> bool:
    """Whether two passages are rows of one table: most of their columns have the same names, or none has a name."""
    if "|" not in one.text or "|" not in other.text:
        return False
    these, those = frozenset(_FIELD.findall(one.text)), frozenset(_FIELD.findall(other.text))
    return 2 * len(these & those) >= min(len(these), len(those))


def _content(units: _Units, found: int) -> float:
    """The share of the words of full weight that are no names; one alone may well be a verb like any other."""
    said = [bit for bit, unit in enumerate(units) if unit.weight >= 1 and not unit.is_name]
    return sum(found >> bit & 1 for bit in said) / len(said) if len(said) > 1 else 1.0


def _cause(reading: Reading, units: _Units, found: int) -> float:
    """The share of the units of full weight behind "because of" or "due to" in their clause."""
    cue = _CAUSED.search(reading.text)
    if cue is None:
        return 1.0
    turn = _COORDINATES.search(reading.text, cue.end())
    end = turn.start() if turn else len(reading.text)
    said = [bit for bit, unit in enumerate(units) if cue.end() <= unit.start < end and unit.weight >= 1]
    return sum(found >> bit & 1 for bit in said) / len(said) if said else 1.0


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
    others = [(bit, weight) for bit, weight in others if weight >= 1] or others  # light words tell no subject
    if not others and implied >= 0:
        return 1.0
    total = sum(weight for _, weight in others)
    return sum(weight for bit, weight in others if window.found >> bit & 1) / total if total else 0.0


def _unsaid(reading: Reading, units: _Units, window: _Window) -> int:
    """The words for a subject that a record need not name, as bits: "the ticket" of `refundable: false`."""
    is_record = any(_RECORD.search(passage.text) for passage in window.passages)
    verb = _verb(reading) if is_record else None
    if verb is None:
        return 0
    return sum(1 << bit for bit, unit in enumerate(units) if unit.place < verb and not unit.is_name)


def _core_missing(units: _Units, found: int) -> int:
    """How many of the words of full weight are not found."""
    return sum(unit.weight >= 1 for bit, unit in enumerate(units) if not found >> bit & 1)


def _verb(reading: Reading) -> int | None:
    """The place of the first "is" or "has"."""
    return next((place for place, word in enumerate(reading.words) if word.lower in _SAYING_OF), None)


def _predicate(reading: Reading, units: _Units, found: int) -> float:
    """The share of the words behind the first "is" or "has" that are found: what is said of the subject."""
    verb = _verb(reading)
    if verb is None:
        return 1.0
    said = [bit for bit, unit in enumerate(units) if unit.place > verb and unit.weight > _REFERENT_WEIGHT]
    if any(units[bit].stem in EVALUATIVE and not found >> bit & 1 for bit in said):
        return 0.0  # an evaluation is all that such a sentence says
    return sum(found >> bit & 1 for bit in said) / len(said) if said else 1.0


def _gap(units: _Units, found: int) -> float:
    """The weight of the longest run of units that are not found: an invented phrase rather than a word exchanged."""
    longest = run = 0.0
    for bit, unit in enumerate(units):
        run = 0.0 if found >> bit & 1 else run + unit.weight
        longest = max(longest, run)
    return longest


def _missing_names(units: _Units, found: int) -> tuple[str, ...]:
    """The names of which no part is found: "Smith" stands for "John Smith", and "Windows" not for "Windows 10"."""
    missing: list[str] = []
    for _, group in groupby(enumerate(units), key=_name_run):
        run = list(group)
        if run[0][1].is_name and not any(found >> bit & 1 for bit, _ in run):
            missing.append(" ".join(unit.text for _, unit in run))
    return tuple(missing)


def _name_run(numbered: tuple[int, _Unit]) -> tuple[bool, int, bool]:
    """What the parts of one name have in common; the number of a name ("Windows 10") must be found for itself."""
    index, unit = numbered
    return unit.is_name, unit.place - index if unit.is_name else 0, unit.text[0].isdigit()


def _lead_share(lead: frozenset[str], window: Sequence[Passage]) -> float:
    if not lead:
        return 0.0
    return sum(any(stem in passage.stems for passage in window) for stem in lead) / len(lead)


def _least_vetoed(
    claim: Reading, units: _Units, windows: Sequence[_Window], context: Context
) -> tuple[_Window, tuple[Veto, ...]]:
    """The best window, or one as good that has the words at issue and that nothing speaks against.

    Any one source can support a claim, but one that is silent about what another denies does not.
    """
    best = windows[0]
    vetoes = _vetoes(claim, units, best, context)
    at_issue = {veto.place for veto in vetoes}
    wanted = sum(1 << bit for bit, unit in enumerate(units) if unit.place in at_issue)
    for other in windows[1:] if vetoes else ():
        if other.share < best.share or other.found & wanted != wanted or not _is_apart(best, other):
            continue
        if not _vetoes(claim, units, other, context):
            return other, ()
    return best, vetoes


def _is_apart(one: _Window, other: _Window) -> bool:
    return {each.place for each in one.passages}.isdisjoint(each.place for each in other.passages)


def _vetoes(claim: Reading, units: _Units, window: _Window, context: Context) -> tuple[Veto, ...]:
    """Return what speaks against the claim in a window, or in one of its passages if it is hidden by another."""
    if window.share < _VETO_SHARE:
        return ()
    vetoes = find_vetoes(claim, context.reading(window.passages))
    return vetoes or (tuple(_hidden_vetoes(claim, units, window)) if len(window.passages) > 1 else ())


def _hidden_vetoes(claim: Reading, units: _Units, window: _Window) -> Iterator[Veto]:
    """Yield the vetoes of single passages whose word at issue stands elsewhere in the window, but of something else.

    "The company lowered its guidance. Cocoa prices remain elevated." does not say that it raised its guidance.
    """
    found = [units.found_in(passage) for passage in window.passages]
    telling = sum(1 << bit for bit, unit in enumerate(units) if unit.weight >= 1)
    for passage, bits in zip(window.passages, found, strict=True):
        if units.share(bits) < _VETO_SHARE:
            continue
        vetoes = find_vetoes(claim, passage.reading)
        places = {veto.place for veto in vetoes}
        issue = sum(1 << bit for bit, unit in enumerate(units) if unit.place in places)
        having = [bits for bits in found if bits & issue]
        if having and not any(each & telling & ~issue for each in having):
            yield from vetoes


def _further(reading: Reading, units: _Units, best: _Window, windows: Sequence[_Window]) -> tuple[_Window, ...]:
    """The windows that complete the best one: one about the same thing, or one for each item of a list."""
    second = _second(best, windows)
    if second and best.found | second.found == (1 << len(units)) - 1:
        return (second,)
    items = _items(reading, units, best.found, windows)
    completed = best.found | _all_found(items)
    if second and (completed | second.found) != completed:
        items = (second, *(item for item in items if item is not second))
    return tuple(dict.fromkeys(items))


def _all_found(windows: Sequence[_Window]) -> int:
    found = 0
    for window in windows:
        found |= window.found
    return found


def _second(best: _Window, windows: Sequence[_Window]) -> _Window | None:
    """The window that adds most to the best one, among those that have a good part of the claim themselves."""
    taken = {passage.place for passage in best.passages}
    others = (
        window
        for window in windows
        if window.share >= _SIDE_SHARE
        and not _are_rows(window.passages[0], best.passages[0])
        and window.found & ~best.found
        and taken.isdisjoint(passage.place for passage in window.passages)
    )
    return max(others, key=lambda window: (window.found & ~best.found).bit_count(), default=None)


def _items(reading: Reading, units: _Units, found: int, windows: Sequence[_Window]) -> tuple[_Window, ...]:
    """Windows for the items of a coordination that the best one lacks: each whole, and beside a word of the rest."""
    chosen: list[_Window] = []
    for item in _coordinated(reading, units):
        if item & found == item:
            continue
        rest = sum(1 << bit for bit, unit in enumerate(units) if unit.weight >= 1 and not item >> bit & 1)
        if window := next((each for each in windows if each.found & item == item and each.found & rest), None):
            chosen.append(window)
    return tuple(chosen)


def _coordinated(reading: Reading, units: _Units) -> Iterator[int]:
    """The runs of units between commas and conjunctions, as bits: "A", "B" and "C" of "A, B and C"."""
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
    """The share of neighbouring units of the claim that stand in the same order and near each other in the window."""
    if len(units) < 2:
        return float(window.found != 0)
    places = context.reading(window.passages).places
    standing = [[p for c in _concepts(unit.stems) if c in places for p in places[c]] for unit in units]
    kept = sum(
        any(0 < second - first <= _NEAR for first in one[:8] for second in other[:8])
        for one, other in pairwise(standing)
    )
    return kept / (len(units) - 1)


def _concepts(stems: frozenset[str]) -> tuple[str, ...]:
    return _few_concepts(stems) if sum(map(len, stems)) <= 512 else _few_concepts.__wrapped__(stems)


@lru_cache(maxsize=4096)
def _few_concepts(stems: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(set(map(concept, stems))))


_Find = Callable[[str, Source, Context], tuple[int, int] | None]


def _exactly(find: _Find, texts: Sequence[str], windows: Sequence[_Window], context: Context) -> Citation | None:
    """Return where one of the windows' sources has the claim, with its markup or without, as `find` looks for it."""
    for source in {window.passages[0].source.id: window.passages[0].source for window in windows}.values():
        for text in dict.fromkeys(texts):
            if found := find(text, source, context):
                return cite_span(source, *found, 1.0, "exact")
    return None


def cite(alignment: Alignment, score: float, match: Match) -> tuple[Citation, ...]:
    """The evidence of an alignment, its best passages first, or the very words."""
    if match == "exact" and alignment.verbatim:
        return (replace(alignment.verbatim, score=round(score, 4)),)
    second = alignment.second if match in ("inference", "model") else ()
    return tuple(passage.cite(score, match) for passage in (*alignment.window, *second)[:_CITED])


def _reason(alignment: Alignment, label: str, method: _Method) -> str:
    source = alignment.window[0].source
    title = source.name
    if method == "exact" and alignment.verbatim and alignment.verbatim.source != source.id:
        title = alignment.verbatim.source
    elsewhere = " (not in the source cited)" if alignment.cited is False else ""
    if label == "contradicted":
        veto = alignment.vetoes[0].reason
        return f"{veto[0].upper()}{veto[1:]}, in {title}{elsewhere}."
    listed = ", ".join(f'"{word}"' for word in alignment.missing[:5] if word not in _ORDINAL_ENDINGS)
    if label == "unsupported":
        if not listed:
            return f"Its words stand in the sources, but no passage has them together{elsewhere}."
        return f"Not found near what the sources say of it: {listed}."
    how = {
        "exact": f"{title} says so in these words",
        "semantic": f"{title} says so in other words",
        "inference": "Two passages together say so",
    }[method]
    return f"{how}{elsewhere}{f'; not found: {listed}' if listed and method != 'exact' else ''}."
