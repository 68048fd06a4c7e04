"""Detection of assertions, and of their confidence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.claims.stance import SKIP_REASONS, stance

SKIPPED = {
    "question": ("What is the capital?", "question"),
    "question_in_chinese": ("你好吗？", "question"),
    "imperative": ("Preheat the oven to 350 degrees.", "instruction"),
    "please": ("Please contact your bank.", "instruction"),
    "make_sure": ("Make sure that the lid is closed.", "instruction"),
    "i_think": ("I think that it was built in 1999.", "hedged"),
    "perhaps": ("Perhaps it was built in 1999.", "hedged"),
    "it_is_possible_that": ("It is possible that the firm was sold.", "hedged"),
    "might": ("Revenue might rise next year.", "hedged"),
    "might_not": ("Revenue might not rise.", "hedged"),
    "may_have_grown": ("Revenue may have grown.", "hedged"),
    "may_have_been": ("Profit may have been overstated.", "hedged"),
    "might_be": ("The firm might be the largest one.", "hedged"),
    "probably": ("The firm was probably sold.", "hedged"),
    "appears_to": ("The firm appears to have been sold.", "hedged"),
    "hello": ("Hello!", "greeting"),
    "sure": ("Sure!", "greeting"),
    "of_course": ("Of course!", "greeting"),
    "great_question": ("Great question!", "greeting"),
    "hope_this_helps": ("I hope this helps!", "greeting"),
    "welcome": ("You’re welcome.", "greeting"),
    "let_me_know": ("Let me know if you need more.", "offer"),
    "feel_free": ("Feel free to ask.", "offer"),
    "if_you_have": ("If you have any other questions, just ask.", "offer"),
    "if_you_want": ("If you like, I can write a summary.", "offer"),
    "happy_to": ("I'd be happy to explain more.", "offer"),
    "sorry": ("I'm sorry, but I can't help with that.", "refusal"),
    "cannot": ("I cannot provide legal advice.", "refusal"),
    "as_an_ai": ("As an AI, I have no body.", "refusal"),
    "do_not_know": ("I don’t know.", "refusal"),
    "context_silent": ("The context does not mention the price.", "not_in_context"),
    "documents_silent": ("The provided documents don't contain any information about it.", "not_in_context"),
    "passage_number_silent": ("Passage 3 does not provide any details.", "not_in_context"),
    "not_mentioned": ("The price is not mentioned in the text.", "not_in_context"),
    "not_specified": ("The exact date is not specified.", "not_in_context"),
    "no_mention": ("There is no mention of the price.", "not_in_context"),
    "none_mentioned": ("There are no side effects mentioned in the passages.", "not_in_context"),
    "no_evidence_in": ("There is no evidence of this in the provided context.", "not_in_context"),
    "cannot_find": ("I can't find any evidence that it was sold.", "not_in_context"),
    "unable": ("Unable to answer based on given passages.", "not_in_context"),
    "cannot_be_determined": ("The price cannot be determined.", "not_in_context"),
    "subject_left_out": ("Does n't say how long it is .", "not_in_context"),
    "hey_there": ("Hey there!", "greeting"),
    "noted": ("Note that the passages do not give a recipe.", "not_in_context"),
    "not_enough": ("There is not enough information to say.", "not_in_context"),
    "opinion": ("In my opinion, it is the best one.", "opinion"),
    "recommendation": ("I recommend the second one.", "opinion"),
    "taste": ("I love that film.", "opinion"),
    "evaluation": ("It was a great movie.", "opinion"),
    "cannot_believe": ("I can't believe how good it was.", "opinion"),
    "that_film": ("I love that it is.", "opinion"),
    "tag_alone": ("Right?", "question"),
    "question_with_a_tag": ("Do you like it, right?", "question"),
    "question_about_the_reader": ("So you have seen it, right?", "question"),
    "favourite": ("Blue is my favorite color.", "opinion"),
    "parted_contraction": ("That 's interesting .", "opinion"),
    "widely_parted_contraction": ("i ' m a big fan of football .", "opinion"),
    "new_to_the_writer": ("No I did not know that.", "refusal"),
    "never_been": ("I've never visited a plantation.", "refusal"),
    "acknowledged": ("I see.", "greeting"),
    "agreed": ("That makes sense.", "greeting"),
    "farewell": ("It was really great chatting with you .", "greeting"),
    "right": ("You're right.", "greeting"),
    "best": ("Sure, I'll do my best to help you!", "offer"),
    "before_a_tool": ("I'll look up the revenue of Acme Corp first.", "offer"),
    "before_a_search": ("Sure, I will search the documents for that.", "offer"),
    "before_the_first": ("First, I'll look up the revenue.", "offer"),
    "before_the_next": ("Now I'll read the second file.", "offer"),
    "before_a_check": ("I'm going to check the figures for 2023.", "offer"),
    "question_without_its_mark": ("have you heard of it", "question"),
    "what_a_source_holds": ("Passage 3 provides the necessary information to answer the question.", "discourse"),
    "how_a_source_is_made": ("Passage 2 provides a personal testimonial.", "discourse"),
    "in_detail": ("The document describes the process in detail.", "discourse"),
    "what_follows": ("Here is a summary of the key points.", "discourse"),
    "framed_refusal": ("Based on the provided passages, I am unable to help with that.", "refusal"),
    "nothing_more_needed": (
        "Based on the provided passages, there is no additional information needed to answer the question.",
        "discourse",
    ),
    "yes": ("Yes.", "no_content"),
    "no_it_is_not": ("No, it is not.", "no_content"),
}

ASSERTED = {
    "notice_is_a_noun": "Notice one month before expiry has to be given in writing, not by telephone.",
    "possibly_of_effort": "The screw has been tightened as hard as you possibly can.",
    "plain": "The firm was sold in 1999.",
    "legal_may": "The company may not pay dividends.",
    "medical_may": "It may increase the risk of stroke.",
    "can": "The drug can cause headaches.",
    "study_suggests": "The study suggests that it helps.",
    "attributed_appears": "According to the report, the firm appears to have grown.",
    "cited_hedge": "The firm was probably sold [2].",
    "hedged_side_clause": "The firm was sold in 1999, probably because of its debts.",
    "comparison": "Women are more likely to be affected.",
    "may_as_permission": "Members may vote in May.",
    "may_have_something": "Members may have two guests.",
    "might_as_a_noun": "The might of the empire faded.",
    "it_is_possible_to": "It is possible to pay by card.",
    "hedge_inside_a_title": "The song 'I Think We're Alone Now' was sung by Tommy James.",
    "quoted_question": 'He wrote a book called "Why not?" in 1999.',
    "telling_question": "Did you know that the firm was sold in 1999?",
    "tag_question": "It opened in 1990, didn't it?",
    "parted_tag_question": "Her childhood was sad , do n't you think ?",
    "fact_that_is_liked": "I love that it takes place in a public school.",
    "fact_that_is_hard_to_believe": "I can't believe that it was sold.",
    "reason_for_a_liking": "I like them because they are the cheapest cars there.",
    "yes_and_more": "Yes, the firm was sold.",
    "sure_and_more": "Sure, the firm was sold in 1999.",
    "noted": "Note that the firm was sold.",
    "framed_by_a_source": "The passage states that the firm was sold.",
    "framed_by_what_it_is_based_on": "Based on the given passages, the firm was sold.",
    "framed_by_the_answer": "In summary, the firm was sold.",
    "what_a_source_tells_of": "Passage 2 describes how the firm was sold.",
    "count_in_a_source": "The document lists 12 steps.",
    "known_to_the_writer": "I know that the firm was sold.",
    "yes_without_a_comma": "Yes he sold the firm.",
    "done_by_the_writer": "I have not cancelled your order.",
    "noun_that_looks_like_an_imperative": "Use of force is a crime.",
    "noun_and_verb": "Place names are old.",
    "negation_about_the_world": "The firm does not pay dividends.",
    "absence_in_the_world": "There is no evidence that vaccines cause autism.",
    "not_found_in_the_world": "The species is not found in Europe.",
    "apologies_as_a_subject": "Apologies can be meaningful.",
    "may_is_a_month": "It opened in May 1999.",
    "the_document_tells": "The document describes the price.",
    "greeting_as_a_subject": "Hello Kitty was created in 1974.",
    "cause_that_opens_with_thanks": "Thanks to its red bands, the tower is easy to find.",
    "short": "Paris.",
    "number": "42",
    "chinese": "巴黎是首都。",
}


@pytest.mark.parametrize(("text", "reason"), SKIPPED.values(), ids=SKIPPED)
def test_a_text_without_an_assertion_is_skipped_with_its_reason(text, reason):
    assert stance(text).skip == reason


@pytest.mark.parametrize("text", ASSERTED.values(), ids=ASSERTED)
def test_a_text_with_an_assertion_is_never_skipped(text):
    assert stance(text).skip is None


CONFIDENCES = {
    "plain": ("It was sold.", 0.9),
    "stated_share": ("I am 80% confident that it was sold.", 0.8),
    "stated_sure": ("I'm 95% sure it was sold.", 0.95),
    "stated_level": ("It was sold (confidence: high).", 0.9),
    "stated_decimal": ("It was sold (confidence: 0.35).", 0.35),
    "stated_out_of_ten": ("It was sold (confidence: 7/10).", 0.7),
    "certainly": ("It was certainly sold.", 0.95),
    "definitely": ("It was definitely sold.", 1.0),
    "likely": ("It was likely sold.", 0.7),
    "may": ("It may have been sold.", 0.6),
    "possibly": ("It was possibly sold.", 0.4),
    "unlikely": ("It is unlikely that it was sold.", 0.2),
    "lowest_counts": ("It may possibly have been sold.", 0.4),
    "month": ("It was sold in May.", 0.9),
    "comparison": ("It is more likely in winter.", 0.9),
    "prediction": ("It is likely to rise.", 0.7),
}


@pytest.mark.parametrize(("text", "confidence"), CONFIDENCES.values(), ids=CONFIDENCES)
def test_confidence_is_stated_or_inferred(text, confidence):
    assert stance(text).confidence == pytest.approx(confidence)


@given(st.text(max_size=300))
def test_any_text_has_a_stance(text):
    found = stance(text)
    assert found.skip is None or found.skip in SKIP_REASONS
    assert 0 <= found.confidence <= 1
