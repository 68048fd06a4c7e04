"""Rows per second and core of `groundwire batch`, with the entailment model and by words alone, on one and two workers.

    python -m bench.bulk                 # --rows 400 --rounds 3: for a quiet machine

A row is one of the twenty everyday documents (suites/everyday.jsonl), made distinct by a first line, and an answer of
five of its sentences, right and wrong ones. Two files are verified, one four times as long; the difference of both is
the cost of the rows, without the start of the processes. CPU time is user + system, of all processes. One and two
workers take turns. On Dask, the same rows are in eight files; it is measured where it is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.report import ROOT, heading, machine, markdown, write
from groundwire.extras import is_installed

SENTENCES = 5
TIMES = 4  # the length of the long file, in short ones
JUDGES = {"encoder": "shipped model", "off": "words alone"}
WORKERS = (1, 2)
FILES = 8  # of a cluster's input
ANSWERS = 10**9
CORE_HOUR = 0.04
"""The price of a core for an hour that the costs are calculated with, in dollars: an assumption."""


def rows(count: int) -> list[dict[str, Any]]:
    """Return rows, always the same."""
    lines = (ROOT / "bench/suites/everyday.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line) for line in lines]
    chance = random.Random(1)
    return [_row(number, documents[number % len(documents)], chance) for number in range(count)]


def _row(number: int, document: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    answer = " ".join(each["text"] for each in chance.sample(document["sentences"], SENTENCES))
    return {"id": str(number), "answer": answer, "sources": [f"Record {number}.\n\n{document['document']}"]}


def run(count: int, workers: int, judge: str, engine: str, folder: Path) -> tuple[float, float]:
    """Verify so many rows, and return the seconds of processor and of wall-clock time."""
    source, target = folder / f"{count}-{engine}", folder / f"{count}-{engine}-reports"
    if engine == "local":
        source, target = source.with_suffix(".jsonl"), target.with_suffix(".jsonl")
    if not source.exists():
        _write(rows(count), source)
    command = [sys.executable, "-c", "from groundwire.cli import main; main()", "batch", str(source), str(target)]
    command += ["--workers", str(workers), "--judge", judge, "--engine", engine, "--overwrite", "--json"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    found = json.loads(done.stdout)
    assert found["rows"] == count, found
    assert not found["errors"], found
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds


def _write(found: list[dict[str, Any]], place: Path) -> None:
    """Write rows to a file, or in equal parts to the files of a folder."""
    lines = [json.dumps(row) + "\n" for row in found]
    if place.suffix:
        place.write_text("".join(lines), encoding="utf-8")
        return
    place.mkdir()
    for part in range(FILES):
        (place / f"part-{part}.jsonl").write_text("".join(lines[part::FILES]), encoding="utf-8")


def measure(judge: str, engine: str, short: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Return figures of one judge and engine: rows per CPU second for each number of workers, and their ratios."""
    figures: dict[int, list[tuple[float, float]]] = {workers: [] for workers in WORKERS}
    for _ in range(rounds):
        for workers in WORKERS:
            (less, sooner), (more, later) = (
                run(count, workers, judge, engine, folder) for count in (short, TIMES * short)
            )
            figures[workers].append((more - less, later - sooner))
    added = (TIMES - 1) * short
    cpu = {workers: added / median(pair[0] for pair in pairs) for workers, pairs in figures.items()}
    wall = {workers: added / median(pair[1] for pair in pairs) for workers, pairs in figures.items()}
    one, two = WORKERS
    return {
        "judge": JUDGES[judge],
        "engine": engine,
        "rows": added,
        "rows_per_cpu_second": {str(workers): value for workers, value in cpu.items()},
        "rows_per_second": {str(workers): value for workers, value in wall.items()},
        "ratio_cpu": cpu[two] / cpu[one],
        "ratio_wall": wall[two] / wall[one],
        "core_hours": ANSWERS / cpu[one] / 3600,
    }


def table(result: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    columns = [
        "judge",
        "engine",
        "rows",
        "rows per CPU second: 1 worker",
        "2 workers",
        "ratio",
        "wall-clock ratio 2 : 1",
    ]
    columns += ["core hours for 10⁹ answers", f"at ${CORE_HOUR} an hour"]
    lines: list[Sequence[object]] = []
    for each in result["judges"]:
        one, two = each["rows_per_cpu_second"].values()
        hours = each["core_hours"]
        speed = f"{one:.1f}", f"{two:.1f}", f"{each['ratio_cpu']:.2f}", f"{each['ratio_wall']:.2f}"
        lines.append(
            (each["judge"], each["engine"], each["rows"], *speed, f"{hours:,.0f}", f"${hours * CORE_HOUR:,.0f}")
        )
    return markdown(columns, lines)


def main() -> None:
    """Measure, and write bench/results/bulk.json and bulk.md."""
    parser = argparse.ArgumentParser(description="Measures rows per second and core of groundwire batch.")
    parser.add_argument(
        "--rows", type=int, default=80, help="of the short file with the model; by words four times that, on Dask half"
    )
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="groundwire-bulk-") as name:
        plan = [("encoder", "local", given.rows), ("off", "local", TIMES * given.rows)]
        if is_installed("cluster"):
            plan.append(("encoder", "dask", max(FILES, given.rows // 2)))
        judges = [measure(judge, engine, size, given.rounds, Path(name)) for judge, engine, size in plan]
    command = f"python -m bench.bulk --rows {given.rows} --rounds {given.rounds}"
    result = {"command": command, "machine": machine(), "load": load, "judges": judges}
    note = (
        f"Load of the machine at the start: {load:.1f}. A row: one document of about 1,500 characters, five sentences."
    )
    write("bulk", result, f"{heading('Rows per second and core of a batch', result)}\n{note}\n\n{table(result)}")
    print(table(result))


if __name__ == "__main__":
    main()
