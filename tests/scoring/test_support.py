"""The support of an answer is that of its weakest claim."""

from groundwire.domain import Claim, Judgement, Verdict
from groundwire.scoring.aggregate import answer_support, support


def judged(*verdicts: tuple[str, float]) -> Judgement:
    given = tuple(Verdict("statement", label, score, "words", "") for label, score in verdicts)  # type: ignore[arg-type]
    return Judgement(Claim("c1", "x", 0, 1), given[0], 1.0, given)


def test_weakest_claim_speaks_for_the_answer():
    assert answer_support([judged(("supported", 0.9)), judged(("unsupported", 0.2))]) == 0.2


def test_claim_is_as_good_as_its_least_verdict():
    assert support(judged(("supported", 0.9), ("contradicted", 0.1))) == 0.1


def test_verdict_that_checked_nothing_is_not_counted():
    assert support(judged(("supported", 0.9), ("not_checked", 0.0))) == 0.9


def test_answer_of_which_nothing_was_checked_has_no_support():
    assert answer_support([judged(("not_checked", 0.0))]) is None
    assert answer_support([]) is None
