"""Initialisms of a claim that a source spells out."""

import pytest

from groundwire.domain import Claim, Source
from groundwire.evidence.index import Context
from groundwire.policy import Policy
from groundwire.verifiers.numbers import numeric
from groundwire.verifiers.selection import spell_out


def claim(text: str) -> Claim:
    return Claim("c1", text, 0, len(text))


@pytest.mark.parametrize(
    ("text", "source", "spelled"),
    [
        ("NOI rose.", "Net operating income fell.", "net operating income rose."),
        ("GDP rose.", "The gross domestic product fell.", "gross domestic product rose."),
        ("The FDA agreed.", "The Food and Drug Administration refused.", "The food and drug administration agreed."),
        ("The ROI was low.", "Return on investment was high.", "The return on investment was low."),
        ("COGS rose.", "The cost of goods sold fell.", "cost of goods sold rose."),
        ("R&D costs rose.", "Research and development costs fell.", "research and development costs rose."),
        ("The UN agreed.", "The United Nations refused.", "The united nations agreed."),
        (
            "EBITDA rose.",
            "Earnings before interest, taxes, depreciation and amortization fell.",
            "earnings before interest, taxes, depreciation and amortization rose.",
        ),
        pytest.param("CPI rose.", "The producer price index fell.", None, id="other initials"),
        pytest.param("NOI rose.", "NOI, the net operating income, fell.", None, id="used by the source"),
        pytest.param("NOI rose.", "Net operating income fell. New office inventory fell.", None, id="two readings"),
        pytest.param("NOI rose.", "The number of items fell.", None, id="function word"),
        pytest.param("NOI rose.", "Net. Operating income fell.", None, id="two sentences"),
        pytest.param("IT costs rose.", "Internal travel costs fell.", None, id="two small words"),
        pytest.param("It gives 5 MW.", "Mike Wood gives 5.", None, id="unit"),
        pytest.param("He noted it.", "Her net operating income fell.", None, id="no capitals"),
    ],
)
def test_initialisms_are_read_as_the_source_spells_them(text: str, source: str, spelled: str | None) -> None:
    assert spell_out(claim(text), Context([Source("s1", "source", source)])).text == (spelled or text)


@pytest.mark.parametrize(("amount", "label"), [("$5 million", "supported"), ("$6 million", "contradicted")])
def test_numbers_of_an_initialism_are_those_of_its_long_form(amount: str, label: str) -> None:
    context = Context([Source("s1", "source", "Net operating income was $5 million.")])
    verdict = numeric.verify(claim(f"NOI was {amount}."), context, Policy())
    assert verdict is not None
    assert verdict.label == label


def test_looking_up_initialisms_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundwire.evidence.index._MOST_SEARCHED", 1)
    context = Context([Source("s1", "source", "Net operating income fell. Gross domestic product fell.")])
    assert spell_out(claim("NOI rose."), context).text == "net operating income rose."
    assert spell_out(claim("GDP rose."), context).text == "GDP rose."
    assert spell_out(claim("NOI rose."), context).text == "net operating income rose."
