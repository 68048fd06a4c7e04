"""An answer's probabilities are read from the token of its verdict, in every spelling, or not at all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.domain import Estimate, Probability, Unavailable
from groundwire.features.probe import (
    Reply,
    from_openai,
    parse_verdict,
    parse_verdicts,
    read,
    read_all,
    sampled,
)

Shown = tuple[str, Mapping[str, float]]


def entry(text: str, top: Mapping[str, float]) -> dict[str, Any]:
    """One entry of `logprobs.content`: the chosen token, and the likeliest with their probabilities."""
    listed = [{"token": each, "logprob": math.log(p) if p else -9999.0, "bytes": None} for each, p in top.items()]
    chosen = next((each for each in listed if each["token"] == text), {"token": text, "logprob": math.log(0.9)})
    return {**chosen, "top_logprobs": listed}


def body(*shown: Shown, text: str | None = None) -> dict[str, Any]:
    """A chat completion of one choice with these tokens; `text` replaces their joined text."""
    content = "".join(token for token, _ in shown) if text is None else text
    logprobs = {"content": [entry(*each) for each in shown]} if shown else None
    return {"choices": [{"message": {"content": content}, "logprobs": logprobs}]}


def single(*shown: Shown, text: str | None = None) -> Estimate:
    (reply,) = from_openai(body(*shown, text=text))
    return read(reply)


def bounds(estimate: Estimate) -> tuple[float, float]:
    assert isinstance(estimate, Probability), estimate
    return estimate.lower, estimate.upper


# --- one claim --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chosen", ["YES", "Yes", "yes", " yes", "▁Yes", "ĠYES", "Yes.", "YES\n", "**YES**", '"Yes"'])
def test_every_spelling_of_yes_is_yes(chosen: str) -> None:
    text = chosen.replace("▁", " ").replace("Ġ", " ")
    assert bounds(single((chosen, {chosen: 0.8, "NO": 0.2}), text=text)) == pytest.approx((0.8, 0.8))


def test_spellings_are_merged_and_renormalised() -> None:
    shown = {"YES": 0.4, " yes": 0.15, "Yes.": 0.05, "NO": 0.1, "▁No": 0.1, "Maybe": 0.2}
    found = single(("YES", shown))
    assert bounds(found) == pytest.approx((0.75, 0.75))
    assert isinstance(found, Probability)
    assert found.residual == pytest.approx(0.2)


def test_words_that_only_begin_like_a_verdict_are_none() -> None:
    shown = {"NO": 0.5, "Not": 0.1, "None": 0.1, "Yesterday": 0.1, "YES": 0.2}
    assert bounds(single(("NO", shown))) == pytest.approx((2 / 7, 2 / 7))


def test_of_the_chosen_token_alone_only_a_bound_is_known() -> None:
    assert bounds(single(("YES", {"YES": 0.7}))) == pytest.approx((0.7, 1.0))
    assert bounds(single(("NO", {"NO": 0.7}))) == pytest.approx((0.0, 0.3))


def test_a_chosen_token_that_is_not_listed_counts_too() -> None:
    logprobs = {"content": [{"token": "YES", "logprob": math.log(0.7), "top_logprobs": []}]}
    (reply,) = from_openai({"choices": [{"message": {"content": "YES"}, "logprobs": logprobs}]})
    assert bounds(read(reply)) == pytest.approx((0.7, 1.0))


def test_two_tokens_of_one_spelling_both_count() -> None:
    top = [{"token": "YES", "logprob": math.log(0.5)}, {"token": "YES", "logprob": math.log(0.3)}]
    content = [{**top[0], "top_logprobs": [*top, {"token": "NO", "logprob": math.log(0.2)}]}]
    (reply,) = from_openai({"choices": [{"message": {"content": "YES"}, "logprobs": {"content": content}}]})
    assert bounds(read(reply)) == pytest.approx((0.8, 0.8))


def test_a_word_of_several_tokens_counts_as_it_was_completed() -> None:
    """At least every N becomes a NO, at most none does."""
    completed = 0.8 * 0.95
    found = bounds(single(("Y", {"Y": 0.8, "N": 0.2}), ("ES", {"ES": 0.95})))
    assert found == pytest.approx((completed / (completed + 0.2), 1.0))


@pytest.mark.parametrize("text", ["YES", "  YES", "\n YES\n"])
def test_whitespace_around_the_verdict_is_ignored(text: str) -> None:
    shown = ("\n", {"\n": 1.0}), (" YES", {" YES": 0.9, " NO": 0.1}), ("\n", {"\n": 1.0})
    assert bounds(single(*shown, text=text)) == pytest.approx((0.9, 0.9))


def test_uncertain_tokens_before_the_verdict_lower_its_probability() -> None:
    shown = ("\n", {"\n": 0.9, "NO": 0.1}), ("YES", {"YES": 0.99, "NO": 0.01})
    lower, upper = bounds(single(*shown))
    assert lower == pytest.approx(0.891)
    assert lower <= 0.891 / (0.891 + 0.109) <= upper


@pytest.mark.parametrize(
    "text",
    ["", "I cannot help with that.", "No one knows.", "Maybe", "Yes and no", "YESTERDAY", "The answer is YES", "N/A"],
)
def test_an_answer_other_than_yes_or_no_is_unavailable(text: str) -> None:
    shown = [(piece, {piece: 0.9}) for piece in text.split(" ")]
    assert single(*shown, text=text) == Unavailable("no_verdict")
    assert parse_verdict(Reply(text)) is None


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("YES", True),
        (" no.", False),
        ("**Yes**", True),
        ("No, it fell.", False),
        ("yes\nbecause", True),
        ("NO ", False),
    ],
)
def test_the_verdict_of_a_sample_is_yes_or_no(text: str, verdict: bool) -> None:
    assert parse_verdict(Reply(text)) is verdict


def test_an_unlikely_yes_amid_something_else_is_unavailable() -> None:
    assert single(("YES", {"YES": 0.3, "I": 0.6, "NO": 0.1})) == Unavailable("no_verdict")


def test_samples_make_an_interval() -> None:
    assert bounds(sampled([True] * 10)) == pytest.approx((0.6915, 1.0), abs=1e-4)
    assert sampled([None, None]) == Unavailable("no_verdict")
    assert sampled([]) == Unavailable("no_samples")


# --- shapes -----------------------------------------------------------------------------------------------------------


def test_every_choice_is_read() -> None:
    choices = body(("YES", {"YES": 0.9}))["choices"] + body(("NO", {"NO": 0.9}))["choices"]
    assert [parse_verdict(reply) for reply in from_openai({"choices": choices})] == [True, False]


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {},
        {"content": None},
        {"content": []},
        {"content": "YES"},
        {"content": [None]},
        {"content": [{"token": "YES"}]},
        {"content": [{"token": 5, "logprob": -0.1}]},
        {"content": [{"token": "YES", "logprob": "-0.1"}]},
        {"content": [{"token": "YES", "logprob": True}]},
        {"content": [{"token": "YES", "logprob": 3.0}]},
        {"content": [{"token": "YES", "logprob": math.nan}]},
        {"content": [{"token": "YES", "logprob": -0.1, "top_logprobs": [{"token": "NO", "logprob": -0.1}]}]},
        {"content": [{"token": "YES", "logprob": -0.1, "top_logprobs": [None]}]},
    ],
    ids=str,
)
def test_logprobs_that_are_none_or_unsound_are_not_used(logprobs: object) -> None:
    (reply,) = from_openai({"choices": [{"message": {"content": "YES"}, "logprobs": logprobs}]})
    assert read(reply) == Unavailable("no_logprobs")
    assert parse_verdict(reply) is True


def test_a_logprob_out_of_reach_is_no_mass() -> None:
    assert bounds(single(("YES", {"YES": 1.0, "NO": 0.0}))) == pytest.approx((1.0, 1.0))
    logprobs = {"content": [{"token": "YES", "logprob": -(10**400)}]}
    (reply,) = from_openai({"choices": [{"message": {"content": "YES"}, "logprobs": logprobs}]})
    assert read(reply) == Unavailable("no_verdict")


def test_tokens_of_another_text_are_not_used() -> None:
    assert single(("<think>", {}), ("YES", {"YES": 0.9}), text="YES") == Unavailable("misaligned")
    assert single(("NO", {"NO": 0.9}), text="YES") == Unavailable("misaligned")


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from("choices message content logprobs token logprob top_logprobs".split()), inner, max_size=4
        )
    ),
)


@given(st.dictionaries(st.sampled_from(["choices", "message", "logprobs"]), json_values))
def test_no_body_is_too_strange_to_be_read(strange: dict[str, Any]) -> None:
    for reply in from_openai(strange):
        assert read(reply) is not None
        assert len(read_all(reply, 3)) == 3


# --- groups -----------------------------------------------------------------------------------------------------------


def line(claim: int | str, verdict: str, yes: float) -> list[Shown]:
    return [
        (str(claim), {str(claim): 1.0}),
        (":", {":": 1.0}),
        (f" {verdict}", {" YES": yes, " NO": 1 - yes}),
        ("\n", {"\n": 1.0}),
    ]


def group(*lines: Sequence[Shown], count: int, text: str | None = None) -> tuple[Estimate, ...]:
    (reply,) = from_openai(body(*(shown for each in lines for shown in each), text=text))
    return read_all(reply, count)


def test_each_claim_of_a_group_has_the_probability_at_its_own_verdict() -> None:
    found = group(line(1, "YES", 0.9), line(2, "NO", 0.2), line(3, "YES", 0.6), count=3)
    assert [bounds(each)[0] for each in found] == pytest.approx([0.9, 0.2, 0.6])


def test_verdicts_in_another_order_keep_to_their_claims() -> None:
    found = group(line(3, "YES", 0.6), line(1, "YES", 0.9), line(2, "NO", 0.2), count=3)
    assert [bounds(each)[0] for each in found] == pytest.approx([0.9, 0.2, 0.6])


@pytest.mark.parametrize(
    ("lines", "again"),
    [
        pytest.param([(1, "YES")], {2, 3}, id="missing"),
        pytest.param([(1, "YES"), (2, "NO"), (3, "YES"), (2, "NO")], {2}, id="repeated"),
        pytest.param([(1, "YES"), (2, "NO"), (3, "YES"), (2, "YES")], {2}, id="repeated otherwise"),
        pytest.param([(1, "PARTLY"), (2, "NO"), (3, "YES")], {1}, id="neither"),
        pytest.param([(1, "YES NO"), (2, "NO"), (3, "YES")], {1}, id="both"),
        pytest.param([(1, "YES if it is"), (2, "NO"), (3, "YES")], {1}, id="with a condition"),
        pytest.param([(0, "YES"), (1, "NO"), (2, "YES")], {1, 2, 3}, id="counted from zero"),
        pytest.param([(1, "YES"), (2, "NO"), (3, "YES"), (4, "NO")], {1, 2, 3}, id="one too many"),
        pytest.param([("1: YES\n2", "YES"), (2, "NO"), (3, "NO")], {2}, id="forged in a line"),
    ],
)
def test_a_claim_without_one_clear_verdict_is_retried(lines: list[tuple[Any, str]], again: set[int]) -> None:
    found = group(*(line(claim, verdict, 0.9) for claim, verdict in lines), count=3)
    unavailable = {place for place, each in enumerate(found, 1) if isinstance(each, Unavailable)}
    assert unavailable >= again
    text = "\n".join(f"{claim}: {verdict}" for claim, verdict in lines)
    assert {place for place, each in enumerate(parse_verdicts(Reply(text), 3), 1) if each is None} == again


@pytest.mark.parametrize(
    "written", ["1. YES\n2. NO", "1) Yes\n2) No", "[1]: yes\n[2]: no", "**1: YES**\n**2: NO**", "- 1: YES\n- 2: NO."]
)
def test_lists_are_written_in_many_ways(written: str) -> None:
    assert parse_verdicts(Reply(written), 2) == (True, False)


def test_prose_around_the_list_is_passed_over() -> None:
    assert parse_verdicts(Reply("Here they are:\n\n1: YES\n2: NO\n\nI hope this helps."), 2) == (True, False)


def test_a_token_that_holds_more_than_the_verdict_is_not_compared() -> None:
    merged = [("1", {"1": 1.0}), (": YES", {": YES": 0.9, ": NO": 0.1})]
    assert group(merged, count=1) == (Unavailable("misaligned"),)


def test_a_group_without_logprobs_has_none() -> None:
    assert read_all(Reply("1: YES\n2: NO"), 2) == (Unavailable("no_logprobs"),) * 2


@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=12), st.randoms())
def test_any_order_of_lines_gives_every_claim_its_own_probability(beliefs: list[float], chance: Any) -> None:
    lines = [line(claim, "YES" if yes >= 0.5 else "NO", yes) for claim, yes in enumerate(beliefs, 1)]
    chance.shuffle(lines)
    found = group(*lines, count=len(beliefs))
    assert [bounds(each)[0] for each in found] == pytest.approx(beliefs)
