"""The unit that a column, a key or a note gives to bare numbers: NU1, CX6."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.text.quantities.grammar import find_quantities
from groundwire.text.quantities.headings import as_given, given_by

NAMES = [
    # name, kind, unit, worth, scale
    ("mass (g)", "quantity", "mass", 0.001, 1.0),
    ("reaction time (ms)", "quantity", "time", 0.001, 1.0),
    ("yield (%)", "percentage", "%", 1.0, 1.0),
    ("% Change", "percentage", "%", 1.0, 1.0),
    ("Expected term (in years)", "quantity", "time", 31557600.0, 1.0),
    ("minutes", "quantity", "time", 60.0, 1.0),
    ("weight_g", "quantity", "mass", 0.001, 1.0),
    ("output_gwh_2021", "quantity", "energy", 3.6e12, 1.0),
    ("five star pct", "percentage", "%", 1.0, 1.0),
    ("fy2023 musd", "currency", "USD", 1.0, 1e6),
    ("revenue_usd_millions", "currency", "USD", 1.0, 1e6),
    ("price eur", "currency", "EUR", 1.0, 1.0),
    ("2019 €m", "currency", "EUR", 1.0, 1e6),
    ("RMB’Million", "currency", "CNY", 1.0, 1e6),
    ("US$’000", "currency", "USD", 1.0, 1e3),
    ("Revenue ($ in thousands)", "currency", "$", 1.0, 1e3),
    ("dollars in millions", "currency", "$", 1.0, 1e6),
    ("(in thousands, except per share data)", "count", "", 1.0, 1e3),
    ("Cash (Assets; $ in millions)", "currency", "$", 1.0, 1e6),
]


@pytest.mark.parametrize(("name", "kind", "unit", "worth", "scale"), NAMES, ids=[row[0] for row in NAMES])
def test_a_name_gives_its_unit(name: str, kind: str, unit: str, worth: float, scale: float) -> None:
    first = given_by(name)[0]
    assert (first.kind, first.unit, first.worth, first.scale) == (kind, unit, pytest.approx(worth), scale)


@pytest.mark.parametrize(
    "name", ["Sales", "Year", "Day", "2019", "pH", "n", "Total", "Earnings per share ($)", "temp min"]
)
def test_a_name_without_a_unit_gives_none(name: str) -> None:
    assert given_by(name) == ()


def test_lower_case_leaves_the_prefix_open() -> None:
    assert [each.worth for each in given_by("capacity_mw")] == [1e6, 1e-3]


@given(st.integers(2200, 10**6), st.sampled_from([row[0] for row in NAMES]))
def test_a_bare_number_is_worth_what_its_name_says(value: int, name: str) -> None:
    number, told = find_quantities(f"{value:,}")[0], given_by(name)[0]
    read = as_given(number, told)
    assert (read.kind, read.unit) == (told.kind, told.unit)
    assert read.low == pytest.approx(number.low * told.worth * told.scale)


def test_a_number_with_a_unit_of_its_own_keeps_it() -> None:
    number = find_quantities("3 kg")[0]
    assert as_given(number, given_by("length (m)")[0]) == number
