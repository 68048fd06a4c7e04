"""The `groundwire eval` command: run labelled files through the proxy's verification and report the figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from groundwire.backends.loading import load_judge
from groundwire.config import JudgeSettings
from groundwire.errors import GroundwireError
from groundwire.evaluation.figures import (
    Limit,
    Result,
    as_json,
    check_baseline,
    compare,
    group_means,
    measure,
    outcomes_of,
    stated,
)
from groundwire.evaluation.outcome import Outcome, examine
from groundwire.evaluation.rows import Problem, Row, draw, read_rows
from groundwire.policy import Policy
from groundwire.telemetry.reliability import Bin, reliability

STANDARD_OUTPUT = Path("-")
"""As the `json` of the options: the figures go to standard output, the tables to standard error."""

_WORKERS, _CHUNK = 2, 8
_MOST_SHOWN = 5
_FILE_WIDTH = 150  # columns, if the table is not written to a terminal

_COLUMNS: tuple[tuple[str, str], ...] = (
    ("n", "n"),
    ("P", "precision"),
    ("R", "recall"),
    ("F1", "f1"),
    ("alarm", "false_alarms"),
    ("bal.acc.", "balanced_accuracy"),
    ("AUROC", "auroc"),
    ("len.", "auroc_length"),
    ("span F1", "span_f1"),
    ("ECE", "ece"),
    ("Brier", "brier"),
    ("cover", "coverage"),
)


@dataclass(frozen=True, slots=True)
class Options:
    """The inputs and outputs of a run, as in the command's help; `compare` and `baseline` are files too."""

    files: tuple[Path, ...]
    policy: Policy = Policy()
    judge: JudgeSettings = JudgeSettings()
    limit: int | None = None
    json: Path | None = None
    table: Path | None = None
    plots: Path | None = None
    compare: Path | None = None
    baseline: Path | None = None


def evaluate(options: Options) -> int:
    """Run the evaluation, print and write the figures. Returns 0, or 1 when a figure violates the baseline.

    Raises OSError for a file that cannot be read or written, GroundwireError for one with invalid content.
    """
    old = outcomes_of(_load(options.compare)) if options.compare else {}
    baseline = _load(options.baseline) if options.baseline else {}
    notes, console = Console(stderr=True), Console(stderr=options.json == STANDARD_OUTPUT)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    sets = [(path.stem, draw(_read(path, notes), options.limit)) for path in options.files]
    load_judge(options.judge)  # load here first, where errors reach the user
    results = list(_measured([(name, rows) for name, rows in sets if rows], options, notes))
    if not results:
        raise GroundwireError("There is no labelled answer in these files.")
    run = as_json(results, options.policy.name, version("groundwire"))
    console.print(_table(results))
    if run["groups"]:
        console.print(_group_table(run["groups"]))
    if old:
        console.print(_comparison(results, old))
    _write(run, results, options)
    limits = check_baseline(run, baseline)
    for limit in limits:
        if not limit.is_met:
            console.print(_missed(limit), style="red")
    return int(not all(limit.is_met for limit in limits))


def _read(path: Path, notes: Console) -> list[Row]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
        rows, problems = read_rows(lines)
    for problem in problems[:_MOST_SHOWN]:
        notes.print(_complaint(path, problem), style="yellow", highlight=False, markup=False)
    if len(problems) > _MOST_SHOWN:
        notes.print(f"{path}: {len(problems)} lines in all were passed over", style="yellow", highlight=False)
    return rows


def _complaint(path: Path, problem: Problem) -> str:
    return f"{path}:{problem.line}: passed over: {problem.why}"


def _measured(sets: Sequence[tuple[str, list[Row]]], options: Options, notes: Console) -> Iterator[Result]:
    """Yield each set's result in turn; the processes are spawned, so that they share nothing with this one."""
    with (
        ProcessPoolExecutor(_WORKERS, mp_context=get_context("spawn")) as pool,
        progress(notes) as shown,
    ):
        pending = []
        run = partial(examine, policy=options.policy, settings=options.judge)
        for name, rows in sets:
            task = shown.add_task(name, total=len(rows))
            outcomes: list[Outcome] = []
            for outcome in pool.map(run, rows, chunksize=_CHUNK):
                outcomes.append(outcome)
                shown.advance(task)
            pending.append(pool.submit(measure, name, outcomes))
        for future in pending:
            yield future.result()


