"""Measure the information budget: whether the cited evidence changes the belief in a claim.

The evidence is removed from the context for p0: cited spans are replaced by a marker, the structure around them
remains. The embedded verifier estimates p1 and p0 by its label: the probability is the calibrated score, limited to the
label's side of the target, and even odds if no source mentions the claim, because the verifier has no knowledge of the
world. A missing answer of a model never overrules an earlier decision: an undecided budget leaves the verdict
unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from groundwire.claims.answer import find_claims
from groundwire.domain import (
    Budget,
    Cause,
    Citation,
    Claim,
    Estimate,
    Judgement,
    Label,
    Method,
    Probability,
    Source,
    Unavailable,
    Verdict,
)
from groundwire.evidence.index import Context
from groundwire.evidence.passages import cut
from groundwire.features.probe import exactly
from groundwire.judge import GRAVITY, UNANSWERED, Judge, skipped
from groundwire.policy import ModelPolicy, Policy
from groundwire.scoring.aggregate import UNHEARD, support, with_confidence
from groundwire.scoring.budget import LABELS, TARGETS, measure, target_of, towards, unasked
from groundwire.scoring.budget import TARGET as HIGHEST_TARGET
from groundwire.text.folding import Folded, fold
from groundwire.text.words import words

MARKER = "[EVIDENCE REMOVED]"

_REPEATED_CHARS, _REPEATED_WORDS = 20, 4  # minimum size of a copy; shorter repetitions may be chance

_GAP = re.compile(r"[ \t]*")
_CELL = re.compile(r"[^\n\r|\t]+")
_LEAD = re.compile(r"\s*(?:(?:[-*+•>]|#{1,6}|\d{1,3}[.)])\s+)*")

_Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The sources for the ablation of one citation: `without` it, and with it `alone`, all others removed."""

    without: tuple[Source, ...]
    alone: tuple[Source, ...]


def scrub(
    sources: Sequence[Source], citations: Sequence[Citation], protected: Sequence[Citation] = ()
) -> tuple[Source, ...]:
    """Return the sources with every cited span replaced by `MARKER`, and everything else unchanged.

    Spans that overlap or touch get one marker; separate lines and table cells get one each. Copies elsewhere of at
    least four cited words, as folded for quotations, are replaced as well, because they are the same evidence. Spans of
    `protected` are never replaced. A citation of an unknown source changes nothing.
    """
    spans = [_cited(source, citations) for source in sources]
    evidence = [piece for source, own in zip(sources, spans, strict=True) for piece in _pieces(source, own)]
    return tuple(
        _without(source, [*own, *_repetitions(fold(source.text), evidence)], _cited(source, protected))
        for source, own in zip(sources, spans, strict=True)
    )


def scrub_all(sources: Sequence[Source]) -> tuple[Source, ...]:
    """Return the sources with only their structure: the context of p0 for a claim that cites nothing."""
    return tuple(_without(source, [(0, len(source.text))], ()) for source in sources)


def leave_one_out(sources: Sequence[Source], citations: Sequence[Citation]) -> tuple[LeftOut, ...]:
    """Return the sources without each citation, and with it alone, in the order of the citations."""
    apart = [(each, [other for other in citations if other != each]) for each in citations]
    return tuple(
        LeftOut(scrub(sources, [each], protected=others), scrub(sources, others, protected=[each]))
        for each, others in apart
    )


def _matches(citation: Citation, source: Source) -> bool:
    start, end = citation.start - source.offset, citation.end - source.offset
    return 0 <= start < end <= len(source.text) and source.text[start:end] == citation.text


def _cited(source: Source, citations: Iterable[Citation]) -> list[_Span]:
    """Return the cited spans of a source, relative to its text."""
    return [
        (each.start - source.offset, each.end - source.offset)
        for each in citations
        if each.source == source.id and _matches(each, source)
    ]


def _pieces(source: Source, spans: Iterable[_Span]) -> Iterator[str]:
    """Yield the sentences of cited spans, folded, that are long enough to be recognised elsewhere."""
    for text in (source.text[start:end] for start, end in spans):
        for piece in cut(text):
            folded = fold(text[piece.start : piece.end]).text.strip(" .,;:|")
            if len(folded) >= _REPEATED_CHARS and len(words(folded)) >= _REPEATED_WORDS:
                yield folded


def _repetitions(text: Folded, evidence: Iterable[str]) -> Iterator[_Span]:
    """Yield the spans at which a text contains a piece of evidence in whole words and numbers."""
    for piece in dict.fromkeys(evidence):
        for found in re.finditer(rf"(?<!\w)(?<!\d[.,]){re.escape(piece)}(?!\w)(?![.,]\d)", text.text):
            yield text.origin(*found.span())


def _without(source: Source, spans: Iterable[_Span], protected: Iterable[_Span]) -> Source:
    parts, position = [], 0
    for start, end in _less(_merged(source.text, spans), sorted(protected)):
        parts += [source.text[position:start], _CELL.sub(_marked, source.text[start:end])]
        position = end
    return replace(source, text="".join([*parts, source.text[position:]])) if parts else source


