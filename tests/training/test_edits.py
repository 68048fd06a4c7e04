"""Examples made by changing what a claim and its evidence have in common."""

import random

import pytest

from training.edits import edited, extended, with_edits
from training.example import NOT_SUPPORTED, SUPPORTED, Example

EVIDENCE = (
    "The Harwick ferry leaves at 9 and at 14 on Monday. Tickets cost 12 euros and must be bought before boarding. "
    "The crossing was approved by Ms Lind in March, after the port had rejected an earlier plan of Mr Okafor."
)
OTHER = Example("The library opened after a long delay in October.", "", "Mr Pavey opened it.", SUPPORTED, "set")


def example(claim: str) -> Example:
    return Example(claim, "", EVIDENCE, SUPPORTED, "set", wrong=[])


@pytest.mark.parametrize(
    "claim",
    [
        "Tickets cost 12 euros and must be bought before boarding.",
        "The crossing was approved by Ms Lind in March.",
        "The Harwick ferry leaves on Monday.",
    ],
)
def test_a_change_on_one_side_makes_a_claim_wrong_and_on_both_leaves_it_right(claim: str) -> None:
    given = example(claim)
    found = [edited(given, OTHER, random.Random(seed)) for seed in range(80)]
    changes = {(each.claim != claim, each.evidence != EVIDENCE, each.label == SUPPORTED) for each in found if each}
    assert changes == {(True, False, False), (False, True, False), (True, True, True)}


def test_the_changed_words_of_a_wrong_claim_are_marked() -> None:
    given = example("Tickets cost 12 euros and must be bought before boarding.")
    found = [edited(given, OTHER, random.Random(seed)) for seed in range(40)]
    for each in filter(None, found):
        marked = [each.claim[start:end] for start, end in each.wrong or ()]
        assert bool(marked) == (each.label != SUPPORTED)


def test_a_phrase_of_another_claim_is_not_supported_unless_the_evidence_has_it_too() -> None:
    given = example("Tickets must be bought before boarding.")
    found = [extended(given, OTHER, random.Random(seed)) for seed in range(40)]
    assert {each.label for each in found if each} == {SUPPORTED, NOT_SUPPORTED}
    assert all("in October" in each.claim for each in found if each)
    assert all(("in October" in each.evidence) == (each.label == SUPPORTED) for each in found if each)


def test_claims_that_are_wrong_or_far_from_their_evidence_are_left_alone() -> None:
    far = example("Nobody has ever swum across this stretch of water.")
    wrong = Example("Tickets cost 12 euros.", "", EVIDENCE, NOT_SUPPORTED, "set")
    assert with_edits([wrong], 1.0, random.Random(1)) == [wrong]
    assert all(edited(far, OTHER, random.Random(seed)) is None for seed in range(20))
