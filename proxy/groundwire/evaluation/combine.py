"""Fit the combination of a model's opinion with words, names and numbers: `groundwire calibrate --model`.

Every claim of labelled answers is judged by the model alone. A logistic regression over the signals of each is then
fitted with the weights and folds of `calibrate`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from groundwire.backends.loading import load_judge
from groundwire.backends.models import COMBINATION
from groundwire.claims.answer import find_claims
from groundwire.config import JudgeSettings
from groundwire.domain import Judgement
from groundwire.errors import GroundwireError
from groundwire.evaluation.calibrate import Answer, by_set, card_of, collect, fit_folds, least, truth_of
from groundwire.evaluation.logistic import Line, sigmoid
from groundwire.evaluation.outcome import Outcome, context_of, outcome_of
from groundwire.evaluation.rows import Row
from groundwire.judge import Judge
from groundwire.policy import Policy
from groundwire.verifiers.entailment import Combination, Signals

_SIGNS = Signals(model=1.0, coverage=1.0, names=-1.0, derived=1.0, absent=-1.0, wrong=-1.0, words=1.0, vetoed=-1.0)
_MISS_COSTS = {"strict": 1.5, "balanced": 1.0, "lenient": 0.67}
_BARS = tuple(place / 50 for place in range(5, 46))


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """One checked claim with the signals of its verdict, None if an exact check decided.

    `truth` is as in `calibrate`. `support` is the least score (0–1) of the other verdicts on it, `alarm` is set if one
    of them rejects it.
    """

    start: int
    end: int
    features: tuple[float, ...] | None
    truth: int | None
    support: float
    alarm: bool


def calibrate_model(folder: Path, settings: JudgeSettings, out: Path | None) -> None:
    """Fit on every set in a folder, print the card, and write both into the model's folder.

    Raises GroundwireError when there is nothing to fit on, ConfigError when the model cannot be loaded.
    """
    load_judge(settings)  # load here first, where errors reach the user
    answers = collect(sorted(folder.glob("*.jsonl")), partial(judge_row, settings=settings), Console(stderr=True))
    if len({answer.row.label for answer in _open(answers)}) < 2:
        raise GroundwireError(f"{folder} holds no answers of both classes about which the model is asked.")
    found = fit_combination(answers)
    found["card"] |= {"model": settings.model}
    Console().print_json(data=found["card"])
    own = Path(settings.model).expanduser()
    where = out or (own / COMBINATION if own.is_dir() else None)
    if where:
        where.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def fit_combination(answers: Sequence[Answer[JudgedClaim]]) -> dict[str, Any]:
    """Return the combination of least loss as `read_combination` reads it, with a card of its data and its figures."""
    open_answers = _open(answers)
    crossed, final = fit_folds(open_answers, _SIGNS)
    bars = {name: _bar(answers, crossed, cost) for name, cost in _MISS_COSTS.items()}
    weights = {name: round(weight, 5) for name, weight in zip(Signals._fields, final.weights, strict=True)}
    bias = round(final.bias, 5)
    return {"card": _card(answers, crossed, bars), "weights": weights, "bias": bias, "bars": bars, "contradicted": 0.5}


def judge_row(row: Row, settings: JudgeSettings) -> tuple[JudgedClaim, ...]:
    """Return every checked claim of a labelled answer, judged by exact checks and the model alone."""
    context, policy = context_of(row), Policy(name="balanced")
    claims = [claim for claim in find_claims(row.answer, policy).claims if claim.skip_reason is None]
    judge = Judge(load_judge(settings).model, Combination())
    return tuple(_judged(each, row) for each in judge(claims, context, policy)) if context.passages else ()


def _judged(judgement: Judgement, row: Row) -> JudgedClaim:
    modelled = next((each for each in judgement.verdicts if each.signals), None)
    others = [each for each in judgement.verdicts if each.verifier == "quote" or (modelled is None)]
    checked = [verdict for verdict in others if verdict.label != "not_checked"]
    claim = judgement.claim
    return JudgedClaim(
        claim.start,
        claim.end,
        modelled.signals if modelled else None,
        truth_of(claim.start, claim.end, row),
        min((verdict.score for verdict in checked), default=1.0),
        any(verdict.label != "supported" for verdict in checked),
    )


def _open(answers: Sequence[Answer[JudgedClaim]]) -> list[Answer[JudgedClaim]]:
    return [answer for answer in answers if any(claim.features for claim in answer.claims)]


def _outcome(answer: Answer[JudgedClaim], line: Line, bar: float) -> Outcome:
    """Return the outcome of the whole pipeline for an answer with these weights."""
    judged = list(_combined(answer.claims, line, bar))
    alarms = [(claim.start, claim.end) for claim, _, is_alarm in judged if is_alarm]
    support = min((score for _, score, _ in judged), default=None)
    return outcome_of(answer.row, alarms, support, float(bool(judged)))


def _combined(claims: Sequence[JudgedClaim], line: Line, bar: float) -> Iterator[tuple[JudgedClaim, float, bool]]:
    for claim in claims:
        score = 1.0 if claim.features is None else sigmoid(line(claim.features))
        yield claim, min(claim.support, score), claim.alarm or score < bar


def _by_set(answers: Sequence[Answer[JudgedClaim]], lines: Sequence[Line], bar: float) -> dict[str, list[Outcome]]:
    return by_set(answers, lambda answer: _outcome(answer, lines[answer.fold], bar))


def _bar(answers: Sequence[Answer[JudgedClaim]], lines: Sequence[Line], miss_cost: float) -> float:
    """Return the probability from which on a claim is supported: where the greater of false alarms and misses is least.

    Their sum is nearly the same over a wide range, so that it would leave the threshold to chance. Both claims and
    answers are counted; every set counts the same.
    """
    known: dict[tuple[str, str], list[tuple[int, float, bool]]] = defaultdict(list)
    for answer in answers:
        judged = list(_combined(answer.claims, lines[answer.fold], 0.0))
        known["claims", answer.data_set] += _known(judged)
        if judged:
            weakest, is_alarm = min(score for _, score, _ in judged), any(is_alarm for _, _, is_alarm in judged)
            known["answers", answer.data_set].append((1 - answer.row.label, weakest, is_alarm))

    def cost(bar: float) -> float:
        found = [_rates(claims, bar) for claims in known.values() if {truth for truth, _, _ in claims} == {0, 1}]
        return max(sum(alarms for alarms, _ in found), miss_cost * sum(misses for _, misses in found))

    return least(cost, _BARS)


def _known(judged: Sequence[tuple[JudgedClaim, float, bool]]) -> Iterator[tuple[int, float, bool]]:
    """Yield the truth, the score and the alarm of each claim of an answer whose truth is known or follows from it."""
    for claim, score, is_alarm in judged:
        truth = 0 if claim.truth is None and len(judged) == 1 else claim.truth
        if truth is not None:
            yield truth, score, is_alarm


def _rates(claims: Sequence[tuple[int, float, bool]], bar: float) -> tuple[float, float]:
    """Return the shares of the right claims that are flagged and of the wrong ones that are not."""
    right = [score < bar or is_alarm for truth, score, is_alarm in claims if truth]
    wrong = [score < bar or is_alarm for truth, score, is_alarm in claims if not truth]
    return sum(right) / len(right), 1 - sum(wrong) / len(wrong)


def _card(answers: Sequence[Answer[JudgedClaim]], lines: Sequence[Line], bars: Mapping[str, float]) -> dict[str, Any]:
    claims = [claim for answer in answers for claim in answer.claims]
    card = card_of(
        "Logistic regression over the log-odds of the entailment model, words, names and numbers; probability of being "
        "supported, where half of the answers are grounded.",
        {name: _by_set(answers, lines, bar) for name, bar in bars.items()},
    )
    return card | {"asked": round(sum(claim.features is not None for claim in claims) / max(1, len(claims)), 3)}
