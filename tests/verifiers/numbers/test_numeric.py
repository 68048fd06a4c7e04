"""The numeric verifier on realistic sentences and tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundwire.domain import Claim, FlaggedNumber, Source, Verdict
from groundwire.evidence.index import Context
from groundwire.policy import NumericPolicy, Policy
from groundwire.verifiers.numbers.numeric import verify

FINANCE = (
    "Acme Corp reported revenue of $4.2 million in Q3 2024, up 12% from $3.75 million in Q3 2023. Operating costs "
    "were $3.1 million and net income was $1.1 million. The company employs 450 people in 12 offices. Cash at the end "
    "of the quarter stood at $18,432,000. Gross margin improved to 46.5% from 44.0% a year earlier. The net loss for "
    "2022 was $(2.3) million. The debt service coverage ratio (DSCR) was 1.25 at year end."
)
TABLE = """Selected figures (in millions of dollars):

| Segment | 2024 | 2023 | 2022 |
|---|---|---|---|
| Cloud revenue | 812.5 | 640.0 | 512.3 |
| Hardware revenue | 301.2 | 355.9 | 380.4 |
| Research expense | 120.4 | 110.8 | 98.7 |
| Net income | 95.1 | (12.4) | 33.0 |
"""
TRIAL = (
    "The trial enrolled 214 patients, of whom 128 received the drug and 86 received placebo. Mean systolic blood "
    "pressure fell by 12.4 mmHg in the drug group and by 3.1 mmHg in the placebo group. The dose was 250 mg twice a "
    "day for 12 weeks. Adverse events occurred in 18% of the drug group and 7% of the placebo group. The study was "
    "conducted between March 2018 and June 2020. Samples were stored at -80 °C."
)
TOWER = (
    "The tower was built in 1889 and stands 330 metres tall. It was the tallest structure in the world for 41 years "
    "until 1930. About 5.9 million people visited it in 2022. The bridge nearby, opened in 1900, is 160 m long."
)


def check(text: str, *sources: str, policy: Policy | None = None) -> Verdict | None:
    context = Context(Source(f"s{place}", "document", source) for place, source in enumerate(sources))
    return verify(Claim("c1", text, 0, len(text)), context, policy or Policy())


def label(text: str, *sources: str) -> str:
    verdict = check(text, *sources)
    return verdict.label if verdict else "nothing to check"


SUPPORTED = [
    (FINANCE, "Acme's revenue in Q3 2024 was $4.2 million."),
    (FINANCE, "Acme reported Q3 2024 revenue of 4.2 million dollars."),
    (FINANCE, "Revenue rose 12 percent to US$4.2M."),
    (FINANCE, "Net income was $1.1 million."),
    (FINANCE, "Operating costs were about $3 million."),
    (FINANCE, "The company has 450 employees across 12 offices."),
    (FINANCE, "Cash stood at $18.4 million at the end of the quarter."),
    (FINANCE, "Gross margin improved by 2.5 percentage points to 46.5%."),
    (FINANCE, "The net loss for 2022 was $2.3 million."),
    (FINANCE, "DSCR was 1.25 at year end."),
    (FINANCE, "Revenue grew by $0.45 million compared with Q3 2023."),
    (FINANCE, "Acme made over $4 million of revenue in Q3 2024."),
    (TABLE, "Cloud revenue was $812.5 million in 2024."),
    (TABLE, "Cloud revenue reached $813 million in 2024."),
    (TABLE, "Hardware revenue fell to $301.2 million in 2024 from $355.9 million in 2023."),
    (TABLE, "Hardware revenue fell 15.4% in 2024 from 2023."),
    (TABLE, "Cloud revenue grew 27% from 2023 to 2024."),
    (TABLE, "Cloud and hardware revenue combined were $1,113.7 million in 2024."),
    (TABLE, "In 2023 the company had a net loss of $12.4 million."),
    (TRIAL, "The trial had 214 patients."),
    (TRIAL, "Systolic blood pressure fell by 12.4 mmHg with the drug."),
    (TRIAL, "Patients took 0.25 g twice a day for 12 weeks."),
    (TRIAL, "Adverse events occurred in 18 percent of the drug group."),
    (TRIAL, "Samples were stored at −80 °C."),
    (TRIAL, "Samples were stored at -112 °F."),
    (TRIAL, "The study ran from March 2018 to June 2020."),
    (TRIAL, "The 128 drug patients and 86 placebo patients total 214."),
    (TOWER, "The tower, built in 1889, is 330 m tall."),
    (TOWER, "The tower is 1,083 feet tall."),
    (TOWER, "Nearly 6 million people visited the tower in 2022."),
    (TOWER, "It was built in the 1880s and was the tallest structure until 1930."),
    (TOWER, "It was built in the 19th century."),
]
BYLAWS = (
    "Bicycles that are not collected within 28 days are moved to the cellar. Up to 20 working days per calendar year "
    "may be worked abroad."
)
WATER = (
    "| Parameter | Result | Unit | Limit |\n|---|---|---|---|\n| Iron | 0.31 | mg/l | 0.20 |\n| Pipe | 15 | mm | 20 |"
)
DRYER = (
    "| Programme | Max. load | Duration |\n|---|---|---|\n"
    "| Cotton Cupboard | 8 kg | 165 min |\n| Cotton Iron | 8 kg | 130 min |\n| Easy Care | 4 kg | 70 min |\n"
)
GOODS = (
    "| Item | Unit | Price |\n|---|---|---|\n| Milk | l | 2 |\n| Flour | kg | 3 |\n\n"
    "| Unit | Flat | Rent |\n|---|---|---|\n| A | flat A | 1200 |\n| B | flat B | 1350 |"
)
CONTRADICTED = [
    ("hours for days", BYLAWS, "Bicycles that are not collected within 28 hours are moved to the cellar."),
    ("another period of a rate", BYLAWS, "Up to 20 working days per quarter may be worked abroad."),
    ("other unit than that of the row", WATER, "The iron result was 0.31 g/l."),
    ("wrong digit", FINANCE, "Acme reported revenue of $4.3 million in Q3 2024."),
    ("scale slip up", FINANCE, "Acme reported revenue of $4.2 billion in Q3 2024."),
    ("scale slip down", FINANCE, "Acme reported revenue of $4.2 thousand in Q3 2024."),
    ("number of the next sentence", FINANCE, "Acme reported revenue of $3.1 million in Q3 2024."),
    ("number of last year", FINANCE, "Acme reported revenue of $3.75 million in Q3 2024."),
    ("costs for income", FINANCE, "Net income was $3.1 million."),
    ("income for costs", FINANCE, "Operating costs were $1.1 million."),
    ("ten times too many", FINANCE, "The company employs 4,500 people."),
    ("moved decimal point", FINANCE, "Cash stood at $184.3 million at the end of the quarter."),
    ("wrongly rounded", FINANCE, "Cash stood at $18.6 million at the end of the quarter."),
    ("wrong percentage", FINANCE, "Gross margin improved to 44.5%."),
    ("wrong column", TABLE, "Cloud revenue was $640.0 million in 2024."),
    ("wrong row", TABLE, "Cloud revenue was $301.2 million in 2024."),
    ("scale of the table", TABLE, "Cloud revenue was $812.5 billion in 2024."),
    ("wrong digit in a cell", TABLE, "Cloud revenue was $872.5 million in 2024."),
    ("wrong year of the row", TABLE, "Net income in 2024 was $33.0 million."),
    ("swapped digits", TRIAL, "The trial enrolled 241 patients."),
    ("the other group", TRIAL, "Systolic blood pressure fell by 3.1 mmHg in the drug group."),
    ("the other group's share", TRIAL, "Adverse events occurred in 7% of the drug group."),
    ("lost sign", TRIAL, "Samples were stored at 80 °C."),
    ("the other building", TOWER, "The tower is 160 metres tall."),
    ("swapped digits of a count", TOWER, "About 9.5 million people visited it in 2022."),
]
FLAGGED = [
    ("other currency", FINANCE, "Acme reported revenue of €4.2 million in Q3 2024."),
    ("neighbouring quarter", FINANCE, "Acme reported revenue of $4.2 million in Q2 2024."),
    ("neighbouring year", FINANCE, "Acme reported revenue of $4.2 million in Q3 2025."),
    ("wrong synonym count", FINANCE, "The company has 540 employees across 12 offices."),
    ("wrong difference", FINANCE, "Revenue grew by $0.65 million compared with Q3 2023."),
    ("wrong change in points", FINANCE, "Gross margin improved by 3.5 percentage points to 46.5%."),
    ("wrong bound", FINANCE, "Acme made over $5 million of revenue in Q3 2024."),
    ("year from nowhere", FINANCE, "Acme's founder was born in 1962."),
    ("wrong growth", TABLE, "Hardware revenue fell 25.4% in 2024 from 2023."),
    ("wrong direction", TABLE, "Hardware revenue grew 15.4% in 2024 from 2023."),
    ("wrong total", TABLE, "Cloud and hardware revenue combined were $1,213.7 million in 2024."),
    ("other unit", TRIAL, "Systolic blood pressure fell by 12.4 kPa in the drug group."),
    ("thousand times the dose", TRIAL, "The dose was 250 g twice a day."),
    ("months for weeks", TRIAL, "The dose was 250 mg twice a day for 12 months."),
    ("wrong end of the study", TRIAL, "The study was conducted between March 2018 and June 2021."),
    ("feet for metres", TOWER, "The tower is 330 feet tall."),
    ("year of the other building", TOWER, "The tower was built in 1900."),
    ("swapped digits of a year", TOWER, "The tower was built in 1898."),
]


@pytest.mark.parametrize(("source", "text"), SUPPORTED, ids=[text for _, text in SUPPORTED])
def test_a_number_that_follows_from_the_source_is_supported(source: str, text: str) -> None:
    assert label(text, source) == "supported"


@pytest.mark.parametrize(("source", "text"), [row[1:] for row in CONTRADICTED], ids=[row[0] for row in CONTRADICTED])
def test_a_perturbed_number_is_contradicted(source: str, text: str) -> None:
    assert label(text, source) == "contradicted"


@pytest.mark.parametrize(("source", "text"), [row[1:] for row in FLAGGED], ids=[row[0] for row in FLAGGED])
def test_a_number_without_support_is_flagged(source: str, text: str) -> None:
    assert label(text, source) in ("contradicted", "unsupported")


REGIONS = """Sales by region, thousand units

