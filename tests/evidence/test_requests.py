"""The intent of a question, by its wording."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.evidence.requests import intent_of


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("Who is the CEO of Acme?", "lookup"),
        ("When does the contract expire?", "lookup"),
        ("What was revenue in 2023?", "lookup"),
        ("How much does the Pro plan cost?", "lookup"),
        ("How long is the warranty?", "lookup"),
        ("Is the battery covered?", "lookup"),
        ("Does the plan include phone support?", "lookup"),
        ("Tell me the deadline.", "lookup"),
        ("Which office handles refunds?", "lookup"),
        ("Can I return an opened box?", "lookup"),
        ("How do I reset my password?", "lookup"),
        ("Compare the Basic and the Pro plan.", "compare"),
        ("What is the difference between Basic and Pro?", "compare"),
        ("Basic vs. Pro?", "compare"),
        ("Is Pro cheaper than Team?", "compare"),
        ("Which plan is better, Basic or Pro?", "compare"),
        ("Which of the two is the faster, A or B?", "compare"),
        ("How does Acme compare with Beta?", "compare"),
        ("Did revenue grow more in 2023 than in 2022?", "compare"),
        ("What are the pros and cons?", "compare"),
        ("How many employees does Acme have?", "count"),
        ("How often must the filter be cleaned?", "count"),
        ("What is the number of open tickets?", "count"),
        ("Count the offices in Europe.", "count"),
        ("List all side effects.", "list"),
        ("What are the side effects?", "list"),
        ("Which countries are covered?", "list"),
        ("Name three products.", "list"),
        ("What kinds of plans are there?", "list"),
        ("Give me a list of the plans.", "list"),
        ("Please list the exceptions", "list"),
        ("Why was the flight cancelled?", "why"),
        ("What caused the outage?", "why"),
        ("What is the reason for the delay?", "why"),
        ("How come it failed?", "why"),
        ("Why are there more tickets than last year?", "why"),
        ("Summarise the report.", "other"),
        ("Translate this into French.", "other"),
        ("Please write an e-mail to the customer.", "other"),
        ("Hello!", "other"),
        ("Thanks, that helps.", "other"),
        ("The report is attached.", "other"),
        ("", "other"),
    ],
)
def test_a_question_has_an_intent(question: str, intent: str) -> None:
    assert intent_of(question) == intent


@given(st.text(max_size=300))
def test_any_text_has_one(text: str) -> None:
    assert intent_of(text) in ("lookup", "compare", "count", "list", "why", "other")


def test_only_the_end_of_a_long_text_is_read() -> None:
    assert intent_of("Why? " + "word " * 1000 + "How many are there?") == "count"
