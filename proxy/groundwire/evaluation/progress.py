"""Progress of long work on standard error, when that is a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def progress(notes: Console) -> Progress:
    """Return progress bars by data set; nothing is shown if `notes` is not a terminal."""
    columns = TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(*columns, console=notes, disable=not notes.is_terminal, transient=True)