| Region | 2023 | 2024 |
|---|---|---|
| North | 412 | 455 |
| West | 530 | 541 |
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("North sold 455 thousand units in 2024.", "supported"),
        ("North sold 455,000 units in 2024.", "supported"),
        ("North sold 541 thousand units in 2024.", "contradicted"),
        ("North sold 412 thousand units in 2024.", "contradicted"),
        ("West sold 530 units in 2023.", "supported"),
        ("West sold 412 units in 2023.", "contradicted"),
    ],
)
def test_counts_in_columns_named_by_years_belong_to_their_rows(text: str, expected: str) -> None:
    assert label(text, REGIONS) == expected


def test_the_right_number_of_the_wrong_row_is_misattributed_and_both_rows_are_cited() -> None:
    verdict = check("Cloud revenue was $301.2 million in 2024.", TABLE)
    assert verdict is not None
    assert verdict.flags == ("misattributed",)
    assert [TABLE[cited.start : cited.end].split("|")[1].strip() for cited in verdict.citations] == [
        "Cloud revenue",
        "Hardware revenue",
    ]


SEGMENT = "The refrigerated segment grew 16% and contributed 38% of revenue."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Growth came from the refrigerated segment, which now accounts for 38% of sales.", "supported"),
        ("The refrigerated segment contributed 38% of revenue.", "supported"),
        ("The refrigerated segment grew 38%.", "contradicted"),
        ("The refrigerated segment contributed 16% of revenue.", "contradicted"),
    ],
)
def test_two_statements_about_one_subject_are_distinguished(text: str, expected: str) -> None:
    assert label(text, SEGMENT) == expected


