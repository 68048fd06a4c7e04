"""The `groundwire calibrate --encoder` command: how much an encoder's word counts beside the statement model's.

The encoder is asked about the claims that it would be asked about in the proxy, without a limit of time. What it gives
and what the shipped model gives are joined by a logistic regression with the data, weights and folds of `calibrate`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from proxy.config import Encoder as EncoderSettings
from proxy.errors import GroundwireError
from proxy.evaluation.calibrate import (
    FOLDS,
    MISS_COSTS,
    Answer,
    by_set,
    card_of,
    collect,
    files_of,
    fit_weights,
    least,
    platt,
    rates,
    scaled,
    truth_of,
    worst_odds,
)
from proxy.evaluation.logistic import Line, sigmoid
from proxy.evaluation.outcome import Outcome, context_of, overlap
from proxy.evaluation.rows import Row
from proxy.evidence.loading import load_encoder
from proxy.types import Claim, Policy
from proxy.verification import numeric, quote, statement
from proxy.verification.alignment.model import log_odds
from proxy.verification.claims.answer import find_claims
from proxy.verification.context.index import Context
from proxy.verification.encoder import Encoder, TooLong, evidence_of, is_asked, spoken

_SIGNS = (1.0, 1.0)
_BARS = tuple(place / 50 for place in range(8, 41))


@dataclass(frozen=True, slots=True)
class Heard:
    """One checked claim: the log-odds that model and encoder give it (None: the encoder is not asked about it).

    `truth` is as in `calibrate`. `support` is the least score (0–1) of all other verdicts on it, `alarm` whether one of
    them raises one.
    """

    start: int
    end: int
    features: tuple[float, ...] | None
    truth: int | None
    support: float
    alarm: bool


def calibrate_encoder(folder: Path, settings: EncoderSettings, policy: Policy, out: Path | None) -> None:
    """Fits on the data sets that `calibrate` fits on, prints the card, and writes both to `out`.

    Raises GroundwireError when there is nothing to fit on, ConfigError when the encoder cannot be loaded.
    """
    load_encoder(settings)  # here first, where what is wrong with it can be told
    see = partial(hear, settings=settings, policy=policy)
    answers = collect(files_of(folder), see, Console(stderr=True))
    if len({answer.row.label for answer in _asked(answers)}) < 2:
        raise GroundwireError(f"{folder} holds no answers of both classes about which the encoder is asked.")
    found = fit_blend(answers)
    found["card"] |= {"encoder": settings.model}
    Console().print_json(data=found["card"])
    if out:
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def fit_blend(answers: Sequence[Answer[Heard]]) -> dict[str, Any]:
    """The blend of least loss as `read_blend` reads it, with a card of what it was fitted on and how good it is."""
    asked = _asked(answers)
    lines = [fit_weights([answer for answer in asked if answer.fold != fold], _SIGNS) for fold in range(FOLDS)]
    scale = platt(asked, [worst_odds(answer, lines[answer.fold]) for answer in asked])
    crossed = [scaled(line, scale) for line in lines]
    bars = {name: _bar(answers, crossed, cost) for name, cost in MISS_COSTS.items()}
    final = scaled(fit_weights(asked, _SIGNS), scale)
    model, encoder = (round(weight, 5) for weight in final.weights)
    card = _card(answers, crossed, bars)
    return {"card": card, "model": model, "encoder": encoder, "bias": round(final.bias, 5), "bars": bars}


def _asked(answers: Sequence[Answer[Heard]]) -> list[Answer[Heard]]:
    return [answer for answer in answers if any(claim.features for claim in answer.claims)]


def hear(row: Row, settings: EncoderSettings, policy: Policy) -> tuple[Heard, ...]:
    """Every checked claim of a labelled answer, with what the encoder says of those that it is asked about."""
    context, (encoder, _) = context_of(row), load_encoder(settings)
    claims = (claim for claim in find_claims(row.answer, policy).claims if claim.skip_reason is None)
    return tuple(_hear(claim, context, row, encoder, policy) for claim in claims) if context.passages else ()


def _hear(claim: Claim, context: Context, row: Row, encoder: Encoder, policy: Policy) -> Heard:
    said = [verdict for verify in (quote.verify, numeric.verify) if (verdict := verify(claim, context, policy))]
    found = statement.assess(claim, context, policy)
    features = None
    if found is not None:
        worded = statement.decide(*found, policy)
        support = _support(encoder, claim, found[0]) if is_asked(found[0], worded, policy) else None
        if support is None:
            said.append(worded)
        else:
            features = (log_odds(worded.score), log_odds(support))
    checked = [verdict for verdict in said if verdict.label != "not_checked"]
    return Heard(
        claim.start,
        claim.end,
        features,
        truth_of(claim.start, claim.end, row),
        min((verdict.score for verdict in checked), default=1.0),
        any(verdict.label != "supported" for verdict in checked),
    )


def _support(encoder: Encoder, claim: Claim, alignment: statement.Alignment) -> float | None:
    try:
        return encoder(spoken(claim), evidence_of(alignment)).support
    except TooLong:
        return None


def _outcome(answer: Answer[Heard], line: Line, bar: float) -> Outcome:
    """What the whole pipeline would say of an answer with this blend."""
    judged = list(_judged(answer.claims, line, bar))
    alarms = [(claim.start, claim.end) for claim, _, is_alarm in judged if is_alarm]
    support = min((score for _, score, _ in judged), default=None)
    row = answer.row
    checked = float(bool(judged))
    return Outcome(row.id, row.label, bool(alarms), support, checked, len(row.answer), 0.0, overlap(alarms, row))


def _judged(claims: Sequence[Heard], line: Line, bar: float) -> Iterator[tuple[Heard, float, bool]]:
    for claim in claims:
        joined = 1.0 if claim.features is None else sigmoid(line(claim.features))
        yield claim, min(claim.support, joined), claim.alarm or joined < bar


def _by_set(answers: Sequence[Answer[Heard]], lines: Sequence[Line], bar: float) -> dict[str, list[Outcome]]:
    return by_set(answers, lambda answer: _outcome(answer, lines[answer.fold], bar))


def _bar(answers: Sequence[Answer[Heard]], lines: Sequence[Line], miss_cost: float) -> float:
    """The joined probability from which on a claim is supported: where alarms and misses cost least."""

    def cost(bar: float) -> float:
        alarms, misses = rates(_by_set(answers, lines, bar))
        return alarms + miss_cost * misses

    return least(cost, _BARS)


def _card(answers: Sequence[Answer[Heard]], lines: Sequence[Line], bars: Mapping[str, float]) -> dict[str, Any]:
    claims = [claim for answer in answers for claim in answer.claims]
    card = card_of(
        "Logistic regression over the log-odds of the statement model and of an encoder; probability of being "
        "supported, where half of the answers are grounded.",
        {name: _by_set(answers, lines, bar) for name, bar in bars.items()},
    )
    return card | {"asked": round(sum(claim.features is not None for claim in claims) / max(1, len(claims)), 3)}
