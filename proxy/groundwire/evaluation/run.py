"""The `groundwire eval` command: run labelled files through the proxy's verification and report the figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
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
    Result,
    as_json,
    check_baseline,
    compare,
    group_means,
    measure,
    outcomes_of,
    stated,
)
from groundwire.evaluation.rows import Outcome, Row, draw, examine, read_rows
from groundwire.policy import Policy
from groundwire.telemetry.reliability import Bin, Calibration

STANDARD_OUTPUT = Path("-")
"""As the file for the JSON: the figures go to standard output, the tables to standard error."""

_WORKERS, _CHUNK = 2, 8
_MOST_SHOWN = 5
_FILE_WIDTH = 150  # columns, if the table is not written to a terminal

_COLUMNS = (
    ("n", "n", ""),
    ("precision", "P", "precision"),
    ("recall", "R", "recall"),
    ("f1", "F1", "F1"),
    ("false_alarms", "alarm", "false alarms"),
    ("balanced_accuracy", "bal.acc.", "balanced accuracy"),
    ("auroc", "AUROC", "AUROC"),
    ("auroc_length", "len.", ""),
    ("span_f1", "span F1", "span F1"),
    ("ece", "ECE", "ECE"),
    ("brier", "Brier", ""),
    ("coverage", "cover", "coverage"),
)
"""The figures of the tables, with their headings in the terminal and in Markdown, which leaves some out."""


def evaluate(
    files: Sequence[Path],
    policy: Policy = Policy(),
    judge: JudgeSettings = JudgeSettings(),
    *,
    limit: int | None = None,
    json_file: Path | None = None,
    table: Path | None = None,
    plots: Path | None = None,
    earlier: Path | None = None,
    baseline: Path | None = None,
) -> int:
    """Run the evaluation, print and write the figures. Returns 0, or 1 when a figure violates the baseline.

    The options are those of the command's help; `earlier` is the file to compare with. Raises OSError for a file that
    cannot be read or written, GroundwireError for one with invalid content.
    """
    old = outcomes_of(_load(earlier)) if earlier else {}
    bounds = _load(baseline) if baseline else {}
    notes, console = Console(stderr=True), Console(stderr=json_file == STANDARD_OUTPUT)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    sets = [(path.stem, draw(_read(path, notes), limit)) for path in files]
    load_judge(judge)  # load here first, where errors reach the user
    pending = []
    with workers(notes) as (pool, shown):
        for name, rows in sets:
            if rows:
                found = pool.map(partial(examine, policy=policy, settings=judge), rows, chunksize=_CHUNK)
                outcomes = list(shown.track(found, len(rows), description=name))
                pending.append(pool.submit(measure, name, outcomes))
    if not pending:
        raise GroundwireError("There is no labelled answer in these files.")
    results = [future.result() for future in pending]
    run = as_json(results, policy.name, version("groundwire"))
    console.print(_table(results))
    if run["groups"]:
        console.print(_group_table(run["groups"]))
    if old:
        console.print(_comparison(results, old))
    if json_file == STANDARD_OUTPUT:
        print(json.dumps(run, indent=1))
    elif json_file:
        json_file.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    if table:
        table.write_text(markdown_table(results), encoding="utf-8")
    if plots:
        plots.mkdir(parents=True, exist_ok=True)
        for result in results:
            picture = reliability_svg(result.name, Calibration(stated(result.outcomes)).bins)
            (plots / f"{result.name}.svg").write_text(picture, encoding="utf-8")
    violations = check_baseline(run, bounds)
    for violation in violations:
        console.print(violation, style="red")
    return int(bool(violations))


@contextmanager
def workers(notes: Console) -> Iterator[tuple[ProcessPoolExecutor, Progress]]:
    """Open worker processes, spawned so that they share nothing with this one, and progress bars by data set.

    The bars are shown only if `notes` is a terminal.
    """
    columns = TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with (
        ProcessPoolExecutor(_WORKERS, mp_context=get_context("spawn")) as pool,
        Progress(*columns, console=notes, disable=not notes.is_terminal, transient=True) as shown,
    ):
        yield pool, shown


def _read(path: Path, notes: Console) -> list[Row]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
        rows, problems = read_rows(lines)
    for each in problems[:_MOST_SHOWN]:
        line = f"{path}:{each.line}: passed over: {each.why}"
        notes.print(line, style="yellow", highlight=False, markup=False)
    if len(problems) > _MOST_SHOWN:
        notes.print(f"{path}: {len(problems)} lines in all were passed over", style="yellow", highlight=False)
    return rows


def _load(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise GroundwireError(f"{path} holds no JSON object.")
    return found


def _table(results: Sequence[Result]) -> Table:
    title = "Verdicts against labels (positive: ungrounded), 95 % intervals below"
    table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("data set", no_wrap=True)
    for _, heading, _ in _COLUMNS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("ms p50/95/99", justify="right", no_wrap=True)
    for result in results:
        found = result.figures
        cells = [_shown(getattr(found, name), result.intervals.get(name)) for name, _, _ in _COLUMNS]
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
        for name, (change, low, high) in compare(result, old.get(result.name, {})).items():
            style = "" if low <= 0 <= high else "green" if change > 0 else "red"
            cells = name.replace("_", " "), f"{change:+.3f}", f"{low:+.3f} … {high:+.3f}"
            table.add_row(result.name, *cells, style=style)
    return table


def markdown_table(results: Sequence[Result]) -> str:
    """Format one row for each set, and one for the means of each group; shares are 0–1, milliseconds p50 / p95 of an
    answer.
    """
    columns = [(name, heading) for name, _, heading in _COLUMNS if heading]
    lines = [["set", "n", *(heading for _, heading in columns), "ms"], ["---"] * (len(columns) + 3)]
    for result in results:
        found = result.figures
        shares = [_shown(getattr(found, name)) for name, _ in columns]
        lines.append([result.name, str(found.n), *shares, f"{found.ms_p50:.0f} / {found.ms_p95:.0f}"])
    for group, means in group_means(results).items():
        shares = [f"**{_shown(means[name])}**" if name in means else "–" for name, _ in columns]
        lines.append([f"**{group}, mean**", "", *shares, ""])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


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
