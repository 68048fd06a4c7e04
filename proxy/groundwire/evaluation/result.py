"""The result of a run: figures, intervals and outcomes by data set, the means of groups, and their JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from groundwire.errors import GroundwireError
from groundwire.evaluation.figures import RESAMPLED, Figures, brier, figures, gain, interval, stated
from groundwire.evaluation.outcome import Outcome
from groundwire.telemetry.reliability import ece, reliability

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
    intervals: tuple[tuple[str, tuple[float, float]], ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound of a baseline and the measured figure (None: not measured)."""

    figure: str
    measured: float | None
    least: float | None
    most: float | None

    @property
    def is_kept(self) -> bool:
        """True if the figure was measured and is within its bounds."""
        if self.measured is None:
            return False
        return (self.least is None or self.measured >= self.least) and (self.most is None or self.measured <= self.most)


def measure(name: str, outcomes: Sequence[Outcome]) -> Result:
    """Compute the figures of one data set, which must have a row, with their intervals."""
    found = ((figure, interval(outcomes, of)) for figure, of in RESAMPLED)
    return Result(name, tuple(outcomes), figures(outcomes), tuple((figure, each) for figure, each in found if each))


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
        means[group] |= {"ece": ece(pooled) or 0.0, "brier": brier(pooled) or 0.0}
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
                "intervals": dict(result.intervals),
                "reliability": [asdict(each) for each in reliability(stated(result.outcomes))],
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


def compare(result: Result, old: Mapping[str, Outcome]) -> tuple[tuple[str, tuple[float, float, float]], ...]:
    """Return the change of each resampled figure since `old`, on the rows that both runs have, with its interval."""
    shared = [outcome for outcome in result.outcomes if outcome.id in old]
    if not shared:
        return ()
    found = ((name, gain([old[outcome.id] for outcome in shared], shared, of)) for name, of in RESAMPLED)
    return tuple((name, each) for name, each in found if each)


def check_baseline(run: Mapping[str, Any], baseline: Mapping[str, Any]) -> tuple[Limit, ...]:
    """Check every bound of a baseline against a run. A key names a group or a data set and a figure: "core.auroc".

    Its value is the minimum, or `{"min": …, "max": …}`. Raises GroundwireError when it is neither.
    """
    return tuple(_limit(run, key, bound) for key, bound in baseline.items())


def _limit(run: Mapping[str, Any], key: str, bound: object) -> Limit:
    name, _, figure = key.rpartition(".")
    found = {**run["datasets"], **run["groups"]}.get(name, {}).get(figure)
    if isinstance(bound, (int, float)):
        return Limit(key, found, float(bound), None)
    if isinstance(bound, dict) and bound and bound.keys() <= {"min", "max"}:
        return Limit(key, found, bound.get("min"), bound.get("max"))
    raise GroundwireError(f'The baseline of "{key}" is neither a number nor {{"min": …, "max": …}}.')
