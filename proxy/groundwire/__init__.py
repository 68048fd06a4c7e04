"""Groundwire as a library: the checks of the proxy as plain functions on text.

    >>> from groundwire import verify_claims
    >>> report = verify_claims("Revenue was $4.2M.", "Revenue came to $4,187,332.")
    >>> report.verdict
    'grounded'

Importing this loads nothing yet; a name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groundwire.backends.budgets import Estimator as Estimator
    from groundwire.domain import Budget as Budget
    from groundwire.domain import Citation as Citation
    from groundwire.domain import Claim as Claim
    from groundwire.domain import ConfidenceParts as ConfidenceParts
    from groundwire.domain import FlaggedNumber as FlaggedNumber
    from groundwire.domain import Judgement as Judgement
    from groundwire.domain import Probability as Probability
    from groundwire.domain import Source as Source
    from groundwire.domain import Unavailable as Unavailable
    from groundwire.domain import Verdict as Verdict
    from groundwire.errors import EvidenceGroundingError as EvidenceGroundingError
    from groundwire.errors import EvidenceSchemaError as EvidenceSchemaError
    from groundwire.errors import GroundwireError as GroundwireError
    from groundwire.features.trace import Audit as Audit
    from groundwire.features.trace import AuditedStep as AuditedStep
    from groundwire.features.trace import PostHoc as PostHoc
    from groundwire.judge import Judge as Judge
    from groundwire.library import ClaimResult as ClaimResult
    from groundwire.library import NumericResult as NumericResult
    from groundwire.library import adjust_confidence as adjust_confidence
    from groundwire.library import audit_trace as audit_trace
    from groundwire.library import audit_trace_async as audit_trace_async
    from groundwire.library import check_evidence as check_evidence
    from groundwire.library import check_numbers as check_numbers
    from groundwire.library import check_quotes as check_quotes
    from groundwire.library import find_claims as find_claims
    from groundwire.library import verify_claim as verify_claim
    from groundwire.library import verify_claim_async as verify_claim_async
    from groundwire.library import verify_claims as verify_claims
    from groundwire.library import verify_claims_async as verify_claims_async
    from groundwire.policy import ModelPolicy as ModelPolicy
    from groundwire.policy import NumericPolicy as NumericPolicy
    from groundwire.policy import Policy as Policy
    from groundwire.policy import QuotePolicy as QuotePolicy
    from groundwire.policy import Thresholds as Thresholds
    from groundwire.report import ChoiceReport as ChoiceReport
    from groundwire.report import Confidence as Confidence
    from groundwire.report import Coverage as Coverage
    from groundwire.report import NumericCounts as NumericCounts
    from groundwire.report import QuoteCounts as QuoteCounts
    from groundwire.report import Report as Report
    from groundwire.report import Risk as Risk
    from groundwire.report import Violation as Violation
    from groundwire.report_schema import GroundingReport as GroundingReport
    from groundwire.verifiers.quotes import QuoteResult as QuoteResult

_HOMES = {
    "groundwire.backends.budgets": "Estimator",
    "groundwire.domain": (
        "Budget Citation Claim ConfidenceParts FlaggedNumber Judgement Probability Source Unavailable Verdict"
    ),
    "groundwire.errors": "EvidenceGroundingError EvidenceSchemaError GroundwireError",
    "groundwire.features.trace": "Audit AuditedStep PostHoc",
    "groundwire.judge": "Judge",
    "groundwire.library": (
        "ClaimResult NumericResult adjust_confidence audit_trace audit_trace_async check_evidence check_numbers "
        "check_quotes find_claims verify_claim verify_claim_async verify_claims verify_claims_async"
    ),
    "groundwire.policy": "ModelPolicy NumericPolicy Policy QuotePolicy Thresholds",
    "groundwire.report": "ChoiceReport Confidence Coverage NumericCounts QuoteCounts Report Risk Violation",
    "groundwire.report_schema": "GroundingReport",
    "groundwire.verifiers.quotes": "QuoteResult",
}
"""The module of each public name; type checkers read the imports above."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'groundwire' has no attribute '{name}'")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
