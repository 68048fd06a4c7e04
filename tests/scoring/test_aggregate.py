"""The report that the judgements of an answer add up to, as in wire.md."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.domain import Choice, Citation, Claim, ClaimKind, ConfidenceParts, Judgement, Label, Source, Verdict
from groundwire.evidence.index import Context
from groundwire.policy import Policy
from groundwire.report import Consistency, PromptSize, QuoteCounts, Report, Violation
from groundwire.scoring.aggregate import FLAGS, Examined, Reading, answer_verdict, score, summarise

CONTEXT = Context([Source("s1", "source", "The sky is blue. Acme earned $4.2 million in 2023.")])


def judgement(
    label: Label = "supported",
    *,
    verifier: str = "statement",
    method: str = "exact",
    score: float = 1.0,
    skip: str | None = None,
    kind: ClaimKind = "statement",
    pointer: str | None = None,
    flags: tuple[str, ...] = (),
    extracted: int = 1,
    validated: int = 0,
    cites: str | None = None,
) -> Judgement:
    citations = (Citation(cites, 0, 3, "The", 1.0, "exact"),) if cites else ()
    verdict = Verdict(verifier, label, score, method, "r", citations, flags, extracted, validated)
    claim = Claim("c1", "The sky is blue.", 0, 16, kind=kind, skip_reason=skip, pointer=pointer)
    return Judgement(claim, verdict, 1.0, (verdict,) if verifier else ())


SKIPPED = judgement("not_checked", verifier="", method="skipped", skip="question")
NO_CONTEXT = judgement("not_checked", verifier="", method="no_context")
LATE = judgement("not_checked", verifier="", method="timeout")
SHED = judgement("not_checked", verifier="", method="overload")
FAILED = judgement("not_checked", verifier="numeric", method="error")
INAPPLICABLE = judgement("not_checked", verifier="", method="not_applicable")
SUPPORTED = judgement()
UNSUPPORTED = judgement("unsupported", score=0.1)
CONTRADICTED = judgement("contradicted", score=0.0)


def examined(*judgements: Judgement, **reading: Any) -> Examined:
    said = reading.pop("choice", Choice(0, "x" * 100, "stop"))
    return Examined(Reading(said, tuple(each.claim for each in judgements), **reading), judgements)


def report(*judgements: Judgement, context: Context = CONTEXT, policy: Policy = Policy(), **options: Any) -> Report:
    """The report on one choice; options of `Reading` go there, the others to `summarise`."""
    names = set(Reading.__slots__) & set(options)
    reading = {name: options.pop(name) for name in names}
    return summarise("gw-1", [examined(*judgements, **reading)], context, policy, **options)


# --- verdict, score and status ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judgements", "verdict", "supported"),
    [
        pytest.param([], "not_applicable", None, id="no claim"),
        pytest.param([SKIPPED, SKIPPED], "not_applicable", None, id="nothing asserted"),
        pytest.param([SUPPORTED], "grounded", 1.0, id="supported"),
        pytest.param([SUPPORTED, SKIPPED], "grounded", 1.0, id="supported beside a question"),
        pytest.param([UNSUPPORTED], "ungrounded", 0.0, id="unsupported"),
        pytest.param([CONTRADICTED, UNSUPPORTED], "ungrounded", 0.0, id="contradicted and unsupported"),
        pytest.param([SUPPORTED, UNSUPPORTED], "partially_grounded", 0.5, id="one of two"),
        pytest.param([SUPPORTED, CONTRADICTED, UNSUPPORTED], "partially_grounded", 1 / 3, id="one of three"),
        pytest.param([LATE], "not_checked", None, id="late"),
        pytest.param([SHED, SHED], "not_checked", None, id="shed"),
        pytest.param([FAILED], "not_checked", None, id="failed"),
        pytest.param([NO_CONTEXT], "not_checked", None, id="nothing to check against"),
        pytest.param([INAPPLICABLE], "not_checked", None, id="no verifier applies"),
        pytest.param([LATE, SKIPPED], "not_checked", None, id="late beside a question"),
        pytest.param([SUPPORTED, LATE], "grounded", 1.0, id="the late do not count"),
        pytest.param([UNSUPPORTED, LATE], "ungrounded", 0.0, id="for or against"),
    ],
)
def test_the_verdict_and_score_of_an_answer(judgements: list[Judgement], verdict: str, supported: float | None) -> None:
    found = report(*judgements)
    assert (found.verdict, found.score) == (verdict, supported)
    assert (found.choices[0].verdict, found.choices[0].score) == (verdict, supported)


@pytest.mark.parametrize(
    ("judgements", "options", "status"),
    [
        pytest.param([SUPPORTED, UNSUPPORTED], {}, "complete", id="all checked"),
        pytest.param([SKIPPED], {}, "complete", id="nothing to check"),
        pytest.param([], {}, "complete", id="no claim"),
        pytest.param([SUPPORTED, INAPPLICABLE], {}, "complete", id="no verifier applies to one"),
        pytest.param([SUPPORTED], {"cut_short": True}, "partial", id="the answer broke off"),
        pytest.param([SUPPORTED], {"truncated": True}, "partial", id="more claims than the cap"),
        pytest.param([SUPPORTED], {"choice": Choice(0, "x", "stop", unread=5)}, "partial", id="text left unread"),
        pytest.param([SUPPORTED, LATE], {}, "partial", id="some late"),
        pytest.param([LATE, LATE], {}, "partial", id="all late"),
        pytest.param([SUPPORTED, SHED], {}, "partial", id="some shed"),
        pytest.param([SHED, SHED], {}, "skipped", id="all shed"),
        pytest.param([SHED, SKIPPED], {}, "skipped", id="all shed but a question"),
        pytest.param([SUPPORTED, FAILED], {}, "partial", id="one failed"),
        pytest.param([NO_CONTEXT], {"context": Context([])}, "skipped", id="nothing to check against"),
        pytest.param([NO_CONTEXT], {"context": Context([]), "cut_short": True}, "partial", id="broke off before that"),
    ],
)
def test_the_status_of_a_check(judgements: list[Judgement], options: dict[str, Any], status: str) -> None:
    assert report(*judgements, **options).status == status


JUDGEMENTS = st.lists(
    st.sampled_from([SUPPORTED, UNSUPPORTED, CONTRADICTED, SKIPPED, LATE, SHED, FAILED, NO_CONTEXT, INAPPLICABLE]),
    max_size=8,
)


@given(JUDGEMENTS)
def test_no_score_comes_of_nothing_checked(judgements: list[Judgement]) -> None:
    found = report(*judgements)
    checked = [each for each in judgements if each.verdict.label != "not_checked"]
    assert (found.score is None) == (not checked)
    assert (found.verdict in ("not_checked", "not_applicable")) == (not checked)
    assert (found.confidence is None) == (not checked)
    if checked:
        assert found.score == sum(each.verdict.label == "supported" for each in checked) / len(checked)


@given(JUDGEMENTS)
def test_one_more_support_never_lowers_the_score(judgements: list[Judgement]) -> None:
    before, after = score(judgements), score([*judgements, SUPPORTED])
    assert after is not None
    assert before is None or after >= before


@given(JUDGEMENTS, st.booleans())
def test_coverage_counts_every_claim_once(judgements: list[Judgement], truncated: bool) -> None:
    coverage = report(*judgements, truncated=truncated).coverage
    assert coverage
    assert coverage.claims_checked + coverage.claims_skipped == coverage.claims_total == len(judgements)


@given(JUDGEMENTS)
def test_flags_come_from_the_closed_list_in_its_order(judgements: list[Judgement]) -> None:
    flags = report(*judgements).flags
    assert list(flags) == [flag for flag in FLAGS if flag in flags]


def test_the_closed_list_is_the_documented_one() -> None:
    documented = (
        "unsupported_claims contradicted_claims numeric_mismatch misattributed quote_not_found quotes_all_rejected "
        "evidence_schema_violation unknown_citation budget_gap inconsistent_with_history low_confidence high_risk "
        "context_truncated answer_truncated verifier_degraded"
    )
    assert documented.split() == list(FLAGS)


# --- flags ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judgements", "options", "flag"),
    [
        pytest.param([UNSUPPORTED], {}, "unsupported_claims", id="unsupported"),
        pytest.param([CONTRADICTED], {}, "contradicted_claims", id="contradicted"),
        pytest.param([judgement("contradicted", flags=("misattributed",))], {}, "misattributed", id="of a verdict"),
        pytest.param([judgement(score=0.2)], {}, "low_confidence", id="low confidence"),
        pytest.param([SUPPORTED], {"choice": Choice(0, "x", "length")}, "answer_truncated", id="cut by its length"),
        pytest.param(
            [SUPPORTED], {"violations": (Violation("q", None, "a", "b"),)}, "evidence_schema_violation", id="shape"
        ),
        pytest.param([SUPPORTED], {"quotes": QuoteCounts(2, 0, 2)}, "quotes_all_rejected", id="all fields rejected"),
        pytest.param([judgement("unsupported", verifier="quote")], {}, "quotes_all_rejected", id="all prose rejected"),
        pytest.param([SUPPORTED], {"prompt": PromptSize(2050, 9000, True)}, "context_truncated", id="a prompt cut off"),
        pytest.param([FAILED], {}, "verifier_degraded", id="a failed verifier"),
        pytest.param([LATE], {}, "verifier_degraded", id="late"),
        pytest.param([SHED], {}, "verifier_degraded", id="shed"),
    ],
)
def test_each_problem_raises_its_flag(judgements: list[Judgement], options: dict[str, Any], flag: str) -> None:
    assert flag in report(*judgements, **options).flags
    assert flag not in report(SUPPORTED).flags


def test_a_truncated_prompt_is_reported_with_both_sizes_and_raises_the_risk() -> None:
    whole, cut = (
        report(SUPPORTED, prompt=PromptSize(9100, 9000)),
        report(SUPPORTED, prompt=PromptSize(2050, 9000, True)),
    )
    assert whole.flags == whole.warnings == ()
    (warning,) = cut.warnings
    assert "2050 tokens" in warning
    assert "at least 9000" in warning
    assert whole.risk
    assert cut.risk
    assert cut.risk.score > whole.risk.score
    assert "The model read at most 23% of its prompt." in cut.risk.factors
    assert cut.verdict == whole.verdict


def test_a_clean_answer_has_no_flag() -> None:
    found = report(SUPPORTED, SKIPPED, quotes=QuoteCounts(1, 1, 0), violations=())
    assert (found.flags, found.degraded) == ((), ())


def test_the_flag_of_a_verdict_that_did_not_decide_counts_too() -> None:
    unknown = Verdict("statement", "supported", 1.0, "exact", "r", flags=("unknown_citation",))
    both = replace(CONTRADICTED, verdicts=(CONTRADICTED.verdict, unknown))
    assert {"unknown_citation", "contradicted_claims"} <= set(report(both).flags)


def test_a_verifier_is_degraded_once_with_its_reason() -> None:
    assert report(FAILED, FAILED, LATE, SHED, SUPPORTED).degraded == (
        ("numeric", "error"),
        ("all", "timeout"),
        ("all", "overload"),
    )


# --- counts -----------------------------------------------------------------------------------------------------------


def quoted(validated: int, extracted: int = 1, pointer: str | None = None) -> Judgement:
    label: Label = "supported" if validated == extracted else "unsupported"
    return judgement(label, verifier="quote", kind="quote", pointer=pointer, extracted=extracted, validated=validated)


@pytest.mark.parametrize(
    ("judgements", "fields", "counts"),
    [
        pytest.param([SUPPORTED], None, None, id="none given"),
        pytest.param([quoted(1), quoted(0), quoted(1, 2)], None, QuoteCounts(4, 2, 2), id="in prose"),
        pytest.param([SUPPORTED], QuoteCounts(3, 1, 2, (("q", 2),)), QuoteCounts(3, 1, 2, (("q", 2),)), id="in fields"),
        pytest.param([quoted(1)], QuoteCounts(2, 2, 0), QuoteCounts(3, 3, 0), id="in both"),
        pytest.param([quoted(0, pointer="/q/0")], QuoteCounts(1, 0, 1), QuoteCounts(1, 0, 1), id="not twice"),
        pytest.param([judgement("not_checked", verifier="quote")], None, None, id="not checked"),
    ],
)
def test_quotations_are_counted(
    judgements: list[Judgement], fields: QuoteCounts | None, counts: QuoteCounts | None
) -> None:
    assert report(*judgements, quotes=fields).quotes == counts


@pytest.mark.parametrize(
    ("labels", "counts"),
    [
        ([], None),
        (["supported", "supported"], (2, 2, 0, 0.0)),
        (["supported", "contradicted"], (2, 1, 1, -0.2)),
        (["unsupported", "not_checked", "supported"], (3, 1, 1, -0.2)),
        (["not_checked", "supported"], (2, 1, 0, 0.0)),
    ],
    ids=["none", "all verified", "one wrong", "one wrong, one not checked", "one not checked"],
)
def test_numbers_are_counted_and_cost_confidence(labels: list[Label], counts: tuple[float, ...] | None) -> None:
    found = report(
        *(judgement(label, verifier="numeric", validated=int(label == "supported")) for label in labels)
    ).numeric
    if counts is None:
        assert found is None
    else:
        assert found
        assert (
            found.total_claims,
            found.verified_claims,
            found.unverified_claims,
            found.confidence_adjustment,
        ) == counts


def test_the_penalty_is_the_settings() -> None:
    policy = replace(Policy(), numeric=replace(Policy().numeric, confidence_penalty=0.35))
    found = report(judgement("contradicted", verifier="numeric"), policy=policy).numeric
    assert found
    assert found.confidence_adjustment == -0.35


def test_the_share_of_the_answer_that_was_read_is_weighed_by_length() -> None:
    each = [
        examined(choice=Choice(0, "x" * 100, "stop"), share=0.5, truncated=True),
        examined(choice=Choice(1, "x" * 300, "stop")),
    ]
    coverage = summarise("gw-1", each, CONTEXT, Policy()).coverage
    assert coverage
    assert coverage.answer_examined == pytest.approx(350 / 400)


def test_an_answer_without_text_is_examined_whole() -> None:
    coverage = report(choice=Choice(0, "", "tool_calls")).coverage
    assert coverage
    assert coverage.answer_examined == 1.0


def test_every_choice_has_its_own_result_and_the_answer_one_over_all() -> None:
    each = [
        examined(SUPPORTED, SUPPORTED, choice=Choice(0, "a", "stop")),
        examined(UNSUPPORTED, UNSUPPORTED, choice=Choice(1, "b", "stop")),
        examined(SKIPPED, choice=Choice(2, "c", "stop")),
    ]
    found = summarise("gw-1", each, CONTEXT, Policy())
    assert [(choice.index, choice.verdict, choice.score) for choice in found.choices] == [
        (0, "grounded", 1.0),
        (1, "ungrounded", 0.0),
        (2, "not_applicable", None),
    ]
    assert (found.verdict, found.score) == ("partially_grounded", 0.5)


def test_violations_of_all_choices_are_reported_and_empty_is_not_unchecked() -> None:
    one, two = Violation("q", 0, "string", "number"), Violation("r", None, "array", "null")
    each = [examined(violations=(one,)), examined(violations=(two,)), examined()]
    assert summarise("gw-1", each, CONTEXT, Policy()).violations == (one, two)
    assert report(violations=()).violations == ()
    assert report().violations is None


def test_warnings_of_request_and_reading_are_reported() -> None:
    assert report(warnings=("a",)).warnings == ("a",)
    found = summarise("gw-1", [examined(warnings=("b",))], CONTEXT, Policy(), warnings=("a",))
    assert found.warnings == ("a", "b")


# --- confidence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "level"),
    [
        (1.0, "very_high"),
        (0.9, "very_high"),
        (0.8, "high"),
        (0.7, "medium"),
        (0.5, "low"),
        (0.3, "very_low"),
        (0.0, "very_low"),
    ],
)
def test_confidence_has_a_level_and_a_recommendation(value: float, level: str) -> None:
    policy = Policy(confidence_weights=(("retrieval", 1.0),))
    confidence = report(judgement(score=value), policy=policy).confidence
    assert confidence
    assert (confidence.score, confidence.level) == (pytest.approx(value), level)
    assert confidence.recommendation


@pytest.mark.parametrize(
    ("certainty", "temperature", "extraction"),
    [(0.9, 1.0, 0.9), (None, 1.0, 0.5), (None, 0.0, 1.0), (None, 2.0, 0.0), (None, 5.0, 0.0), (None, None, None)],
    ids=["logprobs", "temperature", "cold", "hot", "beyond hot", "unknown"],
)
def test_the_models_own_certainty(certainty: float | None, temperature: float | None, extraction: float | None) -> None:
    choice = Choice(0, "x", "stop", certainty)
    confidence = report(SUPPORTED, choice=choice, temperature=temperature).confidence
    assert confidence
    assert (confidence.extraction, confidence.consistency) == (extraction, None)


def test_parts_that_are_unknown_do_not_count() -> None:
    """Without them the weights of retrieval (0.3) and source (0.25) share the whole."""
    context = Context([Source("s1", "user", "The sky is blue.")])
    confidence = report(judgement(score=0.5, cites="s1"), context=context).confidence
    assert confidence
    assert (confidence.retrieval, confidence.source) == (0.5, 0.7)
    assert confidence.score == pytest.approx((0.3 * 0.5 + 0.25 * 0.7) / 0.55)


def test_every_verdict_has_a_confidence_in_its_four_parts() -> None:
    context = Context([Source("s1", "user", "The sky is blue.")])
    choice = Choice(0, "x", "stop", 0.6)
    told = judgement(score=0.5, cites="s1")
    consistency = Consistency(0.5, compared=1, agreement=((0, "c1", 0.25),))
    (found,) = report(told, context=context, choice=choice, consistency=consistency).choices[0].judgements
    assert found.parts == ConfidenceParts(0.5, 0.7, 0.6, 0.25)
    assert found.confidence == pytest.approx(0.3 * 0.5 + 0.25 * 0.7 + 0.25 * 0.6 + 0.2 * 0.25)


def test_a_claim_that_no_earlier_answer_speaks_of_has_no_consistency() -> None:
    consistency = Consistency(0.5, compared=1, agreement=((0, "c9", 0.25),))
    (found,) = report(SUPPORTED, consistency=consistency).choices[0].judgements
    assert found.parts == ConfidenceParts(1.0)


def test_a_claim_that_was_not_checked_has_no_parts() -> None:
    (found,) = report(LATE).choices[0].judgements
    assert (found.confidence, found.parts) == (0.0, None)


def test_without_confidence_no_report_mentions_it() -> None:
    found = report(UNSUPPORTED, judgement(score=0.1), policy=Policy(has_confidence=False))
    assert found.confidence is None
    assert "low_confidence" not in found.flags
    assert [each.confidence for each in found.choices[0].judgements] == [None, None]
    assert found.risk is not None
    assert not any("onfidence" in factor for factor in found.risk.factors)


@pytest.mark.parametrize(
    "weights", [(), (("retrieval", 0.0), ("source", 0.0), ("extraction", 0.0))], ids=["none", "zero"]
)
def test_weights_of_nothing_do_not_divide_by_zero(weights: tuple[tuple[str, float], ...]) -> None:
    confidence = report(judgement(score=0.5), policy=Policy(confidence_weights=weights)).confidence
    assert confidence
    assert confidence.score == 0.5


@given(JUDGEMENTS, st.none() | st.floats(0, 1), st.none() | st.floats(0, 2))
def test_confidence_is_a_share(judgements: list[Judgement], certainty: float | None, temperature: float | None) -> None:
    choice = Choice(0, "x", "stop", certainty)
    confidence = report(*judgements, choice=choice, temperature=temperature).confidence
    assert confidence is None or -1e-9 <= confidence.score <= 1 + 1e-9


def test_nothing_supported_is_no_confidence_in_the_answer() -> None:
    """An answer whose every claim is contradicted is surely wrong: its use is not advised."""
    confidence = report(CONTRADICTED, CONTRADICTED, temperature=0.0).confidence
    assert confidence
    assert confidence.recommendation == "Do not use this answer as it is: the sources contradict 2 claims."


def test_the_verdict_of_no_judgements() -> None:
    assert answer_verdict([]) == "not_applicable"
    assert score([]) is None
