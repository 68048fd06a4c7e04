"""Claims judged by a language model: it decides alone, exact checks come before it, rules only object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.claims.answer import find_claims
from groundwire.domain import Claim, Judgement, Label, Source, Unavailable
from groundwire.evidence.index import Context
from groundwire.judge import Judge
from groundwire.policy import Policy
from groundwire.verifiers.entailment import Entailment, Opinion, Question, State

TEXT = "Norrin Energy paid 4 million euros for the harbour in 2019. No injuries have been reported so far."
CONTEXT = Context([Source("farm", "source", TEXT, title="the report")])
STATED, DENIED, SILENT = Entailment(0.9, 0.02), Entailment(0.03, 0.9), Entailment(0.03, 0.05)


@dataclass
class Fake:
    """A language model that gives the same opinion on everything, and records its questions."""

    opinion: Opinion = STATED
    state: State = "ready"
    asked: list[Question] = field(default_factory=list)

    def entail(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        self.asked += questions
        return [self.opinion] * len(questions)


def judged(text: str, model: Fake, context: Context = CONTEXT, policy: Policy = Policy()) -> Judgement:
    judge = Judge(model, max_chars=4000, fallback=Judge())
    return judge.one(Claim("c1", text, 0, len(text)), context, policy)


OPEN = "The operator was lucky so far."


@pytest.mark.parametrize(
    ("opinion", "label"), [(STATED, "supported"), (DENIED, "contradicted"), (SILENT, "unsupported")]
)
def test_its_answer_is_the_label(opinion: Entailment, label: Label) -> None:
    verdict = judged(OPEN, Fake(opinion)).verdict
    assert (verdict.label, verdict.method, verdict.degraded) == (label, "model", "")


@given(
    supported=st.floats(0, 1),
    share=st.floats(0, 1),
    text=st.sampled_from([OPEN, "Norrin Energy gladly paid 5 million euros.", "Injuries have been reported so far."]),
    name=st.sampled_from(["strict", "balanced", "lenient"]),
)
def test_a_claim_is_contradicted_only_if_that_is_likelier_than_unmentioned(
    supported: float, share: float, text: str, name: str
) -> None:
    contradicted = (1 - supported) * share
    policy = Policy(name=name)  # type: ignore[arg-type]
    judgement = judged(text, Fake(Entailment(supported, contradicted)), policy=policy)
    if share < 0.5:
        assert judgement.verdict.label != "contradicted"
    labels = {each.label for each in judgement.verdicts}
    assert labels == {judgement.verdict.label}


@pytest.mark.parametrize(
    ("text", "objection"),
    [
        ("Norrin Energy gladly paid 5 million euros for the harbour.", "The check of numbers disagrees:"),
        ("Injuries have been reported so far.", 'The check of wording disagrees: the report denies "'),
    ],
)
def test_a_rule_that_disagrees_lowers_confidence_and_is_named(text: str, objection: str) -> None:
    doubted, plain = judged(text, Fake(STATED)), judged(OPEN, Fake(STATED))
    assert doubted.verdict.label == plain.verdict.label == "supported"
    assert objection in doubted.verdict.reason
    assert "disagrees" not in plain.verdict.reason
    assert (doubted.confidence or 0) < (plain.confidence or 0)


def test_a_rule_that_disagrees_with_a_rejection_is_named() -> None:
    report = Source("farm", "source", "Profit was 80 million in 2022 and 100 million in 2023.", title="the report")
    text = "Profit rose by 25 percent from 2022 to 2023."
    derived, silent = (judged(text, Fake(opinion), Context([report])) for opinion in (DENIED, SILENT))
    for judgement in (derived, silent):
        assert judgement.verdict.label != "supported"
        assert "The check of numbers disagrees: The source states" in judgement.verdict.reason
        assert "25 percent follows from the source:" in judgement.verdict.reason
    assert derived.verdict.score > DENIED.supported
    denied = judged("Injuries have been reported so far.", Fake(SILENT)).verdict
    assert (denied.label, denied.score) == ("unsupported", SILENT.supported)
    assert "The check of wording disagrees: the report denies" in denied.reason


def test_a_number_that_leans_on_a_sentence_is_sent_to_the_model() -> None:
    accounts = Context([Source("farm", "source", "Revenue was 5 million in 2019. Costs were 7 million in 2019.")])
    model = Fake(DENIED)
    judge = Judge(model, max_chars=4000, fallback=Judge())
    claim = Claim("c1", "It was 7 million.", 0, 17, lead="Revenue for 2019 is reported.")
    assert judge.one(claim, accounts, Policy()).verdict.label == "contradicted"
    assert [each.lead for each in model.asked] == ["Revenue for 2019 is reported."]


def test_a_wrong_number_that_the_model_calls_unmentioned_is_not_contradicted() -> None:
    judgement = judged("Norrin Energy gladly paid 5 million euros for the harbour.", Fake(SILENT))
    assert judgement.verdict.label == "unsupported"
    assert "numeric_mismatch" not in judgement.verdict.flags


def test_a_number_that_alone_differs_is_settled_without_the_model() -> None:
    model = Fake(STATED)
    verdict = judged("Norrin Energy paid 5 million euros for the harbour.", model).verdict
    assert (verdict.label, verdict.flags, model.asked) == ("contradicted", ("numeric_mismatch",), [])


def test_the_exact_words_of_a_source_are_not_sent_to_the_model() -> None:
    model = Fake(SILENT)
    assert judged("Norrin Energy paid 4 million euros for the harbour in 2019.", model).verdict.label == "supported"
    assert model.asked == []


def test_a_quotation_that_no_source_has_is_rejected_despite_the_model() -> None:
    verdict = judged('The report says "the harbour was a bargain for the company".', Fake(STATED)).verdict
    assert (verdict.label, verdict.flags) == ("unsupported", ("quote_not_found",))


def test_it_reads_the_whole_context_and_the_claim_as_written() -> None:
    model = Fake(STATED)
    context = Context([Source("a", "source", "NOI is net operating income. " + TEXT), Source("b", "tool", "Rain.")])
    judged("**NOI** rose a lot [1].", model, context)
    (asked,) = model.asked
    assert asked.claim == "NOI rose a lot ."
    assert [source.text for source in asked.sources] == [source.text for source in context.sources]


def test_of_a_long_context_it_reads_the_parts_that_come_closest() -> None:
    filler = " ".join(f"Paragraph {n} speaks of gardens and their many flowers." for n in range(900))
    model, context = Fake(STATED), Context([Source("a", "source", filler), Source("b", "source", TEXT + " " + filler)])
    judged("The harbour was bought by Norrin Energy.", model, context)
    (asked,) = model.asked
    assert sum(len(source.text) for source in asked.sources) <= 4100
    assert "Norrin Energy paid 4 million euros" in "".join(source.text for source in asked.sources)


@pytest.mark.parametrize(
    ("cause", "reason"), [("timeout", "timeout"), ("unreachable", "unavailable"), ("no_verdict", "no_verdict")]
)
def test_without_an_answer_the_fallback_judges_and_the_verdict_is_degraded(cause: str, reason: str) -> None:
    judgement = judged(OPEN, Fake(Unavailable(cause)))  # type: ignore[arg-type]
    assert judgement.verdict.method != "model"
    assert {each.degraded for each in judgement.verdicts} == {reason}
    assert not judgement.is_final


def test_a_model_that_raises_is_degraded_too() -> None:
    class Broken(Fake):
        def entail(self, questions: Sequence[Question]) -> Sequence[Opinion]:
            raise RuntimeError

    assert judged(OPEN, Broken()).verdicts[0].degraded == "error"


def test_both_halves_of_a_call_come_to_the_same_as_the_whole() -> None:
    claims = find_claims(f"{OPEN} Norrin Energy paid 4 million euros for the harbour in 2019. Why?", Policy()).claims
    judge = Judge(Fake(DENIED), max_chars=4000, fallback=Judge())
    opened = judge.open(claims, CONTEXT, Policy())
    assert [question.claim for question in opened.questions] == [OPEN]
    assert judge.close(opened, [DENIED], CONTEXT, Policy()) == judge(claims, CONTEXT, Policy())
