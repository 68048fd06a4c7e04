"""The recommendation of a report follows from verdict, flags and risk together, and contradicts none of them."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from groundwire.domain import Choice, Claim, Judgement, Label, Source, Verdict
from groundwire.evidence.index import Context
from groundwire.pipeline import verify
from groundwire.policy import Thresholds
from groundwire.report import ChoiceReport, Confidence, Consistency, PromptSize, Report
from groundwire.scoring.aggregate import FLAGS, answer_verdict, rate, score
from groundwire.scoring.rating import recommend

USE, CHECK, STOP = "This answer can be used", "Check this answer before you use it", "Do not use this answer as it is"


def judged(label: Label, skip: str | None = None) -> Judgement:
    verdict = Verdict("v", label, 0.5, "skipped" if skip else "", "")
    return Judgement(Claim("c", "A claim.", 0, 8, skip_reason=skip), verdict, 0.5)


def report(*labels: Label, flags: tuple[str, ...] = (), confidence: float = 0.95, skipped: int = 0) -> Report:
    """A rated report; the flags that labels raise are added."""
    judgements = (*map(judged, labels), *(judged("not_checked", "question") for _ in range(skipped)))
    raised = {*flags, *(f"{label}_claims" for label in labels if label in ("contradicted", "unsupported"))}
    found = Report(
        "gw-1",
        "complete",
        answer_verdict(judgements),
        score(judgements),
        flags=tuple(flag for flag in FLAGS if flag in raised),
        choices=(ChoiceReport(0, answer_verdict(judgements), score(judgements), judgements),),
        confidence=Confidence(confidence, "very_high" if confidence > 0.9 else "low", "") if labels else None,
    )
    return rate(found, Thresholds())


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (report("supported"), f"{USE}: the only checked claim is supported by the sources."),
        (report("supported", "supported"), f"{USE}: all 2 checked claims are supported by the sources."),
        (
            report("supported", "supported", "not_checked"),
            f"{USE}: all 2 checked claims are supported by the sources; 1 claim could not be checked.",
        ),
        (report("supported", "not_checked", "not_checked"), f"{CHECK}: 2 claims could not be checked."),
        (report(*["supported"] * 9, "unsupported"), f"{CHECK}: no source supports 1 claim."),
        (report("supported", "contradicted"), f"{STOP}: the sources contradict 1 claim."),
        (
            report("supported", "contradicted", "contradicted", "unsupported"),
            f"{STOP}: the sources contradict 2 claims and no source supports 1 claim.",
        ),
        (report("unsupported"), f"{STOP}: no source supports 1 claim."),
        (report("supported", flags=("low_confidence",)), f"{CHECK}: confidence in it is low."),
        (report("supported", confidence=0.5), f"{CHECK}: confidence in it is low."),
        (
            report("supported", flags=("inconsistent_with_history",)),
            f"{CHECK}: it contradicts an earlier answer.",
        ),
        (
            report("supported", flags=("context_truncated",)),
            f"{CHECK}: the model did not read all of its context.",
        ),
        (report("supported", flags=("unknown_citation",)), f"{CHECK}: it cites a source that does not exist."),
        (report("supported", flags=("quotes_all_rejected",)), f"{STOP}: none of its quotations is in the sources."),
        (report("not_checked"), "This answer was not checked: verify it before you use it."),
        (report(skipped=1), "Nothing in this answer can be checked against sources."),
    ],
)
def test_a_recommendation_is_one_plain_sentence(found: Report, told: str) -> None:
    assert recommend(found) == told


labels = st.lists(st.sampled_from(["supported", "unsupported", "contradicted", "not_checked"]), max_size=6)


@example(["not_checked"], set(), 0.0, 0.0, 0.0)
@example([], set(), 0.0, 0.0, 0.0)
@given(labels, st.sets(st.sampled_from(FLAGS)), st.floats(0, 1), st.floats(0, 1), st.none() | st.floats(0, 1))
def test_no_answer_is_recommended_against_its_verdict_its_flags_or_its_risk(
    labels: list[Label], flags: set[str], confidence: float, threshold: float, consistency: float | None
) -> None:
    found = report(*labels, flags=tuple(flags), confidence=confidence)
    history = None if consistency is None else Consistency(consistency, (), 3)
    found = rate(replace(found, consistency=history), Thresholds(risk=threshold))
    told = recommend(found)
    level = found.risk.level if found.risk else "low"
    if found.flags or level != "low" or found.verdict != "grounded":
        assert not told.startswith(USE)
    if "contradicted" in labels or level == "critical" or found.verdict == "ungrounded":
        assert told.startswith(STOP)
    assert all(each.recommendation == told for each in (found.confidence, found.risk) if each)
    assert told.count(".") == 1


def test_contradictions_and_recommendation_of_one_answer_agree() -> None:
    context = Context([Source("s1", "source", "The warranty lasts two years. The battery is not covered.")])
    found = verify([Choice(0, "The warranty lasts two years. The battery is covered.", "stop")], context)
    assert "contradicted_claims" in found.flags
    assert found.risk is not None
    assert found.confidence is not None
    assert found.risk.recommendation == found.confidence.recommendation
    assert found.risk.recommendation.startswith(STOP)


def test_a_truncated_prompt_is_reported_even_if_nothing_is_asserted() -> None:
    found = replace(report(skipped=1), flags=("context_truncated",), prompt=PromptSize(10, 100, is_truncated=True))
    assert recommend(rate(found, Thresholds())) == f"{CHECK}: the model did not read all of its context."
