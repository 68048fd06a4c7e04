"""`groundwire batch --engine dask`: workers that are killed, files of all kinds, and an S3 server on loopback."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from groundwire.bulk.summary import WORST, Summary, summarise
from groundwire.cli import app
from tests.bulk.test_batch import RIGHT, SOURCE, command, results, rows, write
from tests.ports import free_port
from tests.waiting import found_within

ROOT = Path(__file__).parent.parent.parent
SLOW = pytest.mark.timeout(600)  # each process imports Dask, on a machine that may be busy
PATIENT = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "120s", "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "120s"}
DOCUMENTED = [
    shlex.split(line, comments=True)
    for line in (ROOT / "docs/bulk.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("groundwire batch")
]
MOTO = shutil.which("moto_server", path=ROOT / ".bench/s3/bin")


def dask_batch(*arguments: str | Path, folder: Path | None = None, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*command(*arguments), "--engine", "dask"],
        env={**os.environ, **PATIENT, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=folder,
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, log = process.communicate(timeout=400)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode, out, log


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and three workers, as on several machines: the address, and the workers."""
    pytest.importorskip("distributed", reason="groundwire[cluster] is not installed")
    port = free_port()
    address, dask = f"tcp://127.0.0.1:{port}", str(Path(sys.executable).with_name("dask"))
    worker = [dask, "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    commands = [[dask, "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"], *[worker] * 3]
    with (tmp_path / "dask.log").open("wb") as log:
        started = [
            subprocess.Popen(each, stdout=log, stderr=log, cwd=tmp_path, env=os.environ | PATIENT) for each in commands
        ]
    yield address, started[1:]
    for process in reversed(started):
        process.kill()
        process.wait()


def partial_of(process: subprocess.Popen[bytes]) -> Path | None:
    """Return the unfinished file of results that a process has open."""
    for number in Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            path = Path(os.readlink(number))
        except OSError:
            continue
        if path.suffix == ".partial":
            return path
    return None


@SLOW
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files of processes are read in /proc")
def test_a_worker_that_is_killed_in_the_middle_of_a_file_loses_and_doubles_no_row(
    tmp_path: Path, dask: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    address, workers = dask
    (tmp_path / "logs").mkdir()
    for number in range(6):
        write(tmp_path / f"logs/part-{number}.jsonl", rows(400))
    documented = DOCUMENTED[1][2:-2]
    assert documented == ["logs/", "reports/"]
    batch = dask_batch(*documented, "--json", folder=tmp_path, DASK_SCHEDULER_ADDRESS=address)

    def busy() -> tuple[subprocess.Popen[bytes], Path] | None:
        assert batch.poll() is None, batch.communicate()
        return next(((each, partial) for each in workers if (partial := partial_of(each))), None)

    victim, unfinished = found_within(300, busy)
    victim.kill()
    victim.wait()
    assert unfinished.exists()
    code, out, log = finished(batch)
    assert code == 0, log
    assert json.loads(out)["rows"] == 6 * 400
    found = sorted((tmp_path / "reports").glob("*.jsonl"))
    assert [path.name for path in found] == [f"part-{number}.jsonl" for number in range(6)]
    for path in found:
        assert [each["row"] for each in results(path)] == list(range(400))
    assert list((tmp_path / "reports").rglob(".*")) == []


@SLOW
def test_files_of_all_kinds_and_rows_that_cannot_be_verified(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="groundwire[cluster] is not installed")
    import pyarrow
    from pyarrow import parquet

    source, target = tmp_path / "in", tmp_path / "in/reports"
    (source / "sub").mkdir(parents=True)
    (source / "table.csv.gz").write_bytes(gzip.compress(f'id,answer,sources\nc,"{RIGHT}","{SOURCE}"\n'.encode()))
    parquet.write_table(pyarrow.Table.from_pylist(rows(30)), source / "sub/b.parquet")
    (source / "broken.parquet").write_text("not Parquet")
    found = rows(20)
    found[7]["answer"] = "kill"
    write(source / "a.jsonl", found).open("a").write("no json\n")
    (tmp_path / "deadly.py").write_text(
        "import os\n"
        "from groundwire.bulk import run as worker\n"
        "verify = worker._verify\n"
        "def fatal(number, row, job, judge):\n"
        "    if row != 'the line is not valid JSON' and row['answer'] == 'kill': os._exit(1)\n"
        "    return verify(number, row, job, judge)\n"
        "worker._verify = fatal\n"
    )
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nif 'multiprocessing.spawn' in ' '.join(sys.orig_argv): import deadly\n"
    )
    environ = {"PYTHONPATH": str(tmp_path), "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    arguments = source, target, "--json", "--workers", "2", "--html", tmp_path / "page.html"
    code, out, log = finished(dask_batch(*arguments, **environ))
    assert code == 1, log
    figures = json.loads(out)
    assert figures["rows"] == 21 + 1 + 30
    reasons = ("broken.parquet: ", "the line is not valid JSON", "the worker process died on this row")
    assert sorted(figures["errors"].values()) == [1, 1, 1]
    assert all(any(error.startswith(reason) for error in figures["errors"]) for reason in reasons)
    written = sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())
    assert written == ["a.jsonl", "groundwire-batch.json", "sub/b.parquet", "table.csv.jsonl"]
    assert [each["row"] for each in results(target / "a.jsonl") if "error" in each] == [7, 20]
    assert [row["row"] for row in parquet.read_table(target / "sub/b.parquet").to_pylist()] == list(range(30))
    assert "52 answers" in (tmp_path / "page.html").read_text(encoding="utf-8")

    refused = subprocess.run(
        [*command(source, target, "--engine", "dask", "--answer", "other")], capture_output=True, text=True, timeout=120
    )
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr

    (source / "broken.parquet").unlink()
    changed = write(source / "a.jsonl", rows(5))
    os.utime(changed, (time.time() + 10,) * 2)
    kept = (target / "sub/b.parquet").stat().st_mtime_ns
    code, out, log = finished(dask_batch(*arguments))
    assert code == 0, log
    assert json.loads(out)["rows"] == 5 + 1 + 30
    assert (target / "sub/b.parquet").stat().st_mtime_ns == kept


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[tuple[Any, str]]:
    """A bucket of an S3 server: its file system, and the end of URLs of it."""
    pytest.importorskip("distributed", reason="groundwire[cluster] is not installed")
    if not MOTO:
        pytest.skip("moto_server is not installed; `make bulk-s3` runs this test")
    from pyarrow.fs import S3FileSystem

    port = free_port()
    place = {"endpoint_override": f"127.0.0.1:{port}", "scheme": "http", "region": "us-east-1"}
    files = S3FileSystem(access_key="key", secret_key="secret", allow_bucket_creation=True, **place)
    with (tmp_path / "moto.log").open("wb") as log:
        server = subprocess.Popen([MOTO, "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)

    def create() -> bool | None:
        try:
            files.create_dir("answers")
        except OSError:
            return None
        return True

    try:
        found_within(120, create)
        yield files, "?" + "&".join(f"{name}={value}" for name, value in place.items())
    finally:
        server.kill()
        server.wait()


@SLOW
def test_a_killed_batch_on_an_object_store_is_completed(bucket: tuple[Any, str], tmp_path: Path) -> None:
    from pyarrow.fs import FileSelector

    files, options = bucket
    for number in range(6):
        with files.open_output_stream(f"answers/logs/day-{number}/part.jsonl") as upload:
            upload.write("".join(json.dumps(row) + "\n" for row in rows(300)).encode())
    with files.open_output_stream("answers/logs/day-0/broken.parquet") as upload:
        upload.write(b"not Parquet")
    urls = f"s3://key:secret@answers/logs/day-*/part.jsonl{options}", f"s3://key:secret@answers/reports{options}"

    def names() -> list[str]:
        found = files.get_file_info(FileSelector("answers/reports", recursive=True, allow_not_found=True))
        return sorted(each.path for each in found if each.path.endswith(".jsonl"))

    killed = dask_batch(*urls, "--workers", "2")
    try:
        found_within(300, lambda: names() or None)
        assert killed.poll() is None
    finally:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
    assert 0 < len(names()) < 6
    code, out, log = finished(dask_batch(*urls, "--workers", "2", "--json"))
    assert code == 0, log
    assert json.loads(out)["rows"] == 6 * 300
    assert names() == [f"answers/reports/day-{number}/part.jsonl" for number in range(6)]
    for name in names():
        with files.open_input_stream(name) as stream:
            lines = stream.read().decode().splitlines()
        assert [json.loads(line)["row"] for line in lines] == list(range(300))
    with files.open_input_stream("answers/reports/groundwire-batch.json") as stream:
        assert b"secret" not in stream.read()
    everything = f"s3://key:secret@answers/logs{options}"
    code, out, log = finished(dask_batch(everything, urls[1], "--workers", "1", "--json"))
    assert code == 1, log
    assert json.loads(out)["rows"] == 6 * 300
    assert not [name for name in files.get_file_info(FileSelector("answers/reports/day-0")) if "broken" in name.path]


@pytest.mark.parametrize("line", DOCUMENTED, ids=" ".join)
def test_the_commands_of_the_documentation_are_understood(line: list[str]) -> None:
    parsed = get_command(app).commands["batch"].make_context("batch", line[2:])
    assert parsed.params["source"] == line[2]
    assert parsed.params["engine"] == ("dask" if "--engine" in line else "local")


@pytest.mark.parametrize(
    ("source", "engine", "reason"),
    [
        ("empty", "dask", "no file matches"),
        ("ftp://host/logs", "dask", "ftp:// cannot be read"),
        ("empty", "local", "--engine dask"),
        ("s3://bucket/logs", "local", "--engine dask"),
    ],
)
def test_input_that_cannot_be_used_is_one_sentence(source: str, engine: str, reason: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="groundwire[cluster] is not installed")
    (tmp_path / "empty").mkdir()
    arguments = command(source, tmp_path / "out.jsonl", "--engine", engine)
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_figures_of_parts_add_up_to_those_of_the_whole() -> None:
    whole = [result(score / 100, f"a{score}") for score in (7, 7, 3, *range(100), 3)] + [{"row": 0, "error": "no"}]
    parts = Summary()
    for start in range(0, len(whole), 40):
        parts.merge(summarise(whole[start : start + 40]))
    assert parts.to_dict() == summarise(whole).to_dict()
    assert sorted(parts.worst) == sorted(summarise(whole).worst)
    assert len(parts.worst) == WORST
    assert Counter(parts.verdicts) == {"ungrounded": 104, "error": 1}


def result(score: float, id_: str) -> dict[str, Any]:
    claims = [{"label": "unsupported"}]
    report = {"verdict": "ungrounded", "flags": ["high_risk"], "score": score, "choices": [{"claims": claims}]}
    return {"row": 0, "id": id_, "grounding": report}