def test_a_derived_number_shows_its_formula() -> None:
    verdict = check("Hardware revenue fell 15.4% in 2024 from 2023.", TABLE)
    assert verdict is not None
    assert "(301.2 − 355.9) / 355.9 = -15.37 %" in verdict.reason


@pytest.mark.parametrize(("answer", "expected"), [("-15.37%", "supported"), ("-14.37%", "unsupported")])
def test_a_bare_number_is_computed_as_the_question_asks(answer: str, expected: str) -> None:
    question = "What was the percentage change in hardware revenue between 2023 and 2024?"
    claim = Claim("c1", answer, 0, len(answer), "numeric", lead=question)
    verdict = verify(claim, Context([Source("s", "document", TABLE)]), Policy())
    assert verdict is not None
    assert verdict.label == expected


def test_the_reason_for_a_wrong_number_shows_the_stated_one() -> None:
    verdict = check("The trial enrolled 241 patients.", TRIAL)
    assert verdict is not None
    assert (verdict.method, verdict.flags) == ("mismatch", ("numeric_mismatch",))
    assert "214" in verdict.reason


def test_a_number_finer_than_the_source_is_unsupported_not_contradicted() -> None:
    assert label("Acme reported revenue of $4.23 million in Q3 2024.", FINANCE) == "unsupported"


