"""The `groundwire batch` command: verify many logged answers on all cores, and resume where a killed run stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from groundwire.backends.loading import judge_identity, load_judge
from groundwire.bulk.journal import Journal, read_results, write_parquet
from groundwire.bulk.rows import FORMATS, Columns, pyarrow_parquet, read_rows
from groundwire.bulk.summary import Summary, as_html, summarise
from groundwire.bulk.worker import Job, verify_all
from groundwire.config import Settings
from groundwire.errors import GroundwireError
from groundwire.pipeline import policy_digest


@dataclass(frozen=True, slots=True)
class Options:
    """Input and output of a batch. `limit` is a number of rows, `page` the path of an HTML page with the figures."""

    source: Path
    target: Path
    columns: Columns = Columns()
    workers: int = 1
    limit: int | None = None
    page: Path | None = None
    overwrite: bool = False


def run_batch(options: Options, settings: Settings) -> Summary:
    """Verify all rows of a file and return the figures of the whole output.

    Raises GroundwireError for formats that cannot be read, for an output of another batch, and for settings that cannot
    be used; OSError for files.
    """
    _check(options)
    if not settings.judge.is_language:
        load_judge(settings.judge)  # errors reach the user here, and not once for each worker
    journal = Journal(_journal_path(options.target), _inputs(options, settings), overwrite=options.overwrite)
    notes = Console(stderr=True)
    try:
        with _progress(notes) as progress:
            task = progress.add_task("verified", total=options.limit, completed=journal.done)
            rows = read_rows(options.source, journal.done)
            wanted = rows if options.limit is None else islice(rows, max(0, options.limit - journal.done))
            for results in verify_all(wanted, Job(settings, options.columns), options.workers, journal.done):
                journal.append(results)
                progress.advance(task, len(results))
    finally:
        journal.close()
    summary = summarise(read_results(journal.path))
    if options.page:
        options.page.write_text(as_html(summary, f"Groundwire: {options.source.name}"), encoding="utf-8")
    if options.target.suffix == ".parquet":
        write_parquet(read_results(journal.path), options.target)
        journal.remove()
    return summary


def print_summary(summary: Summary, seconds: float, *, as_json: bool) -> None:
    """Print the figures for people, or as JSON."""
    if as_json:
        print(json.dumps(summary.to_dict(), indent=2))
        return
    console = Console()
    score = "–" if summary.score is None else f"{summary.score:.3f}"
    console.print(f"{summary.rows:,} answers in {seconds:.1f} s, mean score {score}", highlight=False)
    for title, counts in (("verdicts", summary.verdicts), ("flags", summary.flags), ("claims", summary.claims)):
        listed = ", ".join(f"{name} {number:,}" for name, number in counts.most_common())
        console.print(f"{title}: {listed or 'none'}", highlight=False)
    for reason, number in summary.errors.most_common(5):
        console.print(f"error: {reason} ({number:,} rows)", style="yellow", highlight=False, markup=False)


def timed_batch(options: Options, settings: Settings, *, as_json: bool) -> int:
    """Run a batch and print its figures. Returns 0, or 1 if a row could not be verified."""
    start = time.monotonic()
    summary = run_batch(options, settings)
    print_summary(summary, time.monotonic() - start, as_json=as_json)
    return int(bool(summary.errors))


def _check(options: Options) -> None:
    if options.target.suffix not in (".jsonl", ".parquet"):
        raise GroundwireError(f"{options.target}: the format must be .jsonl or .parquet")
    if options.source.suffix not in FORMATS:
        raise GroundwireError(f"{options.source}: the format must be one of {', '.join(FORMATS)}")
    if ".parquet" in (options.source.suffix, options.target.suffix):
        pyarrow_parquet()
    if options.target.suffix == ".parquet" and options.target.exists() and not options.overwrite:
        raise GroundwireError(f"{options.target} exists; --overwrite replaces it")


def _journal_path(target: Path) -> Path:
    return target if target.suffix == ".jsonl" else target.with_name(f"{target.name}.jsonl")


def _inputs(options: Options, settings: Settings) -> Mapping[str, Any]:
    """Return everything on which the results depend: the input file, the columns, the policy and the judge."""
    stat = options.source.stat()
    policy = replace(settings.policy, judge=judge_identity(settings.judge))
    return {
        "input": str(options.source.resolve()),
        "size": stat.st_size,
        "modified_ns": stat.st_mtime_ns,
        "columns": asdict(options.columns),
        "settings": policy_digest(policy),
    }


def _progress(notes: Console) -> Progress:
    columns = SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=notes, disable=not notes.is_terminal, transient=True)
