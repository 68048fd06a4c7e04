"""Summarise all judgements on an answer in one report, with the confidence in each verdict and in the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import get_args

from groundwire.domain import (
    AnswerVerdict,
    Choice,
    Claim,
    ConfidenceLevel,
    ConfidenceParts,
    Flag,
    Judgement,
    Status,
    Verdict,
)
from groundwire.evidence.index import Context
from groundwire.policy import NumericPolicy, Policy, Thresholds
from groundwire.report import (
    CacheUse,
    ChoiceReport,
    Confidence,
    Consistency,
    Coverage,
    NumericCounts,
    PromptSize,
    QuoteCounts,
    Report,
    StageUse,
    Violation,
)
from groundwire.scoring.budget import is_flagged
from groundwire.scoring.rating import assess_risk, is_high_risk, missed, quality, recommend
from groundwire.verifiers.quotes import is_field_quote

FLAGS: tuple[Flag, ...] = get_args(Flag)
"""Every flag that a report can have, in the order in which it lists them."""

_CUT_SHORT = ("timeout", "overload", "error", "too_long", "work_limit", "context_limit", "rate_limited", "unavailable")


@dataclass(frozen=True, slots=True)
class Reading:
    """One choice split into claims, with the share of its text that was read (0–1) and its shape violations.

    `unread` is the number of claims beyond the limit; `truncated` is set if there are any. `quotes` and `violations`
    are None if no shape was requested.
    """

    choice: Choice
    claims: tuple[Claim, ...]
    share: float = 1.0
    truncated: bool = False
    quotes: QuoteCounts | None = None
    violations: tuple[Violation, ...] | None = None
    warnings: tuple[str, ...] = ()
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Examined:
    """One choice with a judgement for each of its claims."""

    reading: Reading
    judgements: tuple[Judgement, ...]


def summarise(
    id_: str,
    examined: Sequence[Examined],
    context: Context,
    policy: Policy,
    *,
    temperature: float | None = None,
    consistency: Consistency | None = None,
    prompt: PromptSize | None = None,
    cut_short: bool = False,
    warnings: Sequence[str] = (),
    cache: CacheUse = CacheUse(),
    stages: Sequence[StageUse] = (),
    timing_ms: Sequence[tuple[str, float]] = (),
    config: str = "",
) -> Report:
    """Build the rated report on an answer. `cut_short` is set if the answer broke off.

    `prompt` has the numbers of prompt tokens, if known.
    """
    examined = _with_confidence(examined, context, policy, temperature, consistency)
    judgements = [judgement for each in examined for judgement in each.judgements]
    readings = [each.reading for each in examined]
    certainty = certainty_of([each.choice for each in readings], temperature)
    is_truncated = any(reading.truncated or reading.choice.unread for reading in readings)
    report = Report(
        id=id_,
        status=_status(judgements, context, cut_short or is_truncated),
        verdict=answer_verdict(judgements),
        score=score(judgements),
        warnings=(
            *warnings,
            *_unread(prompt),
            *_beyond_cap(readings, policy),
            *(warning for reading in readings for warning in reading.warnings),
        ),
        coverage=_coverage(judgements, readings, context),
        confidence=of_answer(judgements, context, policy, certainty, consistency.score if consistency else None),
        sources=context.sources,
        prompt=prompt,
        choices=tuple(
            ChoiceReport(
                each.reading.choice.index, answer_verdict(each.judgements), score(each.judgements), each.judgements
            )
            for each in examined
        ),
        consistency=consistency,
        quotes=_quotes(examined),
        violations=_joined([reading.violations for reading in readings]),
        numeric=_numeric(examined, policy),
        cache=cache,
        stages=tuple(stages),
        timing_ms=tuple(timing_ms),
        degraded=_degraded(judgements),
        config=config,
    )
    return rate(replace(report, flags=_flags(report, readings, policy)), policy.thresholds)


def rate(report: Report, thresholds: Thresholds) -> Report:
    """Return the report with its risk, quality and recommendation, and a warning for each threshold that it misses.

    A report that is rated again has its earlier threshold warnings replaced.
    """
    rated = replace(report, risk=assess_risk(report), quality=quality(report))
    earlier = missed(report, thresholds)
    warnings = [warning for warning in report.warnings if warning not in earlier]
    raised = {*report.flags, "high_risk"} if is_high_risk(rated, thresholds) else {*report.flags} - {"high_risk"}
    flags = tuple(flag for flag in FLAGS if flag in raised)
    rated = replace(rated, flags=flags, warnings=(*warnings, *missed(rated, thresholds)))
    advice = recommend(rated)
    return replace(
        rated,
        confidence=rated.confidence and replace(rated.confidence, recommendation=advice),
        risk=rated.risk and replace(rated.risk, recommendation=advice),
    )


def _with_confidence(
    examined: Sequence[Examined],
    context: Context,
    policy: Policy,
    temperature: float | None,
    consistency: Consistency | None,
) -> list[Examined]:
    """Return the choices with the confidence in each verdict."""
    agreement = {(choice, claim): value for choice, claim, value in consistency.agreement} if consistency else {}
    found: list[Examined] = []
    for each in examined:
        choice = each.reading.choice
        certainty = certainty_of([choice], temperature)
        judgements = (
            with_confidence(one, context, policy, certainty, agreement.get((choice.index, one.claim.id)))
            for one in each.judgements
        )
        found.append(replace(each, judgements=tuple(judgements)))
    return found


def lacks_bits(judgement: Judgement, policy: Policy) -> bool:
    """Return whether a claim that is not supported lacks more bits than the policy permits."""
    if judgement.budget is None or judgement.verdict.label == "supported":
        return False
    return is_flagged(judgement.budget, policy.model.flag_threshold_bits)


def score(judgements: Iterable[Judgement]) -> float | None:
    """Return the share (0–1) of supported claims among the checked ones, or None if none was checked."""
    labels = [judgement.verdict.label for judgement in judgements if judgement.verdict.label != "not_checked"]
    return labels.count("supported") / len(labels) if labels else None


def answer_verdict(judgements: Sequence[Judgement]) -> AnswerVerdict:
    """Return the verdict on an answer from the labels of its claims."""
    supported = score(judgements)
    if supported is None:
        checkable = any(not judgement.is_skipped for judgement in judgements)
        return "not_checked" if checkable else "not_applicable"
    return "grounded" if supported == 1 else "ungrounded" if supported == 0 else "partially_grounded"


def _status(judgements: Sequence[Judgement], context: Context, is_cut: bool) -> Status:
    checkable = [judgement for judgement in judgements if not judgement.is_skipped]
    if is_cut:
        return "partial"
    if not context.passages or (checkable and all(j.verdict.method == "overload" for j in checkable)):
        return "skipped"
    return "partial" if any(j.verdict.method in _CUT_SHORT for j in checkable if _unchecked(j)) else "complete"


def _unchecked(judgement: Judgement) -> bool:
    return judgement.verdict.label == "not_checked"


def _coverage(judgements: Sequence[Judgement], readings: Sequence[Reading], context: Context) -> Coverage:
    checked = sum(not _unchecked(judgement) for judgement in judgements)
    lengths = [(len(each.choice.text) + sum(map(len, each.choice.arguments)), each) for each in readings]
    total = sum(length + each.choice.unread for length, each in lengths)
    answer = sum(length * each.share for length, each in lengths) / total if total else 1.0
    claims = len(judgements) + sum(reading.unread for reading in readings)
    return Coverage(claims, checked, claims - checked, answer, context.examined)


def _flags(report: Report, readings: Sequence[Reading], policy: Policy) -> tuple[str, ...]:
    judgements = [judgement for choice in report.choices for judgement in choice.judgements]
    quotes, confidence, consistency = report.quotes, report.confidence, report.consistency
    raised = {flag for judgement in judgements for verdict in judgement.verdicts for flag in verdict.flags}
    labels = {judgement.verdict.label for judgement in judgements}
    conditions = {
        "unsupported_claims": "unsupported" in labels,
        "contradicted_claims": "contradicted" in labels,
        "quotes_all_rejected": bool(quotes and quotes.extracted and not quotes.validated),
        "evidence_schema_violation": bool(report.violations),
        "budget_gap": any(lacks_bits(judgement, policy) for judgement in judgements),
        "low_confidence": bool(confidence and confidence.score < policy.thresholds.confidence),
        "inconsistent_with_history": bool(consistency and consistency.contradictions),
        "context_truncated": bool(report.prompt and report.prompt.is_truncated),
        "answer_truncated": any(
            reading.truncated or reading.choice.unread or reading.choice.finish_reason == "length"
            for reading in readings
        ),
        "verifier_degraded": bool(report.degraded),
    }
    raised |= {flag for flag, holds in conditions.items() if holds}
    return tuple(flag for flag in FLAGS if flag in raised)


def _unread(prompt: PromptSize | None) -> tuple[str, ...]:
    """Return a warning if the model did not read the whole prompt."""
    if prompt is None or not prompt.is_truncated:
        return ()
    return (
        f"The model server read {prompt.reported} tokens of a prompt of at least {prompt.at_least}: the model has not "
        "seen all of the context that its answer was checked against.",
    )


def _beyond_cap(readings: Sequence[Reading], policy: Policy) -> tuple[str, ...]:
    """Return a warning if an answer has more claims than the policy's `max_claims`."""
    unread = sum(reading.unread for reading in readings)
    if not unread:
        return ()
    return (f"{unread} claims were not read: more than max_claims ({policy.max_claims}) in one answer.",)


