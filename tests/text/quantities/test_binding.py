"""What a quantity measures: NU3."""

from __future__ import annotations

from groundwire.text.quantities.binding import Binding, bind
from groundwire.text.quantities.grammar import find_quantities
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


def test_a_number_takes_the_date_that_stands_with_it() -> None:
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
