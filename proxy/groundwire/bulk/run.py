"""The `groundwire batch` command: verify many logged answers on all cores, and resume where a killed run stopped.

Worker processes return results in order, with a bounded number of rows in memory; dead workers are replaced.
"""

from __future__ import annotations

import atexit
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import count, islice, repeat
from multiprocessing import get_context
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from groundwire.backends.loading import judge_identity, load_judge
from groundwire.bulk.files import (
    FORMATS,
    Columns,
    Journal,
    id_of,
    pyarrow_parquet,
    read_results,
    read_rows,
    renamed,
    request_of,
    write_parquet,
)
from groundwire.bulk.summary import Summary, as_html, summarise
from groundwire.config import Settings
from groundwire.container.models import open_judge
from groundwire.dialects.checks import read_answer_check
from groundwire.dialects.jsonbytes import dumps
from groundwire.domain import Choice
from groundwire.errors import BadRequest, GroundwireError
from groundwire.evidence.index import Context
from groundwire.evidence.messages import gather, question
from groundwire.judge import Judge
from groundwire.pipeline import policy_digest, verify


@dataclass(frozen=True, slots=True)
class Options:
    """Input and output of a batch. `limit` is a number of rows, `page` the path of an HTML page with the figures.

    `source` and `target` are paths, for a cluster also URLs.
    """

    source: str
    target: str
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
    source, target = Path(options.source), Path(options.target)
    _check(source, target, overwrite=options.overwrite)
    check_judge(settings)
    stat = source.stat()
    file_ = {"input": str(source.resolve()), "size": stat.st_size, "modified_ns": stat.st_mtime_ns}
    path = target if target.suffix == ".jsonl" else target.with_name(f"{target.name}.jsonl")
    journal = Journal(path, {**file_, **inputs_of(options, settings)}, overwrite=options.overwrite)
    try:
        with progress_bar() as progress:
            task = progress.add_task("verified", total=options.limit, completed=journal.done)
            rows = read_rows(source, journal.done)
            wanted = rows if options.limit is None else islice(rows, max(0, options.limit - journal.done))
            for results in verify_all(wanted, Job(settings, options.columns), options.workers, journal.done):
                journal.append(results)
                progress.advance(task, len(results))
    finally:
        journal.close()
    summary = summarise(read_results(journal.path))
    write_page(summary, options.page, source.name)
    if target.suffix == ".parquet":
        with renamed(target) as file:
            write_parquet(read_results(journal.path), file)
        journal.remove()
    return summary


def check_judge(settings: Settings) -> None:
    """Raise ConfigError if the judge cannot be loaded: once here, and not for each worker."""
    if not settings.judge.is_language:
        load_judge(settings.judge)


def write_page(summary: Summary, page: Path | None, name: str) -> None:
    """Write the figures as an HTML page, if there is a path for it."""
    if page:
        page.write_text(as_html(summary, f"Groundwire: {name}"), encoding="utf-8")


def timed_batch(
    run: Callable[[Options, Settings], Summary], options: Options, settings: Settings, *, as_json: bool
) -> int:
    """Run a batch and print its figures, for people or as JSON. Returns 0, or 1 if a row could not be verified."""
    start = time.monotonic()
    summary = run(options, settings)
    if as_json:
        print(json.dumps(summary.to_dict(), indent=2))
        return int(bool(summary.errors))
    console = Console()
    seconds, score = time.monotonic() - start, "–" if summary.score is None else f"{summary.score:.3f}"
    console.print(f"{summary.rows:,} answers in {seconds:.1f} s, mean score {score}", highlight=False)
    for title, counts in (("verdicts", summary.verdicts), ("flags", summary.flags), ("claims", summary.claims)):
        listed = ", ".join(f"{name} {number:,}" for name, number in counts.most_common())
        console.print(f"{title}: {listed or 'none'}", highlight=False)
    for reason, number in summary.errors.most_common(5):
        console.print(f"error: {reason} ({number:,})", style="yellow", highlight=False, markup=False)
    return int(bool(summary.errors))


def _check(source: Path, target: Path, *, overwrite: bool) -> None:
    if target.suffix not in (".jsonl", ".parquet"):
        raise GroundwireError(f"{target}: the format must be .jsonl or .parquet")
    if source.suffix not in FORMATS:
        known = ", ".join(FORMATS)
        raise GroundwireError(f"{source}: the format must be one of {known}; folders and URLs need --engine dask")
    if ".parquet" in (source.suffix, target.suffix):
        pyarrow_parquet()
    if target.suffix == ".parquet" and target.exists() and not overwrite:
        raise GroundwireError(f"{target} exists; --overwrite replaces it")


def inputs_of(options: Options, settings: Settings) -> dict[str, Any]:
    """Return the settings on which results depend: the columns, and a digest of the policy and the judge."""
    policy = replace(settings.policy, judge=judge_identity(settings.judge))
    return {"columns": asdict(options.columns), "settings": policy_digest(policy)}