def _marked(cell: re.Match[str]) -> str:
    """Return a line or cell with the marker for its words, and with its indent, bullet and trailing space."""
    text = cell.group()
    lead = _LEAD.match(text)
    start, end = lead.end() if lead else 0, len(text.rstrip())
    return f"{text[:start]}{MARKER}{text[end:]}" if any(map(str.isalnum, text[start:end])) else text


def _merged(text: str, spans: Iterable[_Span]) -> list[_Span]:
    """Return the spans in order, merged if they overlap or have only spaces and tabs between them."""
    merged: list[_Span] = []
    for start, end in sorted(spans):
        if merged and (start <= merged[-1][1] or _GAP.fullmatch(text, merged[-1][1], start)):
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _less(spans: Iterable[_Span], protected: Sequence[_Span]) -> Iterator[_Span]:
    """Yield the parts of the spans that lie in no protected span."""
    for start, end in spans:
        position = start
        for protected_start, protected_end in protected:
            if protected_start < end and protected_end > position:
                if protected_start > position:
                    yield position, protected_start
                position = max(position, protected_end)
        if position < end:
            yield position, end


VERIFIER = "model"
_CONTRADICTED = 0.5

_REASONS: Mapping[Cause, str] = {
    "timeout": "No model answered in time.",
    "rate_limited": "The model server limited the rate of requests.",
    "overload": "No model was asked because the proxy is overloaded.",
    "unreachable": "No model could be reached.",
    "error": "Asking a model failed.",
}
_UNCLEAR = "The model answered neither yes nor no."


def is_undecided(judgement: Judgement, policy: ModelPolicy) -> bool:
    """Return whether no exact check decides a claim, and its probability of support is in the policy's band."""
    if judgement.verdict.label not in ("supported", "unsupported"):
        return False
    lexical = next((each for each in judgement.verdicts if each.verifier == "statement"), None)
    if lexical is None or lexical.method == "exact" or lexical.label not in ("supported", "unsupported"):
        return False
    others = (each.label for each in judgement.verdicts if each is not lexical)
    return (
        all(label == "supported" for label in others)
        and policy.probability_min <= lexical.score < policy.probability_max
    )


def cited_evidence(claim: Claim, context: Context) -> tuple[tuple[Citation, ...], tuple[str, ...]]:
    """Return the sources that a claim cites, each as one citation of its whole text, and the labels of no source."""
    named = {label: context.resolve(label) for label in claim.cited}
    sources = {source.id: source for source in named.values() if source}
    cited = tuple(
        Citation(each.id, each.offset, each.offset + len(each.text), each.text, 1.0, "exact")
        for each in sources.values()
    )
    return cited, tuple(label for label, source in named.items() if source is None)


def unknown_citations(claim: Claim, sources: Sequence[Source]) -> tuple[str, ...]:
    """Return the labels that a claim cites and that name none of the sources."""
    return cited_evidence(claim, Context(sources))[1]


def joined(judgement: Judgement, budget: Budget, context: Context, policy: Policy) -> Judgement:
    """Add a measured budget to a judgement; a decided budget replaces its verdict.

    A budget of the embedded verifier changes no label, because its verdict is known already. None overrules a
    contradiction by numbers, names or negations of a source: text in a source may persuade a model, but not these
    checks. If there was no answer in time, the confidence in the verdict is reduced.
    """
    measured = replace(judgement, budget=budget)
    if policy.model.backend == "local" and budget.missing is None:
        return measured
    verdict = _verdict(judgement.verdict, budget)
    measured = replace(measured, verdicts=(*judgement.verdicts, verdict))
    if budget.missing is not None:
        return replace(measured, confidence=judgement.confidence and judgement.confidence * UNHEARD)
    if judgement.verdict.label == "contradicted":
        return replace(measured, budget=judgement.budget or budget)
    if verdict.label == "not_checked":
        return measured
    return with_confidence(replace(measured, verdict=verdict), context, policy)


def label_of(budget: Budget) -> Label:
    """Return the label of a budget.

    A claim whose whole interval of p1 is below the target is unsupported, even if its status is undecided. Disbelief
    may also mean that the context does not mention the claim. It is a contradiction only if a service or the embedded
    verifier reports it, or if a model firmly believes the claim without the evidence.
    """
    if budget.status == "contradicted" and budget.p1 is not None and not _is_opposed(budget, budget.p1):
        return "unsupported"
    is_disbelieved = budget.p1 is not None and budget.p1.upper < budget.target
    return "unsupported" if budget.status == "ambiguous" and is_disbelieved else LABELS[budget.status]


def _is_opposed(budget: Budget, p1: Probability) -> bool:
    """Return whether evidence contradicts a claim with this status, rather than not mentioning it."""
    if p1.method == "service":
        return (p1.contradiction or 0.0) > _CONTRADICTED
    return p1.method == "verifier" or (budget.p0 is not None and budget.p0.lower >= budget.target)


