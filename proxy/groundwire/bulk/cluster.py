"""`groundwire batch --engine dask`: verify the files of a folder or an object store on a Dask cluster, a file per task.

Each file of results appears complete or not at all, and a task whose file is there only counts it. Tasks can thus be
repeated: after the death of a worker by Dask, after the death of the command by the same command.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from groundwire.bulk.files import FORMATS, json_line, parse_record, parse_rows, write_parquet
from groundwire.bulk.run import (
    Job,
    Options,
    Row,
    check_judge,
    chunked,
    inputs_of,
    open_worker,
    progress_bar,
    verify_all,
    verify_rows,
    write_page,
)
from groundwire.bulk.stores import File, Store, find_store, list_files, written
from groundwire.bulk.summary import Summary
from groundwire.config import Settings
from groundwire.errors import GroundwireError

STATE = "groundwire-batch.json"
"""The file in the output folder with the inputs of the batch."""

_PACKED = (".gz", ".bz2", ".zst", ".lz4")  # pyarrow unpacks them
_RETRIES = 2  # of a file that could not be read or written


class Partition(NamedTuple):
    """A file of rows, and the file of its results."""

    source: File
    target: Store


class Task(NamedTuple):
    """The constant part of all tasks. `limit` is a number of rows of each file."""

    job: Job
    limit: int | None = None
    is_isolated: bool = False
    """Verify in a process that may die, as the rows of this file have killed workers."""


def run_cluster(options: Options, settings: Settings) -> Summary:
    """Verify all files of a folder, a pattern or a URL, and return the figures of the whole output.

    Runs on the cluster at DASK_SCHEDULER_ADDRESS; without it, on worker processes of this machine. A file that cannot
    be read is an error in the figures. Raises GroundwireError, as `run_batch` does, and OSError.
    """
    target = find_store(options.target)
    root, partitions = _partitions(options.source, target)
    check_judge(settings)
    limit = {} if options.limit is None else {"limit": options.limit}
    inputs = {"input": root.path, **limit, **inputs_of(options, settings)}
    _begin(target, inputs, partitions, overwrite=options.overwrite)
    task = Task(Job(settings, options.columns), options.limit)
    summary = Summary()
    with progress_bar() as progress:
        bar = progress.add_task("files", total=len(partitions))
        for each in _run(partitions, task, options.workers):
            summary.merge(each)
            progress.advance(bar)
    write_page(summary, options.page, root.path)
    return summary


def _partitions(place: str, target: Store) -> tuple[Store, list[Partition]]:
    root, found = list_files(place)
    inputs = [file for file in found if _suffix(file.name) in FORMATS and not target.contains(file.store)]
    if not inputs:
        raise GroundwireError(f"{root.path}: no file matches; the format must be one of {', '.join(FORMATS)}")
    outputs = Counter(map(_output, (file.name for file in inputs)))
    if doubled := [name for name, number in outputs.items() if number > 1]:
        raise GroundwireError(f"{root.path}: several files have the output {doubled[0]}")
    return root, [Partition(file, Store(target.files, f"{target.path}/{_output(file.name)}")) for file in inputs]


def _unpacked(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    return path.with_suffix("") if path.suffix in _PACKED else path


def _suffix(name: str) -> str:
    return _unpacked(name).suffix


def _output(name: str) -> str:
    """Return the name of the results: Parquet for Parquet, JSONL for others."""
    path = _unpacked(name)
    return str(path if path.suffix in (".jsonl", ".parquet") else path.with_name(f"{path.name}.jsonl"))


def _begin(target: Store, inputs: Mapping[str, Any], partitions: list[Partition], *, overwrite: bool) -> None:
    """Record the inputs of the batch. Raises GroundwireError if results that are there were made from others."""
    from pyarrow.fs import FileSelector

    state = Store(target.files, f"{target.path}/{STATE}")
    selector = FileSelector(target.path, recursive=True, allow_not_found=True)
    there = {each.path for each in target.files.get_file_info(selector)}
    results = there & {each.target.path for each in partitions}
    if overwrite:
        for path in results:
            target.files.delete_file(path)
    elif (results or state.path in there) and _state(state, there) != inputs:
        raise GroundwireError(f"{target.path} was made from other input, columns or settings; --overwrite starts anew")
    with written(state) as file:
        file.write(json.dumps(inputs).encode())


def _state(state: Store, there: set[str]) -> Any:
    if state.path not in there:
        return None
    with state.files.open_input_stream(state.path) as file:
        return json.load(file)


def _run(partitions: list[Partition], task: Task, workers: int) -> Iterator[Summary]:
    """Yield the figures of each file, in order; last those of files whose rows killed workers, verified here."""
    import dask.config
    from distributed import Client, KilledWorker

    has_cluster = dask.config.get("scheduler-address", None)
    here = {} if has_cluster else {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    fatal: list[Partition] = []
    with Client(**here) as client:
        verify = partial(verify_partition, task=task)
        futures = deque(client.map(verify, partitions, pure=False, retries=_RETRIES))
        for each in partitions:
            future = futures.popleft()
            if isinstance(future.exception(), KilledWorker):
                fatal.append(each)
            else:
                yield _counted(each, future.result)
    for each in fatal:
        yield _counted(each, partial(verify_partition, each, task._replace(is_isolated=True)))


def _counted(partition: Partition, call: Callable[[], Summary]) -> Summary:
    """Return the figures of a file. One that cannot be read or written is an error in them."""
    try:
        return call()
    except GroundwireError:
        raise
    except Exception as error:  # noqa: BLE001 - pyarrow and csv raise many kinds
        return Summary(errors=Counter({f"{partition.source.name}: {error}": 1}))


def verify_partition(partition: Partition, task: Task) -> Summary:
    """Verify the rows of a file, if their results are not there yet, and return the figures of the results."""
    summary = Summary()
    if _is_done(partition):
        for result in _read_results(partition.target):
            summary.add(result)
        return summary
    results = summary.count(_verified(islice(_read_rows(partition.source.store), task.limit), task))
    with written(partition.target) as file:
        if partition.target.path.endswith(".parquet"):
            write_parquet(results, file)
        else:
            file.writelines(json_line(each).encode() for each in results)
    return summary


def _is_done(partition: Partition) -> bool:
    """Return whether there are results that are not older than their input, to the second as object stores count."""
    from pyarrow.fs import FileType

    info = partition.target.files.get_file_info(partition.target.path)
    is_newer = info.type == FileType.File and info.mtime_ns // 10**9 >= partition.source.modified // 10**9
    return bool(is_newer)


def _verified(rows: Iterator[Row], task: Task) -> Iterator[dict[str, Any]]:
    if task.is_isolated:
        return chain.from_iterable(verify_all(rows, task.job, 1))
    judge = open_worker(task.job)
    return chain.from_iterable(verify_rows(first, chunk, task.job, judge) for first, chunk in chunked(rows))


def _read_rows(store: Store) -> Iterator[Row]:
    suffix = _suffix(store.path)
    opened = store.files.open_input_file if suffix == ".parquet" else store.files.open_input_stream
    with opened(store.path) as stream:
        yield from parse_rows(stream, suffix, store.path)


def _read_results(store: Store) -> Iterator[Mapping[str, Any]]:
    for row in _read_rows(store):
        if isinstance(row, str):
            raise ValueError(f"{store.path}: {row}")
        yield parse_record(row) if store.path.endswith(".parquet") else row
