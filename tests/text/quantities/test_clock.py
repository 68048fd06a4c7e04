"""Times of day and durations as they are written and spoken: NU1."""

from __future__ import annotations

import pytest

from groundwire.text.quantities.grammar import find_quantities
from groundwire.text.quantities.tolerance import compare

SAME = [
    ("twelve and twenty-four hours", "at 4 pm", "at 16:00"),
    ("with minutes", "at 8.30 pm", "at 20:30"),
    ("a spoken hour at the end", "Come at four.", "Come at 4 pm."),
    ("a spoken hour before a comma", "Not before eight, I have choir.", "Not before 8 pm."),
    ("half past", "at half past eight", "at 20:30"),
    ("noon", "at noon", "at 12 pm"),
    ("midnight", "until midnight", "until 12 am"),
    ("a finishing time", "She won in 2:24:37.", "She needed 2 hours, 24 minutes and 37 seconds."),
    ("a copied time", "The log ends with 2:24:37", "It lasted 2:24:37"),
    ("an hour", "It takes about an hour.", "It takes about 60 minutes."),
    ("half an hour", "It takes half an hour.", "It takes 30 minutes."),
]
OTHER = [
    ("another half of the day", "at 4 am", "at 16:00"),
    ("another hour", "Come at four.", "Come at 5 pm."),
    ("swapped minutes", "She won in 2:24:37.", "She needed 2 hours, 42 minutes and 37 seconds."),
    ("midnight and noon", "at noon", "at midnight"),
]


def matches(one: str, other: str) -> bool:
    (first,), (second,) = find_quantities(one), find_quantities(other)
    return compare(first, second).is_match


@pytest.mark.parametrize(("one", "other"), [row[1:] for row in SAME], ids=[row[0] for row in SAME])
def test_a_time_is_the_same_however_it_is_written(one: str, other: str) -> None:
    assert matches(one, other)


@pytest.mark.parametrize(("one", "other"), [row[1:] for row in OTHER], ids=[row[0] for row in OTHER])
def test_another_time_is_another_one(one: str, other: str) -> None:
    assert not matches(one, other)


@pytest.mark.parametrize("text", ["The rate stood at four.", "They have four employees.", "Give it at four places."])
def test_a_number_in_words_is_no_time_of_day(text: str) -> None:
    assert [each.kind for each in find_quantities(text)] == ["count"]


@pytest.mark.parametrize("text", ["It costs $20 an hour.", "Take it twice a day.", "an hour later"])
def test_what_counts_by_the_hour_is_no_length_of_time(text: str) -> None:
    assert all(each.kind == "currency" for each in find_quantities(text))
