"""The gravest of the verifiers' verdicts on one claim decides; a failure is never a verdict."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.domain import Claim, ConfidenceParts, Label, Source, Verdict
from groundwire.evidence.index import Context
from groundwire.judge import VERIFIERS, Judge, Verifier, unjudged
from groundwire.policy import Policy
from tests.steps import growth

CLAIM = Claim("c1", "The sky is blue.", 0, 16)
CONTEXT = Context([Source("s1", "source", "The sky is blue. Grass is green.")])
NAMES = ("quote", "numeric", "statement")


def saying(name: str, label: Label | None) -> tuple[str, Verifier]:
    """A verifier with this label for every claim; None: none."""
    verdict = None if label is None else Verdict(name, label, 1.0, "said", f"{name} says so.")
    return name, lambda claim, context, policy: verdict


def failing(name: str) -> tuple[str, Verifier]:
    def verify(claim: Claim, context: Context, policy: Policy) -> Verdict:
        raise RuntimeError(f"about {claim.text}")

    return name, verify


def said(*labels: Label | None, policy: Policy = Policy()) -> Sequence[tuple[str, Verifier]]:
    return [saying(name, label) for name, label in zip(NAMES, labels, strict=False)]


@pytest.mark.parametrize(
    ("labels", "decides"),
    [
        pytest.param(("supported",), ("statement", "supported"), id="alone"),
        pytest.param(("supported", "unsupported"), ("statement", "unsupported"), id="unsupported over supported"),
        pytest.param(
            ("unsupported", "contradicted"), ("statement", "contradicted"), id="contradicted over unsupported"
        ),
        pytest.param(("supported", "contradicted"), ("statement", "contradicted"), id="contradicted over supported"),
        pytest.param(("supported", "not_checked"), ("statement", "not_checked"), id="not checked over supported"),
        pytest.param(("not_checked", "unsupported"), ("statement", "unsupported"), id="unsupported over not checked"),
        pytest.param(
            ("not_checked", "contradicted"), ("statement", "contradicted"), id="contradicted over not checked"
        ),
        pytest.param((None, "supported"), ("statement", "supported"), id="nothing said counts nothing"),
    ],
)
def test_the_gravest_word_decides(labels: tuple[Label | None, ...], decides: tuple[str, Label]) -> None:
    names = ("numeric", "statement")[-len(labels) :]
    for order in permutations(zip(names, labels, strict=True)):
        judgement = Judge(verifiers=[saying(name, label) for name, label in order]).one(CLAIM, CONTEXT, Policy())
        assert (judgement.verdict.verifier, judgement.verdict.label) == decides
        assert len(judgement.verdicts) == len([label for label in labels if label])


def test_the_first_of_equal_verdicts_is_reported() -> None:
    judgement = Judge(verifiers=said("supported", "supported", "supported")).one(CLAIM, CONTEXT, Policy())
    assert judgement.verdict.verifier == "quote"
    assert [verdict.verifier for verdict in judgement.verdicts] == list(NAMES)


def test_a_verifier_that_is_not_enabled_is_not_run() -> None:
    policy = Policy(verifiers=("numeric",))
    judgement = Judge(verifiers=[failing("quote"), saying("numeric", "supported"), failing("statement")]).one(
        CLAIM, CONTEXT, policy
    )
    assert [verdict.verifier for verdict in judgement.verdicts] == ["numeric"]


@pytest.mark.parametrize("others", [["supported"], ["contradicted"]], ids=["with support", "with contradiction"])
def test_a_verifier_that_fails_has_not_checked_and_quotes_no_text(others: list[Label]) -> None:
    """A claim it might have rejected is not called supported."""
    judgement = Judge(verifiers=[failing("numeric"), *(saying("statement", each) for each in others)]).one(
        CLAIM, CONTEXT, Policy()
    )
    failed = next(verdict for verdict in judgement.verdicts if verdict.verifier == "numeric")
    assert (failed.label, failed.method, failed.score) == ("not_checked", "error", 0.0)
    assert "RuntimeError" in failed.reason
    assert "sky" not in failed.reason
    assert judgement.verdict.label == ("contradicted" if "contradicted" in others else "not_checked")


@pytest.mark.parametrize(
    ("claim", "context", "policy", "method"),
    [
        pytest.param(replace(CLAIM, skip_reason="question"), CONTEXT, Policy(), "skipped", id="asserts nothing"),
        pytest.param(CLAIM, Context([]), Policy(), "no_context", id="nothing to check against"),
        pytest.param(CLAIM, CONTEXT, Policy(verifiers=()), "not_applicable", id="no verifier enabled"),
        pytest.param(CLAIM, CONTEXT, Policy(verifiers=("quote",)), "not_applicable", id="no verifier applies"),
        pytest.param(replace(CLAIM, skip_reason="code"), Context([]), Policy(), "skipped", id="asserts nothing anyway"),
    ],
)
def test_an_unchecked_claim_has_a_reason_and_no_score(
    claim: Claim, context: Context, policy: Policy, method: str
) -> None:
    judgement = Judge().one(claim, context, policy)
    verdict = judgement.verdict
    assert (verdict.label, verdict.method, verdict.score, judgement.confidence) == ("not_checked", method, 0.0, 0.0)
    assert verdict.reason
    assert (verdict.extracted, judgement.verdicts) == (0, ())


def test_a_reason_to_skip_is_given_in_words() -> None:
    skipped = replace(CLAIM, skip_reason="not_in_context")
    assert "the context does not contain the answer" in unjudged(skipped, "timeout", "late").verdict.reason
    assert unjudged(CLAIM, "timeout", "late").verdict.reason == "late"


@pytest.mark.parametrize(
    ("kind", "label", "score", "retrieval", "source"),
    [
        ("source", "supported", 0.8, 0.8, 1.0),
        ("user", "supported", 1.0, 1.0, 0.7),
        ("system", "supported", 1.0, 1.0, 0.9),
        ("source", "contradicted", 0.1, 0.9, 1.0),
        ("source", "unsupported", 0.0, 1.0, 1.0),
    ],
)
def test_confidence_in_a_verdict_weighs_its_certainty_and_its_source(
    kind: str, label: Label, score: float, retrieval: float, source: float
) -> None:
    context = Context([Source("s1", kind, "The sky is blue.")])  # type: ignore[arg-type]
    citation = context.passages[0].cite(score, "exact")

    def verify(claim: Claim, context: Context, policy: Policy) -> Verdict:
        return Verdict("statement", label, score, "m", "r", (citation,))

    judgement = Judge(verifiers=[("statement", verify)]).one(CLAIM, context, Policy())
    assert judgement.parts == ConfidenceParts(pytest.approx(retrieval), source)
    assert judgement.confidence == pytest.approx((0.3 * retrieval + 0.25 * source) / 0.55)


TEXTS = st.text(st.characters(), max_size=60) | st.sampled_from(
    ["$5", "“", "“a b c d”", "1889", "not", "It is.", "a" * 300, "\ud800", "٣٤", "50% of 3:1 on 12/31/1999", "[1]"]
)


@given(TEXTS, TEXTS, TEXTS, st.sampled_from(["statement", "numeric", "quote", "table_row", "field"]))
def test_every_verifier_takes_any_text(text: str, lead: str, source: str, kind: str) -> None:
    """No verifier raises, so that none is ever reported as failed because of a text."""
    claim = Claim("c1", text, 0, len(text), kind=kind, lead=lead, cited=("1",))  # type: ignore[arg-type]
    context = Context([Source("s1", "user", source), Source("s2", "tool", "The sky is blue in 1889.", labels=("1",))])
    judgement = Judge().one(claim, context, Policy())
    assert [verdict.reason for verdict in judgement.verdicts if verdict.method == "error"] == []
    assert 0 <= judgement.confidence <= 1
    assert 0 <= judgement.verdict.score <= 1


def test_the_verifiers_have_the_names_that_settings_and_requests_use() -> None:
    assert (*(name for name, _ in VERIFIERS), "statement") == Policy().verifiers == NAMES


@pytest.mark.parametrize("pattern", ["raise fares year ", "not all of them rose ", "1 1 1 ", "Anna manages Bob ", "x "])
def test_a_claim_of_any_length_takes_bounded_time(pattern: str) -> None:
    """A text too long for one claim is reported as not checked, and all else is judged in time."""
    context = Context([Source("s", "source", "The fares were not raised this year. Bob manages Anna. " * 50)])

    def label(length: int) -> str:
        text = (pattern * length)[:length]
        return Judge().one(Claim("c1", text, 0, len(text)), context, Policy()).verdict.label

    assert growth(label, 475, 1900) < 6
    assert label(48_000) == "not_checked"
