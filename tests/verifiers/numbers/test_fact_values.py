"""Values of a database as evidence for the numbers of a claim."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.backends.loading import load_judge
from groundwire.domain import Claim, Judgement, Label, Source
from groundwire.evidence.index import Context
from groundwire.judge import Judge
from groundwire.policy import Policy
from groundwire.text.quantities import find_quantities
from groundwire.verifiers.numbers.facts import Period, Value, facts_source

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
    return Context([facts_source("property", VALUES), *others])


def check(text: str, context: Context) -> Judgement:
    return Judge().one(Claim("c1", text, 0, len(text), kind="numeric"), context, Policy())


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


def test_a_number_that_the_database_lacks_is_reported_as_no_fact() -> None:
    verdict = check("The cap rate is 5%.", evidence()).verdict
    assert (verdict.method, verdict.flags) == ("no_fact", ())


def test_values_and_documents_support_side_by_side() -> None:
    context = evidence(LEASE)
    assert check("Occupancy stood at 93.5%.", context).verdict.citations[0].match == "sql"
    assert check("The lease for the garage ends on 30 June 2031.", context).verdict.label == "supported"
    assert check("Pets are allowed.", context).verdict.label == "contradicted"


def test_an_unrelated_value_contradicts_nothing_with_documents_either() -> None:
    assert check("The cap rate is 5%.", evidence(LEASE)).verdict.label != "contradicted"


FAILED = facts_source("property", ())
PARTLY = facts_source("property", [Value("Occupancy rate", "93.5", "%"), Value("Cap rate", None, "%", "Q3 2024")])
BROCHURE = Source("brochure", "document", "The building has a lobby and a garden. Rent was $40 per square foot.")


@pytest.mark.parametrize(
    ("label", "claim"),
    [
        pytest.param("not_checked", "Occupancy stood at 93.5%.", id="share"),
        pytest.param("not_checked", "Net operating income was $1.25 million in Q3 2024.", id="amount"),
        pytest.param("not_checked", "The building has 240 apartments.", id="count"),
        pytest.param("not_checked", "The loan matures on 30 June 2031.", id="date"),
        pytest.param("unsupported", "The tenants own a yacht in Monaco.", id="no number"),
        pytest.param("supported", "The building has a garden.", id="another source says so"),
        pytest.param("supported", "Rent was $40 per square foot.", id="another source gives the number"),
        pytest.param("contradicted", "Rent was $55 per square foot.", id="another source differs"),
    ],
)
def test_a_database_that_gave_nothing_makes_no_number_unsupported(label: Label, claim: str) -> None:
    judgement = check(claim, Context([BROCHURE, FAILED]))
    assert judgement.verdict.label == label
    if label == "not_checked":
        assert judgement.verdict.method == "no_fact"
        assert not any(verdict.flags for verdict in judgement.verdicts)


@pytest.mark.parametrize(
    ("label", "claim"),
    [
        pytest.param("not_checked", "The cap rate was 5% in Q3 2024.", id="the value is NULL"),
        pytest.param("supported", "The occupancy rate is 93.5%.", id="the value is there"),
        pytest.param("contradicted", "The occupancy rate is 80%.", id="the value is another"),
        pytest.param("unsupported", "The elevator weighs 900 kg.", id="no query is about it"),
    ],
)
def test_null_leaves_only_its_own_value_open(label: Label, claim: str) -> None:
    assert check(claim, Context([BROCHURE, PARTLY])).verdict.label == label


PERIODS = facts_source(
    "periods",
    [Period("Fiscal Q3 2024", "2024-02-01", "2024-04-30"), Period("Fiscal Q4 2024", "2024-05-01", "2024-07-31")],
)


@pytest.mark.parametrize(
    ("label", "claim"),
    [
        pytest.param("supported", "Fiscal Q3 2024 ran from February 1, 2024 to April 30, 2024.", id="both ends"),
        pytest.param("supported", "Fiscal Q4 2024 ended on 31 July 2024.", id="end"),
        pytest.param("contradicted", "Fiscal Q4 2024 ended on 31 December 2024.", id="another end"),
        pytest.param("contradicted", "Fiscal Q3 2024 began on May 1, 2024.", id="of another period"),
    ],
)
def test_dates_are_checked_against_a_table_of_periods(label: Label, claim: str) -> None:
    assert check(claim, Context([PERIODS])).verdict.label == label


labels = st.text("abcdefgh ", min_size=1, max_size=20).filter(str.strip)


@given(labels, st.decimals(1, 10**9, places=2, allow_nan=False), st.sampled_from(["", "%", "USD", "$", "km", "x"]))
def test_every_value_is_read_from_its_sentence_as_it_was_given(label: str, value: object, unit: str) -> None:
    source = facts_source("t", [Value(label, str(value), unit)])
    (found,) = [each for each in find_quantities(source.text) if any(map(str.isdigit, each.text))]
    assert str(value) in found.text


@pytest.mark.parametrize("judge", [Judge(), load_judge()], ids=["words", "model"])
def test_a_value_does_not_settle_a_claim_that_denies_it(judge: Judge) -> None:
    text = "The occupancy rate is not 93.5%."
    judgement = judge.one(Claim("c1", text, 0, len(text)), Context([PARTLY]), Policy())
    assert any(verdict.verifier == "statement" for verdict in judgement.verdicts)
