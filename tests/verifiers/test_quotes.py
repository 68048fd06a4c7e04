"""Quotations that are found in an answer, and those of them that are in the sources."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.domain import Claim, Source
from groundwire.errors import EvidenceGroundingError
from groundwire.evidence.index import Context
from groundwire.policy import Policy, QuotePolicy
from groundwire.verifiers.quotes import check_quotes, find_quotes, verify
from tests.steps import is_linear

REPORT = (
    "The committee said: “We are confident that revenue will reach $4.2 million in 2024.” Dr. Smith noted that the "
    "drug was not effective against the virus in any of the trials. The patient weighed 70 kg on 3 March and left the "
    "clinic in Boston after five days. <p>The board <b>unanimously</b> approved the merger</p> with a book-length memo."
)
LETTER = "The chairman wrote that all employees would keep their jobs, and that prices would rise by 12% in spring."
CONTEXT = Context([Source("report", "document", REPORT, offset=50), Source("letter", "document", LETTER)])
EXACT, FUZZY = Policy(), Policy(quotes=QuotePolicy(fuzzy=True))


def said(text: str) -> Claim:
    return Claim("c", text, 0, len(text))


@pytest.mark.parametrize(
    ("text", "quotes"),
    [
        pytest.param('He said "we are fine" today.', ["we are fine"], id="straight"),
        pytest.param("He said “we are fine” today.", ["we are fine"], id="typographic"),
        pytest.param("«bonjour à tous» et „guten Tag“", ["bonjour à tous", "guten Tag"], id="guillemets and German"),
        pytest.param("»hallo da« ‹x y z› 「日本語」", ["hallo da", "x y z", "日本語"], id="other marks"),
        pytest.param(
            "'This is clearly a quotation,' he said, and it's fine", ["This is clearly a quotation,"], id="single"
        ),
        pytest.param("“one ‘two three’ four” five", ["one ‘two three’ four"], id="nested belongs to the outer one"),
        pytest.param('"first one" and "second one"', ["first one", "second one"], id="two"),
        pytest.param("it's the dogs' bowls, isn't it", [], id="apostrophes"),
        pytest.param("the '90s and rock 'n' roll", [], id="left-out letters"),
        pytest.param("He is 5'10\" and she 5'2\" tall", [], id="feet and inches"),
        pytest.param('"He is 5\'10" tall," she said', ["He is 5'10\" tall,"], id="inches inside a quotation"),
        pytest.param('an unbalanced " mark', [], id="unbalanced"),
        pytest.param('“never closed and "fine inside" here', ["fine inside"], id="unbalanced outside"),
        pytest.param('"never\n\nclosed" here', [], id="not across paragraphs"),
        pytest.param('"" and " "', [], id="empty"),
    ],
)
def test_finds_quotations(text: str, quotes: list[str]) -> None:
    found = find_quotes(text)
    assert [quote.text for quote in found] == quotes
    assert all(text[quote.start : quote.end] == quote.text for quote in found)


@pytest.mark.parametrize(
    "quote",
    [
        pytest.param("We are confident that revenue will reach $4.2 million in 2024.", id="word for word"),
        pytest.param("we are confident that revenue will reach $4.2 million", id="case"),
        pytest.param("the drug was not effective against the virus,", id="punctuation of style"),
        pytest.param("Dr. Smith noted … the drug was not effective", id="ellipsis"),
        pytest.param("Dr. Smith noted [...] against the virus in any of the trials", id="bracketed ellipsis"),
        pytest.param("[T]he drug was not effective", id="changed first letter"),
        pytest.param("the drug was not effective against the virus [in adults]", id="insertion at the end"),
        pytest.param("the patient [a man] weighed 70 kg", id="insertion"),
        pytest.param("The board unanimously approved the merger", id="tags in the source"),
        pytest.param("would keep their jobs, and that prices would rise by 12%", id="other source"),
    ],
)
@pytest.mark.parametrize("policy", [EXACT, FUZZY], ids=["exact", "fuzzy"])
def test_a_quotation_that_is_in_a_source_is_grounded(quote: str, policy: Policy) -> None:
    verdict = verify(said(f'It says "{quote}"'), CONTEXT, policy)
    assert verdict is not None
    assert (verdict.label, verdict.method, verdict.extracted, verdict.validated) == ("supported", "exact", 1, 1)


EDITS = [
    pytest.param("We are confident that revenue will reach $4.3 million in 2024", "4.3", id="amount"),
    pytest.param("We are confident that revenue will reach $4.2 billion in 2024", "billion", id="magnitude"),
    pytest.param("We are confident that revenue will reach €4.2 million in 2024", "4.2", id="currency"),
    pytest.param("We are confident that revenue will reach $4.2 million in 2025", "2025", id="year"),
    pytest.param("We are not confident that revenue will reach $4.2 million in 2024", "not", id="negation added"),
    pytest.param("the drug was effective against the virus in any of the trials", "not", id="negation left out"),
    pytest.param(
        "the drug was never effective against the virus in any of the trials", "never", id="negation exchanged"
    ),
    pytest.param("the drug was not ineffective against the virus in any of the trials", "ineffective", id="prefix"),
    pytest.param("Dr. Jones noted that the drug was not effective against the virus", "Jones", id="name"),
    pytest.param("Dr. Smyth noted that the drug was not effective against the virus", "Smyth", id="name by one letter"),
    pytest.param("The patient weighed 70 lb on 3 March and left the clinic", "lb", id="unit"),
    pytest.param("The patient weighed 80 kg on 3 March and left the clinic", "80", id="measure"),
    pytest.param("The patient weighed 70 kg on 3 May and left the clinic", "May", id="month"),
    pytest.param("and left the clinic in Dallas after five days", "Dallas", id="place"),
    pytest.param("and left the clinic in Boston after nine days", "nine", id="number word"),
    pytest.param("and that prices would rise by 21% in spring", "21", id="percentage"),
    pytest.param("and that prices would fall by 12% in spring", "fall", id="direction"),
    pytest.param("and that prices would rise by 1% in spring", "1", id="number cut short"),
]


@pytest.mark.parametrize(("quote", "token"), EDITS)
@pytest.mark.parametrize("policy", [EXACT, FUZZY], ids=["exact", "fuzzy"])
def test_one_changed_token_is_always_caught_and_named(quote: str, token: str, policy: Policy) -> None:
    verdict = verify(said(f'It says "{quote}"'), CONTEXT, policy)
    assert verdict is not None
    assert (verdict.label, verdict.flags, verdict.validated) == ("unsupported", ("quote_not_found",), 0)
    assert f'"{token}' in verdict.reason.split("source", 1)[1] or f'{token}"' in verdict.reason.split("source", 1)[1]


@pytest.mark.parametrize(
    "quote",
    [
        pytest.param("against the virus … Dr. Smith noted", id="segments out of order"),
        pytest.param("We are confident … all employees would keep their jobs", id="segments of two sources"),
        pytest.param("the drug was ... effective against the virus", id="ellipsis swallows the negation"),
        pytest.param("all employees would [not] keep their jobs", id="inserted negation"),
        pytest.param("revenue will reach $4", id="cuts a number"),
        pytest.param("nothing of this kind was ever written", id="invented"),
    ],
)
def test_a_quotation_bent_by_its_omissions_is_rejected(quote: str) -> None:
    verdict = verify(said(f'It says "{quote}"'), CONTEXT, EXACT)
    assert verdict is not None
    assert verdict.label == "unsupported"


def test_a_quotation_may_not_begin_behind_a_negating_prefix() -> None:
    context = Context([Source("s", "source", "The vaccine was ineffective against the new strain.")])
    verdict = verify(said('It was "effective against the new strain"'), context, EXACT)
    assert verdict is not None
    assert verdict.label == "unsupported"


@pytest.mark.parametrize(
    "text",
    [
        'The "best" drug',
        'the novel "The Great Gatsby" by Fitzgerald',
        "no quotation at all",
        '"…"',
        'You asked "how to soften sugar"',
    ],
)
def test_terms_and_titles_that_are_not_found_are_passed_over(text: str) -> None:
    assert verify(said(text), CONTEXT, EXACT) is None


def test_a_term_that_is_found_counts_as_validated() -> None:
    verdict = verify(said('the word "memo" is used'), CONTEXT, EXACT)
    assert verdict is not None
    assert (verdict.label, verdict.validated) == ("supported", 1)


def test_quotes_can_be_switched_off() -> None:
    assert verify(said('"nothing of this kind"'), CONTEXT, Policy(quotes=QuotePolicy(enabled=False))) is None


def test_a_block_quote_is_a_quotation_whole() -> None:
    text = "> the drug was not effective\n> against the virus\n> — Dr. Smith"
    verdict = verify(Claim("c", text, 0, len(text), kind="quote"), CONTEXT, EXACT)
    assert verdict is not None
    assert verdict.label == "supported"


def test_citations_point_into_the_original() -> None:
    verdict = verify(said('"the board unanimously approved the merger"'), CONTEXT, EXACT)
    assert verdict is not None
    (citation,) = verdict.citations
    assert citation.text == REPORT[citation.start - 50 : citation.end - 50]
    assert citation.text == "The board <b>unanimously</b> approved the merger"
    assert (citation.source, citation.match, citation.score) == ("report", "exact", 1.0)


def test_fuzzy_matching_is_opt_in_and_forgives_a_slip() -> None:
    claim = said('"Dr. Smith notes that the drug was not effective against the virus in any of teh trials"')
    exact, fuzzy = verify(claim, CONTEXT, EXACT), verify(claim, CONTEXT, FUZZY)
    assert exact is not None
    assert exact.label == "unsupported"
    assert fuzzy is not None
    assert (fuzzy.label, fuzzy.method) == ("supported", "fuzzy")
    assert 0.85 <= fuzzy.score < 1.0


def test_fuzzy_matching_leaves_short_quotations_alone() -> None:
    verdict = verify(said('"weighed 70kg in all"'), CONTEXT, FUZZY)
    assert verdict is not None
    assert verdict.label == "unsupported"


def test_fuzzy_matching_never_matches_a_quotation_longer_than_the_source() -> None:
    context = Context([Source("s", "source", "the drug was not effective")])
    verdict = verify(said('"the drug was not effectives at all times"'), context, FUZZY)
    assert verdict is not None
    assert verdict.label == "unsupported"


def test_evidence_fields_keep_grounded_quotes_in_place() -> None:
    quotes = {
        "risks": ["was not effective against", "was wonderful"],
        "prices": ["prices would rise by 12%"],
        "none": [],
    }
    result = check_quotes(quotes, CONTEXT, QuotePolicy())
    assert result.accepted == {
        "risks": ["was not effective against"],
        "prices": ["prices would rise by 12%"],
        "none": [],
    }
    counts = result.counts
    assert (counts.extracted, counts.validated, counts.rejected) == (3, 2, 1)
    assert counts.rejected_by_field == (("risks", 1),)
    assert not result.all_rejected


@pytest.mark.parametrize("quote", ["", "   ", "…", "ok", "12", "<b></b>"])
def test_a_quote_that_folds_to_nothing_or_cuts_a_word_is_not_grounded(quote: str) -> None:
    context = Context([Source("s", "source", "A book about 125 things.")])
    assert check_quotes({"f": [quote]}, context, QuotePolicy()).counts.validated == 0


def test_all_rejected_is_reported_and_raises_where_enabled() -> None:
    assert check_quotes({"f": ["no such words"]}, CONTEXT, QuotePolicy()).all_rejected
    assert not check_quotes({"f": []}, CONTEXT, QuotePolicy(), fail_on_all_rejected=True).all_rejected
    with pytest.raises(EvidenceGroundingError):
        check_quotes({"f": ["no such words"]}, CONTEXT, QuotePolicy(), fail_on_all_rejected=True)


@pytest.mark.parametrize(
    ("policy", "each"),
    [(QuotePolicy(), 4 + 5 * 100), (FUZZY.quotes, 4 + (5 + 12 + 4) * 100)],
    ids=["exact", "fuzzy costs more"],
)
@pytest.mark.parametrize("affordable", [0, 1, 3])
def test_quotes_beyond_the_steps_allowed_are_not_looked_up(policy: QuotePolicy, each: int, affordable: int) -> None:
    context = Context([Source("s", "source", "word " * 20)])
    quotes = {"a": ["word", "none"], "b": ["word", "gone"]}
    result = check_quotes(quotes, context, policy, max_search=affordable * each)
    assert (result.counts.extracted, result.unchecked) == (affordable, 4 - affordable)
    assert sum(map(len, result.accepted.values())) == (affordable + 1) // 2
    assert result.all_rejected is False


def test_a_long_quote_is_compared_with_a_long_source_only_word_for_word() -> None:
    source = "The fox sat on the mat. " * 20_000
    near = Context([Source("s", "source", source + "The quick brown fox jumps over the lazy cat.")])
    quote = "The quick brown fox jumps over the lazy dog cat."
    assert check_quotes({"f": [quote]}, near, FUZZY.quotes).counts.validated == 1
    assert check_quotes({"f": [quote, source[:5000] + quote]}, near, FUZZY.quotes).counts.validated == 1
    assert check_quotes({"f": [source[:5000]]}, near, FUZZY.quotes).counts.validated == 1


@given(st.data())
def test_every_long_slice_of_whole_words_is_grounded(data: st.DataObject) -> None:
    tokens = LETTER.split()
    start = data.draw(st.integers(0, len(tokens) - 4))
    end = data.draw(st.integers(start + 4, len(tokens)))
    assert check_quotes({"f": [" ".join(tokens[start:end])]}, CONTEXT, QuotePolicy()).counts.validated == 1


@given(st.text())
def test_any_text_is_survived(text: str) -> None:
    find_quotes(text)
    verify(said(f"“{text}”"), CONTEXT, FUZZY)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ['"', "“", "“”", "'", "«", ' "a', 'a" ', "s' ", '"«', "“»", "\n-", ">", ". "])
def test_hostile_marks_are_read_in_linear_time(unit: str) -> None:
    assert is_linear(find_quotes, (unit * 16384)[:16384])
    find_quotes((unit * 262_144)[:262_144])
