"""Sentences and clauses of a block, in which quotations stay whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.text.sentences import QUOTE_LIMIT, clauses, sentences

SENTENCES = {
    "plain": "It rose.| It fell.",
    "abbreviations": "Dr. Smith of the U.S. Army met J. K. Rowling, e.g. at 5 p.m. on Jan. 5.| He left.",
    "decimals": "It costs $3.5 million.| It rose 2.75 percent.",
    "shortened_word_before_a_number": "It took approx. 5 days.| See fig. 3 there.",
    "ellipsis": "It rose... and fell.| Then it ended.",
    "exclamations": "Really?!| Yes.| It is.",
    "joined_from_words": "is it old ? |it is from 1999 ! |that is old .",
    "quotation_over_two_sentences": 'He said, "It rose. It fell." | Then he left.',
    "curly_quotation": "He said, “It rose. It fell.” |Then he left.",
    "german_quotation": "Er sagte „Ja. Nein.“ |Then he left.",
    "single_quotation": "It means 'Reap. Sow.' |In Italy it is a name.",
    "quoted_question_inside": 'He asked "Why?" and left.| Then it ended.',
    "stray_mark": 'The 5" disk was small.| It was "new. |It sold.',
    "parenthesis": "It fell (see Fig. 2. It shows this.) in May.| It rose.",
    "parenthesis_of_its_own": "It fell. |(It had risen.) |Then it ended.",
    "citation_after_the_stop": "It grew in 2020.[1]| The next year it fell. [2]| It rose.[1][2]| It ended.",
    "lens_citation": "It rose.【4†source】 |It fell.",
    "raised_citation": "It rose.¹ |It fell.",
    "named_citation": "It rose. (Source 2) |It fell.",
    "citation_as_subject": "It rose. |[1] says so.",
    "address": "See https://example.org/a.b?c=D.E for it.| It is there.",
    "enumeration_in_text": "1. It rose. |2. It fell.",
    "glued": "This is the end of it.|Next it rose again.",
    "name_with_a_stop": "It runs on Node.Js and more.",
    "bold": "**It rose.** |*It fell.* |It ended.",
    "inline_code": "Call `a.b. C` now.| It works.",
    "chinese": "今日は晴れ。|明日は雨。",
    "japanese_quotation": "彼は「はい。そう。」と言った。|そうだ。",
    "wrapped_line": "The company that was founded in the year 1999 in the city of\nBoston is large.",
    "lines_of_their_own": "Name: John\n|Age: 42\n|City: Paris",
    "hard_break": "The company was founded a long time ago in a city far away  \n|Boston is large",
    "lone_surrogate": "A \ud800 rose.| It fell.",
    "no_letters": "... !",
}


@pytest.mark.parametrize("marked", SENTENCES.values(), ids=SENTENCES)
def test_text_is_cut_into_sentences(marked):
    expected = [part.strip() for part in marked.split("|") if any(map(str.isalnum, part))]
    text = marked.replace("|", "")
    assert [text[start:end] for start, end in sentences(text)] == expected


def test_an_overlong_quotation_is_cut_like_other_text():
    text = '"' + "It rose. " * (QUOTE_LIMIT // 9 + 2) + '"'
    assert len(list(sentences(text))) > 2


CLAUSES = {
    "and": "Revenue rose 5%|and profit fell 3%.",
    "but": "It was founded in 1999|but it closed in 2001.",
    "while": "The first system is made of neurons|while the second is made up of glands.",
    "semicolon": "Revenue rose 5%|profit fell to 3 million.",
    "three": "It was small|and it was old|but he was rich.",
    "shared_subject_with_an_adverb": "It was old, and quickly rose to fame.",
    "participle": "It sells old tools, and systems used in war.",
    "shared_subject": "Revenue rose 5%, and then fell 3%.",
    "list_of_nouns": "It sells apples, pears, and the best plums.",
    "reported": "He said that revenue rose 5%, and profit fell 3%.",
    "condition": "If it is so, and he was there, then it ended.",
    "not_only": "It was not only old, but it was also small.",
    "either": "Either it was old, or he was, and it was small.",
    "inside_quotation": '"It was old, and he was young," it was said.',
    "inside_parenthesis": "The firm (it was old, and he was young) closed.",
    "relative": "It was old, and the man who was there left.",
    "no_verb": "A big house, and a small garden.",
}


@pytest.mark.parametrize("marked", CLAUSES.values(), ids=CLAUSES)
def test_sentence_is_cut_only_where_both_parts_are_complete(marked):
    separator = "; " if "profit fell to 3 million" in marked else ", "
    text = marked.replace("|", " " if "1999|but" in marked else separator)
    assert [text[start:end] for start, end in clauses(text)] == marked.split("|")


@given(st.text(alphabet=st.sampled_from("aAb1.!?,;:\"'“”‘’()[]` \n。*-é😀\ud800"), max_size=200))
def test_every_letter_lies_in_exactly_one_sentence(text):
    place, covered = 0, ""
    for start, end in sentences(text):
        assert place <= start < end <= len(text)
        covered += text[start:end]
        place = end
    assert [c for c in covered if c.isalnum()] == [c for c in text if c.isalnum()]


@given(st.lists(st.sampled_from("it was rose , ; and but while the firm ( ) 5%".split()), max_size=40).map(" ".join))
def test_every_word_lies_in_exactly_one_clause(text):
    parts = [text[start:end] for start, end in clauses(text)]
    assert [c for c in "".join(parts) if c.isalnum()] == [c for c in text if c.isalnum()]
