"""The output of a batch, one JSON line per row in the order of the input, and how far an interrupted batch came."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from groundwire.bulk.rows import pyarrow_parquet
from groundwire.errors import GroundwireError

_GROUP = 10_000  # rows of a group in a Parquet file


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
        self._file.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in results)
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


def read_results(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the results in a journal."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def write_parquet(results: Iterator[Mapping[str, Any]], path: Path) -> None:
    """Write results to a Parquet file: row, id, error, verdict, score, flags, and the report as JSON text."""
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
    partial = path.with_name(f"{path.name}.partial")
    with parquet.ParquetWriter(partial, schema) as writer:
        group: list[dict[str, Any]] = []
        for each in results:
            group.append(_record(each))
            if len(group) == _GROUP:
                writer.write_table(pyarrow.Table.from_pylist(group, schema))
                group = []
        writer.write_table(pyarrow.Table.from_pylist(group, schema))
    partial.replace(path)


def _record(result: Mapping[str, Any]) -> dict[str, Any]:
    report = result.get("grounding")
    return {
        "row": result["row"],
        "id": result.get("id"),
        "error": result.get("error"),
        "verdict": report["verdict"] if report else None,
        "score": report["score"] if report else None,
        "flags": report["flags"] if report else None,
        "grounding": json.dumps(report, ensure_ascii=False) if report else None,
    }