def _quotes(examined: Sequence[Examined]) -> QuoteCounts | None:
    """Return the counts of quotations in evidence fields, by field, and in prose; None if there are none."""
    counted = [each.reading.quotes for each in examined if each.reading.quotes]
    prose = [j for each in examined for j in each.judgements if not is_field_quote(j.claim)]
    found = (verdict for judgement in prose for verdict in judgement.verdicts if verdict.verifier == "quote")
    quoted = [verdict for verdict in found if verdict.label != "not_checked"]
    if not counted and not quoted:
        return None
    extracted = sum(v.extracted for v in quoted) + sum(c.extracted for c in counted)
    validated = sum(v.validated for v in quoted) + sum(c.validated for c in counted)
    by_field = tuple(pair for counts in counted for pair in counts.rejected_by_field)
    return QuoteCounts(extracted, validated, extracted - validated, by_field)


def _numeric(examined: Sequence[Examined], policy: Policy) -> NumericCounts | None:
    found = [
        (each.reading.choice.index, judgement.claim.id, verdict)
        for each in examined
        for judgement in each.judgements
        for verdict in judgement.verdicts
        if verdict.verifier == "numeric"
    ]
    return count_numbers(found, policy.numeric) if found else None


def count_numbers(found: Sequence[tuple[int, str, Verdict]], policy: NumericPolicy) -> NumericCounts:
    """Return the counts of numbers, given the numeric verdicts with their choices and claim ids."""
    checked = [verdict for *_, verdict in found if verdict.label != "not_checked"]
    total = sum(verdict.extracted for *_, verdict in found)
    verified = sum(verdict.validated for verdict in checked)
    unverified = sum(verdict.extracted for verdict in checked) - verified
    penalty = -policy.confidence_penalty if unverified else 0.0
    flagged = tuple((choice, claim, number) for choice, claim, verdict in found for number in verdict.numbers)
    return NumericCounts(total, verified, unverified, penalty, total - verified - unverified, flagged)


