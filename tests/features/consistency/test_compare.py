"""Selection of earlier answers, severity of contradictions, and the score."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundwire.domain import Claim
from groundwire.features.consistency import EarlierAnswer, EarlierAnswers, compare, entity_history
from groundwire.features.statements import relative_dates
from groundwire.policy import Policy
from tests.features.consistency.answers import DAY, THEN, after, beside, judged
from tests.steps import growth

PRICE_20, PRICE_35 = "The Pro plan costs $20 per month.", "The Pro plan costs $35 per month."
FACTS = (
    "Acme has 50 employees.",
    "Acme has 80 employees.",
    "The CEO of Acme is Maria Lopez.",
    "John Smith was CEO of Acme until 2020.",
    "The Pro plan does not include phone support.",
    "The Pro plan includes phone support.",
    "The founders are Anna Weber and Bob Stone.",
    "Acme was founded in 1998.",
    "It costs $10.",
    "Revenue rose in 2023.",
)


def earlier(name: str, day: int, answer: str) -> EarlierAnswer:
    return EarlierAnswer(name, THEN + day * DAY, answer)


def test_a_contradiction_names_both_statements_the_exchange_and_its_time() -> None:
    (found,) = after(f"Hello. {PRICE_20}", f"It is simple. {PRICE_35}").contradictions
    assert (found.statement, found.earlier, found.exchange, found.at) == (PRICE_35, PRICE_20, "x1", THEN)
    assert found.reason.startswith("This answer says $35, an earlier one said $20.")


def test_the_newest_earlier_answer_about_the_same_thing_is_compared() -> None:
    history = [earlier("old", 0, PRICE_20), earlier("new", 1, PRICE_35), earlier("beside", 2, "Acme has 50 employees.")]
    assert beside(history, PRICE_35, days=3).contradictions == ()
    assert [each.exchange for each in beside(history, PRICE_20, days=3).contradictions] == ["new"]


def test_history_counts_by_its_times_and_not_by_its_order() -> None:
    history = [earlier("new", 1, PRICE_35), earlier("old", 0, PRICE_20)]
    assert beside(history, PRICE_35, days=3) == beside(history[::-1], PRICE_35, days=3)


def test_without_history_there_is_no_score() -> None:
    found = beside([], PRICE_20)
    assert (found.score, found.compared) == (None, 0)


def test_history_about_other_things_gives_no_score() -> None:
    assert after("Water boils at 100 °C.", PRICE_20).score is None


def test_the_score_falls_with_every_contradiction_among_what_could_be_compared() -> None:
    agreeing = after(f"{PRICE_20} Acme has 50 employees.", f"{PRICE_20} Acme has 50 employees.")
    half = after(f"{PRICE_20} Acme has 50 employees.", f"{PRICE_35} Acme has 50 employees.")
    none = after(f"{PRICE_20} Acme has 50 employees.", f"{PRICE_35} Acme has 900 employees.")
    assert agreeing.score == 1.0
    assert half.score == pytest.approx(1 - 0.75 / 2)
    assert none.score is not None
    assert half.score > none.score >= 0.0


@pytest.mark.parametrize(
    ("severity", "earlier", "answer"),
    [
        pytest.param("low", "Acme has 1,013 employees.", "Acme has 1,031 employees.", id="a few per cent"),
        pytest.param("medium", "Acme has 50 employees.", "Acme has 60 employees.", id="a sixth"),
        pytest.param("high", "Acme has 50 employees.", "Acme has 80 employees.", id="far off"),
        pytest.param("critical", "Revenue was $4 million in 2023.", "Revenue was $4 billion in 2023.", id="scale"),
        pytest.param("high", "Tickets are refundable.", "Tickets are not refundable.", id="denied"),
        pytest.param("medium", "Most plans include backups.", "Few plans include backups.", id="most and few"),
        pytest.param("low", "The founders are Ann Ray and Bo Li.", "The founders are Ann Ray, Bo Li and Al Fox.",
                     id="one item more"),
        pytest.param("high", "The founders are Ann Ray and Bo Li.", "The founders are Cy Low and Al Fox.",
                     id="no item in common"),
    ],
)  # fmt: skip
def test_severity_follows_from_what_differs(severity: str, earlier: str, answer: str) -> None:
    assert [each.severity for each in after(earlier, answer).contradictions] == [severity]


def test_sources_that_support_or_contradict_the_answer_change_the_severity() -> None:
    graveness = [
        after("Acme has 50 employees.", "Acme has 80 employees.", label=label).contradictions[0].severity
        for label in ("supported", "unsupported", "contradicted")
    ]
    assert graveness == ["medium", "high", "critical"]


@pytest.mark.parametrize(
    ("asked", "earlier", "question", "answer", "is_contradiction"),
    [
        pytest.param("How much is the basic plan?", "The plan costs $10.", "How much is the pro plan?",
                     "The plan costs $20.", False, id="other plan in the question"),
        pytest.param("How much is the plan?", "The plan costs $10.", "What does the plan cost?", "The plan costs $20.",
                     True, id="same question in other words"),
        pytest.param("How many people work at Acme?", "It has 50 employees.", "How large is Beta?",
                     "It has 80 employees.", False, id="it is another company"),
        pytest.param("How many people work at Acme?", "It has 50 employees.", "How large is Acme?",
                     "It has 80 employees.", True, id="it is the same company"),
        pytest.param("What was Acme's revenue in 2022?", "Revenue was $4 million.", "What was Acme's revenue in 2023?",
                     "Revenue was $5 million.", False, id="year in the question"),
        pytest.param("What was Acme's revenue in 2023?", "Revenue was $4 million.", "Tell me about Acme",
                     "Revenue was $5 million in 2023.", True, id="year in one question"),
    ],
)  # fmt: skip
def test_the_question_supplies_details_that_the_answer_omits(
    asked: str, earlier: str, question: str, answer: str, is_contradiction: bool
) -> None:
    assert bool(after(earlier, answer, asked=asked, question=question).contradictions) == is_contradiction


def test_a_statement_about_today_applies_only_to_that_day() -> None:
    warm, cold = "The temperature today is 25 degrees.", "The temperature today is 10 degrees."
    assert after(cold, warm, days=1).contradictions == ()
    assert len(after(cold, warm, days=0.01).contradictions) == 1


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [  # THEN is 15 June 2025, a Sunday
        pytest.param("today", "2025-06-15", "2025-06-15", id="today"),
        pytest.param("yesterday", "2025-06-14", "2025-06-14", id="yesterday"),
        pytest.param("next week", "2025-06-16", "2025-06-22", id="next week"),
        pytest.param("last month", "2025-05-01", "2025-05-31", id="last month"),
        pytest.param("next quarter", "2025-07-01", "2025-09-30", id="next quarter"),
        pytest.param("last year", "2024-01-01", "2024-12-31", id="last year"),
    ],
)
def test_relative_dates_are_read_from_the_day_of_the_exchange(text: str, first: str, last: str) -> None:
    from datetime import date

    (found,) = relative_dates(f"It rained {text}.", THEN)
    assert (date.fromordinal(int(found.low)).isoformat(), date.fromordinal(int(found.high)).isoformat()) == (
        first,
        last,
    )


def test_a_question_in_an_answer_contradicts_nothing() -> None:
    assert after(PRICE_20, "Does the Pro plan cost $35 per month?").contradictions == ()


def test_the_history_of_a_name_lists_all_its_mentions_in_order() -> None:
    history = [earlier("b", 1, "Maria Lopez left Acme."), earlier("a", 0, "The CEO of Acme is Maria Lopez.")]
    entities = {entity.name: entity for entity in entity_history(history)}
    assert [mention.exchange for mention in entities["Maria Lopez"].mentions] == ["a", "b"]
    assert entities["Maria Lopez"].mentions[0].statement == "The CEO of Acme is Maria Lopez."


answers_of_facts = st.lists(st.sampled_from(FACTS), min_size=1, max_size=4, unique=True).map(" ".join)


@settings(max_examples=40)
@given(st.lists(answers_of_facts, max_size=4), answers_of_facts)
def test_the_score_is_a_share_and_every_contradiction_is_of_this_answer(history: list[str], answer: str) -> None:
    found = beside([earlier(str(day), day, text) for day, text in enumerate(history)], answer, days=9)
    assert found.score is None or 0.0 <= found.score <= 1.0
    assert all(
        each.statement in answer and each.earlier in history[int(each.exchange)] for each in found.contradictions
    )
    assert (found.score is not None) == (found.compared > 0) >= bool(found.contradictions)


@settings(max_examples=40)
@given(answers_of_facts, st.sampled_from(FACTS))
def test_an_answer_given_again_contradicts_nothing(answer: str, fact: str) -> None:
    assert after(fact, fact, days=0.01).contradictions == ()


@settings(max_examples=40)
@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_can_be_compared(one: str, other: str) -> None:
    found = after(one, other)
    assert found.score is None or 0.0 <= found.score <= 1.0


@pytest.mark.slow
def test_a_long_history_is_compared_in_linear_time() -> None:
    sites = "Rome Oslo Bern Lima Cairo Paris Tokyo Delhi Quito Lagos".split()
    text = " ".join(
        f"The {site} site of Acme has {at + 10} employees and opened in 1990." for at, site in enumerate(sites)
    )
    days = [earlier(str(day), day, text.replace("Acme", f"Company {day}")) for day in range(100)]
    said = [f"The {site} site of Company 7 has {at + 50} employees." for at, site in enumerate(sites)]
    judgements = [judged(Claim(f"c{at}", text, 0, len(text))) for at, text in enumerate(said)]

    def work(past: EarlierAnswers) -> object:
        return compare([(0, judgements)], past, Policy(), at=THEN + 200 * DAY)

    assert growth(work, EarlierAnswers(days[:25]), EarlierAnswers(days)) < 6
    found = compare([(0, judgements)], EarlierAnswers(days), Policy(), at=THEN + 200 * DAY)
    assert [each.exchange for each in found.contradictions] == ["7"] * len(sites)