def _verdict(before: Verdict, budget: Budget) -> Verdict:
    label = label_of(budget)
    if budget.missing is not None:
        cause = budget.missing.cause
        return Verdict(VERIFIER, label, 0.0, UNANSWERED.get(cause, "no_verdict"), _REASONS.get(cause, _UNCLEAR))
    score = budget.p1.value if budget.p1 and label != "not_checked" else 0.0
    citations = tuple(replace(each, match="model") for each in before.citations) if label != "not_checked" else ()
    is_supported = int(label == "supported")
    return Verdict(VERIFIER, label, round(score, 4), budget.status, _reason(budget), citations, (), 1, is_supported)


def _reason(budget: Budget) -> str:
    if budget.p1 is None:
        return budget.reason
    without = f" and {budget.p0.value:.0%} without" if budget.p0 else ""
    return f"{budget.reason} A model gives it {budget.p1.value:.0%} with the evidence{without}."


TARGET = TARGETS["verifier"]
_EVEN = 0.5


def assertion(text: str, id_: str = "c1", lead: str = "") -> Claim:
    """Read a text as one claim, with its `lead`; `skip_reason` is set if it asserts nothing.

    It may contain several statements; `judge_assertion` requires all of them.
    """
    parts = find_claims(text, Policy(verify_hedged=True)).claims
    is_idle = all(part.skip_reason for part in parts)
    reason = (parts[0].skip_reason if parts else "no_content") if is_idle else None
    cited = tuple(dict.fromkeys(label for part in parts for label in part.cited))
    confidence = min((part.stated_confidence for part in parts), default=1.0)
    kind = parts[0].kind if len(parts) == 1 else "statement"
    return Claim(id_, text, 0, len(text), kind, lead, cited, confidence, reason)


def judge_assertion(claim: Claim, context: Context, policy: Policy, judge: Judge = Judge()) -> Judgement:
    """Return one judgement on all statements of a claim: the most serious label, with all evidence for that label."""
    if not claim.is_judged:
        return skipped(claim)
    whole = replace(policy, verify_hedged=True)
    parts = [part for part in find_claims(claim.text, whole).claims if part.is_judged]
    if len(parts) < 2:
        return judge.one(claim, context, policy)
    parts = [replace(part, lead=part.lead or claim.lead) for part in parts]
    judged = [judge.one(part, context, policy) for part in parts]
    judged = [each for each in judged if not each.is_skipped] or judged
    gravest = max(judged, key=lambda each: (GRAVITY[each.verdict.label], -support(each)))
    agreeing = [each for each in judged if each.verdict.label == gravest.verdict.label]
    cited = tuple(dict.fromkeys(citation for each in agreeing for citation in each.verdict.citations))
    return replace(gravest, claim=claim, verdict=replace(gravest.verdict, citations=cited))


def targets_of(stated: float | None) -> Callable[[Method], float]:
    """Return the belief that evidence must reach for a claim, by method: the stated confidence, limited to its range.

    The embedded verifier reaches it if a source states the claim word for word.
    """

    def target(method: Method) -> float:
        if stated is None:
            return TARGETS[method]
        return min(max(stated, TARGET), HIGHEST_TARGET) if method == "verifier" else target_of(stated, method)

    return target


def prove(
    claim: Claim,
    sources: Sequence[Source],
    policy: Policy,
    judge: Judge = Judge(),
    target: float = TARGET,
) -> Judgement:
    """Judge a claim against the sources and measure its budget: p1 with the sources, p0 with only their structure."""
    context, scrubbed = Context(sources), Context(scrub_all(sources))
    return with_budget(judge_assertion(claim, context, policy, judge), context, scrubbed, policy, judge, target)


def with_budget(
    judgement: Judgement,
    context: Context,
    scrubbed: Context,
    policy: Policy,
    judge: Judge = Judge(),
    target: float = TARGET,
) -> Judgement:
    """Add the budget to a judgement against a context, with p0 from the scrubbed context.

    The bits refer to the `target`; the status follows the label.
    """
    claim = judgement.claim
    if claim.skip_reason is None:
        unknown = cited_evidence(claim, context)[1]
        if nothing := unasked(has_context=bool(context.passages), unknown=unknown):
            return replace(judgement, budget=nothing)
    prior = judge_assertion(claim, scrubbed, policy, judge)
    # a scrubbed context states nothing that could contradict a claim
    p0 = exactly(_EVEN) if prior.verdict.label == "contradicted" else believed(prior)
    budget = towards(measure(believed(judgement), p0, target=TARGET), target)
    return replace(judgement, budget=replace(budget, reason=judgement.verdict.reason))


def believed(judgement: Judgement) -> Estimate:
    """Return the probability of a claim (0–1), on its label's side of the target; even odds if no source mentions it.

    A score alone is no probability: it is as low for claims that no source mentions as for contradicted ones.
    """
    score = support(judgement)
    match judgement.verdict.label:
        case "supported":
            return exactly(max(score, TARGET))
        case "contradicted":
            return exactly(min(score, 1.0 - TARGET))
        case "unsupported":
            return exactly(_EVEN)
    return Unavailable("no_verdict")