def _degraded(judgements: Sequence[Judgement]) -> tuple[tuple[str, str], ...]:
    """Return each verifier that failed or was cut short, and "judge" if its model gave no answer, with the cause."""
    every = [verdict for judgement in judgements for verdict in (*judgement.verdicts, judgement.verdict)]
    cut = [(verdict.verifier or "all", verdict.method) for verdict in every if verdict.method in _CUT_SHORT]
    unheard = [("judge", verdict.degraded) for verdict in every if verdict.degraded]
    return tuple(dict.fromkeys(cut + unheard))


def _joined(found: Sequence[tuple[Violation, ...] | None]) -> tuple[Violation, ...] | None:
    given = [violations for violations in found if violations is not None]
    return tuple(violation for violations in given for violation in violations) if given else None


def answer_support(judgements: Iterable[Judgement]) -> float | None:
    """Return the support (0–1) of the weakest checked claim, or None if no claim was checked.

    The minimum is used because one invented claim spoils an answer. The claims of one answer tend to fail together, so
    the product of their probabilities would be too low for long answers.
    """
    checked = (judgement for judgement in judgements if judgement.verdict.label != "not_checked")
    return min(map(support, checked), default=None)


def support(judgement: Judgement) -> float:
    """Return the lowest score (0–1) of the verifiers that checked the claim; if none did, the score of its verdict."""
    return min(
        (verdict.score for verdict in judgement.verdicts if verdict.label != "not_checked"),
        default=judgement.verdict.score,
    )


