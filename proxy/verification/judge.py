"""Judge claims: exact checks first, then the entailment model, or words where there is no model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from proxy.types import Claim, Judgement, Label, Policy, Verdict
from proxy.verification import numeric, quote, statement
from proxy.verification.alignment.initialisms import spell_out
from proxy.verification.alignment.model import shipped
from proxy.verification.calibration import calibrated
from proxy.verification.claims.assertions import SKIP_REASONS
from proxy.verification.confidence import with_confidence
from proxy.verification.context.index import Context, cite
from proxy.verification.entailment.combination import Combination
from proxy.verification.entailment.evidence import Evidence, plain_text, select_evidence
from proxy.verification.entailment.model import Entailment, EntailmentModel, NoModel, Question
from proxy.verification.entailment.verdict import exact_verdict, model_verdict
from proxy.verification.facts import settle
from proxy.verification.periods import check_period
from proxy.verification.verbatim import find_denial, find_verbatim

Verifier = Callable[[Claim, Context, Policy], Verdict | None]

VERIFIERS: tuple[tuple[str, Verifier], ...] = (
    ("quote", quote.verify),
    ("numeric", numeric.verify),
    ("statement", statement.verify),
)
"""Every verifier by name. It returns None about a claim that it does not apply to."""

MAX_CHARS = 2000
"""The length of a claim; alignment takes quadratic time where words recur, and no sentence is that long."""

BATCH = 16
"""Claims that the model is asked about at once, so that exchanges take turns."""

GRAVITY: dict[Label, int] = {"contradicted": 3, "unsupported": 2, "not_checked": 1, "supported": 0}
"""The gravest of several labels decides."""

_NO_CONTEXT = "The request holds nothing to check it against."
_TOO_LONG = "It is too long to be read as one claim."
_UNREAD = "The context is too long to be read to its end, and what was read does not state it."
_NONE_APPLIES = "No enabled verifier applies to it."
_TIMEOUT = "The time for checking this answer was over."

Timed = Callable[[str], AbstractContextManager[object]]
"""Measures the time that the verifier of this name takes."""


def _never() -> bool:
    return False


def _untimed(_name: str) -> AbstractContextManager[object]:
    return nullcontext()


@dataclass(slots=True)
class _Case:
    """A claim on its way to a judgement: the verdicts so far, and the evidence where the model is to be asked.

    `read` is the claim as the model reads it.
    """

    claim: Claim
    verdicts: list[Verdict]
    evidence: Evidence | None = None
    read: Claim | None = None
    numeric: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges claims against a context. It never raises: a verifier that fails has not checked.

    The entailment model takes the place of the verifier "statement" while it can be asked, and decides together with
    "numeric". `combination` joins what it says with words, names and numbers.
    """

    model: EntailmentModel = field(default_factory=NoModel)
    combination: Combination = Combination()
    verifiers: Sequence[tuple[str, Verifier]] = VERIFIERS

    def __call__(
        self,
        claims: Sequence[Claim],
        context: Context,
        policy: Policy,
        is_over: Callable[[], bool] = _never,
        timed: Timed = _untimed,
    ) -> list[Judgement]:
        """Return a judgement for each claim, in order. Claims that are reached after `is_over` are not checked."""
        judgements: list[Judgement] = []
        for at in range(0, len(claims), BATCH):
            judgements += self._judge(claims[at : at + BATCH], context, policy, is_over, timed)
        return judgements

    def one(self, claim: Claim, context: Context, policy: Policy) -> Judgement:
        """Return the judgement on a single claim."""
        return self((claim,), context, policy)[0]

    def _judge(
        self, claims: Sequence[Claim], context: Context, policy: Policy, is_over: Callable[[], bool], timed: Timed
    ) -> list[Judgement]:
        found: list[Judgement | _Case] = []
        for claim in claims:
            over = unjudged(claim, "timeout", _TIMEOUT) if is_over() else None
            found.append(over or _unfit(claim, context) or self._begin(claim, context, policy, timed))
        cases = [each for each in found if isinstance(each, _Case)]
        with timed("statement"):
            self._ask([each for each in cases if each.evidence is not None], context, policy)
        return [each if isinstance(each, Judgement) else _concluded(each, context, policy) for each in found]

    def _begin(self, claim: Claim, context: Context, policy: Policy, timed: Timed) -> _Case:
        """Return a claim after the exact checks, with its evidence if these left it to the model."""
        if dated := _dated(claim, context, policy):
            return _Case(claim, [dated])
        case = _Case(claim, [])
        is_read = (
            self.model.state == "ready" and "statement" in policy.verifiers and not quote.decides_alone(claim, policy)
        )
        if is_read:
            with timed("statement"):
                case.verdicts += _checked("statement", lambda: _exact(claim, context))
        is_read, is_exact = is_read and not case.verdicts, bool(case.verdicts)
        for name, verify in self.verifiers:
            if name in policy.verifiers and (name == "quote" or not is_exact):
                with timed(name):
                    self._check(name, verify, case, context, policy, is_read=is_read)
        return case

    def _check(
        self, name: str, verify: Verifier, case: _Case, context: Context, policy: Policy, *, is_read: bool
    ) -> None:
        """Add what one verifier says of a claim, or prepare what the model needs in its place."""
        if is_read and name == "statement":
            case.read = spell_out(case.claim, context)
            case.evidence = self._evidence(case.read, context)
            return
        found = [calibrated(each) for each in _checked(name, lambda: verify(case.claim, context, policy))]
        if name == "numeric" and found and is_read and _is_weighed(found[0]):
            case.numeric = found[0]
        elif name == "statement":
            case.verdicts += map(self._degraded, found)
        else:
            case.verdicts += found

    def _evidence(self, claim: Claim, context: Context) -> Evidence:
        cited = {source.id for label in claim.cited if (source := context.resolve(label))}
        return select_evidence(claim.text, claim.lead, context, cited)

    def _ask(self, cases: Sequence[_Case], context: Context, policy: Policy) -> None:
        """Ask the model about the open claims; those that it fails on get the verdict of words."""
        if not cases:
            return
        questions = [_question(case) for case in cases]
        try:
            answers = self.model.entail(questions)
        except Exception:  # noqa: BLE001 - no fault of a model may cost a verdict; the model has logged it
            for case in cases:
                words = _checked("statement", lambda case=case: statement.verify(case.claim, context, policy))  # type: ignore[misc]
                case.verdicts += [replace(each, degraded="error") for each in words]
                case.verdicts += [case.numeric] if case.numeric else []
            return
        for case, answer in zip(cases, answers, strict=True):
            case.verdicts += self._decided(case, answer, context, policy)

    def _decided(self, case: _Case, answer: Entailment, context: Context, policy: Policy) -> Iterator[Verdict]:
        """Yield the verdict of the model, and that on numbers where the two do not disagree."""
        assert case.evidence is not None  # noqa: S101 - only such cases are asked about
        numbers = case.numeric
        words = _by_words(case.claim, context, policy)
        verdict = model_verdict(case.claim, case.evidence, answer, numbers, words, context, policy, self.combination)
        unknown = any(context.resolve(label) is None for label in case.claim.cited)
        yield replace(verdict, flags=("unknown_citation",)) if unknown else verdict
        if numbers and numbers.label == "supported":
            yield numbers
        elif numbers and verdict.label != "supported":
            yield replace(numbers, label=verdict.label, score=verdict.score, reason=verdict.reason)

    def _degraded(self, verdict: Verdict) -> Verdict:
        """Mark the verdict of words where a model was to give it."""
        state = self.model.state
        if state == "off":
            return verdict
        return replace(verdict, degraded="error" if state == "failed" else "loading")  # it may be ready by now


