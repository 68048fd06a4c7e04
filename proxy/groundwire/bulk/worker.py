"""Verify rows in worker processes: results in order, a bounded number of rows in memory, dead workers replaced."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import islice
from multiprocessing import get_context
from typing import Any, NamedTuple

from groundwire.backends.loading import load_judge
from groundwire.bulk.rows import Columns, id_of, request_of
from groundwire.config import Settings
from groundwire.container.models import open_judge
from groundwire.dialects.checks import read_answer_check
from groundwire.dialects.jsonbytes import dumps
from groundwire.domain import Choice
from groundwire.errors import BadRequest
from groundwire.evidence.index import Context
from groundwire.evidence.messages import gather, question
from groundwire.judge import Judge
from groundwire.pipeline import verify

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

    job: Job
    judge: Judge


def _start(job: Job) -> None:
    _Worker.job = job
    judge = job.settings.judge
    _Worker.judge = open_judge(job.settings).__enter__() if judge.is_language else load_judge(judge)


def verify_rows(first: int, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Verify rows with the judge of this process; `first` is the number of the first one."""
    return [_verify(number, row, _Worker.job, _Worker.judge) for number, row in enumerate(rows, start=first)]


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
    chunks = _chunks(rows, first)
    waiting: deque[tuple[int, Sequence[Row]]] = deque()
    while True:
        waiting.extend(islice(chunks, workers * _AHEAD - len(waiting)))
        if not waiting:
            return
        with ProcessPoolExecutor(workers, get_context("spawn"), _start, (job,)) as pool:
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
    pending: deque[Future[list[dict[str, Any]]]] = deque(pool.submit(verify_rows, *each) for each in waiting)
    while pending:
        results = pending.popleft().result()
        waiting.popleft()
        yield results
        for each in islice(chunks, 1):
            waiting.append(each)
            pending.append(pool.submit(verify_rows, *each))


def _one_by_one(first: int, rows: Sequence[Row], job: Job) -> list[dict[str, Any]]:
    """Verify the rows of a chunk during which a worker died, each in a process that may die."""
    results: list[dict[str, Any]] = []
    at = 0
    while at < len(rows):
        with ProcessPoolExecutor(1, get_context("spawn"), _start, (job,)) as pool:
            try:
                while at < len(rows):
                    results += pool.submit(verify_rows, first + at, rows[at : at + 1]).result()
                    at += 1
            except BrokenProcessPool:
                results.append({"row": first + at, "error": _DIED})
                at += 1
    return results


def _chunks(rows: Iterable[Row], first: int) -> Iterator[tuple[int, Sequence[Row]]]:
    rows = iter(rows)
    while chunk := list(islice(rows, CHUNK)):
        yield first, chunk
        first += len(chunk)
