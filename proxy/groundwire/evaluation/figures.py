"""The figures of data sets: accuracy, ranking and calibration, with intervals, means of groups, and their JSON.

The positive class is the ungrounded answer: precision is the share of alarms that are right, recall the share of
ungrounded answers that raise one. A figure that a data set cannot provide (no positive rows, no spans) is None.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from groundwire.errors import GroundwireError
from groundwire.evaluation.rows import Outcome
from groundwire.telemetry.reliability import Calibration

RESAMPLES = 500
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Figures:
    """Every figure but `n` and the times (`ms_…`, milliseconds per answer) is a share (0–1) or None.

    `false_alarms` is the share of grounded answers that are flagged, `auroc_length` the AUROC of the answer's length
    alone, `span_f1` counts characters, `coverage` is the mean share of claims that were checked.
    """

    n: int
    positives: float
    precision: float | None
    recall: float | None
    f1: float | None
    false_alarms: float | None
    balanced_accuracy: float | None
    auroc: float | None
    auroc_length: float | None
    span_f1: float | None
    ece: float | None
    brier: float | None
    coverage: float
    ms_p50: float
    ms_p95: float
    ms_p99: float


def figures(outcomes: Sequence[Outcome]) -> Figures:
    """Compute all figures of a data set, which must have a row."""
    times = sorted(outcome.ms for outcome in outcomes)
    hits = sum(outcome.flagged for outcome in outcomes if outcome.label)
    alarms = sum(outcome.flagged for outcome in outcomes)
    positives = sum(outcome.label for outcome in outcomes)
    return Figures(
        n=len(outcomes),
        positives=positives / len(outcomes),
        precision=_share(hits, alarms),
        recall=_share(hits, positives),
        f1=f1(outcomes),
        false_alarms=_share(alarms - hits, len(outcomes) - positives),
        balanced_accuracy=balanced_accuracy(outcomes),
        auroc=risk_auroc(outcomes),
        auroc_length=auroc([(outcome.length, outcome.label) for outcome in outcomes]),
        span_f1=span_f1(outcomes),
        ece=Calibration(stated(outcomes)).error,
        brier=brier(stated(outcomes)),
        coverage=sum(outcome.checked for outcome in outcomes) / len(outcomes),
        ms_p50=percentile(times, 0.5),
        ms_p95=percentile(times, 0.95),
        ms_p99=percentile(times, 0.99),
    )


def balanced_accuracy(outcomes: Sequence[Outcome]) -> float | None:
    """Return the mean accuracy over both classes; None unless both are present."""
    right = [[outcome.flagged == bool(label) for outcome in outcomes if outcome.label == label] for label in (0, 1)]
    if not all(right):
        return None
    return sum(sum(each) / len(each) for each in right) / 2


def f1(outcomes: Sequence[Outcome]) -> float | None:
    """Return the harmonic mean of precision and recall; None when no answer is ungrounded."""
    hits = sum(outcome.flagged and outcome.label for outcome in outcomes)
    positives = sum(outcome.label for outcome in outcomes)
    return _share(2 * hits, sum(outcome.flagged for outcome in outcomes) + positives) if positives else None


def risk_auroc(outcomes: Sequence[Outcome]) -> float | None:
    """Return the AUROC of the proxy's probability for ungrounded answers."""
    return auroc([(outcome.risk, outcome.label) for outcome in outcomes])


def auroc(scored: Sequence[tuple[float, int]]) -> float | None:
    """Return the probability that a positive scores above a negative, ties counting half; None unless both are
    present.
    """
    positives = sum(label for _, label in scored)
    negatives = len(scored) - positives
    if not positives or not negatives:
        return None
    below, won = 0, 0.0
    for _, tied in groupby(sorted(scored), key=lambda pair: pair[0]):
        labels = [label for _, label in tied]
        here = sum(labels)
        won += here * (below + (len(labels) - here) / 2)
        below += len(labels) - here
    return won / (positives * negatives)


def span_f1(outcomes: Sequence[Outcome]) -> float | None:
    """Return F1 over the characters of all answers; None when no ungrounded character is marked."""
    counted = [outcome.spans for outcome in outcomes if outcome.spans is not None]
    flagged, ungrounded, both = (sum(each[place] for each in counted) for place in range(3))
    return 2 * both / (flagged + ungrounded) if ungrounded else None


def stated(outcomes: Iterable[Outcome]) -> list[tuple[float, int]]:
    """Return `(probability of being grounded, whether it is)` for every answer with a probability."""
    return [(outcome.support, 1 - outcome.label) for outcome in outcomes if outcome.support is not None]


def brier(pairs: Sequence[tuple[float, int]]) -> float | None:
    """Return the mean squared difference between probability and truth."""
    return sum((probability - truth) ** 2 for probability, truth in pairs) / len(pairs) if pairs else None


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the ordered values lie, by the nearest rank."""
    return ordered[max(1, math.ceil(share * len(ordered))) - 1]


Figure = Callable[[Sequence[Outcome]], float | None]

RESAMPLED: Mapping[str, Figure] = {
    "f1": f1,
    "balanced_accuracy": balanced_accuracy,
    "auroc": risk_auroc,
    "span_f1": span_f1,
}
"""The figures that have an interval and are compared between runs."""


def interval(outcomes: Sequence[Outcome], figure: Figure) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of a figure, the same on every run."""
    chance = random.Random(0)  # noqa: S311
    drawn = (figure(chance.choices(outcomes, k=len(outcomes))) for _ in range(RESAMPLES))
    return _middle([value for value in drawn if value is not None])


