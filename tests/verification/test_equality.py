"""TA2: two short answers are the same by value, dimension and words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.verification.equality import same_answer


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
    ],
)
def test_the_same_said_otherwise(one: str, other: str) -> None:
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
    ],
)
def test_something_else(one: str, other: str) -> None:
    assert not same_answer(one, other)
    assert not same_answer(other, one)


@given(st.text(max_size=60), st.text(max_size=60))
def test_it_is_symmetric_on_any_text(one: str, other: str) -> None:
    assert same_answer(one, other) == same_answer(other, one)
