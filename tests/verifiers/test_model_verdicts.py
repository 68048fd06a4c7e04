"""Claims judged by an entailment model: when it is asked, the effect of its opinion, and the verdicts without it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.claims.answer import find_claims
from groundwire.domain import Claim, Label, Source, Verdict
from groundwire.evidence.index import Context
from groundwire.features.information_budget import assertion, judge_assertion
from groundwire.judge import BATCH, Judge
from groundwire.policy import Policy
from groundwire.verifiers.entailment import Entailment, Question, State
from groundwire.verifiers.signals import Combination, Signals, log_odds, read_combination

TEXT = (
    "The Harwick wind farm stands off the coast and came into service in May 2019. The wind farm is not profitable. "
    "Its operator, Norrin Energy, paid 4 million euros for a harbour that serves the maintenance ships."
)
CONTEXT = Context([Source("farm", "source", TEXT, title="the wind farm's page")])


@dataclass
class Fake:
    """A model that gives the same opinion on everything, and records its questions."""

    opinion: Entailment = field(default_factory=lambda: Entailment(0.9))
    state: State = "ready"
    error: Exception | None = None
    asked: list[Question] = field(default_factory=list)

    def entail(self, questions: Sequence[Question]) -> list[Entailment]:
        self.asked += questions
        if self.error:
            raise self.error
        return [self.opinion] * len(questions)


def judged(text: str, model: Fake, policy: Policy = Policy(), combination: Combination = Combination()) -> Verdict:
    return Judge(model, combination).one(Claim("c1", text, 0, len(text)), CONTEXT, policy).verdict


OPEN = "The operator keeps the fishermen content."


@pytest.mark.parametrize(
    ("opinion", "label"),
    [
        (Entailment(0.9), "supported"),
        (Entailment(0.2, 0.1), "unsupported"),
        (Entailment(0.2, 0.7), "contradicted"),
        (Entailment(0.0, 0.5), "contradicted"),
    ],
)
def test_an_opinion_becomes_a_label(opinion: Entailment, label: Label):
    verdict = judged(OPEN, Fake(opinion))
    assert (verdict.label, verdict.verifier, verdict.method) == (label, "statement", "model")
    assert verdict.validated == (label == "supported")


@pytest.mark.parametrize(
    ("opinion", "reason"),
    [
        (Entailment(0.9), "the wind farm's page supports it: \"Its operator, Norrin Energy, paid 4 million euros"),
        (Entailment(0.1, 0.8, ("content",)), "the wind farm's page says otherwise: \"Its operator"),
        (
            Entailment(0.1, 0.1, ("fishermen",)),
            'Not stated in the wind farm\'s page: "fishermen". Closest: "Its operator',
        ),
    ],
    ids=["supported", "contradicted", "not stated"],
)
def test_a_reason_is_a_sentence_with_the_passage(opinion: Entailment, reason: str):
    assert judged("The operator paid the fishermen.", Fake(opinion)).reason.startswith(reason)


def test_a_reason_calls_no_phrase_missing_that_is_in_the_passage_shown():
    verdict = judged("The operator paid the fishermen.", Fake(Entailment(0.1, 0.1, ("operator", "the fishermen"))))
    assert 'page: "the fishermen". Closest' in verdict.reason


@pytest.mark.parametrize("title", ["# Velmora Bike Insurance", "VELMORA BIKE INSURANCE", "Velmora bike insurance"])
def test_a_reason_quotes_a_statement_and_not_the_title(title: str):
    text = f"{title}\n\n## Payment\nThe premium is due once a year.\nYou may end the contract in December."
    claim = "Customers pay Velmora a premium for their bike insurance every month."
    context = Context([Source("terms", "source", text)])
    verdict = (
        Judge(Fake(Entailment(0.9)), Combination()).one(Claim("c1", claim, 0, len(claim)), context, Policy()).verdict
    )
    assert '"The premium is due once a year"' in verdict.reason


def test_an_unrelated_claim_shows_no_passage():
    verdict = judged("Penguins eat krill.", Fake(Entailment(0.01)))
    assert (verdict.reason, verdict.citations) == ("Not stated in any source.", ())


@pytest.mark.parametrize(
    ("claim", "label"),
    [
        ("The wind farm is not profitable.", "supported"),
        ("The wind farm is **not profitable**.", "supported"),
        ("The Harwick wind farm stands off the coast", "supported"),
    ],
)
@pytest.mark.parametrize("opinion", [Entailment(0.0, 1.0), Entailment(1.0)])
def test_a_whole_clause_of_a_source_is_not_sent_to_the_model(claim: str, label: Label, opinion: Entailment):
    model = Fake(opinion)
    verdict = judged(claim, model)
    assert (verdict.label, verdict.method, model.asked) == (label, "exact", [])


def test_a_sentence_that_a_source_denies_is_contradicted_without_the_model():
    context = Context([Source("news", "source", "No injuries have been reported by the ferry company.")])
    model = Fake(Entailment(1.0))
    claim = Claim("c1", "Injuries have been reported by the ferry company.", 0, 49)
    verdict = Judge(model).one(claim, context, Policy()).verdict
    assert (verdict.label, verdict.method, model.asked) == ("contradicted", "exact", [])


def test_a_wrong_quotation_stays_wrong_despite_the_model():
    verdict = judged("The page says “the wind farm is very profitable”.", Fake(Entailment(1.0)))
    assert (verdict.label, verdict.verifier) == ("unsupported", "quote")


def test_a_model_is_called_once_for_the_claims_of_an_answer_in_their_order():
    model = Fake()
    text = "The operator paid for ships. The farm earns nothing. It opened years ago."
    claims = find_claims(text, Policy()).claims
    Judge(model)(claims, CONTEXT, Policy())
    assert [question.claim for question in model.asked] == [claim.text for claim in claims]
    assert all("Norrin Energy" in question.evidence for question in model.asked)
    assert model.asked[2].lead


def test_a_model_is_not_called_where_only_numbers_are_checked():
    model = Fake()
    judged(OPEN, model, Policy(verifiers=("quote", "numeric")))
    assert model.asked == []


@pytest.mark.parametrize(("state", "degraded"), [("off", ""), ("loading", "loading"), ("failed", "error")])
def test_words_decide_without_a_model_and_its_state_is_reported(state: State, degraded: str):
    claim = Claim("c1", OPEN, 0, len(OPEN))
    alone = Judge().one(claim, CONTEXT, Policy())
    without = Judge(Fake(state=state)).one(claim, CONTEXT, Policy())
    assert replace(without.verdict, degraded="") == alone.verdict
    assert without.verdict.degraded == degraded
    assert without.is_final == (state == "off")


def test_words_decide_where_the_model_fails():
    claims = [Claim(f"c{n}", f"Ship {n} costs 5 million euros.", 0, 30) for n in range(3)]
    failed = Judge(Fake(error=RuntimeError("secret")))(claims, CONTEXT, Policy())
    alone = Judge()(claims, CONTEXT, Policy())
    assert [each.verdict.label for each in failed] == [each.verdict.label for each in alone]
    assert {verdict.degraded for each in failed for verdict in each.verdicts if verdict.verifier == "statement"} == {
        "error"
    }
    assert not any("secret" in verdict.reason for each in failed for verdict in each.verdicts)


def test_claims_that_are_reached_too_late_are_not_checked():
    claims = [Claim(f"c{n}", f"The ship number {n} is new.", 0, 24) for n in range(2 * BATCH)]
    model = Fake()
    over = Judge(model)(claims, CONTEXT, Policy(), lambda: len(model.asked) >= BATCH)
    assert [each.verdict.method for each in over] == ["model"] * BATCH + ["timeout"] * BATCH


def test_a_number_that_alone_differs_from_a_passage_is_settled_without_the_model():
    model = Fake(Entailment(0.99))
    verdict = judged("The Harwick wind farm came into service in May 2018.", model)
    assert (verdict.label, verdict.verifier, model.asked) == ("contradicted", "numeric", [])


def test_a_number_that_a_passage_about_the_same_states_otherwise_is_named_in_the_reason():
    fitted = Combination(Signals(model=1.0, wrong=-6.0))
    text = "The operator, Norrin Energy, gladly paid 5 million euros for a harbour that serves the maintenance ships."
    verdict = judged(text, Fake(Entailment(0.9)), combination=fitted)
    assert (verdict.label, verdict.method) == ("contradicted", "model")
    assert verdict.reason == (
        "the wind farm's page says 4 million euros, the answer says 5 million euros: "
        '"Its operator, Norrin Energy, paid 4 million euros for a harbour that serves the maintenance ships".'
    )


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("The wind farm is profitable.", "unsupported"),
        ("The wind farm is not profitable, as its page says.", "supported"),
        ("Norrin Energy operates the wind farm.", "supported"),
    ],
)
def test_a_passage_that_denies_the_claim_counts_against_it(text: str, label: Label):
    fitted = Combination(Signals(model=1.0, vetoed=-6.0))
    assert judged(text, Fake(Entailment(0.9)), combination=fitted).label == label


def test_an_alarm_about_numbers_that_is_not_upheld_raises_no_flag():
    claim = Claim("c1", "The operator gladly paid 5 million euros for a harbour.", 0, 56)
    judgement = Judge(Fake(Entailment(0.999))).one(claim, CONTEXT, Policy())
    assert judgement.verdict.label == "supported"
    assert [flag for verdict in judgement.verdicts for flag in verdict.flags] == []


def test_an_unknown_citation_is_flagged():
    claim = Claim("c1", OPEN, 0, len(OPEN), cited=("7",))
    assert Judge(Fake()).one(claim, CONTEXT, Policy()).verdict.flags == ("unknown_citation",)


SHARES = st.floats(0, 1)


@given(SHARES, SHARES, SHARES)
def test_more_support_by_the_model_never_lowers_the_score(one: float, other: float, coverage: float):
    low, high = sorted((one, other))
    combination = Combination(Signals(0.7, 0.4, -0.5, 0.3, -0.2, -1.0), 0.1)
    scores = [combination.probability(Signals(log_odds(each), coverage)) for each in (low, high)]
    assert scores[0] <= scores[1]


@pytest.mark.parametrize("text", ["[]", "{}", '{"weights": {"model": 1}}', '{"weights": 3, "bias": 0}', "x"])
def test_text_that_holds_no_combination_is_refused(text: str):
    with pytest.raises(ValueError, match=r"."):
        read_combination(text)


@given(st.text(max_size=80), st.text(max_size=200))
def test_any_claim_and_context_are_judged_without_an_error(text: str, source: str):
    context = Context([Source("s", "source", source), Source("t", "source", TEXT)])
    judgement = Judge(Fake(Entailment(0.3, 0.3, ("x",)))).one(Claim("c1", text, 0, len(text)), context, Policy())
    assert [verdict.reason for verdict in judgement.verdicts if verdict.method == "error"] == []


INSTRUCTION = Claim("c1", "Keep the fishermen content.", 0, 27, skip_reason="instruction")


@pytest.mark.parametrize(
    ("opinion", "label"),
    [
        (Entailment(0.9), "supported"),
        (Entailment(0.2, 0.7), "contradicted"),
        (Entailment(0.2, 0.1), "not_checked"),
    ],
)
def test_an_instruction_is_no_alarm_unless_a_source_contradicts_it(opinion: Entailment, label: Label):
    judgement = Judge(Fake(opinion)).one(INSTRUCTION, CONTEXT, Policy())
    assert (judgement.verdict.label, judgement.is_final) == (label, True)
    assert (judgement.verdict.method == "skipped") == (label == "not_checked")


def test_a_skipped_instruction_is_not_final_until_the_model_has_read_it():
    judgement = Judge(Fake(state="loading")).one(INSTRUCTION, CONTEXT, Policy())
    assert judgement.verdict.label == "not_checked"
    assert not judgement.is_final


def test_an_instruction_that_was_not_compared_in_time_is_not_called_skipped():
    judgement = Judge(Fake())([INSTRUCTION], CONTEXT, Policy(), is_over=lambda: True)[0]
    assert (judgement.verdict.method, judgement.is_skipped, judgement.is_final) == ("timeout", False, False)


def test_a_single_instruction_is_compared_with_the_sources():
    text = "Store the tablets in the fridge. Please keep the fishermen content."
    judgement = judge_assertion(assertion(text), CONTEXT, Policy(), Judge(Fake(Entailment(0.2, 0.7))))
    assert judgement.verdict.label == "contradicted"
    judgement = judge_assertion(assertion(text), CONTEXT, Policy(), Judge(Fake(Entailment(0.2, 0.1))))
    assert judgement.is_skipped
