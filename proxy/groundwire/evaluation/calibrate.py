"""The `groundwire calibrate` command: refit the statement verifier's model on labelled answers, and measure it.

Weights are fitted such that all data sets and both classes have equal weight. If the ungrounded part of an answer is
not marked, its worst claim represents it, chosen anew with each fit (multiple-instance learning). Probabilities and
thresholds come from out-of-fold predictions: no answer is judged by weights fitted on its context.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from rich.console import Console

from groundwire.claims.answer import find_claims
from groundwire.domain import Label
from groundwire.errors import GroundwireError
from groundwire.evaluation.figures import figures, stated
from groundwire.evaluation.logistic import Example, Line, fit, sigmoid
from groundwire.evaluation.outcome import Outcome, context_of, outcome_of
from groundwire.evaluation.rows import Row, read_rows
from groundwire.evaluation.run import progress
from groundwire.evidence.index import Context
from groundwire.policy import Policy
from groundwire.telemetry.reliability import ece
from groundwire.verifiers import quotes, statement
from groundwire.verifiers.lexical import SIGNS, Bar, Features
from groundwire.verifiers.numbers import numeric

FOLDS, _ROUNDS, _WORKERS, _CHUNK = 5, 3, 2, 16
_FEW = 150  # answers: a class with fewer has less weight than those of other sets
_DOUBT = 2  # pseudo-count of answers of each class for every kind of verdict
_SPARED = 0.3  # the weight of grounded parts in an ungrounded answer
_POLICY = Policy()

B = TypeVar("B")

MISS_COSTS = {"strict": 1.1, "balanced": 1.0, "lenient": 0.7}
"""The cost of a miss by policy, relative to a false alarm."""


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
"""The sets behind the shipped weights. SummEdits' small edits of free summaries yield word weights that do not
transfer, so it is used only for probabilities and thresholds.
"""


class OtherVerdict(NamedTuple):
    """A verifier's verdict on a claim: its name, its label, and its score before calibration (0–1)."""

    verifier: str
    label: Label
    score: float


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """One checked claim: its features (None: no content), its truth, and the decisions made without a model.

    `truth` is 1 for supported, 0 for not, None if not labelled. `others` are the verdicts of the other verifiers that
    checked it, `alarm` is set if they or a veto reject it, `contradicted` if a veto does, `is_open` if the model may
    clear it.
    """

    start: int
    end: int
    features: Features | None
    truth: int | None
    others: tuple[OtherVerdict, ...]
    alarm: bool
    contradicted: bool
    is_open: bool


class ClaimInput(Protocol):
    """The inputs of fitting for one claim: features (None: not applicable), truth, and other alarms."""

    @property
    def features(self) -> tuple[float, ...] | None: ...  # noqa: D102
    @property
    def truth(self) -> int | None: ...  # noqa: D102
    @property
    def alarm(self) -> bool: ...  # noqa: D102


C = TypeVar("C", bound=ClaimInput, covariant=True)


@dataclass(frozen=True, slots=True)
class Answer(Generic[C]):
    """A labelled answer, its data set and fold, and its checked claims."""

    row: Row
    data_set: str
    fold: int
    claims: tuple[C, ...]


def calibrate(folder: Path, out: Path | None, more: Sequence[Path] = ()) -> None:
    """Fit on the known data sets in `folder`, or on every .jsonl file if there are none; print figures.

    Files in `more` are added.

    Writes weights and card to `out`. Raises GroundwireError when there is nothing to fit on.
    """
    console = Console()
    answers = collect([*files_of(folder), *more], check_row, Console(stderr=True))
    if len({answer.row.label for answer in answers if answer.claims}) < 2:
        raise GroundwireError(f"{folder} holds no labelled answers of both classes.")
    crossed, final = fit_folds(answers)
    alarms = _alarms(answers)
    bars = {policy: _bar(answers, crossed, alarms, policy) for policy in MISS_COSTS}
    card = _card(answers, crossed, alarms, bars)
    console.print_json(data=card)
    if out:
        stored = {
            "card": card,
            "weights": {name: round(value, 5) for name, value in zip(Features._fields, final.weights, strict=True)},
            "bias": round(final.bias, 5),
            "bars": {policy: asdict(bar) for policy, bar in bars.items()},
            "contradicted": alarms.vetoed,
            "alarms": alarms.others,
        }
        out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def files_of(folder: Path) -> list[Path]:
    """Return the known data sets in a folder, or every .jsonl file if there are none."""
    found = sorted(folder.glob("*.jsonl"))
    return [path for path in found if path.stem in DATA_SETS] or found


