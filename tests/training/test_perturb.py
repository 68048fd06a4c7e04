"""Each rule changes one thing, takes it from the evidence where it can, and leaves alone what it does not apply to."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training import perturb
from training.perturb import SAME, WRONG, Rule, with_invention
from training.tables import COUNTS, DAYS, JOINTS, LEAD_INS, MONTHS, OPPOSITES

DRAWS = 60


def outcomes(rule: Rule, claim: str, evidence: str = "") -> set[str | None]:
    return {rule(claim, evidence, random.Random(seed)) for seed in range(DRAWS)}


ONLY = {
    "date-of-evidence": (perturb.wrong_date, "It opened in May.", "May or June.", {"It opened in June."}),
    "day-of-evidence": (perturb.wrong_date, "It met on Monday.", "Monday, then Friday", {"It met on Friday."}),
    "name-of-evidence": (
        perturb.wrong_name,
        "The mayor met Anna Berg.",
        "The mayor met Anna Berg and Carl Lund.",
        {"The mayor met Carl Lund."},
    ),
    "names-swapped": (perturb.swapped_names, "Anna visited Berta.", "", {"Berta visited Anna."}),
    "not-taken-out": (perturb.negated, "It did not rain.", "", {"It did rain."}),
    "nt-taken-out": (perturb.negated, "It wasn't cold.", "", {"It was cold."}),
    "not-put-in": (perturb.negated, "It was cold.", "", {"It was not cold.", "It was never cold."}),
    "opposite": (perturb.opposite, "Prices rose.", "", {"Prices fell."}),
    "opposite-with-capital": (perturb.opposite, "Higher rates help.", "", {"Lower rates help."}),
    "some-is-all": (perturb.other_quantifier, "Some cats sleep.", "", {"All cats sleep."}),
    "at-least-is-at-most": (perturb.other_quantifier, "It takes at least a day.", "", {"It takes at most a day."}),
    "may-is-will": (perturb.hedge_dropped, "It may help.", "", {"It will help."}),
    "longer-hedge-first": (perturb.hedge_dropped, "It may be late.", "", {"It is late."}),
    "speaker-of-evidence": (
        perturb.wrong_speaker,
        "Anna said it works.",
        "It works, said Anna, but Berta doubts it.",
        {"Berta said it works."},
    ),
    "word-of-same-ending": (
        perturb.other_word,
        "She was painting it.",
        "She was painting, not carving.",
        {"She was carving it."},
    ),
    "end-of-another-sentence": (
        perturb.recombined,
        "The old bridge was built of stone blocks.",
        "The old bridge was built of stone blocks. The tower was painted in bright colours.",
        {"The old bridge was painted in bright colours."},
    ),
    "cause-turned": (perturb.turned_round, "Storms caused floods.", "", {"floods caused Storms."}),
    "parenthesis-left-out": (
        perturb.shortened,
        "The bridge (built in 1900) crosses the river near the town.",
        "",
        {"The bridge crosses the river near the town."},
    ),
    "relative-clause-left-out": (
        perturb.shortened,
        "The bridge, which is made of stone, crosses the river here.",
        "",
        {"The bridge crosses the river here."},
    ),
    "first-adverb-left-out": (
        perturb.shortened,
        "However, the bridge crosses the river here.",
        "",
        {"The bridge crosses the river here."},
    ),
    "synonym": (perturb.reworded, "The doctor is late.", "", {"The physician is late."}),
    "phrase-moved": (perturb.moved_phrase, "The shop closed in 1990.", "", {"In 1990, the shop closed."}),
    "phrase-moved-before-name": (perturb.moved_phrase, "Anna left on Monday.", "", {"On Monday, Anna left."}),
}


@pytest.mark.parametrize(("rule", "claim", "evidence", "expected"), ONLY.values(), ids=ONLY)
def test_rule_makes_these_and_no_others(rule: Rule, claim: str, evidence: str, expected: set[str]) -> None:
    assert outcomes(rule, claim, evidence) == expected


NOT_APPLIED = {
    "no-number": (perturb.wrong_number, "It is cheap.", "It costs 40 euros."),
    "no-date": (perturb.wrong_date, "It opened early.", "It opened in May."),
    "no-other-name": (perturb.wrong_name, "He met Anna Berg.", "He met Anna Berg."),
    "name-shares-a-word": (perturb.wrong_name, "He met Anna Berg.", "He met Clara Berg."),
    "names-joined-by-and": (perturb.swapped_names, "Anna and Berta left.", ""),
    "one-name": (perturb.swapped_names, "Anna left.", ""),
    "first-word-is-no-name": (perturb.swapped_names, "The king of Spain left.", ""),
    "no-auxiliary": (perturb.negated, "Prices rose.", ""),
    "no-opposite": (perturb.opposite, "Cats sleep.", ""),
    "no-quantifier": (perturb.other_quantifier, "Cats sleep.", ""),
    "no-hedge": (perturb.hedge_dropped, "It helps.", ""),
    "nobody-speaks": (perturb.wrong_speaker, "Anna left.", "He met Berta."),
    "nobody-else": (perturb.wrong_speaker, "Anna said it works.", "It works, said Anna."),
    "no-word-of-same-ending": (perturb.other_word, "She was painting it.", "She was painting the wall."),
    "no-other-end": (perturb.recombined, "The old bridge was built of stone.", "The old bridge was built of stone."),
    "nothing-to-turn": (perturb.turned_round, "Cats sleep.", ""),
    "same-on-both-sides": (perturb.turned_round, "It went on day after day.", ""),
    "nothing-to-leave-out": (perturb.shortened, "The bridge crosses the river.", ""),
    "too-short-to-shorten": (perturb.shortened, "However, it is here.", ""),
    "no-synonym": (perturb.reworded, "Cats sleep.", ""),
    "no-phrase-at-the-end": (perturb.moved_phrase, "The shop closed.", ""),
    "too-many-commas": (perturb.moved_phrase, "A, B, C, D closed in 1990.", ""),
}


@pytest.mark.parametrize(("rule", "claim", "evidence"), NOT_APPLIED.values(), ids=NOT_APPLIED)
def test_rule_does_not_apply(rule: Rule, claim: str, evidence: str) -> None:
    assert outcomes(rule, claim, evidence) == {None}


def test_number_is_one_of_the_evidence_or_a_slip_of_a_digit() -> None:
    made = outcomes(perturb.wrong_number, "It costs 40 euros.", "It costs 40 euros and 65 cents, never 1234567 euros.")
    assert "It costs 65 euros." in made
    assert "It costs 40 euros." not in made
    slips = {each.split()[2] for each in made if each} - {"65"}
    assert slips
    assert all(len(each) == 2 and (each[0] == "4" or each[1] == "0") for each in slips)


def test_count_in_words_becomes_another_count() -> None:
    made = outcomes(perturb.wrong_number, "It has three doors.")
    assert made <= {f"It has {count} doors." for count in COUNTS if count != "three"}
    assert len(made) > 1


@pytest.mark.parametrize(("word", "group"), [("May", MONTHS), ("Monday", DAYS)])
def test_date_that_the_evidence_does_not_offer_is_any_other(word: str, group: list[str]) -> None:
    made = outcomes(perturb.wrong_date, f"It was in {word}.")
    assert made <= {f"It was in {each}." for each in group if each != word}
    assert len(made) > 1


def test_lead_in_keeps_the_capital_of_a_name_only() -> None:
    assert outcomes(perturb.introduced, "Anna left.") <= {f"{lead}Anna left." for lead in LEAD_INS}
    assert outcomes(perturb.introduced, "The cat left.") <= {f"{lead}the cat left." for lead in LEAD_INS}
    assert outcomes(perturb.introduced, "I left.") <= {f"{lead}I left." for lead in LEAD_INS}


def test_invention_appends_the_end_of_another_text() -> None:
    made = {
        with_invention("Cats sleep.", "The bridge was built of stone.", random.Random(each)) for each in range(DRAWS)
    }
    assert made == {f"Cats sleep{joint}built of stone." for joint in JOINTS}


def test_invention_needs_a_clause_to_append() -> None:
    assert with_invention("Cats sleep.", "Prices rose.", random.Random(0)) is None


def test_at_most_three_words_are_reworded() -> None:
    made = outcomes(perturb.reworded, "The job of the lawyer, the doctor and the huge car is important.")
    words = "The job of the lawyer, the doctor and the huge car is important.".split()
    assert {sum(a != b for a, b in zip(words, each.split(), strict=True)) for each in made if each} == {3}


def test_opposites_are_words_of_lower_case() -> None:
    assert all(word == word.lower() and word.isalpha() and other != word for word, other in OPPOSITES.items())


@given(
    words=st.lists(st.sampled_from("Anna Berg said the film may not rise to 40 in May ( , ) than more .".split())),
    evidence=st.sampled_from(("", "Carl Lund said in June that 65 films fell.")),
    seed=st.integers(0, 1000),
)
def test_every_rule_takes_any_text_and_is_repeatable(words: list[str], evidence: str, seed: int) -> None:
    claim = " ".join(words) or "Cats"
    for rule in (*WRONG, *SAME):
        made = rule(claim, evidence, random.Random(seed))
        assert made is None or made.strip()
        assert made == rule(claim, evidence, random.Random(seed))
