"""Segmentation of answers into claims."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.claims import answer
from groundwire.claims.answer import find_claims
from groundwire.claims.stance import SKIP_REASONS
from groundwire.policy import Policy
from tests.steps import growth, is_linear

POLICY = Policy()


def claims(text, **settings):
    return find_claims(text, Policy(**settings)).claims


def texts(text):
    return [claim.text for claim in claims(text)]


PIECES = {
    "sentences": ("It rose. It fell.", ["It rose.", "It fell."]),
    "clauses_like_a_list": (
        "Ann met Bob, and the board approved the plan.",
        ["Ann met Bob", "and the board approved the plan."],
    ),
    "clauses_after_a_list": (
        "Ann met Bob, Carl and Dora, and the board approved the plan.",
        ["Ann met Bob, Carl and Dora", "and the board approved the plan."],
    ),
    "list": (
        "The board approved the plan, the budget, and the merger proposed by Acme.",
        ["The board approved the plan, the budget, and the merger proposed by Acme."],
    ),
    "clauses": ("Revenue rose 5%, and profit fell 3%.", ["Revenue rose 5%", "and profit fell 3%."]),
    "items": ("Facts:\n\n- **Size:** 10 km\n- Old", ["Facts:", "**Size:** 10 km", "Old"]),
    "rows": ("| a | b |\n|---|---|\n| x | 2 |\n| y | 3 |", ["a | b", "x | 2", "y | 3"]),
    "quote_markers_stay_inside": ("> It rose in\n> the year 1999.", ["It rose in\n> the year 1999."]),
    "markup_stays_inside": ("It **rose** by *5%*.", ["It **rose** by *5%*."]),
    "html_paragraphs": ("<p>It rose.</p><p>It fell.</p>", ["It rose.", "It fell."]),
    "line_breaks_in_html": ("It rose<br>Then it fell", ["It rose", "Then it fell"]),
    "rules_say_nothing": ("It rose.\n\n---\n\n...\n\n😀", ["It rose."]),
    "empty": ("", []),
    "spaces": (" \n\t ", []),
    "whole_answer_in_a_markdown_fence": ("```markdown\n# H\n\nIt rose.\n```", ["H", "It rose."]),
    "citation_stays_with_its_sentence": ("It rose.[1] It fell.[2]", ["It rose.[1]", "It fell.[2]"]),
}


@pytest.mark.parametrize(("text", "expected"), PIECES.values(), ids=PIECES)
def test_answer_is_cut_into_claims(text, expected):
    assert texts(text) == expected


KINDS = {
    "statement": ("It rose.", "statement"),
    "digits": ("It rose by 5.", "numeric"),
    "number_word": ("It rose by three.", "numeric"),
    "citation_is_no_number": ("It rose [1].", "statement"),
    "heading": ("# Results", "heading"),
    "bold_line": ("**Results**\n\nIt rose.", "heading"),
    "code": ("```\nx = 1\n```", "code"),
    "block_quote": ("> It rose.", "quote"),
    "row": ("| a |\n|---|\n| 1 |", "heading"),
}


@pytest.mark.parametrize(("text", "kind"), KINDS.values(), ids=KINDS)
def test_claim_has_a_kind(text, kind):
    assert claims(text)[0].kind == kind


LEADS = {
    "pronoun": ("Acme was founded in 1999. It rose.", "It rose.", "Acme was founded in 1999."),
    "pronoun_after_an_opening": ("Acme is old. In 2020, it rose.", "In 2020, it rose.", "Acme is old."),
    "generic_noun": ("Acme is old. The company rose.", "The company rose.", "Acme is old."),
    "possessive_of_a_generic_noun": (
        "Acme is old. The company's head, A. B., left.",
        "The company's head, A. B., left.",
        "Acme is old.",
    ),
    "across_paragraphs": ("Acme is old.\n\nIts profit rose.", "Its profit rose.", "Acme is old."),
    "name_needs_none": ("Acme is old. Bosch rose.", "Bosch rose.", ""),
    "item": ("Acme has:\n- wheels", "wheels", "Acme has:"),
    "row": ("| name | size |\n|---|---|\n| Acme | 5 |", "Acme | 5", "name | size"),
    "later_clause": ("Revenue rose 5%, and profit fell 3%.", "and profit fell 3%.", "Revenue rose 5%"),
}


@pytest.mark.parametrize(("text", "own", "lead"), LEADS.values(), ids=LEADS)
def test_claim_carries_what_it_leans_on(text, own, lead):
    assert [claim.lead for claim in claims(text) if claim.text == own] == [lead]


@pytest.mark.parametrize(
    ("answer", "lead"),
    [
        ("15.72 percent", "What was the change in sales?"),
        ("The answer is $3 million.", "What was the change in sales?"),
        ("Sales rose by 15.72 percent.", ""),
        ("Paris", ""),
    ],
)
def test_a_bare_number_leans_on_the_question(answer, lead):
    assert find_claims(answer, POLICY, "What was the change in sales?").claims[0].lead == lead


def test_citation_at_the_end_applies_to_the_whole_sentence():
    assert [claim.cited for claim in claims("Revenue rose 5%, and profit fell 3% [2].")] == [("2",), ("2",)]


def test_a_remark_on_missing_context_is_split_from_the_assertion():
    found = claims("The passage does not mention the price, but it was sold in 1999.")
    assert [(claim.text, claim.skip_reason) for claim in found] == [
        ("The passage does not mention the price", "not_in_context"),
        ("but it was sold in 1999.", None),
    ]


def test_a_remark_on_missing_knowledge_is_split_from_the_assertion():
    found = claims("I've never been to Seattle, but it is on the west coast.")
    assert [claim.skip_reason for claim in found] == ["refusal", None]


@pytest.mark.parametrize("step", ["- Bake it well.", "Take two tablets a day.", "Use the lid [1]."])
def test_an_instruction_that_relays_how_something_is_done_is_checked(step):
    assert claims(step)[0].skip_reason is None


def test_an_instruction_to_the_reader_is_not_checked():
    assert claims("Consult a doctor.")[0].skip_reason == "instruction"


def test_a_statement_set_as_a_heading_is_checked():
    assert claims("# The company was founded in 1999 in Boston.")[0].skip_reason is None


def test_reasoning_is_set_aside():
    thought, answer = claims("<think>It may be 5. Or 6.</think>\nIt is 6.")
    assert (thought.skip_reason, answer.text, answer.skip_reason) == ("reasoning", "It is 6.", None)


def test_hedged_statements_are_checked_when_the_policy_requires_it():
    text = "I think it was built in 1999."
    assert claims(text)[0].skip_reason == "hedged"
    [claim] = claims(text, verify_hedged=True)
    assert claim.skip_reason is None
    assert claim.stated_confidence < 0.7


def test_a_separate_confidence_belongs_to_the_claim_before():
    claim, stated = claims("Paris is the capital. Confidence: 80%")
    assert (claim.stated_confidence, stated.skip_reason) == (0.8, "confidence")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "Based on the given passages, the answer to the long question of how to file a lien on a semi truck is:",
            "lead_in",
        ),
        (
            "It has three large wheels, two of which were bought from a firm in Japan in 1999 and never used: good.",
            None,
        ),
    ],
)
def test_a_sentence_that_stops_at_its_verb_only_leads(text, reason):
    assert claims(text)[0].skip_reason == reason


def test_title_of_a_sublist_only_leads():
    title, item = claims("1. **Markets**\n   - Europe is large.")
    assert (title.skip_reason, item.skip_reason, item.lead) == ("lead_in", None, "**Markets**")


def test_list_of_sources_is_not_checked():
    found = claims("It rose.[1]\n\n## Sources\n\n[1] Annual report 2023\n[2] Press\n\n## More\n\nIt fell.")
    assert [claim.skip_reason for claim in found] == [
        None,
        "heading",
        "citation_only",
        "citation_only",
        "heading",
        None,
    ]


def test_the_attribution_is_not_part_of_the_quotation():
    quote, name = claims('> "It is working."\n> — A. Jones, CEO')
    assert (quote.kind, quote.skip_reason, name.skip_reason) == ("quote", None, "citation_only")


# JSON


def test_fields_of_a_json_answer_are_claims():
    text = '{"answer": "It rose. It fell.", "city": "Paris", "revenue": 4.2, "public": true, "gone": null}'
    assert [(c.text, c.kind, c.pointer) for c in claims(text)] == [
        ("It rose.", "statement", "/answer"),
        ("It fell.", "statement", "/answer"),
        ("Paris", "field", "/city"),
        ("revenue: 4.2", "field", "/revenue"),
        ("public: true", "field", "/public"),
    ]


def test_spans_of_fields_lie_in_the_raw_json():
    text = ' {"a": "It \\"rose\\" in M\\u00fcnchen.\\nThen it fell at once.", "n": [1, 25]}'
    found = claims(text)
    assert [text[c.start : c.end] for c in found] == [
        'It \\"rose\\" in M\\u00fcnchen.',
        "Then it fell at once.",
        "1",
        "25",
    ]
    assert found[0].text == 'It "rose" in München.'
    assert found[3].pointer == "/n/1"


def test_fenced_json_is_json():
    text = 'x\n```json\n{"a": "It rose by five percent."}\n```'.removeprefix("x\n")
    [claim] = claims(text)
    assert (claim.text, claim.pointer, text[claim.start : claim.end]) == ("It rose by five percent.", "/a", claim.text)


def test_json_inside_prose_is_code():
    assert [c.kind for c in claims('Here it is:\n```json\n{"a": 1}\n```')] == ["statement", "code"]


def test_record_of_a_list_is_named_in_the_lead():
    found = claims('[{"name": "Acme", "revenue": 4.2}, {"name": "Bosch", "revenue": 5}]')
    assert [(c.text, c.lead) for c in found if "revenue" in c.text] == [
        ("revenue: 4.2", "name: Acme"),
        ("revenue: 5", "name: Bosch"),
    ]


def test_confidence_field_speaks_for_its_record():
    found = claims('{"answer": "Paris is the capital of France.", "confidence": 0.65}')
    assert [(c.stated_confidence, c.skip_reason) for c in found] == [(0.65, None), (0.65, "confidence")]


def test_label_fields_are_not_checked():
    assert [c.skip_reason for c in claims('{"id": "a-1", "type": "summary", "text": "It rose."}')] == [
        "heading",
        "heading",
        None,
    ]


def test_broken_json_is_read_as_text():
    assert claims('{"answer": "It rose')[0].pointer is None


# The cap


def test_cap_is_reported_with_what_was_examined():
    found = find_claims("It rose. " * 10, Policy(max_claims=4))
    assert (len(found.claims), found.total, found.truncated) == (4, 10, True)
    assert found.examined == pytest.approx(0.4)


def test_answer_at_the_cap_is_whole():
    found = find_claims("It rose. " * 4, Policy(max_claims=4))
    assert (found.total, found.truncated, found.examined) == (4, False, 1.0)


# Invariants

_MARKDOWN = st.text(alphabet=st.sampled_from("aAb1.!?,;:\"'“”()[]`*-#>|<p \n\r。é😀\ud800"), max_size=300)
_PROSE = st.lists(
    st.sampled_from(
        "It was old , and the firm rose ; but 5% fell . [1] ( ) “ ” I think ? The passage does not mention".split()
    )
    | st.just("\n"),
    max_size=60,
).map(" ".join)


def check(text, found):
    place = 0
    for number, claim in enumerate(found.claims, 1):
        assert claim.id == f"c{number}"
        assert place <= claim.start < claim.end <= len(text)
        assert 0 <= claim.stated_confidence <= 1
        assert claim.skip_reason is None or claim.skip_reason in SKIP_REASONS
        assert len(claim.lead) <= 400
        assert claim.pointer is not None or claim.text == text[claim.start : claim.end]
        place = claim.end


@given(st.one_of(_MARKDOWN, _PROSE, st.text(max_size=200)))
def test_claims_are_ordered_disjoint_slices_of_any_text(text):
    check(text, find_claims(text, POLICY))


@given(_PROSE)
def test_every_letter_of_prose_lies_in_exactly_one_claim(text):
    inside = "".join(claim.text for claim in claims(text))
    assert [c for c in inside if c.isalnum()] == [c for c in text if c.isalnum()]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(_JSON, st.booleans())
def test_claims_of_any_json_lie_in_order_inside_it(value, ascii_only):
    text = json.dumps({"value": value}, ensure_ascii=ascii_only)
    check(text, find_claims(text, POLICY))


@given(st.text(max_size=200))
def test_adding_a_cap_only_shortens_the_list(text):
    assert find_claims(text, Policy(max_claims=2)).claims == claims(text)[:2]


# Speed

SIZE = 262_144
UNITS = (
    "a",
    "\n",
    "a\n",
    "A\n",
    "- a\n",
    "-\n",
    "1. ",
    "1.\n",
    "1. a\n",
    "> ",
    "> a\n",
    "|",
    "|\n",
    "# ",
    "#\n",
    "##\n",
    "`",
    "```\n",
    "~~~\n",
    '"',
    '"a. ',
    "'A ",
    "“",
    "“a ",
    "(",
    "(a ",
    "[",
    "[1]",
    "[1] ",
    "[1,",
    "[a](",
    ". ",
    "A. ",
    "? ",
    "؟ ",
    "。",
    "。 ",
    "and ",
    ", and ",
    ", and it is ",
    "; ",
    "*",
    "**a** ",
    "**a**\n",
    "_",
    "<",
    "<p>\n",
    "<!--\n",
    "<think>",
    "\n\n<br>\t\t",
    "{",
    "{}",
    "[[[[",
    '{"a":',
    "[1,",
    " ",
    "\t",
    "\r",
    "\u200b",
    "😀",
    "א ב. ",
    "\ud800",
    "¹",
    "passage 1 ",
    "source ",
    "http://a ",
    "no ",
    "not in the passage ",
    "The passage does not ",
    "unable to ",
    "i think ",
    "if you ",
    "confidence: ",
    "99% sure ",
    "Yes. ",
    "It is so. ",
    'x\n"',
    "a: \n",
    "\\",
    "&amp;",
    "=\n",
    "---\n",
    "The company said that revenue rose by 5% in 2020 [1], and profit fell to $3 million.\n",
)
WHOLE = {
    "table": lambda size: "| a | b |\n|---|---|\n" + "| 1 | x y |\n" * (size // 12),
    "staircase": lambda size: "".join(" " * depth + "- a\n" for depth in range(size // 200)),
    "json_numbers": lambda size: "[" + ",".join(["1"] * (size // 2)) + "]",
    "json_object": lambda size: json.dumps({f"k{number}": "It is so. Yes" for number in range(size // 25)}),
    "json_long_string": lambda size: json.dumps({"answer": 'It rose by "5%" in 2020.\n' * (size // 28)}),
    "json_escapes": lambda size: json.dumps({"answer": "é" * (size // 6)}),
    "json_deep": lambda size: "[" * min(size // 2, 900) + "]" * min(size // 2, 900),
}


def find_afresh(text):
    """Find the claims of a text that may have been read lately."""
    answer._find_recent.cache_clear()
    return find_claims(text, POLICY)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_hostile_text_is_segmented_in_linear_time(unit):
    assert is_linear(find_afresh, (unit * 8192)[:8192])
    find_claims((unit * SIZE)[:SIZE], POLICY)


@pytest.mark.slow
@pytest.mark.parametrize("make", WHOLE.values(), ids=WHOLE)
def test_large_structures_are_segmented_in_linear_time(make):
    assert growth(find_afresh, make(2048), make(8192)) < 6
    find_claims(make(SIZE), POLICY)