def collect(files: Sequence[Path], check_row: Callable[[Row], tuple[C, ...]], notes: Console) -> list[Answer[C]]:
    """Return every labelled answer of the files with the claims found by `check_row`, which runs in other processes."""
    answers: list[Answer[C]] = []
    with ProcessPoolExecutor(_WORKERS, mp_context=get_context("spawn")) as pool, progress(notes) as shown:
        for path in files:
            with path.open(encoding="utf-8-sig", newline="\n") as lines:
                rows, _ = read_rows(lines)
            task = shown.add_task(path.stem, total=len(rows))
            for row, claims in zip(rows, pool.map(check_row, rows, chunksize=_CHUNK), strict=True):
                fold = zlib.crc32("".join(row.context).encode("utf-8", "surrogatepass")) // FOLDS % FOLDS
                answers.append(Answer(row, path.stem, fold, claims))
                shown.advance(task)
    return answers


def check_row(row: Row) -> tuple[CheckedClaim, ...]:
    """Return every checked claim of a labelled answer, with the inputs of fitting."""
    context = context_of(row)
    claims = (claim for claim in find_claims(row.answer, _POLICY).claims if claim.skip_reason is None)
    return tuple(_check_claim(claim, context, row) for claim in claims) if context.passages else ()


def _check_claim(claim: Any, context: Context, row: Row) -> CheckedClaim:
    verdicts = [verdict for verify in (quotes.verify, numeric.verify) if (verdict := verify(claim, context, _POLICY))]
    checked = [verdict for verdict in verdicts if verdict.label != "not_checked"]
    found = statement.assess(claim, context, _POLICY)
    contradicted = found is not None and statement.is_contradicted(found[0], _POLICY)
    return CheckedClaim(
        claim.start,
        claim.end,
        found[1] if found else None,
        truth_of(claim.start, claim.end, row),
        tuple(OtherVerdict(verdict.verifier, verdict.label, verdict.score) for verdict in checked),
        contradicted or any(verdict.label != "supported" for verdict in checked),
        contradicted,
        found is not None and statement.is_open(found[0]),
    )


def truth_of(start: int, end: int, row: Row) -> int | None:
    """Return 1 for a supported span of an answer, 0 for an unsupported one, None if not labelled."""
    if not row.label:
        return 1
    if row.spans is None:
        return None
    return int(not any(low < end and start < high for low, high in row.spans))


def fit_folds(answers: Sequence[Answer[ClaimInput]], signs: Sequence[float] = SIGNS) -> tuple[list[Line], Line]:
    """Return the line for each fold, fitted on the others, and the one fitted on all answers.

    All of them are scaled to the log-odds of a whole answer, as the folds measure them.
    """
    lines = [_fit_weights([answer for answer in answers if answer.fold != fold], signs) for fold in range(FOLDS)]
    scale = _platt(answers, [_worst_odds(answer, lines[answer.fold]) for answer in answers])
    return [_scaled(line, scale) for line in lines], _scaled(_fit_weights(answers, signs), scale)


def _fit_weights(answers: Sequence[Answer[ClaimInput]], signs: Sequence[float]) -> Line:
    """Fit the weights, under their signs, on the sets that may provide them; on all sets if none is known."""
    chosen = [answer for answer in answers if answer.data_set not in DATA_SETS or DATA_SETS[answer.data_set].weights]
    usable = [answer for answer in chosen if any(claim.features for claim in answer.claims)]
    shares = _shares(usable)
    line: Line | None = None
    for _ in range(_ROUNDS):
        line = fit([example for answer in usable for example in _examples(answer, shares, line)], signs)
    assert line is not None  # noqa: S101 - there is at least one round
    return line


def _shares(answers: Sequence[Answer[ClaimInput]]) -> dict[tuple[str, int], float]:
    """Return the weight of one answer by set and class: sets have equal weights, and so do both classes in total."""
    counts = Counter((answer.data_set, answer.row.label) for answer in answers)
    totals = {label: sum(min(1.0, n / _FEW) for (_, y), n in counts.items() if y == label) for label in (0, 1)}
    return {key: min(1.0, n / _FEW) / n / totals[key[1]] for key, n in counts.items()}