def progress_bar() -> Progress:
    """Return a progress bar on standard error, without effect if that is no terminal."""
    notes = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=notes, disable=not notes.is_terminal, transient=True)


CHUNK = 8
"""Rows that a worker gets at once."""

_AHEAD = 3  # chunks per worker that are read before their turn
_DIED = "the worker process died on this row"

Row = Mapping[str, Any] | str


class Job(NamedTuple):
    """The constant part of a batch."""

    settings: Settings
    columns: Columns


class _Worker:
    """The state of one worker process."""

    lock = Lock()
    job: Job | None = None
    judge: Judge


def open_worker(job: Job) -> Judge:
    """Return the judge of a job in this process. The last one is kept, since loading it takes a second.

    A language model stays open until the process ends.
    """
    with _Worker.lock:
        if _Worker.job != job:
            if job.settings.judge.is_language:
                opened = ExitStack()
                atexit.register(opened.close)
                _Worker.judge = opened.enter_context(open_judge(job.settings))
            else:
                _Worker.judge = load_judge(job.settings.judge)
            _Worker.job = job
        return _Worker.judge


def _verify_chunk(first: int, rows: Sequence[Row]) -> list[dict[str, Any]]:
    assert _Worker.job is not None  # noqa: S101 - `open_worker` came first
    return verify_rows(first, rows, _Worker.job, _Worker.judge)


def verify_rows(first: int, rows: Sequence[Row], job: Job, judge: Judge) -> list[dict[str, Any]]:
    """Verify rows; `first` is the number of the first one. A language model is asked about several at once."""
    settings = job.settings.judge
    if not settings.is_language:
        return [_verify(number, row, job, judge) for number, row in enumerate(rows, start=first)]
    with ThreadPoolExecutor(settings.max_concurrent) as threads:
        return list(threads.map(_verify, count(first), rows, repeat(job), repeat(judge)))


def _verify(number: int, row: Row, job: Job, judge: Judge) -> dict[str, Any]:
    if isinstance(row, str):
        return {"row": number, "error": row}
    id_ = id_of(row, job.columns)
    result: dict[str, Any] = {"row": number} if id_ is None else {"row": number, "id": id_}
    try:
        check, request = read_answer_check(dumps(request_of(row, job.columns)), {})
    except (BadRequest, ValueError, TypeError) as error:
        return result | {"error": str(error)}
    exchange = request.exchange()
    ask = replace(request.ask, question=request.ask.question or question(exchange))
    choices, context = [Choice(0, check.answer, "stop")], Context(gather(exchange))
    report = verify(choices, context, job.settings.policy, ask, judge, request.warnings)
    return result | {"grounding": report.to_dict()}


def verify_all(rows: Iterable[Row], job: Job, workers: int, first: int = 0) -> Iterator[list[dict[str, Any]]]:
    """Yield the results of all rows in order, chunk by chunk. A row that kills its worker twice is an error."""
    chunks = chunked(rows, first)
    waiting: deque[tuple[int, Sequence[Row]]] = deque()
    while True:
        waiting.extend(islice(chunks, workers * _AHEAD - len(waiting)))
        if not waiting:
            return
        with ProcessPoolExecutor(workers, get_context("spawn"), open_worker, (job,)) as pool:
            try:
                yield from _drained(pool, waiting, chunks)
            except BrokenProcessPool:
                pass
        if waiting:
            yield _one_by_one(*waiting.popleft(), job)


def _drained(
    pool: ProcessPoolExecutor, waiting: deque[tuple[int, Sequence[Row]]], chunks: Iterator[tuple[int, Sequence[Row]]]
) -> Iterator[list[dict[str, Any]]]:
    """Yield results until all chunks are done. A chunk stays in `waiting` until its results were yielded."""
    pending: deque[Future[list[dict[str, Any]]]] = deque(pool.submit(_verify_chunk, *each) for each in waiting)
    while pending:
        results = pending.popleft().result()
        waiting.popleft()
        yield results
        for each in islice(chunks, 1):
            waiting.append(each)
            pending.append(pool.submit(_verify_chunk, *each))


def _one_by_one(first: int, rows: Sequence[Row], job: Job) -> list[dict[str, Any]]:
    """Verify the rows of a chunk during which a worker died, each in a process that may die."""
    results: list[dict[str, Any]] = []
    at = 0
    while at < len(rows):
        with ProcessPoolExecutor(1, get_context("spawn"), open_worker, (job,)) as pool:
            try:
                while at < len(rows):
                    results += pool.submit(_verify_chunk, first + at, rows[at : at + 1]).result()
                    at += 1
            except BrokenProcessPool:
                results.append({"row": first + at, "error": _DIED})
                at += 1
    return results


def chunked(rows: Iterable[Row], first: int = 0) -> Iterator[tuple[int, Sequence[Row]]]:
    """Yield the rows in groups of CHUNK, each with the number of its first row."""
    rows = iter(rows)
    while chunk := list(islice(rows, CHUNK)):
        yield first, chunk
        first += len(chunk)
