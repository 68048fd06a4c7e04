"""`groundwire batch`, as a user runs it."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

SOURCE = "In 2023 revenue was $4.2 million. Profit fell to $700K."
RIGHT, WRONG = "Revenue was $4.2M in 2023.", "Profit rose to $900K."


def rows(number: int) -> list[dict[str, Any]]:
    return [{"id": f"a{at}", "answer": WRONG if at % 3 == 0 else RIGHT, "sources": [SOURCE]} for at in range(number)]


def write(path: Path, found: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    return path


def command(*arguments: str | Path) -> list[str]:
    return [str(Path(sys.executable).with_name("groundwire")), "batch", *map(str, arguments), "--judge", "off"]


def batch(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=120)


def results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_row_has_a_report_in_its_place(tmp_path: Path) -> None:
    source, target = write(tmp_path / "in.jsonl", rows(20)), tmp_path / "out.jsonl"
    done = batch(source, target, "--json", "--html", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    found = results(target)
    assert [(each["row"], each["id"]) for each in found] == [(at, f"a{at}") for at in range(20)]
    assert found[0]["grounding"]["verdict"] == "ungrounded"
    assert found[1]["grounding"]["verdict"] == "grounded"
    figures = json.loads(done.stdout)
    assert figures["rows"] == 20
    assert figures["verdicts"] == {"grounded": 13, "ungrounded": 7}
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Profit rose to $900K." in page
    assert "20 answers" in page


def test_a_row_that_cannot_be_read_is_an_error_of_its_own(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    good = json.dumps({"answer": RIGHT, "sources": SOURCE})
    source.write_text(f'{good}\nno json\n{{"sources": "x"}}\n{{"answer": "a", "sources": 5}}\n{good}\n')
    done = batch(source, tmp_path / "out.jsonl")
    assert done.returncode == 1, done.stderr
    found = results(tmp_path / "out.jsonl")
    assert [each.get("error") for each in found] == [
        None,
        "the line is not valid JSON",
        '"answer" is missing or no text',
        '"sources" is neither a text nor a list',
        None,
    ]
    assert "error" in done.stdout


def test_columns_can_be_nested_and_csv_has_lists_as_json(tmp_path: Path) -> None:
    logged = {"response": {"choices": [{"message": {"content": RIGHT}}]}, "request": {"messages": [user(SOURCE)]}}
    source = write(tmp_path / "in.jsonl", [logged])
    named = "--answer", "response.choices.0.message.content", "--messages", "request.messages"
    assert batch(source, tmp_path / "out.jsonl", *named).returncode == 0
    assert results(tmp_path / "out.jsonl")[0]["grounding"]["verdict"] == "grounded"
    with (tmp_path / "in.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["text", "passages"])
        table.writerow([RIGHT, json.dumps(["Unrelated.", SOURCE])])
        table.writerow([WRONG, SOURCE])
    done = batch(tmp_path / "in.csv", tmp_path / "csv.jsonl", "--answer", "text", "--sources", "passages")
    assert done.returncode == 0, done.stderr
    found = [each["grounding"]["verdict"] for each in results(tmp_path / "csv.jsonl")]
    assert found == ["grounded", "ungrounded"]


def test_unread_content_is_a_warning_of_its_row(tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": SOURCE}, image]}]
    assert (
        batch(write(tmp_path / "in.jsonl", [{"answer": RIGHT, "messages": messages}]), tmp_path / "o.jsonl").returncode
        == 0
    )
    (warning,) = results(tmp_path / "o.jsonl")[0]["grounding"]["warnings"]
    assert "image" in warning


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def test_a_killed_batch_continues_without_losing_or_doubling_a_row(tmp_path: Path) -> None:
    source, target = write(tmp_path / "in.jsonl", rows(600)), tmp_path / "out.jsonl"
    killed = subprocess.Popen(
        command(source, target, "--workers", "2"),
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while not (target.exists() and target.stat().st_size > 20_000):
            assert killed.poll() is None
            time.sleep(0.01)
    finally:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
    with target.open("a", encoding="utf-8") as file:
        file.write('{"row": 99, "torn')
    before = target.read_text(encoding="utf-8").count("\n")
    assert 0 < before < 600
    done = batch(source, target, "--json")
    assert done.returncode == 0, done.stderr
    assert [each["row"] for each in results(target)] == list(range(600))
    assert json.loads(done.stdout)["rows"] == 600
    again = batch(source, target, "--json")
    assert json.loads(again.stdout) == json.loads(done.stdout)
    assert len(results(target)) == 600


def test_an_output_of_another_input_is_not_continued(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    assert batch(write(tmp_path / "one.jsonl", rows(3)), target).returncode == 0
    other = write(tmp_path / "two.jsonl", rows(5))
    refused = batch(other, target)
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr
    assert len(results(target)) == 3
    assert batch(other, target, "--overwrite").returncode == 0
    assert len(results(target)) == 5


def test_a_row_that_kills_its_worker_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deadly.py").write_text(
        "import os\n"
        "from groundwire.bulk import run as worker\n"
        "verify = worker._verify\n"
        "def fatal(number, row, job, judge):\n"
        "    if row['answer'] == 'kill': os._exit(1)\n"
        "    return verify(number, row, job, judge)\n"
        "worker._verify = fatal\n"
    )
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nif 'multiprocessing.spawn' in ' '.join(sys.orig_argv): import deadly\n"
    )
    found = rows(20)
    found[7]["answer"] = "kill"
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", paths)
    done = batch(write(tmp_path / "in.jsonl", found), tmp_path / "out.jsonl", "--workers", "2")
    assert done.returncode == 1, done.stderr
    written = results(tmp_path / "out.jsonl")
    assert [each["row"] for each in written] == list(range(20))
    assert [each["row"] for each in written if "error" in each] == [7]


def test_parquet_in_and_out(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    parquet.write_table(pyarrow.Table.from_pylist(rows(30)), tmp_path / "in.parquet")
    done = batch(tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert done.returncode == 0, done.stderr
    table = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["row"] for row in table] == list(range(30))
    assert {row["verdict"] for row in table} == {"grounded", "ungrounded"}
    assert json.loads(table[0]["grounding"])["flags"] == table[0]["flags"]
    assert not (tmp_path / "out.parquet.jsonl").exists()


def test_a_format_that_is_not_known_is_one_sentence(tmp_path: Path) -> None:
    refused = batch(write(tmp_path / "in.txt", rows(1)), tmp_path / "out.jsonl")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert ".parquet" in refused.stderr


class Service(BaseHTTPRequestHandler):
    """A judge that answers a call only when another one is in progress."""

    protocol_version = "HTTP/1.1"
    together: threading.Barrier
    lock = threading.Lock()
    at_once = most = 0

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service = type(self)
        with service.lock:
            service.at_once += 1
            service.most = max(service.most, service.at_once)
        service.together.wait(60)
        with service.lock:
            service.at_once -= 1
        reply = json.dumps({"estimates": [{"id": each["id"], "probability": 0.99} for each in asked["claims"]]})
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_a_judging_service_gets_as_many_rows_at_once_as_it_allows(tmp_path: Path) -> None:
    Service.together = threading.Barrier(2)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    service = {"by": "external", "url": f"http://127.0.0.1:{server.server_port}/judge", "max_concurrent": 2}
    (tmp_path / "config.yaml").write_text(json.dumps({"judge": service}), encoding="utf-8")
    text = "The Harwick wind farm stands off the coast. Its operator paid for the construction of a harbour."
    moods = ("content", "happy", "calm", "busy") * 2
    answers = [{"answer": f"The wind farm keeps local fishermen {mood}.", "sources": [text]} for mood in moods]
    source = write(tmp_path / "in.jsonl", answers)
    options = "--workers", "1", "--config", tmp_path / "config.yaml"
    arguments = [*command(source, tmp_path / "out.jsonl", *options)[:-1], "external"]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=150, cwd=tmp_path)
    finally:
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    claims = [each["grounding"]["choices"][0]["claims"][0] for each in results(tmp_path / "out.jsonl")]
    assert [claim["method"] for claim in claims] == ["model"] * 8
    assert Service.most == 2
