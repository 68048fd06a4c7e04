"""Differences between a claim and a passage that has nearly all its words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.text.reading import Reading
from groundwire.text.words import are_opposed, stem
from groundwire.verifiers.vetoes import find_vetoes


def kinds(claim: str, evidence: str) -> list[str]:
    return [veto.kind for veto in find_vetoes(Reading(claim), Reading(evidence))]


@pytest.mark.parametrize(
    ("kind", "claim", "evidence"),
    [
        ("negation", "The plant does not produce batteries.", "The plant produces batteries."),
        ("negation", "The plant produces batteries.", "The plant doesn’t produce batteries."),
        ("negation", "There was evidence of fraud.", "There was no evidence of fraud."),
        ("negation", "Old software can be returned.", "Old software cannot be returned unless the software is faulty."),
        ("negation", "Dogs can enter the park on Mondays.", "Dogs cannot enter the park, except guide dogs."),
        ("direction", "Revenue fell in March.", "Revenue rose in March."),
        ("direction", "The drug was ineffective in adults.", "The drug was effective in adults."),
        ("direction", "Acme sold its stake in Beta.", "Acme bought its stake in Beta."),
        ("quantifier", "All patients recovered.", "Some patients recovered."),
        ("quantifier", "None of the patients recovered.", "Many of the patients recovered."),
        ("quantifier", "Every patient recovered.", "Not all patients recovered."),
        ("name", "Dr. Jones treated the patient.", "Dr. Smith treated the patient."),
        ("name", "The plant in Texas closed.", "The plant in Ohio closed."),
        ("role", "Beta acquired Acme.", "Acme acquired Beta."),
        ("role", "Acme Corporation was acquired by Beta Systems.", "Acme Corporation acquired Beta Systems."),
    ],
)
def test_a_change_of_meaning_is_vetoed(kind: str, claim: str, evidence: str) -> None:
    assert kind in kinds(claim, evidence)


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        pytest.param("The plant does not make batteries.", "The plant doesn't produce batteries.", id="both deny"),
        pytest.param("It was not only cheap but good.", "It was cheap and good.", id="not only"),
        pytest.param(
            "It was approved in May.", "It was not approved in April but was approved in May.", id="asserted too"
        ),
        pytest.param(
            "Faulty software can be returned.",
            "Software cannot be returned unless it is faulty.",
            id="the exception to a denial",
        ),
        pytest.param("Do not yank the tick.", "If you yank the tick, it breaks.", id="only a condition"),
        pytest.param("The drug was not effective.", "The drug was ineffective.", id="denied by a prefix"),
        pytest.param("Some patients recovered.", "All patients recovered.", id="all implies some"),
        pytest.param(
            "Type the last name of the guest in the left field and type the first name in the right field.",
            "Type the last name of the guest in the left field.",
            id="both opposites in the claim",
        ),
        pytest.param("Beta was acquired by Acme.", "Acme acquired Beta.", id="passive"),
        pytest.param("Beta met Acme.", "Acme met Beta.", id="symmetric verb"),
        pytest.param("Mr. Smith left.", "President Smith left.", id="titles are no names"),
        pytest.param("Revenue rose.", "Revenue rose while costs fell.", id="opposite of something else"),
        pytest.param(
            "Without written consent the flat may not be let.",
            "Letting the flat requires written consent.",
            id="twice denied is asked for",
        ),
        pytest.param(
            "The tool, not the agent, rotates the files.",
            "The files are rotated by the tool instead of the agent.",
            id="set apart on both sides",
        ),
        pytest.param("First-year students cannot apply.", "Last year students did not apply.", id="part of a compound"),
    ],
)
def test_the_same_in_other_words_is_not_vetoed(claim: str, evidence: str) -> None:
    assert kinds(claim, evidence) == []


def test_the_reason_names_the_words() -> None:
    (veto,) = find_vetoes(Reading("Revenue fell in March."), Reading("Revenue rose in March."))
    assert '"fell"' in veto.reason
    assert '"rose"' in veto.reason


@given(st.text())
def test_no_text_vetoes_itself(text: str) -> None:
    assert find_vetoes(Reading(text), Reading(text)) == ()


@given(
    st.sampled_from(["rise", "fell", "effective", "legal", "win"]),
    st.sampled_from(["fall", "rose", "ineffective", "lost"]),
)
def test_opposition_is_mutual(one: str, other: str) -> None:
    assert are_opposed(stem(one), stem(other)) == are_opposed(stem(other), stem(one))
