"""Read rows of answers from JSONL, CSV and Parquet files, with columns named by the user."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from groundwire.errors import GroundwireError
from groundwire.extras import require_extras

FORMATS = (".jsonl", ".csv", ".parquet")
_BATCH = 256  # rows of a Parquet file that are read at once


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
    match path.suffix:
        case ".jsonl":
            return islice(_json_lines(path), skip, None)
        case ".csv":
            return islice(_csv(path), skip, None)
        case ".parquet":
            return islice(_parquet(path), skip, None)
    raise GroundwireError(f"{path}: the format must be one of {', '.join(FORMATS)}")


def _json_lines(path: Path) -> Iterator[Mapping[str, Any] | str]:
    with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
        for line in lines:
            if line.strip():
                yield _object(line)


def _object(line: str) -> Mapping[str, Any] | str:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return "the line is not valid JSON"
    return row if isinstance(row, dict) else "the line is not a JSON object"


def _csv(path: Path) -> Iterator[Mapping[str, Any] | str]:
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        yield from csv.DictReader(lines)


def _parquet(path: Path) -> Iterator[Mapping[str, Any] | str]:
    for batch in pyarrow_parquet().ParquetFile(path).iter_batches(batch_size=_BATCH):
        yield from batch.to_pylist()


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