def _by_words(claim: Claim, context: Context, policy: Policy) -> float:
    """Return the probability that a claim is supported by words alone; even odds where these do not apply."""
    try:
        found = statement.assess(claim, context, policy)
    except Exception:  # noqa: BLE001 - no fault of a verifier may reach an answer
        return 0.5
    return shipped().probability(found[1]) if found and found[0].window else 0.5 if found is None else 0.05


def _question(case: _Case) -> Question:
    """Return what the model is asked about a claim."""
    claim, evidence = case.read or case.claim, case.evidence or Evidence()
    return Question(plain_text(claim.text), plain_text(claim.lead), evidence.text)


def _is_weighed(verdict: Verdict) -> bool:
    """Return whether a verdict on numbers is one signal among others, rather than what a database says."""
    return verdict.label != "not_checked" and all(citation.match != "sql" for citation in verdict.citations)


def _dated(claim: Claim, context: Context, policy: Policy) -> Verdict | None:
    """Return the verdict of a table of periods on the dates of a claim, if there is one."""
    is_wanted = "numeric" in policy.verifiers and policy.numeric.date
    return check_period(claim, context) if is_wanted else None


def _exact(claim: Claim, context: Context) -> Verdict | None:
    """Return the verdict on a claim that a source has word for word, or has as what it denies."""
    for source in context.sources:
        for text in dict.fromkeys((claim.text, plain_text(claim.text))):
            if place := find_verbatim(text, source, context):
                return exact_verdict("supported", cite(source, *place, 1.0, "exact"), source)
    for source in context.sources:
        if place := find_denial(plain_text(claim.text), source, context):
            return exact_verdict("contradicted", cite(source, *place, 1.0, "exact"), source)
    return None


