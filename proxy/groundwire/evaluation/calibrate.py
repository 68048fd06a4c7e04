"""The `groundwire calibrate` command: fit the combination of a model with words, names and numbers, and measure it.

Every claim of labelled answers is judged by the exact checks, and by the model if there is one. A logistic regression
over the signals of each is then fitted such that all data sets and both classes have equal weight. If the ungrounded
part of an answer is not marked, its worst claim represents it, chosen anew with each fit (multiple-instance learning).
Probabilities and thresholds come from out-of-fold predictions: no answer is judged by weights fitted on its context.
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
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
from groundwire.evaluation.figures import figures, stated
from groundwire.evaluation.logistic import Example, Line, fit, sigmoid
from groundwire.evaluation.rows import Outcome, Row, context_of, outcome_of, read_rows
from groundwire.evaluation.run import workers
from groundwire.policy import Policy
from groundwire.telemetry.reliability import Calibration
from groundwire.verifiers.signals import Combination, Signals

FOLDS, _ROUNDS, _CHUNK = 5, 3, 16
_FEW = 150  # answers: a class with fewer has less weight than those of other sets
_SPARED = 0.3  # the weight of grounded parts in an ungrounded answer
_SIGNS = Signals(model=1.0, coverage=1.0, wording=1.0, names=-1.0, derived=1.0, absent=-1.0, wrong=-1.0, vetoed=-1.0)
_MISS_COSTS = {"strict": 1.2, "balanced": 0.75, "lenient": 0.5}
"""The cost of a miss by policy, relative to a false alarm. Most claims of real answers are right, so that equal rates
of both are more false alarms than misses.
"""
_BARS = tuple(place / 50 for place in range(5, 46))
_WORDS_ALONE = JudgeSettings(by="off")


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set for fitting: its licence, and whether to fit weights or only probabilities and thresholds."""

    licence: str
    weights: bool = True


DATA_SETS: Mapping[str, DataSet] = {
    "ragtruth_dev": DataSet("MIT"),
    "defacto_train": DataSet("MIT"),
    "bump_tune": DataSet("MIT"),
    "faithdial_tune": DataSet("MIT"),
    "storysumm_tune": DataSet("MIT"),
    "wice_tune": DataSet("ODC-BY, CC BY-SA"),
    "q2_tune": DataSet("Apache-2.0"),
    "fm2_tune": DataSet("Apache-2.0"),
    "quotesum_gold": DataSet("CC BY-SA 4.0"),
    "summedits_tune": DataSet("Apache-2.0", weights=False),
}
"""The sets behind the weights for words alone. SummEdits' small edits of free summaries yield word weights that do not
transfer, so it is used only for probabilities and thresholds.
"""


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """One checked claim with the signals of its verdict, None if an exact check decided.

    `truth` is 1 for supported, 0 for not, None if not labelled. `support` is the least score (0–1) of the other
    verdicts on it, `alarm` is set if one of them rejects it.
    """

    start: int
    end: int
    features: tuple[float, ...] | None
    truth: int | None
    support: float
    alarm: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """A labelled answer, its data set and fold, and its checked claims."""

    row: Row
    data_set: str
    fold: int
    claims: tuple[JudgedClaim, ...]


def calibrate(folder: Path, settings: JudgeSettings | None, out: Path | None, more: Sequence[Path] = ()) -> None:
    """Fit on labelled answers, print the card, and write weights and card to `out` or into the folder of the model.

    With a model, every set in `folder` is used. Without one (`settings` None), the known sets, or all of them if there
    are none; and `more` files are added. Raises GroundwireError when there is nothing to fit on, ConfigError when the
    model cannot be loaded.
    """
    load_judge(settings or _WORDS_ALONE)  # load here first, where errors reach the user
    files = sorted(folder.glob("*.jsonl"))
    if settings is None:
        files = [path for path in files if path.stem in DATA_SETS] or files
    answers = _collect([*files, *more], settings or _WORDS_ALONE)
    if len({answer.row.label for answer in _open(answers)}) < 2:
        raise GroundwireError(f"{folder} holds no labelled answers of both classes that no exact check decides.")
    fitted = fit_combination(answers)
    fitted["card"] |= {"model": settings.model if settings else None}
    Console().print_json(data=fitted["card"])
    own = Path(settings.model).expanduser() if settings else None
    where = out or (own / COMBINATION if own and own.is_dir() else None)
    if where:
        where.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf-8")


def _collect(files: Iterable[Path], settings: JudgeSettings) -> list[Answer]:
    """Return every labelled answer of the files with its claims."""
    answers: list[Answer] = []
    with workers(Console(stderr=True)) as (pool, shown):
        for path in files:
            with path.open(encoding="utf-8-sig", newline="\n") as lines:
                rows, _ = read_rows(lines)
            found = pool.map(partial(judge_row, settings=settings), rows, chunksize=_CHUNK)
            for row, claims in zip(rows, shown.track(found, len(rows), description=path.stem), strict=True):
                fold = zlib.crc32("".join(row.context).encode("utf-8", "surrogatepass")) // FOLDS % FOLDS
                answers.append(Answer(row, path.stem, fold, claims))
    return answers


