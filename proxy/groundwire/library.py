"""The checks of the proxy as functions on text.

Sources are a text, a `Source`, a mapping with the members of a source in a request (`text`, `id`, `title`, `url`,
`metadata`), or several of these. Nothing here uses the network unless an `Estimator` is given; the
functions that accept one have async twins, and also work in a REPL with a running event loop. `judge` decides the
claims that no exact check does: by default with the shipped entailment model, which is loaded at the first call;
`Judge()` compares words and needs no model.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import time
import warnings
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from groundwire.backends.budgets import Estimator, TargetOf, measured
from groundwire.claims.answer import find_claims as _find_claims
from groundwire.domain import (
    Budget,
    BudgetStatus,
    Choice,
    Citation,
    Claim,
    Exchange,
    FlaggedNumber,
    Judgement,
    Label,
    Source,
    Verdict,
)
from groundwire.errors import EvidenceSchemaError
from groundwire.evidence.index import Context
from groundwire.evidence.messages import gather
from groundwire.evidence.messages import question as asked
from groundwire.features import trace
from groundwire.features.information_budget import assertion, joined, prove, scrub_all, targets_of, with_budget
from groundwire.features.trace import Audit, AuditedStep
from groundwire.judge import Judge
from groundwire.pipeline import Ask, verify
from groundwire.policy import NumericPolicy, Policy, QuotePolicy
from groundwire.report import NumericCounts, Report, render_claim, to_json
from groundwire.scoring.aggregate import count_numbers
from groundwire.scoring.budget import TARGETS
from groundwire.verifiers.numbers import numeric
from groundwire.verifiers.quotes import QuoteResult, quoted_texts
from groundwire.verifiers.quotes import check_quotes as _check_quotes
from groundwire.verifiers.schema import read_evidence

P = ParamSpec("P")
T = TypeVar("T")

Sources = str | Source | Mapping[str, Any] | Iterable[str | Source | Mapping[str, Any]]


def _renamed(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Accept old keyword arguments (`old="new"`) until version 0.3, with a DeprecationWarning.

    The function raises TypeError, as for any argument given twice, when both names are used.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        def translated(given: dict[str, Any]) -> Any:
            for old, new in names.items():
                if old in given:
                    name = f"{function.__name__}()"
                    if new in given:
                        raise TypeError(f"{name} got '{new}' twice: '{old}' is its old name")
                    message = f"{name}: the argument '{old}' is now called '{new}'; the old name will be removed in 0.3"
                    warnings.warn(message, DeprecationWarning, stacklevel=3)
                    given[new] = given.pop(old)
            return given

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def later(*args: P.args, **kwargs: P.kwargs) -> Any:
                return await function(*args, **translated(kwargs))

            return later  # type: ignore[return-value]

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return function(*args, **translated(kwargs))

        return call

    return decorate


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The verdict on one claim, with information in bits; unknown probabilities and bits are None.

    `p1` is the probability (0–1) of the claim with the evidence and `p0` without it; `budget_gap` is `required_bits`
    less `observed_bits`, positive exactly when p1 is below `target`.
    """

    claim: str
    label: Label
    status: BudgetStatus
    p0: float | None
    p1: float | None
    required_bits: float | None
    observed_bits: float | None
    budget_gap: float | None
    target: float
    reason: str
    citations: tuple[Citation, ...] = ()
    judgement: Judgement = field(kw_only=True, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the claim in the wire format, as it is in a report."""
        return render_claim(self.judgement)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the claim in the wire format, as JSON text."""
        return to_json(self.to_dict(), indent)


@_renamed(evidence="sources")
def verify_claim(
    claim: str,
    sources: Sources,
    confidence: float | None = None,
    *,
    policy: Policy = Policy(),
    estimator: Estimator | None = None,
    judge: Judge | None = None,
) -> ClaimResult:
    """Verify one claim against sources and measure its information budget.

    `confidence` (0–1) is the probability that the evidence has to reach. An `estimator` is consulted in addition to the
    embedded verifier. Raises ValueError when the confidence is out of range.
    """
    if estimator is not None:
        return _run(verify_claim_async(claim, sources, confidence, policy=policy, estimator=estimator, judge=judge))
    target = _target(confidence)("verifier")
    return _result(prove(assertion(claim), _context(sources).sources, policy, _loaded(judge), target))


@_renamed(evidence="sources")
async def verify_claim_async(
    claim: str,
    sources: Sources,
    confidence: float | None = None,
    *,
    policy: Policy = Policy(),
    estimator: Estimator | None = None,
    judge: Judge | None = None,
) -> ClaimResult:
    """The async twin of `verify_claim`."""
    given = _context(sources).sources
    return _result(await _proved(assertion(claim), given, policy, estimator, _target(confidence), judge))


@_renamed(context="sources")
def audit_trace(
    steps: Iterable[str],
    sources: Sources = (),
    answer: str | None = None,
    question: str = "",
    *,
    policy: Policy = Policy(),
    estimator: Estimator | None = None,
    judge: Judge | None = None,
) -> Audit:
    """Audit each step of a reasoning, given the sources and the entailed steps before it; and check whether the answer
    follows from the steps alone.
    """
    if estimator is not None:
        return _run(
            audit_trace_async(steps, sources, answer, question, policy=policy, estimator=estimator, judge=judge)
        )
    claims = trace.steps_of(list(steps))
    audited = trace.audit_by_words(claims, _context(sources).sources, policy, _loaded(judge))
    if answer is None:
        return Audit(audited)
    return Audit(audited, trace.derive_by_words(answer, question, claims, policy, _loaded(judge)))


@_renamed(context="sources")
async def audit_trace_async(
    steps: Iterable[str],
    sources: Sources = (),
    answer: str | None = None,
    question: str = "",
    *,
    policy: Policy = Policy(),
    estimator: Estimator | None = None,
    judge: Judge | None = None,
) -> Audit:
    """The async twin of `audit_trace`."""
    claims, given = trace.steps_of(list(steps)), _context(sources).sources
    found: list[AuditedStep] = []
    for step in claims:
        premises = trace.premises(given, found)
        found.append(trace.audited(await _proved(step, premises, policy, estimator, TARGETS.__getitem__, judge)))
    if answer is None:
        return Audit(tuple(found))
    post_hoc = await asyncio.to_thread(trace.derive_by_words, answer, question, claims, policy, _loaded(judge))
    return Audit(tuple(found), post_hoc)


@_renamed(text="answer", context="sources")
async def verify_claims_async(
    answer: str,
    sources: Sources = (),
    *,
    messages: Sequence[Mapping[str, Any]] = (),
    policy: Policy = Policy(),
    question: str = "",
    evidence_fields: Sequence[str] = (),
    json_schema: Mapping[str, Any] | None = None,
    judge: Judge | None = None,
) -> Report:
    """The async twin of `verify_claims`, run in a thread."""
    return await asyncio.to_thread(
        verify_claims,
        answer,
        sources,
        messages=messages,
        policy=policy,
        question=question,
        evidence_fields=evidence_fields,
        json_schema=json_schema,
        judge=judge,
    )


@_renamed(text="answer", context="sources")
def verify_claims(
    answer: str,
    sources: Sources = (),
    *,
    messages: Sequence[Mapping[str, Any]] = (),
    policy: Policy = Policy(),
    question: str = "",
    evidence_fields: Sequence[str] = (),
    json_schema: Mapping[str, Any] | None = None,
    judge: Judge | None = None,
) -> Report:
    """Verify an answer and report which of its claims the sources support, contradict or do not mention.

    The report is the one of the proxy, with the budget of every claim. `messages` are those of the chat request that
    the answer is for; they are evidence as they are for the proxy. An answer that is a bare number is read with the
    `question`, by default the one that the messages ask. `evidence_fields` name fields of a JSON answer that hold
    quotations; violations of their shape, or of `json_schema`, are part of the report, never exceptions.
    """
    unread: tuple[str, ...] = ()
    if messages:
        from groundwire.dialects.openai import CHAT

        body = {"messages": list(messages)}
        exchange, unread = Exchange(CHAT.messages(body), _context(sources).sources), CHAT.unread(body)
        context = Context(gather(exchange))
    else:
        exchange, context = Exchange(), _context(sources)
    ask = Ask(tuple(evidence_fields), json_schema, question or asked(exchange))
    used = _loaded(judge)
    report = verify([Choice(0, answer, "stop")], context, policy, ask, used, unread)
    scrubbed = Context(scrub_all(context.sources))
    choices = tuple(
        replace(each, judgements=tuple(with_budget(one, context, scrubbed, policy, used) for one in each.judgements))
        for each in report.choices
    )
    return replace(report, choices=choices)


def find_claims(text: str, policy: Policy = Policy()) -> tuple[Claim, ...]:
    """Find the atomic claims of an answer, with their spans; those that assert nothing have a `skip_reason`."""
    return _find_claims(text, policy).claims


@_renamed(text="answer", context="sources")
def check_quotes(
    answer: str, sources: Sources, *, policy: QuotePolicy = QuotePolicy(), fail_on_all_rejected: bool | None = None
) -> QuoteResult:
    """Check which quotations of an answer, block quotes included, occur in the sources, under the field name "text".

    Raises EvidenceGroundingError when `fail_on_all_rejected` (default: the policy's) is set and none of the quotations
    occurs there.
    """
    return _looked_up({"text": quoted_texts(answer)}, sources, policy, fail_on_all_rejected)


@_renamed(fields="evidence_fields", context="sources")
def check_evidence(
    answer: str | Mapping[str, Any],
    evidence_fields: Sequence[str],
    sources: Sources,
    *,
    policy: QuotePolicy = QuotePolicy(),
    fail_on_all_rejected: bool | None = None,
) -> QuoteResult:
    """Check which quotations in the evidence fields of a JSON answer occur in the sources, by field.

    Raises EvidenceSchemaError, with every violation, when a field is not a list of strings; EvidenceGroundingError as
    `check_quotes` does; ValueError when the answer is not JSON.
    """
    quotes, violations = read_evidence(json.loads(answer) if isinstance(answer, str) else answer, evidence_fields)
    if violations:
        raise EvidenceSchemaError(violations)
    return _looked_up(quotes, sources, policy, fail_on_all_rejected)


@dataclass(frozen=True, slots=True)
class NumericResult:
    """The result of checking the numbers of an answer, counted number by number.

    `judged` pairs every claim that contains a number with its verdict; `flagged` are the unsupported ones, and
    `flagged_numbers` their numbers; `ms` is the duration.
    """

    judged: tuple[tuple[Claim, Verdict], ...]
    counts: NumericCounts
    ms: float

    @property
    def confidence_adjustment(self) -> float:
        """The relative change of a stated confidence: −0.2 is −20 %."""
        return self.counts.confidence_adjustment

    @property
    def total_claims(self) -> int:
        """The count of all numbers."""
        return self.counts.total_claims

    @property
    def verified_claims(self) -> int:
        """The count of numbers that the context states or implies."""
        return self.counts.verified_claims

    @property
    def unverified_claims(self) -> int:
        """The count of numbers that were checked and are not supported."""
        return self.counts.unverified_claims

    @property
    def flagged_numbers(self) -> tuple[FlaggedNumber, ...]:
        """The numbers that were checked and are not supported, each with its type and value."""
        return tuple(number for *_, number in self.counts.flagged)

    @property
    def flagged(self) -> tuple[Claim, ...]:
        """The claims whose numbers were checked and are not supported."""
        return tuple(claim for claim, verdict in self.judged if verdict.label in ("unsupported", "contradicted"))

    def to_dict(self) -> dict[str, Any]:
        """Return the counts in the wire format, as in the member `numeric` of a report."""
        return self.counts.to_dict()

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the counts in the wire format, as JSON text."""
        return to_json(self.to_dict(), indent)


@_renamed(text="answer", context="sources")
def check_numbers(answer: str, sources: Sources, *, policy: NumericPolicy = NumericPolicy()) -> NumericResult:
    """Check which numbers of an answer the sources state or imply."""
    start = time.perf_counter()
    whole, given = Policy(verifiers=("numeric",), numeric=policy), _context(sources)
    claims = (claim for claim in find_claims(answer, whole) if claim.skip_reason is None)
    found = ((claim, numeric.verify(claim, given, whole)) for claim in claims)
    judged = tuple((claim, verdict) for claim, verdict in found if verdict is not None)
    counts = count_numbers([(0, claim.id, verdict) for claim, verdict in judged], policy)
    return NumericResult(judged, counts, (time.perf_counter() - start) * 1000)


def adjust_confidence(original: float, report: Report) -> float:
    """Adjust a stated confidence (0–1) to the report: reduce it by the penalty if any number is not verified."""
    adjustment = report.numeric.confidence_adjustment if report.numeric else 0.0
    return max(0.0, min(1.0, original * (1.0 + adjustment)))


def _looked_up(
    quotes: Mapping[str, Sequence[str]], sources: Sources, policy: QuotePolicy, fails: bool | None
) -> QuoteResult:
    fails = policy.fail_on_all_rejected if fails is None else fails
    return _check_quotes(quotes, _context(sources), policy, fail_on_all_rejected=fails)


def _loaded(judge: Judge | None) -> Judge:
    """Return the given judge, by default one with the shipped model."""
    if judge is not None:
        return judge
    from groundwire.backends.loading import load_judge

    return load_judge()


async def _proved(
    claim: Claim,
    sources: Sequence[Source],
    policy: Policy,
    estimator: Estimator | None,
    target: TargetOf,
    judge: Judge | None,
) -> Judgement:
    """Return the verdict of the judge, refined by the estimator if there is one."""
    worded = await asyncio.to_thread(lambda: prove(claim, sources, policy, _loaded(judge), target("verifier")))
    if estimator is None or claim.skip_reason is not None:
        return worded
    budget = await measured(claim, sources, estimator, target)
    asked = replace(policy, model=replace(policy.model, backend="self"))
    return joined(worded, budget, Context(sources), asked)


def _result(judgement: Judgement) -> ClaimResult:
    budget, verdict = judgement.budget, judgement.verdict
    assert isinstance(budget, Budget)  # noqa: S101 - whatever proves a claim measures it
    return ClaimResult(
        judgement.claim.text,
        verdict.label,
        budget.status,
        budget.p0.value if budget.p0 else None,
        budget.p1.value if budget.p1 else None,
        budget.required_bits,
        budget.observed_bits,
        budget.budget_gap,
        budget.target,
        verdict.reason,
        verdict.citations,
        judgement=judgement,
    )


def _target(confidence: float | None) -> TargetOf:
    """Return the targets of a stated confidence. Raises ValueError when it lies outside 0 to 1."""
    if confidence is not None and not 0.0 <= confidence <= 1.0:
        raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
    return targets_of(confidence)


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, also when an event loop is already running, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def _context(sources: Sources) -> Context:
    given = [sources] if isinstance(sources, (str, Source, Mapping)) else list(sources)
    return Context(_source(number, each) for number, each in enumerate(given, start=1))


def _source(number: int, given: str | Source | Mapping[str, Any]) -> Source:
    """Return a given source, named by its position if it has no name. Raises ValueError if a mapping is none."""
    if isinstance(given, Source):
        return given
    if isinstance(given, str):
        return Source(f"source-{number}", "source", given, labels=(str(number),))
    from groundwire.dialects.request import SourceIn, source_of

    return source_of(SourceIn.model_validate(given), number)
