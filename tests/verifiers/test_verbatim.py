"""The exact check for whole clauses, and the verdicts that rest on it."""

from collections.abc import Iterator

import pytest

from groundwire import verify_claims
from groundwire.domain import Label, Source
from groundwire.evidence.index import Context
from groundwire.judge import Judge
from groundwire.verifiers.verbatim import find_verbatim

WHOLE = {
    "all of it": ("Injuries have been reported.", "Injuries have been reported."),
    "one of several": (
        "Injuries have been reported.",
        "Fires broke out. Injuries have been reported, and roads shut.",
    ),
    "second clause": ("Revenue grew by 5%.", "Profit fell, but revenue grew by 5%."),
    "with a citation": ("Revenue grew by 5%.", "Revenue grew by 5% [1]."),
    "behind an adverbial": ("The fee is refundable.", "In Germany, the fee is refundable."),
    "list item": ("The fee is refundable.", "Fees\n\n- The fee is refundable\n- No pets"),
    "numbered item": ("Ann Lee is the CEO.", "Name\n1. Ann Lee is the CEO."),
    "JSON string": ("The fee is refundable.", '{"note": "The fee is refundable.", "x": 1}'),
    "cell": ("Ann Lee is the CEO.", "| Ann Lee is the CEO | 5 |"),
    "bold": ("Ann Lee is the CEO.", "**Ann Lee is the CEO.**"),
    "behind a title": ("The fee is refundable.", "Refund policy\nThe fee is refundable."),
    "behind an underlined title": ("The city was founded in 1820.", "History\n===\nThe city was founded in 1820."),
    "wrapped": ("The city was founded in 1820.", "The city was founded in\n1820."),
    "behind an abbreviation": ("He met Dr. Smith in Rome.", "Not much is known. He met Dr. Smith in Rome."),
    "modal": ("Employees may work from home.", "Employees may work from home."),
}
PIECES = {
    "denied": ("Injuries have been reported.", "No injuries have been reported."),
    "denied on the line before": ("Injuries have been reported.", "No\ninjuries have been reported."),
    "declared untrue": ("The fee is refundable.", "It is not true that the fee is refundable."),
    "condition before": ("The fee is refundable.", "If you cancel in time, the fee is refundable."),
    "condition behind": ("The fee is refundable.", "In general, the fee is refundable, unless you cancel late."),
    "condition on the next line": ("The fee is refundable.", "The fee is refundable\nif you cancel before May."),
    "limit in time": ("The fee is refundable.", "The fee is refundable only before May."),
    "limit in place": ("Staff must wear helmets.", "Staff must wear helmets in zone B."),
    "limit in age": ("The drug is safe for children.", "The drug is safe for children over 12."),
    "attributed": ("The fee is refundable.", "Some say the fee is refundable."),
    "legend": ("The city was founded in 1820.", "According to legend, the city was founded in 1820."),
    "denied by a speaker": ("Ann Lee is the CEO.", "The company denied that Ann Lee is the CEO."),
    "denied across a line": ("Ann Lee is the CEO.", "The company denied that\nAnn Lee is the CEO."),
    "quantifier": ("Students passed the exam.", "Most students passed the exam."),
    "part of a subject": ("Employees may work from home.", "Only senior employees may work from home."),
}


@pytest.mark.parametrize(("claim", "text"), WHOLE.values(), ids=WHOLE)
def test_a_whole_clause_is_found_at_its_place(claim: str, text: str) -> None:
    source = Source("s", "source", text)
    found = find_verbatim(claim, source, Context([source]))
    assert found is not None
    assert " ".join(text[slice(*found)].split()).strip(".").lower() == claim.strip(".").lower()
    assert text[found[1] : found[1] + 1] != "."


@pytest.mark.parametrize(("claim", "text"), PIECES.values(), ids=PIECES)
def test_a_piece_of_a_clause_is_not_verbatim(claim: str, text: str) -> None:
    source = Source("s", "source", text)
    assert find_verbatim(claim, source, Context([source])) is None


def judged(claim: str, *texts: str) -> Iterator[tuple[Label, str, str]]:
    for judgement in verify_claims(claim, texts, judge=Judge()).choices[0].judgements:
        cited = judgement.verdict.citations
        yield judgement.verdict.label, judgement.verdict.method, cited[0].text if cited else ""


@pytest.mark.parametrize(
    ("label", "text"),
    [
        pytest.param("contradicted", "No injuries have been reported.", id="no"),
        pytest.param("contradicted", "No\ninjuries have been reported.", id="across a line"),
        pytest.param("contradicted", "It is not true that injuries have been reported.", id="not true"),
        pytest.param("contradicted", "The police denied that injuries have been reported.", id="denied"),
        pytest.param("contradicted", "It isn't true that injuries have been reported.", id="contracted"),
        pytest.param("supported", "Nobody denies that injuries have been reported.", id="denied twice"),
        pytest.param("supported", "Roads did not close, but injuries have been reported.", id="other clause"),
        pytest.param("supported", "There is no doubt: injuries have been reported.", id="colon"),
    ],
)
def test_a_denied_clause_contradicts_its_affirmation(label: Label, text: str) -> None:
    ((found, _, _),) = judged("Injuries have been reported.", text)
    assert found == label


def test_the_very_words_are_cited_even_where_another_passage_shares_more_words() -> None:
    near = "The walrus of the zoo in Oslo lives there with another walrus."
    ((label, method, cited),) = judged("The walrus lives in Oslo.", f"{near} The walrus lives in Oslo.")
    assert (label, method, cited) == ("supported", "exact", "The walrus lives in Oslo.")


VETOED = {
    "direction": (
        "The company raised its guidance.",
        "The company lowered its guidance. Cocoa prices remain elevated.",
    ),
    "direction, among others": (
        "The company raised its guidance.",
        "Acme makes chocolate. The company lowered its guidance. Cocoa prices remain elevated. It also met analysts.",
    ),
    "negation": ("The fee is refundable.", "The fee is not refundable. Deposits are refundable."),
    "quantifier": ("All rooms have a balcony.", "Some rooms have a balcony. All guests get breakfast."),
    "permission": ("Visitors may bring dogs.", "Visitors may not bring dogs. They may bring cats."),
    "opening": ("The shop opens on Monday.", "The shop closes on Monday. The museum opens late."),
    "decrease": ("Sales increased in Europe.", "Sales decreased in Europe. Temperatures increased."),
}


@pytest.mark.parametrize(("claim", "text"), VETOED.values(), ids=VETOED)
def test_a_veto_is_not_undone_by_an_unrelated_passage(claim: str, text: str) -> None:
    ((label, _, _),) = judged(claim, text)
    assert label == "contradicted"


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        pytest.param(
            "Acme raised its guidance.", "Acme lowered prices in May. In June, it raised its guidance.", id="it"
        ),
        pytest.param("The new CEO of Acme is Bob Ray.", "Ann Lee left Acme in May. The new CEO is Bob Ray.", id="name"),
    ],
)
def test_a_related_passage_that_states_the_claim_is_no_veto(claim: str, text: str) -> None:
    ((label, _, _),) = judged(claim, text)
    assert label == "supported"
