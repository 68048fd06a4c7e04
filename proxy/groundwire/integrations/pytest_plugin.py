"""A pytest plugin: `assert_grounded` fails with the claims that the sources do not support, and the evidence found."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from groundwire.judge import Judge
    from groundwire.policy import Policy
    from groundwire.report import Report


def assert_grounded(
    answer: str,
    sources: Any,
    *,
    question: str = "",
    minimum: float = 1.0,
    policy: Policy | None = None,
    judge: Judge | None = None,
) -> Report:
    """Assert that the sources support at least the share `minimum` of an answer's claims, and contradict none.

    Returns the report. An answer without a checkable claim fails.
    """
    __tracebackhide__ = True
    from groundwire.integrations.documents import explain, sources_of
    from groundwire.library import verify_claims
    from groundwire.policy import Policy

    report = verify_claims(answer, sources_of(sources), question=question, policy=policy or Policy(), judge=judge)
    if report.score is None or report.score < minimum or "contradicted_claims" in report.flags:
        pytest.fail(f"The answer is {explain(report)}", pytrace=False)
    return report


@pytest.fixture(name="assert_grounded", scope="session")
def _assert_grounded() -> Callable[..., Report]:
    """Return the function `assert_grounded`."""
    return assert_grounded
