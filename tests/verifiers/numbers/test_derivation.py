"""Numbers that follow from stated ones by a lapse of time, by the words around them, or by a limit."""

from __future__ import annotations

import pytest

from groundwire.domain import Claim, Source, Verdict
from groundwire.evidence.index import Context
from groundwire.policy import Policy
from groundwire.verifiers.numbers.numeric import verify


def check(text: str, source: str) -> Verdict:
    verdict = verify(Claim("c1", text, 0, len(text)), Context([Source("s", "document", source)]), Policy())
    assert verdict is not None
    return verdict


POWER = "The power failed at 21:40 on Tuesday in the whole valley. It came back at 23:10."
OFFICE = "The office is staffed from 8 am to 2 pm. On Fridays it opens from 10 am to 1 pm."
COMET = "Halloran drew the comet in 1858. She was back in Leith by 1861. Her atlas was printed in 1866."
ROADWORKS = "The bridge is shut from Monday 3 to Friday 14 June. The detour is signposted."
TRAIN = "Boarding ends 5 minutes before departure, and the doors of the lounge close 35 minutes before departure."
LAPSES = [
    (POWER, "The power was gone for an hour and a half.", True),
    (POWER, "The power was gone for 90 minutes.", True),
    (POWER, "The power was gone for two hours.", False),
    (POWER, "The power was gone for less than two hours.", True),
    (POWER, "The power was gone for more than two hours.", False),
    (OFFICE, "The office is staffed six hours a day.", True),
    (OFFICE, "The office is staffed eight hours a day.", False),
    (COMET, "Her atlas was printed five years after she was back in Leith.", True),
    (COMET, "Her atlas was printed eight years after she drew the comet.", True),
    (COMET, "Her atlas was printed four years after she was back in Leith.", False),
    (COMET, "Her atlas was printed eight years after she was back in Leith.", False),
    (ROADWORKS, "The bridge is shut for less than two weeks.", True),
    (ROADWORKS, "The bridge is shut for eleven days.", True),
    (ROADWORKS, "The bridge is shut for less than one week.", False),
    (ROADWORKS, "The bridge is shut for 19 days.", False),
    (TRAIN, "Boarding ends half an hour after the lounge closes.", True),
    (TRAIN, "You have to be there half an hour before departure.", False),
    (TRAIN, "Boarding ends three quarters of an hour after the lounge closes.", False),
]


@pytest.mark.parametrize(("source", "text", "holds"), LAPSES)
def test_a_lapse_between_two_moments_is_computed(source: str, text: str, holds: bool) -> None:
    assert (check(text, source).label == "supported") == holds


def test_the_reason_shows_both_ends_of_a_lapse() -> None:
    assert "from 21:40 to 23:10" in check("The power was gone for 90 minutes.", POWER).reason


HALL = (
    "The concert hall cost 8.4 million euros, 600,000 more than expected. The region paid 80 percent and the town the "
    "rest."
)
JURY = "Three of the eleven jurors spoke for the second design. The session was chaired by Dr Moss."
BOOTS = "The hiking boots are listed at 120.00. This month they are reduced by 15 percent."
STAFF = "Interns earn 1.5 days of leave per month. The library lends laptops for $12 per week."
PLANS = "Plan | Seats | Price per month\nBasic | 3 | $9\nStudio | 12 | $31"
FARES = "An adult ticket is 7 euros. Children and pensioners pay half."
CLAIMS = "Of 320 claims, 240 were settled and the others rejected. Server disk: 30 of 80 GB."
SHOP = "The result swung from a loss of $12 million in 2021 to a profit of $5 million in 2022."
WORDS = [
    (HALL, "The concert hall had been expected to cost €7.8 million.", True),
    (HALL, "The concert hall had been expected to cost €9 million.", False),
    (HALL, "The town paid 20% of the cost.", True),
    (HALL, "The region paid 20% of the cost.", False),
    (HALL, "The town paid 30% of the cost.", False),
    (JURY, "Eight jurors did not speak for the second design.", True),
    (JURY, "Nine jurors did not speak for the second design.", False),
    (BOOTS, "With the reduction the hiking boots cost 102.00.", True),
    (BOOTS, "With the reduction the hiking boots cost 105.00.", False),
    (STAFF, "Interns earn 15 days of leave a year.", False),
    (STAFF, "Two laptops cost $24 per week.", True),
    (PLANS, "A year of Studio costs $372.", True),
    (PLANS, "A year of Studio costs $310.", False),
    (FARES, "A pensioner pays €3.50.", True),
    (FARES, "A pensioner pays €4.50.", False),
    (CLAIMS, "80 claims were rejected.", True),
    (CLAIMS, "90 claims were rejected.", False),
    (CLAIMS, "Three in four claims were settled.", True),
    (CLAIMS, "Two in five claims were settled.", False),
    (CLAIMS, "The server disk has 50 GB free.", True),
    (CLAIMS, "The server disk has 60 GB free.", False),
    (SHOP, "The result improved by $17 million.", True),
    (SHOP, "The result improved by $7 million.", False),
]


