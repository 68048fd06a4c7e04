"""Files in folders and object stores: listed, read, and written so that they appear complete or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple
from uuid import uuid4

from groundwire.errors import GroundwireError
from groundwire.extras import require_extras


class Store(NamedTuple):
    """A file system of pyarrow, and a path in it."""

    files: Any
    path: str

    @property
    def is_local(self) -> bool:
        """True for a folder of this machine, or one that all machines mount."""
        return bool(self.files.type_name == "local")

    def contains(self, other: Store) -> bool:
        """Return whether another path is inside of this one."""
        return bool(self.files == other.files) and other.path.startswith(f"{self.path}/")


class File(NamedTuple):
    """A file: its path relative to the listed folder, and the time of its last change, in ns since 1970."""

    store: Store
    name: str
    modified: int


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


def list_files(place: str) -> tuple[Store, list[File]]:
    """Return the files of a folder with all below it, of a pattern with `*`, or the one that is named; sorted by name.

    The store is the folder of the files. In a pattern, `*` matches `/` too.
    """
    from pyarrow.fs import FileSelector, FileType

    store = find_store(place)
    start, star, _ = store.path.partition("*")
    info = store.files.get_file_info(store.path)
    is_file = info.type == FileType.File
    folder = start.rpartition("/")[0] if star or is_file else store.path
    found = [info] if is_file else store.files.get_file_info(FileSelector(folder, recursive=True))
    files = [
        File(Store(store.files, each.path), each.path[len(folder) + 1 :], each.mtime_ns)
        for each in found
        if each.type == FileType.File and (not star or fnmatchcase(each.path, store.path))
    ]
    return Store(store.files, folder), sorted(files, key=lambda file: file.name)


@contextmanager
def written(store: Store) -> Iterator[IO[bytes]]:
    """Yield a file that appears in the store, in place of an earlier one, when the block is left without an error.

    In a folder it is renamed. In an object store it is uploaded from a temporary file, as an upload is not visible
    before its end.
    """
    if store.is_local:
        with renamed(Path(store.path)) as file:
            yield file
        return
    with TemporaryFile() as file:
        yield file
        file.seek(0)
        with store.files.open_output_stream(store.path, compression=None) as upload:
            shutil.copyfileobj(file, upload)


@contextmanager
def renamed(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that gets its name, in place of an earlier one, when the block is left without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{escape(path.name)}.*.partial"):  # of a killed process
        left.unlink(missing_ok=True)
    partial = path.with_name(f".{path.name}.{uuid4().hex}.partial")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