def _checked(name: str, verify: Callable[[], Verdict | None]) -> list[Verdict]:
    """Return the verdict of a verifier, if it has one, in a list; `not_checked` where it raises."""
    try:
        verdict = verify()
    except Exception as error:  # noqa: BLE001 - no fault of a verifier may reach an answer
        return [Verdict(name, "not_checked", 0.0, "error", f"The verifier failed ({type(error).__name__}).")]
    return [] if verdict is None else [verdict]


def _unfit(claim: Claim, context: Context) -> Judgement | None:
    """Return the judgement on a claim that cannot be checked at all."""
    if claim.skip_reason:
        return unjudged(claim, "skipped", "")
    if not context.passages:
        return _not_checked(claim, "no_context", _NO_CONTEXT)
    if len(claim.text) > MAX_CHARS:
        return _not_checked(claim, "too_long", _TOO_LONG)
    return None


def _concluded(case: _Case, context: Context, policy: Policy) -> Judgement:
    """Return the judgement that the verdicts on a claim amount to."""
    verdicts = settle(case.claim, case.verdicts, context)
    if not context.is_complete:
        verdicts = tuple(map(_withheld, verdicts))
    if not verdicts:
        return _not_checked(case.claim, "not_applicable", _NONE_APPLIES)
    return with_confidence(Judgement(case.claim, _deciding(verdicts), 0.0, verdicts), context, policy)


def _withheld(verdict: Verdict) -> Verdict:
    """Return the verdict; not checked where it rests on what a context lacks that was not read to its end."""
    if verdict.label != "unsupported":
        return verdict
    return replace(
        verdict,
        label="not_checked",
        score=0.0,
        method="context_limit",
        reason=_UNREAD,
        citations=(),
        flags=(),
        validated=0,
    )


def _deciding(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the gravest verdict, with the evidence and the reasons of all that agree with it."""
    gravest = max(verdicts, key=lambda verdict: GRAVITY[verdict.label])
    agreeing = [verdict for verdict in verdicts if verdict.label == gravest.label]
    cited = [citation for verdict in reversed(agreeing) for citation in reversed(verdict.citations)]
    places = {(citation.source, citation.start, citation.end): citation for citation in cited}
    reasons = dict.fromkeys(verdict.reason for verdict in agreeing)
    return replace(gravest, citations=tuple(reversed(places.values())), reason=" ".join(reasons))


def unjudged(claim: Claim, method: str, reason: str) -> Judgement:
    """Return a judgement that was not made, and why: `method` is timeout or overload, unless the claim is skipped."""
    if claim.skip_reason:
        return _not_checked(claim, "skipped", SKIP_REASONS[claim.skip_reason])
    return _not_checked(claim, method, reason)


def _not_checked(claim: Claim, method: str, reason: str) -> Judgement:
    return Judgement(claim, Verdict("", "not_checked", 0.0, method, reason, extracted=0), 0.0)