def test_a_range_is_supported_by_its_two_ends() -> None:
    assert label("Blood pressure fell by 3.1 to 12.4 mmHg.", TRIAL) == "supported"


def test_another_thing_counted_or_timed_does_not_contradict() -> None:
    assert label("The tower was closed for three weeks.", TOWER) == "unsupported"
    assert label("The company employs 450 engineers.", "The company employs 300 cooks.") == "unsupported"


def test_a_list_of_the_answer_s_own_is_no_claim_about_the_source() -> None:
    assert check("Acme has two key strengths.", FINANCE) is None


def test_one_is_a_count_where_the_claim_counts_more_of_it() -> None:
    leaflet = "Adults take one tablet twice a day with food."
    assert label("Adults take three tablets twice a day.", leaflet) == "contradicted"
    assert label("The house has two bathrooms.", "The house has one bathroom and two bedrooms.") == "contradicted"
    assert label("It was one of the two drugs.", "The two drugs were tested one day.") == "supported"


def test_a_part_of_a_whole_is_not_taken_for_the_whole() -> None:
    acids = "Nine out of the 20 amino acids are essential, but adults only need to obtain eight of them."
    assert label("Nine amino acids are essential for humans.", acids) == "supported"


def test_one_of_several_contradicts_nothing() -> None:
    assert (
        check("The firm opened one terminal in Reno.", "The firm opened three terminals: Tulsa, Reno, Savannah.")
        is None
    )


def test_a_claim_without_numbers_is_not_for_this_verifier() -> None:
    assert check("Acme is a company.", FINANCE) is None


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("currency", "Revenue was $9.9 million."),
        ("percentage", "Margin was 99%."),
        ("ratio", "DSCR was 9.9 at year end."),
        ("date", "It opened in 1777."),
    ],
)
def test_each_kind_can_be_switched_off(kind: str, text: str) -> None:
    policy = Policy(numeric=replace(NumericPolicy(), **{kind: False}))
    assert check(text, FINANCE) is not None
    assert check(text, FINANCE, policy=policy) is None


def test_a_tolerance_per_kind_is_applied() -> None:
    policy = Policy(numeric=NumericPolicy(tolerance=(("currency", 0.05),)))
    verdict = check("Acme reported revenue of $4.3 million in Q3 2024.", FINANCE, policy=policy)
    assert verdict is not None
    assert verdict.label == "supported"


def test_numbers_looked_at_and_verified_are_counted() -> None:
    verdict = check("Revenue was $4.2 million and net income was $9.9 million.", FINANCE)
    assert verdict is not None
    assert (verdict.extracted, verdict.validated) == (2, 1)


def test_past_its_time_limit_a_claim_is_not_checked() -> None:
    ticks = iter(range(100))
    context = Context([Source("s", "document", FINANCE)])
    verdict = verify(Claim("c", "Revenue was $4.2 million.", 0, 25), context, Policy(), lambda: float(next(ticks)))
    assert verdict is not None
    assert (verdict.label, verdict.method) == ("not_checked", "timeout")


def test_without_sources_no_number_is_supported() -> None:
    assert label("Revenue was $4.2 million.") == "unsupported"


def test_citations_hold_the_words_of_the_source() -> None:
    verdict = check("Operating costs were $3.1 million.", FINANCE)
    assert verdict is not None
    (cited,) = verdict.citations
    assert FINANCE[cited.start : cited.end] == cited.text
    assert "$3.1 million" in cited.text


def test_irrelevant_text_does_not_change_a_verdict() -> None:
    padding = "The gardeners planted roses along the northern wall. " * 400
    for source, text in SUPPORTED:
        assert label(text, padding, source) == "supported", text
    for _, source, text in CONTRADICTED:
        assert label(text, padding, source) == "contradicted", text


@settings(max_examples=40)
@given(st.sampled_from(SUPPORTED), st.sampled_from(SUPPORTED))
def test_a_second_supporting_source_never_lowers_support(case: tuple[str, str], other: tuple[str, str]) -> None:
    source, text = case
    assert label(text, source, text) == "supported"
    assert label(text, text, source) == "supported"
    assert label(text, source, other[0] if other[0] != source else text) == "supported"


@settings(max_examples=60)
@given(st.text(max_size=120), st.text(max_size=200))
def test_any_text_gets_a_verdict_without_an_exception(text: str, source: str) -> None:
    check(text, source)