def _examples(
    answer: Answer[ClaimInput], shares: Mapping[tuple[str, int], float], line: Line | None
) -> Iterable[Example]:
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


def _worst_odds(answer: Answer[ClaimInput], line: Line) -> float | None:
    """Return the log-odds of an answer's worst claim; None when no claim has features."""
    return min((line(claim.features) for claim in answer.claims if claim.features), default=None)


def _platt(answers: Sequence[Answer[ClaimInput]], odds: Sequence[float | None]) -> Line:
    """Fit the map from the log-odds of an answer's worst claim to those of the whole answer being grounded."""
    known = [
        (answer, worst)
        for answer, worst in zip(answers, odds, strict=True)
        if worst is not None and not any(claim.alarm for claim in answer.claims)
    ]
    shares = _shares([answer for answer, _ in known])
    examples = [
        Example((worst,), 1.0 - answer.row.label, shares[answer.data_set, answer.row.label]) for answer, worst in known
    ]
    return fit(examples, (1.0,), ridge=0.0)


def _scaled(line: Line, scale: Line) -> Line:
    """Return the line whose log-odds are those of `line`, mapped by `scale`."""
    slope = scale.weights[0]
    return Line(tuple(slope * weight for weight in line.weights), slope * line.bias + scale.bias)


class Alarms(NamedTuple):
    """The probability of support for a claim that a veto or a verifier rejects."""

    vetoed: float
    others: Mapping[str, Mapping[Label, float]]

    def probability(self, claim: CheckedClaim, score: float) -> float:
        """Return the least probability that any check gives a claim with the model's `score`."""
        verdicts = (self.others.get(name, {}).get(label, own) for name, label, own in claim.others)
        return min(score, self.vetoed if claim.contradicted else 1.0, *verdicts)


def _alarms(answers: Sequence[Answer[CheckedClaim]]) -> Alarms:
    kinds = {each[:2] for answer in answers for claim in answer.claims for each in claim.others}
    others: dict[str, dict[Label, float]] = {}
    for verifier, label in sorted(kinds):
        if label != "supported" and verifier != "quote":  # exact matching of words is certain
            others.setdefault(verifier, {})[label] = _truth_where(answers, partial(_has_verdict, (verifier, label)))
    return Alarms(_truth_where(answers, lambda claim: claim.contradicted), others)


def _has_verdict(kind: tuple[str, Label], claim: CheckedClaim) -> bool:
    return any(each[:2] == kind for each in claim.others)


def _truth_where(answers: Sequence[Answer[CheckedClaim]], is_so: Callable[[CheckedClaim], bool]) -> float:
    """Return the share of grounded answers among those with such a claim, at equal classes, smoothed by a
    pseudo-count.
    """
    shares = _shares(answers)
    found = [answer for answer in answers if any(map(is_so, answer.claims))]
    doubt = _DOUBT * sum(shares[answer.data_set, answer.row.label] for answer in answers) / 2 / len(answers)
    weight = {
        label: doubt + sum(shares[answer.data_set, label] for answer in found if answer.row.label == label)
        for label in (0, 1)
    }
    return round(weight[0] / (weight[0] + weight[1]), 3)


def _outcome(answer: Answer[CheckedClaim], line: Line, kinds: Alarms, bar: Bar) -> Outcome:
    """Apply the rules of the whole pipeline to stored features of an answer with this model."""
    alarms, supports = [], []
    for claim in answer.claims:
        score = sigmoid(line(claim.features)) if claim.features else 1.0
        supports.append(kinds.probability(claim, score))
        if claim.alarm or not _passes(claim, score, bar):
            alarms.append((claim.start, claim.end))
    return outcome_of(answer.row, alarms, min(supports, default=None), float(bool(supports)))


def _passes(claim: CheckedClaim, score: float, bar: Bar) -> bool:
    if claim.features is None or claim.features.verbatim:
        return True
    if claim.features.by_rule:
        return score >= bar.doubted
    return claim.is_open and score >= bar.cleared


