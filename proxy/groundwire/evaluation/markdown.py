"""Figures as one Markdown table, for a README or a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from groundwire.evaluation.result import Result, group_means

_COLUMNS: tuple[tuple[str, str], ...] = (
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
    names = ["set", "n", *(heading for heading, _ in _COLUMNS), "ms"]
    return "\n".join(_line(cells) for cells in (names, ["---"] * len(names), *_rows(results))) + "\n"


def _rows(results: Sequence[Result]) -> Iterator[list[str]]:
    for result in results:
        found = result.figures
        shares = [_share(getattr(found, name)) for _, name in _COLUMNS]
        yield [result.name, str(found.n), *shares, f"{found.ms_p50:.0f} / {found.ms_p95:.0f}"]
    for group, means in group_means(results).items():
        yield [f"**{group}, mean**", "", *_means(means), ""]


def _means(means: Mapping[str, float | None]) -> list[str]:
    shown = [_share(means.get(name)) for _, name in _COLUMNS]
    return [f"**{each}**" if each != "–" else each for each in shown]


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".removeprefix("0")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
