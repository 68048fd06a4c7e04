"""Comparison within written precision or a given tolerance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.text.quantities import Quantity, find_quantities
from groundwire.text.tolerance import Relation, compare


def read(text: str) -> Quantity:
    (found,) = find_quantities(text)
    return found


PAIRS = [
    # claimed, stated, relation
    ("$4.2M", "$4,187,332", "rounded"),
    ("$4.2M", "4.2 million dollars", "exact"),
    ("$4.2M", "$4.3M", "different"),
    ("$4.23M", "$4.2M", "open"),
    ("$4.2M", "$4.2B", "different"),
    ("$4.2M", "€4.2M", "incomparable"),
    ("$4.2M", "US$4.2M", "exact"),
    ("US$4.2M", "A$4.2M", "incomparable"),
    ("-5%", "5%", "different"),
    ("$1,234", "$(1,234)", "exact"),
    ("12%", "12.4%", "rounded"),
    ("2%", "1.5%", "different"),
    ("2 kg", "2.4 kg", "different"),
    ("about 2 kg", "2.4 kg", "rounded"),
    ("13%", "12.4%", "different"),
    ("12 percent", "12%", "exact"),
    ("2 percentage points", "2%", "incomparable"),
    ("50 bps", "0.5 percentage points", "converted"),
    ("40%", "2 in 5", "converted"),
    ("two-thirds of users", "67%", "converted"),
    ("5 km", "5,000 m", "converted"),
    ("330 m", "1,083 feet", "converted"),
    ("5 kg", "5 g", "different"),
    ("5 kg", "5 km", "incomparable"),
    ("2 years", "24 months", "converted"),
    ("2 years", "18 months", "different"),
    ("3 months", "90 days", "converted"),
    ("20 °C", "68 °F", "converted"),
    ("375 °F", "375 degrees", "exact"),
    ("375 °F", "375", "exact"),
    ("5 km", "5", "exact"),
    ("about 50 people", "52 people", "rounded"),
    ("about 50 people", "80 people", "different"),
    ("more than 200 people", "214 people", "rounded"),
    ("more than 200 people", "190 people", "different"),
    ("more than 200 people", "less than 200 people", "different"),
    ("up to 10%", "9.5%", "rounded"),
    ("within 40 days", "within 30 days", "different"),
    ("within 20 days", "within 30 days", "different"),
    ("within 30 days", "up to 30 days", "exact"),
    ("within 1 month", "within 30 days", "converted"),
    ("at least 18 years", "at least 16 years", "different"),
    ("at least 30 days", "within 30 days", "different"),
    ("over 20 people", "up to 60 people", "open"),
    ("over 80 people", "up to 60 people", "different"),
    ("30 days", "within 30 days", "exact"),
    ("20 days", "within 30 days", "open"),
    ("40 days", "within 30 days", "different"),
    ("40 days", "at least 30 days", "open"),
    ("12%", "10–15 %", "open"),
    ("10–15 %", "10-15%", "exact"),
    ("10–15 %", "10–20 %", "different"),
    ("Q3 2024", "third quarter of 2024", "exact"),
    ("Q3 2024", "Q2 2024", "different"),
    ("Q3 2024", "Q3 2023", "different"),
    ("in 2024", "Dec 1, 2024", "rounded"),
    ("Dec 1, 2024", "in 2024", "open"),
    ("March 3", "March 3, 2021", "exact"),
    ("March 4", "March 3, 2021", "different"),
    ("12/01/2024", "1 December 2024", "exact"),
    ("12/01/2024", "12 January 2024", "exact"),
    ("in 2024", "2023", "different"),
    ("3:30 pm", "15:30", "exact"),
    ("3:30 pm", "4:30 pm", "different"),
    ("1.5x", "1.5 times higher", "exact"),
]


@pytest.mark.parametrize(("claimed", "stated", "relation"), PAIRS, ids=[f"{a} | {b}" for a, b, _ in PAIRS])
def test_written_precision_decides(claimed: str, stated: str, relation: str) -> None:
    assert compare(read(claimed), read(stated)).value == relation


@pytest.mark.parametrize(
    ("claimed", "stated", "tolerance", "is_match"),
    [
        ("$105", "$100", 0.05, True),
        ("$106", "$100", 0.05, False),
        ("51%", "50%", 0.02, True),
        ("52%", "50%", 0.02, False),
        ("Dec 8, 2024", "Dec 1, 2024", 7, True),
        ("Dec 9, 2024", "Dec 1, 2024", 7, False),
    ],
)
def test_a_given_tolerance_replaces_written_precision(
    claimed: str, stated: str, tolerance: float, is_match: bool
) -> None:
    assert compare(read(claimed), read(stated), tolerance).is_match is is_match


def test_a_cell_is_read_at_the_scale_of_its_table() -> None:
    assert compare(read("$1,452.4 million"), read("1,452.4"), scale=1e6) is Relation.EXACT
    assert compare(read("$1,452.4 thousand"), read("1,452.4"), scale=1e6) is Relation.DIFFERENT


FORMS = st.sampled_from(["${:,}", "{:,} %", "{:,} kg", "{:,} people", "€{:,} million", "{:,} km/h"])


@given(st.integers(1, 10**9), FORMS)
def test_a_quantity_matches_itself(value: int, form: str) -> None:
    quantity = read(form.format(value))
    assert compare(quantity, quantity) is Relation.EXACT


@given(st.integers(1, 10**6), FORMS)
def test_a_quantity_never_matches_its_thousandfold(value: int, form: str) -> None:
    small, large = read(form.format(value)), read(form.format(value * 1000))
    assert not compare(small, large).is_match
    assert not compare(large, small).is_match