ALLOYS = (
    "Revenue rose to $4.82 billion in the third quarter of 2023 from $4.31 billion a year earlier. Debt totalled "
    "£742 million, of which £118 million falls due this year. Expense was $512 million and $487 million in fiscal 2019 "
    "and 2018, respectively. Northwind sold 1.34 million tonnes of cement. Southgate sold 2.08 million tonnes."
)
LAB = "| Sample | mass (g) | time (ms) |\n|---|---|---|\n| A | 12.45 | 412 |\n| B | 11.90 | 438 |"
YEARS = " |  | Year Ended May 31, | \n | 2019 | 2018\nNet sales | $5,563.7 | $5,875.0\nCosts | 4,100.0 | 4,200.0"
DELIVERY = "Delivery is free from 80 euros; below that it costs 6 euros."
STAFF = "The marketing department has 20 employees; the IT department has 5 employees."
PLANS = "The basic plan costs 12 euros a month; the plus plan is 19 euros."
WHOSE = [
    # id, source, claim, is it supported?
    ("what it rose from", ALLOYS, "Revenue rose to $4.31 billion in Q3 2023.", False),
    ("where it went", ALLOYS, "Revenue rose to $4.82 billion in Q3 2023.", True),
    ("a part for the whole", ALLOYS, "Debt was £118 million.", False),
    ("the whole", ALLOYS, "Debt was £742 million.", True),
    ("respectively", ALLOYS, "Expense was $487 million in fiscal 2018.", True),
    ("respectively the other", ALLOYS, "Expense was $512 million in fiscal 2018.", False),
    ("unit of a column", LAB, "Sample A had a mass of 12.45 g.", True),
    ("unit of a column converted", LAB, "Sample A had a mass of 12,450 mg.", True),
    ("other unit than the column's", LAB, "Sample A had a mass of 12.45 kg.", False),
    ("seconds for milliseconds", LAB, "The time of sample B was 438 s.", False),
    ("unit of a cell", WATER, "The iron result was 0.31 mg/l.", True),
    ("unit of a cell converted", WATER, "The iron result was 310 µg/l.", True),
    ("a length, not millions", WATER, "The result for the pipe was 1.5 cm.", True),
    ("a price beside the unit of the goods", GOODS, "The price of milk is $2.", True),
    ("a rent beside the letter of a flat", GOODS, "The rent of flat A is $1,200.", True),
    ("a rate by its calendar year", BYLAWS, "Up to 20 working days a year may be worked abroad.", True),
    ("label of one letter", LAB, "Sample B had a mass of 12.45 g.", False),
    ("column of the year", YEARS, "Net sales in 2018 were $5,875.0.", True),
    ("column of another year", YEARS, "Net sales in 2018 were $5,563.7.", False),
    ("scale that is not told", YEARS, "Net sales in 2019 were 5,563.7 million.", True),
    ("another row's value, its column not named", DRYER, "Cotton Iron takes 165 minutes.", False),
    ("another row's value, its unit alone named", DRYER, "Easy Care takes 8 kg.", False),
    ("the row's value, its column not named", DRYER, "Easy Care takes 70 minutes.", True),
    ("other currency than the table's", YEARS, "Costs in 2019 were €4,100.0.", False),
    ("a threshold beside a price", DELIVERY, "Delivery costs nothing once you spend 80 euros.", True),
    ("a price whose subject is a pronoun", DELIVERY, "Delivery of a small order costs 6 euros.", True),
    ("a name spelled like a pronoun", STAFF, "The marketing department has 5 employees.", False),
    ("a price, by the other thing's verb", PLANS, "The plus plan costs 12 euros.", False),
]


@pytest.mark.parametrize(("source", "text", "holds"), [row[1:] for row in WHOSE], ids=[row[0] for row in WHOSE])
def test_a_number_is_of_its_own_thing_period_and_unit(source: str, text: str, holds: bool) -> None:
    assert (label(text, source) == "supported") is holds


def test_the_reason_names_all_numbers_that_are_in_no_source_in_one_sentence() -> None:
    verdict = check("It takes 300 guests, 40 speakers and 70 halls.", "The staff met in May.")
    assert verdict is not None
    assert verdict.reason == "300, 40 and 70 are in no source."