@pytest.mark.parametrize(("source", "text", "holds"), WORDS)
def test_a_number_is_computed_as_the_words_around_the_stated_ones_require(source: str, text: str, holds: bool) -> None:
    verdict = check(text, source)
    assert (verdict.label == "supported") == holds
    assert (verdict.method == "derived") == holds


@pytest.mark.parametrize("text", ["The hall has 560 seats.", "The second design has three towers and 27 rooms."])
def test_nothing_is_computed_that_no_word_asks_for(text: str) -> None:
    assert check(text, f"{HALL} {JURY}").label != "supported"


def test_no_time_between_two_moments_replaces_a_stated_length_of_time() -> None:
    source = "The alarm rang at 14:35. The evacuation took six minutes. The hall was reopened at 14:51."
    assert check("The evacuation took sixteen minutes.", source).label == "contradicted"


KAYAKS = "Owners of boats longer than 6 metres must register with the harbour. Parcels of up to 20 kg go by post."
PARKING = "Between 8 am and 6 pm, cars are towed away from the square. Applicants must not be older than 35."
LIMITS = [
    (KAYAKS, "A boat of 4 metres need not register with the harbour.", True),
    (KAYAKS, "A boat of 9 metres need not register with the harbour.", False),
    (KAYAKS, "A boat of 9 metres must register with the harbour.", True),
    (KAYAKS, "A boat of 4 metres must register with the harbour.", False),
    (KAYAKS, "Owners of boats longer than 4 metres must register with the harbour.", False),
    (PARKING, "A car on the square is not towed away at midnight.", True),
    (PARKING, "A car on the square is towed away at midnight.", False),
    (PARKING, "No applicant may be over 35.", True),
    (PARKING, "All applicants must be over 35.", False),
]


@pytest.mark.parametrize(("source", "text", "holds"), LIMITS)
def test_a_case_is_decided_by_the_stated_limit(source: str, text: str, holds: bool) -> None:
    assert (check(text, source).label == "supported") == holds


WRITTEN = [
    ("The mill opened in 1912.", "The mill opened in the 1910s.", True),
    ("The mill opened in 1912.", "The mill opened in the 1920s.", False),
    ("Wages were cut by a third.", "Wages were cut by one third.", True),
    ("Wages were cut by a third.", "Wages were cut by a quarter.", False),
    ("Costs doubled within five years.", "Costs became twice as high within five years.", True),
    ("Costs doubled within five years.", "Costs became three times as high within five years.", False),
    ("Ants less than 4 millimetres long live there.", "The ants there are not longer than 4 mm.", True),
    ("Ants less than 4 millimetres long live there.", "The ants there are not longer than 3 mm.", False),
    ("The heater runs for 20 minutes before it shuts off.", "After 20 minutes the heater shuts off.", True),
]


@pytest.mark.parametrize(("source", "text", "holds"), WRITTEN)
def test_a_value_is_recognized_in_another_form(source: str, text: str, holds: bool) -> None:
    assert (check(text, source).label == "supported") == holds
