"""Two short answers are the same as whole propositions, with quantities compared by value and dimension."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.features.trace import same_answer


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$5M", "5 million dollars"),
        ("$5M", "$5.0 million"),
        ("$4.2M", "$4,187,332"),
        ("Profit was $5M", "The profit was 5,000,000 dollars"),
        ("$5M in 2023", "$5M"),
        ("5 km", "5000 m"),
        ("3 hours", "180 minutes"),
        ("42", "42.0"),
        ("5", "five"),
        ("12 percent", "12%"),
        ("March 5, 2024", "2024-03-05"),
        ("2023", "In 2023."),
        ("Paris", "The capital of France is Paris."),
        ("Lee and Kim", "Kim, Lee"),
        ("Lee and Kim", "Kim and Lee"),
        ("yes", "True"),
        ("dr. LEE", "Dr. Lee"),
        ("Ann Lee is the CEO.", "The CEO is Ann Lee."),
        ("Ann Lee", "Ann Lee is the CEO."),
        ("Profit was $5M", "Profit is $5,000,000"),
        ("Revenue rose by 5%", "Revenue rose by 5 percent"),
        ("It takes 3 hours", "It takes 180 minutes"),
        ("$2M", "$5M - $3M = $2M"),
        ("Therefore, the total is 12.", "12"),
        ("Profit in 2023 was $5M.", "$5M"),
        ("5", "Acme has 5 employees."),
        ("No", "False"),
        ("The warranty isn't valid.", "The warranty is not valid."),
        ("Lee and Kim are the founders.", "The founders are Kim and Lee."),
        ("The meeting is on 2024-03-05", "The meeting is on March 5, 2024"),
    ],
)
def test_answers_in_different_words_are_the_same(one: str, other: str) -> None:
    assert same_answer(one, other)
    assert same_answer(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$5M", "$6M"),
        ("$5M", "€5M"),
        ("$5M", "5 km"),
        ("$5M", "5%"),
        ("$5M", "$5B"),
        ("2023", "2024"),
        ("$5M in 2022", "$5M in 2023"),
        ("Paris", "Lyon"),
        ("Lee", "Lee's brother"),
        ("yes", "no"),
        ("profitable", "not profitable"),
        ("Lee beats Kim", "Kim beats Lee"),
        ("$5M", "unknown"),
        ("", ""),
        ("Bob Ray is the CEO.", "Ann Lee is the CEO."),
        ("Ann Lee is the CEO.", "Ann Lee is the CFO."),
        ("Ann Lee is the CEO of Acme.", "Ann Lee is the CEO of Beta."),
        ("Ann Lee is the CEO.", "Ann Lee is not the CEO."),
        ("Ann Lee is the CEO.", "Ann Lee isn't the CEO."),
        ("Ann Lee was the CEO.", "Ann Lee is the CEO."),
        ("Lee is taller than Kim.", "Kim is taller than Lee."),
        ("Lee is Kim's boss.", "Kim is Lee's boss."),
        ("The bus is red.", "The car is red."),
        ("Revenue was $5M.", "Profit was $5M."),
        ("Ann's salary is $5k.", "Bob's salary is $5k."),
        ("Costs rose 5%.", "Costs fell 5%."),
        ("Profit was $5M in 2022.", "Profit was $5M in 2023."),
        ("Costs were $3M and revenue was $5M.", "Costs were $5M and revenue was $3M."),
        ("$5M", "Profit was not $5M."),
        ("5 km", "5 miles"),
        ("All plans are free.", "Some plans are free."),
        ("The plan may be free.", "The plan is free."),
        ("No refunds are given.", "Refunds are given."),
        ("Bob", "Ann is the boss of Bob."),
    ],
)
def test_something_else(one: str, other: str) -> None:
    assert not same_answer(one, other)
    assert not same_answer(other, one)


@pytest.mark.parametrize(
    ("answer", "derived", "question", "is_same"),
    [
        ("Ann Lee", "Ann Lee is the CEO.", "Who is the CEO?", True),
        ("Ann Lee", "Ann Lee is the treasurer.", "Who is the CEO?", False),
        ("Paris", "The capital of France is Paris.", "What is the capital?", True),
        ("$5M", "Profit was $5M.", "What was profit in 2023?", True),
        ("$5M", "Revenue was $5M.", "What was profit?", False),
    ],
)
def test_a_bare_answer_is_completed_by_its_question(answer: str, derived: str, question: str, is_same: bool) -> None:
    assert same_answer(answer, derived, question) is is_same
    assert same_answer(derived, answer, question) is is_same


@given(st.text(max_size=60), st.text(max_size=60))
def test_it_is_symmetric_on_any_text(one: str, other: str) -> None:
    assert same_answer(one, other) == same_answer(other, one)