def fit_combination(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the combination of least loss as `read_combination` reads it, with a card of its data and its figures.

    The line of each fold, fitted on the others, and the final one are scaled to the log-odds of a whole answer.
    """
    open_answers = _open(answers)
    lines = [_fit_weights([answer for answer in open_answers if answer.fold != fold]) for fold in range(FOLDS)]
    scale = _platt(open_answers, lines)
    crossed, final = [_scaled(line, scale) for line in lines], _scaled(_fit_weights(open_answers), scale)
    bars = {name: _bar(answers, crossed, cost) for name, cost in _MISS_COSTS.items()}
    weights = {name: round(weight, 5) for name, weight in zip(Signals._fields, final.weights, strict=True)}
    bias = round(final.bias, 5)
    return {"card": _card(answers, crossed, bars), "weights": weights, "bias": bias, "bars": bars, "contradicted": 0.5}


def judge_row(row: Row, settings: JudgeSettings) -> tuple[JudgedClaim, ...]:
    """Return every checked claim of a labelled answer, judged by exact checks and, if there is one, the model alone."""
    context, policy = context_of(row), Policy(name="balanced")
    claims = [claim for claim in find_claims(row.answer, policy).claims if claim.skip_reason is None]
    judge = replace(load_judge(settings), combination=Combination())
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
        _truth_of(claim.start, claim.end, row),
        min((verdict.score for verdict in checked), default=1.0),
        any(verdict.label != "supported" for verdict in checked),
    )


def _truth_of(start: int, end: int, row: Row) -> int | None:
    """Return 1 for a supported span of an answer, 0 for an unsupported one, None if not labelled."""
    if not row.label:
        return 1
    if row.spans is None:
        return None
    return int(not any(low < end and start < high for low, high in row.spans))


def _fit_weights(answers: Sequence[Answer]) -> Line:
    """Fit the weights, under their signs, on the sets that may provide them; on all sets if none is known."""
    chosen = [answer for answer in answers if answer.data_set not in DATA_SETS or DATA_SETS[answer.data_set].weights]
    usable = [answer for answer in chosen if any(claim.features for claim in answer.claims)]
    shares = _shares(usable)
    line: Line | None = None
    for _ in range(_ROUNDS):
        line = fit([example for answer in usable for example in _examples(answer, shares, line)], _SIGNS)
    assert line is not None  # noqa: S101 - there is at least one round
    return line


def _shares(answers: Sequence[Answer]) -> dict[tuple[str, int], float]:
    """Return the weight of one answer by set and class: sets have equal weights, and so do both classes in total."""
    counts = Counter((answer.data_set, answer.row.label) for answer in answers)
    totals = {label: sum(min(1.0, n / _FEW) for (_, y), n in counts.items() if y == label) for label in (0, 1)}
    return {key: min(1.0, n / _FEW) / n / totals[key[1]] for key, n in counts.items()}


def _examples(answer: Answer, shares: Mapping[tuple[str, int], float], line: Line | None) -> Iterable[Example]:
    """Return the claims of an answer as weighted examples.

    In a grounded answer the worst claim has as much weight as all claims together; in an ungrounded one the marked
    claims share its weight, or the worst has all of it.
    """
    claims = [(claim.features, claim.truth) for claim in answer.claims if claim.features]
    weight = shares[answer.data_set, answer.row.label]
    if line is None:
        return [Example(read, float(truth or 0), weight / len(claims)) for read, truth in claims]
    worst = min(range(len(claims)), key=lambda place: line(claims[place][0]))
    bad = sum(truth == 0 for _, truth in claims)
    weighed = []
    for place, (read, truth) in enumerate(claims):
        if not answer.row.label:
            part = 0.5 * (place == worst) + 0.5 / len(claims)
        elif truth is None:
            part = float(place == worst)
        else:
            part = 1 / bad if truth == 0 else _SPARED / len(claims)
        weighed.append(Example(read, float(truth or 0), weight * part))
    return [example for example in weighed if example.weight]


def _platt(answers: Sequence[Answer], lines: Sequence[Line]) -> Line:
    """Fit the map from the log-odds of an answer's worst claim to those of the whole answer being grounded."""
    known = [answer for answer in answers if not any(claim.alarm for claim in answer.claims)]
    shares = _shares(known)
    examples = []
    for answer in known:
        worst = min(lines[answer.fold](claim.features) for claim in answer.claims if claim.features)
        examples.append(Example((worst,), 1.0 - answer.row.label, shares[answer.data_set, answer.row.label]))
    return fit(examples, (1.0,), ridge=0.0)


def _scaled(line: Line, scale: Line) -> Line:
    """Return the line whose log-odds are those of `line`, mapped by `scale`."""
    slope = scale.weights[0]
    return Line(tuple(slope * weight for weight in line.weights), slope * line.bias + scale.bias)


def _open(answers: Sequence[Answer]) -> list[Answer]:
    return [answer for answer in answers if any(claim.features for claim in answer.claims)]


def _outcomes(answers: Sequence[Answer], lines: Sequence[Line], bar: float) -> dict[str, list[Outcome]]:
    """Return the outcome of the whole pipeline for every answer with these weights, by data set."""
    found = defaultdict(list)
    for answer in answers:
        judged = _combined(answer, lines, bar)
        alarms = [(claim.start, claim.end) for claim, _, is_alarm in judged if is_alarm]
        support = min((score for _, score, _ in judged), default=None)
        found[answer.data_set].append(outcome_of(answer.row, alarms, support, float(bool(judged))))
    return found


def _combined(answer: Answer, lines: Sequence[Line], bar: float) -> list[tuple[JudgedClaim, float, bool]]:
    """Return each claim of an answer with its score and whether it is flagged."""
    judged = []
    for claim in answer.claims:
        score = 1.0 if claim.features is None else sigmoid(lines[answer.fold](claim.features))
        judged.append((claim, min(claim.support, score), claim.alarm or score < bar))
    return judged


def _rates(outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, float]:
    """Return the shares of false alarms and misses, as means over the large sets that have both classes."""
    large = [each for each in outcomes.values() if len(each) >= _FEW and len({one.label for one in each}) == 2]
    if not large:
        raise GroundwireError(f"No set has {_FEW} answers of both classes, which thresholds are chosen by.")
    alarms = _mean(_mean(one.flagged for one in each if not one.label) for each in large)
    misses = _mean(_mean(not one.flagged for one in each if one.label) for each in large)
    return {"false_alarms": round(alarms, 3), "misses": round(misses, 3)}


def _mean(values: Iterable[float]) -> float:
    every = list(values)
    return sum(every) / len(every)


def _bar(answers: Sequence[Answer], lines: Sequence[Line], miss_cost: float) -> float:
    """Return the probability from which on a claim is supported: where the greater of false alarms and misses is least.

    Their sum is nearly the same over a wide range, so that it would leave the threshold to chance. Both claims and
    answers are counted; every set counts the same. The costs are smoothed, because single answers make them jump.
    """
    known: dict[tuple[str, str], list[tuple[int, float, bool]]] = defaultdict(list)
    for answer in answers:
        judged = _combined(answer, lines, 0.0)
        for claim, score, is_alarm in judged:
            truth = 0 if claim.truth is None and len(judged) == 1 else claim.truth
            if truth is not None:
                known["claims", answer.data_set].append((truth, score, is_alarm))
        if judged:
            weakest, is_alarm = min(score for _, score, _ in judged), any(is_alarm for _, _, is_alarm in judged)
            known["answers", answer.data_set].append((1 - answer.row.label, weakest, is_alarm))
    usable = [judged for judged in known.values() if {truth for truth, _, _ in judged} == {0, 1}]

    def cost(bar: float) -> float:
        alarms = sum(_mean(low < bar or is_alarm for truth, low, is_alarm in each if truth) for each in usable)
        misses = sum(1 - _mean(low < bar or is_alarm for truth, low, is_alarm in each if not truth) for each in usable)
        return max(alarms, miss_cost * misses)

    costs = [cost(bar) for bar in _BARS]
    smooth = [_mean(costs[max(0, place - 1) : place + 2]) for place in range(len(costs))]
    return _BARS[smooth.index(min(smooth))]


def _card(answers: Sequence[Answer], lines: Sequence[Line], bars: Mapping[str, float]) -> dict[str, Any]:
    """Return the card of a fit: description, method, date, the rates of each policy, and the accuracy of `balanced`."""
    by_policy = {name: _outcomes(answers, lines, bar) for name, bar in bars.items()}
    chosen, claims = by_policy["balanced"], [claim for answer in answers for claim in answer.claims]
    return {
        "what": "Logistic regression over the log-odds of the entailment model, words, names and numbers; probability "
        "of being supported, where half of the answers are grounded.",
        "date": date.today().isoformat(),
        "split": f"{FOLDS} folds by context; every figure is out of fold, of answers, with all verifiers",
        "policies": {policy: _rates(outcomes) for policy, outcomes in by_policy.items()},
        "ece": round(Calibration(stated(itertools.chain(*chosen.values()))).error or 0.0, 3),
        "data": {name: _set_card(name, outcomes) for name, outcomes in chosen.items()},
        "open": round(sum(claim.features is not None for claim in claims) / max(1, len(claims)), 3),
    }


def _set_card(name: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the card of one data set: its size, licence and accuracy."""
    found, known = figures(outcomes), DATA_SETS.get(name)
    names = ("f1", "false_alarms", "balanced_accuracy", "auroc", "span_f1", "ece")
    measured = {each: round(value, 3) for each in names if (value := getattr(found, each)) is not None}
    described = {"licence": known.licence, "used_for_weights": known.weights} if known else {}
    return {"n": found.n, **described, **measured}
