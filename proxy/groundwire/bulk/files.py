"""Read rows of answers from JSONL, CSV and Parquet files, and write the results so that a batch can be resumed."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import escape
from itertools import islice
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from groundwire.errors import GroundwireError
from groundwire.extras import require_extras

FORMATS = (".jsonl", ".csv", ".parquet")
_BATCH = 256  # rows of a Parquet file that are read at once
_GROUP = 10_000  # rows of a group in a Parquet file that is written


@dataclass(frozen=True, slots=True)
class Columns:
    """The column of each part of a row. Dots lead into nested values, as in `response.choices.0.text`."""

    answer: str = "answer"
    sources: str = "sources"
    question: str = "question"
    messages: str = "messages"
    id: str = "id"


def read_rows(path: Path, skip: int = 0) -> Iterator[Mapping[str, Any] | str]:
    """Yield the rows of a file after the first `skip` ones; a line that cannot be read yields the reason as a string.

    Raises GroundwireError for another format, or if pyarrow is needed and not installed, and OSError.
    """
    with path.open("rb") as stream:
        yield from islice(parse_rows(stream, path.suffix, str(path)), skip, None)


def parse_rows(stream: IO[bytes], suffix: str, name: str) -> Iterator[Mapping[str, Any] | str]:
    """Yield the rows in a stream of a format, as `read_rows` does; a Parquet file must be seekable."""
    match suffix:
        case ".jsonl":
            for line in io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="\n"):
                if line.strip():
                    yield _object(line)
        case ".csv":
            csv.field_size_limit(sys.maxsize)
            yield from csv.DictReader(io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline=""))
        case ".parquet":
            for batch in pyarrow_parquet().ParquetFile(stream).iter_batches(batch_size=_BATCH):
                yield from batch.to_pylist()
        case _:
            raise GroundwireError(f"{name}: the format must be one of {', '.join(FORMATS)}")


def _object(line: str) -> Mapping[str, Any] | str:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return "the line is not valid JSON"
    return row if isinstance(row, dict) else "the line is not a JSON object"


def pyarrow_parquet() -> Any:
    """Return the module `pyarrow.parquet`. Raises ConfigError with the command that installs it."""
    require_extras(("Parquet", "bulk"))
    import pyarrow.parquet

    return pyarrow.parquet


def request_of(row: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """Return a row as the body of `POST /v1/grounding/verify`. Raises ValueError for a missing or wrong value."""
    answer = _value(row, columns.answer)
    if not isinstance(answer, str):
        raise ValueError(f'"{columns.answer}" is missing or no text')
    body: dict[str, Any] = {"answer": answer}
    if sources := _listed(_value(row, columns.sources), columns.sources):
        body["sources"] = sources
    if messages := _listed(_value(row, columns.messages), columns.messages):
        body["messages"] = messages
    if isinstance(question := _value(row, columns.question), str):
        body["question"] = question
    return body


def id_of(row: Mapping[str, Any], columns: Columns) -> str | None:
    """Return the id of a row, None if it has none."""
    value = _value(row, columns.id)
    return None if value is None else str(value)


def _listed(value: Any, column: str) -> list[Any]:
    """Return a list; a text is one item, unless it is a JSON array as in CSV files."""
    if isinstance(value, str):
        found = _array(value)
        return [value] if found is None and value.strip() else found or []
    if value is None or isinstance(value, list):
        return value or []
    raise ValueError(f'"{column}" is neither a text nor a list')


def _array(text: str) -> list[Any] | None:
    if not text.lstrip().startswith("["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _value(row: Mapping[str, Any], column: str) -> Any:
    """Return the value of a column, or the nested value at a name with dots; None if there is none."""
    if column in row:
        return row[column]
    value: Any = row
    for name in column.split("."):
        if isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, Mapping):
            value = value.get(name)
        else:
            return None
    return value


class Journal:
    """Lines of results that survive a killed process: complete lines count, a torn last one is removed.

    A file next to the output holds the inputs of the batch. Raises GroundwireError if the output belongs to others.
    """

    def __init__(self, path: Path, inputs: Mapping[str, Any], *, overwrite: bool = False) -> None:
        self.path = path
        self._state = path.with_name(f"{path.name}.state")
        if overwrite:
            path.unlink(missing_ok=True)
            self._state.unlink(missing_ok=True)
        if path.exists() and self._inputs() != dict(inputs):
            raise GroundwireError(f"{path} was made from other input, columns or settings; --overwrite starts anew")
        self._state.write_text(json.dumps(dict(inputs)), encoding="utf-8")
        self.done = self._repair()
        self._file = path.open("a", encoding="utf-8")

    def _inputs(self) -> Any:
        try:
            return json.loads(self._state.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def _repair(self) -> int:
        """Remove a torn last line and return the number of complete ones."""
        if not self.path.exists():
            return 0
        lines = end = 0
        with self.path.open("r+b") as file:
            for line in file:
                if line.endswith(b"\n"):
                    lines, end = lines + 1, end + len(line)
            file.truncate(end)
        return lines

    def append(self, results: Sequence[Mapping[str, Any]]) -> None:
        """Write the results of rows, in order. They survive a kill of the process once this returns."""
        self._file.writelines(map(json_line, results))
        self._file.flush()
        self.done += len(results)

    def close(self) -> None:
        """Write everything to disk and close the file."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def remove(self) -> None:
        """Remove the lines and the state, once they were converted to another format."""
        self.path.unlink(missing_ok=True)
        self._state.unlink(missing_ok=True)


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


def json_line(result: Mapping[str, Any]) -> str:
    """Return a result as a line of JSON."""
    return json.dumps(result, ensure_ascii=False) + "\n"


def read_results(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the results in a journal."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def write_parquet(results: Iterable[Mapping[str, Any]], sink: IO[bytes]) -> None:
    """Write results as a Parquet file: row, id, error, verdict, score, flags, and the report as JSON text."""
    parquet = pyarrow_parquet()
    import pyarrow

    schema = pyarrow.schema(
        [
            ("row", pyarrow.int64()),
            ("id", pyarrow.string()),
            ("error", pyarrow.string()),
            ("verdict", pyarrow.string()),
            ("score", pyarrow.float64()),
            ("flags", pyarrow.list_(pyarrow.string())),
            ("grounding", pyarrow.string()),
        ]
    )
    remaining = map(_record, results)
    with parquet.ParquetWriter(sink, schema) as writer:
        while group := list(islice(remaining, _GROUP)):
            writer.write_table(pyarrow.Table.from_pylist(group, schema))


def parse_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of such a Parquet file as the result that it was made from."""
    result = {name: record[name] for name in ("row", "id", "error") if record[name] is not None}
    return result if record["grounding"] is None else result | {"grounding": json.loads(record["grounding"])}


def _record(result: Mapping[str, Any]) -> dict[str, Any]:
    report = result.get("grounding")
    return {
        "row": result["row"],
        "id": result.get("id"),
        "error": result.get("error"),
        **{name: report[name] if report else None for name in ("verdict", "score", "flags")},
        "grounding": json.dumps(report, ensure_ascii=False) if report else None,
    }
