"""The numeric verifier: checks each number of a claim against the numbers that the sources state for the same thing."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from groundwire.domain import Citation, Claim, FlaggedNumber, Verdict
from groundwire.evidence.index import Context, Passage
from groundwire.policy import NumericPolicy, Policy
from groundwire.text.binding import Binding, bind, search_before
from groundwire.text.quantities import Quantity, find_quantities
from groundwire.text.reading import read_claim
from groundwire.text.tolerance import Relation, compare
from groundwire.text.words import content_stems, same_meaning, words
from groundwire.verifiers.numbers.arithmetic import find_operations
from groundwire.verifiers.numbers.attribution import find_objection
from groundwire.verifiers.numbers.candidates import (
    MAX_STEPS,
    Candidate,
    DeadlineExceeded,
    ParsedPassage,
    Query,
    Work,
    WorkLimitExceeded,
    find_candidates,
    is_enumeration,
    likeliest,
    parse_passage,
    subject_of,
)
from groundwire.verifiers.numbers.derivation import CitedDerivation, apply_limit, derive_number
from groundwire.verifiers.numbers.durations import FrequencyComparison, compare_frequencies, find_frequencies
from groundwire.verifiers.quotes import decides_alone
from groundwire.verifiers.selection import quoted


@dataclass(frozen=True, slots=True)
class _Finding:
    """The result for one quantity of the claim. `label` is None if the quantity asserts nothing about a source.

    In place of a reason, `stated` is the quantity as a source states it, `missing` one that is in no source.
    """

    label: str | None
    method: str
    reason: str
    score: float
    citations: tuple[Citation, ...] = ()
    flag: str = ""
    number: FlaggedNumber | None = None
    stated: str = ""
    missing: str = ""


_NO_FINDING = _Finding(None, "", "", 0.0)


def verify(
    claim: Claim, context: Context, policy: Policy, clock: Callable[[], float] = time.thread_time
) -> Verdict | None:
    """Return the verdict on the numbers of `claim`; None if it has none of an enabled kind.

    At most `max_source_checks` passages are read and a bounded number of steps is taken, so that the verdict does not
    depend on the machine. `timeout_s` of `clock` (by default seconds of processor time) is an additional safeguard.
    """
    if decides_alone(claim, policy):
        return None
    given, context = context, context.of_sources(documents=policy.numeric.documents, facts=policy.numeric.facts)
    if context is not given and not context.sources:
        return None
    quantities = find_quantities(claim.text)
    wanted = [quantity for quantity in quantities if is_enabled(quantity, policy.numeric)]
    if not wanted and not find_frequencies(claim.text):
        return None
    limits = policy.numeric
    claimed = {each.quantity: each for each in bind(claim.text, read_claim(claim.text).words, quantities)}
    is_scaled = any(each.high >= 1000 or each.low <= -1000 for each in wanted if each.kind != "date")
    work = Work(limits.timeout_s, clock=clock)
    tolerances = dict(limits.tolerance or ())
    query = Query(claim, quantities, subject_of(claim, quantities), is_scaled, context, tolerances, work)
    findings: list[_Finding] = []
    try:
        query, passages = _passages(query, limits.max_source_checks)
        comparisons = list(compare_frequencies(query, passages))
        findings.extend(map(_frequency_finding, comparisons))
        spans = [(each.claimed.start, each.claimed.end) for each in comparisons]
        wanted = [each for each in wanted if not any(low <= each.start and each.end <= high for low, high in spans)]
        findings.extend(
            replace(
                _judge(query, claimed[quantity], passages),
                number=FlaggedNumber(quantity.shown, quantity.kind, quantity.low),
            )
            for quantity in wanted
        )
    except (WorkLimitExceeded, DeadlineExceeded) as limit:
        alarms = [finding for finding in findings if finding.label in ("contradicted", "unsupported")]
        return _combine(alarms, limits) or _limit_verdict(limit, len(wanted), limits)
    return _combine([finding for finding in findings if finding.label], limits)


def _passages(query: Query, limit: int) -> tuple[Query, list[ParsedPassage]]:
    """Return the claim and the passages to check it against, parsed for it.

    If no passage has a word of the claim, its subject is replaced by synonyms. A short context is checked completely.
    """
    context = query.context
    candidates = _candidates(query.claim, context, limit)
    if not candidates:
        query, candidates = _with_synonyms(query, limit)
    if len(context.passages) <= limit:
        places = {passage.place for passage in candidates}
        candidates += [passage for passage in context.passages if passage.place not in places]
    return query, [parse_passage(query, passage) for passage in candidates]


def _frequency_finding(compared: FrequencyComparison) -> _Finding:
    cited, written = (compared.parsed.passage.cite(0.8, "numeric"),), compared.claimed.text
    if compared.agrees:
        return _stated_finding(written, cited)
    number = FlaggedNumber(written, "frequency", compared.claimed.low)
    reason = _differing(compared.parsed.passage, compared.stated.text, written)
    return _Finding("contradicted", "mismatch", reason, 0.05, cited, "numeric_mismatch", number)


def _stated_finding(written: str, cited: tuple[Citation, ...]) -> _Finding:
    return _Finding("supported", "exact", "", 0.8, cited, stated=written)


def is_enabled(quantity: Quantity, policy: NumericPolicy) -> bool:
    """Return whether the policy enables checks of numbers of this kind."""
    return quantity.kind not in ("currency", "percentage", "ratio", "date") or bool(getattr(policy, quantity.kind))


def _candidates(claim: Claim, context: Context, limit: int) -> list[Passage]:
    """Return the passages nearest to the claim's words; up to a third of them are the nearest to its numbers alone."""
    stems = content_stems(f"{claim.lead} {claim.text}")
    by_words = context.nearest(stems, limit)
    by_numbers = context.nearest([stem for stem in stems if stem[:1].isdigit()], limit)
    found = list(by_words[: limit - min(len(by_numbers), limit // 3)])
    found += [passage for passage in by_numbers if passage not in found][: limit - len(found)]
    found += [passage for passage in by_words if passage not in found][: limit - len(found)]
    return found


def _with_synonyms(query: Query, limit: int) -> tuple[Query, list[Passage]]:
    """Replace the claim's subject by its synonyms in the sources, and return the passages that contain them."""
    synonyms = frozenset().union(*map(same_meaning, query.subject))
    found = list(query.context.nearest(synonyms, limit))
    stated = synonyms & frozenset().union(*(passage.stems for passage in found))
    return (replace(query, subject=stated) if stated else query), found


def _judge(query: Query, target: Binding, passages: Sequence[ParsedPassage]) -> _Finding:
    """Judge one quantity: stated, stated for something else, derived, contradicted or absent.

    A date of a claim with other quantities only determines their period.
    """
    quantity = target.quantity
    selects_period = quantity.kind == "date" and len(query.quantities) > 1
    candidates = list(find_candidates(target, passages))
    if matching := [each for each in candidates if each.relation.is_match]:
        if selects_period:
            return _supported_finding(target, max(matching, key=lambda each: (_shares_words(each), each.rank)))
        found = _match_finding(target, matching, candidates)
        if found.label != "supported" and (decided := apply_limit(query, target, passages)):
            return _derived_finding(quantity, decided)
        return found
    differing = [each for each in candidates if _may_contradict(each, target)]
    if _is_incidental(query, quantity) and not any(_is_about_subject(each) for each in differing):
        return _NO_FINDING
    if stated := _both_ends(query, quantity, candidates):
        return stated
    if followed := derive_number(query, target, passages):
        return _derived_finding(quantity, followed)
    found = _mismatch_finding(target, candidates, _comparable(query.claim, quantity, differing))
    if found.method != "absent":
        return found
    if _is_incidental(query, quantity):
        return _NO_FINDING
    return _absent_finding(quantity, _FOR_OTHER_THINGS) if _is_elsewhere(query, quantity) else found


def _is_elsewhere(query: Query, quantity: Quantity) -> bool:
    """Return whether any passage has the number, or has the digits of a count as a measure.

    Of a long context, only passages that write the number in the same way are read.
    """
    passages: Sequence[Passage] = query.context.passages
    if len(passages) > _MAX_ELSEWHERE:
        passages = query.context.nearest([each.stem for each in words(quantity.text) if each.is_number], _MAX_NEAREST)
    query.work.spend(sum(len(passage.quantities) for passage in passages))
    stated = (other for passage in passages for other in passage.quantities)
    is_count = quantity.kind == "count"
    return any(
        compare(quantity, each).is_match or (is_count and each.kind == "quantity" and _has_same_digits(quantity, each))
        for each in stated
    )


def _comparable(claim: Claim, quantity: Quantity, differing: Sequence[Candidate]) -> list[Candidate]:
    """Return the differing values whose passages mention a change, a share or a sum if the claim does."""
    is_level = _TO_LEVEL.search(claim.text, max(0, quantity.start - 6), quantity.start)
    operations = frozenset() if is_level else find_operations(claim.text)
    contrary = (each for each in differing if each.relation is Relation.DIFFERENT)
    return [each for each in contrary if operations <= find_operations(each.passage.text)]


def _match_finding(target: Binding, matching: Sequence[Candidate], candidates: Sequence[Candidate]) -> _Finding:
    """Return the finding on a number that a source states: supported, unless every match has an objection."""
    ranked = sorted(matching, key=lambda each: each.rank, reverse=True)
    for each in sorted(ranked, key=_shares_words, reverse=True)[:_MAX_MATCHES]:
        if find_objection(each, candidates) is None:
            return _supported_finding(target, each)
    found = ranked[0]
    objected = find_objection(found, candidates)
    differs = "for something else"
    if objected:
        differs = f"{differs}; here it states {objected.instead.value}" if objected.instead else objected.differs
    cited = [objected.instead.cite()] if objected and objected.instead else []
    cited += [] if found.cite() in cited else [found.cite()]
    shown = f": {quoted(objected.instead.passage)}" if objected and objected.instead else ""
    reason = f"The source states {target.quantity.text}, but {differs}{shown}."
    return _Finding("contradicted", "misattributed", reason, 0.1, tuple(cited), "misattributed")


def _shares_words(candidate: Candidate) -> bool:
    """Return whether a number's passage, or the words bound to it, share a word with the claim."""
    return candidate.coverage > 0 or candidate.scoped > 0


def _supported_finding(target: Binding, best: Candidate) -> _Finding:
    query, claimed = best.parsed.query, target.quantity
    if query.subject and not _shares_words(best) and not _is_distinctive(claimed):
        return _absent_finding(claimed, _FOR_OTHER_THINGS)
    if best.relation is Relation.UNSCALED:
        reason = f"The source has the digits of {claimed.text}, without a scale such as millions."
        return _Finding("supported", "exact", reason, 0.7, (best.cite(),))
    stated = claimed.text if best.relation is Relation.EXACT else best.value
    score = 0.8 + 0.2 * min(1.0, best.coverage)
    return _Finding("supported", best.relation.value, "", score, (best.cite(),), stated=stated)


def _may_contradict(candidate: Candidate, target: Binding) -> bool:
    """Return whether a different value has a comparable kind and unit, so that it may be the true one."""
    claimed, other = target.quantity, candidate.quantity
    if candidate.relation is not Relation.DIFFERENT and not _differs_without_bounds(candidate):
        return False
    is_cell = candidate.is_row
    if not candidate.is_column_named:
        return False
    if claimed.kind == "date":
        lengths = claimed.high - claimed.low, other.high - other.low
        are_days = (
            not max(lengths)
            and "month-day" in (claimed.unit, other.unit)
            and {claimed.unit, other.unit} <= {"", "month-day"}
        )
        return are_days or (claimed.unit == other.unit and max(lengths) <= 2 * min(lengths) + 1)
    if claimed.kind != other.kind:
        return is_cell and candidate.passage.quantities[candidate.place].is_bare and not claimed.nouns
    scale = candidate.parsed.scale if other.scale == 1.0 else 1.0
    if other.is_bare and not 1e-4 < abs(claimed.low / (other.low * scale or 1.0)) < 1e4:
        return False  # too different for one thing, even at a wrong scale
    if claimed.kind == "quantity" and (
        claimed.unit != other.unit
        or (claimed.unit == "time" and claimed.worth != other.worth and not _has_same_digits(claimed, other))
    ):
        return False  # "three weeks" and "41 years" rarely describe one thing, but "28 hours" and "28 days" do
    if claimed.kind == "count" and other.is_bare and is_cell:
        return claimed.is_bare or _is_counted_by(candidate, claimed.nouns)
    if claimed.kind == "count":
        return claimed.nouns[:1] == other.nouns[:1] and claimed.is_bare == other.is_bare
    return True


def _has_same_digits(claimed: Quantity, other: Quantity) -> bool:
    """Return whether two measures differ in their units alone."""
    return claimed.low * other.worth == other.low * claimed.worth


def _differs_without_bounds(candidate: Candidate) -> bool:
    """Return whether the values would exclude each other without a bound such as "up to" or "more than"."""
    claimed, other = candidate.target.quantity, candidate.quantity
    if candidate.relation is not Relation.OPEN or not (claimed.bound or other.bound):
        return False
    return compare(claimed._replace(bound=""), other._replace(bound="")) is Relation.DIFFERENT


def _is_counted_by(candidate: Candidate, nouns: Sequence[str]) -> bool:
    """Return whether the counted noun is in the name of a cell's column, or of its row if that name has no words."""
    return not nouns or not same_meaning(nouns[0]).isdisjoint(candidate.binding.own or candidate.binding.shared)


def _is_about_subject(candidate: Candidate) -> bool:
    """Return whether a passage is close enough to the claim's subject to contradict it."""
    is_close = candidate.coverage >= 0.5 and candidate.shared
    return is_close and candidate.fits_period is not False and candidate.parsed.is_named


def _mismatch_finding(target: Binding, candidates: Sequence[Candidate], differing: Sequence[Candidate]) -> _Finding:
    quantity = target.quantity
    about = [each for each in differing if _is_about_subject(each)]
    near = [each for each in candidates if each.relation is Relation.OPEN and each.coverage >= 0.4]
    of_period = [each for each in about if each.quantity.per == quantity.per > 0]
    about = of_period or about
    if about and (of_period or not near):
        best = likeliest(about)
        reason = _differing(best.passage, best.value, quantity.shown)
        return _Finding("contradicted", "mismatch", reason, 0.05, (best.cite(),), "numeric_mismatch")
    if near:
        best = likeliest(near)
        if best.value == quantity.shown:
            return _absent_finding(quantity, _FOR_OTHER_THINGS)
        reason = f"{best.passage.source.name} says {best.value}, which neither states nor excludes {quantity.shown}."
        return _Finding("unsupported", "mismatch", reason, 0.3, (best.cite(),), "numeric_mismatch")
    return _absent_finding(quantity)


def _differing(passage: Passage, stated: str, claimed: str) -> str:
    """Return the reason for a number that differs from the one that a passage states."""
    return f"{passage.source.name} says {stated}, the answer says {claimed}: {quoted(passage)}."


def _absent_finding(quantity: Quantity, why: str = "") -> _Finding:
    """Return the finding on a number that is in no source or, if `why` is given, not in one about the claim."""
    named = _TRAILING.sub("", quantity.text)  # not the last word of "half the"
    reason = f"{_capitalised(named)} {why}." if why else ""
    return _Finding("unsupported", "absent", reason, 0.2, (), "numeric_mismatch", missing="" if why else named)


def _is_incidental(query: Query, quantity: Quantity) -> bool:
    """Return whether a small count, or a span in words ("over the three years"), may only describe the subject."""
    is_span = quantity.kind == "quantity" and quantity.unit == "time" and quantity.low >= 86400.0
    is_known = search_before(_KNOWN_SPAN, query.claim.text, quantity.start) is not None
    return is_enumeration(quantity) or (is_span and is_known and not any(map(str.isdigit, quantity.text)))


def _both_ends(query: Query, claimed: Quantity, candidates: Sequence[Candidate]) -> _Finding | None:
    """Return a finding on a range whose ends are stated separately."""
    if claimed.low == claimed.high or claimed.kind == "date":
        return None
    found, tolerance = [], query.tolerances.get(claimed.kind)
    for end in (claimed._replace(high=claimed.low), claimed._replace(low=claimed.high)):
        at = [each for each in candidates if compare(end, each.quantity, tolerance).is_match]
        if not at:
            return None
        found.append(likeliest(at).cite())
    return _stated_finding(claimed.text, tuple(dict.fromkeys(found)))


def _derived_finding(quantity: Quantity, found: CitedDerivation) -> _Finding:
    cited = tuple(passage.cite(0.8, "numeric") for passage in found.passages)
    reason = f"{_capitalised(quantity.text)} follows from the source: {found.formula}."
    return _Finding("supported", "derived", reason, 0.8, cited)


def _is_distinctive(quantity: Quantity) -> bool:
    """Return whether a number has so many digits that a match is hardly chance: three, or two in a decimal measure."""
    digits = sum(map(str.isdigit, quantity.text))
    return digits >= 3 or (digits == 2 and quantity.kind == "quantity" and "." in quantity.text)


def _limit_verdict(limit: Exception, extracted: int, policy: NumericPolicy) -> Verdict:
    if isinstance(limit, WorkLimitExceeded):
        method, reason = "work_limit", f"Checking its numbers takes more than {MAX_STEPS:,} steps."
    else:
        method, reason = "timeout", f"The numbers were not checked within {policy.timeout_s:g} s."
    return Verdict("numeric", "not_checked", 0.0, method, reason, extracted=extracted)


def _combine(findings: Sequence[_Finding], policy: NumericPolicy) -> Verdict | None:
    """Combine findings into one verdict: the label of the worst, with all reasons and citations of that label.

    Its method is `derived` if any number of a supported claim was calculated.
    """
    if not findings:
        return None
    order = ("contradicted", "unsupported", "supported")
    worst = min(
        findings,
        key=lambda each: (order.index(each.label or "supported"), each.method != "derived", each.score),
    )
    alike = [finding for finding in findings if finding.label == worst.label]
    citations = tuple(dict.fromkeys(citation for finding in alike for citation in finding.citations))
    flags = tuple(dict.fromkeys(finding.flag for finding in findings if finding.flag and policy.auto_flag))
    return Verdict(
        "numeric",
        worst.label,  # type: ignore[arg-type]
        round(min(finding.score for finding in alike), 4),
        worst.method,
        _reason(alike),
        citations,
        flags,
        extracted=len(findings),
        validated=sum(finding.label == "supported" for finding in findings),
        numbers=tuple(finding.number for finding in findings if finding.number and finding.label != "supported"),
    )


def _reason(findings: Sequence[_Finding]) -> str:
    """Return a sentence for all numbers that are stated, one for all that are in no source, one for each other."""
    reasons = [each.reason for each in findings]
    stated = list(dict.fromkeys(each.stated for each in findings if each.stated))
    missing = list(dict.fromkeys(each.missing for each in findings if each.missing))
    if stated:
        reasons.insert(0, f"The source states {_listed(stated)}.")
    if missing:
        reasons.append(f"{_capitalised(_listed(missing))} {'is' if len(missing) == 1 else 'are'} in no source.")
    return " ".join(dict.fromkeys(filter(None, reasons)))


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _listed(names: Sequence[str]) -> str:
    """Return the names as an enumeration in words."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


_FOR_OTHER_THINGS = "is in the sources only for something else"
_MAX_ELSEWHERE, _MAX_NEAREST = 100, 20  # passages that are searched for a number that none about the claim has
_MAX_MATCHES = 12  # matches that are weighed against the other stated values
_TRAILING = re.compile(r" (?:of|the)?$")
_KNOWN_SPAN = re.compile(r"\b(?:over|across) (?:the|these|those|both) (?:last |past )?$", re.IGNORECASE)
_TO_LEVEL = re.compile(r"\bto [$€£]?$")
