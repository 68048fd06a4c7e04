"""Rates and frequencies: the unit by which an amount is counted, and how often something happens."""

import pytest

from groundwire.domain import Claim, Source
from groundwire.evidence.index import Context
from groundwire.policy import Policy
from groundwire.text.units import read_rate
from groundwire.verifiers.numbers import numeric
from groundwire.verifiers.numbers.durations import find_frequencies

CLAIMS = [
    ("Take one tablet twice daily.", "Take one tablet once daily.", "contradicted"),
    ("Take one tablet twice a day.", "Take one tablet once a day.", "contradicted"),
    ("Take one tablet twice daily.", "Take one tablet 2 times a day.", "supported"),
    ("Take one tablet three times a day.", "Take one tablet twice daily.", "contradicted"),
    ("Take one tablet twice a week.", "Take one tablet twice a day.", "contradicted"),
    ("Take one tablet every 8 hours.", "Take one tablet three times a day.", "supported"),
    ("Take one tablet every 8 hours.", "Take one tablet every 12 hours.", "contradicted"),
    ("Take one tablet every 6 hours.", "Take one tablet every 4 to 6 hours.", "supported"),
    ("He takes metformin 500 mg twice daily.", "Medications: metformin 500 mg once daily.", "contradicted"),
    ("He takes metformin 500 mg BID.", "Medications: metformin 500 mg twice daily.", "supported"),
    (
        "The patient takes lisinopril twice daily.",
        "The patient takes metformin twice daily and lisinopril once daily.",
        "contradicted",
    ),
    (
        "The patient takes metformin twice daily.",
        "The patient takes metformin twice daily and lisinopril once daily.",
        "supported",
    ),
    ("The committee meets weekly.", "The committee meets monthly.", "contradicted"),
    ("The committee meets quarterly.", "The committee meets four times a year.", "supported"),
    ("The committee meets every two weeks.", "The committee meets every two months.", "contradicted"),
    ("The committee meets weekly.", "The board meets monthly.", None),
    ("The backup runs every day.", "The backup runs daily.", "supported"),
    ("The fee is $10 per month.", "The fee is $10 per year.", "contradicted"),
    ("The fee is $120 per year.", "The fee is $10 a month.", "supported"),
    ("The fee is $10 per user.", "The fee is $10 per month.", "unsupported"),
    ("The fee is $10 per user.", "The fee is $10 per user per month.", "supported"),
    ("The fee is $10 per month.", "The fee is $10 per month for each user.", "supported"),
    ("Earnings were $3.20 per share.", "Earnings were $3.20 per diluted share.", "supported"),
    ("Tickets cost $15 per person.", "Tickets cost $15 per family.", "contradicted"),
    ("The plan includes 5 GB per month.", "The plan includes 5 GB per day.", "contradicted"),
    ("The limit is 100 requests per minute.", "The limit is 100 requests per second.", "contradicted"),
    ("The limit is 100 requests per minute.", "The limit is 100 requests per minute.", "supported"),
    ("Interest is 5% per month.", "Interest is 5% per year.", "contradicted"),
    ("Interest is 5% a year.", "Interest is 5% per annum.", "supported"),
    ("Interest is 5%.", "Interest is 5% per year.", "supported"),
    ("Revenue was $5 million.", "Revenue was $5 million a year earlier.", "supported"),
    ("The dose is 20 mg per day.", "The dose is 20 mg per dose.", "unsupported"),
    ("The dose is 20 mg per dose.", "The dose is 20 mg per day.", "unsupported"),
    ("The maximum is 4 g per day.", "The maximum is 4 g per dose and 8 g per day.", "contradicted"),
    ("The maximum is 8 g per day.", "The maximum is 4 g per dose and 8 g per day.", "supported"),
    ("Employees work from home three days.", "Employees work from home three days a week.", "unsupported"),
    ("Employees work from home three days a week.", "Employees work from home three days.", "unsupported"),
    ("Employees work from home three days a week.", "Employees work from home three days a month.", "contradicted"),
    ("Employees work from home three days a week.", "Employees work from home three days per week.", "supported"),
    ("Employees get 20 days of paid leave each year.", "Paid leave: 20 days per year.", "supported"),
    ("Interns get 20 days of paid leave a year.", "Interns get 20 days of paid leave a month.", "contradicted"),
    ("Employees get 20 days of paid leave a year.", "Paid leave: 25 days a year.", "contradicted"),
    ("Interns earn 18 days of leave a year.", "Interns earn 1.5 days of leave per month.", "supported"),
    ("The plan includes 5 GB of data per month.", "The plan includes 5 GB of data per day.", "contradicted"),
    ("Employees get 25 paid days.", "Employees get 25 days of paid leave.", "supported"),
    ("Employees get 25 days of paid leave.", "Employees get 25 paid days of leave.", "supported"),
    ("Employees get 20 paid days.", "Employees get 25 days of paid leave.", "unsupported"),
]


@pytest.mark.parametrize(("claim", "source", "label"), CLAIMS)
def test_a_rate_or_frequency_is_compared_with_that_of_the_source(claim: str, source: str, label: str | None) -> None:
    context = Context([Source("s1", "source", source)])
    verdict = numeric.verify(Claim("c1", claim, 0, len(claim)), context, Policy())
    assert (verdict.label if verdict else None) == label


def test_the_reason_for_a_converted_rate_gives_the_stated_one() -> None:
    claim, source = "Interns pay 18 euros a year.", "Interns pay 1.5 euros per month."
    verdict = numeric.verify(Claim("c1", claim, 0, len(claim)), Context([Source("s1", "source", source)]), Policy())
    assert verdict
    assert (verdict.method, verdict.reason) == ("converted", "The source states 1.5 euros per month.")


def test_the_reason_shows_both_rates() -> None:
    context = Context([Source("s1", "source", "The fee is $10 per year.")])
    verdict = numeric.verify(Claim("c1", "The fee is $10 per month.", 0, 25), context, Policy())
    assert verdict is not None
    assert verdict.reason == 's1 says $10 per year, the answer says $10 per month: "The fee is $10 per year".'


@pytest.mark.parametrize(
    ("text", "times_a_day"),
    [
        ("twice daily", (2.0, 2.0)),
        ("2-3 times a day", (2.0, 3.0)),
        ("every other day", (0.5, 0.5)),
        ("q8h", (3.0, 3.0)),
        ("b.i.d.", (2.0, 2.0)),
        ("twice as much", None),
        ("once the day began", None),
        ("a daily report", None),
        ("the bid was high", None),
        ("twice a year ago", None),
    ],
)
def test_frequencies_are_read_as_times_a_day(text: str, times_a_day: tuple[float, float] | None) -> None:
    assert [(each.low, each.high) for each in find_frequencies(text)] == ([times_a_day] if times_a_day else [])


@pytest.mark.parametrize("text", ["$10 a year earlier", "5% per cent", "5 people in a day", "3 as per the plan"])
def test_text_that_only_looks_like_a_rate_is_none(text: str) -> None:
    assert read_rate(text, text.index(" "), counts=True) is None
