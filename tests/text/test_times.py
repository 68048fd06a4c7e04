"""Dates as intervals of days."""

from __future__ import annotations

from datetime import date

import pytest

from groundwire.text.quantities import find_quantities
from groundwire.text.tolerance import compare

INTERVALS = [
    ("Q3 2024", "2024-07-01", "2024-09-30"),
    ("Q3'24", "2024-07-01", "2024-09-30"),
    ("Q3 FY24", "2024-07-01", "2024-09-30"),
    ("2024 Q2", "2024-04-01", "2024-06-30"),
    ("3Q24", "2024-07-01", "2024-09-30"),
    ("third quarter of 2024", "2024-07-01", "2024-09-30"),
    ("the fourth quarter of fiscal 2023", "2023-10-01", "2023-12-31"),
    ("3rd quarter 2024", "2024-07-01", "2024-09-30"),
    ("last quarter of 2024", "2024-10-01", "2024-12-31"),
    ("the final half of 2024", "2024-07-01", "2024-12-31"),
    ("H1 2023", "2023-01-01", "2023-06-30"),
    ("first half of 2023", "2023-01-01", "2023-06-30"),
    ("FY2024", "2024-01-01", "2024-12-31"),
    ("FY24", "2024-01-01", "2024-12-31"),
    ("fiscal 2024", "2024-01-01", "2024-12-31"),
    ("fiscal year 2024", "2024-01-01", "2024-12-31"),
    ("in 2024", "2024-01-01", "2024-12-31"),
    ("in 1856", "1856-01-01", "1856-12-31"),
    ("December 2024", "2024-12-01", "2024-12-31"),
    ("Dec. 2024", "2024-12-01", "2024-12-31"),
    ("2024-12-01", "2024-12-01", "2024-12-01"),
    ("2024/12/01", "2024-12-01", "2024-12-01"),
    ("Dec 1, 2024", "2024-12-01", "2024-12-01"),
    ("1 December 2024", "2024-12-01", "2024-12-01"),
    ("1st of December 2024", "2024-12-01", "2024-12-01"),
    ("13/01/2024", "2024-01-13", "2024-01-13"),
    ("31.12.2024", "2024-12-31", "2024-12-31"),
    ("the 1990s", "1990-01-01", "1999-12-31"),
    ("the nineties", "1990-01-01", "1999-12-31"),
    ("the '90s", "1990-01-01", "1999-12-31"),
    ("mid-2019", "2019-01-01", "2019-12-31"),
    ("2018-19", "2018-01-01", "2019-12-31"),
    ("2018/2019", "2018-01-01", "2019-12-31"),
    ("19th century", "1801-01-01", "1900-12-31"),
    ("twentieth century", "1901-01-01", "2000-12-31"),
]


@pytest.mark.parametrize(("text", "first", "last"), INTERVALS, ids=[row[0] for row in INTERVALS])
def test_a_date_is_read_as_its_days(text: str, first: str, last: str) -> None:
    (found,) = find_quantities(text)
    assert found.kind == "date"
    assert (date.fromordinal(int(found.low)), date.fromordinal(int(found.high))) == (
        date.fromisoformat(first),
        date.fromisoformat(last),
    )


def test_day_and_month_in_unknown_order_keep_both_readings() -> None:
    (found,) = find_quantities("12/01/2024")
    assert found.low == date(2024, 12, 1).toordinal()
    assert found.other == (date(2024, 1, 12).toordinal(),) * 2


@pytest.mark.parametrize(
    ("text", "unit", "value"), [("March 3", "month-day", 303), ("Q3", "quarter", 3), ("first half", "half", 1)]
)
def test_a_date_without_a_year_has_a_yearless_unit(text: str, unit: str, value: int) -> None:
    (found,) = find_quantities(text)
    assert (found.unit, found.low) == (unit, value)


def test_years_before_our_era_are_dates() -> None:
    (found,) = find_quantities("in 44 BC")
    assert found.kind == "date"
    assert found.high < 0


@pytest.mark.parametrize(
    "text", ["last quarter", "last half", "it may 5 times", "February 31, 2024 is no day", "may be 5", "2024-13-45"]
)
def test_text_that_is_no_date_is_not_read_as_one_day(text: str) -> None:
    assert not [found for found in find_quantities(text) if found.kind == "date" and found.low == found.high > 1000]


def test_the_last_century_is_no_numbered_one() -> None:
    assert not find_quantities("It was common in the last century.")


def test_two_years_of_a_period_are_two_dates() -> None:
    assert [found.text for found in find_quantities("between 2018 and 2019")] == ["2018", "2019"]


@pytest.mark.parametrize("written", ["12/31/2024", "12-31-2024", "31.12.2024", "2024-12-31", "2024/12/31", "12/31/24"])
@pytest.mark.parametrize(
    "behind", ["", ".", ",", ";", ":", "!", "?", ")", "]", '"', "'s", "…", " –", "—then", ".[1]", "\n", " 10:00"]
)
def test_a_date_is_read_before_any_punctuation(written: str, behind: str) -> None:
    found = [each for each in find_quantities(f"The sale closed on {written}{behind}") if each.kind == "date"]
    assert [(each.text, each.low) for each in found] == [(written, date(2024, 12, 31).toordinal())]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        pytest.param("2024-12-31T10:00:00Z", ["date", "time"], id="time behind T"),
        pytest.param("12/31/2024-01/15/2025", ["date", "date"], id="range"),
        pytest.param("12/31/2024/5", [], id="path"),
        pytest.param("1-2-2024-5", [], id="part number"),
    ],
)
def test_text_directly_after_a_date_is_read_separately(text: str, kinds: list[str]) -> None:
    assert [each.kind for each in find_quantities(text)] == kinds


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
def test_an_hour_or_day_after_an_article_is_no_length_of_time(text: str) -> None:
    assert all(each.kind == "currency" for each in find_quantities(text))