def _by_set(
    answers: Sequence[Answer[CheckedClaim]], lines: Sequence[Line], kinds: Alarms, bar: Bar
) -> dict[str, list[Outcome]]:
    return by_set(answers, lambda answer: _outcome(answer, lines[answer.fold], kinds, bar))


def by_set(answers: Sequence[Answer[C]], outcome: Callable[[Answer[C]], Outcome]) -> dict[str, list[Outcome]]:
    """Return the outcome of every answer, by data set."""
    found: dict[str, list[Outcome]] = {}
    for answer in answers:
        found.setdefault(answer.data_set, []).append(outcome(answer))
    return found


def rates(outcomes: Mapping[str, Sequence[Outcome]]) -> tuple[float, float]:
    """Return the shares of false alarms and misses, as means over the large sets that have both classes."""
    large = [each for each in outcomes.values() if len(each) >= _FEW and len({one.label for one in each}) == 2]
    if not large:
        raise GroundwireError(f"No set has {_FEW} answers of both classes, which thresholds are chosen by.")
    return _mean(_flagged(each, 0) for each in large), _mean(1 - _flagged(each, 1) for each in large)


def _flagged(outcomes: Sequence[Outcome], label: int) -> float:
    return _mean(float(outcome.flagged) for outcome in outcomes if outcome.label == label)


def _mean(values: Iterable[float]) -> float:
    every = list(values)
    return sum(every) / len(every)


def _bar(answers: Sequence[Answer[CheckedClaim]], lines: Sequence[Line], kinds: Alarms, policy: str) -> Bar:
    """Return the bar of least cost.

    A strict one only rejects claims that the rules support, the others only clear the rest, and only the lenient one
    overrules the rules against the odds.
    """

    def cost(bar: Bar) -> float:
        alarms, misses = rates(_by_set(answers, lines, kinds, bar))
        return alarms + MISS_COSTS[policy] * misses

    candidates = {
        "strict": [Bar(1.0, place / 50) for place in range(10, 26)],
        "balanced": [Bar(place / 50, 0.0) for place in range(25, 41)],
        "lenient": [Bar(place / 50, 0.0) for place in range(10, 41)],
    }
    return least(cost, candidates[policy])


def least(cost: Callable[[B], float], bars: Sequence[B]) -> B:
    """Return the bar of least cost, smoothed over its neighbours, because single answers make the cost jump."""
    costs = [cost(bar) for bar in bars]
    smooth = [_mean(costs[max(0, place - 1) : place + 2]) for place in range(len(costs))]
    return bars[smooth.index(min(smooth))]


def _card(
    answers: Sequence[Answer[CheckedClaim]], lines: Sequence[Line], kinds: Alarms, bars: Mapping[str, Bar]
) -> dict[str, Any]:
    return card_of(
        "Logistic regression with given signs over claim and evidence; probability of being supported, "
        "where half of the answers are grounded.",
        {policy: _by_set(answers, lines, kinds, bar) for policy, bar in bars.items()},
    )


def card_of(what: str, by_policy: Mapping[str, Mapping[str, Sequence[Outcome]]]) -> dict[str, Any]:
    """Return the card of a fit: description, method, date, the rates of each policy, and accuracy.

    `by_policy` has the outcomes of every data set, by policy; accuracy is that of `balanced`.
    """
    chosen = by_policy["balanced"]
    measured = {policy: rates(outcomes) for policy, outcomes in by_policy.items()}
    return {
        "what": what,
        "date": date.today().isoformat(),
        "split": f"{FOLDS} folds by context; every figure is out of fold, of answers, with all verifiers",
        "policies": {
            policy: {"false_alarms": round(alarms, 3), "misses": round(misses, 3)}
            for policy, (alarms, misses) in measured.items()
        },
        "ece": round(ece(stated([outcome for outcomes in chosen.values() for outcome in outcomes])) or 0.0, 3),
        "data": {name: _set_card(name, outcomes) for name, outcomes in chosen.items()},
    }


def _set_card(name: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the card of one data set: its size, licence and accuracy."""
    found, known = figures(outcomes), DATA_SETS.get(name)
    names = ("f1", "false_alarms", "balanced_accuracy", "auroc", "span_f1", "ece")
    measured = {each: round(value, 3) for each in names if (value := getattr(found, each)) is not None}
    described = {"licence": known.licence, "used_for_weights": known.weights} if known else {}
    return {"n": found.n, **described, **measured}
