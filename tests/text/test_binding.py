"""The things that quantities measure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.text.binding import Binding, as_given, bind, given_by
from groundwire.text.quantities import find_quantities
from groundwire.text.words import words


def bound(text: str) -> dict[str, Binding]:
    return {binding.quantity.text: binding for binding in bind(text, words(text), find_quantities(text))}


def test_each_number_keeps_the_words_of_its_clause() -> None:
    found = bound("Revenue was $4.2M and costs were $3.1M.")
    assert found["$4.2M"].own == {"revenu"}
    assert found["$3.1M"].own == {"cost"}
    assert found["$3.1M"].has_subject


def test_a_further_verb_keeps_the_subject_of_the_first() -> None:
    found = bound("The cold segment grew 16% and contributed 38% of revenue.")
    assert found["16%"].own == {"cold", "segment", "grew"}
    assert found["38%"].own == {"cold", "segment", "contribut", "revenu"}


def test_an_attribute_is_no_further_verb() -> None:
    found = bound("Cloud revenue was $4M and adjusted profit was $1M.")
    assert "cloud" not in found["$1M"].own


def test_a_part_is_of_what_the_whole_is_of() -> None:
    assert {"amino", "acid"} <= bound("Nine out of the 20 amino acids are essential.")["Nine"].own


def test_one_subject_is_shared_by_a_list_of_numbers() -> None:
    found = bound("Adverse events occurred in 18% of the drug group and 7% of the placebo group.")
    assert not found["7%"].has_subject
    assert "placebo" in found["7%"].own
    assert "event" in found["7%"].shared


def test_a_number_takes_the_date_that_goes_with_it() -> None:
    found = bound("Revenue rose from $3M in 2022 to $4M in 2023.")
    assert [date.text for date in found["$3M"].dates] == ["2022"]
    assert [date.text for date in found["$4M"].dates] == ["2023"]


def test_a_leading_date_holds_for_all() -> None:
    found = bound("In 2022, revenue was $3M and profit $1M.")
    assert [date.text for date in found["$1M"].dates] == ["2022"]


def test_a_cell_has_its_column_and_shares_its_row_s_label() -> None:
    found = bound("Cloud revenue | 2024: 812.5 | 2023: 640.0")
    assert found["640.0"].shared == {"cloud", "revenu"}
    assert [date.text for date in found["640.0"].dates] == ["2023"]


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
def test_a_bare_number_takes_unit_and_scale_from_its_name(value: int, name: str) -> None:
    number, told = find_quantities(f"{value:,}")[0], given_by(name)[0]
    read = as_given(number, told)
    assert (read.kind, read.unit) == (told.kind, told.unit)
    assert read.low == pytest.approx(number.low * told.worth * told.scale)


def test_a_number_with_a_unit_of_its_own_keeps_it() -> None:
    number = find_quantities("3 kg")[0]
    assert as_given(number, given_by("length (m)")[0]) == number