@pytest.mark.parametrize(
    ("text", "stated"),
    [("The hall has 35 doors.", "thirty-five lamps"), ("Rent rose by 12.5 percent.", "12.50% of wool")],
)
def test_a_number_that_a_source_writes_otherwise_is_not_called_absent(text: str, stated: str) -> None:
    others = " ".join(f"The {name} was painted in the colours of the town." for name in ("gate", "tower", "bridge") * 6)
    verdict = check(text, f"{others} The depot holds {stated}.")
    assert verdict is not None
    assert verdict.reason.endswith("is in the sources only for something else.")


def test_the_reason_names_a_fraction_without_what_it_is_of() -> None:
    verdict = check("Half the staff left.", "The staff met in May.")
    assert verdict is not None
    assert verdict.reason == "Half is in no source."


@pytest.mark.parametrize(
    ("text", "source", "reason"),
    [
        (
            "The dose is up to 80 mg.",
            "The dose is more than 80 mg.",
            's0 says at least 80 mg, the answer says at most 80 mg: "The dose is more than 80 mg".',
        ),
        (
            "The dose is 80 mg.",
            "The dose is more than 60 mg.",
            "s0 says at least 60 mg, which neither states nor excludes 80 mg.",
        ),
        (
            "He works three days.",
            "He works three days a week.",
            "s0 says three days a week, which neither states nor excludes three days.",
        ),
        (
            "Invoices are paid within 30 working days.",
            "Invoices are paid within 30 days.",
            "30 is in the sources only for something else.",
        ),
        (
            "The iron result was 0.31 g/l.",
            WATER,
            "s0 says Result: 0.31 mg/l, the answer says 0.31 g/l: "
            '"Parameter: Iron | Result: 0.31 | Unit: mg/l | Limit: 0.20".',
        ),
    ],
)
def test_reasons_show_bounds_and_rates(text: str, source: str, reason: str) -> None:
    verdict = check(text, source)
    assert verdict is not None
    assert verdict.reason == reason


def test_reasons_show_words_as_the_source_has_them() -> None:
    verdict = check("Impossible losses were $30 million.", "Possible losses were $30 million.")
    assert verdict is not None
    assert verdict.reason == 'The source states $30 million, but with "Possible".'


@pytest.mark.parametrize("written", ["20mg", "20-mg", "20 MG", "20 mgs", "20 milligrams", "0.02 g", "(20 mg)"])
def test_a_dose_is_found_however_it_is_written(written: str) -> None:
    assert label("Lisinopril 20 mg was given.", f"Lisinopril {written} was given.") == "supported"


def test_a_number_in_an_unrelated_passage_is_not_reported_as_in_no_source() -> None:
    others = " ".join(f"Drug {first}{second} has 20 mg of salt." for first in "ABCDEF" for second in "abcdef")
    verdict = check("The patient owes 20 mg.", others)
    assert verdict is not None
    assert verdict.label == "unsupported"
    assert verdict.reason == "20 mg is in the sources only for something else."


def test_every_number_that_is_not_supported_is_given_with_type_and_value() -> None:
    verdict = check("Revenue was $5.2M in 2023, up 9%.", "Revenue was $4.2M in 2023, up 9%.")
    assert verdict is not None
    assert (verdict.extracted, verdict.validated) == (3, 2)
    assert verdict.numbers == (FlaggedNumber("$5.2M", "currency", 5_200_000.0),)


@pytest.mark.parametrize(
    ("switches", "expected"),
    [
        ({}, "supported"),
        ({"facts": False}, "supported"),
        ({"documents": False}, "contradicted"),
        ({"documents": False, "facts": False}, None),
    ],
)
def test_numbers_are_checked_against_the_sources_that_are_switched_on(
    switches: dict[str, bool], expected: str | None
) -> None:
    sources = [
        Source("s1", "source", "Revenue was $4 million."),
        Source("facts.f", "facts", "Revenue is 3 million dollars."),
    ]
    policy = replace(Policy(), numeric=NumericPolicy(**switches))
    claim = Claim("c1", "Revenue was $4 million.", 0, 23)
    verdict = verify(claim, Context(sources), policy)
    assert (verdict.label if verdict else None) == expected


def test_flags_of_numbers_can_be_switched_off() -> None:
    quiet = replace(Policy(), numeric=NumericPolicy(auto_flag=False))
    found = [check("Revenue was $5 million.", "Revenue was $4 million.", policy=each) for each in (None, quiet)]
    assert [(each.label, each.flags) for each in found if each] == [
        ("contradicted", ("numeric_mismatch",)),
        ("contradicted", ()),
    ]
