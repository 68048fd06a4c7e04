"""Numbers that follow from stated ones."""

from __future__ import annotations

import pytest

from groundwire.text.quantities import find_quantities
from groundwire.verifiers.numbers.arithmetic import Operand, derive

DERIVED = [
    ("difference", "Sales rose by $20 million", "$120 million and $100 million", "$120 million − $100 million"),
    ("growth", "Sales grew 20%", "$120 million and $100 million", "= 20 %"),
    ("decline without a sign", "Sales fell 17%", "$100 million and $120 million", "= -16.67 %"),
    ("points", "Margin rose 2.5 percentage points", "46.5% and 44.0%", "46.5% − 44.0%"),
    ("sum", "In total 214 patients", "128 patients; 86 patients", "128 + 86"),
    ("sum of three", "Together they have 60 shops", "10 shops; 20 shops; 30 shops", "10 + 20 + 30"),
    ("share", "Cloud is 25% of total sales", "$50 million; $200 million", "= 25 %"),
    ("average", "An average of 20 visits", "10 visits; 30 visits", "(10 + 30) / 2"),
    ("ratio", "The ratio was 2.5x", "$500; $200", "$500 / $200"),
    ("amount per count", "Each of them cost $50 per unit", "$1,000; 20 units", "$1,000 / 20"),
]


@pytest.mark.parametrize(("claim", "stated", "formula"), [row[1:] for row in DERIVED], ids=[row[0] for row in DERIVED])
def test_a_computed_number_shows_how(claim: str, stated: str, formula: str) -> None:
    derivation = derive(find_quantities(claim)[0], claim, list(map(Operand, find_quantities(stated))), None)
    assert derivation is not None
    assert formula in derivation.formula


NOT_DERIVED = [
    ("wrong growth", "Sales grew 25%", "$120 million and $100 million"),
    ("wrong direction", "Sales fell 20%", "$120 million and $100 million"),
    ("no cue", "Sales were $20 million", "$120 million and $100 million"),
    ("wrong total", "In total 215 patients", "128 patients; 86 patients"),
    ("other currency", "Sales rose by $20 million", "€120 million and €100 million"),
    ("percentages make no growth", "Margin grew 5.7%", "46.5% and 44.0%"),
]


@pytest.mark.parametrize(("claim", "stated"), [row[1:] for row in NOT_DERIVED], ids=[row[0] for row in NOT_DERIVED])
def test_nothing_else_is_derived(claim: str, stated: str) -> None:
    assert derive(find_quantities(claim)[0], claim, list(map(Operand, find_quantities(stated))), None) is None


def test_a_fall_is_no_rise_where_the_periods_are_known() -> None:
    old, new = find_quantities("$1,930 and $2,750")
    operands = [Operand(old, day=1.0), Operand(new, day=2.0)]
    for text, follows in (("Cash rose by $820", True), ("Cash fell by $820", False)):
        assert (derive(find_quantities(text)[0], text, operands, None) is not None) == follows
