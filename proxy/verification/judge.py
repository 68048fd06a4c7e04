"""One claim, one judgement: every verifier says what it has to say, and the gravest word decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from proxy.types import Claim, Judgement, Label, Policy, Verdict
from proxy.verification import numeric, quote, statement
from proxy.verification.calibration import calibrated
from proxy.verification.claims.assertions import SKIP_REASONS
from proxy.verification.confidence import with_confidence
from proxy.verification.context.index import Context
from proxy.verification.facts import settle
from proxy.verification.periods import check_period

Verifier = Callable[[Claim, Context, Policy], Verdict | None]

VERIFIERS: tuple[tuple[str, Verifier], ...] = (
    ("quote", quote.verify),
    ("numeric", numeric.verify),
    ("statement", statement.verify),
)
"""Every verifier there is, by name. It returns None about a claim that is none of its business."""

_LONGEST = 2000  # characters; alignment takes quadratic time where words recur, and no sentence is so long

GRAVITY: Mapping[Label, int] = {"contradicted": 3, "unsupported": 2, "not_checked": 1, "supported": 0}
"""Which of several labels speaks for all: the gravest."""

_NO_CONTEXT = "The request holds nothing to check it against."
_TOO_LONG = "It is too long to be read as one claim."
_UNREAD = "The context is too long to be read to its end, and what was read does not state it."
_NONE_APPLIES = "No enabled verifier applies to it."


def judge(
    claim: Claim, context: Context, policy: Policy, verifiers: Sequence[tuple[str, Verifier]] = VERIFIERS
) -> Judgement:
    """What the enabled verifiers say of a claim. Never raises: a verifier that fails has not checked (RE1)."""
    if claim.skip_reason:
        return unjudged(claim, "skipped", "")
    if not context.passages:
        return _not_checked(claim, "no_context", _NO_CONTEXT)
    if len(claim.text) > _LONGEST:
        return _not_checked(claim, "too_long", _TOO_LONG)
    verdicts = _settled(claim, context, policy) or settle(
        claim, tuple(_said(claim, context, policy, verifiers)), context
    )
    if not context.is_complete:
        verdicts = tuple(map(_withheld, verdicts))
    if not verdicts:
        return _not_checked(claim, "not_applicable", _NONE_APPLIES)
    deciding = _deciding(verdicts)
    return with_confidence(Judgement(claim, deciding, 0.0, verdicts), context, policy)


def _settled(claim: Claim, context: Context, policy: Policy) -> tuple[Verdict, ...]:
    """Return the verdict of an exact check that decides alone, if there is one."""
    dated = check_period(claim, context) if "numeric" in policy.verifiers and policy.numeric.date else None
    return (dated,) if dated else ()


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
    """The gravest verdict, with the evidence and the reasons of all that agree with it."""
    gravest = max(verdicts, key=lambda verdict: GRAVITY[verdict.label])
    agreeing = [verdict for verdict in verdicts if verdict.label == gravest.label]
    cited = [citation for verdict in reversed(agreeing) for citation in reversed(verdict.citations)]
    places = {(citation.source, citation.start, citation.end): citation for citation in cited}
    reasons = dict.fromkeys(verdict.reason for verdict in agreeing)
    return replace(gravest, citations=tuple(reversed(places.values())), reason=" ".join(reasons))


def unjudged(claim: Claim, method: str, reason: str) -> Judgement:
    """A claim that was not judged, and why: `method` is timeout or overload, unless it asserts nothing anyway."""
    if claim.skip_reason:
        return _not_checked(claim, "skipped", SKIP_REASONS[claim.skip_reason])
    return _not_checked(claim, method, reason)


def _said(
    claim: Claim, context: Context, policy: Policy, verifiers: Iterable[tuple[str, Verifier]]
) -> Iterable[Verdict]:
    for name, verify in verifiers:
        if name not in policy.verifiers:
            continue
        try:
            verdict = verify(claim, context, policy)
        except Exception as error:  # noqa: BLE001 - no fault of a verifier may reach an answer
            verdict = Verdict(name, "not_checked", 0.0, "error", f"The verifier failed ({type(error).__name__}).")
        if verdict is not None:
            yield calibrated(verdict)


def _not_checked(claim: Claim, method: str, reason: str) -> Judgement:
    return Judgement(claim, Verdict("", "not_checked", 0.0, method, reason, extracted=0), 0.0)