UNHEARD = 0.8
"""The factor on the confidence in a verdict if a model was queried and gave no answer."""

_PARTS = tuple(field.name for field in fields(ConfidenceParts))
_CONFIDENCE_LEVELS: tuple[tuple[float, ConfidenceLevel], ...] = (
    (0.9, "very_high"),
    (0.75, "high"),
    (0.6, "medium"),
    (0.4, "low"),
    (0.0, "very_low"),
)


def with_confidence(
    judgement: Judgement,
    context: Context,
    policy: Policy,
    extraction: float | None = None,
    consistency: float | None = None,
) -> Judgement:
    """Return a judgement with the confidence in its verdict, from the parts that are known.

    `extraction` (0–1) is the certainty of the answering model, `consistency` (0–1) the agreement of the claim with
    earlier answers. The confidence in an unchecked claim is 0, or None if the policy computes none.
    """
    verdict = judgement.verdict
    if verdict.label == "not_checked" or not policy.has_confidence:
        return replace(judgement, confidence=0.0 if policy.has_confidence else None, parts=None)
    certainty = verdict.score if verdict.label == "supported" else 1.0 - verdict.score
    source = source_weight(verdict, context, policy) if verdict.citations else None
    parts = ConfidenceParts(certainty, source, extraction, consistency)
    is_unheard = judgement.budget is not None and judgement.budget.missing is not None
    confidence = _combined(parts, policy) * (UNHEARD if is_unheard else 1.0)
    if judgement.confidence == confidence and judgement.parts == parts:
        return judgement
    return replace(judgement, confidence=confidence, parts=parts)


def of_answer(
    judgements: Sequence[Judgement],
    context: Context,
    policy: Policy,
    extraction: float | None = None,
    consistency: float | None = None,
) -> Confidence | None:
    """Return the confidence in an answer from the parts that are known, None if nothing was checked.

    `extraction` (0–1) is the certainty of the answering model, `consistency` (0–1) the agreement of the answer with
    earlier ones on its subject. The recommendation is left empty.
    """
    checked = [judgement.verdict for judgement in judgements if judgement.verdict.label != "not_checked"]
    if not checked or not policy.has_confidence:
        return None
    parts = ConfidenceParts(
        _mean([verdict.score for verdict in checked]),
        _mean([source_weight(verdict, context, policy) for verdict in checked]),
        extraction,
        consistency,
    )
    value = _combined(parts, policy)
    level = next(level for least, level in _CONFIDENCE_LEVELS if value >= least)
    return Confidence(value, level, "", parts.retrieval, parts.source, extraction, consistency)


def source_weight(verdict: Verdict, context: Context, policy: Policy) -> float:
    """Return the weight of the most reliable source that a verdict cites, 1 if it cites none."""
    if not verdict.citations:
        return 1.0
    weights, kinds = dict(policy.source_weights), context.kinds
    return max(weights.get(kinds.get(citation.source, ""), 1.0) for citation in verdict.citations)


def certainty_of(choices: Sequence[Choice], temperature: float | None) -> float | None:
    """Return the answering model's certainty: its mean token probability, else 1 − temperature/2, else None."""
    certainties = [choice.certainty for choice in choices if choice.certainty is not None]
    if certainties:
        return _mean(certainties)
    return None if temperature is None else max(0.0, 1.0 - temperature / 2)


def _combined(parts: ConfidenceParts, policy: Policy) -> float:
    """Return the weighted mean of the known parts, or the retrieval part if all weights are zero."""
    weights = dict(policy.confidence_weights)
    known = [(weights.get(name, 0.0), value) for name in _PARTS if (value := getattr(parts, name)) is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * part for weight, part in known) / total if total else parts.retrieval or 0.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
