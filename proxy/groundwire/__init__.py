"""Groundwire as a library: the checks of the proxy as plain functions on text.

    >>> from proxy import verify_claims
    >>> report = verify_claims("Revenue was $4.2M.", "Revenue came to $4,187,332.")
    >>> report.verdict
    'grounded'

Importing this loads nothing yet; a name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proxy.errors import EvidenceGroundingError as EvidenceGroundingError
    from proxy.errors import EvidenceSchemaError as EvidenceSchemaError
    from proxy.errors import GroundwireError as GroundwireError
    from proxy.evidence.estimator import Estimator as Estimator
    from proxy.library import ClaimResult as ClaimResult
    from proxy.library import NumericResult as NumericResult
    from proxy.library import adjust_confidence as adjust_confidence
    from proxy.library import audit_trace as audit_trace
    from proxy.library import audit_trace_async as audit_trace_async
    from proxy.library import check_evidence as check_evidence
    from proxy.library import check_numbers as check_numbers
    from proxy.library import check_quotes as check_quotes
    from proxy.library import find_claims as find_claims
    from proxy.library import verify_claim as verify_claim
    from proxy.library import verify_claim_async as verify_claim_async
    from proxy.library import verify_claims as verify_claims
    from proxy.library import verify_claims_async as verify_claims_async
    from proxy.types import Claim as Claim
    from proxy.types import NumericPolicy as NumericPolicy
    from proxy.types import Policy as Policy
    from proxy.types import QuotePolicy as QuotePolicy
    from proxy.types import Report as Report
    from proxy.types import Source as Source
    from proxy.verification.trace import Audit as Audit

_HOMES = {
    "proxy.errors": ("EvidenceGroundingError", "EvidenceSchemaError", "GroundwireError"),
    "proxy.evidence.estimator": ("Estimator",),
    "proxy.library": (
        "ClaimResult",
        "NumericResult",
        "adjust_confidence",
        "audit_trace",
        "audit_trace_async",
        "check_evidence",
        "check_numbers",
        "check_quotes",
        "find_claims",
        "verify_claim",
        "verify_claim_async",
        "verify_claims",
        "verify_claims_async",
    ),
    "proxy.types": ("Claim", "NumericPolicy", "Policy", "QuotePolicy", "Report", "Source"),
    "proxy.verification.trace": ("Audit",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'proxy' has no attribute '{name}'")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
