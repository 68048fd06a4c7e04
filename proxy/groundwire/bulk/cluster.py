"""`groundwire batch --engine dask`: verify the files of a folder or an object store on a Dask cluster, a file per task.

Each file of results appears complete or not at all, and a task whose file is there only counts it. Tasks can thus be
repeated: after the death of a worker by Dask, after the death of the command by the same command.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from groundwire.bulk.files import FORMATS, json_line, parse_record, parse_rows, renamed, write_parquet
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
from groundwire.bulk.summary import Summary, summarise
from groundwire.config import Settings
from groundwire.errors import GroundwireError
from groundwire.extras import require_extras

STATE = "groundwire-batch.json"
"""The file in the output folder with the inputs of the batch."""

_PACKED = (".gz", ".bz2", ".zst", ".lz4")  # pyarrow unpacks them
_RETRIES = 2  # of a file that could not be read or written


class Store(NamedTuple):
    """A file system of pyarrow, and a path in it."""

    files: Any
    path: str


class Partition(NamedTuple):
    """A file of rows with its name and the time of its last change (ns since 1970), and the file of its results."""

    source: Store
    name: str
    modified_ns: int
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
    partitions = []
    for info in found:
        name = info.path[len(root.path) + 1 :]
        is_output = root.files == target.files and info.path.startswith(f"{target.path}/")
        if _suffix(name) in FORMATS and not is_output:
            output = Store(target.files, f"{target.path}/{_output(name)}")
            partitions.append(Partition(Store(root.files, info.path), name, info.mtime_ns, output))
    if not partitions:
        raise GroundwireError(f"{root.path}: no file matches; the format must be one of {', '.join(FORMATS)}")
    outputs = Counter(_output(each.name) for each in partitions)
    if doubled := [name for name, number in outputs.items() if number > 1]:
        raise GroundwireError(f"{root.path}: several files have the output {doubled[0]}")
    return root, partitions


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
    else:
        earlier = None
        if state.path in there:
            with target.files.open_input_stream(state.path) as file:
                earlier = json.load(file)
        if (results or state.path in there) and earlier != inputs:
            reason = "was made from other input, columns or settings; --overwrite starts anew"
            raise GroundwireError(f"{target.path} {reason}")
    with written(state) as file:
        file.write(json.dumps(inputs).encode())


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
        return Summary(errors=Counter({f"{partition.name}: {error}": 1}))


def verify_partition(partition: Partition, task: Task) -> Summary:
    """Verify the rows of a file and return the figures of the results.

    Nothing is verified if there are results that are not older than their input, to the second as object stores count.
    """
    from pyarrow.fs import FileType

    info = partition.target.files.get_file_info(partition.target.path)
    if info.type == FileType.File and info.mtime_ns // 10**9 >= partition.modified_ns // 10**9:
        return summarise(_read_results(partition.target))
    summary = Summary()
    results = summary.count(_verified(islice(_read_rows(partition.source), task.limit), task))
    with written(partition.target) as file:
        if partition.target.path.endswith(".parquet"):
            write_parquet(results, file)
        else:
            file.writelines(json_line(each).encode() for each in results)
    return summary


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


def find_store(place: str) -> Store:
    """Return the store of a path or URL: `s3://`, `gs://`, `file://`. Raises GroundwireError for other URLs."""
    require_extras(("--engine dask", "cluster"))
    from pyarrow.fs import FileSystem, LocalFileSystem

    if "://" not in place:
        return Store(LocalFileSystem(), Path(place).resolve().as_posix())
    try:
        files, path = FileSystem.from_uri(place)
    except (ValueError, NotImplementedError) as error:
        raise GroundwireError(f"{place.partition('://')[0]}:// cannot be read: {error}") from error
    return Store(files, path.rstrip("/"))


def list_files(place: str) -> tuple[Store, list[Any]]:
    """Return the files of a folder with all below it, of a pattern with `*`, or the one that is named; sorted by path.

    The store is the folder of the files. In a pattern, `*` matches `/` too.
    """
    from pyarrow.fs import FileSelector, FileType

    store = find_store(place)
    start, star, _ = store.path.partition("*")
    info = store.files.get_file_info(store.path)
    is_file = info.type == FileType.File
    folder = start.rpartition("/")[0] if star or is_file else store.path
    found = [info] if is_file else store.files.get_file_info(FileSelector(folder, recursive=True))
    files = [each for each in found if each.type == FileType.File and (not star or fnmatchcase(each.path, store.path))]
    return Store(store.files, folder), sorted(files, key=lambda file: file.path)


@contextmanager
def written(store: Store) -> Iterator[IO[bytes]]:
    """Yield a file that appears in the store, in place of an earlier one, when the block is left without an error.

    In a folder, of this machine or mounted, it is renamed. In an object store it is uploaded from a temporary file, as
    an upload is not visible before its end.
    """
    if store.files.type_name == "local":
        with renamed(Path(store.path)) as file:
            yield file
        return
    with TemporaryFile() as file:
        yield file
        file.seek(0)
        with store.files.open_output_stream(store.path, compression=None) as upload:
            shutil.copyfileobj(file, upload)