def gain(old: Sequence[Outcome], new: Sequence[Outcome], figure: Figure) -> tuple[float, float, float] | None:
    """Return the gain of `new` over `old` on the same rows, in the same order, with the paired 95 % interval."""
    before, after = figure(old), figure(new)
    if before is None or after is None:
        return None
    chance, places = random.Random(0), range(len(old))  # noqa: S311
    differences = []
    for _ in range(RESAMPLES):
        taken = chance.choices(places, k=len(places))
        pair = figure([old[place] for place in taken]), figure([new[place] for place in taken])
        if pair[0] is not None and pair[1] is not None:
            differences.append(pair[1] - pair[0])
    spread = _middle(differences)
    return None if spread is None else (after - before, *spread)


def _middle(values: list[float]) -> tuple[float, float] | None:
    if not values:
        return None
    ordered, tail = sorted(values), (1 - _LEVEL) / 2
    return percentile(ordered, tail), percentile(ordered, 1 - tail)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


GROUPS: Mapping[str, tuple[str, ...]] = {
    "core": (
        "ragtruth_dev",
        "attributionbench_report",
        "begin_report",
        "bump_report",
        "defacto_report",
        "qags_report",
        "summedits_report",
    ),
    "tables": ("infotabs_report", "scitab_report", "nli4ct_report", "healthver_report", "bamboo_report"),
}
"""Groups of data sets whose means are reported: answers and summaries against text; tables, numbers and science."""

_AVERAGED = ("balanced_accuracy", "f1", "false_alarms", "auroc")


@dataclass(frozen=True, slots=True)
class Result:
    """The measurements of one data set: its outcomes in order, their figures, and the 95 % intervals of some of
    them.
    """

    name: str
    outcomes: tuple[Outcome, ...]
    figures: Figures
    intervals: Mapping[str, tuple[float, float]]


def measure(name: str, outcomes: Sequence[Outcome]) -> Result:
    """Compute the figures of one data set, which must have a row, with their intervals."""
    intervals = {figure: found for figure, of in RESAMPLED.items() if (found := interval(outcomes, of))}
    return Result(name, tuple(outcomes), figures(outcomes), intervals)


def group_means(results: Sequence[Result]) -> dict[str, dict[str, float]]:
    """Return, for each group with a measured set, the number of sets, the means of their figures, and the joint
    calibration.
    """
    means: dict[str, dict[str, float]] = {}
    for group, names in GROUPS.items():
        members = [result for result in results if result.name in names]
        if not members:
            continue
        means[group] = {"sets": len(members)}
        for figure in _AVERAGED:
            values = [value for each in members if (value := getattr(each.figures, figure)) is not None]
            if values:
                means[group][figure] = sum(values) / len(values)
        pooled = stated([outcome for each in members for outcome in each.outcomes])
        means[group] |= {"ece": Calibration(pooled).error or 0.0, "brier": brier(pooled) or 0.0}
    return means


def as_json(results: Sequence[Result], policy: str, version: str) -> dict[str, Any]:
    """Return a run as a JSON object, which `--json` writes and `--compare` reads."""
    return {
        "version": version,
        "policy": policy,
        "groups": group_means(results),
        "datasets": {
            result.name: asdict(result.figures)
            | {
                "intervals": result.intervals,
                "reliability": [asdict(each) for each in Calibration(stated(result.outcomes)).bins],
                "outcomes": [asdict(outcome) for outcome in result.outcomes],
            }
            for result in results
        },
    }


def outcomes_of(run: Mapping[str, Any]) -> dict[str, dict[str, Outcome]]:
    """Return the outcomes of a stored run, by data set and row id. Raises GroundwireError for any other JSON."""
    try:
        return {
            name: {each["id"]: Outcome(**each) for each in found["outcomes"]} for name, found in run["datasets"].items()
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise GroundwireError(
            f"The run to compare with is none that `groundwire eval --json` wrote ({error})."
        ) from None


def compare(result: Result, old: Mapping[str, Outcome]) -> dict[str, tuple[float, float, float]]:
    """Return the change of each resampled figure since `old`, on the rows that both runs have, with its interval."""
    shared = [outcome for outcome in result.outcomes if outcome.id in old]
    before = [old[outcome.id] for outcome in shared]
    return {name: change for name, of in RESAMPLED.items() if shared and (change := gain(before, shared, of))}


def check_baseline(run: Mapping[str, Any], baseline: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each bound of a baseline that a run violates.

    A key names a group or a data set and a figure: "core.auroc". Its value is the minimum, or `{"min": …, "max": …}`.
    Raises GroundwireError when it is neither.
    """
    measured = {**run["datasets"], **run["groups"]}
    violations = []
    for key, bound in baseline.items():
        bounds = {"min": float(bound)} if isinstance(bound, int | float) else bound
        if not (isinstance(bounds, dict) and bounds and bounds.keys() <= {"min", "max"}):
            raise GroundwireError(f'The baseline of "{key}" is neither a number nor {{"min": …, "max": …}}.')
        name, _, figure = key.rpartition(".")
        found, least, most = measured.get(name, {}).get(figure), bounds.get("min"), bounds.get("max")
        if found is None or (least is not None and found < least) or (most is not None and found > most):
            asked = [f"at least {least}"] * (least is not None) + [f"at most {most}"] * (most is not None)
            is_so = "was not measured" if found is None else f"is {found:.4f}"
            violations.append(f"{key} {is_so}; the baseline asks for {' and '.join(asked)}.")
    return violations
