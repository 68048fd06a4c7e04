"""FA1, FA2: values of a database as evidence for the numbers of a claim."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.types import Claim, Judgement, Label, Policy, Source
from proxy.verification.context.index import Context
from proxy.verification.facts import Value, facts_source
from proxy.verification.judge import judge
from proxy.verification.numbers.grammar import find_quantities

VALUES = (
    Value("Net operating income", "1250000", "USD", "Q3 2024"),
    Value("Net operating income", "1100000", "USD", "Q2 2024"),
    Value("Occupancy rate", "93.5", "%", "Q3 2024"),
    Value("DSCR", "1.25", "x", "Q3 2024"),
    Value("Loan term", "30", "years"),
    Value("Apartments", "240"),
)
LEASE = Source("lease", "document", "The lease for the garage ends on 30 June 2031. Pets are not allowed.")


def evidence(*others: Source) -> Context:
    source = facts_source("property", VALUES)
    assert source is not None
    return Context([source, *others])


def check(text: str, context: Context) -> Judgement:
    return judge(Claim("c1", text, 0, len(text), kind="numeric"), context, Policy())


@pytest.mark.parametrize(
    ("label", "claim"),
    [
        pytest.param("supported", "Net operating income was $1.25 million in Q3 2024.", id="rounded and scaled"),
        pytest.param("supported", "In Q2 2024 net operating income was $1.1M.", id="of another period"),
        pytest.param("supported", "Occupancy stood at 93.5%.", id="share"),
        pytest.param("supported", "The DSCR is 1.25x.", id="ratio"),
        pytest.param("supported", "The loan term is 30 years.", id="duration"),
        pytest.param("contradicted", "Net operating income was $1.5 million in Q3 2024.", id="wrong amount"),
        pytest.param("contradicted", "In Q3 2024 net operating income was $1.1M.", id="amount of another quarter"),
        pytest.param("contradicted", "Occupancy fell to 90%.", id="wrong share"),
        pytest.param("contradicted", "The DSCR is 1.4x.", id="wrong ratio"),
        pytest.param("contradicted", "The loan term is 25 years.", id="wrong duration"),
        pytest.param("not_checked", "The cap rate is 5%.", id="no such value"),
        pytest.param("not_checked", "Gross operating income was $2 million in Q3 2024.", id="value of something near"),
        pytest.param("not_checked", "The garage has 12 spaces.", id="no row"),
        pytest.param("not_checked", "Pets are allowed.", id="no number at all"),
    ],
)
def test_a_number_is_judged_by_the_value_of_what_it_measures(label: Label, claim: str) -> None:
    judgement = check(claim, evidence())
    assert judgement.verdict.label == label
    assert {citation.match for citation in judgement.verdict.citations} <= {"sql"}
    assert bool(judgement.verdict.citations) == (label != "not_checked")


def test_what_the_database_does_not_say_is_told_as_its_silence() -> None:
    verdict = check("The cap rate is 5%.", evidence()).verdict
    assert (verdict.method, verdict.flags) == ("no_fact", ())


def test_values_and_documents_support_side_by_side() -> None:
    context = evidence(LEASE)
    assert check("Occupancy stood at 93.5%.", context).verdict.citations[0].match == "sql"
    assert check("The lease for the garage ends on 30 June 2031.", context).verdict.label == "supported"
    assert check("Pets are allowed.", context).verdict.label == "contradicted"


def test_a_value_of_something_else_contradicts_nothing_beside_documents_either() -> None:
    assert check("The cap rate is 5%.", evidence(LEASE)).verdict.label != "contradicted"


def test_without_values_there_is_no_source() -> None:
    assert facts_source("property", ()) is None


labels = st.text("abcdefgh ", min_size=1, max_size=20).filter(str.strip)


@given(labels, st.decimals(1, 10**9, places=2, allow_nan=False), st.sampled_from(["", "%", "USD", "$", "km", "x"]))
def test_every_value_is_read_from_its_sentence_as_it_was_given(label: str, value: object, unit: str) -> None:
    source = facts_source("t", [Value(label, str(value), unit)])
    assert source is not None
    (found,) = [each for each in find_quantities(source.text) if any(map(str.isdigit, each.text))]
    assert str(value) in found.text
