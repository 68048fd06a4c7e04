"""The grammar of quantities, and its running time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundwire.text.quantities import Quantity, find_quantities
from tests.steps import is_linear


def only(text: str) -> Quantity:
    found = find_quantities(text)
    assert len(found) == 1, found
    return found[0]


POINTS = [
    # text, kind, unit, value, half of the last written digit
    ("costs $1,234,567.89 now", "currency", "$", 1_234_567.89, 0.005),
    ("$1.2M", "currency", "$", 1_200_000, 50_000),
    ("$500K", "currency", "$", 500_000, 500),
    ("$4.2 million", "currency", "$", 4_200_000, 50_000),
    ("$4.2 MM", "currency", "$", 4_200_000, 50_000),
    ("1.5 million dollars", "currency", "$", 1_500_000, 50_000),
    ("US$ 5.0 million", "currency", "USD", 5_000_000, 50_000),
    ("5.25 million USD", "currency", "USD", 5_250_000, 5_000),
    ("USD 5.0m", "currency", "USD", 5_000_000, 50_000),
    ("$5.10 USD", "currency", "USD", 5.1, 0.005),
    ("€3.25bn", "currency", "EUR", 3_250_000_000, 5_000_000),
    ("1.234,56 €", "currency", "EUR", 1234.56, 0.005),
    ("1 234,56 €", "currency", "EUR", 1234.56, 0.005),
    ("EUR 1.234,56", "currency", "EUR", 1234.56, 0.005),
    ("£12", "currency", "GBP", 12, 0.5),
    ("2.5 million pounds", "currency", "GBP", 2_500_000, 50_000),
    ("¥1,200", "currency", "JPY", 1200, 0.5),
    ("₹12,34,567", "currency", "INR", 1_234_567, 0.5),
    ("Rs. 500", "currency", "INR", 500, 0.5),
    ("5.5 lakh crore rupees", "currency", "INR", 5.5e12, 5e10),
    ("50 cents", "currency", "$", 0.5, 0.005),
    ("31 euro cents", "currency", "EUR", 0.31, 0.005),
    ("twenty dollars", "currency", "$", 20, 0.5),
    ("CHF 3.50", "currency", "CHF", 3.5, 0.005),
    ("$(1,234)", "currency", "$", -1234, 0.5),
    ("-$5", "currency", "$", -5, 0.5),
    ("$-5", "currency", "$", -5, 0.5),
    ("$ (9.8) million", "currency", "$", -9_800_000, 50_000),
    ("85.5%", "percentage", "%", 85.5, 0.05),
    ("12.5 percent", "percentage", "%", 12.5, 0.05),
    ("12 per cent", "percentage", "%", 12, 0.5),
    ("−5%", "percentage", "%", -5, 0.5),
    ("fell by -5.0%", "percentage", "%", -5, 0.05),
    ("ten percent", "percentage", "%", 10, 0.5),
    ("2 percentage points", "percentage", "pp", 2, 0.5),
    ("2 %-points", "percentage", "pp", 2, 0.5),
    ("36 percentage chance", "percentage", "%", 36, 0.5),
    ("3.1 pp", "percentage", "pp", 3.1, 0.05),
    ("50 bps", "percentage", "bps", 0.5, 0.005),
    ("25 basis points", "percentage", "bps", 0.25, 0.005),
    ("DSCR 1.25", "ratio", "", 1.25, 0.005),
    ("DSCR of 1.25", "ratio", "", 1.25, 0.005),
    ("a ratio of 1.25", "ratio", "", 1.25, 0.005),
    ("1.5x", "ratio", "times", 1.5, 0.05),
    ("3.0 times higher", "ratio", "times", 3, 0.05),
    ("5-fold", "ratio", "times", 5, 0.5),
    ("3:1", "ratio", ":", 3, 0.015),
    ("2 in 5 people", "ratio", "share", 0.4, 0.005),
    ("two out of five", "ratio", "share", 0.4, 0.005),
    ("two-thirds of users", "ratio", "share", 2 / 3, 0.01),
    ("a quarter of customers", "ratio", "share", 0.25, 0.01),
    ("half of the staff", "ratio", "share", 0.5, 0.01),
    ("450 employees", "count", "", 450, 0.5),
    ("1,234", "count", "", 1234, 0.5),
    ("1 234 567", "count", "", 1_234_567, 0.5),
    ("1\u202f234", "count", "", 1234, 0.5),
    ("1.234.567", "count", "", 1_234_567, 0.5),
    ("1'234'567", "count", "", 1_234_567, 0.5),
    ("12,34,567 votes", "count", "", 1_234_567, 0.5),
    ("3,5", "count", "", 3.5, 0.05),
    (".75", "count", "", 0.75, 0.005),
    ("-7", "count", "", -7, 0.5),
    ("5.9 million people", "count", "", 5_900_000, 50_000),
    ("1,200,000 people", "count", "", 1_200_000, 50_000),
    ("4,000 people", "count", "", 4000, 50),
    ("1500 people", "count", "", 1500, 0.5),
    ("2000 people", "count", "", 2000, 50),
    ("1.5e6", "count", "", 1_500_000, 50_000),
    ("6.02×10^23", "count", "", 6.02e23, 5e20),
    ("twenty-one", "count", "", 21, 0.5),
    ("twenty - one", "count", "", 21, 0.5),
    ("one hundred and five", "count", "", 105, 0.5),
    ("two hundred thousand", "count", "", 200_000, 500),
    ("a dozen eggs", "count", "", 12, 0.5),
    ("three factors", "count", "", 3, 0.5),
    ("10 km", "quantity", "length", 10_000, 500),
    ("330 metres", "quantity", "length", 330, 0.5),
    ("a 5-mile run", "quantity", "length", 8046.72, 804.672),
    ("6 feet", "quantity", "length", 1.8288, 0.1524),
    ("5 kg", "quantity", "mass", 5, 0.5),
    ("250 mg", "quantity", "mass", 250e-6, 0.5e-6),
    ("12 weeks", "quantity", "time", 12 * 604800, 302400),
    ("ten-year", "quantity", "time", 315576000, 15778800),
    ("20 °C", "quantity", "temperature", 293.15, 0.5),
    ("375 degree F", "quantity", "temperature", (375 + 459.67) / 1.8, 0.5 / 1.8),
    ("-80 °C", "quantity", "temperature", 193.15, 0.5),
    ("68°F", "quantity", "temperature", 293.15, 5 / 18),
    ("98.6 degrees Fahrenheit", "quantity", "temperature", 310.15, 0.05 / 1.8),
    ("1,200 square feet", "quantity", "length^2", 111.483648, 0.04645152),
    ("5 m²", "quantity", "length^2", 5, 0.5),
    ("2 acres", "quantity", "length^2", 8093.712, 2023.428),
    ("2 litres", "quantity", "length^3", 0.002, 0.0005),
    ("60 mph", "quantity", "length/time", 26.8224, 0.22352),
    ("36 km/h", "quantity", "length/time", 10, 0.5 / 3.6),
    ("3 miles per hour", "quantity", "length/time", 1.34112, 0.22352),
    ("16 GB", "quantity", "data", 16e9, 0.5e9),
    ("3.2 GHz", "quantity", "frequency", 3.2e9, 0.05e9),
    ("5 kWh", "quantity", "energy", 18e6, 1.8e6),
    ("2.5 MW", "quantity", "power", 2.5e6, 0.05e6),
    ("12.4 mmHg", "quantity", "pressure", 12.4 * 133.322, 0.05 * 133.322),
    ("2 1/2 hours", "quantity", "time", 9000, 90),
    ("0.25 A", "quantity", "current", 0.25, 0.005),
    ("156.5 mm", "quantity", "length", 0.1565, 0.00005),
    ("80 mm Hg", "quantity", "pressure", 80 * 133.322, 0.5 * 133.322),
    ("12 nautical miles", "quantity", "length", 22224, 926),
    ("7.91 g/cm3", "quantity", "mass/length^3", 7910, 5),
    ("30 µF", "quantity", "capacitance", 30e-6, 0.5e-6),
    ("1 hour 12 minutes", "quantity", "time", 4320, 30),
    ("3 hours and twenty minutes", "quantity", "time", 12000, 30),
    ("5 feet 10 inches", "quantity", "length", 1.778, 0.0127),
    ("an hour and a half", "quantity", "time", 5400, 180),
    ("half an hour", "quantity", "time", 1800, 180),
    ("a quarter of an hour", "quantity", "time", 900, 180),
    ("2,4\u00ad00 people", "count", "", 2400, 0.5),
    ("4.2\nmillion people", "count", "", 4_200_000, 50_000),
    ("3.2 per 100 people", "ratio", "share", 0.032, 0.005),
    ("2.1 times", "ratio", "times", 2.1, 0.05),
    ("a third less", "ratio", "share", 1 / 3, 0.01),
    ("twenty past three in the afternoon", "time", "", 920, 0),
    ("half past three pm", "time", "", 930, 0),
    ("3:30 pm", "time", "", 930, 0),
    ("at 22:15", "time", "", 1335, 0),
]


@pytest.mark.parametrize(("text", "kind", "unit", "value", "slack"), POINTS, ids=[row[0] for row in POINTS])
def test_a_quantity_is_read_with_its_kind_unit_value_and_precision(
    text: str, kind: str, unit: str, value: float, slack: float
) -> None:
    found = only(text)
    assert (found.kind, found.unit) == (kind, unit)
    assert found.low == found.high == pytest.approx(value)
    assert found.slack == pytest.approx(slack)
    assert text[found.start : found.end] == found.text


NOTHING = (
    "version v1.2.3|release 1.2.3.4|COVID-19|A4 paper|RFC 2119|section 3.2|Figure 4|Step 2: mix|see [1]|see [2, 3]|"
    "as shown (2)|【3】|[^4]|call 555-123-4567|call (555) 123-4567|+44 20 7946 0958|https://a.example/123?x=5|"
    "www.x.org/2019|a 10-K filing|his 401(k)|5G networks|a 3D model|F-16|3rd place|GPT-4o|192.168.1.1|24/7|no one|"
    "one of the reasons|1. First item|item_42|#7|x86_64|H2O|B12|1,2,3|IFRS 16|page 12|Windows 10|someone|a third party|"
    "the second time|a quarter earlier|(Passages 1 and 2)|boxes 1, 2, 3, and 5"
).split("|")


@pytest.mark.parametrize("text", NOTHING)
def test_text_that_only_looks_like_a_number_is_not_read(text: str) -> None:
    assert find_quantities(text) == ()


RANGES = [
    ("10–15 %", [(10, 15)]),
    ("10-15%", [(10, 15)]),
    ("between 3 and 5 million", [(3e6, 5e6)]),
    ("3 to 5 percent", [(3, 5)]),
    ("one hundred - two hundred", [(100, 200)]),
    ("$3–5 million", [(3e6, 5e6)]),
    ("from 18 percent to 15 percent", [(18, 18), (15, 15)]),
    ("rose from 3 to 5", [(3, 3), (5, 5)]),
    ("18 percent to 15 percent", [(18, 18), (15, 15)]),
    ("$3 million and $5 million", [(3e6, 3e6), (5e6, 5e6)]),
]


@pytest.mark.parametrize(("text", "expected"), RANGES, ids=[row[0] for row in RANGES])
def test_a_range_has_two_ends_and_a_change_is_two_quantities(text: str, expected: list[tuple[float, float]]) -> None:
    assert [(found.low, found.high) for found in find_quantities(text)] == expected


QUALIFIED = [
    ("about 50 people", "", True),
    ("approximately $4.2 million", "", True),
    ("nearly a million users", "", True),
    ("roughly 5%", "", True),
    ("~30 people", "", True),
    ("more than 200 people", "least", False),
    ("over $5 million", "least", False),
    ("at least 3 days", "least", False),
    ("100+ countries", "least", False),
    ("18 or older", "least", False),
    ("up to 10%", "most", False),
    ("less than 5%", "most", False),
    ("no more than 20 people", "most", False),
    ("exactly 20 people", "", False),
]


@pytest.mark.parametrize(("text", "bound", "is_approximate"), QUALIFIED, ids=[row[0] for row in QUALIFIED])
def test_words_before_a_number_make_it_a_bound_or_an_approximation(text: str, bound: str, is_approximate: bool) -> None:
    assert (only(text).bound, only(text).is_approximate) == (bound, is_approximate)


def test_brackets_mean_a_negative_in_a_table_cell() -> None:
    assert [
        found.low for found in find_quantities("Net income | 2024: 95.1 | 2023: (12.4)") if found.kind == "count"
    ] == [
        95.1,
        -12.4,
    ]


def test_brackets_in_prose_leave_the_sign_open() -> None:
    found = only("the result (1,234) was")
    assert (found.low, found.other) == (1234, (-1234, -1234))


def test_a_count_knows_what_it_counts() -> None:
    assert only("450 full-time employees").nouns == ("full", "tim", "employe")


def test_a_cell_without_words_is_bare() -> None:
    assert only("| 1,452.4 |").is_bare
    assert not only("1,452 boxes").is_bare


AMOUNTS = st.integers(min_value=1, max_value=10**12)


@given(AMOUNTS, st.sampled_from(["{:d}", "{:,d}", "${:,d}", "{:,d} %", "{:,d} kg", "USD {:d}", "€{:,d}"]))
def test_any_integer_reads_back_however_it_is_written(value: int, form: str) -> None:
    text = form.format(value)
    found = only(text)
    if found.kind != "date":  # four plain digits may be a year
        assert found.low == pytest.approx(value)
    assert (found.start, found.end) == (0, len(text))


@given(st.floats(min_value=0.01, max_value=9.99e8), st.sampled_from(["en", "eu", "space"]))
def test_a_decimal_reads_back_in_every_convention(value: float, convention: str) -> None:
    english = f"{value:,.2f}"
    text = {
        "en": english,
        "eu": english.translate(str.maketrans(",.", ".,")),
        "space": english.translate(str.maketrans(",.", "\u00a0,")),
    }[convention]
    assert only(f"€{text}").low == pytest.approx(float(f"{value:.2f}"))


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("0123456789.,$€%-– ()/:QFYHx")), max_size=200))
def test_spans_lie_inside_any_text_in_order_and_apart(text: str) -> None:
    position = 0
    for found in find_quantities(text):
        assert position <= found.start < found.end <= len(text)
        assert found.text == text[found.start : found.end]
        assert found.low <= found.high
        position = found.end


HOSTILE = (
    "1|1,|$|one |1 000 |1-|[1|(| |\n |two hundred |one and |1.|Jan |first |https://|www.|1:|1% |5 km/|1 to |数|\ud800|"
    "2019-|1e|1/|A|A.1|+1 |(555) |【|1\u00a0000|½|a half |between 3 and |million |5 thousand million |٣|more than |-|%"
).split("|")


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE, ids=[repr(piece) for piece in HOSTILE])
def test_time_grows_no_faster_than_hostile_text(piece: str) -> None:
    assert is_linear(find_quantities, (piece * 8192)[:8192])
    find_quantities(piece * (131_072 // len(piece)))


@settings(max_examples=20)
@given(
    st.sampled_from(["$", "€", "1", ",", ".", " ", "-", "million", "to", "%", "Q3", "2024", "("]), st.integers(1, 400)
)
def test_repetition_never_raises(piece: str, count: int) -> None:
    find_quantities(piece * count)