def _load(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise GroundwireError(f"{path} holds no JSON object.")
    return found


def _write(run: Mapping[str, Any], results: Sequence[Result], options: Options) -> None:
    if options.json == STANDARD_OUTPUT:
        print(json.dumps(run, indent=1))
    elif options.json:
        options.json.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    if options.table:
        options.table.write_text(markdown_table(results), encoding="utf-8")
    if options.plots:
        options.plots.mkdir(parents=True, exist_ok=True)
        for result in results:
            picture = reliability_svg(result.name, reliability(stated(result.outcomes)))
            (options.plots / f"{result.name}.svg").write_text(picture, encoding="utf-8")


def _table(results: Sequence[Result]) -> Table:
    title = "Verdicts against labels (positive: ungrounded), 95 % intervals below"
    table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("data set", no_wrap=True)
    for heading, _ in _COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("ms p50/95/99", justify="right", no_wrap=True)
    for result in results:
        found, spread = result.figures, dict(result.intervals)
        cells = [_shown(getattr(found, name), spread.get(name)) for _, name in _COLUMNS]
        table.add_row(result.name, *cells, f"{found.ms_p50:.0f}/{found.ms_p95:.0f}/{found.ms_p99:.0f}")
    return table


def _shown(value: float | None, spread: tuple[float, float] | None = None) -> str:
    """Format a share without its leading zero, above its 95 % interval if there is one; a count as it is."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return str(value)
    return _short(value, 3) + (f"\n[dim]{_short(spread[0], 2)}–{_short(spread[1], 2)}[/dim]" if spread else "")


def _short(value: float, digits: int) -> str:
    return f"{value:.{digits}f}".removeprefix("0")


def _group_table(means: Mapping[str, Mapping[str, float]]) -> Table:
    title = "Means over the sets of a group; calibration of all their answers"
    table = Table("group", title=title, title_justify="left", box=SIMPLE)
    names = list(dict.fromkeys(name for found in means.values() for name in found))
    for name in names:
        table.add_column(name.replace("_", " "), justify="right")
    for group, found in means.items():
        table.add_row(group, *(_shown(found.get(name)) for name in names))
    return table


def _comparison(results: Sequence[Result], old: Mapping[str, Mapping[str, Outcome]]) -> Table:
    table = Table("data set", "figure", title="Changes since the earlier run, same rows", box=SIMPLE)
    table.add_column("change", justify="right")
    table.add_column("95 % interval", justify="right")
    for result in results:
        for name, (change, low, high) in compare(result, old.get(result.name, {})):
            style = "" if low <= 0 <= high else "green" if change > 0 else "red"
            table.add_row(
                result.name, name.replace("_", " "), f"{change:+.3f}", f"{low:+.3f} … {high:+.3f}", style=style
            )
    return table


def _missed(limit: Limit) -> str:
    bounds = [
        f"at least {limit.least}" if limit.least is not None else "",
        f"at most {limit.most}" if limit.most is not None else "",
    ]
    measured = "was not measured" if limit.measured is None else f"is {limit.measured:.4f}"
    return f"{limit.figure} {measured}; the baseline asks for {' and '.join(filter(None, bounds))}."


_MARKDOWN_COLUMNS: tuple[tuple[str, str], ...] = (
    ("precision", "precision"),
    ("recall", "recall"),
    ("F1", "f1"),
    ("false alarms", "false_alarms"),
    ("balanced accuracy", "balanced_accuracy"),
    ("AUROC", "auroc"),
    ("span F1", "span_f1"),
    ("ECE", "ece"),
    ("coverage", "coverage"),
)


def markdown_table(results: Sequence[Result]) -> str:
    """Format one row for each set, and one for the means of each group; shares are 0–1, milliseconds p50 / p95 of an
    answer.
    """
    names = ["set", "n", *(heading for heading, _ in _MARKDOWN_COLUMNS), "ms"]
    return "\n".join(_line(cells) for cells in (names, ["---"] * len(names), *_rows(results))) + "\n"


def _rows(results: Sequence[Result]) -> Iterator[list[str]]:
    for result in results:
        found = result.figures
        shares = [_shown(getattr(found, name)) for _, name in _MARKDOWN_COLUMNS]
        yield [result.name, str(found.n), *shares, f"{found.ms_p50:.0f} / {found.ms_p95:.0f}"]
    for group, means in group_means(results).items():
        yield [f"**{group}, mean**", "", *_means(means), ""]


def _means(means: Mapping[str, float | None]) -> list[str]:
    shown = [_shown(means.get(name)) for _, name in _MARKDOWN_COLUMNS]
    return [f"**{each}**" if each != "–" else each for each in shown]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


_SIDE, _EDGE = 300, 40


def reliability_svg(title: str, bins: Sequence[Bin]) -> str:
    """Return an SVG: one dot per tenth, its area the share of answers; the dashed line marks perfect calibration."""
    total = sum(each.n for each in bins) or 1
    dots = "\n".join(
        f'<circle cx="{_x(each.stated):.1f}" cy="{_y(each.true):.1f}" r="{3 + 20 * (each.n / total) ** 0.5:.1f}" '
        f'fill="#2b6cb0" fill-opacity="0.6"><title>{each.n} answers: stated {each.stated:.2f}, '
        f"true {each.true:.2f}</title></circle>"
        for each in bins
    )
    ticks = "\n".join(
        f'<text x="{_x(tick):.0f}" y="{_SIDE + _EDGE + 15}" text-anchor="middle">{tick:g}</text>'
        f'<text x="{_EDGE - 6}" y="{_y(tick) + 4:.0f}" text-anchor="end">{tick:g}</text>'
        for tick in (0, 0.5, 1)
    )
    size, middle = _SIDE + 2 * _EDGE, _EDGE + _SIDE / 2
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}">
<style>text {{ font: 12px sans-serif }}</style>
<rect width="{size}" height="{size}" fill="white"/>
<text x="{middle}" y="22" text-anchor="middle">{escape(title)}</text>
<rect x="{_EDGE}" y="{_EDGE}" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="#999"/>
<path d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}" stroke="#999" stroke-dasharray="4"/>
{ticks}
{dots}
<text x="{middle}" y="{size - 6}" text-anchor="middle">stated probability of being grounded</text>
<text transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">share that is grounded</text>
</svg>
"""


def _x(value: float) -> float:
    return _EDGE + _SIDE * value


def _y(value: float) -> float:
    return _EDGE + _SIDE * (1 - value)


def progress(notes: Console) -> Progress:
    """Return progress bars by data set; nothing is shown if `notes` is not a terminal."""
    columns = TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(*columns, console=notes, disable=not notes.is_terminal, transient=True)
