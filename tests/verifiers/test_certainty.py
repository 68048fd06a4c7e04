"""Numbers that settle a claim before a model is asked."""

import pytest

from groundwire.domain import Claim, Source, Verdict
from groundwire.evidence.index import Context
from groundwire.policy import Policy
from groundwire.verifiers.numbers import numeric
from groundwire.verifiers.signals import is_certain, is_stated_together

CONTEXT = Context(
    [
        Source("s1", "source", "Revenue was $4 million in 2023. The Oslo office employs 40 people."),
        Source("s2", "source", "Region: Nord\nRevenue: 12 million euros"),
        Source("s3", "document", "Lamps. The Bergen shop has 12 desks. It closes early.", 0, offset=700),
        Source("s4", "source", "The Bergen shop closes after 5 days. The Bergen shop is inspected three times a year."),
        Source(
            "s5", "source", "The Bergen shop may host 20 markets per calendar year. The trainee pays 5% of the fee."
        ),
        Source("s6", "source", "The Bergen shop charges $5 per bicycle. The Bergen shop serves 100 guests per week."),
        Source("s7", "source", "Version 6.2 is supported until 31 March."),
        Source("s9", "source", "Interns get 20 days of paid leave a year."),
        Source("s8", "source", "The refund of 45 euros has been approved but not paid yet."),
    ]
)


def checked(text: str) -> tuple[Claim, Verdict | None]:
    claim = Claim("c1", text, 0, len(text))
    return claim, numeric.verify(claim, CONTEXT, Policy())


@pytest.mark.parametrize(
    ("text", "settles"),
    [
        pytest.param("Revenue was $5 million in 2023.", True, id="the passage differs in the value alone"),
        pytest.param("The Oslo office employs 45 people.", True, id="a count"),
        pytest.param("The Bergen shop has 14 desks.", True, id="a document within a message"),
        pytest.param("The Bergen shop closes after 5 hours.", True, id="another unit of time"),
        pytest.param("The Bergen shop is inspected twice a year.", True, id="another frequency"),
        pytest.param("The Bergen shop may host 20 markets per quarter.", True, id="another period of a rate"),
        pytest.param("Version 6.3 is supported until 30 September.", False, id="two numbers differ"),
        pytest.param("Version 6.2 is supported until 30 September.", True, id="one of two numbers differs"),
        pytest.param("The Bergen shop may host 25 fairs per calendar year.", False, id="another thing counted"),
        pytest.param("The Bergen shop charges $6 per visitor.", False, id="counted by another thing"),
        pytest.param("The trainer pays 6% of the fee.", False, id="another word of the same root"),
        pytest.param("The Bergen shop serves 20 guests per working day.", False, id="a working day is no day"),
        pytest.param("Interns get 25 days of paid leave a year.", True, id="a rate behind what it measures"),
        pytest.param("Interns get 25 days of unpaid leave a year.", False, id="another thing measured"),
        pytest.param("The profitable Oslo office employs 45 people.", False, id="a further word of the claim"),
        pytest.param("The Oslo office employs 40 people.", False, id="the right value"),
        pytest.param("The Bergen office employs 40 people.", False, id="another subject"),
        pytest.param("The Oslo office employs people.", False, id="no number"),
        pytest.param("The Oslo office does not employ 45 people.", False, id="denied"),
    ],
)
def test_a_number_settles_a_claim_where_a_passage_states_all_the_rest(text: str, settles: bool) -> None:
    claim, verdict = checked(text)
    assert (verdict is not None and is_certain(claim, verdict, CONTEXT)) is settles


@pytest.mark.parametrize(
    ("text", "is_stated"),
    [
        pytest.param("The Oslo office employs 40 people.", True, id="in the same words"),
        pytest.param("The Oslo office employs 40 persons.", True, id="a synonym"),
        pytest.param("Interns get 25 days of paid leave a year.", True, id="a rate behind what it measures"),
        pytest.param("Interns get 25 days of unpaid leave a year.", False, id="another thing measured"),
        pytest.param("The profitable Oslo office employs 40 people.", False, id="a further word of the claim"),
        pytest.param("The Oslo office does not employ 40 people.", False, id="denied"),
        pytest.param("The refund of 45 euros has been paid.", False, id="a passage that denies something"),
    ],
)
def test_a_number_is_stated_together_with_the_other_words_or_their_synonyms(text: str, is_stated: bool) -> None:
    claim, verdict = checked(text)
    assert verdict is not None
    assert is_stated_together(claim, verdict, CONTEXT) is is_stated
